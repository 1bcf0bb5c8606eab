"""The exact profile of k equal (epsilon, delta) guarantees. [KOV15]"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.balls import ball
from discreet.exact import up
from discreet.privacy.curves import ClosedFormCurve, Edge
from discreet.privacy.enclosures import enclose

if TYPE_CHECKING:
    from flint import arb

__all__ = ["LONGEST", "Homogeneous"]

LONGEST = 20_000  # Repetitions; the sums have half as many terms.
_LARGEST_EDGE = 1 << 16  # Bits of an exact power.


@final
@dataclass(frozen=True, slots=True)
class Homogeneous:
    """`times` repetitions of an (epsilon, delta) guarantee, fixed in advance.

    Theorem     The worst pair reveals all with chance 1 - (1 - delta)^k; otherwise l of k answers of a binary
                randomized response are flipped, with the loss (k - 2l) epsilon. Where i answers flipped still
                have a loss above x, and i + 1 do not, the profile is A_i - e^x B_i, with A_i and B_i the
                chances of at most i flips under the two sides. [KOV15]
    """

    epsilon: Fraction
    delta: Fraction
    times: int
    _tails: dict[int, list[tuple[arb, arb]]] = field(default_factory=dict, repr=False, compare=False)

    def curve(self) -> ClosedFormCurve:
        """Return the privacy curve, which is exact."""
        total = self.times * self.epsilon
        return ClosedFormCurve(self.profile, lambda _: up(total), self._edge(total))

    def _edge(self, total: Fraction) -> Edge | None:
        if self.delta and self.times * self.delta.denominator.bit_length() > _LARGEST_EDGE:
            return None
        return Edge(total, total, 1 - (1 - self.delta) ** self.times)

    def profile(self, epsilon: Fraction) -> arb:
        """Enclose delta(epsilon) of all repetitions together."""
        return enclose(lambda: self._profile(epsilon))

    def _profile(self, epsilon: Fraction) -> arb:
        kept = ball(1 - self.delta) ** self.times
        last = self._last_flips(epsilon)
        if last < 0:
            return 1 - kept if self.delta else ball(0)
        first, second = self._both_tails()[last]
        return 1 - kept * (1 - first + ball(epsilon).exp() * second)

    def _last_flips(self, epsilon: Fraction) -> int:
        """Return the largest l with (k - 2l) E > epsilon, -1 if there is none."""
        if self.epsilon == 0:
            return -1
        return math.ceil((self.times - epsilon / self.epsilon) / 2) - 1

    def _both_tails(self) -> list[tuple[arb, arb]]:
        """List P[at most l flips] under both sides, for the losses above zero, at the working precision."""
        from flint import ctx

        if ctx.prec not in self._tails:
            self._tails[ctx.prec] = self._sums()
        return self._tails[ctx.prec]

    def _sums(self) -> list[tuple[arb, arb]]:
        level, k = ball(self.epsilon), self.times
        keep, flip = (-(-level).exp().log1p()), -level.exp().log1p()
        odds, against = (-level).exp(), level.exp()
        first, second = (k * keep).exp(), (k * flip).exp()
        sums = [(first, second)]
        for flips in range(1, (k + 1) // 2):
            first, second = (
                first * odds * (k - flips + 1) / flips,
                second * against * (k - flips + 1) / flips,
            )
            sums.append((sums[-1][0] + first, sums[-1][1] + second))
        return sums
