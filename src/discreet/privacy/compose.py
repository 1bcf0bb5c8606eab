"""Composition theorems for guarantees of which only epsilon and delta are known.

For anything better known, `discreet.privacy.epsilon` of a `Composed` or `Repeated` event is tighter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive_integer, up
from discreet.formatting import record
from discreet.privacy.convert import read_delta
from discreet.privacy.curves import ClosedFormCurve, Edge
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.events import ApproxDP, PureDP
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["advanced", "basic", "optimal", "optimal_delta", "parallel"]

# --- homogeneous: The exact profile of k equal (epsilon, delta) guarantees. [KOV15] ---


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

    Args:
        epsilon: Of each part.
        delta: Of each part.
        times: How many parts, at most `LONGEST`.

    Examples:
        >>> from fractions import Fraction
        >>> parts = dp.privacy.compose.Homogeneous(Fraction(1), Fraction(0), 2)
        >>> parts.curve().upper(Fraction(0))
        2.0
    """

    epsilon: Fraction
    delta: Fraction
    times: int
    _tails: dict[int, list[tuple[arb, arb]]] = field(default_factory=dict, repr=False, compare=False)

    __repr__ = record

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


Guarantee: TypeAlias = PureDP | ApproxDP


def basic(parts: Iterable[Guarantee]) -> ApproxDP:
    """Basic composition: add up epsilons and deltas, exactly; also right for adaptively chosen parts. [DKMMN06]

    Args:
        parts: Guarantees, `PureDP` or `ApproxDP`, at least one.

    Returns:
        The guarantee of all parts together (basic composition).

    Raises:
        InvalidParameter: If a part is something else, or there is none.

    Examples:
        >>> dp.privacy.compose.basic([dp.privacy.PureDP(1), dp.privacy.PureDP(2)]).epsilon
        Fraction(3, 1)
    """
    listed = _read(parts)
    total = sum((part.delta for part in listed), Fraction(0))
    return ApproxDP(sum((part.epsilon for part in listed), Fraction(0)), min(total, Fraction(1)))


def advanced(epsilon: Number, delta: Number, times: int, slack: Number) -> tuple[float, float]:
    """Advanced composition: (e sqrt(2 k log(1/s)) + k e (e^e - 1), k delta + s), k repetitions, slack s. [DRV10]

    Args:
        epsilon: Of each part.
        delta: Of each part.
        times: How many parts.
        slack: The delta that is given for a smaller epsilon, above 0.

    Returns:
        Epsilon and delta of all parts together (advanced composition), rounded up.

    Raises:
        InvalidParameter: If the slack is not above 0 and below 1.

    Examples:
        >>> epsilon, delta = dp.privacy.compose.advanced(0.1, 0, 100, 1e-6)
        >>> round(epsilon, 2), delta
        (6.31, 1.0000000000000002e-06)
    """
    part, count, spare = ApproxDP(epsilon, delta), positive_integer(times, name="times"), read_delta(slack)
    if spare == 0:
        raise InvalidParameter("slack must be above 0")

    def formula() -> arb:
        level = ball(part.epsilon)
        return level * (-2 * count * ball(spare).log()).sqrt() + count * level * level.expm1()

    total = float_up(enclose(formula)) if part.epsilon else 0.0
    return total, min(1.0, up(count * part.delta + spare))


def optimal(epsilon: Number, delta: Number, times: int, target_delta: Number) -> float:
    """Optimal composition: the least epsilon at `target_delta` of k repetitions of (epsilon, delta). [KOV15]

    The formula is for equal parts, fixed in advance.

    Args:
        epsilon: Of each part.
        delta: Of each part.
        times: How many parts, at most 20,000.
        target_delta: The delta at which the total is wanted.

    Returns:
        The total epsilon (optimal composition), rounded up.

    Raises:
        InvalidParameter: If there are too many parts.

    Examples:
        >>> round(dp.privacy.compose.optimal(0.1, 0, 100, 1e-6), 2)
        4.77
    """
    return _homogeneous(epsilon, delta, times).curve().upper(read_delta(target_delta))


def optimal_delta(epsilon: Number, delta: Number, times: int, target_epsilon: Number) -> float:
    """Optimal composition: the least delta at `target_epsilon` of k repetitions of (epsilon, delta). [KOV15]

    Args:
        epsilon: Of each part.
        delta: Of each part.
        times: How many parts, at most 20,000.
        target_epsilon: The epsilon at which the total is wanted.

    Returns:
        The total delta (optimal composition), rounded up.

    Raises:
        InvalidParameter: If there are too many parts.

    Examples:
        >>> dp.privacy.compose.optimal_delta(0.1, 0, 100, 5) < 1e-6
        True
    """
    return _homogeneous(epsilon, delta, times).curve().delta(nonnegative(target_epsilon, name="target_epsilon"))


def _homogeneous(epsilon: Number, delta: Number, times: int) -> Homogeneous:
    part, count = ApproxDP(epsilon, delta), positive_integer(times, name="times")
    if count > LONGEST:
        raise InvalidParameter(f"times must be at most {LONGEST} here; use privacy.epsilon(Repeated(…)) for more")
    return Homogeneous(part.epsilon, part.delta, count)


def parallel(parts: Iterable[Guarantee], relation: Relation | str) -> ApproxDP:
    """Parallel composition: guarantees on the cells of a partition by each unit's own value.

    Under ADD_REMOVE a unit touches one cell: the maximum. Under REPLACE_ONE it may leave one cell and enter
    another: the two largest add up.

    Args:
        parts: The guarantee of each cell, `PureDP` or `ApproxDP`.
        relation: The neighbouring relation.

    Returns:
        The guarantee of all cells together (parallel composition).

    Raises:
        InvalidParameter: If a part is something else, or there is none.

    Examples:
        >>> cells = [dp.privacy.PureDP(1), dp.privacy.PureDP(2)]
        >>> dp.privacy.compose.parallel(cells, dp.Relation.ADD_REMOVE).epsilon
        Fraction(2, 1)
    """
    relation = read_relation(relation)
    listed = _read(parts)
    if not isinstance(relation, Relation):
        raise InvalidParameter("relation must be Relation.ADD_REMOVE or Relation.REPLACE_ONE")
    touched = 1 if relation is Relation.ADD_REMOVE else 2
    epsilons = sorted((part.epsilon for part in listed), reverse=True)[:touched]
    deltas = sorted((part.delta for part in listed), reverse=True)[:touched]
    return ApproxDP(sum(epsilons, Fraction(0)), min(sum(deltas, Fraction(0)), Fraction(1)))


def _read(parts: Iterable[Guarantee]) -> list[ApproxDP]:
    try:
        listed = list(parts)
    except TypeError:
        raise InvalidParameter("parts must be a sequence of PureDP or ApproxDP") from None
    if not listed or not all(isinstance(part, (PureDP, ApproxDP)) for part in listed):
        raise InvalidParameter("parts must be at least one PureDP or ApproxDP")
    return [ApproxDP(part.epsilon, part.delta if isinstance(part, ApproxDP) else 0) for part in listed]
