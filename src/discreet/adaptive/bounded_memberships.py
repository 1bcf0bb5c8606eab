"""Contribution bounding of units: at most a few bins of each and so much in each, or at most so many of its rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from fractions import Fraction
from itertools import combinations, product
from typing import Any, TypeAlias, final
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter, Refused
from discreet.exact import positive_integer
from discreet.formatting import enumerated
from discreet.frames.cells import is_missing, plain_value
from discreet.frames.column import Column, Data, column_of, reader_for
from discreet.frames.tables import column_names, table_columns
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.grid import Grid, exact_number
from discreet.mechanisms.parameters import settle
from discreet.privacy.event_tree import grouped
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = [
    "SLOTS",
    "Identity",
    "Memberships",
    "Totals",
    "UnitRows",
    "bounded_totals",
    "filled_rows",
    "identity",
    "kept_rows",
    "labels",
    "selections",
    "shown",
    "unit_codes",
    "unit_rows",
]

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


# --- rows: At most so many rows of each unit, chosen by a secret draw, and what they cost. ---


def kept_rows(units: Column, rows_per_unit: int) -> Integers:
    """Return the places of the rows that count, in their order: at most so many of each unit. This is private.

    Which rows of a unit are kept depends on its own rows and a fresh draw alone, so another unit more or less changes
    nothing for it. A row without a unit belongs to nobody who could be protected, and is left out.
    """
    order, ordered = _shuffled(units)
    first = np.searchsorted(ordered, ordered, side="left")
    kept = order[np.arange(len(order)) - first < rows_per_unit]
    return np.sort(kept)


def filled_rows(units: Column, slots: int) -> Integers:
    """Return the places of rows that fill exactly so many slots for each unit, in their order. This is private.

    The rows of a unit take turns, in an order that is drawn: of m rows each fills slots / m of them, rounded up for
    some and down for others, and of more rows than slots as many as there are slots fill one each.
    """
    order, ordered = _shuffled(units)
    _, first, many = np.unique(ordered, return_index=True, return_counts=True)
    turns = np.arange(slots) % np.minimum(many, slots)[:, None]
    return np.sort(order[(first[:, None] + turns).reshape(-1)])


def _shuffled(units: Column) -> tuple[Integers, Integers]:
    """Return the places of all rows that have a unit, by unit and within one in an order that is drawn, and whose."""
    codes = unit_codes(units)
    order = noise.permutation(len(codes)) if len(codes) else np.empty(0, dtype=np.int64)
    order = order[codes[order] != _NOWHERE]
    order = order[np.argsort(codes[order], kind="stable")]
    return order, codes[order]


def unit_codes(units: Column) -> Integers:
    """Number the units, exactly: equal numbers are one unit whatever their type. -1 where there is none. Private."""
    values = units.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64).reshape(-1)
    else:
        codes = _object_codes(units.objects())
    if units.missing is not None:
        codes[units.missing] = _NOWHERE
    return codes


def _object_codes(values: list[object]) -> Integers:
    numbers: dict[Identity, int] = {}
    found = (identity(_as_id(value), spelled=True) for value in values)
    codes = [_NOWHERE if key is None else numbers.setdefault(key, len(numbers)) for key in found]
    return np.array(codes, dtype=np.int64)


def _as_id(value: object) -> object:
    """Return an id of a type of its own as its text: left out like what is no id, nobody would be in the data."""
    # Told by its name: the module that makes such ids also draws them, and all chance here comes from one source.
    return str(value) if type(value).__name__ == "UUID" else value


SLOTS = 16  # Rows of a unit beyond these tell hardly more of their mean, and each takes memory for all units.


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitRows:
    """Whom a statistic protects: everybody who shares an id. At most `max_rows` rows of each, drawn in secret, count.

    Guarantee   A mechanism with `event` for one row under add-remove has `event_of(event)` for one unit.
    Theorem     What is kept of a unit depends on its own rows and on the draw, so given the draw a unit more or less
                is at most `max_rows` kept rows more or less: so many neighbours in a row. [Vad17] Sums, counts and
                scores that a row moves by at most s move by `max_rows` times s, which rows that are alike reach: for
                them the group bound is the sensitivity of the block itself. So it is where each unit fills exactly
                `max_rows` slots with its rows: then all units weigh the same, and a sum over slots, divided by their
                number, has the noise of one row a unit.
    """

    names: tuple[str, ...]  # of the columns that tell units apart, public; none where they have no names
    max_rows: int
    _ids: tuple[Any, ...] = field(repr=False)  # private

    def __post_init__(self) -> None:
        settle(self, max_rows=int(positive_integer(self.max_rows, name="max_rows")))

    @property
    def noun(self) -> str:
        """What one unit is called."""
        if not self.names:
            return "unit"
        return self.names[0] if len(self.names) == 1 else f"combination of {enumerated(self.names)}"

    @property
    def account(self) -> str:
        """What ledgers call the unit; refused where nobody has named it."""
        if not self.names:
            raise Refused(
                "a session keeps the account of units that have a name, and these ids have none",
                way_out='name their column: unit={"patient": ids}, or a column of pandas or polars with that name',
            )
        return self.names[0] if len(self.names) == 1 else json.dumps(list(self.names))

    def noise_of(self, noise: Noise) -> Noise:
        """Return the noise of one row with which `max_rows` of them spend what `noise` does."""
        return _noise_of(noise, self.max_rows)

    def event_of(self, event: Event) -> Event:
        """Return what one unit spends where one row spends `event`; refused where no group bound is proven."""
        return event if self.max_rows == 1 else grouped(event, self.max_rows)

    def with_slots(self, most: int = SLOTS) -> UnitRows:
        """Return the same with at most so many rows, for statistics in which each unit fills as many slots."""
        return replace(self, max_rows=min(self.max_rows, most))

    def ids(self) -> Column:
        """Read the ids, as one column. This is private."""
        columns = [reader_for(column)(column) for column in self._ids]
        if len(columns) == 1:
            return columns[0]
        if len({len(column) for column in columns}) != 1:
            raise InvalidParameter("the columns of a unit must have equal lengths")
        return Column(list(zip(*(map(_as_id, column.objects()) for column in columns), strict=True)))

    def check(self, size: int) -> None:
        """Refuse ids that are not one for each of so many rows; only their number is looked at."""
        if any(len(column) != size for column in self._ids):
            raise InvalidParameter("there must be an id of a unit for each row, in the same order")

    def kept(self, size: int) -> Integers:
        """Draw the rows that count, of a table with so many rows, and return their places. This is private."""
        return kept_rows(self._ids_of(size), self.max_rows)

    def filled(self, size: int) -> Integers:
        """Draw rows that fill `max_rows` slots for each unit, and return their places. This is private."""
        return filled_rows(self._ids_of(size), self.max_rows)

    def _ids_of(self, size: int) -> Column:
        ids = self.ids()
        if len(ids) != size:
            raise InvalidParameter("there must be an id of a unit for each row")
        return ids


def _noise_of(noise: Noise, rows: int) -> Noise:
    if isinstance(noise, LaplaceNoise):
        return noise.part(Fraction(1, rows))  # Epsilon grows with the rows,
    assert isinstance(noise, GaussianNoise)
    return noise.part(Fraction(1, rows**2))  # and what Gaussian noise spends with their square.


def unit_rows(unit: Any, max_rows: int | None, relation: Relation) -> UnitRows | None:
    """Read whom to protect: None for each row by itself. Kinds and names are looked at, no id is."""
    if unit is None:
        if max_rows is not None:
            raise InvalidParameter("max_rows is for units with several rows: say unit=… too, the id of each row's unit")
        return None
    if relation is not Relation.ADD_REMOVE:
        raise Refused(
            "unit=… is offered under add-remove",
            reason="under replace-one the number of rows is public, and how many rows each unit has is not",
            way_out='say relation="add-remove": whoever is exchanged leaves and another comes, for twice the price',
        )
    names, columns = _named_ids(unit)
    if len(set(names)) != len(names) or "row" in names:
        raise InvalidParameter('the columns of a unit must have different names, none of them "row"')
    for column in columns:
        reader_for(column)  # Refuses what is no column, while nothing is spent yet.
        if _is_real(column):
            raise InvalidParameter(
                "the ids of units are stored as real numbers, of which several beyond 2^53 are one, and two people "
                'would share one allowance. Have them read as whole numbers ("Int64" in pandas) or as texts'
            )
    return UnitRows(names=names, max_rows=1 if max_rows is None else max_rows, _ids=columns)


def _is_real(column: Any) -> bool:
    """Tell by its type alone whether a column holds real numbers, also behind the codes of categories."""
    kind = getattr(column, "dtype", getattr(column, "type", None))
    kind = getattr(kind, "pyarrow_dtype", kind)
    kind = getattr(getattr(kind, "categories", None), "dtype", getattr(kind, "value_type", kind))
    return getattr(kind, "kind", "") == "f" or str(kind).lower() in _REAL


_REAL = ("float16", "float32", "float64", "float", "double", "halffloat")


def _named_ids(unit: Any) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the columns that tell units apart, with their names where they have some."""
    if isinstance(unit, str):
        raise InvalidParameter('unit must be the ids themselves, one for each row, as in unit=table["patient"]')
    if isinstance(unit, Mapping):
        names, columns = tuple(unit), tuple(unit.values())
    elif (found := column_names(unit)) is not None:
        names, columns = found, tuple(table_columns(unit))
    else:
        name = getattr(unit, "name", None)
        return (name,) if isinstance(name, str) and name else (), (unit,)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidParameter("the columns of a unit must be called by texts")
    return names, columns
