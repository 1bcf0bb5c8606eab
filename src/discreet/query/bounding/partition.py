"""Bound and count one partition: all rows of some units."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.gathered import Gathered, PackedShape
from discreet.query.bounding.identity import ListedUnits, NumberUnits, Units, numbered
from discreet.query.bounding.keys import KeyLayout
from discreet.query.bounding.limits import BoundedColumn, ContributionBounds
from discreet.query.bounding.ordering import blocks, sort
from discreet.query.bounding.payload import Inside, Numbered, Payload
from discreet.query.bounding.secret import Secret
from discreet.query.bounding.selection import Selection
from discreet.query.bounding.tallying import Aggregation

__all__ = ["Counting"]

Integers: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Counting:
    """How to count partitions: everything public, the secret, and who does the work."""

    limits: ContributionBounds
    measures: Sequence[BoundedColumn]
    shape: PackedShape
    secret: Secret
    workers: Executor
    threads: int

    def count(self, rows: Gathered) -> Aggregation:
        """Count the rows of one partition; they are given away."""
        if rows.loose:
            return self.loose(*rows.columns())
        return self._packed(rows.packed.take(), NumberUnits(np.zeros(0, np.int64)))

    def _nothing(self) -> Aggregation:
        return Aggregation(self.shape.groups, self.measures)

    def _packed(self, keys: Integers, units: Units) -> Aggregation:
        """Count keys that hold everything."""
        return self._sorted(keys, units, self.shape.layout, Inside(self.shape.bits))

    def loose(self, units: Units, groups: Integers, levels: Sequence[Integers]) -> Aggregation:
        """Pack rows into one word each, after numbering the units anew where that helps; else number the rows."""
        if not self.shape.holds(units) and self.shape.layout.holds(0, units.codes.size - 1):
            units = numbered(units)
        if not self.shape.holds(units):
            return self._numbered(units, groups, levels)
        fields = zip(levels, self.shape.bits, strict=True)
        return self._packed(self.shape.layout.pack(units.codes, groups, fields), units)

    def _numbered(self, units: Units, groups: Integers, levels: Sequence[Integers]) -> Aggregation:
        """Sort by unit, group and the number of the row; if even that is too wide, one half of the units at a time."""
        size = units.codes.size
        layout = KeyLayout(self.shape.layout.group_bits, (size - 1).bit_length())
        if not layout.holds_all(units.codes):
            units = numbered(units)
            if not layout.holds_all(units.codes):
                return self._halves(units, groups, levels)
        keys = layout.pack(units.codes, groups, [(np.arange(size), layout.payload_bits)])
        return self._sorted(keys, units, layout, Numbered(levels, layout.payload_bits))

    def _halves(self, units: ListedUnits, groups: Integers, levels: Sequence[Integers]) -> Aggregation:
        tallying, many = self._nothing(), units.size
        for first, last in ((0, many // 2), (many // 2, many)):
            rows = (units.codes >= first) & (units.codes < last)
            if rows.any():
                half = units.part(first, last, rows)
                tallying.merge(self._numbered(half, groups[rows], [column[rows] for column in levels]))
        return tallying

    def _sorted(self, keys: Integers, units: Units, layout: KeyLayout, payload: Payload) -> Aggregation:
        """Sort keys; bound and count them in blocks of whole units."""
        sort(keys, self.workers, self.threads)
        parts = blocks(keys, layout.unit_shift)
        shares = [parts[turn :: self.threads] for turn in range(self.threads)]
        chosen = [Selection(self.limits, self.secret.again(), units, layout, payload) for _ in shares]
        done = list(self.workers.map(self._share, shares, chosen))
        for other in done[1:]:
            done[0].merge(other)
        return done[0]

    def _share(self, parts: Sequence[Integers], selection: Selection) -> Aggregation:
        tallying = self._nothing()
        for keys in parts:
            for kept in selection.keep(keys):
                tallying.add(kept, selection.payload)
        return tallying
