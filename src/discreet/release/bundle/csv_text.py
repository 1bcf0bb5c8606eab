"""A table as CSV: UTF-8, one line a row, texts in quotes, numbers bare, nothing where there is no value.

A text that a spreadsheet would take for a formula gets an apostrophe in front, and so does one that begins with an
apostrophe: taking one away gives the value back. Parquet files hold the texts as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from discreet.release.bundle.decimals import decimal_text
from discreet.release.bundle.layout import FileColumn, Role

__all__ = ["csv_bytes"]

# What begins a formula in some spreadsheet, in its full width too, and the blanks that are skipped before one.
_FORMULA = "=+-@\t\r\n'＝＋－＠"
_WAYS = {Role.LOW: -1, Role.HIGH: 1, Role.NOISE: 1}


def csv_bytes(fields: Sequence[FileColumn]) -> bytes:
    """Write the columns of a table."""
    columns = [[_quoted(field.name), *map(_writer(field.role), field.values)] for field in fields]
    lines = [",".join(row) for row in zip(*columns, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def _writer(role: Role) -> Callable[[Any], str]:
    way = _WAYS.get(role, 0)
    return lambda value: _written(value, way)


def _written(value: Any, way: int) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | Fraction():
            return decimal_text(value, way=way)
        case float():
            return repr(value)
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
    return _quoted(str(value))


def _quoted(text: str) -> str:
    safe = "'" + text if text.lstrip(" ").startswith(tuple(_FORMULA)) else text
    return '"' + safe.replace('"', '""') + '"'
