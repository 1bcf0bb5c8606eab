"""The answer to a question: a table of private numbers, each with its error. Everything in it may be published."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import ratio
from discreet.formatting import csv_cell, plain, printable
from discreet.mechanisms.grid import compact
from discreet.privacy import events
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.answer_columns import AnswerColumn, Cell, ExactNumbers, Values, shown
from discreet.schema.columns import Kind, arrow_type

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from discreet.query.plan.kept_share import KeptShare

__all__ = [
    "DUMMY_NOTE",
    "FORMAT",
    "ReleaseTable",
    "arrow_value",
    "html",
    "packed",
    "plot",
    "summaries_of",
    "summary_at",
    "text",
    "to_arrow",
    "unpacked",
]

# --- stored_table: A table of answers as text: exact, and the same to the letter when it is written again. ---


FORMAT = 1
DUMMY_NOTE = "DUMMY: made-up rows, nothing was read or paid"  # the first note of a table that no data are in


def packed(fields: dict[str, Any], columns: tuple[AnswerColumn, ...]) -> str:
    """Write a table."""
    document = {
        "format": FORMAT,
        "columns": [_pack_column(column) for column in columns],
        "rows": fields["rows"],
        "notes": list(fields["notes"]),
        "event": json.loads(fields["event"].to_json()),
        "relation": fields["relation"].value,
        "cost": fields["cost"],
        "confidence": str(fields["confidence"]),
        "is_tidy": fields["is_tidy"],
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def unpacked(text: str) -> tuple[dict[str, Any], tuple[AnswerColumn, ...]]:
    """Read what `packed` wrote."""
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise InvalidParameter("this table was written by another version of the package")
        columns = tuple(_unpack_column(column) for column in document["columns"])
        fields = {
            "rows": int(document["rows"]),
            "notes": tuple(str(note) for note in document["notes"]),
            "event": events.from_json(json.dumps(document["event"])),
            "relation": Relation(document["relation"]),
            "cost": str(document["cost"]),
            "confidence": ratio(document["confidence"]),
            "is_tidy": bool(document["is_tidy"]),
        }
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidParameter("this is no table that `to_json` wrote") from None
    return fields, columns


def _pack_column(column: AnswerColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind.value,
        "values": _pack_values(column.values),
        "low": None if column.low is None else _pack_values(column.low),
        "high": None if column.high is None else _pack_values(column.high),
        "limits": [None if end is None else str(end) for end in column.limits],
        "grain": None if column.grain is None else str(column.grain),
        "no_interval": column.no_interval,
        "measured": column.measured,
    }


def _unpack_column(stored: dict[str, Any]) -> AnswerColumn:
    low, high = (None if end is None else ratio(end) for end in stored["limits"])
    return AnswerColumn(
        name=str(stored["name"]),
        kind=Kind(stored["kind"]),
        values=_unpack_values(stored["values"]),
        low=None if stored["low"] is None else _unpack_values(stored["low"]),
        high=None if stored["high"] is None else _unpack_values(stored["high"]),
        limits=(low, high),
        grain=None if stored["grain"] is None else ratio(stored["grain"]),
        no_interval=str(stored["no_interval"]),
        measured=bool(stored["measured"]),
    )


def _pack_values(values: Values) -> Any:
    if not isinstance(values, ExactNumbers):
        return [_pack(value) for value in values]
    under = None if values.under is None else values.under.tolist()
    return {"over": values.over.tolist(), "under": under, "step": str(values.step), "offset": str(values.offset)}


def _unpack_values(stored: Any) -> Values:
    if isinstance(stored, list):
        return tuple(_unpack(value) for value in stored)
    under = None if stored["under"] is None else _integers(stored["under"])
    return ExactNumbers(_integers(stored["over"]), under, ratio(stored["step"]), ratio(stored["offset"]))


def _integers(values: list[int]) -> np.ndarray[Any, Any]:
    return compact(np.array([int(value) for value in values], dtype=object))


def _pack(value: Hashable) -> Any:
    """Write a value as JSON has it, or under a letter that tells its kind."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        return {"f": str(value)}
    if isinstance(value, datetime):
        return {"t": value.isoformat()}
    if isinstance(value, date):
        return {"d": value.isoformat()}
    if isinstance(value, float):
        return {"r": value.hex()}
    raise InvalidParameter(f"a table cannot hold a {type(value).__name__}")


