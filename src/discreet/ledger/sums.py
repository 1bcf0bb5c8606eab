"""What a charge costs and what all charges cost so far: exact sums that only grow.

Epsilon, delta and rho live on one fixed public grid, so that a sum has a bounded size whatever is charged: a number
with a denominator that divides `GRID` is kept exactly, any other one is rounded up to the next grid point, which
is less than 10^-80 away. Rényi divergences are whole multiples of 2^-64, rounded up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.ledger.canonical import canonical

__all__ = ["GRID", "RENYI_UNIT", "Price", "Sums", "on_grid", "renyi_units"]

GRID = math.lcm(*range(1, 65)) * 2**64 * 10**60  # Decimals, small ratios and most floats are exact on it.
RENYI_UNIT = 2**64
_NOTHING = Fraction(0)
_MOST_KNOWN = 256
_known: dict[str, Sums] = {}


def on_grid(value: Fraction) -> Fraction:
    """Return the smallest point of the grid that is not below `value`."""
    if GRID % value.denominator == 0:
        return value
    return Fraction(-(-value.numerator * GRID // value.denominator), GRID)


def renyi_units(divergence: float) -> int | None:
    """Return a divergence in units of 2^-64, rounded up; None if it has no bound."""
    return math.ceil(Fraction(divergence) * RENYI_UNIT) if math.isfinite(divergence) else None


@final
@dataclass(frozen=True, slots=True)
class Price:
    """What one event costs. None means that no bound of this kind is proven."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None = None
    renyi: tuple[int | None, ...] = ()  # in units of 2^-64, one for each order of the account

    def packed(self) -> list[object]:
        """Return what JSON writes."""
        return [*map(_text, (self.epsilon, self.delta, self.rho)), list(self.renyi)]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> Price:
        """Read what `packed` returned."""
        epsilon, delta, rho, renyi = packed
        return cls(_number(epsilon), Fraction(delta), _number(rho), tuple(renyi))

    @property
    def is_free(self) -> bool:
        """Tell whether the event says nothing about anybody."""
        return self.epsilon == 0 and self.delta == 0


@final
@dataclass(frozen=True, slots=True)
class Sums:
    """What was spent. None means that something without a bound of this kind is among the charges."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    renyi: tuple[int | None, ...]
    charges: int

    @classmethod
    def nothing(cls, orders: int) -> Sums:
        """Start with nothing spent."""
        return cls(_NOTHING, _NOTHING, _NOTHING, (0,) * orders, 0)

    def plus(self, price: Price, times: int = 1) -> Sums:
        """Add charges of one price. Every kind of sum is added here and nowhere else."""
        return Sums(
            _added(self.epsilon, price.epsilon, times),
            self.delta + price.delta * times,
            _added(self.rho, price.rho, times),
            tuple(
                None if so_far is None or more is None else so_far + more * times
                for so_far, more in zip(self.renyi, price.renyi, strict=True)
            ),
            self.charges + times,
        )

    def text(self) -> str:
        """Write the sums exactly."""
        text = canonical([*map(_text, (self.epsilon, self.delta, self.rho)), self.renyi, self.charges])
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[text] = self  # The next charge reads what this one wrote.
        return text

    @classmethod
    def from_text(cls, text: str) -> Sums:
        """Read what `text` wrote."""
        return _known.get(text) or _read(text)


def _added(so_far: Fraction | None, more: Fraction | None, times: int) -> Fraction | None:
    return None if so_far is None or more is None else so_far + more * times


def _read(text: str) -> Sums:
    epsilon, delta, rho, renyi, charges = json.loads(text)
    return Sums(_number(epsilon), Fraction(delta), _number(rho), tuple(renyi), charges)


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _number(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
