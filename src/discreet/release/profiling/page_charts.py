"""The charts of a profile as inline SVG: bars, and whiskers that show between what the exact counts lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.release.profiling.partition import written
from discreet.release.profiling.text import estimate_text
from discreet.release.report.marks import words

if TYPE_CHECKING:
    from discreet.release.profiling.results import CellCount, ColumnProfile

__all__ = ["axis", "histogram", "miniature", "value_bar"]

_HIGH = 100
_WIDE = 10  # of a bar and the gap beside it
_MINI = 12  # bars of a miniature of values


def histogram(column: ColumnProfile) -> str:
    """Draw a bar for each range, paler where it is open, with its whisker; hovering tells the numbers."""
    most = _most(column.cells)
    bars = "".join(_bar(place, cell, most, whisker=True) for place, cell in enumerate(column.cells))
    label = words(f"Histogram of {column.name}: {len(column.cells)} ranges")
    return _svg(len(column.cells) * _WIDE, bars, label)


def miniature(column: ColumnProfile) -> str:
    """Draw the same small and without whiskers; for values, the most frequent ones."""
    cells: Sequence[CellCount] = column.cells if column.ordered else column.top[:_MINI]
    if not cells:
        return _svg(_WIDE, "", "")
    most = _most(cells)
    bars = "".join(_bar(place, cell, most, whisker=False) for place, cell in enumerate(cells))
    return _svg(max(_MINI, len(cells)) * _WIDE, bars, "")


def value_bar(cell: CellCount, most: int) -> str:
    """Draw one bar from left to right with its whisker."""
    long, low, high = (100 * count / most for count in (cell.count.tidy, cell.count.low, min(cell.count.high, most)))
    return (
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="bar" width="{long:.2f}" height="10"/>'
        f'<line class="whisker" x1="{low:.2f}" x2="{high:.2f}" y1="5" y2="5"/></svg>'
    )


def axis(column: ColumnProfile) -> str:
    """Write where the first range ends, where the middle is, and where the last range begins."""
    cuts = [cell.low for cell in column.cells[1:] if cell.low is not None]
    if not cuts:
        return ""
    first, last = column.cells[0], column.cells[-1]
    left = f"← {written(cuts[0])}" if first.low is None else written(first.low)
    right = f"{written(cuts[-1])} →" if last.high is None else written(last.high)
    middle = written(cuts[len(cuts) // 2]) if len(cuts) > 2 else ""
    told = "".join(f"<span>{words(text)}</span>" for text in (left, middle, right) if text)
    return f'<div class="axis" aria-hidden="true">{told}</div>'


def _most(cells: Sequence[CellCount]) -> int:
    return max([1, *(cell.count.high for cell in cells)])


def _bar(place: int, cell: CellCount, most: int, *, whisker: bool) -> str:
    tall = _HIGH * cell.count.tidy / most
    x, open_ = place * _WIDE, cell.rest or cell.low is None or cell.high is None
    shape = "open" if open_ and (cell.value is None or cell.rest) else "bar"
    bar = f'<rect class="{shape}" x="{x + 1}" y="{_HIGH - tall:.1f}" width="{_WIDE - 2}" height="{tall:.1f}"/>'
    if not whisker:
        return bar
    low, high = (_HIGH - _HIGH * count / most for count in (cell.count.low, cell.count.high))
    line = f'<line class="whisker" x1="{x + 5}" x2="{x + 5}" y1="{low:.1f}" y2="{high:.1f}"/>'
    return f"<g><title>{words(cell.label)}: {estimate_text(cell.count)}</title>{bar}{line}</g>"


def _svg(wide: int, inside: str, label: str) -> str:
    told = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
    return f'<svg viewBox="0 0 {wide} {_HIGH}" preserveAspectRatio="none" {told}>{inside}</svg>'
