"""Exact numbers as decimals: in full where they end, else with 17 digits; ends of intervals are rounded outwards."""

from __future__ import annotations

from fractions import Fraction

from discreet.mechanisms.text import exponent

__all__ = ["decimal_text"]

_DIGITS = 17  # Enough to tell any two doubles apart.


def decimal_text(number: Fraction | int, *, way: int = 0) -> str:
    """Write a number; one that does not end is rounded to nearest, or with `way` down (-1) or up (1)."""
    value = Fraction(number)
    places = _places(value.denominator)
    if places is None:
        places = max(0, _DIGITS - 1 - exponent(abs(value)))
    scaled = value * 10**places
    rounded = round(scaled) if way == 0 else scaled.__floor__() if way < 0 else scaled.__ceil__()
    return _written(rounded, places)


def _places(denominator: int) -> int | None:
    """Return how many decimals write a fraction in full; None if it has no end, or a far one."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 and max(twos, fives) <= 2 * _DIGITS else None


def _written(scaled: int, places: int) -> str:
    digits = str(abs(scaled)).rjust(places + 1, "0")
    sign = "-" if scaled < 0 else ""
    if not places:
        return sign + digits
    after = digits[-places:].rstrip("0")
    return sign + digits[:-places] + ("." + after if after else "")
