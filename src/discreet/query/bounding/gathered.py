"""Rows of all chunks, packed into one word each as they come, as long as that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.identity import NumberUnits, Units, Unread, joined
from discreet.query.bounding.keys import KeyBuffer, KeyLayout
from discreet.query.bounding.payload import Inside
from discreet.query.bounding.rows import Clean

__all__ = ["Gathered", "PackedShape", "UnpackedColumns"]

Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class UnpackedColumns:
    """Rows that are not packed."""

    units: Unread
    groups: Integers
    levels: tuple[Integers, ...]

    @property
    def bytes(self) -> int:
        return 8 * self.groups.size * (2 + len(self.levels))


@final
class PackedShape:
    """How many groups there are and how many bits the levels of each measure take."""

    __slots__ = ("bits", "groups", "layout")

    def __init__(self, groups: int, bits: Sequence[int]) -> None:
        self.groups = groups
        self.bits = tuple(bits)
        self.layout = KeyLayout((groups - 1).bit_length(), sum(self.bits))

    def holds(self, units: Units) -> bool:
        """Whether units, groups and levels fit into one word."""
        return self.layout.holds_all(units.codes)

    def unpack(self, keys: Integers) -> UnpackedColumns:
        """Undo the packing of units that are integers."""
        payloads, inside = self.layout.payloads(keys), Inside(self.bits)
        levels = tuple(inside.levels(payloads, number) for number in range(len(self.bits)))
        return UnpackedColumns(NumberUnits(self.layout.units(keys)), self.layout.groups(keys), levels)


@final
class Gathered:
    """The rows of one partition."""

    __slots__ = ("_shape", "loose", "packed")

    def __init__(self, shape: PackedShape) -> None:
        self._shape = shape
        self.packed = KeyBuffer()
        self.loose: list[UnpackedColumns] = []

    @property
    def bytes(self) -> int:
        return 8 * self.packed.size + sum(part.bytes for part in self.loose)

    def add(self, rows: Clean) -> None:
        """Take the rows of one chunk."""
        # Texts are numbered chunk by chunk, so their codes mean something only once all chunks are there.
        if isinstance(rows.units, NumberUnits) and self._shape.holds(rows.units):
            self._pack(rows.units, rows)
        else:
            levels = tuple(measure.levels() for measure in rows.measures)
            self.loose.append(UnpackedColumns(rows.units, rows.groups.astype(np.int64, copy=False), levels))

    def _pack(self, units: NumberUnits, rows: Clean) -> None:
        keys = self.packed.more(rows.size)
        np.left_shift(units.codes, self._shape.layout.group_bits, out=keys)
        keys |= rows.groups
        for measure, bits in zip(rows.measures, self._shape.bits, strict=True):
            keys <<= bits
            measure.add_to(keys)

    def columns(self) -> tuple[Units, Integers, tuple[Integers, ...]]:
        """Return the units, groups and levels of all rows; they are given away."""
        parts, self.loose = self.loose, []
        if self.packed.size:
            parts.append(self._shape.unpack(self.packed.take()))
        units = joined([part.units for part in parts])
        levels = zip(*(part.levels for part in parts), strict=True)
        groups = np.concatenate([part.groups for part in parts])
        return units, groups, tuple(np.concatenate(column) for column in levels)
