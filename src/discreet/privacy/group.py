"""Group privacy: what `size` people see together who are each protected by a guarantee."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.balls import ball
from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive_integer, up
from discreet.privacy.convert import read_order
from discreet.privacy.enclosures import enclose, float_up
from discreet.privacy.events import ApproxDP

if TYPE_CHECKING:
    from flint import arb

__all__ = ["approximate", "factor", "renyi"]


def approximate(epsilon: Number, delta: Number, size: int) -> tuple[float, float]:
    """Group privacy of (epsilon, delta): (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)). [Vad17]

    Args:
        epsilon: For one unit.
        delta: For one unit.
        size: How many units are protected together.

    Returns:
        Epsilon and delta for the group, rounded up.

    Examples:
        >>> dp.privacy.group.approximate(0.5, 0, 4)
        (2.0, 0.0)
    """
    guarantee, count = ApproxDP(epsilon, delta), positive_integer(size, name="size")
    total = enclose(lambda: ball(guarantee.delta) * factor(guarantee.epsilon, count))
    return up(count * guarantee.epsilon), min(1.0, float_up(total))


def factor(epsilon: Fraction, size: int) -> arb:
    """Enclose 1 + e^epsilon + … + e^((k-1) epsilon) at the working precision.

    Args:
        epsilon: For one unit, a Fraction.
        size: How many units are protected together.

    Returns:
        The factor of delta for the group, as an enclosure (`flint.arb`).

    Examples:
        >>> from fractions import Fraction
        >>> float(dp.privacy.group.factor(Fraction(0), 3))
        3.0
    """
    return (size * ball(epsilon)).expm1() / ball(epsilon).expm1() if epsilon else ball(size)


def renyi(order: Number, divergence: Number, size: int) -> tuple[Fraction, Fraction]:
    """Group privacy of a Renyi divergence, for 2^c people: order a / 2^c and divergence 3^c D. [Mir17]

    A group of another size is part of the next power of two. The order that is left must be at least 2.

    Args:
        order: The Renyi order for one unit, above 1.
        divergence: The divergence of that order for one unit.
        size: How many units are protected together.

    Returns:
        The order and the divergence for the group.

    Raises:
        InvalidParameter: If the order is too small for a group of this size.

    Examples:
        >>> dp.privacy.group.renyi(16, 0.5, 2)
        (Fraction(8, 1), Fraction(3, 2))
    """
    a, level = read_order(order), nonnegative(divergence, name="divergence")
    doublings = (positive_integer(size, name="size") - 1).bit_length()
    left = a / 2**doublings
    if left < 2 and doublings:
        raise InvalidParameter(f"order must be at least {2 ** (doublings + 1)} for a group of this size")
    return left, level * 3**doublings
