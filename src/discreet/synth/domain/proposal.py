"""A domain to begin with, from a schema or from rows that are public: never from private ones."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter, Refused
from discreet.frames.column import Column
from discreet.mechanisms.grid import exact_number
from discreet.query import Session
from discreet.synth.domain.category import LONGEST, OTHER, Category, text_of
from discreet.synth.domain.domain import Domain, DomainColumn
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.source_tables import table_of
from discreet.synth.domain.value_forms import TRUTHS, as_days, day_of

__all__ = ["proposed_from_rows", "proposed_from_schema"]

_FEW = 64  # Values that a category lists; and bins, one for each whole number.
_NAMES = 20  # Rows from which on a column of nothing but different texts is taken for names or numbers of files.
_BINS = 32
_WIDEST = Fraction(10) ** 30  # What is wider has no column, and floats must tell how wide it is.

_CODE = re.compile(r"\s*[+-]?0[0-9]", re.ASCII)

Bounds = Mapping[str, tuple[Any, Any]]


# --- schema ---


def proposed_from_schema(schema: Any, bounds: Bounds) -> Domain:
    """Propose a column for each field by its type; numbers and dates need bounds, which no type tells."""
    import pyarrow as pa

    fields = schema if isinstance(schema, pa.Schema) else _schema(schema)
    _check_bounds(bounds, fields.names)
    _check_bounded([one.name for one in fields if one.name in bounds and not _has_order(one.type)])
    unbounded = [one.name for one in fields if _has_order(one.type) and one.name not in bounds]
    if unbounded:
        raise InvalidParameter(
            f"a type does not say how far {', '.join(map(repr, unbounded))} can go: say bounds={{name: (low, high)}} "
            "from a code book or a law, or leave the column out of the schema; or give rows that are public"
        )
    return Domain({one.name: _of_field(one, bounds) for one in fields})


def _schema(schema: Any) -> Any:
    import pyarrow as pa

    if not isinstance(schema, Mapping) or not schema:
        raise InvalidParameter(
            'schema must be one of pyarrow, or types by name, such as {"age": "int64", "sex": "string"}'
        )
    try:
        types = {name: pa.type_for_alias(one) if isinstance(one, str) else one for name, one in schema.items()}
        return pa.schema(list(types.items()))
    except (ValueError, TypeError, pa.ArrowInvalid):
        raise InvalidParameter(
            "a type of the schema is not known: take those of pyarrow, such as int64, double, string, bool or date32"
        ) from None


def _has_order(kind: Any) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or _is_day(kind)


def _is_day(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _of_field(field: Any, bounds: Bounds) -> DomainColumn:
    from pyarrow import types

    kind, null = field.type, bool(field.nullable)
    if types.is_boolean(kind):
        return Category([False, True], null=null)
    if _is_day(kind):
        return Numeric.dates(*bounds[field.name], null=null)
    if _has_order(kind):
        return _numbers(*bounds[field.name], whole=types.is_integer(kind), null=null)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind):
        return Category.unlisted(null=null)
    raise InvalidParameter(f"column {field.name!r} has a type that no synthetic table has: leave it out of the schema")


def _numbers(low: Any, high: Any, *, whole: bool, null: bool) -> Numeric:
    """Give every whole number a bin of its own where they are few."""
    column = Numeric(low, high, whole=whole, null=null)
    if not whole:
        return column
    points = int(column.high - column.low) + 1
    return Numeric(low, high, whole=True, bins=points if points <= _FEW else _BINS, null=null)


def _check_bounds(bounds: Bounds, names: Any) -> None:
    if not isinstance(bounds, Mapping) or not all(
        name in names and isinstance(one, tuple) and len(one) == 2 for name, one in bounds.items()
    ):
        raise InvalidParameter('bounds must name columns that are there, each with (low, high): {"age": (0, 120)}')


def _check_bounded(others: list[str]) -> None:
    if others:
        raise InvalidParameter(
            f"bounds are for numbers and dates, which {others[0]!r} does not hold: leave it out of them"
        )


# --- rows that are public ---


def proposed_from_rows(sample: Any, bounds: Bounds) -> Domain:
    """Propose a column for each one of a public table, by the values that stand there."""
    if isinstance(sample, Session) or getattr(sample, "of_session", False):
        raise Refused(
            "a domain is never proposed from private rows",
            reason="every value and every bound that it took from them would be published without noise",
            way_out="give a schema, or rows that are public; dp.synth.domain_of_session reads what a session declares",
        )
    table = table_of(sample)
    _check_bounds(bounds, table.names)
    columns = table.columns(table.names)
    found = {name: _of_values(columns[name], bounds.get(name)) for name in table.names}
    named = {name: one for name, one in found.items() if one is not None}
    _check_bounded([name for name in bounds if not isinstance(named.get(name), Numeric)])
    if not named:
        raise InvalidParameter("no column of the public rows says what a synthetic table could hold")
    return Domain(named)


def _of_values(column: Column, bounds: tuple[Any, Any] | None) -> DomainColumn | None:
    """Propose a column, or none for names and numbers of files: texts of which nearly every row has another."""
    rows = column.objects()
    written = [value for value in rows if isinstance(value, str) and _CODE.match(value)]
    seen = [text for value in rows if (text := text_of(value)) is not None]
    null = len(seen) < len(rows)
    if not seen:
        return None
    if written:  # A zero in front is part of a code, as that of a place: it is no number.
        return _of_texts([str(value) for value in rows if isinstance(value, str)], null=null)
    if bounds is None and all(text.lower() in TRUTHS for text in seen):
        return Category([False, True], null=null)
    numbers = [exact_number(text) for text in seen]
    if all(number is not None for number in numbers):
        return _of_numbers([number for number in numbers if number is not None], bounds, null=null)
    days = as_days(Column(seen))
    if days.missing is not None and not days.missing.any():
        return _of_days(np.asarray(days.values, dtype=np.int64).tolist(), bounds, null=null)
    return _of_texts(seen, null=null)


def _of_numbers(numbers: list[Fraction], bounds: tuple[Any, Any] | None, *, null: bool) -> DomainColumn:
    whole = all(number.denominator == 1 for number in numbers)
    low, high = bounds or _round_bounds(min(numbers), max(numbers), whole=whole)
    return _numbers(low, high, whole=whole, null=null)


def _round_bounds(low: Fraction, high: Fraction, *, whole: bool) -> tuple[Fraction, Fraction]:
    """Move bounds outwards to round numbers: other rows reach further than these do."""
    span = max(high - low, abs(high), Fraction(1)) if high == low else high - low
    step = Fraction(10) ** (math.floor(math.log10(min(span, _WIDEST))) - 1) * 5
    step = max(step, Fraction(1)) if whole else step
    return math.floor(low / step) * step, (math.floor(high / step) + 1) * step


def _of_days(days: list[int], bounds: tuple[Any, Any] | None, *, null: bool) -> DomainColumn:
    first, last = bounds or (date(day_of(min(days)).year, 1, 1), date(day_of(max(days)).year, 12, 31))
    return Numeric.dates(first, last, null=null)


def _of_texts(seen: list[str], *, null: bool) -> DomainColumn | None:
    values = sorted({text for text in seen if len(text) <= LONGEST} - {OTHER})
    if len(seen) >= _NAMES and 10 * len(values) > 9 * len(seen):
        return None
    if len(values) > _FEW:
        return Category.unlisted(null=null)
    return Category(values, other=True, null=null)
