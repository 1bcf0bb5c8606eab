"""Numbers, shares and names as people read them; the exact value stays in the release."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import date
from decimal import ROUND_CEILING, Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

__all__ = [
    "chance_up",
    "csv_cell",
    "csv_quoted",
    "decimal",
    "decimal_text",
    "decimal_up",
    "enumerated",
    "exponent",
    "labelled",
    "one_line",
    "percent",
    "percent_up",
    "places_for",
    "plain",
    "printable",
    "record",
    "rounded",
    "shortened",
    "significant_up",
    "tick_text",
    "with_article",
]

_MOST_PLACES = 12
_DIGITS = 17  # Enough to tell any two doubles apart.

# --- exact numbers ---


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
    """Return how many decimals show three digits of the error, none where everything is whole.

    Where there is no error, as of a quantile that is surely one value, they show the values in full if that is short.
    """
    if all(value.denominator == 1 for value in (error, *values)):
        return 0
    if error > 0:
        return min(_MOST_PLACES, max(0, 2 - exponent(error)))
    full = (places for places in range(7) if all((value * 10**places).denominator == 1 for value in values))
    return next(full, _MOST_PLACES)


def plain(value: Fraction | int) -> str:
    """Write a number in full where that is short, else with six significant digits."""
    number = Fraction(value)
    for places in range(7):
        if (number * 10**places).denominator == 1:
            return decimal(number, places)
    return decimal(number, min(_MOST_PLACES, max(0, 5 - exponent(abs(number)))))


def quantile_label(level: Fraction) -> str:
    """Return q25 for a quarter and q02_5 for a fortieth: a percentage, as the end of a name."""
    whole, _, rest = plain(100 * level).partition(".")
    return f"q{whole:0>2}_{rest}" if rest else f"q{whole:0>2}"


def significant_up(number: Fraction | float, digits: int = 4) -> str:
    """Write a positive number rounded up to a few significant digits, without trailing zeros."""
    value = Fraction(number)
    if value == 0:
        return "0"
    power = exponent(value)
    places = max(0, digits - 1 - power)
    if power < -4:
        return f"{decimal_up(value / Fraction(10) ** power, digits - 1).rstrip('0').rstrip('.')}e{power}"
    written = decimal_up(value, places)
    return written.rstrip("0").rstrip(".") if "." in written else written


def decimal_text(number: Fraction | int, *, way: int = 0) -> str:
    """Write a number in full where it ends, else with 17 digits: to nearest, or with `way` down (-1) or up (1).

    There are no thousands separators: this is for files that machines read.
    """
    value = Fraction(number)
    places = _places(value.denominator)
    if places is None:
        places = max(0, _DIGITS - 1 - exponent(abs(value)))
    scaled = value * 10**places
    whole = round(scaled) if way == 0 else math.floor(scaled) if way < 0 else math.ceil(scaled)
    digits = str(abs(whole)).rjust(places + 1, "0")
    sign = "-" if whole < 0 else ""
    if not places:
        return sign + digits
    after = digits[-places:].rstrip("0")
    return sign + digits[:-places] + ("." + after if after else "")


def _places(denominator: int) -> int | None:
    """Return how many decimals write a fraction in full; None if it has no end, or a far one."""
    twos = (denominator & -denominator).bit_length() - 1
    rest, fives = denominator >> twos, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 and max(twos, fives) <= 2 * _DIGITS else None


# --- floats that are shown, not computed with ---


def rounded(value: float) -> str:
    """Write a count or an error with as many digits as matter."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def tick_text(tick: float) -> str:
    """Write a round number on an axis: 30 m is thirty million."""
    size = abs(tick)
    for limit, letter in ((1e12, " T"), (1e9, " bn"), (1e6, " m")):
        if size >= limit:
            return f"{tick / limit:g}{letter}".replace("-", "−")
    return f"{tick:,.10g}".replace("-", "−")


def percent(share: float, digits: int = 0) -> str:
    """Write a share; with one decimal more where it is small or nearly whole."""
    value = 100 * share
    if digits == 0 and (0 < value < 2 or 98 < value < 100):
        digits = 1
    return f"{value:.{digits}f} %"


def percent_up(share: float) -> str:
    """Write a probability in per cent, rounded up; with more decimals where it is not quite certain."""
    written = [decimal_up(Fraction(share) * 100, places) for places in range(1, 7)]
    return f"{next((each for each in written if not each.startswith('100')), '100')} %"


def chance_up(share: float) -> str:
    """Write a probability in per cent, rounded up, with enough digits to tell it from 0 and from 100."""
    if share >= 1:
        return "100 %"
    if share <= 0:
        return "0 %"
    from_end = min(share, 1 - share) * 100
    digits = min(12, max(1, 1 - math.floor(math.log10(from_end))))
    up = Decimal(share * 100).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
    return f"{up.normalize():f} %"


# --- names ---


