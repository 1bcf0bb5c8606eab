"""Coefficients of a private fit as they are released, and what they predict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.release import Accuracy, Interval, NoInterval, Release
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.robust import functionals
from discreet.robust.regression_design import Design, Integers

__all__ = [
    "DROWNED",
    "NOT_ASKED",
    "NO_INTERVAL",
    "EstimateAccuracy",
    "accuracy_of",
    "check_rows",
    "coefficients_release",
    "labels",
    "predict",
]

NO_INTERVAL = NoInterval(
    reason="how noise on the moments moves the coefficients depends on the data: no interval follows from public "
    "facts. A part of the budget pays for one: inference_share, inference=True, or `robust.regression`"
)


class Regression(Protocol):
    """What a fit says about itself."""

    @property
    def design(self) -> Design: ...

    @property
    def relation(self) -> Relation: ...

    @property
    def noise(self) -> GaussianNoise: ...

    @property
    def event(self) -> Event: ...


def coefficients_release(
    mechanism: Regression, fit: Sequence[float], accuracy: Accuracy = NO_INTERVAL
) -> Release[tuple[Fraction, ...]]:
    """Release a fit within the frame in the units of the data."""
    return Release(
        value=mechanism.design.original(fit),
        event=mechanism.event,
        relation=mechanism.relation,
        accuracy=accuracy,
        labels=labels(mechanism.design),
        delta=mechanism.noise.delta,
    )


def labels(design: Design) -> tuple[str, ...]:
    """Return the public names of the coefficients."""
    return "intercept", *(f"x{number}" for number in range(1, design.dimension))


def check_rows(rows: Integers, size: int | None) -> None:
    """Refuse data whose length is not the one that was declared public."""
    if size is not None and len(rows) != size:
        raise InvalidParameter("the data do not have the declared number of rows")


def predict(coefficients: Sequence[Number], features: Any) -> NDArray[np.float64]:
    """Return what released coefficients, the intercept first, predict for a table of features."""
    first, *slopes = (float(exact(value, name="a coefficient")) for value in coefficients)
    table = np.asarray(features.to_numpy() if hasattr(features, "to_numpy") else features, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(slopes):
        raise InvalidParameter("features must be a table with a column for each slope")
    found: NDArray[np.float64] = first + table @ np.array(slopes)
    return found


# --- accuracy: How far an estimate may be from what it estimates: sampling and noise together. ---


NOT_ASKED = NoInterval(reason="no budget was kept for the error of the estimate: say inference=True for an interval")
DROWNED = NoInterval(
    reason="the noise hides how steep the scores are, so no interval can be told: use more rows or a larger budget"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateAccuracy:
    """An interval for what the rows were sampled from, not for the exact estimate of the data at hand.

    Its standard error was itself released with noise and paid for, so it may be told. The interval covers as often as
    it says for many rows.
    """

    standard_error: float  # of sampling and of the noise
    shift: float = 0.0  # from the estimate to the middle of the interval, where the estimate was shrunk

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        reach = Fraction(functionals.quantile((1 + float(confidence)) / 2) * self.standard_error)
        middle = value + Fraction(self.shift)
        return middle - reach, middle + reach


def accuracy_of(standard_error: float, shift: float = 0.0) -> Accuracy:
    """Return the accuracy of an estimate, or that none can be told."""
    if not math.isfinite(standard_error) or not math.isfinite(shift):
        return DROWNED
    return EstimateAccuracy(standard_error=standard_error, shift=shift)
