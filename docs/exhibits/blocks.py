"""Any function, by its answers on blocks: how many blocks should there be?"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import gammaincinv

import discreet as dp
from discreet import adaptive, plots
from discreet.mechanisms import Grid
from docs.exhibits.exhibit import Exhibit, usual_errors

_ROWS = 10_000
_BLOCKS = (31, 51, 75, 101, 151, 201, 301, 401, 501, 701, 1001, 1501, 2001)
_GRID = Grid.between(0, 1000, step="0.001")
_RELATION = dp.Relation.REPLACE_ONE  # Of answers: one person replaces one of them.


def blocks() -> Exhibit:
    noise = [_noise(count) for count in _BLOCKS]
    bias = [_bias(count) for count in _BLOCKS]
    both = [math.hypot(*pair) for pair in zip(noise, bias, strict=True)]
    across = [float(count) for count in _BLOCKS]
    curves = {"noise": (across, noise), "bias": (across, bias), "both": (across, both)}
    best = int(np.argmin(both))
    return Exhibit(
        chart=plots.lines(curves, across="blocks (number)", up="usual error (minutes)", log_x=True, log_y=True),
        figures={
            "best": _BLOCKS[best],
            "least": both[best],
            "many": _BLOCKS[-1],
            "rows": _ROWS // _BLOCKS[-1],
            "bias_at_many": bias[-1],
            "few": _BLOCKS[0],
            "noise_at_few": noise[0],
            "direct": _direct(),
        },
    )


def _direct() -> float:
    times = dp.Expected("exponential(10)", lambda shares: -10 * np.log1p(-shares))
    found = dp.compare(
        "mean", relation=_RELATION, epsilon=1, public_rows=_ROWS, bounds=(0, 1000), step="0.001", expected=times
    )
    return usual_errors(found)["clipped"]


def _answers(blocks: int, shares: np.ndarray) -> np.ndarray:
    """Return quantiles of the mean of a block: that of k exponential numbers follows a gamma law."""
    rows = _ROWS / blocks
    return np.asarray(gammaincinv(rows, shares) * 10 / rows)


def _noise(blocks: int) -> float:
    answers = _answers(blocks, (np.arange(blocks) + 0.5) / blocks)
    query = adaptive.median_query(grid=_GRID, relation=_RELATION, public_rows=blocks)

    def bound(beta: Fraction) -> float:
        return query.smooth_bound(answers, beta).approximate(float(beta)) * float(_GRID.step)

    recipe = adaptive.best_recipe(
        lambda beta: adaptive.polynomial(1, beta=beta), guess=bound, confidence=Fraction(1, 2)
    )
    return recipe.half_width(Fraction(1, 2)) * bound(recipe.beta)


def _bias(blocks: int) -> float:
    """Return how far the median answer is from the mean of all, for many blocks of this size."""
    return abs(float(_answers(blocks, np.array([0.5]))[0]) - 10)
