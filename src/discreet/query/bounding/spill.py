"""Private files for rows that memory does not hold: some for each partition of units, deleted in any case.

A partition is chosen by a unit's secret name, so nobody can choose ids that all fall into one, and what is counted
does not depend on it: the rows of a unit are in one partition, and its name decides what is kept of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.gathered import Columns, Gathered, Shape
from discreet.query.bounding.identity import Numbers, Unread
from discreet.query.bounding.reading import Reader
from discreet.query.bounding.secret import Blocks, Secret

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Spill"]

Integers: TypeAlias = NDArray[np.int64]
_PARTITIONS = 64
_STREAM = np.uint64((1 << 32) - 1)  # Not one of those that choose what is kept: there are at most 2^31 groups.
_ROWS = 1 << 20  # Shared out at a time.
_PACKED, _LOOSE = "packed", "loose"


@final
class Spill:
    """Rows in Arrow files below a directory that only this user can enter."""

    __slots__ = ("_directory", "_open", "_secret", "_shape", "_writers")

    def __init__(self, shape: Shape, secret: Secret) -> None:
        self._shape, self._secret = shape, secret
        self._directory = Path(tempfile.mkdtemp(prefix="discreet-"))  # Its mode is 0700.
        self._writers: dict[Path, Any] = {}
        self._open = ExitStack()

    def write(self, rows: Gathered) -> None:
        """Write rows to the files of their partitions; they are given away."""
        packed = rows.packed.take()
        for start in range(0, packed.size, _ROWS):
            keys = packed[start : start + _ROWS]
            self._share(_PACKED, self._secret.names_of_integers(self._shape.layout.units(keys)), [_column(keys)])
        while rows.loose:
            part = rows.loose.pop()
            columns = [_stored(part.units), _column(part.groups), *map(_column, part.levels)]
            self._share(_LOOSE, part.units.row_names(self._secret), columns)

    def partitions(self) -> Iterator[Gathered]:
        """Read the files back, one partition after the other, each deleted as it is read."""
        self._open.close()
        for number in range(_PARTITIONS):
            gathered = Gathered(self._shape)
            for batch in self._batches(_PACKED, number):
                gathered.packed.more(batch.num_rows)[:] = batch.column(0)
            gathered.loose += [_columns(batch) for batch in self._batches(_LOOSE, number)]
            yield gathered

    def remove(self) -> None:
        """Delete everything."""
        self._open.close()
        shutil.rmtree(self._directory)

    def _share(self, kind: str, names: Blocks, columns: Sequence[pa.Array]) -> None:
        """Append each row to the file of its partition."""
        import pyarrow as pa

        drawn = self._secret.blocks(names, _STREAM, np.uint64(0))[:, 0]
        partitions = (drawn % np.uint64(_PARTITIONS)).astype(np.uint8)
        ends = np.cumsum(np.bincount(partitions, minlength=_PARTITIONS))
        order = pa.array(np.argsort(partitions, kind="stable"))
        batch = pa.record_batch(columns, [str(place) for place in range(len(columns))]).take(order)
        for number, (start, end) in enumerate(zip((0, *ends), ends, strict=False)):
            if end > start:
                self._writer(kind, number, batch.schema).write_batch(batch.slice(start, end - start))

    def _writer(self, kind: str, number: int, schema: pa.Schema) -> Any:
        import pyarrow as pa

        path = self._path(kind, number)
        if path not in self._writers:
            sink = self._open.enter_context(pa.OSFile(str(path), "wb"))
            self._writers[path] = self._open.enter_context(pa.ipc.new_stream(sink, schema))
        return self._writers[path]

    def _batches(self, kind: str, number: int) -> list[pa.RecordBatch]:
        import pyarrow as pa

        path = self._path(kind, number)
        if path not in self._writers:
            return []
        with pa.OSFile(str(path)) as source:
            batches = list(pa.ipc.open_stream(source))
        path.unlink()
        return batches

    def _path(self, kind: str, number: int) -> Path:
        return self._directory / f"{kind}-{number}"


def _column(values: Integers) -> pa.Array:
    import pyarrow as pa

    return pa.array(values)


def _stored(units: Unread) -> pa.Array:
    return _column(units.codes) if isinstance(units, Numbers) else units.texts()


def _columns(batch: pa.RecordBatch) -> Columns:
    units, _ = Reader().read(batch.column(0))
    groups, *levels = (np.asarray(column) for column in batch.columns[1:])
    return Columns(units, groups, tuple(levels))
