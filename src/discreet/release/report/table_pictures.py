"""Every table with its picture: one row a group, a bar, an interval, and the tidy value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from discreet.formatting import decimal, places_for, plain
from discreet.plots import Scale, ruler, scale_for, strip
from discreet.query import AnswerColumn, ReleaseTable
from discreet.query.results.release_table import shown
from discreet.release.bundle.dictionary import ColumnMeaning, meanings_of
from discreet.release.bundle.file_names import table_file
from discreet.release.bundle.wording import confidence_words
from discreet.release.published import Published, PublishedTable
from discreet.release.report.page_style import code, paragraph, section, words

__all__ = ["tables_part"]

_MOST = 20  # Rows of a picture; the files have all of them.
_MOST_COLUMNS = 4  # Measured columns of a table that are drawn.


def tables_part(published: Published) -> str:
    """Write the section of all tables."""
    listed = "".join(
        f'<li><a href="#table-{number}">{words(table.plan.title)}</a></li>'
        for number, table in enumerate(published.tables, 1)
    )
    contents = f'<nav aria-label="Tables"><ul>{listed}</ul></nav>' if len(published.tables) > 1 else ""
    each = (_table(published, table, number) for number, table in enumerate(published.tables, 1))
    return section("tables", "The tables", [contents, _legend(published), *each])


def _legend(published: Published) -> str:
    """Explain the picture once."""
    scale = Scale(0.0, 10.0)
    samples = [
        (strip(scale, 7.0, grid=False), "released value"),
        (
            strip(scale, 0.0, low=2.5, high=8.5, grid=False),
            f"interval: holds the exact value of the counted rows {confidence_words(published)} of the time",
        ),
    ]
    if published.plan.output.tidy and any(table.tidy is not None for table in published.tables):
        samples.append((strip(scale, 0.0, mark=5.0, grid=False), "tidy value"))
    small = [(drawn.replace('width="100%"', 'width="44"', 1), told) for drawn, told in samples]
    return '<p class="key-to note">' + "".join(f"<i>{drawn}{words(told)}</i>" for drawn, told in small) + "</p>"


def _table(published: Published, table: PublishedTable, number: int) -> str:
    meanings = meanings_of(published.plan, table.plan)
    measured = [column for column in table.raw.columns if column.measured][:_MOST_COLUMNS]
    tidy = table.tidy if published.plan.output.tidy else None
    drawn = (_column(table.raw, tidy, column, meanings.get(column.name)) for column in measured)
    hidden = [paragraph(f"Hidden groups: {table.threshold}.", kind="note")] if table.threshold else []
    parts = [*drawn, *hidden, _where(published, table)]
    return f'<article id="table-{number}"><h3>{words(table.plan.title)}</h3>{"".join(parts)}</article>'


def _where(published: Published, table: PublishedTable) -> str:
    """Say in which files the whole table is."""
    dummy, form = published.ledger is None, published.plan.output.formats[0]
    raw = table_file(table.plan.name, form, tidy=False, dummy=dummy)
    files = [f'raw values <a href="{words(raw)}">{words(raw)}</a>']
    if published.plan.output.tidy and table.tidy is not None:
        tidy = table_file(table.plan.name, form, tidy=True, dummy=dummy)
        files.append(f'tidy values <a href="{words(tidy)}">{words(tidy)}</a>')
    rows = "The row is" if len(table.raw) == 1 else f"All {len(table.raw):,} rows are"
    more = f"The first {_MOST} rows are shown; the rest is in the files. " if len(table.raw) > _MOST else ""
    return f'<p class="note">{more}{rows} in: {", ".join(files)}. Table {code(table.plan.name)}.</p>'


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    first: Any  # the first of several keys, by which rows are grouped
    group: str
    label: str
    value: float | None
    low: float | None
    high: float | None
    tidy: float | None
    text: str
    tidy_text: str


def _column(table: ReleaseTable, tidy: ReleaseTable | None, column: AnswerColumn, meaning: ColumnMeaning | None) -> str:
    """Draw one measured column."""
    rows = [_row(table, tidy, column, row) for row in range(min(len(table), _MOST))]
    numbers = [n for row in rows for n in (row.value, row.low, row.high, row.tidy) if n is not None]
    scale = scale_for(numbers) if numbers else None
    means = "" if meaning is None or meaning.words == column.name else f": {words(meaning.words)}"
    why = f" No interval: {words(column.no_interval)}." if column.no_interval else ""
    caption = f"<caption><b>{words(column.name)}</b>{means}.{why}</caption>"
    last = '<th class="number tidy">tidy</th>' if tidy is not None else ""
    head = (
        f'<thead><tr><th class="key">{words(_keys(table))}</th><th class="drawn"></th>'
        f'<th class="number">released</th>{last}</tr></thead>'
    )
    body = "".join(_rows(rows, scale, tidy=tidy is not None))
    return f'<table class="chart">{caption}{head}<tbody>{body}</tbody></table>'


def _keys(table: ReleaseTable) -> str:
    return ", ".join(column.name for column in table.columns if not column.measured)


def _row(table: ReleaseTable, tidy: ReleaseTable | None, column: AnswerColumn, row: int) -> _Row:
    keys = [shown(key, row) for key in table.columns if not key.measured]
    cell, tidied = column[row], None if tidy is None else tidy.column(column.name)
    return _Row(
        first=next((key[row].value for key in table.columns if not key.measured), None),
        group=keys[0] if len(keys) > 1 else "",
        label=", ".join(keys[1:] if len(keys) > 1 else keys) or "all rows",
        value=_number(cell.value),
        low=_number(cell.low),
        high=_number(cell.high),
        tidy=None if tidied is None else _number(tidied[row].value),
        text=shown(column, row),
        tidy_text="" if tidied is None else _plain(tidied, row, cell.plus_minus),
    )


def _plain(column: AnswerColumn, row: int, error: Fraction | None) -> str:
    """Write a tidy value with as many decimals as the raw one beside it."""
    value = column[row].value
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        return shown(column, row)
    return plain(value) if error is None else decimal(value, places_for(error, Fraction(value)))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, Fraction)) and not isinstance(value, bool) else None


def _rows(rows: list[_Row], scale: Scale | None, *, tidy: bool) -> Iterator[str]:
    before: Any = object()  # Nothing is equal to it, not even a missing key.
    for row in rows:
        if row.group and row.first != before:
            yield f'<tr><th class="group" colspan="4" scope="rowgroup">{words(row.group)}</th></tr>'
        before = row.first
        last = f'<td class="number tidy">{words(row.tidy_text)}</td>' if tidy else ""
        yield (
            f'<tr><th class="key" scope="row">{words(row.label)}</th><td class="drawn">{_strip(row, scale)}</td>'
            f'<td class="number">{words(row.text)}</td>{last}</tr>'
        )
    if scale is not None:
        yield f'<tr class="ruler" aria-hidden="true"><td></td><td class="drawn">{ruler(scale)}</td></tr>'


def _strip(row: _Row, scale: Scale | None) -> str:
    if row.value is None or scale is None:
        return ""
    return strip(scale, row.value, low=row.low, high=row.high, mark=row.tidy)