def _unpack(stored: Any) -> Hashable:
    match stored:
        case {"f": str(written)}:
            return ratio(written)
        case {"t": str(written)}:
            return datetime.fromisoformat(written)
        case {"d": str(written)}:
            return date.fromisoformat(written)
        case {"r": str(written)}:
            return float.fromhex(written)
        case None | bool() | int() | str():
            return stored
    raise ValueError


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ReleaseTable:
    """Rows of released values.

    `table["n"]` is a column and `table[0]` a row by names. Counts and sums are right on average for the counted
    rows; `tidy` moves them to where the exact answer surely is. An interval encloses the exact answer of the
    bounded data, one cell at a time; of means and quantiles that were asked for with `population`, that of what the
    counted rows were drawn from, if they were drawn independently of each other.

    Args:
        columns: The columns, with intervals where something was measured.
        rows_shown: How many rows there are.
        notes: What a reader should know.
        event: What was spent; of a table whose noise a family shares, what it tells by itself.
        relation: The neighbouring relation.
        cost: What was spent, in a few words.
        confidence: The confidence of every interval.
        is_tidy: Whether values were moved to where the exact answer surely is.
        kept: How much contribution limits leave out, where that was measured.

    Examples:
        >>> import pyarrow as pa
        >>> session = dp.Session(
        ...     pa.table({"city": ["A", "B"] * 500, "age": [30, 50] * 500}),
        ...     unit="row",
        ...     budget=dp.Budget(epsilon=4, delta=1e-6),
        ...     columns={"city": dp.categories(["A", "B"]), "age": dp.between(0, 120, whole=True)},
        ...     ledger="memory",
        ...     dataset="people",
        ...     principal="ana",
        ... )
        >>> table = session.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city", epsilon=1).release()
        >>> table.names, len(table["n"])
        (('city', 'n'), 2)
        >>> session.close()
    """

    columns: tuple[AnswerColumn, ...]
    rows_shown: int
    notes: tuple[str, ...]
    event: Event
    relation: Relation
    cost: str  # what was spent, in a few words
    confidence: Fraction
    is_tidy: bool = False
    kept: KeptShare | None = None  # how much the limits leave out, where that was measured; its notes say it too

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

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows by names: measured values as cells with ±, low and high, keys as they are."""
        return list(self)

    def sort_by(self, name: str, *, descending: bool = False) -> ReleaseTable:
        """Return the same rows in the order of a column, what has no value last. Free: nothing is read again."""
        column = self.column(name)
        values = [column[row].value for row in range(len(self))]
        told = sorted((row for row, one in enumerate(values) if one is not None), key=values.__getitem__)
        order = [*(reversed(told) if descending else told), *(row for row, one in enumerate(values) if one is None)]
        rows = np.array(order, dtype=np.int64)
        return replace(self, columns=tuple(one.take(rows) for one in self.columns))

    def single(self) -> Cell:
        """Return the one measured value of a table of one row."""
        measured = [column for column in self.columns if column.measured]
        if len(self) != 1 or len(measured) != 1:
            raise InvalidParameter("this table has more than one value, or none: name a row and a column")
        return measured[0][0]

    @property
    def estimate(self) -> Any:
        """The one measured value of a table of one row, in plain numbers."""
        return self.single().estimate

    def __float__(self) -> float:
        return float(self._only())

    def __int__(self) -> int:
        return int(self._only())

    def _only(self) -> Cell:
        """Return the one value, or raise what Python raises where something is no number."""
        try:
            return self.single()
        except InvalidParameter as several:
            raise TypeError(str(several)) from None

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
        return packed(fields, self.columns)

    @classmethod
    def from_json(cls, written: str) -> ReleaseTable:
        """Read a table that `to_json` wrote."""
        fields, columns = unpacked(written)
        rows = fields.pop("rows")
        if any(len(column) != rows for column in columns):
            raise InvalidParameter("this is no table that `to_json` wrote")
        return cls(columns=columns, rows_shown=rows, **fields)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; a measured column `n` comes with `n_plus_minus`, `n_low` and `n_high`."""
        return to_arrow(self)

    def to_polars(self) -> pl.DataFrame:
        """Return the same as a polars data frame."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Return the same as a pandas data frame; that of a dummy says so in `attrs`."""
        frame = self.to_arrow().to_pandas()
        if _is_dummy(self):
            frame.attrs["warning"] = DUMMY_NOTE
        return frame

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of `to_arrow` as lists of Python values, by name."""
        return dict(self.to_arrow().to_pydict())

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the columns of `to_arrow` as CSV, and write it if there is a path; spreadsheets see no formulas.

        A dummy has one column more, which says so in every row.
        """
        named = self.to_dict() | ({"DUMMY": [DUMMY_NOTE] * len(self)} if _is_dummy(self) else {})
        lines = [[csv_cell(name) for name in named], *(map(csv_cell, row) for row in zip(*named.values(), strict=True))]
        written = "".join(",".join(line) + "\n" for line in lines)
        if path is not None:
            Path(path).write_text(written, encoding="utf-8", newline="")
        return written

    def plot(self, column: str | None = None, *, by: str | None = None, title: str | None = None) -> alt.LayerChart:
        """Draw a measured column with its error bars, by a key; or a five-number summary as box plots, by its name."""
        return plot(self, column, by=by, title=title)

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


