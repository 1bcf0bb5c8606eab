"""Between a session and its workers: stages as data of a closed set, results as blocks of numbers; no pickle."""

from __future__ import annotations

import json
import mmap
import os
import select
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.file_locks import control
from discreet.mechanisms.grid import Grid
from discreet.query.ast import (
    Apply,
    Case,
    Field,
    Filter,
    Join,
    JoinKind,
    Literal,
    Named,
    Operator,
    PerUnit,
    Project,
    RowOrder,
    Table,
    TableColumn,
    UnionAll,
    UnitKey,
    UnitStatistic,
    UnitTotal,
    UnitWindow,
    WithinUnit,
)
from discreet.query.bounding.aggregation import MeasureTally, Tally, Values
from discreet.query.bounding.byte_blocks import Block, ByteBlocks, read_array, read_exact, read_integers
from discreet.query.bounding.group_codes import GroupKeys, KeyColumn
from discreet.query.catalogue import CatalogueColumn
from discreet.query.engine import ExactCounts, Stage, StageColumn, StageKey, Wants, known_keys
from discreet.query.engines.tables import FILES
from discreet.query.sources.protocol import SourceColumn
from discreet.schema.columns import ExpressionFacts, Kind
from discreet.schema.csv_file import CsvFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Block",
    "ByteBlocks",
    "Message",
    "Nodes",
    "decoded",
    "encoded",
    "nameless_file",
    "read_table",
    "read_tallied",
    "readable",
    "receive",
    "send",
    "write_table",
    "write_tallied",
]

# --- messages ---
# Messages between two processes: a short text of plain values, then blocks of bytes, and perhaps open files.


Wait: TypeAlias = Callable[[], None]  # returns once there is something to read, or raises

_LENGTH = 8  # bytes
_LONGEST = 1 << 30  # bytes of a text
_MOST_FILES = 250  # with one message
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)  # Who writes to a worker that was killed gets an error, and lives on.


@final
@dataclass(frozen=True, slots=True)
class Message:
    """Plain values by name, blocks of bytes, and numbers of open files, which are the receiver's to close."""

    said: dict[str, Any]
    blocks: list[Any] = field(default_factory=list)
    files: list[int] = field(default_factory=list)


def send(
    connection: socket.socket, said: dict[str, Any], blocks: Sequence[Block] = (), files: Sequence[int] = ()
) -> None:
    """Send a message; files stay open here."""
    if len(files) > _MOST_FILES:
        raise ValueError("too many files for one message")
    views = [memoryview(block).cast("B") for block in blocks]
    text = json.dumps({"said": said, "blocks": [view.nbytes for view in views]}, separators=(",", ":")).encode()
    whole = len(text).to_bytes(_LENGTH, "little") + text
    sent = socket.send_fds(connection, [whole], files, _NO_SIGNAL) if files else 0
    connection.sendall(memoryview(whole)[sent:], _NO_SIGNAL)
    for view in views:
        connection.sendall(view, _NO_SIGNAL)


def receive(connection: socket.socket, wait: Wait | None = None) -> Message:
    """Receive a message; EOFError if the other end is gone. Before every wait `wait` is asked whether to go on."""
    head, files = _first(connection, wait)
    _fill(connection, head, _LENGTH - len(head), wait)
    length = int.from_bytes(head, "little")
    if length > _LONGEST:
        raise EOFError
    told = json.loads(bytes(_fill(connection, bytearray(), length, wait)))
    blocks = [_block(connection, size, wait) for size in told["blocks"]]
    return Message(told["said"], blocks, files)


def _first(connection: socket.socket, wait: Wait | None) -> tuple[bytearray, list[int]]:
    """Receive the beginning, with which files come."""
    if wait is not None:
        wait()
    data, files, *_ = socket.recv_fds(connection, _LENGTH, _MOST_FILES)
    if not data:
        raise EOFError
    return bytearray(data), list(files)


def _fill(connection: socket.socket, known: bytearray, more: int, wait: Wait | None) -> bytearray:
    known += _block(connection, more, wait)
    return known


def _block(connection: socket.socket, size: int, wait: Wait | None) -> bytearray:
    block = bytearray(size)
    view = memoryview(block)
    while view:
        if wait is not None:
            wait()
        got = connection.recv_into(view)
        if not got:
            raise EOFError
        view = view[got:]
    return block


