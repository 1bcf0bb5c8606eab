"""What tasks do: route every row to the part of its unit, and count the units of a part.

Theorem     All rows of a unit are in one part, in whichever tables and spellings they are.
Proof       A row is routed by its unit as the kernel reads it, not as it is stored: the expression of the unit is the
            one that the count itself uses. Where a join of two tables would take two values for one unit, as whole and
            real numbers that are equal, these are one double, and the part is a function of it. Units that share a part
            do no harm: within it they are told apart exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.custodian_debug import ConstantFailure
from discreet.errors import AnswerFailed, Refused
from discreet.frames.tables import arrow_table
from discreet.query.ast import Filter, Join, PerUnit, Project, Source, Table, UnionAll, WithinUnit
from discreet.query.bounding.byte_blocks import Block, ByteBlocks, unpacked
from discreet.query.bounding.partial_tally import PartialTally
from discreet.query.bounding.secret import Blocks, Secret
from discreet.query.bounding.string_packing import Letters
from discreet.query.bounding.unit_codes import Reader, joined
from discreet.query.engine import Deadline, ExactCounts, Stage, StageColumn
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.duckdb_sandbox import Sandbox
from discreet.query.engines.sql_queries import SqlRelation, write_unit
from discreet.query.engines.sql_writer import Writer
from discreet.query.engines.tables import InMemory, sql_types
from discreet.query.policy import PublicTable
from discreet.query.spark.partition_reports import Report, wanted
from discreet.query.workers.messages import decoded, encoded

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ANCHOR",
    "ROUTED",
    "Question",
    "check_units",
    "count_nobody",
    "count_part",
    "count_rows",
    "joins_of",
    "private_tables",
    "route",
    "versions",
]

Integers: TypeAlias = NDArray[np.int64]
# What travels between tasks: some rows of a part, or how many a source sent there, or the driver's word that it exists.
ROUTED = "part int, source int, table int, place int, rows bigint, body binary"
MANIFEST, ANCHOR = -1, -2  # In the place of the number of a batch.
_ROWS = 1 << 18  # Routed at once.
_PER_PART = 1 << 11  # Rows of a part in one batch, where there are many parts.
_MOST_ROWS = 1 << 21
_BYTES = 1 << 26
_OF_DIGESTS = np.uint64(0)  # The routing secret chooses nothing, so any stream of it will do.
_DIGESTS = 1 << 14  # Of a part: those of all units up to so many, else the least, which are the same ones everywhere.
Key: TypeAlias = tuple[bytes, bytes]


def versions() -> list[str]:
    """Name what must be the same everywhere: it decides what is counted."""
    return [f"{name} {version(name)}" for name in ("discreet", "duckdb", "numpy", "pyarrow")]


@final
@dataclass(frozen=True, kw_only=True)
class Question:
    """All that a task is told. It holds secrets: it goes nowhere but into a broadcast."""

    stages: tuple[Stage, ...]
    types: Mapping[str, Mapping[str, str]]  # of the columns of private tables that are read
    public: Mapping[str, pa.Table]
    secrets: tuple[Key, ...]
    routing: Key
    parts: int
    memory: int
    seconds: float

    def to_bytes(self) -> bytes:
        """Write it as data of a closed set."""
        blocks = ByteBlocks()
        said = {
            "versions": versions(),
            "stages": encoded(self.stages),
            "types": {name: dict(types) for name, types in self.types.items()},
            "public": {name: blocks.add(_stream(table)) for name, table in self.public.items()},
            "secrets": [[half.hex() for half in key] for key in (self.routing, *self.secrets)],
            "parts": self.parts,
            "memory": self.memory,
            "seconds": self.seconds,
        }
        return blocks.packed(said)

    @classmethod
    def from_bytes(cls, written: Block) -> Question:
        """Read it, unless it was written by other versions than are here."""
        said, blocks = unpacked(written)
        if said["versions"] != versions():
            raise AnswerFailed
        routing, *secrets = ((bytes.fromhex(one), bytes.fromhex(other)) for one, other in said["secrets"])
        return cls(
            stages=decoded(said["stages"]),
            types=said["types"],
            public={name: _table(blocks[place]) for name, place in said["public"].items()},
            secrets=tuple(secrets),
            routing=routing,
            parts=said["parts"],
            memory=said["memory"],
            seconds=said["seconds"],
        )

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The private tables, by name, each as one stage reads its unit: all read it alike."""
        return {name: nodes[0] for name, nodes in private_tables(self.stages).items()}


