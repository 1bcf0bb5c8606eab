"""Draw noise of a private scale, rounded to a public grid exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch
from typing import TYPE_CHECKING

from discreet.adaptive.log_normal import LaplaceLogNormalLaw
from discreet.adaptive.real_laws import AdmissibleLaw, LaplaceLaw
from discreet.balls import ball
from discreet.noise.ideal import Scale, round_ideal
from discreet.noise.lazy import extend, revealed

if TYPE_CHECKING:
    from flint import arb

__all__ = ["draw"]


@singledispatch
def draw(law: AdmissibleLaw, *, centre: Fraction, scale: Scale) -> int:
    """Return the whole number nearest to centre + scale * Z."""
    return round_ideal(law, centre=centre, scale=scale, step=Fraction(1))


@draw.register(LaplaceLogNormalLaw)
def _(law: LaplaceLogNormalLaw, *, centre: Fraction, scale: Scale) -> int:
    """Draw Laplace noise whose scale has a hidden normal factor, revealed as far as it is asked for."""
    hidden = _HiddenNormal()

    def widened(bits: int) -> arb:
        return scale(bits) * (ball(law.sigma) * hidden.enclose(bits)).exp()

    return round_ideal(LaplaceLaw(), centre=centre, scale=widened, step=Fraction(1))


class _HiddenNormal:
    """A standard normal number, known by the first bits of its probability."""

    __slots__ = ("_bits", "_prefix")

    def __init__(self) -> None:
        self._prefix, self._bits = revealed()

    def enclose(self, bits: int) -> arb:
        while self._bits < bits:
            self._prefix, self._bits = extend(self._prefix, self._bits)
        low = _normal_quantile(Fraction(self._prefix, 1 << self._bits))
        high = _normal_quantile(Fraction(self._prefix + 1, 1 << self._bits))
        return low.union(high)


def _normal_quantile(chance: Fraction) -> arb:
    """Enclose the normal quantile, accurately in both tails."""
    from flint import arb

    if chance > Fraction(1, 2):
        return -_normal_quantile(1 - chance)
    return -arb(2).sqrt() * ball(2 * chance).erfcinv()