# --- text: A table of answers as people read it: plain text and HTML. ---


_SHOWN = 30  # Rows; the rest is counted.


def text(table: ReleaseTable) -> str:
    """Write a table with aligned columns, then what was spent and the notes."""
    cells = [[shown(column, row) for column in table.columns] for row in range(min(len(table), _SHOWN))]
    lines = _aligned([column.name for column in table.columns], cells, [_is_left(column) for column in table.columns])
    more = [f"… {len(table) - _SHOWN:,} more rows"] if len(table) > _SHOWN else []
    return "\n".join([*_warning(table), *lines, *more, _footer(table), *(f"· {note}" for note in _remarks(table))])


def _is_dummy(table: ReleaseTable) -> bool:
    """Whether it was made of made-up rows, to show what an answer looks like."""
    return DUMMY_NOTE in table.notes


def _warning(table: ReleaseTable) -> list[str]:
    return [DUMMY_NOTE] if _is_dummy(table) else []


def _is_left(column: AnswerColumn) -> bool:
    return not column.measured


def _aligned(names: Sequence[str], cells: list[list[str]], left: list[bool]) -> list[str]:
    widths = [max(len(printable(name)), *(len(row[i]) for row in cells), 1) for i, name in enumerate(names)]
    rows = [[printable(name) for name in names], ["─" * width for width in widths], *cells]
    return [
        "  ".join(
            printable(cell).ljust(width) if to_left else printable(cell).rjust(width)
            for cell, width, to_left in zip(row, widths, left, strict=True)
        ).rstrip()
        for row in rows
    ]


def _footer(table: ReleaseTable) -> str:
    sure = f"± at {plain(table.confidence * 100)} %, " if any(column.has_interval for column in table.columns) else ""
    return f"{sure}{table.cost}, {table.relation.value}"


def _remarks(table: ReleaseTable) -> list[str]:
    reasons: dict[str, list[str]] = {}  # Quantiles that were chosen together have one.
    for column in table.columns:
        if column.no_interval:
            reasons.setdefault(column.no_interval, []).append(column.name)
    told = [f"{', '.join(names)}: no ±: {reason}" for reason, names in reasons.items()]
    return [*told, *(note for note in table.notes if note != DUMMY_NOTE)]


def html(table: ReleaseTable) -> str:
    """Write a table for notebooks; every name and value is escaped."""
    from discreet.pages import kit

    rows = ([shown(column, row) for column in table.columns] for row in range(min(len(table), _SHOWN)))
    right = [not _is_left(column) for column in table.columns]
    told = kit.grid(rows, [column.name for column in table.columns], right=right, sorts=True)
    more = f"<p>… {len(table) - _SHOWN:,} more rows</p>" if len(table) > _SHOWN else ""
    warning = "".join(f"<p><strong>{kit.words(one)}</strong></p>" for one in _warning(table))
    return (
        f"{warning}{told}{more}{_drawn(table)}<small>{kit.words(_footer(table))}</small>{kit.bullets(_remarks(table))}"
    )


