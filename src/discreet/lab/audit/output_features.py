"""Outputs as numbers: whatever a mechanism returns becomes a row of features, and a code if values repeat."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from numbers import Real
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

__all__ = [
    "Codes",
    "Features",
    "OutputEncoder",
    "Outputs",
    "Sample",
    "Scorer",
    "Scores",
    "alike",
    "encoder_of",
    "outputs_of",
    "scorers",
]

# --- outputs ---
# What a mechanism returned for several runs: rows of numbers, which is quick, or anything that can be compared.


Outputs: TypeAlias = NDArray[Any] | list[Hashable]  # an array of numbers, one row an output, or anything, one by one
_NOT_A_NUMBER = "not a number"


def outputs_of(returned: Any) -> Outputs:
    """Read what a mechanism returned for several runs."""
    if isinstance(returned, np.ndarray):
        return _rows(returned) if _is_numeric(returned) else [_plain(output) for output in returned.tolist()]
    listed = [_plain(output) for output in returned]
    array = _as_array(listed)
    return listed if array is None else array


def alike(*samples: Outputs) -> list[Outputs]:
    """Return samples that can be compared: all of them rows of one length and type, or all of them listed.

    Whether 1 was read as 1.0 depends on what else is in a sample, and rows of several types are never the same.
    """
    forms = {(sample.shape[1], sample.dtype) if isinstance(sample, np.ndarray) else None for sample in samples}
    if len(forms) == 1:
        return list(samples)
    return [sample if isinstance(sample, list) else _listed(sample) for sample in samples]


def _plain(output: Any) -> Hashable:
    """Return an output as a hashable value: a released value stands for its release, a sequence becomes a tuple."""
    value = _told(output)
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        value = tuple(sorted(value.items(), key=repr))
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    if not isinstance(value, Hashable) or _is_only_itself(value):
        raise InvalidParameter(f"the auditor cannot compare outputs of type {type(value).__name__}: return numbers")
    return value if value == value else _NOT_A_NUMBER  # One that differs from itself would be found nowhere.


def _told(output: Any) -> Any:
    """Return what an output tells: of a release of ours its value, of anybody else's record all its fields."""
    if type(output).__module__.startswith("discreet.") or isinstance(output, Enum):
        return getattr(output, "value", output)
    if is_dataclass(output) and not isinstance(output, type):
        return tuple(getattr(output, field.name) for field in fields(output))
    return output


def _is_only_itself(value: Any) -> bool:
    """Whether two outputs that look alike are never equal: then nothing could be found out about them."""
    kind: Any = type(value)
    compared = kind.__eq__ is not object.__eq__ or kind.__hash__ is not object.__hash__
    return not compared and value is not None and value is not ... and not isinstance(value, type)


def _as_array(listed: Sequence[Hashable]) -> NDArray[Any] | None:
    """Return rows of numbers if the outputs are such."""
    first = listed[0] if listed else None
    sample = first if isinstance(first, tuple) else (first,)
    if not sample or not all(type(part) in (int, float, bool) for part in sample):
        return None
    try:
        array = np.array(listed)
    except (ValueError, OverflowError):  # Tuples of several lengths, or numbers beyond any float.
        return None
    if not _is_numeric(array):
        return None
    rows = _rows(array)
    return rows if _listed(rows) == listed else None  # A large integer beside a fraction is rounded.


def _is_numeric(array: NDArray[Any]) -> bool:
    numbers = array.dtype.kind in "biuf" and array.ndim in (1, 2) and 0 not in array.shape
    return numbers and (array.dtype.kind != "f" or not bool(np.isnan(array).any()))


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array if array.ndim == 2 else array[:, None])


def _listed(rows: NDArray[Any]) -> list[Hashable]:
    """Return outputs one by one; a row of one number is that number."""
    return rows[:, 0].tolist() if rows.shape[1] == 1 else [tuple(row) for row in rows.tolist()]


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
    return _FeatureValues(tuple(_words([_places(value) for value in values])), values)


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
class _FeatureValues:
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


# --- scorers ---
# Ways to tell two laws apart, learnt from samples: each gives an output a score, high where the first law is likelier.
#
# What is learnt here is tested on fresh samples, so nothing that a scorer does can make an audit claim too much.


