"""Contribution bounding of units in bins: at most a few bins of each unit, and at most so much in each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from fractions import Fraction
from itertools import combinations, product
from typing import Any, TypeAlias, final
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.frames.cells import is_missing, plain_value
from discreet.frames.column import Column, Data, column_of
from discreet.mechanisms.grid import Grid, exact_number

__all__ = ["Identity", "Memberships", "Totals", "bounded_totals", "identity", "labels", "selections", "shown"]

# --- keys: Keys that come from data: one form each, an order that is fixed in advance, and nothing else. ---
#
# A key is text (in composed form, NFC), a number, a truth value, bytes, a date or time, or a tuple of these; a UUID
# is its text. Equal numbers are one key whatever their type, and -0.0 is 0. Everything else, and what is missing, is no
# key: such a row is in no bin. The form that is released follows from the key alone, never from the row that came
# first.


Identity: TypeAlias = tuple[int, Any]  # A rank of the type, and a value that can be compared within it.

_TRUTH, _NUMBER, _TEXT, _BYTES, _DATE, _MOMENT, _TIME, _TUPLE = range(8)
_DEEPEST = 8  # Nested tuples.


def identity(value: object, depth: int = 0, *, spelled: bool = False) -> Identity | None:
    """Return what tells a key from others and puts it in order; None for what is no key.

    Units are `spelled`: two ids that look alike are two people, and as one they would share one allowance.
    """
    value = plain_value(value)
    if is_missing(value):
        return None
    match value:
        case str():
            return _TEXT, value if spelled else normalize("NFC", value)
        case bool():
            return _TRUTH, value
        case bytes():
            return _BYTES, value
        case date() | time():
            return _of_time(value)
        case tuple():
            return _of_tuple(value, depth, spelled)
        case _:
            return _of_number(value)


def _of_number(value: object) -> Identity | None:
    if isinstance(value, float) and math.isinf(value):
        return None
    number = value if type(value) is int else exact_number(value)
    if isinstance(number, Fraction) and number.denominator == 1:
        number = number.numerator
    return None if number is None else (_NUMBER, number)


def _of_time(value: date | time) -> Identity:
    # Two moments with and without a time zone cannot be compared; what they say can.
    rank = _MOMENT if isinstance(value, datetime) else _DATE if isinstance(value, date) else _TIME
    return rank, value.isoformat()


def _of_tuple(value: tuple[object, ...], depth: int, spelled: bool) -> Identity | None:
    if depth >= _DEEPEST:
        return None
    parts = [identity(part, depth + 1, spelled=spelled) for part in value]
    return None if None in parts else (_TUPLE, tuple(parts))


def shown(key: Identity) -> Any:
    """Return the form of a key that is released."""
    rank, value = key
    if rank == _TUPLE:
        return tuple(shown(part) for part in value)
    return _SHOWN[rank](value) if rank in _SHOWN else value


def labels(keys: Sequence[Any]) -> tuple[str, ...]:
    """Return a name for each key: its text, or what Python calls it where two of these texts are the same."""
    times = Counter(map(str, keys))
    return tuple(str(key) if times[str(key)] == 1 else repr(key) for key in keys)


def _shown_number(number: int | Fraction) -> int | float | Fraction:
    if isinstance(number, int):
        return number
    try:
        near = float(number)
    except OverflowError:
        return number
    # A ratio that a float holds is shown as that float, so that 0.1 comes back as 0.1.
    return near if Fraction(near) == number else number


_SHOWN: Mapping[int, Callable[[Any], Any]] = {
    _NUMBER: _shown_number,
    _DATE: date.fromisoformat,
    _MOMENT: datetime.fromisoformat,
    _TIME: time.fromisoformat,
}


Integers: TypeAlias = NDArray[np.int64]
Totals: TypeAlias = Mapping[Identity, int]  # In the order of the keys.

_DIGIT = 26  # Bits; sums of two digits cannot overflow.
_NOWHERE = -1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Memberships:
    """One row for each unit, key and amount; a unit may have many rows. It never prints what it holds.

    Rows whose unit or key is missing are not counted, and an amount that is no number is 0.

    Args:
        units: The private unit of each row.
        keys: The private key of each row.
        amounts: What each row brings; 1 each if not said.

    Raises:
        InvalidParameter: If the lengths differ.
    """

    units: Data = field(repr=False)
    keys: Data = field(repr=False)
    amounts: Data | None = field(default=None, repr=False)  # 1 each, if left out

    def __post_init__(self) -> None:
        columns = [self.units, self.keys, *([] if self.amounts is None else [self.amounts])]
        if len({len(column_of(column)) for column in columns}) != 1:
            raise InvalidParameter("units, keys and amounts must have equal lengths")


def bounded_totals(data: Data | Memberships, *, bins_per_unit: int, contribution: int) -> Totals:
    """Add up what is counted in each bin; bins in which nothing is counted are not there.

    Of a unit in too many bins, some are taken at random, each alike; what it brings to one is cut at `contribution`.
    A plain column is one unit a row, in one bin, with an amount of 1. All of this is private.
    """
    if isinstance(data, Memberships):
        keys, pairs = _pairs(data, contribution)
        kept = _some(pairs.units, bins_per_unit)
        codes, amounts = pairs.keys[kept], pairs.amounts[kept]
    else:
        keys, codes = _coded(column_of(data))
        codes = codes[codes != _NOWHERE]
        amounts = np.ones(codes.size, np.int64)
    low, high = _digit_sums(codes, amounts, len(keys))
    totals = [(int(more) << _DIGIT) + int(less) for less, more in zip(low, high, strict=True)]
    return {key: total for key, total in zip(keys, totals, strict=True) if total > 0}


def selections(data: Data | Memberships, *, bins_per_unit: int, contribution: int) -> Iterator[tuple[Fraction, Totals]]:
    """List every choice of bins that `bounded_totals` may make, with its probability; for small worlds."""
    if not isinstance(data, Memberships):
        yield Fraction(1), bounded_totals(data, bins_per_unit=bins_per_unit, contribution=contribution)
        return
    keys, pairs = _pairs(data, contribution)
    places = [np.flatnonzero(pairs.units == unit).tolist() for unit in np.unique(pairs.units)]
    choices = [list(combinations(own, min(bins_per_unit, len(own)))) for own in places]
    chance = Fraction(1)
    for options in choices:
        chance /= len(options)
    for chosen in product(*choices):
        yield chance, _added([place for own in chosen for place in own], keys, pairs)


def _added(places: Sequence[int], keys: Sequence[Identity], pairs: _MembershipPairs) -> Totals:
    totals = dict.fromkeys(keys, 0)
    for place in places:
        totals[keys[pairs.keys[place]]] += int(pairs.amounts[place])
    return {key: total for key, total in totals.items() if total > 0}


@final
@dataclass(frozen=True, slots=True, eq=False)
class _MembershipPairs:
    """The distinct pairs of a unit and a bin in which it counts something."""

    units: Integers
    keys: Integers
    amounts: Integers  # from 1 to the contribution


def _pairs(data: Memberships, contribution: int) -> tuple[list[Identity], _MembershipPairs]:
    """Number units and keys, and add up the amounts of each pair of them up to the contribution."""
    units = _unit_codes(column_of(data.units))
    keys, codes = _coded(column_of(data.keys))
    amounts = _amounts(data, contribution)
    here = (units != _NOWHERE) & (codes != _NOWHERE) & (amounts > 0)
    pairs, back = np.unique(units[here] * np.int64(len(keys)) + codes[here], return_inverse=True)
    low, high = _digit_sums(back, amounts[here], pairs.size)
    # A high digit beyond the contribution decides by itself, and would not fit with the low one.
    sums = (np.minimum(high, (contribution >> _DIGIT) + 1) << _DIGIT) + low
    size = max(len(keys), 1)
    return keys, _MembershipPairs(pairs // size, pairs % size, np.minimum(sums, contribution))


def _amounts(data: Memberships, contribution: int) -> Integers:
    if data.amounts is None:
        return np.ones(len(column_of(data.keys)), np.int64)
    grid = Grid(low=Fraction(0), high=Fraction(contribution), step=Fraction(1), default=Fraction(0))
    return grid.indices(data.amounts)


def _some(units: Integers, most: int) -> Integers:
    """Return the places of at most so many pairs of each unit, taken at random, each alike.

    What is taken of one unit depends on its own pairs and on fresh randomness only.
    """
    order = np.lexsort((noise.permutation(units.size), units))
    sorted_units = units[order]
    first = np.searchsorted(sorted_units, sorted_units, side="left")
    return order[np.arange(units.size) - first < most]


def _digit_sums(codes: Integers, amounts: Integers, size: int) -> tuple[Integers, Integers]:
    """Add up amounts by code, exactly: the low 26 bits and what is above them apart."""
    low, high = np.zeros(size, np.int64), np.zeros(size, np.int64)
    np.add.at(low, codes, amounts & ((1 << _DIGIT) - 1))
    np.add.at(high, codes, amounts >> _DIGIT)
    return low, high


def _coded(column: Column) -> tuple[list[Identity], Integers]:
    """Return the distinct keys in their order, and the number of each row's key, -1 where there is none."""
    values, back = _distinct(column)
    found = [identity(value) for value in values]
    keys = sorted({key for key in found if key is not None})
    places = {key: place for place, key in enumerate(keys)}
    numbers = [_NOWHERE if key is None else places[key] for key in found]
    return keys, np.array(numbers, np.int64)[back]


def _unit_codes(column: Column) -> Integers:
    """Number the units, exactly: two of them never share a number. -1 where there is none."""
    values, back = _distinct(column)
    if isinstance(column.values, np.ndarray) and column.values.dtype.kind in "iu" and column.missing is None:
        return back
    places: dict[Hashable, int] = {}
    numbers = [_NOWHERE if unit is None else places.setdefault(unit, len(places)) for unit in map(_unit, values)]
    return np.array(numbers, np.int64)[back]


def _unit(value: object) -> Hashable:
    """Return what tells a unit from others: its key, or itself if it is something else that can be compared."""
    known = identity(value, spelled=True)
    if known is not None or is_missing(value):
        return known
    try:
        hash(value)
    except TypeError:
        return None
    return ("other", value)


def _distinct(column: Column) -> tuple[list[Any], Integers]:
    """Return values of a column, and which of them each row has; those of a plain array once each."""
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuU" and column.missing is None:
        distinct, back = np.unique(values, return_inverse=True)
        return distinct.tolist(), back.astype(np.int64)
    return column.objects(), np.arange(len(column))
