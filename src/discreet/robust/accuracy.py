"""How far an estimate may be from what it estimates: sampling and noise together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.mechanisms.accuracy import Accuracy, Interval, NoInterval
from discreet.robust import normal_model

__all__ = ["DROWNED", "NOT_ASKED", "EstimateAccuracy", "accuracy_of"]

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
        reach = Fraction(normal_model.quantile((1 + float(confidence)) / 2) * self.standard_error)
        middle = value + Fraction(self.shift)
        return middle - reach, middle + reach


def accuracy_of(standard_error: float, shift: float = 0.0) -> Accuracy:
    """Return the accuracy of an estimate, or that none can be told."""
    if not math.isfinite(standard_error) or not math.isfinite(shift):
        return DROWNED
    return EstimateAccuracy(standard_error=standard_error, shift=shift)
