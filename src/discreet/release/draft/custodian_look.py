"""The custodian's own look at a file: exact, and for nobody else. What comes out is only ever inside `NotPrivate`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.release.round_numbers import outwards
from discreet.schema.columns import Kind
from discreet.schema.csv_file import CsvFile

__all__ = [
    "FEWEST",
    "Bounds",
    "Declaration",
    "FileLook",
    "Proposal",
    "SeenColumn",
    "SeenUnit",
    "by_name",
    "declaration",
    "limit",
    "looking",
    "names_amount",
    "names_code",
    "shows_rows",
    "shows_same_rows",
    "unit_why",
]

FEWEST = 20  # How many units must share what is proposed.
_LISTED = 60  # Distinct values up to which they are looked at one by one.
_LISTED_CODES = 1_000  # The same of texts of digits with leading zeros, which name areas or kinds, and nobody.
MOST_CODES = 25  # Distinct whole numbers up to which they are taken for codes.
_MOSTLY_DIFFERENT = 0.95  # The part of values that differ in a column that numbers rows.
_MOSTLY = 0.99  # The part of texts that must be numbers or dates to be read so.
_TOO_MANY = 0.95  # The part of units that a limit should leave whole.
_STORED = {Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE", Kind.DATE: "DATE", Kind.TIMESTAMP: "TIMESTAMP"}
_MEMORY = 3 << 30
_UNREADABLE = "the file cannot be read: check that it is whole, and what its name says"
Bounds: TypeAlias = tuple[int | float | date | datetime, int | float | date | datetime]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeenColumn:
    """What a column holds, exactly. `bounds` are values that at least 20 units lie at or beyond, None if there are
    too few; `common` are the values that at least 20 units have, if all values are few."""

    name: str
    kind: Kind  # as it could be read: a text of digits is a number
    present: int
    distinct: int
    bounds: Bounds | None
    common: tuple[Any, ...] | None
    rare: int  # how many other values there are
    covers: bool = (
        True  # whether nearly all rows have one of the common values: tables of a family leave out the others
    )
    zeros: bool = False  # whether it is texts of digits with leading zeros, which a number would lose

    @property
    def is_whole(self) -> bool:
        """Whether its values are few and whole, however they are stored: pandas writes 1.0 where one is missing."""
        few = self.kind.is_number and bool(self.common) and self.distinct <= MOST_CODES
        return few and all(value == int(value) for value in self.common or ())

    @property
    def is_sequence(self) -> bool:
        """Whether it numbers rows: whole, nearly all different, and dense."""
        if self.kind is not Kind.INTEGER or self.bounds is None or self.distinct < _MOSTLY_DIFFERENT * self.present:
            return False
        low, high = (int(end) for end in self.bounds if isinstance(end, (int, float)))
        return high - low <= 2 * self.distinct


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeenUnit:
    """What it would mean to protect everybody who shares a value of a column."""

    column: str
    units: int
    missing: int  # rows without a value, which would be left out
    usual: int  # rows that most units do not exceed
    most: int


@final
@dataclass(frozen=True, slots=True)
class FileLook:
    """A file that is open for looking."""

    connection: Any
    types: Mapping[str, str]
    told: Callable[[str], None] = field(default=lambda stage: None)  # what is done now, for the custodian's terminal
    known: dict[str, tuple[int, int]] = field(default_factory=dict)  # what `distinct` found
    csv: CsvFile | None = None

    @property
    def rows(self) -> int:
        return int(self._one("SELECT count(*) FROM data")[0])

    def distinct(self, column: str) -> tuple[int, int]:
        """Return how many distinct values a column has, and how many that are there at all."""
        if column not in self.known:
            place = f"{list(self.types).index(column) + 1} of {len(self.types)}"
            self.told(f"counting values, column {place}: {column}")
            name = _quoted(column)
            many, present = self._one(f"SELECT count(DISTINCT {name}), count({name}) FROM data")
            self.known[column] = int(many), int(present)
        return self.known[column]

    def unit(self, column: str) -> SeenUnit:
        """Look at how many rows each value of a column has."""
        name = _quoted(column)
        units, usual, most = self._one(
            f"SELECT count(*), quantile_disc(n, {_TOO_MANY}), max(n) FROM "
            f"(SELECT count(*) AS n FROM data WHERE {name} IS NOT NULL GROUP BY {name})"
        )
        (missing,) = self._one(f"SELECT count(*) - count({name}) FROM data")
        return SeenUnit(
            column=column, units=int(units), missing=int(missing), usual=int(usual or 1), most=int(most or 1)
        )

    def shares(self, unit: str, columns: Sequence[str]) -> tuple[int, int]:
        """Return in how many groups of these columns most units are, and with how many rows in each."""
        self.told(f"rows of each {unit} by {', '.join(columns)}" if columns else f"rows of each {unit}")
        groups, rows = self._one(
            f"WITH cells AS MATERIALIZED ({_cells(unit, columns)}) SELECT "
            f"(SELECT quantile_disc(g, {_TOO_MANY}) FROM (SELECT count(*) AS g FROM cells GROUP BY u)), "
            f"(SELECT quantile_disc(n, {_TOO_MANY}) FROM cells)"
        )
        return int(groups or 1), int(rows or 1)

    def counted(self, unit: str, columns: Sequence[str], limits: tuple[int, int]) -> float:
        """Return which part of the rows is counted in groups of these columns within limits, on average."""
        groups, rows = limits
        (share,) = self._one(
            f"SELECT sum(s * least(1.0, {groups} / g)) / sum(n) FROM (SELECT count(*) AS g, sum(n) AS n, "
            f"sum(least(n, {rows})) AS s FROM ({_cells(unit, columns)}) GROUP BY u)"
        )
        return float(share or 1)

    def column(self, name: str, unit: str) -> SeenColumn:
        """Look at one column, as what most of its values can be read."""
        from discreet.query.engines.clamped_columns import kind_of

        kind = kind_of(self.types[name]) or Kind.TEXT
        distinct, present = self.distinct(name)
        self.told(f"looking at column {list(self.types).index(name) + 1} of {len(self.types)}: {name}")
        value, zeros = _quoted(name), False
        if kind is Kind.TEXT:
            kind, value, zeros = self._read_as(name, present)
        owner = None if unit == "row" else _quoted(unit)
        common, rare, listed = self._common(value, owner, distinct, _LISTED_CODES if zeros else _LISTED)
        bounds = self._bounds(value, owner, kind) if kind.is_number or kind.is_time else None
        return SeenColumn(
            name=name,
            kind=kind,
            present=present,
            distinct=distinct,
            bounds=bounds,
            common=common,
            rare=rare,
            covers=listed >= _MOSTLY * self.rows,
            zeros=zeros,
        )

    def _read_as(self, name: str, present: int) -> tuple[Kind, str, bool]:
        """Find the narrowest kind as which nearly all texts can be read, and whether digits have leading zeros."""
        from discreet.query.engines.sql_writer import Writer
        from discreet.query.functions.casts import write_cast

        value, (day, moment) = _quoted(name), self._times(name)
        number = self._number(value)
        whole = f"CASE WHEN regexp_full_match({number}, '[-+]?[0-9]{{1,18}}') THEN {number}::BIGINT END"
        zeros = f"CASE WHEN regexp_full_match({value}, '0[0-9]+') THEN 1 END"
        digits, padded = self._one(f"SELECT count({whole}), count({zeros}) FROM data")
        if present and digits >= _MOSTLY * present:
            return (Kind.TEXT, value, True) if padded >= FEWEST else (Kind.INTEGER, whole, False)
        # A session reads texts by the same casts.
        tried = (
            (Kind.REAL, write_cast(number, Kind.TEXT, Kind.REAL, Writer())),
            (Kind.DATE, day),
            (Kind.TIMESTAMP, moment),
        )
        counts = self._one(f"SELECT {', '.join(f'count({sql})' for _, sql in tried)} FROM data")
        for (kind, sql), count in zip(tried, counts, strict=True):
            if present and count >= _MOSTLY * present:
                return kind, sql, False
        return Kind.TEXT, value, False

    def _number(self, value: str) -> str:
        """Write a text so that a number in it is one of SQL, as the file is said to be written."""
        from discreet.query.engines.sql_writer import Writer
        from discreet.query.functions.casts import write_number_by_format

        format = None if self.csv is None else self.csv.number_format
        return value if format is None else write_number_by_format(value, format, Writer())

    def _times(self, name: str) -> tuple[str, str]:
        """Write a text as a date and as a timestamp."""
        from discreet.query.engines.sql_writer import Writer, path_text
        from discreet.query.functions.casts import write_cast, write_time_by_format

        value, format = _quoted(name), None if self.csv is None else self.csv.date_format(name)
        if format is None:
            day, moment = (write_cast(value, Kind.TEXT, kind, Writer()) for kind in (Kind.DATE, Kind.TIMESTAMP))
            return f"CASE WHEN length({value}) = 10 THEN {day} END", moment
        read = (write_time_by_format(value, kind, format, Writer()) for kind in (Kind.DATE, Kind.TIMESTAMP))
        day, moment = (sql.replace("$p1", path_text(format)) for sql in read)
        return day if "%H" not in format and "%I" not in format else "CAST(NULL AS DATE)", moment

    def _common(
        self, value: str, owner: str | None, distinct: int, most: int
    ) -> tuple[tuple[Any, ...] | None, int, int]:
        """List the values that enough units have, if they are few; then count the others, and rows that are listed."""
        if not 0 < distinct <= most:
            return None, distinct, 0
        units = "count(*)" if owner is None else f"count(DISTINCT {owner})"
        rows = self.connection.execute(
            f"SELECT {value} AS v, count(*) FROM data WHERE v IS NOT NULL GROUP BY v "
            f"HAVING {units} >= {FEWEST} ORDER BY v"
        ).fetchall()
        return tuple(row[0] for row in rows), distinct - len(rows), sum(row[1] for row in rows)

    def _bounds(self, value: str, owner: str | None, kind: Kind) -> Bounds | None:
        """Return between what the values lie, leaving out the outermost ones of nineteen units at each end."""
        finite = value if kind is Kind.INTEGER else f"CASE WHEN isfinite(({value})::{_STORED[kind]}) THEN {value} END"
        each = f"SELECT min({finite}) AS low, max({finite}) AS high FROM data GROUP BY {owner}"
        ends = f"SELECT {finite} AS low, low AS high FROM data" if owner is None else each
        ranked = (
            f"(SELECT {end}::{_STORED[kind]} FROM ends WHERE {end} IS NOT NULL ORDER BY {end} {order} "
            f"LIMIT 1 OFFSET {FEWEST - 1})"
            for end, order in (("low", "ASC"), ("high", "DESC"))
        )
        low, high = self._one(f"WITH ends AS MATERIALIZED ({ends}) SELECT {', '.join(ranked)}")
        return None if low is None or high is None or low > high else (low, high)

    def _one(self, query: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] = self.connection.execute(query).fetchone()
        return row


@contextmanager
def looking(path: Path | CsvFile, table: str, told: Callable[[str], None]) -> Iterator[FileLook]:
    """Open a file for looking, as a session would read it. A CSV file is read once, and then kept for all questions."""
    import duckdb

    from discreet.query.engines.clamped_columns import kind_of
    from discreet.query.engines.duckdb_sandbox import Sandbox, default_threads
    from discreet.query.engines.tables import NO_TABLE, Csv, hold, read_in_binary

    held = hold(table, path)
    cage = Sandbox(held.paths, memory=_MEMORY, threads=default_threads())
    try:
        with cage.connection() as connection:
            held.prepare(connection, "t1")
            if not held.is_table(connection, "t1"):
                raise InvalidParameter(NO_TABLE)
            relation = held.relation("t1")
            described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
            types = {name: sql for name, sql, *_ in described}
            told("reading the file")
            kept = "TABLE" if isinstance(held, Csv) else "VIEW"
            connection.execute(f"CREATE TEMP {kept} data AS SELECT * FROM {read_in_binary(relation, types)}")
            offered = {name: sql for name, sql in types.items() if kind_of(sql) is not None}
            yield FileLook(connection, offered, told, csv=path if isinstance(path, CsvFile) else None)
    except duckdb.Error:
        # Its text could hold a value.
        raise InvalidParameter(_UNREADABLE) from None
    finally:
        cage.close()


def _cells(unit: str, columns: Sequence[str]) -> str:
    """Count the rows of each unit in each group."""
    keys = ", ".join([_quoted(unit), *map(_quoted, columns)])
    return f"SELECT {_quoted(unit)} AS u, count(*) AS n FROM data WHERE u IS NOT NULL GROUP BY {keys}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- proposals ---
# From what was seen to what is proposed: rounded outwards, shared by at least 20 units, nothing that names people.


# What is declared of a column, as a plan file says it; None leaves it out.
Declaration: TypeAlias = dict[str, Any] | None
_PEOPLE = re.compile(
    r"(^|[_\s-])(person|patient|customer|client|user|member|employee|student|pupil|household|account|subscriber|"
    r"individual|respondent|subject|participant|passenger|driver|donor|patron|citizen)s?($|[_\s-]|id|no|nr|number)|"
    r"(^|[_\s-])(id|uuid|guid|ssn|passport)($|[_\s-])",
    re.IGNORECASE,
)
_NAMES = re.compile(r"name|mail|phone|mobile|address|street|ssn|passport|iban|url|comment|note", re.IGNORECASE)
# Numbers of things, durations and money: few whole values of these are no codes.
_AMOUNTS = re.compile(
    r"(^|_)(counts?|cnt|num|nb|quantity|qty|amount|total|sum|size|age|score|points|price|cost|fee|income|wages?|salary|"
    r"earnings|pay|duration|length|width|height|weight|distance|delay|minutes|hours|days|weeks|months|years|seconds|"
    r"nights|times|visits|stays|trips|orders|items|rooms|bedrooms|cars|vehicles|children|kids|persons|people|members)($|_)",
    re.IGNORECASE,
)
_CODES = re.compile(
    r"zip|post|code|year|month|day|hour$|time|lat|lon|number|serial|order|rank|seq|index|idx|line|flag|puma|fips|naics|"
    r"icd|(^|_)(id|no|nr)$|no$",
    re.IGNORECASE,
)
_LIMITS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_MOST_CATEGORIES = 40
_MOST_CODES = 300  # Texts of digits with leading zeros that are listed.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One thing that a plan has to say: what is proposed, why, and what else could be said.

    `why` may tell exact facts of the data: it is for the custodian's eyes.
    """

    field: str  # its place in the plan, such as unit.column or columns.age
    value: Any
    why: str
    choices: tuple[Any, ...] = ()  # empty: anything that fits
    from_data: bool = False  # whether the value depends on the rows, rather than on the names and types of columns
    read: tuple[Any, ...] = ()  # what was proposed from the rows before somebody said something else
    rarer: int = 0  # values that a proposed list leaves out, because few units have them


