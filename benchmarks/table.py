"""A table that reads well in a terminal and is Markdown at the same time."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MISSING", "Table", "number", "ratio"]

MISSING = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """A title, named columns, rows of text, and remarks below."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the table as aligned Markdown."""
        widths = [max(map(_width, column)) for column in zip(self.columns, *self.rows, strict=True)]
        rule = tuple("-" * width for width in widths)
        lines = [_line(row, widths) for row in (self.columns, rule, *self.rows)]
        remarks = ["", *(f"- {remark}" for remark in self.remarks)] if self.remarks else []
        return "\n".join([f"**{self.title}**", "", *lines, *remarks])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def number(value: float | None, digits: int = 3) -> str:
    """Write a figure with so many significant digits and no exponent."""
    if value is None:
        return MISSING
    rounded = float(f"{value:.{digits}g}")
    magnitude = math.floor(math.log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(digits - 1 - magnitude, 0)}f}"


def ratio(peer: float | None, ours: float | None) -> str:
    """Write how many times as long the peer takes."""
    return MISSING if peer is None or not ours else f"{number(peer / ours)}×"
