"""Conversions between definitions (pure, approximate, zCDP, Renyi, Gaussian); upper bounds, rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.event_tree import grouped, leaves
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "bounded_range_to_zcdp",
    "mironov",
    "pure_to_zcdp",
    "pure_to_zcdp_simple",
    "renyi_to_delta",
    "renyi_to_epsilon",
    "to_replace_one",
    "zcdp_simple",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
]

# --- renyi_orders ---
# Search a good Renyi order. Any order gives a valid bound, so the search may be as simple as it likes.


_GOLDEN = 0.6180339887498949
_REFINEMENTS = 24
_DOUBLINGS = 80


def least(bound: Callable[[Fraction], float], *, start: int = 3, refinements: int = _REFINEMENTS) -> float:
    """Return the least bound found over orders 1 + 2^x: walk from `start` while it falls, then golden section.

    Args:
        bound: A function from a Renyi order, a Fraction above 1, to a bound that is right at any order.
        start: The x at which the search starts.
        refinements: How many steps of golden section.

    Returns:
        The least bound that was found.

    Examples:
        >>> from fractions import Fraction
        >>> round(dp.privacy.convert.least(lambda order: float(order) + 4 / float(order)), 3)
        4.0
    """
    seen: dict[float, float] = {}

    def at(x: float) -> float:
        if x not in seen:
            seen[x] = bound(1 + Fraction(2.0**x))
        return seen[x]

    centre = _walk(at, float(start))
    _golden(at, centre - 1, centre + 1, refinements)
    return min(seen.values())


def _walk(at: Callable[[float], float], x: float) -> float:
    for direction in (1.0, -1.0):
        for _ in range(_DOUBLINGS):
            if not at(x + direction) < at(x):
                break
            x += direction
    return x


def _golden(at: Callable[[float], float], low: float, high: float, steps: int) -> None:
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    for _ in range(steps):
        if at(left) <= at(right):
            high, right = right, left
            left = high - _GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + _GOLDEN * (high - low)


def read_order(order: Number) -> Fraction:
    """Read a Renyi order: an exact number above one."""
    number = exact(order, name="order")
    if number <= 1:
        raise InvalidParameter("order must be above 1")
    return number


def read_delta(delta: Number) -> Fraction:
    """Read a delta: an exact number in [0, 1)."""
    number = exact(delta, name="delta")
    if not 0 <= number < 1:
        raise InvalidParameter("delta must be at least 0 and below 1")
    return number


def renyi_to_epsilon(order: Number, divergence: Number, delta: Number) -> float:
    """Convert one Renyi divergence to epsilon: D + log(1 - 1/a) - (log delta + log a) / (a - 1). [CKS20, BBGHS20]

    No better conversion of a single order is known that needs no search.

    Args:
        order: The Renyi order, above 1.
        divergence: The Renyi divergence of that order.
        delta: The delta at which epsilon is wanted.

    Returns:
        The epsilon, rounded up; infinity at delta 0.

    Examples:
        >>> round(dp.privacy.convert.renyi_to_epsilon(10, 0.5, 1e-5), 3)
        1.418
    """
    a, level, target = read_order(order), nonnegative(divergence, name="divergence"), read_delta(delta)
    return epsilon_at(a, lambda: ball((a - 1) * level), target)


def epsilon_at(order: Fraction, log_moment: Callable[[], arb], delta: Fraction) -> float:
    """Convert the log moment (a - 1) D_a to epsilon. [CKS20]"""
    if delta == 0:
        return math.inf

    def formula() -> arb:
        a = ball(order)
        return (log_moment() - ball(delta).log() - a.log()) / (a - 1) + (-1 / a).log1p()

    return max(0.0, float_up(enclose(formula)))


def renyi_to_delta(order: Number, divergence: Number, epsilon: Number) -> float:
    """Convert one Renyi divergence to delta: e^((a-1) (D - epsilon)) (1 - 1/a)^(a-1) / a. [CKS20]

    Args:
        order: The Renyi order, above 1.
        divergence: The Renyi divergence of that order.
        epsilon: The epsilon at which delta is wanted.

    Returns:
        The delta, rounded up.

    Examples:
        >>> dp.privacy.convert.renyi_to_delta(10, 0.5, 2) < 1e-5
        True
    """
    a, level = read_order(order), nonnegative(divergence, name="divergence")
    target = nonnegative(epsilon, name="epsilon")
    return chance_up(log_delta_at(a, lambda: ball((a - 1) * level), target))


def log_delta_at(order: Fraction, log_moment: Callable[[], arb], epsilon: Fraction) -> float:
    """Convert the log moment (a - 1) D_a to the logarithm of delta, which may be above 0. [CKS20]"""

    def formula() -> arb:
        a = ball(order)
        return log_moment() + (a - 1) * ((-1 / a).log1p() - ball(epsilon)) - a.log()

    return float_up(enclose(formula))


def chance_up(logarithm: float) -> float:
    """Return a probability from its logarithm, rounded up; one at most."""
    if logarithm >= 0:
        return 1.0
    return min(1.0, float_up(enclose(lambda: ball(Fraction(logarithm)).exp())))


def mironov(order: Number, divergence: Number, delta: Number) -> float:
    """Convert one Renyi divergence to epsilon the simple way: D + log(1 / delta) / (a - 1). [Mir17]

    Args:
        order: The Renyi order, above 1.
        divergence: The Renyi divergence of that order.
        delta: The delta at which epsilon is wanted.

    Returns:
        The epsilon, rounded up; infinity at delta 0.

    Examples:
        >>> round(dp.privacy.convert.mironov(10, 0.5, 1e-5), 3)
        1.779
    """
    a, level, target = read_order(order), nonnegative(divergence, name="divergence"), read_delta(delta)
    if target == 0:
        return math.inf
    return float_up(enclose(lambda: ball(level) - ball(target).log() / ball(a - 1)))


def zcdp_to_epsilon(rho: Number, delta: Number) -> float:
    """Convert rho-zCDP to epsilon at the best order; right at any order, so the search needs no proof. [CKS20]

    Args:
        rho: The parameter of zero-concentrated privacy.
        delta: The delta at which epsilon is wanted.

    Returns:
        The epsilon, rounded up; infinity at delta 0.

    Examples:
        >>> round(dp.privacy.convert.zcdp_to_epsilon(0.1, 1e-6), 3)
        2.142
    """
    level, target = nonnegative(rho, name="rho"), read_delta(delta)
    if level == 0:
        return 0.0
    return least(lambda a: epsilon_at(a, lambda: ball(a * (a - 1) * level), target))


def zcdp_to_delta(rho: Number, epsilon: Number) -> float:
    """Convert rho-zCDP to delta at the best order. [CKS20]

    Args:
        rho: The parameter of zero-concentrated privacy.
        epsilon: The epsilon at which delta is wanted.

    Returns:
        The delta, rounded up.

    Examples:
        >>> dp.privacy.convert.zcdp_to_delta(0.1, 2.3) < 1e-6
        True
    """
    level, target = nonnegative(rho, name="rho"), nonnegative(epsilon, name="epsilon")
    if level == 0:
        return 0.0
    return chance_up(least(lambda a: log_delta_at(a, lambda: ball(a * (a - 1) * level), target)))


def zcdp_simple(rho: Number, delta: Number) -> float:
    """Convert rho-zCDP to epsilon the simple way: rho + 2 sqrt(rho log(1 / delta)). [BS16]

    Args:
        rho: The parameter of zero-concentrated privacy.
        delta: The delta at which epsilon is wanted.

    Returns:
        The epsilon, rounded up; infinity at delta 0.

    Examples:
        >>> round(dp.privacy.convert.zcdp_simple(0.1, 1e-6), 3)
        2.451
    """
    level, target = nonnegative(rho, name="rho"), read_delta(delta)
    if level == 0:
        return 0.0
    if target == 0:
        return math.inf
    return float_up(enclose(lambda: ball(level) + 2 * (-ball(level) * ball(target).log()).sqrt()))


def pure_to_zcdp(epsilon: Number) -> float:
    """Return the smallest rho that every epsilon-private mechanism has: epsilon tanh(epsilon / 2).

    Theorem     The worst pair is binary randomized response, with (a-1) D_a = h((a-1/2)^2) - h(1/4) for
                h(t) = log cosh(epsilon sqrt(t)), which is concave. So D_a / a, the slope of a chord of h from
                1/4 to (a-1/2)^2, falls as a grows, and its limit at a = 1 is h'(1/4).

    Args:
        epsilon: Of a pure guarantee.

    Returns:
        The parameter rho, rounded up.

    Examples:
        >>> round(dp.privacy.convert.pure_to_zcdp(1), 4)
        0.4621
    """
    level = nonnegative(epsilon, name="epsilon")
    return float_up(enclose(lambda: ball(level) * (ball(level) / 2).tanh())) if level else 0.0


def pure_to_zcdp_simple(epsilon: Number) -> Fraction:
    """Return epsilon^2 / 2, a rho that every epsilon-private mechanism has. [BS16]

    Args:
        epsilon: Of a pure guarantee.

    Returns:
        The parameter rho, exactly.

    Examples:
        >>> dp.privacy.convert.pure_to_zcdp_simple(1)
        Fraction(1, 2)
    """
    return nonnegative(epsilon, name="epsilon") ** 2 / 2


def bounded_range_to_zcdp(epsilon: Number) -> Fraction:
    """Return epsilon^2 / 8, a rho that every mechanism with losses of range epsilon has. [DR19]

    Args:
        epsilon: The range of the privacy losses.

    Returns:
        The parameter rho, exactly.

    Examples:
        >>> dp.privacy.convert.bounded_range_to_zcdp(2)
        Fraction(1, 2)
    """
    return nonnegative(epsilon, name="epsilon") ** 2 / 8


def to_replace_one(event: Event) -> Event:
    """Turn a guarantee under ADD_REMOVE into one under REPLACE_ONE: replacing is removing and adding.

    An (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta). There is no way back: under REPLACE_ONE the
    number of units is public.

    Args:
        event: What was spent.

    Returns:
        The event under replace-one.

    Examples:
        >>> dp.privacy.convert.to_replace_one(dp.privacy.PureDP(1))
        PureDP(epsilon=2)
    """
    leaves(event, relation=Relation.ADD_REMOVE)  # Refuses what has no guarantee to start from.
    return grouped(event, 2)
