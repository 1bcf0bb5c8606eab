"""Loss functions of robust estimators: rho, its derivative psi, the derivative of that, and how large psi can get.

Every function works on each number by itself with operations that IEEE 754 rounds correctly (and exact ones), so
what happens to one row never depends on where it stands or on how many there are. Private versions rest on that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive
from discreet.formatting import record
from discreet.mechanisms.parameters import settle

__all__ = ["Floats", "Huber", "Logistic", "Psi", "Quantile", "Tukey"]

Floats: TypeAlias = NDArray[np.float64]

_TUKEY_PEAK = Fraction(28621670112, 10**11)  # Just above 16 / (25 sqrt 5) = 0.28621670111997….
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # The first has trailing zeros.


class Psi(Protocol):
    """A loss of residuals in units of their scale. Everything here is public."""

    @property
    def bound(self) -> Fraction:
        """A number not below the largest |psi|."""

    @property
    def slopes(self) -> tuple[Fraction, Fraction]:
        """Numbers not above the least and not below the largest `derivative`."""

    @property
    def is_monotone(self) -> bool:
        """Whether psi never falls, so that the estimate is one root and not one of many."""

    @property
    def breaks(self) -> tuple[float, ...]:
        """The residuals above zero where psi or its derivative is not smooth."""

    def rho(self, u: Floats, /) -> Floats:
        """Return the loss."""

    def psi(self, u: Floats, /) -> Floats:
        """Return its derivative."""

    def derivative(self, u: Floats, /) -> Floats:
        """Return the derivative of psi, or a difference quotient where it has none."""


@final
@dataclass(frozen=True, slots=True)
class Huber:
    """Squares for small residuals, absolute values beyond `c`. At 1.345 it loses 5 % on normal data. [Hub64]

    Args:
        c: The residual, in units of the scale, from which on the loss grows as the absolute value; above 0.

    Examples:
        >>> import numpy as np
        >>> dp.robust.Huber(c=1).psi(np.array([0.5, 3]))
        array([0.5, 1. ])
    """

    c: Number = Fraction(1345, 1000)

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, c=positive(self.c, name="c"))

    @property
    def bound(self) -> Fraction:
        return Fraction(self.c)

    @property
    def slopes(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(1)

    @property
    def is_monotone(self) -> bool:
        return True

    @property
    def breaks(self) -> tuple[float, ...]:
        return (float(self.c),)

    def rho(self, u: Floats) -> Floats:
        inside = self.psi(u)
        return inside * (u - inside / 2)

    def psi(self, u: Floats) -> Floats:
        return np.clip(u, -float(self.c), float(self.c))

    def derivative(self, u: Floats) -> Floats:
        return (np.abs(u) <= float(self.c)).astype(np.float64)


@final
@dataclass(frozen=True, slots=True)
class Tukey:
    """The bisquare: residuals beyond `c` do not count at all. It has many roots: start near the right one. [BT74]

    Args:
        c: The residual, in units of the scale, beyond which a value does not count; above 0.

    Examples:
        >>> import numpy as np
        >>> dp.robust.Tukey().psi(np.array([9.0]))
        array([0.])
    """

    c: Number = Fraction(4685, 1000)

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, c=positive(self.c, name="c"))

    @property
    def bound(self) -> Fraction:
        return _TUKEY_PEAK * Fraction(self.c)

    @property
    def slopes(self) -> tuple[Fraction, Fraction]:
        # (1 - v)(1 - 5 v) with v = (u / c)^2 is least at v = 3/5.
        return Fraction(-4, 5), Fraction(1)

    @property
    def is_monotone(self) -> bool:
        return False

    @property
    def breaks(self) -> tuple[float, ...]:
        return (float(self.c),)

    def rho(self, u: Floats) -> Floats:
        left = self._left(u)
        return float(self.c) ** 2 / 6 * (1 - left * left * left)

    def psi(self, u: Floats) -> Floats:
        left = self._left(u)
        return np.clip(u, -float(self.c), float(self.c)) * left * left

    def derivative(self, u: Floats) -> Floats:
        left = self._left(u)
        return left * (5 * left - 4)

    def _left(self, u: Floats) -> Floats:
        ratio = np.clip(u / float(self.c), -1.0, 1.0)
        return 1 - ratio * ratio


@final
@dataclass(frozen=True, slots=True)
class Logistic:
    """The likelihood of the logistic law: psi(u) = c tanh(u / (2 c)), smooth and bounded by `c`.

    Args:
        c: The largest psi; above 0.

    Examples:
        >>> round(dp.robust.location([1, 2, 3], psi=dp.robust.Logistic()).value, 6)
        2.0
    """

    c: Number = Fraction(1)

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, c=positive(self.c, name="c"))

    @property
    def bound(self) -> Fraction:
        return Fraction(self.c)

    @property
    def slopes(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(1, 2)

    @property
    def is_monotone(self) -> bool:
        return True

    @property
    def breaks(self) -> tuple[float, ...]:
        return ()

    def rho(self, u: Floats) -> Floats:
        c, size = float(self.c), np.abs(u)
        return c * size - 2 * c * c * (math.log(2) - np.log1p(_exp_minus(size / c)))

    def psi(self, u: Floats) -> Floats:
        fading = _exp_minus(np.abs(u) / float(self.c))
        return np.copysign(float(self.c) * (1 - fading) / (1 + fading), u)

    def derivative(self, u: Floats) -> Floats:
        fading = _exp_minus(np.abs(u) / float(self.c))
        return 2 * fading / ((1 + fading) * (1 + fading))


@final
@dataclass(frozen=True, slots=True)
class Quantile:
    """The loss whose root is the quantile `q`, the median at 1/2: psi(u) = q - [u < 0]. [KB78]

    It has no derivative; the share of residuals within `bandwidth`, over twice that, stands for the density.

    Args:
        q: The quantile, strictly between 0 and 1.
        bandwidth: How near a residual must be to count for the density, in units of the scale; above 0.

    Raises:
        InvalidParameter: If q is not strictly between 0 and 1.

    Examples:
        >>> round(dp.robust.gross_error_sensitivity(dp.robust.Quantile()), 4)
        1.2533
    """

    q: Number = Fraction(1, 2)
    bandwidth: Number = Fraction(1, 2)  # in units of the scale

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, q=exact(self.q, name="q"), bandwidth=positive(self.bandwidth, name="bandwidth"))
        if not 0 < Fraction(self.q) < 1:
            raise InvalidParameter("q must lie strictly between 0 and 1")

    @property
    def bound(self) -> Fraction:
        return max(Fraction(self.q), 1 - Fraction(self.q))

    @property
    def slopes(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), 1 / (2 * Fraction(self.bandwidth))

    @property
    def is_monotone(self) -> bool:
        return True

    @property
    def breaks(self) -> tuple[float, ...]:
        return (0.0, float(self.bandwidth))

    def rho(self, u: Floats) -> Floats:
        return u * self.psi(u)

    def psi(self, u: Floats) -> Floats:
        return np.where(u < 0, float(self.q) - 1, float(self.q))

    def derivative(self, u: Floats) -> Floats:
        return np.where(np.abs(u) <= float(self.bandwidth), 0.5 / float(self.bandwidth), 0.0)


def _exp_minus(size: Floats) -> Floats:
    """Return exp(-size) for size >= 0 from sums, products and powers of two only.

    Library exponentials may round the last numbers of an array otherwise than the first.
    """
    capped = np.minimum(size, 700.0)
    powers = np.rint(capped / math.log(2))
    rest = (capped - powers * _LN2_HIGH) - powers * _LN2_LOW
    total = np.ones_like(rest)
    for degree in range(14, 0, -1):  # |rest| is at most 0.35, so what is left out is below 2^-60.
        total = 1 - total * rest / degree
    return np.ldexp(total, -powers.astype(np.int64))
