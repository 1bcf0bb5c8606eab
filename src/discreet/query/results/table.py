"""The answer to a question: a table of private numbers, each with its error. Everything in it may be published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.results import stored
from discreet.query.results.columns import AnswerColumn, Cell
from discreet.query.results.text import html, text

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["ReleaseTable"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ReleaseTable:
    """Rows of released values.

    `table["n"]` is a column and `table[0]` a row by names. Counts and sums are unbiased for the rows that are counted;
    `tidy` moves them to where the exact answer surely is. An interval encloses the exact answer of the
    bounded data, one cell at a time.
    """

    columns: tuple[AnswerColumn, ...]
    rows_shown: int
    notes: tuple[str, ...]
    event: Event
    relation: Relation
    cost: str  # what was spent, in a few words
    confidence: Fraction
    is_tidy: bool = False

    def __len__(self) -> int:
        return self.rows_shown

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, which: int | str) -> Any:
        if isinstance(which, str):
            return self.column(which)
        row = which + len(self) if which < 0 else which
        if not 0 <= row < len(self):
            raise IndexError("the table has fewer rows")
        return {column.name: column[row] if column.measured else column[row].value for column in self.columns}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> AnswerColumn:
        """Return a column by its name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InvalidParameter(f"there is no column of this name; there are {', '.join(self.names)}")

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows by names: measured values as cells with ±, low and high, keys as they are."""
        return list(self)

    def single(self) -> Cell:
        """Return the one measured value of a table of one row."""
        measured = [column for column in self.columns if column.measured]
        if len(self) != 1 or len(measured) != 1:
            raise InvalidParameter("this table has more than one value, or none: name a row and a column")
        return measured[0][0]

    @property
    def tidy(self) -> ReleaseTable:
        """The same with values that could be exact answers: counts are whole and not negative. Free, but biased."""
        return replace(self, columns=tuple(column.tidied() for column in self.columns), is_tidy=True)

    def to_json(self) -> str:
        """Write everything exactly; `from_json` reads it back, and writes the same text again."""
        fields = {
            "rows": self.rows_shown,
            "notes": self.notes,
            "event": self.event,
            "relation": self.relation,
            "cost": self.cost,
            "confidence": self.confidence,
            "is_tidy": self.is_tidy,
        }
        return stored.packed(fields, self.columns)

    @classmethod
    def from_json(cls, written: str) -> ReleaseTable:
        """Read a table that `to_json` wrote."""
        fields, columns = stored.unpacked(written)
        rows = fields.pop("rows")
        if any(len(column) != rows for column in columns):
            raise InvalidParameter("this is no table that `to_json` wrote")
        return cls(columns=columns, rows_shown=rows, **fields)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; a measured column `n` comes with `n_plus_minus`, `n_low` and `n_high`."""
        from discreet.query.results.frames import to_arrow

        return to_arrow(self)

    def to_polars(self) -> pl.DataFrame:
        """Return the same as a polars data frame."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Return the same as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def plot(self, column: str | None = None, *, by: str | None = None, title: str | None = None) -> alt.LayerChart:
        """Draw a measured column with its error bars, by a key."""
        from discreet.query.results.plot import plot

        return plot(self, column, by=by, title=title)

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)
