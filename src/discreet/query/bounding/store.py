"""Where rows wait: in memory as long as there is room, else in files, partitioned by unit."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import final

from discreet.query.bounding.gathered import Gathered, PackedShape
from discreet.query.bounding.rows import Clean
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.spill import Spill

__all__ = ["RowStore"]


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
        # Sorting and joining need as much again.
        if 2 * self._gathered.bytes > self._memory:
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