def enumerated(names: Sequence[str]) -> str:
    """Join names as a sentence does: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def with_article(noun: str) -> str:
    """Write a noun with its indefinite article, by how it sounds: an employee, a user, an hour."""
    low = noun.lower()
    vowel = low.startswith(("a", "e", "i", "o", "u", "hour", "heir", "honour", "honor"))
    consonant = low.startswith(("eu", "one", "once", "ui", "uni", "url", "us", "ut", "uu"))  # a uid, a user
    return f"{'an' if vowel and not consonant else 'a'} {noun}"


def labelled(value: Hashable, labels: Mapping[Any, str], most: int | None = None) -> str:
    """Write a value with its label, if it has one: the label first, and the value beside it, as in `female (2)`."""
    label = labels.get(value)
    if label is None:
        return str(value) if most is None else shortened(str(value), most)
    beside = f" ({value})"
    return label + beside if most is None else shortened(label, max(2, most - len(beside))) + beside


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters; what is longer ends in dots."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str) -> str:
    """Replace what would break a line or steer a screen."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


# --- records: What a value shows of itself where somebody just names it. ---


_WHOLE = 20  # Digits of a whole number that are written in full.
_MANY = 8  # Members of a list that are written out.
_PLAIN = (bool, int, float, str, Fraction, tuple, Enum)
_WIDE = 400  # Characters of a part; of what is longer only the class is named.


def record(self: Any) -> str:
    """Write a dataclass with its fields as people read them, without those that nobody said: a `__repr__`."""
    told = [
        f"{one.name}={one_line(getattr(self, one.name))}" for one in fields(self) if one.repr and _is_said(self, one)
    ]
    return f"{type(self).__name__}({', '.join(told)})"


def _is_said(value: Any, field: Any) -> bool:
    """Tell whether a field is neither None nor as by default; what cannot be compared, such as an array, is said."""
    held, default = getattr(value, field.name), field.default
    if held is None or default is MISSING or type(held) is not type(default):
        return held is not None
    return held is not default and not (isinstance(held, _PLAIN) and held == default)


def one_line(value: Any) -> str:
    """Write what a field holds on one line; nothing in it depends on where it lies in memory."""
    match value:
        case Enum():
            return repr(value.value)
        case Fraction():
            return _number(value)
        case bool() | None | float():
            return repr(value)
        case int():
            return str(value) if abs(value) < 10**_WHOLE else _about(Fraction(value))
        case str():
            return repr(shortened(value, _WIDE))
        case Path():
            return repr(str(value))
        case Mapping():
            return f"{{{_listed([f'{one_line(key)}: {one_line(one)}' for key, one in value.items()])}}}"
        case tuple() | list() | frozenset() | set():
            is_ordered = isinstance(value, (tuple, list))
            told = [one_line(one) for one in value]
            first, last = "[]" if isinstance(value, list) else "()" if is_ordered else "{}"
            alone = "," if isinstance(value, tuple) and len(value) == 1 else ""
            return f"{first}{_listed(told if is_ordered else sorted(told))}{alone}{last}"
    return _object(value)


def _listed(told: list[str]) -> str:
    return ", ".join(told if len(told) <= _MANY else [*told[: _MANY - 1], f"… {len(told) - _MANY + 1:,} more"])


def _object(value: Any) -> str:
    """Write a record in a record, or name what is no value: a function, an array, an object."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"array of {' × '.join(f'{side:,}' for side in value.shape) or 'one number'}"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__).rpartition("<locals>.")[2]
    written = repr(value)
    is_short = len(written) <= _WIDE and not any(one in written for one in ("\n", " at 0x", "Fraction("))
    return written if is_short else f"{type(value).__name__}(…)"


def _number(value: Fraction) -> str:
    """Write a fraction in full where that is short, as a decimal or else as a ratio; or about."""
    if 10**-_WHOLE < abs(value) < 10**_WHOLE or value == 0:
        short = f"{float(value):.12g}"
        if Fraction(short) == value:
            return short
        if len(str(value)) <= 12:
            return str(value)
    return _about(value)


def _about(value: Fraction) -> str:
    power = exponent(abs(value))
    digits = decimal(value / Fraction(10) ** power, 5)
    return f"≈{float(value):.6g}" if -300 < power < 300 else f"≈{digits}e{power}"


# --- csv: Cells for other programs. ---


# What begins a formula in some spreadsheet, in its full width too, and the blanks that are skipped before one.
_FORMULA = tuple("=+-@\t\r\n'＝＋－＠")


def csv_quoted(text: str) -> str:
    """Write a text in quotes.

    One that a spreadsheet would take for a formula gets an apostrophe in front, and so does one that begins with an
    apostrophe: taking one away gives the value back.
    """
    seen = text.lstrip("".join({letter for letter in text if not letter.isprintable() or letter.isspace()}))
    safe = "'" + text if text.startswith(_FORMULA) or seen.startswith(_FORMULA) else text
    return '"' + safe.replace('"', '""') + '"'


def csv_cell(value: object) -> str:
    """Write a value: texts in quotes, everything else bare, and nothing where there is no value."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case date():
            return str(value)
    return csv_quoted(str(value))
