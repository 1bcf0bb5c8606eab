"""What bad rows can do to an estimate: the data sets that are worst for it. All of this is private.

Of two samples of one size, sorted, let one be nowhere below the other. An estimate that never falls when a value
rises is then not lower for the first. So for such an estimate it is worst to move the lowest rows to the upper bound,
or the highest to the lower one; for others the same ways, and some more, are a search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.robust.functionals import Functional, HodgesLehmann, Mean, MLocation, TrimmedMean, WinsorisedMean
from discreet.robust.psi import Floats

__all__ = ["CorruptedSample", "Kind", "estimate", "is_monotone", "worst_sample"]

Kind: TypeAlias = Literal["corrupted", "mislabelled"]

_POINTS = 25  # To which rows are moved in a search.
_WINDOWS = 5  # Of neighbouring rows, to be moved or to go.


@final
@dataclass(frozen=True, slots=True, eq=False)
class CorruptedSample:
    """A sample and how its rows may go wrong."""

    sample: Floats  # sorted, within the bounds
    bounds: tuple[float, float]
    others: Floats | None  # sorted: the rows of another label, if they are known

    def most(self, kind: Kind) -> int:
        """Return how many rows can go wrong so that something is left."""
        if kind == "corrupted":
            return self.sample.size
        return self.sample.size - 1 if self.others is None else min(self.sample.size, self.others.size)

    def samples(self, kind: Kind, count: int, *, search: bool) -> Iterator[Floats]:
        """Make the samples in which `count` rows went wrong: the two worst ones, or those of a search.

        A corrupted row has another value within the bounds. A mislabelled one is missing, as it was taken for one of
        the others; if these are known, a row of theirs was taken for one of this sample in exchange.
        """
        if not count:
            yield self.sample
        elif kind == "corrupted":
            yield from self._corrupted(count, search)
        else:
            yield from self._mislabelled(count, search)

    def _corrupted(self, count: int, search: bool) -> Iterator[Floats]:
        low, high = self.bounds
        points = np.linspace(low, high, _POINTS) if search else np.array([high, low])
        for start, point in _pairs(self._starts(self.sample, count, search), points, search):
            yield np.sort(np.append(_without(self.sample, start, count), np.full(count, point)))

    def _mislabelled(self, count: int, search: bool) -> Iterator[Floats]:
        leaving = self._starts(self.sample, count, search)
        if self.others is None:
            yield from (_without(self.sample, start, count) for start in leaving)
            return
        entering = self._starts(self.others, count, search)[::-1]
        for start, first in _pairs(leaving, entering, search):
            yield np.sort(np.append(_without(self.sample, start, count), self.others[first : first + count]))

    @staticmethod
    def _starts(rows: Floats, count: int, search: bool) -> NDArray[np.int64]:
        """Return where windows of `count` rows begin: the lowest and the highest, or some between them too."""
        last = rows.size - count
        return np.linspace(0, last, _WINDOWS if search else 2).astype(np.int64)


def _pairs(first: NDArray[Any], second: NDArray[Any], search: bool) -> Iterator[tuple[Any, Any]]:
    """Pair two lists, or all of their entries."""
    if search:
        yield from ((one, other) for one in first.tolist() for other in second.tolist())
    else:
        yield from zip(first.tolist(), second.tolist(), strict=True)


def _without(rows: Floats, start: int, count: int) -> Floats:
    return np.concatenate([rows[:start], rows[start + count :]])


def is_monotone(functional: Functional) -> bool:
    """Tell whether the estimate is known never to fall when a value rises; then two samples of a kind are the worst."""
    if isinstance(functional, MLocation):
        return functional.psi.is_monotone and functional.scale is not None
    return isinstance(functional, (Mean, TrimmedMean, WinsorisedMean, HodgesLehmann))


def estimate(functional: Functional, sample: Floats) -> float:
    """Return the estimate of a sample whose rows count alike."""
    return functional.estimate(sample, np.full(sample.size, 1 / sample.size))


def worst_sample(functional: Functional, trouble: CorruptedSample, kind: Kind, count: int) -> Floats:
    """Return the sample with so many bad rows that moves the estimate farthest, of all or of those of a search."""
    before = estimate(functional, trouble.sample)
    candidates = trouble.samples(kind, count, search=not is_monotone(functional))
    return max(candidates, key=lambda sample: abs(estimate(functional, sample) - before))
