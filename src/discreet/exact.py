"""Exact numbers, and floats that say which way they were rounded.

Privacy parameters are `Fraction`s from the moment they enter until the last step of a computation. A float is
read by its shortest decimal, so that 0.1 means one tenth and ten times 0.1 is exactly one.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

from discreet.errors import InvalidParameter

__all__ = [
    "Number",
    "down",
    "estimate_of",
    "exact",
    "exact_or_none",
    "integer",
    "nonnegative",
    "number_of",
    "positive",
    "positive_integer",
    "probability",
    "ratio",
    "up",
]

Number: TypeAlias = int | Fraction | Decimal | str | float

_LONGEST = 2000  # Characters; a longer literal is a mistake or an attack, never a privacy parameter.
_RATIO = re.compile(r"-?\d+(/\d+)?", re.ASCII)  # What `str` writes of a fraction: no exponent, which could be a bomb.
_LITERAL = re.compile(r"\s*[-+]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][-+]?\d{1,4})?)\s*", re.ASCII)


def exact(value: Number, *, name: str = "value") -> Fraction:
    """Read a number exactly: a float by its shortest decimal, a string as a decimal or a ratio."""
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal, str)):
        raise InvalidParameter(f"{name} must be a number, not {type(value).__name__}")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, str):
        return _from_text(value, name)
    if isinstance(value, Decimal):
        return _from_decimal(value, name)
    if not math.isfinite(value):
        raise InvalidParameter(f"{name} must be finite")
    # `str` of a NumPy scalar is its shortest decimal too, in its own precision.
    return Fraction(repr(value) if type(value) is float else str(value))


def _from_text(text: str, name: str) -> Fraction:
    if len(text) > _LONGEST or not _LITERAL.fullmatch(text):
        raise InvalidParameter(f"{name} must be a decimal such as '0.1' or a ratio such as '1/3'")
    try:
        return Fraction(text.strip())
    except ZeroDivisionError:
        raise InvalidParameter(f"{name} must not have the denominator 0") from None


def _from_decimal(value: Decimal, name: str) -> Fraction:
    if not value.is_finite() or abs(value.adjusted()) > 9999:
        raise InvalidParameter(f"{name} must be finite, with an exponent from -9999 to 9999")
    return Fraction(value)


def exact_or_none(value: Number | None, *, name: str = "value") -> Fraction | None:
    """Read a number exactly, or pass None on."""
    return None if value is None else exact(value, name=name)


def ratio(text: object) -> Fraction:
    """Read what `str` wrote of a fraction, in bounded time; anything else is refused."""
    if not isinstance(text, str) or len(text) > _LONGEST or not _RATIO.fullmatch(text):
        raise InvalidParameter("a stored number is a ratio of whole numbers, such as '1/3'")
    return exact(text, name="a stored number")


def positive(value: Number, *, name: str) -> Fraction:
    """Read an exact number above zero."""
    number = exact(value, name=name)
    if number <= 0:
        raise InvalidParameter(f"{name} must be above 0")
    return number


def nonnegative(value: Number, *, name: str) -> Fraction:
    """Read an exact number that is zero or above."""
    number = exact(value, name=name)
    if number < 0:
        raise InvalidParameter(f"{name} must not be negative")
    return number


def probability(value: Number, *, name: str) -> Fraction:
    """Read an exact number in [0, 1]."""
    number = exact(value, name=name)
    if not 0 <= number <= 1:
        raise InvalidParameter(f"{name} must lie between 0 and 1")
    return number


def integer(value: int, *, name: str) -> int:
    """Read a whole number; a bool, a float and a string are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidParameter(f"{name} must be a whole number, not {type(value).__name__}")
    return int(value)


def positive_integer(value: int, *, name: str) -> int:
    """Read a whole number of at least one."""
    number = integer(value, name=name)
    if number < 1:
        raise InvalidParameter(f"{name} must be at least 1")
    return number


def up(value: Fraction) -> float:
    """Return the smallest float not below `value`; infinity where no float is that large."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0)
    return nearest if math.isfinite(nearest) and Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def down(value: Fraction) -> float:
    """Return the largest float not above `value`."""
    return -up(-value)


def estimate_of(value: Any) -> Any:
    """Return a released value in plain numbers: floats for fractions, and everything else as it is."""
    if isinstance(value, tuple):
        return tuple(estimate_of(part) for part in value)
    return float(value) if isinstance(value, Fraction) else value


def number_of(value: object) -> int | Fraction:
    """Return a released value that is one number; of several, or of a label, no number can be made."""
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return value
    raise TypeError("this release is not a single number: its value has several cells or is a label; use `estimate`")
