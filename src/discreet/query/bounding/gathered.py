"""Rows of all chunks, packed into one word each as they come, as long as that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.identity import Numbers, Units, joined
from discreet.query.bounding.keys import Layout
from discreet.query.bounding.limits import Measure
from discreet.query.bounding.payload import Inside
from discreet.query.bounding.rows import Clean

__all__ = ["Gathered", "Shape"]

Integers: TypeAlias = NDArray[np.int64]


@final
class Shape:
    """How many groups there are and how many bits the levels of each measure take."""

    __slots__ = ("bits", "groups", "layout")

    def __init__(self, groups: int, measures: Sequence[Measure]) -> None:
        self.groups = groups
        self.bits = tuple(measure.bits for measure in measures)
        self.layout = Layout((groups - 1).bit_length(), sum(self.bits))

    def pack(self, units: Units, columns: Sequence[Integers]) -> Integers | None:
        """Put rows into one word each, or return None if units, groups and levels do not fit."""
        codes = units.codes
        if not self.layout.holds(int(codes.min()), int(codes.max())):
            return None
        return self.layout.pack(codes, columns[0], list(zip(columns[1:], self.bits, strict=True)))

    def unpack(self, keys: Integers) -> Clean:
        """Undo `pack` for units that are integers."""
        payloads, inside = self.layout.payloads(keys), Inside(self.bits)
        levels = [inside.levels(payloads, number) for number in range(len(self.bits))]
        return Clean(Numbers(self.layout.units(keys)), (self.layout.groups(keys), *levels))


@final
class Gathered:
    """The rows of one partition."""

    __slots__ = ("_shape", "loose", "packed")

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.packed: list[Integers] = []
        self.loose: list[Clean] = []

    def add(self, rows: Clean) -> int:
        """Take rows; return how many bytes they need."""
        # Texts are numbered chunk by chunk, so their codes mean something only once all chunks are there.
        keys = self._shape.pack(rows.units, rows.columns) if isinstance(rows.units, Numbers) else None
        if keys is not None:
            self.packed.append(keys)
            return keys.nbytes
        self.loose.append(rows)
        return 8 * rows.size * (1 + len(rows.columns))

    def keys(self) -> Integers:
        """Return all rows as keys, if all are packed; they are given away."""
        keys = self.packed[0] if len(self.packed) == 1 else np.concatenate(self.packed)
        self.packed = []
        return keys

    def rows(self) -> Clean:
        """Return all rows as columns; they are given away."""
        parts = [*self.loose, *map(self._shape.unpack, self.packed)]
        self.loose, self.packed = [], []
        columns = zip(*(part.columns for part in parts), strict=True)
        return Clean(joined([part.units for part in parts]), tuple(np.concatenate(column) for column in columns))
