"""diffprivlib on the cells of the accuracy table.

Claims and why they are admitted:
median, quantile   exponential mechanism over the gaps of the sorted values, sensitivity 1: holds under both relations
                   (under add-remove it could be tighter). Drawn from the table of probabilities that the peer's own
                   mechanism prepares, then uniform in the gap, as the peer does; then rounded to the public grid.
mean               Laplace noise of (upper - lower) / n, moved into the bounds: replace-one, n public.
mode               permute-and-flip on counts, monotone, sensitivity 1: add-remove. Drawn as noisy maximum with
                   exponential noise, which is the same law.
regression         functional mechanism. With an intercept it spends (d + 2) / (d + 1) of what it claims, and its
                   squared features are taken as bounded by the lower bound alone; so it is asked without an
                   intercept, with a constant column and all bounds [-1, 1], where its claim holds under both
                   relations. It sees the data through their Gram matrix only, and is given a small table with the
                   same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from diffprivlib import BudgetAccountant, mechanisms, models  # type: ignore[import-not-found]

from benchmarks.cells import QUANTILES, REPLACE_ONE, Part, read_parts
from benchmarks.peers.arrays import exponential_maximum, gram_root, on_grid, values
from benchmarks.peers.protocol import answers, within

GENERATOR = np.random.default_rng()
SLOW = 0.3  # seconds for a regression cell


def quantile(part: Part) -> np.ndarray:
    """Draw from the law of `tools.quantile`."""
    low, high = float(part.low), float(part.high)
    ordered = np.sort(np.concatenate([np.clip(values(part), low, high), [low, high]]))
    count, q = len(ordered) - 2, float(QUANTILES[part.task])
    # Gaps farther away than this from the wanted rank have a chance below e^-80, and lists of Python floats are slow.
    reach = int(np.ceil(2 / float(part.epsilon) * 120)) + 2
    first, last = max(0, int(q * count) - reach), min(count, int(q * count) + reach)
    sizes = np.diff(ordered)[first : last + 1]
    mechanism = mechanisms.Exponential(
        epsilon=float(part.epsilon),
        sensitivity=1,
        utility=list(-np.abs(np.arange(first, last + 1) - q * count)),
        measure=list(sizes),
    )
    chosen = first + np.searchsorted(mechanism._probabilities, GENERATOR.random(part.runs))
    chosen = np.minimum(chosen, last)
    return on_grid(part, ordered[chosen] + GENERATOR.random(part.runs) * (ordered[chosen + 1] - ordered[chosen]))


def mean(part: Part) -> np.ndarray:
    """Ask the mechanism of `tools.mean`, made once."""
    low, high = float(part.low), float(part.high)
    mechanism = mechanisms.LaplaceTruncated(
        epsilon=float(part.epsilon), delta=0, sensitivity=(high - low) / part.size, lower=low, upper=high
    )
    exact = float(np.clip(values(part), low, high).mean())
    return np.array([mechanism.randomise(exact) for _ in range(part.runs)])


def mode(part: Part) -> np.ndarray:
    """Draw from the law of `PermuteAndFlip`."""
    return exponential_maximum(values(part), 1 / float(part.epsilon), part.runs, GENERATOR)


def regression(part: Part) -> np.ndarray:
    """Fit as long as there is time."""
    root = gram_root(part)
    bounds = {"bounds_X": (-1.0, 1.0), "bounds_y": (-1.0, 1.0)}

    def fit() -> Any:
        model = models.LinearRegression(
            epsilon=float(part.epsilon), fit_intercept=False, accountant=BudgetAccountant(), **bounds
        )
        return model.fit(root[:, :-1], root[:, -1]).coef_

    return np.concatenate(within(SLOW, part, fit))


METHODS: dict[str, tuple[Callable[[Part], np.ndarray], str]] = {
    **dict.fromkeys(QUANTILES, (quantile, "tools.quantile")),
    "mean": (mean, "tools.mean"),
    "mode": (mode, "PermuteAndFlip"),
    "regression": (regression, "LinearRegression"),
}


def admitted() -> Iterator[Part]:
    """Name the cells in which the claim holds."""
    for part in read_parts(*METHODS):
        if part.task != "mean" or part.relation == REPLACE_ONE:
            yield part


def main() -> None:
    """Answer every cell."""
    for part in admitted():
        ask, how = METHODS[part.task]
        answers(part, how, ask(part), subject="diffprivlib")


if __name__ == "__main__":
    main()
