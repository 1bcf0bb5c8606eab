"""What a mechanism is predicted to be worth, from public facts only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.noise.laws import Law
from discreet.statistics.expected import Floats

__all__ = ["TYPICAL", "WIDE", "Predicted", "noise_errors", "of_weights", "with_bias"]

TYPICAL, WIDE = Fraction(1, 2), Fraction(95, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """How far an answer is from the exact one, if the data are as expected."""

    typical: float  # exceeded half of the time
    wide: float  # exceeded once in twenty
    declines: float = 0.0  # how often there is no answer

    def shrunk(self, factor: float) -> Predicted:
        return Predicted(typical=self.typical / factor, wide=self.wide / factor, declines=self.declines)


def noise_errors(law: Law, step: float) -> Predicted:
    """Predict for noise of a public law, in grid steps."""
    return Predicted(typical=law.half_width(TYPICAL) * step, wide=law.half_width(WIDE) * step)


def with_bias(noise: Predicted, bias: float) -> Predicted:
    """Add what is wrong even without noise; near enough to decide between mechanisms."""
    return Predicted(
        typical=float(np.hypot(noise.typical, bias)), wide=float(np.hypot(noise.wide, bias)), declines=noise.declines
    )


def of_weights(errors: Floats, weights: Floats) -> Predicted:
    """Predict from errors and how often each happens."""
    order = np.argsort(errors)
    chances = np.cumsum(weights[order]) / weights.sum()
    places: NDArray[np.int64] = np.searchsorted(chances, [float(TYPICAL), float(WIDE)])
    typical, wide = errors[order][np.minimum(places, errors.size - 1)]
    return Predicted(typical=float(typical), wide=float(wide))
