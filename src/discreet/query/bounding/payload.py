"""What a key carries besides unit and group: the levels themselves, or the number of a row that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.query.bounding.rowsort import in_order
from discreet.query.bounding.spans import spread

__all__ = ["Inside", "Numbered", "Payload"]

Integers: TypeAlias = NDArray[np.int64]


class Payload(Protocol):
    """A way to find the levels of a kept row."""

    def levels(self, payloads: Integers, measure: int) -> Integers:
        """Return the levels of one measure."""

    def arrange(self, keys: Integers, starts: Integers, counts: Integers) -> None:
        """Put the rows of some (unit, group) pairs into an order that depends on their levels only."""


@final
@dataclass(frozen=True, slots=True)
class Inside:
    """All levels are in the payload, the first at the top. Sorted keys are in order already."""

    bits: tuple[int, ...]

    def levels(self, payloads: Integers, measure: int) -> Integers:
        below = sum(self.bits[measure + 1 :])
        levels = payloads >> below if below else payloads
        return levels if measure == 0 else levels & ((1 << self.bits[measure]) - 1)

    def arrange(self, keys: Integers, starts: Integers, counts: Integers) -> None:
        """Nothing is left to do: equal keys are equal rows."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Numbered:
    """The payload is the number of a row in these columns."""

    columns: Sequence[Integers]
    payload_bits: int

    def levels(self, payloads: Integers, measure: int) -> Integers:
        return self.columns[measure][payloads]

    def arrange(self, keys: Integers, starts: Integers, counts: Integers) -> None:
        """Sort each pair's rows by their levels: which row has which number in the scan must not matter."""
        places = spread(starts, counts)
        rows = keys[places] & ((1 << self.payload_bits) - 1)
        pairs = np.repeat(np.arange(starts.size), counts)
        order = in_order([column[rows] for column in self.columns], pairs, starts.size)
        keys[places] = keys[places[order]]
