"""What one unit changes: every statistic, with no, known and unknown groups, against all that one unit can give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_worlds import CITY, EVERY, SURE, X, changes, priced, units

from discreet.mechanisms.release import pure_epsilon
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy.events import ApproxDP, Composed, Gaussian
from discreet.query.ast import Apply, Case, Field, Literal, Measure, Operator, Statistic
from discreet.query.plan.draft import FinalDraft, TallySpec
from discreet.query.plan.noise_selection import choose_noise
from discreet.query.plan.planner import PricedQuery
from discreet.schema.columns import ExpressionFacts, Kind

LIMITS = ((1, 1), (2, 1), (1, 2), (2, 2))
KEYS = ("none", "known", "unknown")
ONE, TWO = Fraction(1), Fraction(2)
DELTA = Fraction(1, 1000)


def others_for(measure: str) -> tuple[tuple[tuple[tuple[str, int], ...], ...], ...]:
    """Distinct values depend on what the others have; all else does not."""
    crowd = ((("a", 0), ("b", 4)),)
    return ((), crowd) if measure == "distinct" else ((),)


def all_changes(plan: PricedQuery, measure: str, limits: tuple[int, int], keys: str) -> Iterator[list[list[int]]]:
    groups = limits[0] if keys != "none" else 1
    for others in others_for(measure):
        for unit in units(groups, limits[1], (0, 4, None) if groups * limits[1] > 2 else (0, 2, 4, None)):
            yield changes(plan, others, unit)


def made(measure: str, keys: str, limits: tuple[int, int], **spend: Any) -> PricedQuery:
    asked: dict[str, Any] = {"delta": DELTA} if keys == "unknown" else {}
    return priced(EVERY[measure], keys=keys, limits=limits, **(asked | spend))


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("measure", EVERY)
def test_each_sensitivity_is_reached_and_not_exceeded(measure: str, keys: str, limits: tuple[int, int]) -> None:
    plan = made(measure, keys, limits, epsilon=TWO)
    groups = plan.draft.max_groups
    seen = list(all_changes(plan, measure, limits, keys))
    for place, claimed in enumerate(plan.draft.changes):
        assert max(sum(abs(row[place]) for row in found) for found in seen) == groups * claimed
        assert max(sum(row[place] ** 2 for row in found) for found in seen) == groups * claimed**2


@pytest.mark.parametrize(("low", "high", "farthest"), [(-10, 2, 10), (-10, -3, 10), (-2, 10, 10), (-10, 0, 10)])
def test_a_sum_is_moved_by_the_value_farthest_from_zero_also_below_it(low: int, high: int, farthest: int) -> None:
    owed = Field("x", ExpressionFacts(kind=Kind.INTEGER, low=Fraction(low), high=Fraction(high)))
    plan = priced(Measure(Statistic.SUM, owed), keys="none", limits=(1, 3), epsilon=TWO)
    assert plan.draft.changes == (3 * farthest,)


def spent_at_most(plan: PricedQuery, seen: list[list[list[int]]]) -> Fraction:
    """The largest loss of all numbers together: in l1 for Laplace, in squared l2 for Gaussian noise."""
    noising = plan.draft.noising

    def loss(found: list[list[int]]) -> Fraction:
        total = Fraction(0)
        for row in found:
            for one, moved in zip(noising.numbers, row, strict=True):
                if isinstance(one.law, DiscreteLaplaceLaw):
                    total += Fraction(abs(moved)) / one.law.scale
                else:
                    total += Fraction(moved**2) / one.law.variance
        return total

    return max(loss(found) for found in seen)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("measure", EVERY)
def test_the_joint_worst_case_is_what_is_charged(measure: str, keys: str, limits: tuple[int, int]) -> None:
    for spend in ({"epsilon": TWO}, {"rho": Fraction(1)}):
        plan = made(measure, keys, limits, **spend)
        seen = list(all_changes(plan, measure, limits, keys))
        bundles = len(plan.draft.bundles)
        share = Fraction(bundles, bundles + (keys == "unknown"))
        assert spent_at_most(plan, seen) == charged(plan) * share


def charged(plan: PricedQuery) -> Fraction:
    """What the event says of all noise on numbers and groups: epsilon, or the square of mu."""
    parts = plan.event.events if isinstance(plan.event, Composed) else (plan.event,)
    normal = [part.mu_squared for part in parts if isinstance(part, Gaussian)]
    if normal:
        return sum(normal, Fraction(0))
    losses = [pure_epsilon(part) for part in parts if not isinstance(part, ApproxDP)]
    total = sum((loss for loss in losses if loss is not None), Fraction(0))
    assert total == plan.spend.epsilon
    return total


def test_all_statistics_together_are_one_vector_that_is_charged_tightly() -> None:
    measures = [EVERY[name] for name in ("rows", "units", "count", "sum", "mean", "variance")]
    plan = priced(*measures, keys="known", limits=(2, 2), epsilon=Fraction(3))
    seen = [changes(plan, (), unit) for unit in units(2, 2)]
    assert {number.tallying for number in plan.draft.numbers} == set(TallySpec) - {TallySpec.DISTINCT, TallySpec.ROWS}
    assert len(plan.draft.numbers) == 5  # The count and the total of x are paid once.
    assert len(plan.draft.bundles) == 4  # So are values and NULLs.
    assert spent_at_most(plan, seen) == 3


@given(
    names=st.lists(st.sampled_from([name for name in EVERY if name != "distinct"]), min_size=1, unique=True),
    keys=st.sampled_from(KEYS),
    limits=st.sampled_from(LIMITS),
    gaussian=st.booleans(),
)
@settings(max_examples=40, derandomize=True)
def test_the_charge_is_reached_for_all_vectors(
    names: list[str], keys: str, limits: tuple[int, int], gaussian: bool
) -> None:
    spend: dict[str, Any] = {"rho": ONE} if gaussian else {"epsilon": TWO}
    more = {"delta": DELTA} if keys == "unknown" else {}
    plan = priced(*(EVERY[name] for name in names), keys=keys, limits=limits, **spend, **more)
    groups = 1 if keys == "none" else limits[0]
    # A row at the low end of all columns, one at the high end, and one of NULLs: the extremes are among these.
    ends = ([(0,), (4,), (None,)][row] * limits[1] for row in range(3))
    seen = [changes(plan, (), tuple((city, value) for city in "abc"[:groups] for value in end)) for end in ends]
    bundles = len(plan.draft.bundles)
    assert spent_at_most(plan, seen) == charged(plan) * Fraction(bundles, bundles + (keys == "unknown"))


def _case(city: str, value: object, otherwise: object) -> Case:
    text, boolean = ExpressionFacts(kind=Kind.TEXT), ExpressionFacts(kind=Kind.BOOLEAN)
    number = ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(4))
    test = Apply(Operator.EQUAL, (CITY, Literal(city, text)), boolean)
    branch = X if value == "x" else Literal(1, number)
    return Case(((test, branch),), Literal(otherwise, number), number)  # type: ignore[arg-type]


PIVOTS = {
    "counts": [Measure(Statistic.COUNT, _case(city, 1, None)) for city in "abc"],
    "sums": [Measure(Statistic.SUM, _case(city, "x", 0)) for city in "abc"],
    "both": [Measure(Statistic.COUNT, _case("a", 1, None)), Measure(Statistic.SUM, _case("b", "x", 0))],
}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", PIVOTS)
def test_numbers_that_exclude_each_other_are_charged_as_one(name: str, limits: tuple[int, int]) -> None:
    """A pivot: one unit's rows of the one group may be of several cities, M of them at most."""
    spends: list[dict[str, Any]] = [{"epsilon": TWO}, {"rho": Fraction(1)}]
    for spend in spends:
        plan = priced(*PIVOTS[name], limits=limits, **spend)
        assert len(plan.draft.bundles) == 1 < len(plan.draft.numbers)
        rows = [unit for unit in units(3, limits[1]) if len(unit) <= limits[1]]
        seen = [changes(plan, (), unit) for unit in rows]
        assert spent_at_most(plan, seen) == 2


