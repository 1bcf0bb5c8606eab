"""A table of answers as text: exact, and the same to the letter when it is written again."""

from __future__ import annotations

import json
from collections.abc import Hashable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import ratio
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.query.column_types import Kind
from discreet.query.results.columns import AnswerColumn, ExactNumbers, Values, compact

__all__ = ["FORMAT", "packed", "unpacked"]

FORMAT = 1


def packed(fields: dict[str, Any], columns: tuple[AnswerColumn, ...]) -> str:
    """Write a table."""
    document = {
        "format": FORMAT,
        "columns": [_pack_column(column) for column in columns],
        "rows": fields["rows"],
        "notes": list(fields["notes"]),
        "event": json.loads(fields["event"].to_json()),
        "relation": fields["relation"].value,
        "cost": fields["cost"],
        "confidence": str(fields["confidence"]),
        "is_tidy": fields["is_tidy"],
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def unpacked(text: str) -> tuple[dict[str, Any], tuple[AnswerColumn, ...]]:
    """Read what `packed` wrote."""
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise InvalidParameter("this table was written by another version of the package")
        columns = tuple(_unpack_column(column) for column in document["columns"])
        fields = {
            "rows": int(document["rows"]),
            "notes": tuple(str(note) for note in document["notes"]),
            "event": events.from_json(json.dumps(document["event"])),
            "relation": Relation(document["relation"]),
            "cost": str(document["cost"]),
            "confidence": ratio(document["confidence"]),
            "is_tidy": bool(document["is_tidy"]),
        }
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidParameter("this is no table that `to_json` wrote") from None
    return fields, columns


def _pack_column(column: AnswerColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind.value,
        "values": _pack_values(column.values),
        "low": None if column.low is None else _pack_values(column.low),
        "high": None if column.high is None else _pack_values(column.high),
        "limits": [None if end is None else str(end) for end in column.limits],
        "grain": None if column.grain is None else str(column.grain),
        "no_interval": column.no_interval,
        "measured": column.measured,
    }


def _unpack_column(stored: dict[str, Any]) -> AnswerColumn:
    low, high = (None if end is None else ratio(end) for end in stored["limits"])
    return AnswerColumn(
        name=str(stored["name"]),
        kind=Kind(stored["kind"]),
        values=_unpack_values(stored["values"]),
        low=None if stored["low"] is None else _unpack_values(stored["low"]),
        high=None if stored["high"] is None else _unpack_values(stored["high"]),
        limits=(low, high),
        grain=None if stored["grain"] is None else ratio(stored["grain"]),
        no_interval=str(stored["no_interval"]),
        measured=bool(stored["measured"]),
    )


def _pack_values(values: Values) -> Any:
    if not isinstance(values, ExactNumbers):
        return [_pack(value) for value in values]
    under = None if values.under is None else values.under.tolist()
    return {"over": values.over.tolist(), "under": under, "step": str(values.step), "offset": str(values.offset)}


def _unpack_values(stored: Any) -> Values:
    if isinstance(stored, list):
        return tuple(_unpack(value) for value in stored)
    under = None if stored["under"] is None else _integers(stored["under"])
    return ExactNumbers(_integers(stored["over"]), under, ratio(stored["step"]), ratio(stored["offset"]))


def _integers(values: list[int]) -> np.ndarray[Any, Any]:
    return compact(np.array([int(value) for value in values], dtype=object))


def _pack(value: Hashable) -> Any:
    """Write a value as JSON has it, or under a letter that tells its kind."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Fraction):
        return {"f": str(value)}
    if isinstance(value, datetime):
        return {"t": value.isoformat()}
    if isinstance(value, date):
        return {"d": value.isoformat()}
    if isinstance(value, float):
        return {"r": value.hex()}
    raise InvalidParameter(f"a table cannot hold a {type(value).__name__}")


def _unpack(stored: Any) -> Hashable:
    match stored:
        case {"f": str(written)}:
            return ratio(written)
        case {"t": str(written)}:
            return datetime.fromisoformat(written)
        case {"d": str(written)}:
            return date.fromisoformat(written)
        case {"r": str(written)}:
            return float.fromhex(written)
        case None | bool() | int() | str():
            return stored
    raise ValueError
