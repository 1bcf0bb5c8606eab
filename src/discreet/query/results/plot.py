"""A picture of a table: measured values with their error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import InvalidParameter
from discreet.query.results.columns import AnswerColumn
from discreet.query.results.text import shown

if TYPE_CHECKING:
    import altair as alt

    from discreet.query.results.table import ReleaseTable

__all__ = ["plot"]

_MOST = 60  # Groups in a picture; more cannot be read.


def plot(table: ReleaseTable, name: str | None, *, by: str | None, title: str | None) -> alt.LayerChart:
    """Draw one measured column; rows are named by the keys, or by one of them."""
    from discreet import plots

    column = _measured(table, name)
    if not 0 < len(table) <= _MOST:
        raise InvalidParameter(f"a picture shows from 1 to {_MOST} rows: use ORDER BY and LIMIT, or export the table")
    cells = [column[row] for row in range(len(column))]
    values = [float(cell.value) for cell in cells]
    lows = [value if cell.low is None else float(cell.low) for value, cell in zip(values, cells, strict=True)]
    highs = [value if cell.high is None else float(cell.high) for value, cell in zip(values, cells, strict=True)]
    return plots.error_bars(_labels(table, by), values, lows, highs, across=column.name, title=title)


def _measured(table: ReleaseTable, name: str | None) -> AnswerColumn:
    if name is not None:
        return table.column(name)
    for column in table.columns:
        if column.measured and column.has_interval:
            return column
    raise InvalidParameter("no column of this table has error bars: name the one to draw")


def _labels(table: ReleaseTable, by: str | None) -> list[str]:
    keys = [table.column(by)] if by is not None else [column for column in table.columns if not column.measured]
    return [", ".join(shown(key, row) for key in keys) or "all" for row in range(len(table))]
