"""Texts in SQL. A text is cut at a length that no honest answer needs, before a function and after every step of one.

So no text that is made on the way is much longer than that, and what a row costs is known before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.query.engines.numbers import literal_integer
from discreet.query.engines.writing import Rule, WriteAs, Writer
from discreet.query.expressions import Apply, Expression, Field, Literal
from discreet.query.facts import LONGEST_TEXT, Kind
from discreet.query.operators import Operator

__all__ = ["LONGEST", "TEXTS", "cut"]

LONGEST = LONGEST_TEXT
_END = 1 << 31
_CHOICE = Operator.COALESCE


def cut(text: str, expression: Expression) -> str:
    """Write a text no longer than texts may be: only a column as it is stored, or a choice among such, can be."""
    if isinstance(expression, Literal) or (isinstance(expression, Apply) and expression.operator is not _CHOICE):
        return text
    shorter = f"left({text}, {LONGEST})"
    # Most columns pass at once; a long expression is not written twice.
    whole = f"(CASE WHEN strlen({text}) <= {LONGEST} THEN {text} ELSE {shorter} END)"
    return whole if isinstance(expression, Field) else shorter


def _call(name: str, *, kind: Kind = Kind.TEXT) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        parts = [cut(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments]
        call = f"{name}({', '.join(parts)})"
        return f"CAST({call} AS BIGINT)" if kind is Kind.INTEGER else call

    return rule


def _substring(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    start = literal_integer(node.arguments[1])
    length = literal_integer(node.arguments[2]) if len(node.arguments) > 2 else _END
    # Places before the first are empty, as in the standard; the engine would count them from the end.
    first = min(max(start, 1), _END)
    count = min(max(start + length - first, 0), _END)
    return f"substring({write_as(node.arguments[0], Kind.TEXT, writer)}, {first}, {count})"


def _concat(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    """Put texts together two by two: each step is cut, and the expression is no deeper than it must be."""
    parts = [cut(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments]
    while len(parts) > 1:
        pairs = [
            f"left({first} || {second}, {LONGEST})" for first, second in zip(parts[::2], parts[1::2], strict=False)
        ]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]


def _replace(node: Apply, writer: Writer, write_as: WriteAs) -> str:
    text, old, new = (write_as(argument, Kind.TEXT, writer) for argument in node.arguments)
    by = node.arguments[2]
    # Each character may become as long as the new text: a text is cut before, so that a row stays small.
    longest = len(by.value) if isinstance(by, Literal) and isinstance(by.value, str) else LONGEST
    cut = max(1, LONGEST * 100 // max(1, longest))
    return f"left(replace(left({text}, {cut}), {old}, {new}), {LONGEST})"


def _infix(sign: str) -> Rule:
    def rule(node: Apply, writer: Writer, write_as: WriteAs) -> str:
        left, right = (cut(write_as(argument, Kind.TEXT, writer), argument) for argument in node.arguments)
        return f"({left} {sign} {right})"

    return rule


TEXTS: Mapping[Operator, Rule] = {
    Operator.LOWER: _call("lower"),
    Operator.UPPER: _call("upper"),
    Operator.LENGTH: _call("length", kind=Kind.INTEGER),
    Operator.TRIM: _call("trim"),
    Operator.SUBSTRING: _substring,
    Operator.CONCAT: _concat,
    Operator.LIKE: _infix("LIKE"),
    Operator.LIKE_ANY_CASE: _infix("ILIKE"),
    Operator.STARTS_WITH: _call("starts_with"),
    Operator.REPLACE: _replace,
}