def private_tables(stages: Iterable[Stage]) -> dict[str, list[Table]]:
    """Find where stages read private tables."""
    found: dict[str, list[Table]] = {}
    for stage in stages:
        for table in _tables(stage.source):
            if table.private:
                found.setdefault(table.table, []).append(table)
    return found


def _tables(source: Source) -> Iterator[Table]:
    match source:
        case Table():
            yield source
        case Filter() | Project() | PerUnit() | WithinUnit():
            yield from _tables(source.source)
        case Join():
            yield from _tables(source.left)
            yield from _tables(source.right)
        case UnionAll():
            for part in source.sources:
                yield from _tables(part)


def joins_of(source: Source) -> Iterator[Join]:
    """Find all joins of a source."""
    match source:
        case Filter() | Project() | PerUnit() | WithinUnit():
            yield from joins_of(source.source)
        case Join():
            yield source
            yield from joins_of(source.left)
            yield from joins_of(source.right)
        case UnionAll():
            for part in source.sources:
                yield from joins_of(part)


# --- route ---


def route(question: Question, table: str, source: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Send the rows of one source to the parts of their units, then tell every part how many it was sent.

    A row without a unit goes nowhere: no stage counts it.
    """
    number = list(question.tables).index(table)
    rows, sent = np.zeros(question.parts, np.int64), np.zeros(question.parts, np.int64)
    with ConstantFailure():
        units = _UnitReader(question, table)
        for some in _gathered(batches, max(_ROWS, min(_MOST_ROWS, _PER_PART * question.parts))):
            safe = arrow_table(some)
            parts = units.parts(safe)
            order = np.argsort(parts, kind="stable")
            ends = np.searchsorted(parts[order], np.arange(question.parts + 1))
            sorted_ = safe.take(order)
            there = np.flatnonzero(np.diff(ends))
            bodies = [_stream(sorted_.slice(ends[part], ends[part + 1] - ends[part])) for part in there]
            counts = np.diff(ends)[there]
            yield _routed(there, source, number, sent[there], counts, bodies)
            rows[there] += counts
            sent[there] += 1
        every = np.arange(question.parts)
        # The manifest says how many batches; how many rows, it says in the place of a body.
        told = [int(count).to_bytes(8, "little") for count in rows]
        yield _routed(every, source, number, np.full(question.parts, MANIFEST), sent, told)


def _routed(
    parts: Integers, source: int, table: int, places: Integers, rows: Integers, bodies: Sequence[Block]
) -> pa.RecordBatch:
    import pyarrow as pa

    size = parts.size
    columns = [
        pa.array(parts, pa.int32()),
        pa.array(np.full(size, source), pa.int32()),
        pa.array(np.full(size, table), pa.int32()),
        pa.array(places, pa.int32()),
        pa.array(rows, pa.int64()),
        pa.array(bodies, pa.binary()),
    ]
    return pa.record_batch(columns, ["part", "source", "table", "place", "rows", "body"])


def _gathered(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """Put small batches together."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= most or size >= _BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


@cache
def _cage(memory: int) -> Sandbox:
    """Open a cage for reading units; a process keeps it, as it takes longer to open than a small part to count."""
    return Sandbox([], memory=memory // 3, threads=1)


@final
class _UnitReader:
    """Reads the units of one table, as the count does."""

    def __init__(self, question: Question, table: str) -> None:
        self._types, self._node = question.types[table], question.tables[table]
        self._secret, self._parts = Secret(question.routing), question.parts
        self._cage = _cage(question.memory)

    def parts(self, table: pa.Table) -> Integers:
        """Return the part of each row; one beyond all parts where there is no unit."""
        units = self.read(table)
        letters, known = _letters(units)
        parts = (self._secret.hashes(letters) % np.uint64(self._parts)).astype(np.int64)
        parts[~known] = self._parts
        return parts

    def digests(self, table: pa.Table) -> Blocks:
        """Return a block for each distinct unit, by what the kernel tells units apart."""
        units, known = Reader().read(self.read(table))
        units = units if known is None else units.where(known)
        everybody = joined([units])
        names = everybody.names(np.unique(everybody.codes), self._secret)
        return self._secret.blocks(names, _OF_DIGESTS, np.uint64(0))

    def read(self, table: pa.Table) -> pa.Array:
        """Return the unit of each row, in their order."""
        import pyarrow as pa

        if sql_types(table.schema) != dict(self._types):
            raise AnswerFailed
        place = "place"
        while place in {name.casefold() for name in self._types}:
            place += "_"
        connection, writer = self._cage.connection(), Writer()
        connection.register("t", table.append_column(place, pa.array(np.arange(table.num_rows))))
        asked = write_unit(self._node, SqlRelation("t", self._types), place, writer)
        parameters = {"params": writer.parameters} if writer.parameters else {}
        found = connection.sql(asked, **parameters).to_arrow_table()
        connection.close()
        places, units = np.asarray(found.column(0)), found.column(1).combine_chunks()
        if (np.diff(places) == 1).all():
            return units
        return units.take(pa.array(np.argsort(places)))


def _letters(units: pa.Array) -> tuple[Letters, NDArray[np.bool_]]:
    """Return what routes a unit, the same for all that a join may take for equal, and where there is a unit."""
    import pyarrow as pa

    family = _family(units.type)
    if family == "text":
        known = np.asarray(units.is_valid())
        return Letters.of(units.cast(pa.large_binary()).fill_null(b"")), known
    numbers = units.cast(pa.timestamp("us")).cast(pa.int64()) if family == "time" else units
    if family == "number":
        numbers = units.cast(pa.float64(), safe=False)
    known = np.asarray(numbers.is_valid())
    values = np.asarray(numbers.fill_null(0))
    if family == "number":
        known &= ~np.isnan(values)
        values = values + 0.0
    return Letters([values.view(np.uint64)], np.zeros(values.size, np.int64)), known


def check_units(question: Question) -> None:
    """Refuse tables whose units are compared as different things: equal ones would be in different parts."""
    empty = {name: _UnitReader(question, name).read(_empty(question.types[name])) for name in question.tables}
    if len({_family(units.type) for units in empty.values()}) > 1:
        raise Refused(
            "the unit is a text in one table and a number or a time in another",
            way_out="store it alike in all tables of a question",
        )


def _family(kind: pa.DataType) -> str:
    """Say what units of this type are compared as; two tables whose units differ in it cannot be put together."""
    import pyarrow as pa

    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_date32(kind) or types.is_timestamp(kind):
        return "time"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return "number"
    raise Refused("a unit in Spark must be identified by a number, a text or a time")


# --- count ---


def count_part(question: Question, batches: Iterable[pa.RecordBatch]) -> Report:
    """Check that everything is there that was sent to these parts, and count it."""
    with ConstantFailure():
        arrived = _Arrived()
        for batch in batches:
            arrived.add(batch)
        sources = arrived.checked()
        tables = arrived.rows(question)
        digests = [_digests(question, name, table) for name, table in tables.items()]
        return Report(
            parts=tuple(sorted(arrived.anchors)),
            sources=sources,
            digests=_least(np.concatenate([np.zeros((0, 2), np.uint64), *digests])),
            states=_counted(question, tables),
        )


def count_rows(question: Question, table: str, source: int, batches: Iterable[pa.RecordBatch]) -> Iterator[Report]:
    """Count rows that are units themselves where they are, some at a time.

    Private tables are put together by UNION ALL alone where rows are units, so that what is counted of all of them is
    what is counted of each while the others are empty.
    """
    none = np.zeros((0, 2), np.uint64)
    with ConstantFailure():
        turn, others = -1, {name: _empty(types) for name, types in question.types.items() if name != table}
        for turn, some in enumerate(_gathered(batches, _MOST_ROWS)):
            states = _counted(question, {**others, table: arrow_table(some)})
            yield Report(parts=(source,), sources=(turn,), digests=none, states=states)
        yield Report(parts=(source,), sources=(turn + 1, MANIFEST), digests=none, states=())


def count_nobody(question: Question) -> tuple[PartialTally, ...]:
    """Count no rows at all."""
    return _counted(question, {name: _empty(types) for name, types in question.types.items()})


@final
class _Arrived:
    """What arrived at a task: the driver's word which parts it has, rows in batches, and how many there must be."""

    def __init__(self) -> None:
        self.anchors: set[int] = set()
        self._bodies: list[tuple[int, Block]] = []
        self._batches: dict[tuple[int, int], list[int]] = {}  # (part, source): places of batches
        self._rows: dict[tuple[int, int], int] = {}
        self._told: dict[tuple[int, int], tuple[int, int]] = {}  # how many batches, how many rows

    def add(self, batch: pa.RecordBatch) -> None:
        parts, sources, tables, places, rows = (batch.column(column).to_pylist() for column in range(5))
        bodies = batch.column(5)
        for number, (part, source, table, place, count) in enumerate(
            zip(parts, sources, tables, places, rows, strict=True)
        ):
            if place == ANCHOR:
                if part in self.anchors:
                    raise AnswerFailed
                self.anchors.add(part)
                continue
            body = memoryview(bodies[number].as_buffer())
            if place == MANIFEST:
                if (part, source) in self._told:
                    raise AnswerFailed
                self._told[part, source] = count, int.from_bytes(body, "little")
                continue
            self._bodies.append((table, body))
            self._batches.setdefault((part, source), []).append(place)
            self._rows[part, source] = self._rows.get((part, source), 0) + count

    def checked(self) -> tuple[int, ...]:
        """Refuse what is not whole; return the sources, which must be the same for all parts."""
        sources = {part: sorted(source for one, source in self._told if one == part) for part in self.anchors}
        if {part for part, _ in (*self._told, *self._batches)} - self.anchors or len(
            {*map(tuple, sources.values())}
        ) > 1:
            raise AnswerFailed
        for key, places in self._batches.items():
            if key not in self._told or sorted(places) != list(range(len(places))):
                raise AnswerFailed
        for key, (many, rows) in self._told.items():
            if (many, rows) != (len(self._batches.get(key, ())), self._rows.get(key, 0)):
                raise AnswerFailed
        return tuple(next(iter(sources.values()), ()))

    def rows(self, question: Question) -> dict[str, pa.Table]:
        """Return all rows by table."""
        import pyarrow as pa

        found: dict[str, list[pa.Table]] = {name: [] for name in question.tables}
        names = list(found)
        while self._bodies:
            number, body = self._bodies.pop()
            found[names[number]].append(_table(body))
        return {name: pa.concat_tables(rows or [_empty(question.types[name])]) for name, rows in found.items()}


def _counted(question: Question, tables: Mapping[str, pa.Table]) -> tuple[PartialTally, ...]:
    """Count with the engine of one machine: one thread, a scratch folder of its own, so much memory."""
    held: dict[str, Any] = {name: _held(table, question.types[name]) for name, table in tables.items()}
    held |= {name: PublicTable(table) for name, table in question.public.items()}
    secrets = iter(question.secrets)
    stages = tuple(_mergeable(stage) for stage in question.stages)
    engine = DuckDBEngine(held, memory=question.memory, threads=1, secret=lambda: Secret(next(secrets)))
    with closing(engine):
        found = engine.run_all(stages, deadline=Deadline.after(question.seconds))
    return tuple(_partial(counts, stage) for counts, stage in zip(found, question.stages, strict=True))


def _held(table: pa.Table, types: Mapping[str, str]) -> InMemory:
    return InMemory(types, lambda: table)


def _mergeable(stage: Stage) -> Stage:
    """Ask for the values wherever distinct ones are counted: counts of these do not add up."""

    def kept(column: StageColumn) -> StageColumn:
        wants = column.wants
        return replace(column, wants=replace(wants, values=wants.values or wants.distinct))

    return replace(stage, columns=tuple(map(kept, stage.columns)))


def _partial(counts: ExactCounts, stage: Stage) -> PartialTally:
    return PartialTally.of(counts.tally, wanted(stage), counts.found, counts.lists)


def _digests(question: Question, name: str, table: pa.Table) -> Blocks:
    return _least(_UnitReader(question, name).digests(table)) if table.num_rows else np.zeros((0, 2), np.uint64)


def _least(digests: Blocks) -> Blocks:
    """Return the least digests, each once, in order."""
    if len(digests) > _DIGESTS:
        last = np.partition(digests[:, 0], _DIGESTS)[_DIGESTS]
        digests = digests[digests[:, 0] <= last]
    return np.unique(digests, axis=0)[:_DIGESTS]


def _empty(types: Mapping[str, str]) -> pa.Table:
    import duckdb

    listed = ", ".join(f"CAST(NULL AS {sql_type})" for sql_type in types.values())
    with duckdb.connect() as connection:
        empty: Any = connection.sql(f"SELECT {listed} LIMIT 0").to_arrow_table()
        return empty.rename_columns(list(types))


def _stream(table: pa.Table) -> Block:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _table(block: Block) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_stream(pa.py_buffer(block)).read_all()