@pytest.mark.parametrize("spend", [{"epsilon": Fraction(1, 1000)}, {"rho": Fraction(1, 10**6)}])
def test_numbers_that_exclude_each_other_stay_within_the_charge_when_they_are_rounded(spend: dict[str, Any]) -> None:
    """One row in each of two wide sums rounds up twice. The wrong neighbour: rounding up all rows at once."""
    wrong = False
    for more in range(40):
        high = Fraction((1 << 36) + 7919 * more)
        wide = ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=high)
        cases = [replace(_case(city, "x", 0), facts=wide) for city in "ab"]
        plan = priced(*(Measure(Statistic.SUM, case) for case in cases), limits=(1, 2), **spend)
        noising = plan.draft.noising
        one, other = noising.numbers
        assert (one.unit, one.change) == (other.unit, other.change)
        assert one.unit > 1
        moved = 2 * -(-int(high) // one.unit)  # By two rows of one unit, one in each sum, at the worst offset.
        assert moved <= one.change
        wrong |= moved > -(-2 * int(high) // one.unit)
    assert wrong


def test_sums_about_a_centre_do_not_exclude_each_other() -> None:
    """The wrong neighbour: a row of another city adds minus the centre to a centred sum."""
    sums = PIVOTS["sums"]
    means = [Measure(Statistic.MEAN, measure.argument) for measure in sums]
    assert all(len(bundle) == 1 for bundle in priced(*means, epsilon=TWO).draft.bundles)


def test_the_same_constant_twice_excludes_nothing() -> None:
    twice = [Measure(Statistic.COUNT, _case("a", 1, None)), Measure(Statistic.SUM, _case("A ", "x", 0))]
    assert all(len(bundle) == 1 for bundle in priced(*twice, epsilon=TWO).draft.bundles)


# Mutants: each is a slip that somebody made once, and each must be caught by the comparison above.


def _with_changes(plan: PricedQuery, rule: object) -> FinalDraft:
    return choose_noise(replace(plan.draft, changes=tuple(rule(plan.draft))))  # type: ignore[operator]


MUTANTS = {
    "without the rows of a unit": ("count", lambda d: [1 for _ in d.changes]),
    "a total without its reach": ("sum", lambda d: [d.max_rows for _ in d.changes]),
    "a mean whose centre is twice as far": ("mean", lambda d: [max(1, s // 2) for s in d.changes]),
    "squares without the square": ("variance", lambda d: [min(s, 2 * d.max_rows - 1) for s in d.changes]),
    "distinct values as if they were units": ("distinct", lambda d: [1 for _ in d.changes]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_rule_is_caught(name: str) -> None:
    measure, rule = MUTANTS[name]
    right = made(measure, "known", (2, 2), epsilon=TWO)
    seen = list(all_changes(right, measure, (2, 2), "known"))
    assert spent_at_most(right, seen) == 2
    assert spent_at_most(PricedQuery(_with_changes(right, rule)), seen) > 2


def test_forgetting_how_many_groups_a_unit_is_in_is_caught() -> None:
    right = made("count", "known", (2, 2), epsilon=TWO)
    wrong = PricedQuery(choose_noise(replace(right.draft, max_groups=1)))
    seen = list(all_changes(right, "count", (2, 2), "known"))
    assert spent_at_most(wrong, seen) > 2


def test_numbers_that_only_seem_to_exclude_each_other_are_caught() -> None:
    """The same row moves both: one bundle for the two would be charged half."""
    plan = priced(Measure(Statistic.COUNT, X), Measure(Statistic.SUM, SURE), epsilon=TWO)
    wrong = PricedQuery(choose_noise(replace(plan.draft, bundles=((0, 1),))))
    seen = [changes(plan, (), unit) for unit in units(1, 1)]
    assert spent_at_most(plan, seen) == 2 < spent_at_most(wrong, seen)
