"""The kept values of a measure, by group: for quantiles, modes and counts of distinct values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.limits import BoundedColumn

__all__ = ["KeptValues", "Values"]

Integers: TypeAlias = NDArray[np.int64]
_WORD = 63


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """Indices that are not NULL, sorted within each group, one group after the other."""

    starts: Integers  # one more than there are groups: those of group g are from starts[g] to starts[g + 1]
    indices: Integers

    def of(self, group: int) -> Integers:
        """Return the sorted indices of one group."""
        return self.indices[self.starts[group] : self.starts[group + 1]]

    @property
    def distinct(self) -> Integers:
        """How many distinct indices each group has."""
        first = np.ones(self.indices.size, np.bool_)
        first[1:] = self.indices[1:] != self.indices[:-1]
        borders = self.starts[:-1]
        first[borders[borders < self.indices.size]] = True
        before = np.concatenate(([0], np.cumsum(first)))
        return np.asarray(before[self.starts[1:]] - before[self.starts[:-1]], np.int64)


@final
class KeptValues:
    """Values on their way: group and level in one word where both fit."""

    __slots__ = ("_groups", "_measure", "_parts")

    def __init__(self, groups: int, measure: BoundedColumn) -> None:
        self._groups = groups
        self._measure = measure
        self._parts: list[tuple[Integers, Integers]] = []

    def add(self, groups: Integers, levels: Integers) -> None:
        """Take those that are not NULL."""
        present = levels != 0
        whole = bool(present.all())
        self._parts.append((groups, levels) if whole else (groups[present], levels[present]))

    def merge(self, other: KeptValues) -> None:
        self._parts += other._parts

    def finish(self) -> Values:
        """Sort by group, then by value, which forgets who gave what."""
        none = np.zeros(0, np.int64)
        groups = np.concatenate([none, *(part for part, _ in self._parts)])
        levels = np.concatenate([none, *(part for _, part in self._parts)])
        bits = self._measure.bits
        if (self._groups - 1).bit_length() + bits <= _WORD:
            packed = (groups << bits) | levels
            packed.sort()
            groups, levels = packed >> bits, packed & ((1 << bits) - 1)
        else:
            order = np.lexsort((levels, groups))
            groups, levels = groups[order], levels[order]
        starts = np.searchsorted(groups, np.arange(self._groups + 1))
        return Values(starts=starts.astype(np.int64), indices=levels + (self._measure.low - 1))
