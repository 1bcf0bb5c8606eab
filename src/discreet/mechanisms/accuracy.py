"""How far an answer may be from the exact one, from public facts only.

"Exact" means the answer of the bounded data: clamped, on the grid, missing values at their default. What clamping
changed is a fact about the data and is never told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, final

from discreet.errors import Refused
from discreet.noise.laws import Law

__all__ = ["Accuracy", "EachCell", "Interval", "NoInterval", "NoiseAccuracy"]

Interval: TypeAlias = tuple[Fraction, Fraction]


class Accuracy(Protocol):
    """Something that encloses the exact answer with at least the asked probability."""

    @property
    def noise(self) -> Law | None:
        """The law of the noise in grid steps, where one law says it all."""

    def interval(self, value: Any, confidence: Fraction) -> Any:
        """Return (low, high), or one such pair for each cell."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseAccuracy:
    """The answer is `value` minus `step` times noise, up to `slack` from rounding."""

    noise: Law
    step: Fraction
    slack: Fraction = Fraction(0)

    def interval(self, value: Fraction | int, confidence: Fraction) -> Interval:
        reach = _half_width(self.noise, confidence) * self.step + self.slack
        return value - reach, value + reach


@lru_cache(1024)
def _half_width(law: Law, confidence: Fraction) -> int:
    """Remember what a law says: a table asks the same for each of its cells."""
    return law.half_width(confidence)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EachCell:
    """Every cell by itself: each interval has the asked confidence, all of them together less."""

    cells: tuple[Accuracy, ...]  # one for all, or one for each

    @property
    def noise(self) -> Law | None:
        return self.cells[0].noise if len(self.cells) == 1 else None

    def interval(self, value: Sequence[Fraction | int], confidence: Fraction) -> tuple[Interval, ...]:
        cells = self.cells * len(value) if len(self.cells) == 1 else self.cells
        return tuple(cell.interval(part, confidence) for cell, part in zip(cells, value, strict=True))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoInterval:
    """No interval follows from public facts; the reason says what does."""

    reason: str

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: object, confidence: Fraction) -> Interval:
        raise Refused(self.reason)
