"""Words of other SQL dialects, and what they are called here: hints for refusals, which read no data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

__all__ = ["function_hint", "unreadable_hint"]

_QUOTES = 'names with spaces or other signs stand in double quotes: "stay days"'
_NO_CLOCK = "write the day as a constant: DATE '2026-01-31'"
_DATE_TEXT = "write STRFTIME(d, '%Y-%m'), YEAR(d), MONTH(d) or DATE_TRUNC('month', d)"
_POSITION = "test with CONTAINS(text, 'part'), or with LIKE '%part%'"

# By the name as it is written, in capitals.
_FUNCTIONS: Mapping[str, str] = {
    "APPROX_PERCENTILE": "write QUANTILE_CONT(x, 0.9), or MEDIAN(x)",
    "AVERAGE": "write AVG(x)",
    "CHARINDEX": _POSITION,
    "COUNT_DISTINCT": "write COUNT(DISTINCT x)",
    "CURDATE": _NO_CLOCK,
    "DATENAME": _DATE_TEXT,
    "DATE_FORMAT": _DATE_TEXT,
    "DECODE": "write CASE x WHEN 1 THEN 2 ELSE 3 END",
    "DISTINCTCOUNT": "write COUNT(DISTINCT x)",
    "FORMAT": _DATE_TEXT,
    "FORMAT_DATE": _DATE_TEXT,
    "GETDATE": _NO_CLOCK,
    "INSTR": _POSITION,
    "ISNULL": "write COALESCE(x, 0), or x IS NULL",
    "LOCATE": _POSITION,
    "NDV": "write COUNT(DISTINCT x)",
    "NOW": _NO_CLOCK,
    "NUNIQUE": "write COUNT(DISTINCT x)",
    "PERCENTILE": "write QUANTILE_CONT(x, 0.9), or MEDIAN(x)",
    "PI": "write the number: 3.141592653589793",
    "SAFE_DIVIDE": "write a / b: it is NULL where b is 0",
    "SQUARE": "write x * x",
    "STDEVP": "write STDDEV_POP(x)",
    "STRPOS": _POSITION,
    "STR_POSITION": _POSITION,
    "SUMIF": "write SUM(x) FILTER (WHERE …), or SUM(CASE WHEN … THEN x ELSE 0 END)",
    "SYSDATE": _NO_CLOCK,
    "TO_CHAR": _DATE_TEXT,
    "VAR": "write VAR_SAMP(x) or VAR_POP(x)",
    "VARP": "write VAR_POP(x)",
    "WEEKDAY": "write DAYOFWEEK(d)",
    "WIDTH_BUCKET": "write CASE WHEN x < 10 THEN 1 WHEN x < 20 THEN 2 … END, or FLOOR(x / 10)",
    "ZEROIFNULL": "write COALESCE(x, 0)",
}


def function_hint(name: str) -> str | None:
    """Return what a function of another dialect is called here, if it is known."""
    return _FUNCTIONS.get(name.upper())


def unreadable_hint(text: str, tokens: Sequence[Token]) -> str | None:
    """Return what may be meant by a text that is no SQL here: other quotes, DECODE, TOP, or a name of two words."""
    if "`" in text or _has_bracketed_name(tokens):
        return _QUOTES
    words = [token.text.upper() for token in tokens]
    if ("DECODE", "(") in pairwise(words):  # Two arguments are another function, which is all that is read here.
        return _FUNCTIONS["DECODE"]
    if "TOP" in words[:3]:
        return "write LIMIT 5 at the end: SELECT … ORDER BY n DESC LIMIT 5"
    if any(_follow(first, second) for first, second in pairwise(tokens)):
        return f"is there a comma missing? Otherwise {_QUOTES}"
    return None


def _has_bracketed_name(tokens: Sequence[Token]) -> bool:
    """Tell whether a bracket opens where no list can stand: `[stay days]` is a name in Transact-SQL."""
    types = [token.token_type.name for token in tokens]
    return any(
        kind == "L_BRACKET" and types[at + 1 : at + 2] == ["VAR"] and (at == 0 or types[at - 1] not in ("VAR", "IN"))
        for at, kind in enumerate(types)
    )


def _follow(first: Token, second: Token) -> bool:
    return first.token_type.name == second.token_type.name == "VAR"
