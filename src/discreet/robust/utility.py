"""What theory expects of noise that follows robust estimates. None of these numbers may set any noise.

They hold for samples from an unknown law, with high probability, or for very many values. Privacy must hold for all
data sets, so they are of a type that no mechanism takes as a parameter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive, positive_integer, probability
from discreet.privacy.notprivate import NotPrivate
from discreet.robust.fits import location_fit
from discreet.robust.functionals import MLocation
from discreet.robust.influence import gross_error_sensitivity
from discreet.robust.psi import Huber, Psi

__all__ = ["Expectation", "asymptotic_noise", "chaudhuri_hsu"]

_HUBER = Huber()


@final
@dataclass(frozen=True, slots=True)
class Expectation:
    """A number that describes what to expect. It is no number in the sense of any mechanism."""

    value: float
    holds: str

    def __str__(self) -> str:
        return f"{self.value:g}, {self.holds}"


def chaudhuri_hsu(*, size: int, eta: Number, beta: Number, influence: Number, diameter: Number) -> Expectation:
    """Return what the smooth sensitivity exceeds with probability `eta` at most, over samples from one law.

    It is max(2 G / n, R exp(-beta (sqrt(n log(2 / eta) / 2) - 1))): G the largest fixed-scale gross error
    sensitivity, at mass 1 / n, of all laws within sqrt(2 log(2 / eta) / n) of it; R the diameter of the estimates.
    The empirical law is that close by the DKW inequality. [CH12]
    """
    n, chance = positive_integer(size, name="size"), float(probability(eta, name="eta"))
    if not 0 < chance < 1:
        raise InvalidParameter("eta must lie strictly between 0 and 1")
    reach = math.sqrt(n * math.log(2 / chance) / 2) - 1
    far = float(positive(diameter, name="diameter")) * math.exp(-float(positive(beta, name="beta")) * reach)
    near = 2 * float(nonnegative(influence, name="influence")) / n
    return Expectation(max(near, far), f"with probability {1 - chance:g} over samples; never a bound for the data")


def asymptotic_noise(
    values: Any, *, epsilon: Number, delta: Number, psi: Psi = _HUBER, scale: Number | None = None
) -> NotPrivate[Expectation]:
    """Return the deviation of the noise that follows the empirical gross error sensitivity g. It is not private.

    It is g 5 sqrt(2 log(n) log(2 / delta)) / (epsilon n). [AM21] That this much noise is private holds for many values
    from a law with conditions that no program can check; for 501 zeros and 500 hundreds it fails completely, and
    moreover the number itself tells about the data. It is here to be compared with mechanisms that can be charged.
    """
    level, chance = float(positive(epsilon, name="epsilon")), float(probability(delta, name="delta"))
    if not 0 < chance < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1")
    spread = location_fit(values, psi=psi, scale=scale).value.scale
    largest = gross_error_sensitivity(MLocation(psi, repr(spread)), values=values).value
    n = len(values)
    noise = largest * 5 * math.sqrt(2 * math.log(n) * math.log(2 / chance)) / (level * n)
    return NotPrivate(Expectation(noise, "if the sample were large and well-behaved; it protects nobody"))
