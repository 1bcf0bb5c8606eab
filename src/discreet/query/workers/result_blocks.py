"""Tallies as blocks of whole numbers, and tables as Arrow streams in files without a name."""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding import GroupKeys, KeyColumn, MeasureTally, Tally, Values
from discreet.query.engine import ExactCounts, Stage
from discreet.query.engines.stage_runner import known_keys
from discreet.query.workers.messages import Block

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ByteBlocks", "nameless_file", "read_table", "read_tallied", "write_table", "write_tallied"]

Integers: TypeAlias = NDArray[np.int64]
Exact: TypeAlias = NDArray[np.object_]
_LIMB = 62  # bits


@final
class ByteBlocks:
    """Blocks of bytes that go with a message; each is known by its place."""

    __slots__ = ("all",)

    def __init__(self) -> None:
        self.all: list[Block] = []

    def add(self, block: Block) -> int:
        self.all.append(block)
        return len(self.all) - 1

    def integers(self, values: Integers) -> int:
        return self.add(np.ascontiguousarray(values, np.int64).data)

    def exact(self, values: Exact) -> list[int]:
        """Write whole numbers of any size in limbs, the lowest first; only the last one has a sign."""
        limbs = []
        rest = np.asarray(values, object)
        while rest.size and max(abs(int(rest.min())), abs(int(rest.max()))) >= 1 << _LIMB:
            limbs.append(self.integers((rest & ((1 << _LIMB) - 1)).astype(np.int64)))
            rest = rest >> _LIMB
        return [*limbs, self.integers(rest.astype(np.int64))]


def write_tallied(tallied: ExactCounts, stage: Stage, blocks: ByteBlocks) -> dict[str, Any]:
    """Write a tally, and the keys of its groups where no public list says them."""
    tally = tallied.tally
    return {
        "groups": tallied.groups,
        "keys": None if _are_known(stage) or not tallied.groups else _write_keys(tallied.keys, blocks),
        "units": blocks.integers(tally.units),
        "rows": blocks.integers(tally.rows),
        "measures": [_write_measure(measure, blocks) for measure in tally.measures],
    }


def _are_known(stage: Stage) -> bool:
    return all(key.domain is not None for key in stage.keys)


def _write_keys(keys: Callable[..., Any], blocks: ByteBlocks) -> dict[str, Any]:
    found = getattr(keys, "__self__", None)
    assert isinstance(found, GroupKeys), "groups that nobody listed are found by their keys"
    return {
        "columns": [blocks.add(_stream(column.values)) for column in found.columns],
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
        units=_integers(blocks[said["units"]]),
        rows=_integers(blocks[said["rows"]]),
        measures=tuple(_read_measure(measure, blocks) for measure in said["measures"]),
    )
    groups = int(said["groups"])
    if not groups:
        return ExactCounts(groups=0, tally=tally, keys=lambda _: [])
    keys = known_keys(stage) if said["keys"] is None else _read_keys(said["keys"], blocks).values
    return ExactCounts(groups=groups, tally=tally, keys=keys)


def _read_keys(said: dict[str, Any], blocks: Sequence[Block]) -> GroupKeys:
    columns = tuple(KeyColumn(_array(blocks[place])) for place in said["columns"])
    steps = tuple(None if place is None else _integers(blocks[place]) for place in said["steps"])
    return GroupKeys(columns, steps)


def _read_measure(said: dict[str, Any], blocks: Sequence[Block]) -> MeasureTally:
    values = said["values"]
    return MeasureTally(
        counts=_integers(blocks[said["counts"]]),
        total=_exact(said["total"], blocks),
        squares=_exact(said["squares"], blocks),
        distinct=None if said["distinct"] is None else _integers(blocks[said["distinct"]]),
        values=None
        if values is None
        else Values(starts=_integers(blocks[values[0]]), indices=_integers(blocks[values[1]])),
    )


def _integers(block: Block) -> Integers:
    return np.frombuffer(block, np.int64)


def _exact(places: list[int] | None, blocks: Sequence[Block]) -> Exact | None:
    if places is None:
        return None
    whole = _integers(blocks[places[-1]]).astype(object)
    for place in reversed(places[:-1]):
        whole = (whole << _LIMB) + _integers(blocks[place]).astype(object)
    return whole


def _stream(values: pa.Array) -> memoryview:
    import pyarrow as pa

    batch = pa.record_batch([values], ["value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


def _array(block: Block) -> pa.Array:
    import pyarrow as pa

    column = pa.ipc.open_stream(pa.py_buffer(block)).read_all().column(0)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


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
    if hasattr(fcntl, "F_ADD_SEALS") and hasattr(os, "memfd_create"):
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)


def read_table(file: int) -> pa.Table:
    """Read a table where it lies: nothing is copied."""
    import pyarrow as pa

    shown = mmap.mmap(file, os.fstat(file).st_size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    return pa.ipc.open_stream(pa.py_buffer(shown)).read_all()
