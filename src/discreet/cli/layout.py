"""Lines for a terminal of some width: words are never cut, and a table that is too wide becomes a list of its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, final

from discreet.formatting import printable as one_line

__all__ = ["Line", "Meter", "Span", "Styled", "TextTable", "meter_lines", "styled_lines", "table_lines"]

Span: TypeAlias = tuple[str, str]  # A text, and its style; the empty one is that of the terminal.
Line: TypeAlias = Sequence[Span]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """Words in rows, under a head; one whose names are all empty is not shown.

    `right` names the columns of numbers, by position, and `marks` has the styles of cells by their text. `bars` has a
    share for each row, between 0 and 1, which a terminal draws before the cell of that column.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()
    marks: Mapping[str, str] = field(default_factory=dict)
    bars: Mapping[int, Sequence[float]] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Styled:
    """A text in a style; `labels` are the styles of words at the beginnings of its lines."""

    text: str
    style: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """A share, between 0 and 1, with its name and in words; a terminal draws it as a bar."""

    label: str
    share: float
    words: str
    style: str = "green"


# --- texts ---

# A number stays beside its sign, its unit and its name.
_GAP = re.compile(r"(?<![±=≤≥≈×]) (?![±=≤≥≈×%]|s\b)")
_ALIGNED = re.compile(r"\S {2,}(?=\S)")
_BULLET = "· "


def styled_lines(block: Styled, width: int | None) -> Iterator[Line]:
    """Write a text in lines of a width; None is a stream that has none."""
    texts = block.text.split("\n")
    for place, text in enumerate(texts):
        below = texts[place + 1] if place + 1 < len(texts) else ""
        if below.strip() == "^" and width is not None:  # It points at a letter above: both are cut alike.
            text, texts[place + 1] = _window(text, below.index("^"), width)
            yield [(text, block.style)]
        else:
            yield from _wrapped_text(text, block, width)


def _wrapped_text(text: str, block: Styled, width: int | None) -> Iterator[Line]:
    label = next((word for word in block.labels if text.lstrip().startswith(word)), "")
    for number, line in enumerate([text] if width is None else _hanging(text, width)):
        before, found, after = line.partition(label) if label and not number else (line, "", "")
        bullet = _BULLET if not number and not found and before.startswith(_BULLET) else ""
        spans = [(bullet, "cyan"), (before.removeprefix(bullet), block.style)]
        yield [*spans, (found, block.labels.get(label, "")), (after, block.style)]


def _hanging(text: str, width: int) -> Iterator[str]:
    """Wrap a line; what follows stands under its first word, behind a dot, or under the second column of two."""
    indent = len(text) - len(text.lstrip(" "))
    aligned = _ALIGNED.search(text, indent)
    under = indent + (2 if text[indent:].startswith(_BULLET) else 0)
    if aligned and aligned.end() <= width // 2:
        under = aligned.end()
    first, *rest = _filled(text[indent:], width - indent, width - under) or [""]
    yield " " * indent + first
    yield from (" " * under + line for line in rest)


