"""Composition theorems for guarantees of which only epsilon and delta are known.

For anything better known, `discreet.privacy.epsilon` of a `Composed` or `Repeated` event is tighter.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive_integer, up
from discreet.privacy.convert import read_delta
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.events import ApproxDP, PureDP
from discreet.privacy.homogeneous import LONGEST, Homogeneous
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = ["advanced", "basic", "optimal", "optimal_delta", "parallel"]

Guarantee: TypeAlias = PureDP | ApproxDP


def basic(parts: Iterable[Guarantee]) -> ApproxDP:
    """Add up epsilons and deltas, exactly; also right when each part is chosen after the ones before. [DKMMN06]"""
    listed = _read(parts)
    total = sum((part.delta for part in listed), Fraction(0))
    return ApproxDP(sum((part.epsilon for part in listed), Fraction(0)), min(total, Fraction(1)))


def advanced(epsilon: Number, delta: Number, times: int, slack: Number) -> tuple[float, float]:
    """Return (e sqrt(2 k log(1/s)) + k e (e^e - 1), k delta + s) for k repetitions and a slack s. [DRV10]"""
    part, count, spare = ApproxDP(epsilon, delta), positive_integer(times, name="times"), read_delta(slack)
    if spare == 0:
        raise InvalidParameter("slack must be above 0")

    def formula() -> arb:
        level = ball(part.epsilon)
        return level * (-2 * count * ball(spare).log()).sqrt() + count * level * level.expm1()

    total = float_up(enclose(formula)) if part.epsilon else 0.0
    return total, min(1.0, up(count * part.delta + spare))


def optimal(epsilon: Number, delta: Number, times: int, target_delta: Number) -> float:
    """Return the least epsilon at `target_delta` of k repetitions of (epsilon, delta): no bound is better. [KOV15]

    The formula is for equal parts, fixed in advance.
    """
    return _homogeneous(epsilon, delta, times).curve().upper(read_delta(target_delta))


def optimal_delta(epsilon: Number, delta: Number, times: int, target_epsilon: Number) -> float:
    """Return the least delta at `target_epsilon` of k repetitions of (epsilon, delta). [KOV15]"""
    return _homogeneous(epsilon, delta, times).curve().delta(nonnegative(target_epsilon, name="target_epsilon"))


def _homogeneous(epsilon: Number, delta: Number, times: int) -> Homogeneous:
    part, count = ApproxDP(epsilon, delta), positive_integer(times, name="times")
    if count > LONGEST:
        raise InvalidParameter(f"times must be at most {LONGEST} here; use privacy.epsilon(Repeated(…)) for more")
    return Homogeneous(part.epsilon, part.delta, count)


def parallel(parts: Iterable[Guarantee], relation: Relation) -> ApproxDP:
    """Combine guarantees on the cells of a partition that depends on each unit's own value only.

    Under ADD_REMOVE a unit touches one cell: the maximum. Under REPLACE_ONE it may leave one cell and enter
    another: the two largest add up.
    """
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
