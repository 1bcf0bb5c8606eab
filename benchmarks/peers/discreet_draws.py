"""Many draws from the law of one of our mechanisms on one data set, which is read and sorted once.

The exponential mechanism is drawn by inverting its table of weights in floats; smooth sensitivity as value + scale * Z,
with Z drawn in floats. In every case this is the law of the release, up to the rounding of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np

from benchmarks.cells import FOLDER, Part
from benchmarks.peers.arrays import Floats, exponential_maximum, values
from discreet import noise
from discreet.adaptive import ProposeTestRelease, SmoothSensitivityMechanism, StableMode
from discreet.adaptive.clipped_mean import _AGREE, _NARROW, ClippedMean
from discreet.adaptive.no_answer import NoAnswer
from discreet.adaptive.smooth_mechanisms import computed_beta, noise_scale
from discreet.adaptive.smooth_noise_laws import GaussianLaw, LaplaceLaw, PolynomialLaw, StudentLaw
from discreet.adaptive.stability import mode_distance
from discreet.balls import precision
from discreet.mechanisms import Mean, Quantile
from discreet.mechanisms.additive_noise import LaplaceNoise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.order_statistics import Ranked
from discreet.mechanisms.quantile import QuantileAmong
from discreet.robust.refined_regression import RefinedRegression
from discreet.robust.regression_design import RegressionColumns
from discreet.statistics.rank_methods import permute_and_flip_chances
from discreet.statistics.regressions import Regression

__all__ = ["draw", "fits", "quantile_points", "stable"]

GENERATOR = np.random.default_rng()
_NODES = 1000  # Of an integral: right to far less than runs can tell.


@lru_cache(2)
def ranked(file: str, grid: Grid) -> Ranked:
    """Sort the values of a file once, on the grid."""
    return Ranked.of(np.sort(grid.indices(np.fromfile(FOLDER / file))) * float(grid.step), grid)


@lru_cache(2)
def steps(file: str, grid: Grid) -> Floats:
    """Return the sorted values of a file in grid steps."""
    return np.sort(grid.indices(np.fromfile(FOLDER / file))).astype(float)


@singledispatch
def draw(mechanism: Any, part: Part) -> Floats:
    """Return as many answers as the part has runs, in units of the data."""
    raise TypeError(f"no law is known for {type(mechanism).__name__}")


@draw.register
def _(mechanism: Quantile, part: Part) -> Floats:
    cut = pieces(part.file, replace(mechanism, epsilon=Fraction(1)))
    return np.asarray(quantile_points(mechanism, cut, part.runs) * float(mechanism.grid.step))


def quantile_points(mechanism: Quantile, cut: Any, runs: int) -> Floats:
    """Draw chosen points, in steps, from the pieces that the grid is cut into."""
    starts, lengths, scores = cut
    coins = np.exp(float(mechanism.factor) * (scores - scores.max()))
    likely = coins * lengths > 1e-15
    starts, lengths, coins = starts[likely], lengths[likely], coins[likely]
    weights = permute_and_flip_chances(coins, lengths, _NODES) if mechanism.flips else lengths * coins
    cumulated = np.cumsum(weights)
    chosen = np.searchsorted(cumulated, GENERATOR.random(runs) * cumulated[-1])
    chosen = np.minimum(chosen, len(weights) - 1)
    return np.asarray(starts[chosen] + np.floor(GENERATOR.random(runs) * lengths[chosen]))


@lru_cache(2)
def pieces(file: str, mechanism: Quantile) -> Any:
    """Cut the grid once for all epsilons."""
    return mechanism.pieces(np.fromfile(FOLDER / file))


@draw.register
def _(mechanism: QuantileAmong, part: Part) -> Floats:
    scores = mechanism.scores(ranked(part.file, mechanism.grid)).astype(float)
    chosen = exponential_maximum(scores, 1 / float(mechanism.chooser.factor), part.runs, GENERATOR)
    return np.asarray(np.array(mechanism.candidates)[chosen.astype(int)] * float(mechanism.grid.step))


@draw.register
def _(mechanism: SmoothSensitivityMechanism, part: Part) -> Floats:
    query, recipe = mechanism.query, mechanism.recipe
    sample = ranked(part.file, query.grid)
    bound = query.smooth_bound(sample, computed_beta(query, recipe))
    with precision(96):
        scale = float(noise_scale(query, recipe, bound).mid())
    drawn = float(query.value(sample)) + scale * unit_noise(recipe.law, part.runs)
    return np.asarray(np.rint(drawn) * float(query.grid.step))


@singledispatch
def unit_noise(law: Any, count: int) -> Floats:
    """Draw from a law of the noise, in floats."""
    raise TypeError(f"no generator is known for {type(law).__name__}")


@unit_noise.register
def _(law: PolynomialLaw, count: int) -> Floats:
    """P(|Z| > z) = (1 + z)^(1 - a)."""
    size = GENERATOR.random(count) ** (-1 / (float(law.exponent) - 1)) - 1
    return np.asarray(size * GENERATOR.choice([-1.0, 1.0], count))


@unit_noise.register
def _(law: StudentLaw, count: int) -> Floats:
    return GENERATOR.standard_t(float(law.degrees), count)


@unit_noise.register
def _(law: LaplaceLaw, count: int) -> Floats:
    return GENERATOR.laplace(size=count)


@unit_noise.register
def _(law: GaussianLaw, count: int) -> Floats:
    return GENERATOR.normal(size=count)


@draw.register
def _(mechanism: ProposeTestRelease, part: Part) -> Floats:
    within: Any = mechanism.mechanism
    query = within.query
    data = ranked(part.file, query.grid).numbers
    with precision(64):
        chance = float(mechanism.test.chance(mechanism.distance(data)))
    drawn = query.value(data) + noise.discrete_laplace(query.bound / within.epsilon, size=part.runs)
    passed = GENERATOR.random(part.runs) < chance
    return np.where(passed, drawn * float(query.grid.step) / within.terms, np.nan)


@draw.register
def _(mechanism: Mean, part: Part) -> Floats:
    """The mean of a public number of values."""
    assert isinstance(mechanism.noise, LaplaceNoise)
    grid = mechanism.grid
    drawn = noise.discrete_laplace(grid.width / mechanism.noise.epsilon, size=part.runs)
    return np.asarray((steps(part.file, grid).sum() + drawn) * float(grid.step) / part.size)


@draw.register
def _(mechanism: ClippedMean, part: Part) -> Floats:
    """A centre, a radius, and the mean of what is clamped between them; all from sorted values and running sums."""
    grid, ordered = mechanism.grid, steps(part.file, mechanism.grid)
    centres = np.rint(draw(mechanism.centre, part) / float(grid.step))
    radii = np.array(mechanism.radii, dtype=float)
    inside = np.searchsorted(ordered, centres[:, None] + radii, "right") - np.searchsorted(
        ordered, centres[:, None] - radii, "left"
    )
    scores = (inside - part.size) * float(mechanism._factor) - np.array(mechanism._nats, dtype=float)
    chosen = radii[(scores + GENERATOR.gumbel(size=scores.shape)).argmax(axis=1)]
    low, high = np.maximum(grid.first, centres - chosen), np.minimum(grid.last, centres + chosen)
    return np.asarray(_checked(mechanism, ordered, low, high) * float(grid.step) / part.size)


def _checked(mechanism: ClippedMean, ordered: Floats, low: Floats, high: Floats) -> Floats:
    """Draw noisy sums within each pair of bounds; that of the whole grid where a check says that rows are lost."""
    assert isinstance(mechanism.noise, LaplaceNoise)
    epsilon, share = float(mechanism.noise.epsilon), float(mechanism.check_share)
    narrow = (share > 0) & ((high - low) * _NARROW <= mechanism.grid.width)
    drawn = GENERATOR.laplace(size=low.size) * (high - low) / (epsilon * np.where(narrow, 1 - share, 1.0))
    found = _clamped_sums(ordered, low, high) + drawn
    if not narrow.any():
        return np.asarray(found)
    scale = mechanism.grid.width / (epsilon * share)
    check = ordered.sum() + GENERATOR.laplace(size=low.size) * scale
    return np.where(narrow & (np.abs(found - check) > scale * -np.log(1 - float(_AGREE))), check, found)


def _clamped_sums(ordered: Floats, low: Floats, high: Floats) -> Floats:
    """Return the sum of all values clamped to each pair of bounds."""
    running = np.concatenate([[0.0], np.cumsum(ordered)])
    below, upto = np.searchsorted(ordered, low, "left"), np.searchsorted(ordered, high, "right")
    return np.asarray(below * low + running[upto] - running[below] + (len(ordered) - upto) * high)


def stable(mechanism: StableMode, counts: Floats, runs: int) -> Floats:
    """Draw the stable mode: the winner if the noisy distance passes, else not a number."""
    test = mechanism.test
    distance = mode_distance([int(count) for count in counts], mechanism.relation)
    noisy = distance + noise.discrete_laplace(1 / test.epsilon, size=runs)
    return np.where(noisy > test.threshold, float(counts.argmax()), np.nan)


def fits(mechanism: Regression, part: Part) -> Callable[[], Floats]:
    """Return a call that fits, and returns the slopes with the intercept last."""
    if isinstance(mechanism, RefinedRegression):
        rows = placed(part.file, part.columns, mechanism)

        def fit() -> Floats:
            first, *slopes = mechanism._fit(rows)[-1]
            return np.array([*slopes, first])

        return fit
    records = RegressionColumns(list(values(part).T))

    def release() -> Floats:
        value: Any = mechanism.release(records).value
        if isinstance(value, NoAnswer):
            return np.full(part.columns, np.nan)
        first, *slopes = value
        return np.array([*slopes, first], dtype=float)

    return release


@lru_cache(1)
def _placed(file: str, columns: int, design: Any) -> Any:
    return design.rows(RegressionColumns(list(np.fromfile(FOLDER / file).reshape(-1, columns).T)))


def placed(file: str, columns: int, mechanism: RefinedRegression) -> Any:
    """Put the records of a file into the public frame once."""
    return _placed(file, columns, mechanism.design)
