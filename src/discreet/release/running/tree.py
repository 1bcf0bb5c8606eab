"""A binary tree over the days: count stretches of one, two, four … days, and make every total of a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.release.running.strategy import ONE

__all__ = ["DayTree"]


@final
@dataclass(frozen=True)
class DayTree:
    """Measure every stretch of 2^l days that begins at a multiple of 2^l, when it has ended. [DNPR10, CSS11]

    Totals use the best estimate of a stretch from its own measurement and those inside it. [Hon15]

    Theorem     On each level a unit counted on k days is in stretches s_1, s_2, … times with sum k at most, each at
                most 2^l times; the sum of squares is largest when as many as possible are full. The first k days do
                that on all levels at once, so this is the exact norm.
                Estimates of two halves, of variance v each, and a measurement of the whole, of variance 1, are
                independent: weighed by their precision they give variance 1 / (1 + 1 / 2v) = 2^l / (2^(l+1) - 1).
    """

    days: int
    name: str = "binary tree"

    @property
    def levels(self) -> int:
        return self.days.bit_length()

    def weights(self, day: int) -> tuple[tuple[int, ...], ...]:
        ended = [1 << level for level in range(self.levels) if (day + 1) % (1 << level) == 0]
        return tuple((0,) * (day + 1 - size) + (ONE,) * size for size in ended)

    def squared_sensitivity(self, max_days: int) -> int:
        most = min(max_days, self.days)
        return ONE**2 * sum(self._on_level(most, 1 << level) for level in range(self.levels))

    def _on_level(self, most: int, size: int) -> int:
        full, rest = divmod(most, size)
        return full * size**2 + (rest**2 if full < self.days // size else 0)

    def variances(self) -> tuple[Fraction, ...]:
        parts = [_variance(level) for level in range(self.levels)]
        return tuple(sum((parts[level] for level in _levels(day + 1)), Fraction(0)) for day in range(self.days))

    def reaches(self) -> tuple[Fraction, ...]:
        parts = [Fraction(1)]
        for level in range(1, self.levels):
            own = _variance(level)
            parts.append(own + (1 - own) * 2 * parts[-1])
        return tuple(sum((parts[level] for level in _levels(day + 1)), Fraction(0)) for day in range(self.days))

    def totals(self, measured: Sequence[Sequence[int]]) -> tuple[Fraction, ...]:
        found: list[Fraction] = []
        stretches: list[Fraction] = []  # Estimates that add up to the total so far: one for each binary digit of it.
        for numbers in measured:
            newest = Fraction(0)
            for level, number in enumerate(numbers):
                below = Fraction(0) if level == 0 else newest + stretches.pop()
                own = _variance(level)
                newest = own * Fraction(number, ONE) + (1 - own) * below
            stretches.append(newest)
            found.append(sum(stretches, Fraction(0)))
        return tuple(found)


def _variance(level: int) -> Fraction:
    """Return the variance of the best estimate of a stretch of 2^level days."""
    return Fraction(1 << level, (2 << level) - 1)


def _levels(days: int) -> list[int]:
    """Return the stretches that make up the first days: the binary digits of their number."""
    return [level for level in range(days.bit_length()) if days >> level & 1]
