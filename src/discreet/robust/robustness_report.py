"""Privacy and robustness side by side, for the data at hand.

A robust estimate hardly moves when one row does, so little noise hides that row; and what hides one row bounds what
it can do. [DL09] The report is for the custodian: it is made from the data themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact_or_none, integer, positive
from discreet.mechanisms.grid import Grid
from discreet.privacy.notprivate import NotPrivate
from discreet.robust.corruption import CorruptedSample, Kind, estimate, is_monotone, worst_sample
from discreet.robust.functionals import (
    Functional,
    HodgesLehmann,
    Mean,
    MedianAbsoluteDeviation,
    MLocation,
    TrimmedMean,
    WinsorisedMean,
)
from discreet.robust.influence import as_functional, breakdown_point, influence_function
from discreet.robust.private_versions import PrivateVersion, private_version
from discreet.robust.psi import Floats, Psi, Quantile
from discreet.robust.robustness import Effect, EstimateStanding, RobustnessReport
from discreet.robust.samples import read_sample

__all__ = ["robustness_report"]

_MEDIAN = Quantile()
_PERCENT = (1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)  # Of bad rows, by default, rounded up.
_SEARCHED = 129  # Points at which an influence that rises and falls is looked at.
_KINDS: tuple[Kind, Kind] = ("corrupted", "mislabelled")


def robustness_report(
    values: Any,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    delta: Number | None = None,
    estimator: Functional | Psi = _MEDIAN,
    others: Any = None,
    rows: Sequence[int] | None = None,
    step: Number | None = None,
) -> NotPrivate[RobustnessReport]:
    """Compare the mean, a robust estimator (by default the median) and its private version on given data.

    Values are clamped to the bounds. Corrupted rows have any other value within them. Mislabelled rows are missing, as
    they were taken for those of another label; if the values of that label are named as `others`, the two labels
    exchange rows. `rows` are the numbers of bad rows to look at. The private version is that for epsilon (and delta)
    under replace-one.

    For estimates that never fall when a value rises (mean, quantiles, trimmed means, Huber with a fixed scale) the
    effects are exact. For others (Tukey, a scale that comes from the data) they are the worst that a search found.
    """
    grid = Grid.between(*bounds, step=step)
    functional, trouble = as_functional(estimator), _read(values, others, grid)
    budget, chance = positive(epsilon, name="epsilon"), exact_or_none(delta, name="delta")
    private = private_version(functional, grid=grid, epsilon=budget, delta=chance)
    counts = _read_rows(rows, trouble.sample.size)
    report = RobustnessReport(
        size=trouble.sample.size,
        bounds=trouble.bounds,
        budget=f"ε = {float(budget):g}" + ("" if chance is None else f", δ = {float(chance):g}"),
        plain=_standing(Mean(), trouble),
        robust=_standing(functional, trouble),
        private=None if private is None else private.name,
        exchanged=others is not None,
        effects=tuple(_effects(functional, private, trouble, counts)),
    )
    return NotPrivate(report)


def _read(values: Any, others: Any, grid: Grid) -> CorruptedSample:
    bounds = float(grid.low), float(grid.high)
    known = None if others is None else np.sort(read_sample(others).clip(*bounds))
    return CorruptedSample(np.sort(read_sample(values).clip(*bounds)), bounds, known)


def _read_rows(rows: Sequence[int] | None, size: int) -> list[int]:
    if rows is None:
        return sorted({0, 1, *(-(-size * percent // 100) for percent in _PERCENT)})
    named = {integer(count, name="a number of bad rows") for count in rows}
    if not named or min(named) < 0 or max(named) > size:
        raise InvalidParameter("rows must name numbers of bad rows, from 0 to the number of rows")
    return sorted(named | {0})


def _standing(functional: Functional, trouble: CorruptedSample) -> EstimateStanding:
    before = estimate(functional, trouble.sample)
    moved = estimate(functional, worst_sample(functional, trouble, "corrupted", 1))
    return EstimateStanding(
        name=_name(functional),
        estimate=before,
        local_sensitivity=abs(moved - before),
        gross_error_sensitivity=_largest_influence(functional, trouble),
        breakdown=breakdown_point(functional),
        exact=is_monotone(functional),
    )


def _largest_influence(functional: Functional, trouble: CorruptedSample) -> float:
    """Return the largest influence of a point within the bounds; where it rises throughout, that of a bound."""
    points = np.linspace(*trouble.bounds, 2 if is_monotone(functional) else _SEARCHED)
    return float(np.abs(influence_function(functional, points, values=trouble.sample).value).max())


def _effects(
    functional: Functional, private: PrivateVersion | None, trouble: CorruptedSample, counts: list[int]
) -> Iterator[Effect]:
    before, mean = estimate(functional, trouble.sample), float(trouble.sample.mean())
    for kind in _KINDS:
        for count in (count for count in counts if count <= trouble.most(kind)):
            worst = worst_sample(functional, trouble, kind, count)
            yield Effect(
                kind=kind,
                rows=count,
                plain=abs(float(worst_sample(Mean(), trouble, kind, count).mean()) - mean),
                robust=abs(estimate(functional, worst) - before),
                private=None if private is None else _private_error(private, trouble.sample, worst),
            )


def _private_error(private: PrivateVersion, sample: Floats, worst: Floats) -> float:
    return abs(private.centre(worst) - private.centre(sample)) + private.spread(worst)


def _name(functional: Functional) -> str:
    """Name an estimator as people do."""
    match functional:
        case Mean():
            return "mean"
        case TrimmedMean() | WinsorisedMean():
            kind = "trimmed" if isinstance(functional, TrimmedMean) else "Winsorised"
            return f"{float(functional.share):.3g}-{kind} mean"
        case HodgesLehmann():
            return "Hodges–Lehmann"
        case MedianAbsoluteDeviation():
            return "median deviation"
        case MLocation(psi=Quantile() as psi):
            return "median" if psi.q * 2 == 1 else f"{float(psi.q):.3g}-quantile"
        case MLocation():
            return type(functional.psi).__name__
        case _:
            return type(functional).__name__
