"""What a charge costs and what all charges cost so far: exact sums that only grow.

Epsilon, delta and rho live on one fixed public grid, so that a sum has a bounded size whatever is charged: a number
with a denominator that divides `GRID` is kept exactly, any other one is rounded up to the next grid point, which
is less than 10^-80 away. What is kept beside them, the mu^2 of the Gaussian rule and Rényi divergences, are whole
multiples of 2^-64, rounded up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.ledger.budget import canonical

__all__ = ["GRID", "UNIT", "EventPrice", "Sums", "on_grid", "units_up"]

GRID = math.lcm(*range(1, 65)) * 2**64 * 10**60  # Decimals, small ratios and most floats are exact on it.
UNIT = 2**64
_NOTHING = Fraction(0)
_MOST_KNOWN = 256
_known: dict[str, Sums] = {}


def on_grid(value: Fraction) -> Fraction:
    """Return the smallest point of the grid that is not below `value`."""
    if GRID % value.denominator == 0:
        return value
    return Fraction(-(-value.numerator * GRID // value.denominator), GRID)


def units_up(value: float) -> int | None:
    """Return a number in units of 2^-64, rounded up; None if it has no bound."""
    return math.ceil(Fraction(value) * UNIT) if math.isfinite(value) else None


@final
@dataclass(frozen=True, slots=True)
class EventPrice:
    """What one event costs. None means that no bound of this kind is proven."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None = None
    kept: tuple[int | None, ...] = ()  # in units of 2^-64: mu^2 if the account keeps it, and one for each of its orders

    def packed(self) -> list[object]:
        """Return what JSON writes."""
        return [*map(_text, (self.epsilon, self.delta, self.rho)), list(self.kept)]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> EventPrice:
        """Read what `packed` returned."""
        epsilon, delta, rho, kept = packed
        return cls(_number(epsilon), Fraction(delta), _number(rho), tuple(kept))

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
    kept: tuple[int | None, ...]
    charges: int

    @classmethod
    def nothing(cls, kept: int) -> Sums:
        """Start with nothing spent."""
        return cls(_NOTHING, _NOTHING, _NOTHING, (0,) * kept, 0)

    def plus(self, price: EventPrice, times: int = 1) -> Sums:
        """Add charges of one price. Every kind of sum is added here and nowhere else."""
        return Sums(
            _added(self.epsilon, price.epsilon, times),
            self.delta + price.delta * times,
            _added(self.rho, price.rho, times),
            tuple(
                None if so_far is None or more is None else so_far + more * times
                for so_far, more in zip(self.kept, price.kept, strict=True)
            ),
            self.charges + times,
        )

    def text(self) -> str:
        """Write the sums exactly."""
        text = canonical([*map(_text, (self.epsilon, self.delta, self.rho)), self.kept, self.charges])
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
    epsilon, delta, rho, kept, charges = json.loads(text)
    return Sums(_number(epsilon), Fraction(delta), _number(rho), tuple(kept), charges)


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _number(text: str | None) -> Fraction | None:
    return None if text is None else Fraction(text)
