"""Replace-one: all rows of a unit exchanged for any others, also for none; every statistic, against all exchanges."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from planning_worlds import CITIES, EVERY, FIELDS, WORD, Planned, X, exchanges, people, priced, units
from test_planning_sensitivities import PIVOTS, charged, others_for, spent_at_most
from test_planning_verified import CASES

from discreet.lab.verify import check
from discreet.privacy.relation import Relation
from discreet.query.ast import Measure, Statistic
from discreet.query.plan.draft import FinalDraft, Footprint
from discreet.query.plan.noise_selection import choose_noise
from discreet.query.plan.planner import PricedQuery

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
TWO, DELTA = Fraction(2), Fraction(1, 1000)
KEYS = ("none", "known", "unknown")
LIMITS = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1))


Change = list[list[int]]
CROSSED = {field.name: None for field in FIELDS} | {"x": 4, "later": 3, "sure": 0}  # Opposite ends of two columns.


def made(measure: str, keys: str, limits: tuple[int, int], **spend: Any) -> PricedQuery:
    asked: dict[str, Any] = {"delta": DELTA} if keys == "unknown" else {}
    return priced(EVERY[measure], keys=keys, limits=limits, relation=REPLACE, **(asked | spend))


def states(keys: str, limits: tuple[int, int], measure: str) -> list[Any]:
    """All that one unit may give, also nothing; where keys are not public, also in groups that nobody else is in."""
    groups = limits[0] if keys != "none" else 1
    values: tuple[Any, ...] = (0, 2, 4, None) if groups * limits[1] <= 2 else (0, 2, 4)
    if measure == "distinct":
        values = (0, 4)
    if measure in ("covariance", "correlation"):
        values += (CROSSED,)
    listed = [(), *units(groups, limits[1], values)]
    if groups * limits[1] > 3 and measure != "distinct":  # All rows alike in a group: what is lost is largest there.
        listed = [
            unit for unit in listed if all(len({str(x) for city, x in unit if city == one}) < 2 for one in CITIES)
        ]
    if keys == "unknown":
        listed += [tuple((f"{city}, elsewhere", value) for city, value in unit) for unit in listed if unit]
    return listed


def all_exchanges(plan: PricedQuery, measure: str, keys: str, limits: tuple[int, int]) -> list[Change]:
    listed = states(keys, limits, measure)
    return [found for others in others_for(measure) for found in exchanges(plan, others, listed)]


def asked(measure: str, keys: str, limits: tuple[int, int]) -> bool:
    """Leave out what is refused, as a count of units, and what takes long and adds nothing."""
    if keys == "none":
        is_count = measure in ("rows", "count of sure") and limits[1] == 1
        return limits[0] == 1 and measure != "units" and not is_count
    return (keys == "known" and measure not in ("covariance", "correlation")) or limits[0] * limits[1] <= 2


EACH = [(m, k, limits) for m in EVERY for k in KEYS for limits in LIMITS if asked(m, k, limits)]


@pytest.mark.parametrize(("measure", "keys", "limits"), EACH)
def test_each_sensitivity_is_reached_and_not_exceeded(measure: str, keys: str, limits: tuple[int, int]) -> None:
    plan = made(measure, keys, limits, epsilon=TWO)
    draft = plan.draft
    seen = list(all_exchanges(plan, measure, keys, limits))
    for place, (one, other) in enumerate(zip(draft.changes, draft.exchanges, strict=True)):
        assert max(sum(abs(row[place]) for row in found) for found in seen) == draft.footprint.most(one, other)
        squares = max(sum(row[place] ** 2 for row in found) for found in seen)
        assert squares == draft.footprint.most(one**2, other**2)


@pytest.mark.some(29)
@pytest.mark.parametrize(("measure", "keys", "limits"), EACH)
def test_the_joint_worst_case_is_what_is_charged(measure: str, keys: str, limits: tuple[int, int]) -> None:
    """Of numbers that lie about a centre the worst exchanges differ: there the charge may be more, and never less."""
    for spend in ({"epsilon": TWO}, {"rho": Fraction(1)}):
        plan = made(measure, keys, limits, **spend)
        seen, bundles = all_exchanges(plan, measure, keys, limits), len(plan.draft.bundles)
        part = Fraction(bundles, bundles + (keys == "unknown"))
        most = spent_at_most(plan, seen)
        assert most <= charged(plan) * part
        assert most == charged(plan) * part or bundles > 1
        wrong = billed_as_add_remove(plan)
        assert spent_at_most(wrong, seen) > charged(wrong) * part or is_covered(plan)


def billed_as_add_remove(plan: PricedQuery) -> PricedQuery:
    """The planted mistake: the same question, its noise fitted to units that come and go."""
    catalogue = plan.draft.catalogue
    unit = replace(catalogue.unit, relation=ADD, units=None)
    return PricedQuery(choose_noise(replace(plan.draft, catalogue=replace(catalogue, unit=unit))))


def is_covered(plan: PricedQuery) -> bool:
    """Whether noise for units that come and go may be enough: a unit is in all groups, and an exchange moves no more.

    Of a mean it may be, too: the sum moves twice as far, and then the count beside it does not move.
    """
    draft: FinalDraft = plan.draft
    is_everywhere = draft.footprint.common == draft.max_groups
    return is_everywhere and (draft.changes == draft.exchanges or len(draft.bundles) > 1)


@pytest.mark.parametrize("limits", [(1, 1), (1, 2)])
@pytest.mark.parametrize("name", PIVOTS)
def test_rows_go_from_one_number_of_a_bundle_to_another(name: str, limits: tuple[int, int]) -> None:
    """The wrong neighbour: a bundle that is charged like the dearest of its numbers, as under add-remove."""
    for spend in ({"epsilon": TWO}, {"rho": Fraction(1)}):
        plan = priced(*PIVOTS[name], limits=limits, relation=REPLACE, **spend)  # type: ignore[arg-type]
        assert len(plan.draft.bundles) == 1 < len(plan.draft.numbers)
        rows = [(), *(unit for unit in units(3, limits[1], (0, 4)) if len(unit) <= limits[1])]
        seen = list(exchanges(plan, (), rows))
        assert spent_at_most(plan, seen) == charged(plan) == 2
        assert spent_at_most(billed_as_add_remove(plan), seen) > 2


@pytest.mark.parametrize("spend", [{"epsilon": Fraction(1, 1000)}, {"rho": Fraction(1, 10**6)}])
def test_an_exchange_is_rounded_up_row_by_row(spend: dict[str, Any]) -> None:
    """Two rows that go from one end of a wide centred sum to the other, in units of the noise."""
    for more in range(20):
        high = Fraction((1 << 36) + 7919 * more)
        wide = replace(X, facts=replace(X.facts, low=-high, high=high))
        plan = priced(Measure(Statistic.SUM, wide), limits=(1, 2), relation=REPLACE, **spend)
        one = plan.draft.noising.numbers[0]
        assert one.unit > 1
        assert one.exchange is not None
        assert 2 * one.change >= one.exchange >= 2 * -(-2 * int(high) // one.unit) - 2
        assert one.exchange * one.unit >= plan.draft.exchanges[0] == 4 * high


MEDIAN = Measure(Statistic.QUANTILE, X, Fraction(1, 2))
TOP = Measure(Statistic.QUANTILE, X, Fraction(9, 10))
MODE = Measure(Statistic.MODE, WORD)
LAWS = {name: case for name, case in CASES.items() if name not in ("two counts of one unit", "two numbers by rho")} | {
    "a top by group": ([TOP], "known", (1, 1), {"rho": Fraction(1, 2)}),
    "a median by group": ([MEDIAN], "known", (1, 1), {"epsilon": TWO}),
    "a mode by group": ([MODE], "known", (1, 1), {"epsilon": TWO}),
    "counts by group": ([EVERY["rows"]], "known", (1, 1), {"epsilon": Fraction(8)}),
    "values and NULLs": ([EVERY["count"], EVERY["mean"]], "none", (1, 1), {"epsilon": Fraction(16)}),
}


def planned(name: str, **changes: Any) -> tuple[Planned, list[Any]]:
    measures, keys, limits, spend = LAWS[name]
    plan = priced(*measures, keys=keys, limits=limits, relation=REPLACE, **spend)
    groups = 1 if keys == "none" else limits[0]
    listed = [(), *(unit for unit in units(groups, limits[1], (0, 4)) if all(city != "c" for city, _ in unit))]
    return Planned(plan, relation=REPLACE, **changes), [world for world in people(listed, 2) if len(world) == 2]


@pytest.mark.some(6)
@pytest.mark.parametrize("name", LAWS)
def test_no_exchange_exceeds_what_is_charged(name: str) -> None:
    mechanism, worlds = planned(name)
    assert check(mechanism, worlds, epsilons=[Fraction(0), TWO, Fraction(4)]).holds


@pytest.mark.parametrize("name", ["counts by group", "a median", "a median by group", "a mode by group"])
def test_replace_one_billed_as_add_remove_is_caught(name: str) -> None:
    """The planted mistake, by the exact law of the whole release."""
    mechanism, worlds = planned(name)
    claim = mechanism.plan.spend.epsilon
    assert claim is not None
    assert check(mechanism, worlds, claim=claim).holds
    wrong = replace(mechanism, plan=billed_as_add_remove(mechanism.plan))
    assert check(wrong, worlds, claim=claim).violated


def test_the_delta_of_hidden_groups_covers_those_that_appear_while_as_many_vanish() -> None:
    """A unit alone in one group, and then alone in another. The wrong neighbour: a threshold that is one lower."""
    _, worlds = planned("unknown groups")
    alone = [((("a", 0),), ()), ((("b", 0),), ())]
    for told in (worlds, alone):
        assert check(planned("unknown groups")[0], told, epsilons=[Fraction(8)]).holds
    assert check(planned("unknown groups", lower=1)[0], worlds, epsilons=[Fraction(8)]).violated


@pytest.mark.parametrize("groups", range(1, 5))
def test_a_footprint_is_all_pairs_of_sets_of_groups(groups: int) -> None:
    from itertools import combinations

    for limit in range(1, groups + 1):
        sets = [set(each) for size in range(limit + 1) for each in combinations(range(groups), size)]
        pairs = [(len(one & other), len(one ^ other)) for one in sets for other in sets]
        footprint = Footprint(limit, max(0, 2 * limit - groups))
        for change, exchange in ((1, 1), (1, 2), (2, 3), (1, 4)):
            most = max(both * exchange + single * change for both, single in pairs)
            assert footprint.most(change, exchange) == most


def test_the_tables_have_three_cities() -> None:
    """Footprints of up to three groups of three: with more groups than twice the limit nothing is in common."""
    assert len(CITIES) == 3
    known = [priced(EVERY["sum"], keys="known", limits=(k, 1), relation=REPLACE, epsilon=TWO) for k in (1, 2, 3)]
    assert [plan.draft.footprint.common for plan in known] == [0, 1, 3]