def _filled(text: str, width: int, width_below: int | None = None) -> list[str]:
    """Fill lines with words. A word that is wider than a line stays whole: a path is copied as one."""
    lines: list[str] = []
    for word in _GAP.split(text):
        room = width if len(lines) < 2 or width_below is None else width_below
        if lines and _cells(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _window(text: str, at: int, width: int) -> tuple[str, str]:
    """Cut a line around one of its letters, and point at it."""
    indent = len(text) - len(text.lstrip(" "))
    body, room = text[indent:], width - indent
    start = max(0, min(at - indent - room // 2, len(body) - room))
    shown = body[start : start + room]
    shown = f"…{shown[1:]}" if start else shown
    shown = f"{shown[:-1]}…" if start + room < len(body) else shown
    return " " * indent + shown, " " * (at - start) + "^"


def _cells(text: str) -> int:
    """Return how wide a text is on a terminal: letters of some scripts take two cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


# --- bars ---

_LONG, _SHORT, _METER = 16, 8, 40  # Cells of a bar.


def meter_lines(meter: Meter, width: int | None) -> Iterator[Line]:
    """Write a share as a bar on a terminal, in words elsewhere."""
    if width is None:
        yield [(f"{meter.label}  {meter.words}", "")]
        return
    room = min(_METER, width - _cells(meter.label) - _cells(meter.words) - 4)
    yield [(f"{meter.label}  ", ""), *_bar(meter.share, max(_SHORT, room), meter.style), (f"  {meter.words}", "bold")]


def _bar(share: float, width: int, style: str) -> list[Span]:
    """Draw a share; what is not nothing has a cell, and what is not all leaves one."""
    full = round(width * min(max(share, 0.0), 1.0))
    full = max(full, 1) if share > 0 else 0
    full = min(full, width - 1) if share < 1 else width
    return [("█" * full, style), ("░" * (width - full), "dim")]


# --- tables ---

_BETWEEN = "  "
_MOST_LINES = 4  # Of a cell: a table with higher rows is hard to read.


@final
@dataclass(frozen=True, slots=True)
class _CellGrid:
    """A table whose cells are safe to write, and how long its bars are."""

    table: TextTable
    bar: int = 0

    @classmethod
    def of(cls, table: TextTable) -> _CellGrid:
        rows = [[one_line(cell) for cell in row] for row in table.rows]
        return cls(replace(table, head=[one_line(name) for name in table.head], rows=rows))

    @property
    def columns(self) -> list[tuple[str, ...]]:
        """The cells of each column, its name first."""
        return list(zip(self.table.head, *self.table.rows, strict=True))

    def extra(self, column: int) -> int:
        """How many cells a bar takes."""
        return self.bar + 1 if self.bar and column in self.table.bars else 0

    @property
    def natural(self) -> list[int]:
        """The widths in which no cell needs a second line."""
        return [
            max([_cells(head), *(_cells(cell) + self.extra(i) for cell in cells)])
            for i, (head, *cells) in enumerate(self.columns)
        ]

    @property
    def least(self) -> list[int]:
        """The widths in which no word is cut; numbers stay whole."""
        widths = []
        for i, (head, *cells) in enumerate(self.columns):
            words = (word for cell in cells for word in ([cell] if i in self.table.right else _GAP.split(cell)))
            widths.append(max([*map(_cells, _GAP.split(head)), *(_cells(word) + self.extra(i) for word in words)]))
        return widths


def table_lines(table: TextTable, width: int | None) -> Iterator[Line]:
    """Write a table: in columns if they fit, with cells of a few lines if need be, and else row by row as lists."""
    grid = _CellGrid.of(table)
    if width is None:
        yield from _in_columns(grid, grid.natural)
        return
    for bar in (_LONG, _SHORT) if table.bars else (0,):
        grid = replace(grid, bar=bar)
        if _total(grid.natural) <= width:
            yield from _in_columns(grid, grid.natural)
            return
    for bar in (grid.bar, 0):
        tried = replace(grid, bar=bar)
        widths = _shared(tried, width)
        if widths is not None and _highest(tried, widths) <= _MOST_LINES:
            yield from _in_columns(tried, widths)
            return
    yield from _stacked(grid, width)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_BETWEEN) * (len(widths) - 1)


def _shared(grid: _CellGrid, width: int) -> list[int] | None:
    """Share the width among columns, those that need little first; None if even the words do not fit."""
    widths, natural = grid.least, grid.natural
    left = width - _total(widths)
    if left < 0:
        return None
    wishes = sorted(range(len(widths)), key=lambda i: natural[i] - widths[i])
    for served, column in enumerate(wishes):
        more = min(natural[column] - widths[column], left // (len(wishes) - served))
        widths[column] += more
        left -= more
    return widths


def _highest(grid: _CellGrid, widths: Sequence[int]) -> int:
    rows = ([_filled(cell, n) for cell, n in zip(row, widths, strict=True)] for row in grid.table.rows)
    return max((len(cell) for row in rows for cell in row), default=1)


def _in_columns(grid: _CellGrid, widths: Sequence[int]) -> Iterator[Line]:
    table = grid.table
    if any(table.head):
        yield from _row_lines(grid, widths, table.head, None)
        yield [(_BETWEEN.join("─" * width for width in widths), "dim")]
    for number, row in enumerate(table.rows):
        yield from _row_lines(grid, widths, row, number)


def _row_lines(grid: _CellGrid, widths: Sequence[int], row: Sequence[str], number: int | None) -> Iterator[Line]:
    """Write one row, or the head if it has no number."""
    table = grid.table
    cells = [
        _filled(cell, width - (0 if number is None else grid.extra(i)))
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    for line in range(max(map(len, cells), default=0)):
        spans: list[Span] = []
        for column, (lines, width) in enumerate(zip(cells, widths, strict=True)):
            text = lines[line] if line < len(lines) else ""
            style = "bold" if number is None else table.marks.get(row[column], "")
            if number is not None and grid.extra(column):
                spans += _bar(table.bars[column][number], grid.bar, "cyan") if not line else [(" " * grid.bar, "")]
                spans.append((" ", ""))
                width -= grid.extra(column)
            blank = " " * (width - _cells(text))
            spans += [(blank, ""), (text, style)] if column in table.right else [(text, style), (blank, "")]
            spans.append((_BETWEEN, ""))
        yield _without_end(spans)


def _without_end(spans: list[Span]) -> list[Span]:
    while spans and not spans[-1][0].strip(" "):
        spans.pop()
    return [*spans[:-1], (spans[-1][0].rstrip(" "), spans[-1][1])] if spans else []


def _stacked(grid: _CellGrid, width: int) -> Iterator[Line]:
    """Write each row as its first words, and under them what the other columns say."""
    table = grid.table
    names = next((i for i in range(len(table.head)) if i in table.right), 1) or 1
    for number, row in enumerate(table.rows):
        first = ", ".join(row[:names])
        for line in _filled(first, width):
            yield [(line, table.marks.get(row[0], "bold"))]
        yield from _pairs(grid, number, names, width)


def _pairs(grid: _CellGrid, number: int, names: int, width: int) -> Iterator[Line]:
    table, row = grid.table, grid.table.rows[number]
    line: list[Span] = []
    used = 0
    for column in range(names, len(row)):
        if not row[column]:
            continue
        name = f"{table.head[column]} " if table.head[column] else ""
        drawn = [*_bar(table.bars[column][number], grid.bar, "cyan"), (" ", "")] if grid.extra(column) else []
        size = _cells(name) + grid.extra(column) + _cells(row[column])
        if line and used + 3 + size > width:
            yield line
            line, used = [], 0
        line += [(" · " if line else "  ", "dim"), (name, "dim"), *drawn]
        used = (used + 3 if used else 2) + _cells(name) + grid.extra(column)
        style = table.marks.get(row[column], "")
        first, *rest = _filled(row[column], max(1, width - used), width - 4)
        line.append((first, style))
        used += _cells(first)
        for more in rest:
            yield line
            line, used = [("    ", ""), (more, style)], 4 + _cells(more)
    if line:
        yield line
