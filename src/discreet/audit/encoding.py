"""Outputs as numbers: whatever a mechanism returns becomes a row of features, and a code if values repeat."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.audit.outputs import Outputs

__all__ = ["Codes", "Features", "OutputEncoder", "Sample", "encoder_of"]

Features: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
_MOST_WORDS = 64  # Distinct words of one place that get a feature of their own.
_FAR = 1e300  # Stands for an infinite number: far, and still a number.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Outputs of one law, as numbers."""

    codes: Codes
    features: Features

    def __len__(self) -> int:
        return len(self.codes)


class OutputEncoder(Protocol):
    """How outputs become numbers, learnt from some of them."""

    @property
    def values(self) -> int:
        """How many different values were seen. The code of any other value is this number."""

    def sample(self, outputs: Outputs) -> Sample:
        """Return outputs as numbers."""


def encoder_of(one: Outputs, other: Outputs) -> OutputEncoder:
    """Learn the places, words and values of two samples, which must be alike."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return _Rows(np.unique(_comparable(np.concatenate([one, other]))))
    assert isinstance(one, list), "samples are made alike before"
    assert isinstance(other, list), "samples are made alike before"
    values = {value: code for code, value in enumerate(dict.fromkeys([*one, *other]))}
    return _Values(tuple(_words([_places(value) for value in values])), values)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows of numbers: their features are the numbers."""

    known: NDArray[Any]  # sorted

    @property
    def values(self) -> int:
        return len(self.known)

    def sample(self, outputs: Outputs) -> Sample:
        assert isinstance(outputs, np.ndarray), "samples are made alike before"
        rows = _comparable(outputs)
        found = np.minimum(np.searchsorted(self.known, rows), self.values - 1)
        codes = np.where(self.known[found] == rows, found, self.values)
        return Sample(codes.astype(np.int64), np.clip(outputs.astype(np.float64), -_FAR, _FAR))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """Anything: each place is a number, and a column for each of its words."""

    words: tuple[tuple[Hashable, ...], ...]
    known: Mapping[Hashable, int]

    @property
    def values(self) -> int:
        return len(self.known)

    def sample(self, outputs: Outputs) -> Sample:
        """Work out each different value once: there are often few."""
        assert isinstance(outputs, list), "samples are made alike before"
        different = {value: place for place, value in enumerate(dict.fromkeys(outputs))}
        places = np.array([different[value] for value in outputs], np.int64)
        codes = np.array([self.known.get(value, self.values) for value in different], np.int64)
        return Sample(codes[places], self._features(different)[places])

    def _features(self, values: Iterable[Hashable]) -> Features:
        rows = [_places(value) for value in values]
        columns = [np.array([len(row) for row in rows], np.float64)]
        for place, words in enumerate(self.words):
            cells = [row[place] if place < len(row) else None for row in rows]
            columns.append(np.array([_number(cell) for cell in cells], np.float64))
            columns.extend(np.array([cell == word for cell in cells], np.float64) for word in words)
        return np.column_stack(columns)


def _comparable(outputs: NDArray[Any]) -> NDArray[Any]:
    """Return one comparable value a row: the number itself, or the bytes of several."""
    if outputs.shape[1] == 1:
        return outputs[:, 0]
    whole = np.ascontiguousarray(outputs)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))[:, 0]


def _words(rows: Sequence[tuple[Hashable, ...]]) -> Iterable[tuple[Hashable, ...]]:
    for place in range(max((len(row) for row in rows), default=0)):
        seen = {row[place]: None for row in rows if place < len(row) and not _is_number(row[place])}
        yield tuple(sorted(seen, key=repr)[:_MOST_WORDS])


def _places(output: Hashable) -> tuple[Hashable, ...]:
    """Flatten an output into its places."""
    if not isinstance(output, tuple):
        return (output,)
    return tuple(place for part in output for place in _places(part))


def _is_number(value: Hashable) -> bool:
    """Whether it is a number. So is True: it equals 1, and what is equal must be read alike."""
    return isinstance(value, (Real, Decimal))


def _number(value: Hashable) -> float:
    if not _is_number(value):
        return 0.0
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = _FAR if value > 0 else -_FAR  # type: ignore[operator]
    return min(max(number, -_FAR), _FAR)
