"""Facts hold: whatever an expression is computed to, it lies between the bounds that the rules derive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from reading_trees import Trees
from sqlglot import exp

from discreet.errors import Refused
from discreet.query.ast import Apply, Expression, Field, Literal, Operator, walk
from discreet.query.functions import numbers
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, cast, clamp, compute, evaluate, when
from discreet.query.functions.intervals import Interval
from discreet.query.functions.table import FUNCTIONS
from discreet.schema.columns import ExpressionFacts, Kind, between, categories, time_number

OP = Operator
AGE = Field("age", between(0, 100).facts)
PRICE = Field("price", between(0.0, 100.0, step="0.01").facts)
TYPES = {
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.REAL: float,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
    Kind.BOOLEAN: bool,
}


def holds(facts: ExpressionFacts, value: Any) -> bool:
    """Whether a computed value agrees with what was said of it; bounds of a real are compared as doubles."""
    if value is None:
        return facts.nullable
    if not isinstance(value, TYPES[facts.kind]):
        return False
    number: Any = time_number(value) if isinstance(value, date) else value
    low, high = facts.low, facts.high
    if facts.kind is Kind.REAL:
        return (low is None or float(low) <= number) and (high is None or number <= float(high))
    small = facts.kind is not Kind.INTEGER or -(2**63) <= number < 2**63
    return (low is None or low <= number) and (high is None or number <= high) and small


def examples(seed: int, trees: int, rows: int) -> Iterator[tuple[Expression, dict[str, Any]]]:
    random = Random(seed)
    for _ in range(trees):
        source = Trees(random, {})
        expression = source.number(4) if random.random() < 0.85 else source.time(3)
        for _ in range(rows):
            yield expression, source.row()


def violations(seed: int, trees: int, rows: int) -> int:
    """Count nodes whose value is outside of their facts."""
    wrong = 0
    for expression, row in examples(seed, trees, rows):
        wrong += any(not holds(node.facts, evaluate(node, row)) for node in walk(expression))
    return wrong


@pytest.mark.parametrize("seed", range(4))
def test_every_node_lies_within_its_facts(seed: int) -> None:
    assert violations(seed, 120, 10) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_every_node_lies_within_its_facts_at_length(seed: int) -> None:
    assert violations(seed, 3_000, 30) == 0


def _forgets_signs(one: Interval, other: Interval) -> Interval:
    ends = [None if a is None or b is None else a * b for a, b in zip(one, other, strict=True)]
    low, high = sorted(ends, key=lambda end: (end is None, end)) if None not in ends else ends
    return Interval(low, high)


MUTANTS = {
    "a product looks at two of four corners": (
        "MULTIPLY",
        lambda a: numbers._ring_facts(OP.MULTIPLY, a, _forgets_signs),
    ),
    "a difference is taken end by end": (
        "SUBTRACT",
        lambda a: numbers._ring_facts(OP.SUBTRACT, a, lambda x, y: Interval(*sorted_ends(x, y))),
    ),
    "an absolute value keeps its bounds": ("ABSOLUTE", lambda a: a[0].facts),
    "a quotient forgets zero": (
        "DIVIDE",
        lambda a: ExpressionFacts(kind=Kind.REAL, low=Fraction(-(10**9)), high=Fraction(10**9)),
    ),
    "a whole sum is never a double": (
        "ADD",
        lambda a: ExpressionFacts(kind=Kind.INTEGER),
    ),
    "a root is as large as its square": ("SQUARE_ROOT", lambda a: a[0].facts),
    "a remainder is below its divisor and above zero": (
        "MODULO",
        lambda a: ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=None),
    ),
}


def sorted_ends(one: Interval, other: Interval) -> tuple[Fraction | None, Fraction | None]:
    low, high = (None if a is None or b is None else a - b for a, b in zip(one, other, strict=True))
    return (low, high) if low is None or high is None or low <= high else (high, low)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_rule_is_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, rule = MUTANTS[mutant]
    monkeypatch.setitem(FUNCTIONS, OP[name], replace(FUNCTIONS[OP[name]], facts=rule))  # type: ignore[arg-type]
    assert violations(7, 80, 8) > 0


def test_every_operator_has_one_record_with_a_meaning() -> None:
    assert set(FUNCTIONS) == set(OP)
    assert all(function.operator is operator for operator, function in FUNCTIONS.items())
    for operator in OP:
        compute(operator, [None] * 3)


def test_no_word_is_spelled_by_two_records() -> None:
    spelled = [word.partition(":")[0] for function in FUNCTIONS.values() for word in function.spelled]
    parts = [part for function in FUNCTIONS.values() for part in function.date_parts]
    assert len(set(spelled)) == len(spelled) >= 40
    assert len(set(parts)) == len(parts)


def test_spellings_are_slots_of_the_parser() -> None:
    for function in FUNCTIONS.values():
        for spelled in function.spelled:
            name, _, slots = spelled.partition(": ")
            named, known = {slot.rstrip("*?") for slot in slots.split()}, getattr(exp, name).arg_types
            assert {slot for slot, needed in known.items() if needed} <= named <= set(known), spelled


def test_whole_numbers_stay_whole_while_they_are_small() -> None:
    assert apply(OP.MULTIPLY, AGE, literal(3)).facts == ExpressionFacts(
        kind=Kind.INTEGER, low=Fraction(0), high=Fraction(300)
    )
    huge = apply(OP.MULTIPLY, AGE, literal(2**61))
    assert huge.facts.kind is Kind.REAL
    assert isinstance(huge, Apply)
    assert all(argument.facts.kind is Kind.REAL for argument in huge.arguments)


def test_a_whole_number_without_bounds_is_computed_in_doubles() -> None:
    unbounded = Field("x", ExpressionFacts(kind=Kind.INTEGER))
    for node in (apply(OP.ADD, unbounded, literal(1)), apply(OP.NEGATE, unbounded), apply(OP.ABSOLUTE, unbounded)):
        assert node.facts.kind is Kind.REAL


def test_decimal_bounds_stay_decimal() -> None:
    share = Field("share", between(0.0, 0.1).facts)
    rest = apply(OP.SUBTRACT, literal(1), share)
    assert (rest.facts.low, rest.facts.high) == (Fraction(9, 10), Fraction(1))


def test_a_bound_is_that_of_the_computed_double() -> None:
    """100 times 0.07 is a little more than 7 in doubles, so that its ceiling is 8."""
    share = apply(OP.CEILING, apply(OP.MULTIPLY, AGE, literal(Fraction("0.07"))))
    assert share.facts.high == 8
    assert evaluate(share, {"age": 100}) == 8


def test_division_by_what_may_be_zero_has_no_bounds() -> None:
    assert not apply(OP.DIVIDE, AGE, AGE).facts.is_bounded
    assert apply(OP.DIVIDE, AGE, literal(10)).facts.high == 10


def test_steps_follow_sums_and_products() -> None:
    assert apply(OP.ADD, PRICE, literal(5)).facts.step == Fraction(1, 100)
    assert apply(OP.MULTIPLY, PRICE, AGE).facts.step == Fraction(1, 100)
    assert apply(OP.MULTIPLY, PRICE, PRICE).facts.step == Fraction(1, 10_000)
    assert apply(OP.DIVIDE, PRICE, literal(3)).facts.step is None


def test_clamping_bounds_and_keeps_null() -> None:
    clamped = clamp(Field("x", ExpressionFacts(kind=Kind.REAL)), Fraction(0), Fraction(5, 2))
    assert (clamped.facts.low, clamped.facts.high) == (0, Fraction(5, 2))
    assert [evaluate(clamped, {"x": value}) for value in (None, -3.0, 2.0, 9.0)] == [None, 0.0, 2.0, 2.5]


def test_branches_are_joined() -> None:
    node = when([(apply(OP.LESS, AGE, literal(18)), literal("young"))], literal("old"))
    assert node.facts.members == ("young", "old")
    assert when([(apply(OP.LESS, AGE, literal(18)), AGE)], literal(-5)).facts.low == -5


def test_constants_are_computed_at_once() -> None:
    assert apply(OP.ADD, literal(1), literal(2)) == literal(3)
    assert apply(OP.ADD_MONTHS, literal(date(2024, 1, 31)), literal(1)) == literal(date(2024, 2, 29))
    assert apply(OP.SUBTRACT, literal(Fraction("0.3"), Kind.REAL), literal(Fraction("0.1"), Kind.REAL)) == literal(
        Fraction("0.19999999999999998"), Kind.REAL
    )
    folded = apply(OP.DIVIDE, literal(1), literal(0))
    assert isinstance(folded, Literal)
    assert folded.value is None


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (OP.ADD, (AGE, literal("x"))),
        (OP.ADD, (AGE, literal(True))),
        (OP.EQUAL, (AGE, literal("x"))),
        (OP.EQUAL, (AGE, literal(None))),
        (OP.EQUAL, (Field("t", ExpressionFacts(kind=Kind.TEXT)), AGE)),
        (OP.AND, (AGE, AGE)),
        (OP.MODULO, (PRICE, literal(2))),
        (OP.MODULO, (Field("x", ExpressionFacts(kind=Kind.INTEGER)), Field("y", between(-2, 2).facts))),
        (OP.POWER, (AGE, literal(9))),
        (OP.POWER, (AGE, AGE)),
        (OP.ROUND, (PRICE, AGE)),
        (OP.LIKE, (literal("a"), Field("t", ExpressionFacts(kind=Kind.TEXT)))),
        (OP.LIKE, (AGE, literal("a%"))),
        (OP.SUBSTRING, (Field("t", ExpressionFacts(kind=Kind.TEXT)), literal(0), literal(2))),
        (OP.SUBSTRING, (Field("t", ExpressionFacts(kind=Kind.TEXT)), AGE, literal(2))),
        (OP.SUBSTRING, (Field("t", ExpressionFacts(kind=Kind.TEXT)), literal(1), literal(10**6))),
        (OP.YEAR, (AGE,)),
        (OP.ADD_DAYS, (literal(date(2020, 1, 1)), AGE)),
        (OP.LEAST, (Field("t", ExpressionFacts(kind=Kind.TEXT)), literal("x"))),
        (OP.TRUNCATE_TIME, (literal("century"), literal(date(2020, 1, 1)))),
        (OP.TO_TEXT, (PRICE,)),
        (OP.TO_DATE, (AGE,)),
        (OP.NEGATE, (literal(None),)),
    ],
)
def test_what_has_no_single_meaning_is_refused(operator: Operator, arguments: tuple[Expression, ...]) -> None:
    with pytest.raises(Refused) as refusal:
        apply(operator, *arguments)
    assert refusal.value.reason
    assert refusal.value.way_out


def test_constants_take_the_kind_of_what_they_meet() -> None:
    born = Field("born", between(date(2000, 1, 1), date(2010, 1, 1)).facts)
    node = apply(OP.LESS, born, literal("2005-06-01"))
    assert isinstance(node, Apply)
    assert node.arguments[1] == literal(date(2005, 6, 1))
    with pytest.raises(Refused):
        apply(OP.LESS, born, literal("soon"))


def test_a_date_and_a_moment_are_compared_as_moments() -> None:
    born = Field("born", between(date(2000, 1, 1), date(2010, 1, 1)).facts)
    node = apply(OP.LESS, born, literal(datetime(2005, 6, 1, 12)))
    assert isinstance(node, Apply)
    assert node.arguments[0].facts.kind is Kind.TIMESTAMP
    assert evaluate(node, {"born": date(2005, 6, 1)}) is True


def test_casts_of_texts_lose_bounds_and_may_be_null() -> None:
    text = Field("t", categories(["1", "x"]).facts)
    assert cast(text, Kind.INTEGER).facts == ExpressionFacts(kind=Kind.INTEGER)
    assert [evaluate(cast(text, Kind.INTEGER), {"t": value}) for value in ("1", "x", "2.5", "9e99")] == [
        1,
        None,
        2,
        None,
    ]