def readable(connection: socket.socket, seconds: float) -> bool:
    """Whether there is something to read, or the other end is gone, within some time."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(max(0.0, 1000 * seconds)))


# --- value_codec: A closed set of values as text: what a question may consist of, and nothing that could be run. ---
#
# A value becomes a list of nodes, each a name and its parts. A part is a plain value, or the place of an earlier node
# in
# a list of one. What occurs in many places, such as the members of a column, is written once.


Nodes: TypeAlias = list[list[Any]]

_RECORDS: Mapping[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Stage, StageColumn, StageKey, Wants, Grid),
        *(Apply, Case, Field, Literal, ExpressionFacts, CatalogueColumn),
        *(Filter, Join, Named, PerUnit, Project, RowOrder, Table, TableColumn, UnionAll),
        *(UnitKey, UnitTotal, UnitWindow, WithinUnit),
        *FILES,
        *(CsvFile, SourceColumn),
    )
}
_CHOICES: Mapping[str, type[Enum]] = {kind.__name__: kind for kind in (Kind, Operator, JoinKind, UnitStatistic)}
_LARGEST = 1 << 62  # Of a whole number that is written as it is.
_READ: Mapping[str, Callable[..., Any]] = {
    "tuple": lambda *parts: parts,
    "same": lambda part: part,
    "set": lambda *parts: frozenset(parts),
    "integer": lambda digits: int(digits, 16),
    "fraction": lambda over, under: Fraction(int(over, 16), int(under, 16)),
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
}


def encoded(value: Any) -> Nodes:
    """Write a value as nodes; the last one is the value itself."""
    writing = _Writing()
    writing.node("tuple", (writing.part(value),))
    return writing.nodes


def decoded(nodes: Nodes) -> Any:
    """Read what `encoded` wrote. Anything else is an error, and nothing of it is run."""
    values: list[Any] = []
    for name, *parts in nodes:
        values.append(_made(name, [values[part[0]] if isinstance(part, list) else part for part in parts]))
    (value,) = values[-1]
    return value


def _made(name: str, parts: list[Any]) -> Any:
    if name in _RECORDS:
        kind = _RECORDS[name]
        return kind(**dict(zip(_names(kind), parts, strict=True)))
    return _CHOICES[name](*parts) if name in _CHOICES else _READ[name](*parts)


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind) if field.init]


@final
class _Writing:
    """Nodes so far, and where a value that was met before is among them."""

    __slots__ = ("_met", "nodes")

    def __init__(self) -> None:
        self.nodes: Nodes = []
        self._met: dict[int, int] = {}  # By identity: whatever is written stays alive meanwhile.

    def node(self, name: str, parts: tuple[Any, ...]) -> list[int]:
        self.nodes.append([name, *parts])
        return [len(self.nodes) - 1]

    def part(self, value: Any) -> Any:
        """Return a plain value, or the place of its node."""
        if value is None or type(value) in (bool, str, float):
            return value
        if type(value) is int:
            return value if abs(value) < _LARGEST else self.node("integer", (hex(value),))
        if id(value) not in self._met:
            (self._met[id(value)],) = self._new(value)
        return [self._met[id(value)]]

    def _new(self, value: Any) -> list[int]:
        name = type(value).__name__
        if _RECORDS.get(name) is type(value):
            return self.node(name, tuple(self.part(getattr(value, field)) for field in _names(type(value))))
        if _CHOICES.get(name) is type(value):
            return self.node(name, (value.value,))
        if isinstance(value, (tuple, frozenset)):
            return self.node("tuple" if isinstance(value, tuple) else "set", tuple(map(self.part, value)))
        if isinstance(value, Fraction):
            return self.node("fraction", (hex(value.numerator), hex(value.denominator)))
        if isinstance(value, Decimal):
            return self.node("decimal", (str(value),))
        return self._member(value)

    def _member(self, value: Any) -> list[int]:
        """Write what people list as members of a domain: their own kinds of numbers, texts and times."""
        if isinstance(value, datetime):
            plain = value if value.tzinfo is None else value.astimezone(UTC)
            return self.node("datetime", (datetime.combine(plain.date(), plain.timetz()).isoformat(),))
        if isinstance(value, date):
            return self.node("date", (value.isoformat(),))
        if isinstance(value, np.generic):
            return self.node("same", (self.part(value.item()),))
        for kind in (bool, int, float, str):
            if isinstance(value, kind):
                return self.node("same", (self.part(kind(value)),))
        raise InvalidParameter(f"a public value of the type {type(value).__name__} cannot be handed to an engine")


# --- result_blocks: Tallies as blocks of whole numbers, and tables as Arrow streams in files without a name. ---


def write_tallied(tallied: ExactCounts, stage: Stage, blocks: ByteBlocks) -> dict[str, Any]:
    """Write a tally, and the keys of its groups where no public list says them."""
    tally = tallied.tally
    return {
        "groups": tallied.groups,
        "keys": None if _are_known(stage) or not tallied.groups else _write_keys(tallied.found, blocks),
        "units": blocks.integers(tally.units),
        "rows": blocks.integers(tally.rows),
        "measures": [_write_measure(measure, blocks) for measure in tally.measures],
    }


def _are_known(stage: Stage) -> bool:
    return all(key.domain is not None for key in stage.keys)


def _write_keys(found: GroupKeys | None, blocks: ByteBlocks) -> dict[str, Any]:
    assert found is not None, "groups that nobody listed are found by their keys"
    return {
        "columns": [blocks.array(column.values) for column in found.columns],
        "steps": [None if step is None else blocks.integers(step) for step in found.steps],
    }


def _write_measure(measure: MeasureTally, blocks: ByteBlocks) -> dict[str, Any]:
    values = measure.values
    return {
        "counts": blocks.integers(measure.counts),
        "total": None if measure.total is None else blocks.exact(measure.total),
        "squares": None if measure.squares is None else blocks.exact(measure.squares),
        "distinct": None if measure.distinct is None else blocks.integers(measure.distinct),
        "values": None if values is None else [blocks.integers(values.starts), blocks.integers(values.indices)],
    }


def read_tallied(said: dict[str, Any], blocks: Sequence[Block], stage: Stage) -> ExactCounts:
    """Read what `write_tallied` wrote for the same stage."""
    tally = Tally(
        units=read_integers(blocks[said["units"]]),
        rows=read_integers(blocks[said["rows"]]),
        measures=tuple(_read_measure(measure, blocks) for measure in said["measures"]),
    )
    groups = int(said["groups"])
    if not groups:
        return ExactCounts(groups=0, tally=tally, keys=lambda _: [])
    found = None if said["keys"] is None else _read_keys(said["keys"], blocks)
    return ExactCounts(
        groups=groups, tally=tally, keys=known_keys(stage) if found is None else found.values, found=found
    )


def _read_keys(said: dict[str, Any], blocks: Sequence[Block]) -> GroupKeys:
    columns = tuple(KeyColumn(read_array(blocks[place])) for place in said["columns"])
    steps = tuple(None if place is None else read_integers(blocks[place]) for place in said["steps"])
    return GroupKeys(columns, steps)


def _read_measure(said: dict[str, Any], blocks: Sequence[Block]) -> MeasureTally:
    values = said["values"]
    return MeasureTally(
        counts=read_integers(blocks[said["counts"]]),
        total=read_exact(said["total"], blocks),
        squares=read_exact(said["squares"], blocks),
        distinct=None if said["distinct"] is None else read_integers(blocks[said["distinct"]]),
        values=None
        if values is None
        else Values(starts=read_integers(blocks[values[0]]), indices=read_integers(blocks[values[1]])),
    )


def nameless_file() -> int:
    """Open a file that is in no folder, in memory where the system has such files, else for its owner's eyes only."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("discreet", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def write_table(table: pa.Table, file: int) -> None:
    """Write a table to an open file as a stream of Arrow batches, and let nobody change it from then on."""
    import pyarrow as pa

    with (
        open(file, "wb", closefd=False) as opened,
        pa.PythonFile(opened, "w") as sink,
        pa.ipc.new_stream(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    if hasattr(control, "F_ADD_SEALS") and hasattr(os, "memfd_create"):
        seals = control.F_SEAL_WRITE | control.F_SEAL_GROW | control.F_SEAL_SHRINK | control.F_SEAL_SEAL
        control.fcntl(file, control.F_ADD_SEALS, seals)


def read_table(file: int) -> pa.Table:
    """Read a table where it lies: nothing is copied."""
    import pyarrow as pa

    shown = mmap.mmap(file, os.fstat(file).st_size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    return pa.ipc.open_stream(pa.py_buffer(shown)).read_all()