def _drawn(table: ReleaseTable) -> str:
    """Draw the first column that has intervals, with its error bars; nothing if there are too few or too many rows."""
    from discreet.pages import svg

    column = next((one for one in table.columns if one.measured and one.has_interval and one.kind.is_number), None)
    if column is None or not 1 < len(table) <= _SHOWN:
        return ""
    labels = _labels(table, None)
    told = [row for row in range(len(table)) if column[row].value is not None]
    found = [(labels[row], column[row].value, column.ends(row)) for row in told]
    try:
        rows = [(name, float(value), float(ends[0]), float(ends[1])) for name, value, ends in found if ends]
    except OverflowError:  # A sum beyond what a float holds is told in figures only.
        return ""
    return f"<div>{svg.error_bars(rows, across=column.name)}</div>" if rows else ""


# --- plot: A picture of a table: measured values with their error bars. ---


_MOST = 60  # Groups in a picture; more cannot be read.
_FIVE = ("_q05", "_q25", "_q50", "_q75", "_q95")  # How names of a five-number summary end.


def plot(table: ReleaseTable, name: str | None, *, by: str | None, title: str | None) -> alt.LayerChart:
    """Draw one measured column; rows are named by the keys, or by one of them."""
    from discreet import plots

    if not 0 < len(table) <= _MOST:
        raise InvalidParameter(f"a picture shows from 1 to {_MOST} rows: use ORDER BY and LIMIT, or export the table")
    summaries = summaries_of(table)
    if name in summaries or (name is None and summaries and not any(one.has_interval for one in table.columns)):
        return _boxes(table, name or next(iter(summaries)), by=by, title=title)
    column = _measured(table, name)
    told = [row for row in range(len(column)) if column[row].value is not None]
    if not told:
        raise InvalidParameter("no row of this column has a value to draw: the groups may all be empty")
    values = [float(column[row].value) for row in told]
    # As measured: an interval that is cut at 0 would not hold the point of a count below it.
    ends = [column.ends(row) or (value, value) for row, value in zip(told, values, strict=True)]
    labels = _labels(table, by)
    if _is_dummy(table):
        title = DUMMY_NOTE if title is None else f"{title} ({DUMMY_NOTE})"
    return plots.error_bars(
        [labels[row] for row in told],
        values,
        [float(low) for low, _ in ends],
        [float(high) for _, high in ends],
        across=column.name,
        title=title,
        by=", ".join(key.name for key in _keys(table, by)) or None,
        from_zero=column.kind is Kind.INTEGER and column.limits[0] == 0,
    )


def summaries_of(table: ReleaseTable) -> dict[str, tuple[AnswerColumn, ...]]:
    """Return the columns of five-number summaries of numbers by the name before _q05 to _q95, as SQL names them."""
    named = {column.name: column for column in table.columns if column.measured}
    stems = [name.removesuffix(_FIVE[0]) for name in named if name.endswith(_FIVE[0])]
    found = {stem: tuple(named[stem + end] for end in _FIVE) for stem in stems if all(stem + e in named for e in _FIVE)}
    return {stem: five for stem, five in found.items() if all(one.kind.is_number for one in five) and stem not in named}


def summary_at(five: tuple[AnswerColumn, ...], row: int) -> tuple[float, ...] | None:
    """Return five numbers; None where they are NULL, or not in order, as columns that are only named so may be."""
    values = [column[row].value for column in five]
    if not all(isinstance(value, (int, Fraction)) for value in values) or values != sorted(values):
        return None
    return tuple(float(value) for value in values)


def _boxes(table: ReleaseTable, name: str, *, by: str | None, title: str | None) -> alt.LayerChart:
    from discreet import plots

    five, labels = summaries_of(table)[name], _labels(table, by)
    told = [(labels[row], found) for row in range(len(table)) if (found := summary_at(five, row)) is not None]
    if not told:
        raise InvalidParameter("no row of these columns has values to draw: the groups may all be empty")
    if _is_dummy(table):
        title = DUMMY_NOTE if title is None else f"{title} ({DUMMY_NOTE})"
    keys = ", ".join(key.name for key in _keys(table, by)) or None
    named, summaries = zip(*told, strict=True)
    return plots.boxes(named, summaries, across=name, title=title, by=keys)