Scores: TypeAlias = NDArray[np.float64]
_REPEATS = 0.5  # Share of training outputs that must repeat before values are counted one by one.
_RIDGE = 1e-3


class Scorer(Protocol):
    """A function of outputs, described in words."""

    @property
    def text(self) -> str:
        """What the score looks at."""

    def __call__(self, sample: Sample) -> Scores:
        """Return the score of each output."""


@final
@dataclass(frozen=True, slots=True)
class CountedScorer:
    """How much likelier a value was under the first law, by counting; a value that was not seen is as likely."""

    ratios: Scores  # by code

    @property
    def text(self) -> str:
        return "values that were likelier"

    def __call__(self, sample: Sample) -> Scores:
        return self.ratios[sample.codes]


@final
@dataclass(frozen=True, slots=True)
class Coordinate:
    """One feature, upwards or downwards."""

    place: int
    sign: int

    @property
    def text(self) -> str:
        return f"feature {self.place} {'above' if self.sign > 0 else 'below'} a threshold"

    def __call__(self, sample: Sample) -> Scores:
        return self.sign * sample.features[:, self.place]


@final
@dataclass(frozen=True, slots=True)
class Away:
    """How far one feature is from the middle, which tells a scale that changes; near the middle if negative."""

    place: int
    middle: float
    sign: int

    @property
    def text(self) -> str:
        return f"feature {self.place} {'far from' if self.sign > 0 else 'near'} its middle"

    def __call__(self, sample: Sample) -> Scores:
        return self.sign * np.abs(sample.features[:, self.place] - self.middle)


@final
@dataclass(frozen=True, slots=True)
class LogisticScorer:
    """A linear classifier on features and their squares. [BBDV21]"""

    centre: Features
    scale: Features
    weights: Features

    @property
    def text(self) -> str:
        return "a classifier's score"

    def __call__(self, sample: Sample) -> Scores:
        scores: Scores = _expanded((sample.features - self.centre) / self.scale) @ self.weights
        return scores


def scorers(encoder: OutputEncoder, one: Sample, other: Sample) -> Iterator[Scorer]:
    """Learn every scorer from the training half of two samples."""
    if encoder.values <= _REPEATS * (len(one) + len(other)):
        yield _counted(encoder, one.codes, other.codes)
    both = np.concatenate([one.features, other.features])
    for place in np.flatnonzero(np.ptp(both, axis=0) > 0).tolist():
        middle = float(np.median(both[:, place]))
        for sign in (1, -1):
            yield Coordinate(place, sign)
            yield Away(place, middle, sign)
    yield _logistic(one.features, other.features)


def _counted(encoder: OutputEncoder, one: Codes, other: Codes) -> CountedScorer:
    """Compare counts with one half added to each, so that a value seen once is no certainty."""
    here, there = (np.bincount(codes, minlength=encoder.values + 1) for codes in (one, other))
    return CountedScorer(np.log((here + 0.5) / (there + 0.5)))


def _expanded(features: Features) -> Features:
    bounded = np.clip(features, -8, 8)
    return np.column_stack([np.ones(len(bounded)), bounded, bounded**2])


def _logistic(ones: Features, others: Features) -> LogisticScorer:
    """Fit by a few Newton steps on the ridge-penalised likelihood."""
    both = np.concatenate([ones, others])
    centre, scale = np.median(both, axis=0), _spread(both)
    rows = _expanded((both - centre) / scale)
    labels = np.concatenate([np.ones(len(ones)), np.zeros(len(others))])
    weights = np.zeros(rows.shape[1])
    for _ in range(12):
        chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (labels - chance) - _RIDGE * len(rows) * weights
        bend = (rows * (chance * (1 - chance) + 1e-9)[:, None]).T @ rows + _RIDGE * len(rows) * np.eye(rows.shape[1])
        weights = weights + np.linalg.solve(bend, slope)
    return LogisticScorer(centre, scale, weights)


def _spread(features: Features) -> Features:
    low, high = np.quantile(features, [0.1, 0.9], axis=0)
    spread = np.where(high > low, high - low, np.maximum(np.std(features, axis=0), 1e-12))
    return np.asarray(spread, np.float64)
