"""Many short arrays as one long one, so that a thousand small laws cost a few calls of NumPy and not thousands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["RaggedRows"]

Entry = TypeVar("Entry", bound=np.generic)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RaggedRows:
    """Where each row begins in the long array, and how long it is: at least one entry."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int] | NDArray[np.int64]) -> RaggedRows:
        """Lay rows of these sizes end to end."""
        lengths = np.asarray(sizes, dtype=np.int64)
        return cls(np.cumsum(lengths) - lengths, lengths)

    def spread(self, values: NDArray[Entry]) -> NDArray[Entry]:
        """Repeat the value of each row for each of its entries."""
        return values if len(values) == 1 else np.repeat(values, self.sizes)

    def sum(self, entries: NDArray[Entry]) -> NDArray[Entry]:
        """Add up each row."""
        return np.asarray(np.add.reduceat(entries, self.starts))

    def largest(self, entries: NDArray[Entry]) -> NDArray[Entry]:
        """Return the largest entry of each row."""
        return np.asarray(np.maximum.reduceat(entries, self.starts))

    def smallest(self, entries: NDArray[Entry]) -> NDArray[Entry]:
        """Return the smallest entry of each row."""
        return np.asarray(np.minimum.reduceat(entries, self.starts))

    def split(self, entries: NDArray[Entry]) -> list[NDArray[Entry]]:
        """Return each row."""
        ends = [*self.starts.tolist(), len(entries)]
        return [entries[start:end] for start, end in pairwise(ends)]
