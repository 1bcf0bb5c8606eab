"""Names and constants as they are written in SQL, and pieces of SQL that stand in a plan by themselves."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from datetime import date, datetime
from functools import cache

from discreet.errors import InvalidParameter

__all__ = ["check_piece", "constant", "constants", "identifier"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ONE = "write one expression: parentheses in pairs, no comment, no semicolon"


def identifier(name: str) -> str:
    """Write a name, in quotes if it is no plain word or has a meaning of its own."""
    if _PLAIN.fullmatch(name) and name.upper() not in _words():
        return name
    return '"' + name.replace('"', '""') + '"'


@cache
def _words() -> frozenset[str]:
    """Return all words that have a meaning in SQL, also as the first of several."""
    from sqlglot.dialects.duckdb import DuckDB

    return frozenset(words.split()[0] for words in DuckDB.Tokenizer.KEYWORDS if words)


def constant(value: Hashable) -> str:
    """Write a constant."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
    raise InvalidParameter("values of keys are texts, whole numbers, dates or truth values")


def constants(values: Iterable[Hashable]) -> str:
    """Write a list of constants."""
    return f"({', '.join(map(constant, values))})"


def check_piece(text: str) -> str:
    """Refuse a piece of SQL that would not stay by itself when more is written around it."""
    from sqlglot.errors import TokenError
    from sqlglot.tokens import Tokenizer

    try:
        tokens = Tokenizer().tokenize(text)
    except TokenError:
        raise InvalidParameter("this is no SQL: perhaps a quotation mark is missing") from None
    depth = 0
    for token in tokens:
        kind = token.token_type.name
        depth += (kind == "L_PAREN") - (kind == "R_PAREN")
        if depth < 0 or kind == "SEMICOLON" or token.comments:
            raise InvalidParameter(_ONE)
    if depth or not tokens:
        raise InvalidParameter(_ONE)
    return text.strip()
