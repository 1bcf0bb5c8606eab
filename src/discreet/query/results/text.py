"""A table of answers as people read it: plain text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from discreet.mechanisms.text import decimal, decimal_up, places_for, plain

if TYPE_CHECKING:
    from discreet.query.results.columns import AnswerColumn, Cell
    from discreet.query.results.table import ReleaseTable

__all__ = ["cell_text", "html", "shown", "text"]

_SHOWN = 30  # Rows; the rest is counted.
_LONGEST = 60  # Characters of a cell.


def cell_text(cell: Cell) -> str:
    """Write a value with its error."""
    if not isinstance(cell.value, (int, Fraction)) or isinstance(cell.value, bool):
        return _word(cell.value)
    if cell.plus_minus is None:
        return plain(cell.value)
    places = places_for(cell.plus_minus, Fraction(cell.value))
    return f"{decimal(cell.value, places)} ± {decimal_up(cell.plus_minus, places)}"


def shown(column: AnswerColumn, row: int) -> str:
    """Write a value of a column; keys as they are: 2020 is a year, not 2,020."""
    cell = column[row]
    whole = isinstance(cell.value, int) and not column.measured
    return _word(cell.value) if whole else cell_text(cell)


def _word(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    written = value.isoformat() if isinstance(value, date) else str(value)
    return written if len(written) <= _LONGEST else written[: _LONGEST - 1] + "…"


def text(table: ReleaseTable) -> str:
    """Write a table with aligned columns, then what was spent and the notes."""
    cells = [[shown(column, row) for column in table.columns] for row in range(min(len(table), _SHOWN))]
    lines = _aligned([column.name for column in table.columns], cells, [_is_left(column) for column in table.columns])
    more = [f"… {len(table) - _SHOWN:,} more rows"] if len(table) > _SHOWN else []
    return "\n".join([*lines, *more, _footer(table), *(f"· {note}" for note in _remarks(table))])


def _is_left(column: AnswerColumn) -> bool:
    return not column.measured


def _aligned(names: Sequence[str], cells: list[list[str]], left: list[bool]) -> list[str]:
    widths = [max(len(_printable(name)), *(len(row[i]) for row in cells), 1) for i, name in enumerate(names)]
    rows = [[_printable(name) for name in names], ["─" * width for width in widths], *cells]
    return [
        "  ".join(
            _printable(cell).ljust(width) if to_left else _printable(cell).rjust(width)
            for cell, width, to_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in rows
    ]


def _printable(word: str) -> str:
    """Replace what would break a line or steer a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in word)


def _footer(table: ReleaseTable) -> str:
    sure = f"± at {plain(table.confidence * 100)} %, " if any(column.has_interval for column in table.columns) else ""
    return f"{sure}{table.cost}, {table.relation.value}"


def _remarks(table: ReleaseTable) -> list[str]:
    reasons = [f"{column.name}: no ±: {column.no_interval}" for column in table.columns if column.no_interval]
    return [*reasons, *table.notes]


def html(table: ReleaseTable) -> str:
    """Write a table for notebooks; every name and value is escaped."""
    head = "".join(f"<th>{escape(column.name)}</th>" for column in table.columns)
    rows = "".join(_html_row(table, row) for row in range(min(len(table), _SHOWN)))
    more = f"<p>… {len(table) - _SHOWN:,} more rows</p>" if len(table) > _SHOWN else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in _remarks(table))
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
        f"<small>{escape(_footer(table))}</small><ul>{notes}</ul>"
    )


def _html_row(table: ReleaseTable, row: int) -> str:
    cells = "".join(
        f'<td style="text-align:{"left" if _is_left(column) else "right"}">{escape(shown(column, row))}</td>'
        for column in table.columns
    )
    return f"<tr>{cells}</tr>"