def by_name(column: str) -> bool:
    """Whether a name suggests that a column tells people apart."""
    return _PEOPLE.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column)) is not None


def names_amount(column: str) -> bool:
    """Whether a name suggests that few whole numbers are amounts, such as nights or rooms."""
    return _AMOUNTS.search(_words(column)) is not None


def names_code(column: str) -> bool:
    """Whether a name suggests that numbers are codes, places in an order, or names, whose sums mean nothing."""
    return by_name(column) or (_CODES.search(_words(column)) is not None and not names_amount(column))


def _words(column: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", column)


def unit_why(seen: SeenUnit) -> str:
    """Say what protecting a unit would mean."""
    left_out = f"; {seen.missing:,} rows have none and would be left out" if seen.missing else ""
    return (
        f"{seen.units:,} different values; rows of most: no more than {seen.usual:,}, of one: {seen.most:,}{left_out}"
    )


def limit(usual: int) -> int:
    """Return the least friendly limit that most units are within."""
    return next((one for one in _LIMITS if one >= usual), _LIMITS[-1])


def declaration(seen: SeenColumn) -> Proposal:
    """Propose what to declare of a column."""
    value, why = _declared(seen)
    others = [one for one in (value, _bounded(seen), _listed(seen), {"kind": "text"}, None) if one is not None]
    choices = [one for place, one in enumerate(others) if one not in others[:place]]
    return Proposal(
        field=f"columns.{seen.name}",
        value=value,
        why=why,
        choices=(*choices, None),
        from_data=shows_rows(value),
        rarer=seen.rare if isinstance(value, dict) and "categories" in value else 0,
    )


def shows_rows(value: Any) -> bool:
    """Whether a declaration tells values of rows, rather than only what a column is."""
    return bool(_of_rows(value))


def shows_same_rows(one: Any, other: Any) -> bool:
    """Whether a declaration tells values of rows that another tells too, however they say what the column is."""
    said, read = _of_rows(one), _of_rows(other)
    listed, known = said.get("categories"), read.get("categories")
    if listed and known:
        return set(listed) <= set(known)
    return said == read


def _of_rows(value: Any) -> dict[str, Any]:
    names = ("low", "high", "categories")
    return {name: value[name] for name in names if name in value} if isinstance(value, dict) else {}


def _declared(seen: SeenColumn) -> tuple[Declaration, str]:
    if seen.kind is Kind.BOOLEAN:
        return {"kind": "boolean"}, "true or false, by its type"
    if seen.kind.is_number and by_name(seen.name) and seen.distinct > _MOST_CATEGORIES:
        return None, "it looks like a number that names somebody or something: left out"
    if seen.is_whole and not names_amount(seen.name):
        return _listed(seen), f"{seen.distinct} different whole numbers: taken for codes{_left_out(seen)}"
    bounded = _bounded(seen)
    if bounded is not None:
        return bounded, f"{_rounded_why(seen)} {_range_why(seen)}"
    if seen.kind.is_number or seen.kind.is_time:
        return None, f"fewer than {FEWEST} units have a value, so nothing is proposed"
    return _texts(seen)


def _texts(seen: SeenColumn) -> tuple[Declaration, str]:
    if _NAMES.search(seen.name):
        return None, "its name suggests that its values name people: never proposed"
    listed = _listed(seen)
    if listed is None:
        few = "no value is shared by enough units" if seen.common is not None else f"{seen.distinct:,} different values"
        return None, f"{few}: values that name people must not be in a plan, so none is proposed"
    zeros = "digits with leading zeros, kept as texts; " if seen.zeros else ""
    return listed, f"{zeros}values that at least {FEWEST} units have each{_left_out(seen)}"


def _left_out(seen: SeenColumn) -> str:
    return f"; {seen.rare} rarer values are left out, and their rows are in no group" if seen.rare else ""


def _listed(seen: SeenColumn) -> Declaration:
    most = _MOST_CODES if seen.zeros else _MOST_CATEGORIES
    if not seen.common or len(seen.common) > most or not (seen.kind in (Kind.TEXT, Kind.INTEGER) or seen.is_whole):
        return None
    return {"categories": [int(value) if seen.kind.is_number else value for value in seen.common]}


def _bounded(seen: SeenColumn) -> Declaration:
    if seen.bounds is None:
        return None
    low, high = seen.bounds
    if isinstance(low, date) and isinstance(high, date):
        return _years(low, high)
    whole = seen.kind is Kind.INTEGER
    below, above = outwards(_exact(low), _exact(high), whole=whole)
    return {"low": _plain(below, whole), "high": _plain(above, whole)} | ({"whole": True} if whole else {})


def _years(low: date, high: date) -> Declaration:
    """Widen to whole years: a day is a person's own more often than a year is."""
    if isinstance(low, datetime):
        return {"low": datetime(low.year, 1, 1), "high": datetime(high.year, 12, 31, 23, 59, 59)}
    return {"low": date(low.year, 1, 1), "high": date(high.year, 12, 31)}


def _exact(value: Any) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(str(value))


def _plain(value: Fraction, whole: bool) -> int | float:
    """Write a real bound with a point, which is how a plan tells real numbers from whole ones."""
    return int(value) if whole else float(value)


def _rounded_why(seen: SeenColumn) -> str:
    return f"{seen.kind.value}; rounded outwards, leaving out the outermost {FEWEST - 1} units at each end."


def _range_why(seen: SeenColumn) -> str:
    assert seen.bounds is not None
    return f"Without them values lie from {seen.bounds[0]} to {seen.bounds[1]}; what lies outside is clamped."
