"""The embedded engine: DuckDB scans, filters, joins and projects; NumPy bounds and adds up."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar, final

from discreet.errors import AnswerFailed, InvalidParameter
from discreet.query.ast import Field, TableColumn
from discreet.query.bounding.secret import Secret
from discreet.query.catalogue import CatalogueColumn
from discreet.query.engine import Deadline, ExactCounts, Stage
from discreet.query.engines.clamped_columns import kind_of, layers
from discreet.query.engines.duckdb_sandbox import Progress, Sandbox, default_threads, watched
from discreet.query.engines.shared_scans import Shared, run_shared, share, write_shared
from discreet.query.engines.sql_expressions import number
from discreet.query.engines.sql_queries import Scan, SqlRelation, select, write_stage
from discreet.query.engines.sql_writer import Writer, quote
from discreet.query.engines.stage_runner import EngineResources, run_bounded, run_rows
from discreet.query.engines.streamed_tables import Streamed, forget
from discreet.query.engines.tables import (
    NO_TABLE,
    Csv,
    HeldTable,
    OpenedTable,
    Schemas,
    changed,
    check_names,
    check_public,
    hold_all,
    kinds_of,
)
from discreet.query.functions.casts import shortened, write_cast, write_number_by_format
from discreet.query.policy import PublicTable
from discreet.query.sources.scan_requests import tables_of
from discreet.schema.columns import ExpressionFacts, Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DuckDBEngine", "first_groups", "is_unique", "read_public"]

T = TypeVar("T")

_MEMORY = 3 << 30
_SETUP = 600.0  # Seconds for reading a schema or a public table.


@final
class DuckDBEngine:
    """Tables in this process and in files, read by a caged DuckDB. Any number of threads may ask at the same time."""

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        memory: int = _MEMORY,
        threads: int | None = None,
        on_progress: Progress | None = None,
        secret: Callable[[], Secret] = Secret,
    ) -> None:
        check_names(list(tables), what="tables")
        self._public = frozenset(name for name, table in tables.items() if isinstance(table, PublicTable))
        self._held = hold_all(tables)
        self._names = {name: f"t{number}" for number, name in enumerate(self._held, 1)}
        self._resources = EngineResources(memory=2 * memory // 3, threads=threads or default_threads(), secret=secret)
        self._progress = on_progress
        paths = [path for held in self._held.values() for path in held.paths]
        self._cage = Sandbox(paths, memory=memory // 3, threads=self._resources.threads)
        self._opened = {
            name: OpenedTable(held, self._names[name], public=name in self._public) for name, held in self._held.items()
        }
        self._types = {name: self._describe(name) for name in self._held}

    def columns(self, table: str) -> Mapping[str, Kind]:
        return kinds_of(table, self._types[table])

    def infers_types(self, table: str) -> bool:
        return self._held[table].inferred

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]:
        check_public(table, self._public)
        relation, types = self._relation(table), self._types[table]
        return self._ask(lambda connection: read_public(connection, relation, types), [table])

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool:
        check_public(table, self._public)
        relation = self._relation(table)
        return self._ask(lambda connection: is_unique(connection, relation, columns), [table])

    def public_rows(self, table: str) -> int:
        check_public(table, self._public)
        relation = self._relation(table)
        return self._ask(
            lambda connection: int(connection.execute(f"SELECT count(*) FROM {relation}").fetchone()[0]), [table]
        )

    def public_table(self, table: str) -> pa.Table:
        """Return all rows of a public table, as they are stored."""
        check_public(table, self._public)
        asked = ", ".join(map(quote, self._types[table]))
        sql = f"SELECT {asked} FROM {self._relation(table)}"
        return self._ask(lambda connection: connection.sql(sql).to_arrow_table(), [table])

    def run(self, stage: Stage, *, deadline: Deadline) -> ExactCounts:
        if stage.family is not None:
            return self.run_all((stage,), deadline=deadline)[0]
        scan = write_stage(stage, self, Writer())

        def work(connection: Any) -> ExactCounts:
            for lookup in scan.lookups:
                connection.register(lookup.name, lookup.table)
            if scan.unit is None:
                return run_rows(stage, scan, connection)
            return run_bounded(stage, scan, connection, deadline, self._resources)

        return self._ask(work, self._read_by(stage), deadline)

    def run_all(self, stages: Sequence[Stage], *, deadline: Deadline) -> tuple[ExactCounts, ...]:
        found: dict[int, ExactCounts] = {}
        for shared in share(stages):
            found |= self._run_shared(shared, deadline)
        alone = (place for place in range(len(stages)) if place not in found)
        found |= {place: self.run(stages[place], deadline=deadline) for place in alone}
        return tuple(found[place] for place in range(len(stages)))

    def _run_shared(self, shared: Shared, deadline: Deadline) -> dict[int, ExactCounts]:
        scan = write_shared(shared, self, Writer())

        def work(connection: Any) -> dict[int, ExactCounts]:
            for lookup in scan.lookups:
                connection.register(lookup.name, lookup.table)
            return run_shared(shared, scan, connection, deadline, self._resources)

        return self._ask(work, self._read_by(*(member.stage for member in shared.members)), deadline)

    def first_groups(self, stage: Stage, most: int, *, deadline: Deadline) -> pa.Table:
        """Return of every unit its first groups, in the order of a public key. It names units: it is private."""
        scan = write_stage(stage, self, Writer())

        def work(connection: Any) -> pa.Table:
            for lookup in scan.lookups:
                connection.register(lookup.name, lookup.table)
            return first_groups(scan, connection, most)

        return self._ask(work, self._read_by(stage), deadline)

    def rows(self, table: str, columns: Sequence[str], numbers: Sequence[str], *, deadline: Deadline) -> pa.Table:
        """Return columns of every row as they are stored, texts of `numbers` as doubles or NULL. It is private.

        Rows come in no order: blocks of a file are read side by side. What belongs together is read at once.
        """
        asked = ", ".join(self._stored(table, name, number=name in numbers) for name in columns)
        sql = f"SELECT {asked} FROM {self._relation(table)}"
        return self._ask(lambda connection: connection.sql(sql).to_arrow_table(), [table], deadline)

    def check_unchanged(self) -> None:
        """Refuse if a table is not what it was at the opening. Reads no row, and is public: ask before a charge."""
        found = self._ask(lambda connection: self._changed(list(self._held), connection), [])
        if found:
            raise changed(*([name for name in found if (name in self._public) is one] for one in (False, True)))

    def columns_now(self, table: str) -> Schemas:
        """Return the columns of a table at this moment, as every file has them. Reads no row."""
        return self._ask(lambda connection: self._held[table].columns_now(connection, self._names[table]), [])

    def _changed(self, tables: Sequence[str], connection: Any) -> list[str]:
        return [table for table in tables if not self._opened[table].is_unchanged(connection)]

    def _check(self, tables: Sequence[str], connection: Any) -> None:
        if self._changed(tables, connection):
            raise AnswerFailed

    def take_streams(self, tables: Sequence[str], *, deadline: Deadline) -> None:
        """Read what was given to tables that are streamed, in this order, for the questions that follow."""
        self._ask(lambda _: None, list(tables), deadline)

    def forget_streams(self) -> None:
        """Let go of the rows that were streamed."""
        held = [table for table in self._held.values() if isinstance(table, Streamed)]
        if held:
            self._ask(lambda connection: forget(held, connection), [])

    def beside(self, tables: Mapping[str, Streamed]) -> DuckDBEngine:
        """Return an engine in the same cage, of other tables: those that were streamed for one question."""
        other = copy(self)
        other._public, other._held = frozenset(), dict(tables)
        other._names = {name: f"s{number}" for number, name in enumerate(tables, 1)}
        other._opened = {name: OpenedTable(held, other._names[name], public=False) for name, held in tables.items()}
        other._types = {name: other._describe(name) for name in tables}
        return other

    def close(self) -> None:
        self._cage.close()

    def relation(self, table: str, writer: Writer) -> SqlRelation:
        """Return what a statement reads a table from."""
        return SqlRelation(self._relation(table), self._types[table])

    def _read_by(self, *stages: Stage) -> list[str]:
        """Name the tables that are made known for some stages: of those that are streamed, only what they read."""
        read = tables_of(stages)
        return [name for name, held in self._held.items() if name in read or not isinstance(held, Streamed)]

    def _stored(self, table: str, column: str, *, number: bool) -> str:
        """Read truth values alike whether they are stored as such or as texts: one odd row of a frame decides that."""
        name, sql_type = quote(column), self._types[table][column]
        if sql_type not in ("VARCHAR", "BOOLEAN"):
            return name
        text = name if sql_type == "VARCHAR" else f"CAST({name} AS VARCHAR)"
        if not number:
            return f"{text} AS {name}"
        text = shortened(text)
        held = self._held[table]
        if isinstance(held, Csv) and held.file.number_format is not None:
            text = write_number_by_format(text, held.file.number_format, Writer())
        truth = f"CASE {text} WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
        return f"coalesce({write_cast(text, Kind.TEXT, Kind.REAL, Writer())}, {truth}) AS {name}"

    def _relation(self, table: str) -> str:
        return self._held[table].relation(self._names[table])

    def _describe(self, table: str) -> dict[str, str]:
        held = self._held[table]
        self._begin(table)
        types = held.types
        if types is None:
            types = self._ask_types(table, held)
        offered = kinds_of(table, types)
        return {name: sql_type for name, sql_type in types.items() if name in offered}

    def _begin(self, table: str) -> None:
        """Remember a table as it is: what is read later must have the same columns."""
        try:
            schemas = self._ask(self._opened[table].begin, [])
        except AnswerFailed:
            raise InvalidParameter(f"the files of table {table!r} cannot be read") from None
        if schemas != 1:
            # A cast from one type to another could fail at one row.
            raise InvalidParameter(f"the files of table {table!r} differ in names or types of columns: make them alike")

    def _ask_types(self, table: str, held: HeldTable) -> dict[str, str]:
        def work(connection: Any) -> list[tuple[str, ...]] | None:
            if not held.is_table(connection, self._names[table]):
                return None
            rows: list[tuple[str, ...]] = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
            return rows

        relation = self._relation(table)
        try:
            rows = self._ask(work, [table])
        except AnswerFailed:
            raise InvalidParameter(f"the files of table {table!r} cannot be read") from None
        if rows is None:
            raise InvalidParameter(NO_TABLE)
        return {name: sql_type for name, sql_type, *_ in rows}

    def _ask(self, work: Callable[[Any], T], tables: list[str], deadline: Deadline | None = None) -> T:
        """Do some work on a connection that knows some tables; whatever fails in it is one constant error."""
        connection = self._cage.connection()

        def prepared() -> T:
            self._check(tables, connection)
            for table in tables:
                self._held[table].prepare(connection, self._names[table])
            done = work(connection)
            self._check(tables, connection)  # They may have changed meanwhile.
            return done

        try:
            return watched(prepared, connection, deadline or Deadline.after(_SETUP), self._progress)
        except AnswerFailed:
            self._cage.renew()
            raise
        finally:
            connection.close()


# --- public: What can be known of a public table by reading it. ---


_FEW = 100_000


def read_public(connection: Any, relation: str, types: Mapping[str, str]) -> dict[str, CatalogueColumn]:
    """Return the facts of every column of a public table."""
    return {name: _column(connection, relation, name, sql_type) for name, sql_type in types.items()}


def _column(connection: Any, relation: str, name: str, sql_type: str) -> CatalogueColumn:
    kind = kind_of(sql_type)
    assert kind is not None
    rows = f"(SELECT {_as_read(name, sql_type)} AS x FROM {relation})"
    low, high = _bounds(connection, rows, kind)
    (nulls,) = connection.execute(f"SELECT count(*) - count(x) FROM {rows}").fetchone()
    members = None if kind is Kind.REAL else _members(connection, rows)
    return CatalogueColumn(
        name=name, facts=ExpressionFacts(kind=kind, low=low, high=high, members=members, nullable=nulls > 0)
    )


def _bounds(connection: Any, rows: str, kind: Kind) -> tuple[Fraction | None, Fraction | None]:
    if kind is Kind.TEXT:
        return None, None
    low, high = connection.execute(f"SELECT min({number('x', kind)}), max({number('x', kind)}) FROM {rows}").fetchone()
    return (None, None) if low is None else (Fraction(low), Fraction(high))


def _members(connection: Any, rows: str) -> tuple[Hashable, ...] | None:
    found = connection.execute(
        f"SELECT DISTINCT x FROM {rows} WHERE x IS NOT NULL ORDER BY x LIMIT {_FEW + 1}"
    ).fetchall()
    return tuple(value for (value,) in found) if 0 < len(found) <= _FEW else None


def is_unique(connection: Any, relation: str, columns: frozenset[str]) -> bool:
    """Whether no two rows agree in some columns; rows with NULL there match nothing and do not count.

    Values are compared as a join compares them: two long decimals may differ and be one and the same double.
    """
    asked = ", ".join(quote(column) for column in sorted(columns))
    types = connection.execute(f"DESCRIBE SELECT {asked} FROM {relation}").fetchall()
    read = [f"{_as_read(name, sql_type)} AS x{place}" for place, (name, sql_type, *_) in enumerate(types)]
    names = [f"x{place}" for place in range(len(types))]
    present = " AND ".join(f"{name} IS NOT NULL" for name in names)
    rows = f"SELECT {', '.join(read)} FROM {relation}"
    counted = f"SELECT count(*) AS n FROM ({rows}) WHERE {present} GROUP BY {', '.join(names)}"
    (copies,) = connection.execute(f"SELECT count(*) FROM ({counted}) WHERE n > 1").fetchone()
    return bool(copies == 0)


def _as_read(name: str, sql_type: str) -> str:
    """Write a stored value as a question sees it, whatever is declared of it."""
    kind = kind_of(sql_type)
    assert kind is not None
    return layers(TableColumn(name, Field("x", ExpressionFacts(kind=kind))), sql_type, "x", Writer())[0]


# --- first_days: Who was there when: for each unit, the first of the public groups that it has rows in. ---
#
# This is for series over time, where what a unit has given before is kept from one day to the next. What comes out
# names
# units; it is private, and goes nowhere but into a count.


def first_groups(scan: Scan, connection: Any, most: int) -> pa.Table:
    """Return unit, place and group of the first `most` distinct groups of every unit, in the order of the groups.

    A unit is written as text: of whole numbers and texts no two are written alike.
    """
    assert scan.unit is not None
    assert scan.group is not None, "the groups are public"
    rows = select(connection, [f"CAST({scan.unit} AS VARCHAR)", scan.group], scan)
    kept = (
        "SELECT o1 AS unit, place, o2 AS day FROM (SELECT o1, o2, row_number() OVER (PARTITION BY o1 ORDER BY o2) "
        f"AS place FROM (SELECT DISTINCT o1, o2 FROM pairs WHERE o2 IS NOT NULL)) WHERE place <= {most:d}"
    )
    found: pa.Table = rows.query("pairs", kept).to_arrow_table()
    return found