def _measured(table: ReleaseTable, name: str | None) -> AnswerColumn:
    if name is not None:
        return table.column(name)
    for column in table.columns:
        if column.measured and column.has_interval:
            return column
    raise InvalidParameter("no column of this table has error bars: name the one to draw")


def _labels(table: ReleaseTable, by: str | None) -> list[str]:
    keys = _keys(table, by)
    return [", ".join(shown(key, row) for key in keys) or "all" for row in range(len(table))]


def _keys(table: ReleaseTable, by: str | None) -> list[AnswerColumn]:
    return [table.column(by)] if by is not None else [column for column in table.columns if not column.measured]


# --- frames: Tables of answers for other programs: Arrow, and through it polars and pandas. ---


Series: TypeAlias = Values | tuple[Any, ...] | NDArray[Any]
_LARGEST = (1 << 63) - 1


def to_arrow(table: ReleaseTable) -> pa.Table:
    """Return an Arrow table; types follow from the question, never from the values that came out.

    Exact fractions become the nearest floats here, and whole numbers stay whole.
    """
    import pyarrow as pa

    arrays: list[Any] = []
    names: list[str] = []
    for name, kind, values in _series(table):
        arrays.append(_array(values, kind))
        names.append(_unused(name, names))
    made = pa.Table.from_arrays(arrays, names=names)
    return made.replace_schema_metadata({"warning": DUMMY_NOTE}) if _is_dummy(table) else made


def _series(table: ReleaseTable) -> Iterator[tuple[str, Kind, Series]]:
    for column in table.columns:
        yield column.name, column.kind, column.values
        if column.has_interval:
            kind, reach, low, high = _errors(column)
            yield f"{column.name}_plus_minus", kind, reach
            yield f"{column.name}_low", kind, low
            yield f"{column.name}_high", kind, high


def _errors(column: AnswerColumn) -> tuple[Kind, Series, Series, Series]:
    """Return ±, low and high: at once where all are numbers in arrays, else cell by cell."""
    parts = (column.values, column.low, column.high)
    listed = [part for part in parts if isinstance(part, ExactNumbers)]
    if len(listed) < len(parts):
        cells = [column[row] for row in range(len(column))]
        ends = tuple(c.plus_minus for c in cells), tuple(c.low for c in cells), tuple(c.high for c in cells)
        return Kind.REAL, *ends
    whole = [found for part in listed if (found := part.integers()) is not None]
    kind = Kind.INTEGER if len(whole) == len(listed) else Kind.REAL
    values, low, high = whole if kind is Kind.INTEGER else [part.floats() for part in listed]
    return kind, np.maximum(high - values, values - low), _inside(low, column.limits), _inside(high, column.limits)


def _inside(ends: NDArray[Any], limits: tuple[Fraction | None, Fraction | None]) -> NDArray[Any]:
    least, most = (None if limit is None else ends.dtype.type(limit) for limit in limits)
    return ends if least is most is None else np.clip(ends, least, most)


def _unused(name: str, names: list[str]) -> str:
    while name in names:
        name += "_"
    return name


def _array(values: Series, kind: Kind) -> pa.Array:
    import pyarrow as pa

    array = _numbers(values, kind) if isinstance(values, ExactNumbers) else values
    if isinstance(array, np.ndarray):
        return pa.array(array, type=arrow_type(kind))
    return pa.array([None if value is None else arrow_value(value, kind) for value in array], type=arrow_type(kind))


def _numbers(values: ExactNumbers, kind: Kind) -> NDArray[Any] | tuple[Any, ...]:
    if kind is not Kind.INTEGER:
        return values.floats()
    whole = values.integers()
    return tuple(values[row] for row in range(len(values))) if whole is None else whole


def arrow_value(value: Any, kind: Kind) -> Any:
    """Return an answer as Arrow takes it; a noisy whole number beyond 64 bits is the nearest that fits."""
    match kind:
        case Kind.INTEGER:
            return min(max(round(value), -_LARGEST), _LARGEST)
        case Kind.REAL:
            return float(value)
        case Kind.TEXT | Kind.UNDECLARED | Kind.IDENTITY:
            return str(value)
        case Kind.BOOLEAN | Kind.DATE | Kind.TIMESTAMP:
            return value
