"""Keys that come from data: one form each, an order that is fixed in advance, and nothing else.

A key is text (in composed form, NFC), a number, a truth value, bytes, a date or time, or a tuple of these. Equal
numbers are one key whatever their type, and -0.0 is 0. Everything else, and what is missing, is no key: such a row
is in no bin. The form that is released follows from the key alone, never from the row that came first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, date, datetime, time
from fractions import Fraction
from typing import Any, TypeAlias
from unicodedata import normalize

import numpy as np

from discreet.mechanisms.column import is_missing
from discreet.mechanisms.grid import exact_number

__all__ = ["Identity", "identity", "labels", "shown"]

Identity: TypeAlias = tuple[int, Any]  # A rank of the type, and a value that can be compared within it.

_TRUTH, _NUMBER, _TEXT, _BYTES, _DATE, _MOMENT, _TIME, _TUPLE = range(8)
_DEEPEST = 8  # Nested tuples.


def identity(value: object, depth: int = 0, *, spelled: bool = False) -> Identity | None:
    """Return what tells a key from others and puts it in order; None for what is no key.

    Units are `spelled`: two ids that look alike are two people, and as one they would share one allowance.
    """
    if isinstance(value, np.generic):
        value = value.item()
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


def _of_time(value: date | time) -> Identity | None:
    if isinstance(value, date) and not MINYEAR <= value.year <= MAXYEAR:
        return None  # pandas has such moments, and cannot write down all of them.
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
