"""What is known of one function of a row, in one record: kinds, bounds, meaning in Python, SQL, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from discreet.errors import Refused
from discreet.query.ast import Apply, Expression, Operator
from discreet.query.engines.sql_writer import Rule
from discreet.query.functions.agreement import to_real
from discreet.query.functions.constants import is_null
from discreet.query.functions.intervals import Interval
from discreet.schema.columns import LONGEST_TEXT, ExpressionFacts, Kind

__all__ = ["Facts", "SqlFunction", "common_kind", "strict"]

Facts: TypeAlias = Callable[[Sequence[Expression]], ExpressionFacts]


def strict(function: SqlFunction, arguments: tuple[Expression, ...]) -> Expression:
    """Apply a function that is NULL where an argument is: the rule for all that do not say otherwise."""
    if any(is_null(argument) for argument in arguments):
        raise Refused(
            "this is NULL for every row",
            reason="nothing can be computed from NULL",
            way_out="leave it out, or test with IS NULL",
        )
    facts = function.facts(arguments)
    reals = function.reals if facts.kind is Kind.REAL else 0
    return Apply(function.operator, (*map(to_real, arguments[:reals]), *arguments[reals:]), facts)


def common_kind(parts: Sequence[Kind]) -> Kind:
    """Return the kind that holds values of all kinds: text, if they are unlike."""
    if parts and all(part is parts[0] for part in parts):
        return parts[0]
    return Kind.REAL if all(part.is_number for part in parts) else Kind.TEXT


def _longest(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    return max(lengths, default=LONGEST_TEXT)


def _every_text_once(arguments: Sequence[Expression], lengths: Sequence[int], length: int) -> int:
    return 1 + length + sum(lengths)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFunction:
    """One operator of the closed tree: everything that parser, planner and engine know of it.

    `value` is the meaning, `duckdb` must agree with it on every row, and `facts` must enclose both: the tests compare
    all three. A function is total: it has a value, perhaps NULL, for every row.
    """

    operator: Operator
    # A class of parsed nodes and its slots, "Lower: this"; a slot with * is a list of further arguments, and one with ?
    # may be there without a meaning of its own. What is read in another way is in `parse.expression_reader`.
    spelled: tuple[str, ...] = ()
    date_parts: tuple[str, ...] = ()  # its names in EXTRACT and DATE_PART

    # Facts: which arguments are taken, and of which kind and between which bounds the value is.
    facts: Facts
    build: Callable[[SqlFunction, tuple[Expression, ...]], Expression] = strict
    reals: int = 0  # so many arguments, from the first, are made doubles where the value is one
    tells_apart: bool = False  # takes values of no known kind, too
    lists_its_bounds: bool = False  # of a column it takes all values between its bounds, and they are listed as such

    # Meaning: the value in Python, of public values only; None, and an arithmetic error, is NULL.
    value: Callable[..., Any]
    sees_null: bool = False  # otherwise NULL in is NULL out, and `value` is not asked

    # SQL: one rule for each dialect.
    duckdb: Rule

    # Released values: the kind of the value, or how it follows from those of the arguments; and where it lies if
    # the arguments lie in intervals, as far as there is a rule.
    kind: Kind | Callable[[Sequence[Kind]], Kind] = common_kind
    ends: Callable[..., Interval | None] | None = None

    # Work: how many characters the value can have, and how many are made or looked through, from the arguments and
    # their lengths.
    length: Callable[[Sequence[Expression], Sequence[int]], int] = _longest
    work: Callable[[Sequence[Expression], Sequence[int], int], int] = _every_text_once

    def kind_of(self, parts: Sequence[Kind]) -> Kind:
        """Return the kind of the value for arguments of some kinds, as released values have them."""
        return self.kind if isinstance(self.kind, Kind) else self.kind(parts)
