"""Exclusive numbers only ever lower noise: where two are called exclusive, no row of any small table moves both."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_worlds import FLAG, SURE, WORD, Row, X, changes, priced

from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.query.ast import Apply, Case, Expression, Literal, Measure, Operator, Statistic
from discreet.query.plan.noise_selection import exclusive
from discreet.query.plan.planner import PricedQuery
from discreet.schema.columns import ExpressionFacts, Kind

TEXT, BOOLEAN = ExpressionFacts(kind=Kind.TEXT), ExpressionFacts(kind=Kind.BOOLEAN)
NUMBER = ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(4))
ONE = Fraction(1)
COUNT = Statistic.COUNT
# Every combination of what four columns can hold, each by itself: nothing follows from another column.
ROWS: list[Row] = [
    ("a", {"x": x, "sure": sure, "flag": flag, "word": word, "later": None, "pay": None, "free": None, "who": "w"})
    for x, sure, flag, word in product((0, 1, None), (0, 1), (False, True, None), ("p", "q", None))
]


def equal(field: Expression, value: object, *, turned: bool = False) -> Expression:
    constant = Literal(value, TEXT if isinstance(value, str) else NUMBER)  # type: ignore[arg-type]
    return Apply(Operator.EQUAL, (constant, field) if turned else (field, constant), BOOLEAN)


def negated(condition: Expression) -> Expression:
    return Apply(Operator.NOT, (condition,), BOOLEAN)


def case(condition: Expression, then: Expression | int = 1, otherwise: int | None = None) -> Expression:
    branch = Literal(then, NUMBER) if isinstance(then, int) else then
    return Case(((condition, branch),), Literal(otherwise, NUMBER), NUMBER)


equations = st.builds(equal, st.sampled_from([X, SURE]), st.sampled_from([0, 1]), turned=st.booleans()) | st.builds(
    equal, st.just(WORD), st.sampled_from(["p", "q", "P", "p "])
)
plain = equations | st.just(FLAG)
conditions = plain | plain.map(negated) | plain.map(negated).map(negated)
cases = st.builds(case, conditions, st.sampled_from([1, 0, X, SURE]), st.sampled_from([None, 0, 1]))
arguments = cases | st.sampled_from([X, SURE, FLAG])
measures = (
    st.builds(Measure, st.sampled_from([Statistic.COUNT, Statistic.SUM, Statistic.MEAN]), arguments)
    | st.just(Measure(Statistic.ROWS))
    | st.builds(Measure, st.just(Statistic.COUNT), cases)
)


def moved_together(plan: PricedQuery, one: int, other: int) -> bool:
    """Look for a row that moves both numbers."""
    return any((row := changes(plan, (), (own,))[0])[one] and row[other] for own in ROWS)


counts = st.builds(Measure, st.just(Statistic.COUNT), st.builds(case, conditions))
pairs_of_counts = st.lists(counts, min_size=2, max_size=2)  # Most of what can be called exclusive is such a pair.


@pytest.mark.long
@given(
    pairs_of_counts
    | pairs_of_counts.map(lambda two: [*two, Measure(Statistic.ROWS)])
    | st.lists(measures, min_size=1, max_size=3)
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_row_moves_two_numbers_that_are_called_exclusive_for_all_measures(asked: list[Measure]) -> None:
    plan = priced(*asked, epsilon=ONE)
    for one, other in combinations(range(len(plan.draft.numbers)), 2):
        assert not exclusive(plan.draft, one, other) or not moved_together(plan, one, other)
    for bundle in plan.draft.bundles:
        assert not any(moved_together(plan, one, other) for one, other in combinations(bundle, 2))


PLAIN = [equal(field, value) for field in (X, SURE) for value in (0, 1)]
PLAIN += [equal(X, 1, turned=True), equal(WORD, "p"), equal(WORD, "q"), equal(WORD, "P "), FLAG]
CONDITIONS = [*PLAIN, *(negated(condition) for condition in PLAIN)]


@pytest.mark.parametrize("rest", [[], [Measure(Statistic.ROWS)]], ids=["alone", "beside all rows"])
def test_no_row_moves_two_counts_that_are_called_exclusive(rest: list[Measure]) -> None:
    found = 0
    for one, other in combinations(CONDITIONS, 2):
        plan = priced(Measure(COUNT, case(one)), Measure(COUNT, case(other)), *rest, epsilon=ONE)
        for first, second in combinations(range(len(plan.draft.numbers)), 2):
            if exclusive(plan.draft, first, second):
                found += 1
                assert not moved_together(plan, first, second)
    assert found >= 10  # Not empty: x = 0 beside x = 1, a condition beside its negation, values beside NULLs.


APART: dict[str, list[Measure]] = {
    "equations of two columns": [Measure(COUNT, case(equal(X, 1))), Measure(COUNT, case(equal(SURE, 0)))],
    "a column and the negation of another": [Measure(COUNT, case(FLAG)), Measure(COUNT, case(negated(equal(X, 1))))],
    "counts beside the NULLs of another column": [
        Measure(COUNT, case(FLAG)),
        Measure(COUNT, case(negated(FLAG))),
        Measure(Statistic.ROWS),
    ],
    "one constant in two spellings": [Measure(COUNT, case(equal(WORD, "p"))), Measure(COUNT, case(equal(WORD, "P ")))],
}


@pytest.mark.parametrize("name", APART)
def test_numbers_that_a_row_can_move_together_are_charged_apart(name: str) -> None:
    plan = priced(*APART[name], epsilon=ONE)
    assert len(plan.draft.bundles) == 2
    for place, number in enumerate(plan.draft.noising.numbers):
        assert number.law == DiscreteLaplaceLaw(2 * plan.draft.changes[place])
