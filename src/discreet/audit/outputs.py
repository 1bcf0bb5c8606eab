"""Outputs of any mechanism as numbers: whatever it returns becomes a row of features, and a code if values repeat."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = ["Codes", "Encoder", "Features", "Outputs", "outputs_of"]

Features: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Outputs: TypeAlias = NDArray[Any] | list[Hashable]  # an array of numbers, one row an output, or anything, one by one
_MOST_WORDS = 64  # Distinct words of one place that get a feature of their own.
_FAR = 1e300  # Stands for an infinite number: far, and still a number.


def outputs_of(returned: Any) -> Outputs:
    """Read what a mechanism returned for several runs; an array of numbers stays one, which is quick."""
    if isinstance(returned, np.ndarray) and returned.dtype.kind in "biuf" and returned.ndim in (1, 2):
        return np.ascontiguousarray(returned if returned.ndim == 2 else returned[:, None])
    listed = [_plain(output) for output in returned]
    if listed and all(type(output) is int and abs(output) < 2**53 for output in listed):
        return np.array(listed, np.int64)[:, None]
    return listed


def _plain(output: Any) -> Hashable:
    """Return an output as a hashable value: a released value stands for its release, a sequence becomes a tuple."""
    value = getattr(output, "value", output)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        value = tuple(sorted(value.items(), key=repr))
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    if not isinstance(value, Hashable):
        raise InvalidParameter(f"the auditor cannot compare outputs of type {type(value).__name__}: return numbers")
    return value


@final
@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """How outputs become numbers: each place is a number, or a list of words that each get a column."""

    words: tuple[tuple[Hashable, ...], ...]
    known: Any  # sorted rows of numbers, or a dictionary from values to codes

    @classmethod
    def fitted(cls, one: Outputs, other: Outputs) -> Encoder:
        """Learn the places, words and values of some outputs. Others are compared by what they share with these."""
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            return cls(((),) * one.shape[1], np.unique(_rows(np.concatenate([one, other]))))
        listed = [*_listed(one), *_listed(other)]
        values = {value: code for code, value in enumerate(dict.fromkeys(listed))}
        return cls(tuple(_words(listed)), values)

    @property
    def values(self) -> int:
        """How many different values were seen."""
        return len(self.known)

    def codes(self, outputs: Outputs) -> Codes:
        """Return the number of each output among the values that were seen; that of none is one more than all."""
        if isinstance(self.known, dict):
            return np.array([self.known.get(value, self.values) for value in _listed(outputs)], np.int64)
        assert isinstance(outputs, np.ndarray), "the outputs of one mechanism have one shape"
        rows = _rows(outputs)
        found = np.minimum(np.searchsorted(self.known, rows), self.values - 1)
        return np.where(self.known[found] == rows, found, self.values)

    def features(self, outputs: Outputs) -> Features:
        """Return one row an output: of each place its number, and which of its words it is."""
        if isinstance(outputs, np.ndarray) and not isinstance(self.known, dict):
            return np.clip(outputs.astype(np.float64), -_FAR, _FAR)
        rows = [_places(output) for output in _listed(outputs)]
        columns = [np.array([len(row) for row in rows], np.float64)]
        for place, words in enumerate(self.words):
            values = [row[place] if place < len(row) else None for row in rows]
            columns.append(np.array([_number(value) for value in values], np.float64))
            columns.extend(np.array([value == word for value in values], np.float64) for word in words)
        return np.column_stack(columns)


def _rows(outputs: NDArray[Any]) -> NDArray[Any]:
    """Return one comparable value a row: the number itself, or the bytes of several."""
    if outputs.shape[1] == 1:
        return outputs[:, 0]
    whole = np.ascontiguousarray(outputs)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1])))[:, 0]


def _listed(outputs: Outputs) -> list[Hashable]:
    """Return outputs one by one; a row of one number is that number."""
    if isinstance(outputs, list):
        return outputs
    return [_plain(row[0] if len(row) == 1 else row) for row in outputs]


def _words(listed: Sequence[Hashable]) -> Iterable[tuple[Hashable, ...]]:
    rows = [_places(output) for output in listed]
    for place in range(max((len(row) for row in rows), default=0)):
        seen = {row[place]: None for row in rows if place < len(row) and not _is_number(row[place])}
        yield tuple(sorted(seen, key=repr)[:_MOST_WORDS])


def _places(output: Hashable) -> tuple[Hashable, ...]:
    """Flatten an output into its places."""
    if not isinstance(output, tuple):
        return (output,)
    return tuple(place for part in output for place in _places(part))


def _is_number(value: Hashable) -> bool:
    return isinstance(value, (Real, Fraction)) and not isinstance(value, bool) and value == value


def _number(value: Hashable) -> float:
    if not _is_number(value):
        return 0.0
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = _FAR if value > 0 else -_FAR  # type: ignore[operator]
    return min(max(number, -_FAR), _FAR)
