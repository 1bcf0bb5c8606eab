"""Numbers as people read them; the exact value stays in the release."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["decimal", "exponent", "places_for", "plain", "significant_up"]

_MOST_PLACES = 12


def decimal(value: Fraction | int, places: int) -> str:
    """Write `value` with thousands separators and a fixed number of decimals, rounded half to even."""
    scaled = round(Fraction(value) * 10**places)
    whole, rest = divmod(abs(scaled), 10**places)
    sign = "-" if scaled < 0 else ""
    return f"{sign}{whole:,}.{rest:0{places}d}" if places else f"{sign}{whole:,}"


def decimal_up(value: Fraction, places: int) -> str:
    """The same, rounded away from zero: an error bar is never shown too short."""
    return decimal(Fraction(-((-value * 10**places) // 1), 10**places), places)


def exponent(value: Fraction) -> int:
    """Return e with 10^e <= value < 10^(e + 1), for a positive value."""
    guess = len(str(value.numerator)) - len(str(value.denominator))
    return guess if Fraction(10) ** guess <= value else guess - 1


def places_for(error: Fraction, *values: Fraction) -> int:
    """Return how many decimals show three digits of the error, none where everything is whole."""
    if all(value.denominator == 1 for value in (error, *values)):
        return 0
    return min(_MOST_PLACES, max(0, 2 - exponent(error))) if error > 0 else _MOST_PLACES


def plain(value: Fraction | int) -> str:
    """Write a number in full where that is short, else with six significant digits."""
    number = Fraction(value)
    for places in range(7):
        if (number * 10**places).denominator == 1:
            return decimal(number, places)
    return decimal(number, min(_MOST_PLACES, max(0, 5 - exponent(abs(number)))))


def significant_up(value: Fraction, digits: int = 4) -> str:
    """Write a positive number rounded up to a few significant digits, without trailing zeros."""
    if value == 0:
        return "0"
    power = exponent(value)
    places = max(0, digits - 1 - power)
    if power < -4:
        return f"{decimal_up(value / Fraction(10) ** power, digits - 1).rstrip('0').rstrip('.')}e{power}"
    written = decimal_up(value, places)
    return written.rstrip("0").rstrip(".") if "." in written else written
