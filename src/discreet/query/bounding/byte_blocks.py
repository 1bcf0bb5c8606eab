"""Whole numbers of any size and Arrow columns as blocks of bytes, each known by its place; nothing can be run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Block", "ByteBlocks", "read_array", "read_exact", "read_integers", "unpacked"]

Block: TypeAlias = "bytes | bytearray | memoryview"
Integers: TypeAlias = NDArray[np.int64]
Exact: TypeAlias = NDArray[np.object_]
_LIMB = 62  # bits
_LENGTH = 8  # bytes


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

    def array(self, values: pa.Array) -> int:
        """Write one Arrow column as a stream."""
        import pyarrow as pa

        batch = pa.record_batch([values], ["value"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return self.add(memoryview(sink.getvalue()))

    def packed(self, said: Any) -> bytes:
        """Put plain values and all blocks into one string of bytes."""
        views = [memoryview(block).cast("B") for block in self.all]
        text = json.dumps([said, [view.nbytes for view in views]], separators=(",", ":")).encode()
        return b"".join([len(text).to_bytes(_LENGTH, "little"), text, *views])


def unpacked(written: Block) -> tuple[Any, list[memoryview]]:
    """Read what `packed` wrote; what is cut off is an error."""
    whole = memoryview(written)
    start = _LENGTH + int.from_bytes(whole[:_LENGTH], "little")
    said, sizes = json.loads(bytes(whole[_LENGTH:start]))
    blocks = []
    for size in sizes:
        blocks.append(whole[start : start + size])
        start += size
    if start != len(whole):
        raise ValueError("blocks of bytes are cut off")
    return said, blocks


def read_integers(block: Block) -> Integers:
    return np.frombuffer(block, np.int64)


def read_exact(places: list[int] | None, blocks: Sequence[Block]) -> Exact | None:
    """Put limbs together; None if there are none."""
    if places is None:
        return None
    whole = read_integers(blocks[places[-1]]).astype(object)
    for place in reversed(places[:-1]):
        whole = (whole << _LIMB) + read_integers(blocks[place]).astype(object)
    return whole


def read_array(block: Block) -> pa.Array:
    import pyarrow as pa

    column = pa.ipc.open_stream(pa.py_buffer(block)).read_all().column(0)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
