"""Where rows wait: in memory as long as there is room, else in files without a name, partitioned by unit."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.packed_columns import Gathered, PackedShape, UnpackedColumns
from discreet.query.bounding.rows import Clean
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.string_packing import Spelling
from discreet.query.bounding.unit_codes import NumberUnits, Reader, SpelledUnits, Unread

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RowStore", "Spill", "keep_freed_memory"]

# --- store: Where rows wait: in memory as long as there is room, else in files, partitioned by unit. ---


@final
class RowStore:
    """Rows of all chunks. What it gives back are partitions: all rows of a unit are in one of them."""

    __slots__ = ("_gathered", "_memory", "_secret", "_shape", "_spill")

    def __init__(self, shape: PackedShape, secret: Secret, memory: int) -> None:
        self._shape, self._secret, self._memory = shape, secret, memory
        self._gathered = Gathered(shape)
        self._spill: Spill | None = None

    def __enter__(self) -> RowStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spill is not None:
            self._spill.close()

    def add(self, rows: Clean) -> None:
        """Take the rows of one chunk."""
        if not rows.size:
            return
        self._gathered.add(rows)
        # Sorting needs as much again; what is not packed is put together and packed before, which needs that twice.
        if 2 * (self._gathered.bytes + self._gathered.loose_bytes) > self._memory:
            self._flush()

    def partitions(self) -> Iterator[Gathered]:
        """Give all rows away, one partition after the other."""
        if self._spill is None:
            yield self._gathered
            return
        self._flush()
        yield from self._spill.partitions()

    def _flush(self) -> None:
        if self._spill is None:
            self._spill = Spill(self._shape, self._secret)
        self._spill.write(self._gathered)
        self._gathered = Gathered(self._shape)


# --- spill ---
# Files without a name for rows that memory does not hold: nobody else can open them, and nothing is left of them.
#
# Rows are shared out by a keyed hash of the unit, so that nobody can choose ids that all fall into one partition. What
# is counted does not depend on it: the rows of a unit are in one partition, and its name decides what is kept of them.


Integers: TypeAlias = NDArray[np.int64]
_PARTITIONS = 64
_ROWS = 1 << 20  # Shared out at a time.
_SPELLINGS = 4  # Each needs files of its own.

# How rows are written: as keys, as columns with units as they are, or with units that are spelled in this way.
_PACKED, _PLAIN = "packed", "plain"
Kind: TypeAlias = str | Spelling


@final
class Spill:
    """Rows in Arrow streams, one for each partition and each way to write a row down."""

    __slots__ = ("_files", "_open", "_secret", "_shape", "_spellings")

    def __init__(self, shape: PackedShape, secret: Secret) -> None:
        self._shape, self._secret = shape, secret
        self._spellings: list[Spelling] = []
        self._files: dict[tuple[int, Kind], _File] = {}
        self._open = ExitStack()

    def write(self, rows: Gathered) -> None:
        """Write rows to the files of their partitions; they are given away."""
        packed = rows.packed.take()
        for start in range(0, packed.size, _ROWS):
            keys = packed[start : start + _ROWS]
            self._share(_PACKED, NumberUnits(self._shape.layout.units(keys)), [_column(keys)])
        while rows.loose:
            part = rows.loose.pop()
            kind, units = self._stored(part.units)
            self._share(kind, part.units, [units, _column(part.groups), *map(_column, part.levels)])

    def partitions(self) -> Iterator[Gathered]:
        """Read the files back, one partition after the other."""
        for number in range(_PARTITIONS):
            gathered = Gathered(self._shape)
            for (where, kind), file in self._files.items():
                for batch in file.batches() if where == number else ():
                    if kind == _PACKED:
                        gathered.packed.more(batch.num_rows)[:] = batch.column(0)
                    else:
                        gathered.loose.append(_columns(kind, batch))
            yield gathered

    def close(self) -> None:
        """Let go of all files, which ends them."""
        self._open.close()

    def _share(self, kind: Kind, units: Unread, columns: Sequence[pa.Array]) -> None:
        """Append each row to the file of its partition."""
        import pyarrow as pa

        partitions = (units.hashes(self._secret) % np.uint64(_PARTITIONS)).astype(np.uint8)
        ends = np.cumsum(np.bincount(partitions, minlength=_PARTITIONS))
        order = pa.array(np.argsort(partitions, kind="stable"))
        batch = pa.record_batch(columns, [str(place) for place in range(len(columns))]).take(order)
        for number, (start, end) in enumerate(zip((0, *ends), ends, strict=False)):
            if end > start:
                self._file(number, kind, batch.schema).write(batch.slice(start, end - start))

    def _stored(self, units: Unread) -> tuple[Kind, pa.Array]:
        """Choose how to write units: spelled by what all chunks so far have in common, as long as that settles soon."""
        if isinstance(units, NumberUnits):
            return _PLAIN, _column(units.codes)
        if isinstance(units, SpelledUnits):
            spelling = units.spelling | self._spellings[-1] if self._spellings else units.spelling
            if spelling not in self._spellings:
                self._spellings.append(spelling)
            if spelling.fits and len(self._spellings) <= _SPELLINGS:
                return spelling, _column(units.respelled(spelling))
        return _PLAIN, units.texts()

    def _file(self, number: int, kind: Kind, schema: pa.Schema) -> _File:
        if (number, kind) not in self._files:
            file = self._open.enter_context(tempfile.TemporaryFile())  # noqa: SIM115, the stack closes it.
            self._files[number, kind] = _File(file, schema)
        return self._files[number, kind]


@final
class _File:
    """One stream of record batches, first written, then read."""

    __slots__ = ("_file", "_writer")

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow as pa

        self._file = file
        self._writer: Any = pa.ipc.new_stream(pa.PythonFile(file, "w"), schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(pa.PythonFile(self._file, "r"))


def _column(values: Integers) -> pa.Array:
    import pyarrow as pa

    return pa.array(values)


def _columns(kind: Kind, batch: pa.RecordBatch) -> UnpackedColumns:
    column = batch.column(0)
    units = SpelledUnits(np.asarray(column), kind) if isinstance(kind, Spelling) else Reader().read(column)[0]
    groups, *levels = (np.asarray(column) for column in batch.columns[1:])
    return UnpackedColumns(units, groups, tuple(levels))


# --- memory: A word with the allocator. ---


_LARGE = 1 << 24


def keep_freed_memory() -> None:
    """Let the C library keep freed arrays for the next ones instead of giving them back to the kernel each time.

    It returns what is larger than a threshold, and raises that to the size of what was freed: so free something
    large, once, without touching it. Fresh pages cost up to three times the work done on them. Where another
    allocator is in use this does nothing.
    """
    np.empty(_LARGE, np.uint8)
