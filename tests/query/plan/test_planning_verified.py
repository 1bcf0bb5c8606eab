"""Plans on tiny worlds: the exact law of the whole release, for all pairs of neighbours, against the charged event."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest
from planning_worlds import EVERY, WORD, Planned, X, people, priced, units

from discreet.balls import ball, precision
from discreet.lab.verify import check
from discreet.mechanisms import Quantiles
from discreet.privacy.events import BoundedRange, Composed, DiscreteLaplace
from discreet.privacy.relation import Relation
from discreet.query.ast import Measure, Statistic
from discreet.query.plan import choices
from discreet.query.plan.draft import together
from discreet.query.plan.planner import PricedQuery

BIG = Fraction(8)
DELTA = Fraction(1, 20)
ONE = (1, 1)
MEDIAN = Measure(Statistic.QUANTILE, X, Fraction(1, 2))
TOP = Measure(Statistic.QUANTILE, X, Fraction(1))
MODE = Measure(Statistic.MODE, WORD)
QUARTERS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
LIST = [Measure(Statistic.QUANTILE, X, one, among=QUARTERS) for one in QUARTERS]
PAIR = [Measure(Statistic.QUANTILE, X, one, among=QUARTERS[1:]) for one in QUARTERS[1:]]

CASES: dict[str, tuple[list[Measure], str, tuple[int, int], dict[str, Any]]] = {
    "two counts of one unit": ([EVERY["rows"], EVERY["count"]], "none", (1, 2), {"epsilon": 2 * BIG}),
    "a mean": ([EVERY["mean"]], "none", ONE, {"epsilon": BIG}),
    "counts of known groups": ([EVERY["rows"]], "known", (2, 1), {"epsilon": 3 * BIG}),
    "a sum by rho": ([EVERY["sum"]], "none", ONE, {"rho": Fraction(2)}),
    "two numbers by rho": ([EVERY["rows"], EVERY["sum"]], "none", ONE, {"rho": Fraction(4)}),
    "a median": ([MEDIAN], "none", (1, 2), {"epsilon": Fraction(2)}),
    "a median with its ±": ([MEDIAN], "none", (1, 2), {"epsilon": Fraction(4), "quantile_intervals": True}),
    "a maximum and its ± by rho": ([TOP], "known", (2, 1), {"rho": Fraction(1), "quantile_intervals": True}),
    "a maximum and a mode": ([TOP, MODE], "none", (1, 2), {"epsilon": Fraction(2)}),
    "a mode by rho": ([MODE], "known", (2, 1), {"rho": Fraction(1, 2)}),
    "quartiles": (LIST, "none", (1, 2), {"epsilon": Fraction(4)}),
    "quartiles by rho": (LIST, "none", (1, 2), {"rho": Fraction(1)}),
    "two quantiles of known groups": (PAIR, "known", (2, 1), {"epsilon": Fraction(3)}),
    "unknown groups": ([EVERY["rows"]], "unknown", ONE, {"epsilon": BIG, "delta": DELTA}),
    "unknown groups, two a unit": ([EVERY["rows"]], "unknown", (2, 1), {"epsilon": 2 * BIG, "delta": DELTA}),
    "unknown groups by rho": ([EVERY["rows"]], "unknown", ONE, {"rho": Fraction(6), "delta": DELTA}),
    "unknown groups and a mode": ([MODE], "unknown", ONE, {"epsilon": BIG, "delta": DELTA}),
}


def planned(name: str, **changes: Any) -> tuple[Planned, list[Any]]:
    measures, keys, limits, spend = CASES[name]
    plan = priced(*measures, keys=keys, limits=limits, **spend)
    groups = 1 if keys == "none" else limits[0]
    states = [unit for unit in units(groups, limits[1], (0, 4)) if all(city != "c" for city, _ in unit)]
    return Planned(plan, **changes), people(states, 2)


@pytest.mark.some(6)
@pytest.mark.parametrize("name", CASES)
def test_no_pair_of_neighbours_exceeds_what_is_charged(name: str) -> None:
    mechanism, worlds = planned(name)
    epsilons = [Fraction(part, 2) * 4 for part in (0, 1, 2)]
    assert check(mechanism, worlds, epsilons=epsilons).holds


@pytest.mark.long
@pytest.mark.parametrize("name", ["two counts of one unit", "a mean", "counts of known groups"])
def test_the_charge_of_pure_noise_is_reached(name: str) -> None:
    """The wrong neighbour: a claim a tenth smaller is refuted, so nothing is paid for nothing."""
    mechanism, worlds = planned(name)
    claim = mechanism.plan.spend.epsilon
    assert claim is not None
    assert check(mechanism, worlds, claim=claim).holds
    assert check(mechanism, worlds, claim=claim * Fraction(9, 10)).violated


def test_the_rows_of_a_unit_share_what_a_median_spends() -> None:
    """The wrong neighbour: a choice that forgets that three rows move a rank three times as far."""
    plan = priced(MEDIAN, limits=(1, 3), epsilon=Fraction(2))
    others = ((("a", 2),) * 3,) * 2
    worlds = [others, ((("a", 0),) * 3, *others)]
    assert check(Planned(plan), worlds).holds
    assert check(Planned(PricedQuery(replace(plan.draft, max_rows=1))), worlds).violated


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(8)}, {"rho": Fraction(4)}])
def test_a_width_that_nobody_pays_for_is_caught(relation: Relation, spend: dict[str, Fraction]) -> None:
    """The wrong neighbour: an interval around a median that is billed for its point alone."""
    plan = priced(MEDIAN, limits=(1, 2), relation=relation, quantile_intervals=True, **spend)  # type: ignore[arg-type]
    assert plan.event == together([plan.draft.choosers[0].event(plan.draft.footprint)])
    assert isinstance(plan.event, Composed)
    point, width = plan.event.events
    assert (point.epsilon, width.epsilon) == tuple(plan.draft.choosers[0].epsilon * part / 5 for part in (2, 3))
    worlds = people([unit for unit in units(1, 2, (0, 4)) if unit[0][0] == "a"], 2)
    assert check(Planned(plan, relation=relation), worlds).holds
    assert check(Planned(plan, relation=relation, claim=point), worlds).violated


@pytest.fixture(params=["at once", "by levels"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How several quantiles are chosen; by levels as in tables of many groups."""
    if request.param == "by levels":
        monkeypatch.setattr(choices, "_WORK", 0)
    return str(request.param)


CROWDS = [((0, 1), (0, 1)), ((1, 1), (1, 2)), ((0, 0), (2, 2)), ((0, 0), (0, 0)), ((0, 1), (3, 4))]


def beside_crowds(states: list[Any], relation: Relation = Relation.ADD_REMOVE) -> list[Any]:
    """Add one unit, or none, to many others: only next to those do gaps move as far as is paid for."""
    found = []
    for values in CROWDS:
        crowd = tuple(tuple(("a", one) for one in rows) for rows in values) * 4
        nobody = [crowd] if relation is Relation.ADD_REMOVE else []
        found += [*nobody, *((*crowd, unit) for unit in states)]
    return found


IN_ONE_GROUP = [unit for unit in units(1, 2, (0, 2, 4)) if unit[0][0] == "a"]


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(4)}, {"rho": Fraction(1)}])
@pytest.mark.parametrize("intervals", [False, True])
def test_quantiles_of_a_list_are_one_measurement_of_which_no_part_is_free(
    relation: Relation, spend: dict[str, Fraction], intervals: bool, way: str
) -> None:
    """The wrong neighbours: steps that nobody pays for, and steps of which each takes the whole price."""
    measures = PAIR if intervals else LIST
    plan = priced(*measures, limits=(1, 2), relation=relation, quantile_intervals=intervals, **spend)  # type: ignore[arg-type]
    (chooser,) = plan.draft.choosers
    assert chooser.at_once == (way == "at once")
    assert plan.event == together([chooser.event(plan.draft.footprint)])
    worlds = [*people(IN_ONE_GROUP, 1 if intervals else 2), *beside_crowds(IN_ONE_GROUP, relation)]
    assert check(Planned(plan, relation=relation), worlds).holds
    parts = plan.event.events if isinstance(plan.event, Composed) else [BoundedRange(plan.event.epsilon / 3)]  # type: ignore[attr-defined]
    for part in parts:
        assert check(Planned(plan, relation=relation, claim=part), worlds).violated
    whole = (Fraction(2 if chooser.at_once else 1),)
    greedy = replace(chooser, steps=whole * len(chooser.steps), widths=whole * len(measures))
    full = PricedQuery(replace(plan.draft, choosers=(greedy,)))
    if not (intervals and "rho" in spend):  # There the ranges of four choices are further apart than any loss.
        assert check(Planned(full, relation=relation, claim=plan.event), worlds).violated


@pytest.mark.long
@pytest.mark.parametrize("measures", [PAIR, LIST])
def test_a_list_forgets_no_rows_of_a_unit(measures: list[Measure], way: str) -> None:
    """The wrong neighbour: a list whose price is that of one row, where two of a unit are counted."""
    plan = priced(*measures, limits=(1, 2), epsilon=Fraction(4))
    worlds = [*people(IN_ONE_GROUP, 2), *beside_crowds(IN_ONE_GROUP)]
    assert check(Planned(plan), worlds).holds
    assert check(Planned(PricedQuery(replace(plan.draft, max_rows=1))), worlds).violated


def test_a_list_at_once_spends_nearly_all_that_it_is_charged() -> None:
    """Two rows of a unit move the score by two: a claim a tenth smaller is refuted."""
    plan, worlds = priced(*PAIR, limits=(1, 2), epsilon=Fraction(4)), beside_crowds(IN_ONE_GROUP)
    assert plan.event == BoundedRange(4)
    assert check(Planned(plan), worlds).holds
    assert check(Planned(plan, claim=BoundedRange(Fraction(36, 10))), worlds).violated


@pytest.mark.parametrize("measures", [PAIR, LIST])
def test_a_list_whose_rows_are_exchanged_is_not_billed_as_if_they_came_or_went(measures: list[Measure]) -> None:
    """The wrong neighbour: replace-one billed as add-remove, where two rows leave one gap and two enter another."""
    worlds = beside_crowds(IN_ONE_GROUP, Relation.REPLACE_ONE)
    for relation, holds in ((Relation.REPLACE_ONE, True), (Relation.ADD_REMOVE, False)):
        plan = priced(*measures, limits=(1, 2), epsilon=Fraction(4), relation=relation)
        found = check(Planned(plan, relation=Relation.REPLACE_ONE), worlds, claim=Fraction(4))
        assert found.holds if holds else found.violated


@pytest.mark.parametrize("measures", [PAIR, LIST])
def test_a_list_that_reads_the_number_of_rows_of_a_group_is_caught(
    measures: list[Measure], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrong neighbour: wanted gaps that move with the rows of the group. [GJK21]"""
    plan, worlds = priced(*measures, limits=(1, 2), epsilon=Fraction(8)), beside_crowds(IN_ONE_GROUP)
    assert check(Planned(plan), worlds).holds
    monkeypatch.setattr(Quantiles, "_step", None)
    assert check(Planned(plan), worlds).violated


@pytest.mark.parametrize("spend", [{"epsilon": Fraction(6)}, {"rho": Fraction(2)}])
def test_a_list_of_two_groups_is_not_paid_for_one(spend: dict[str, Fraction]) -> None:
    """The wrong neighbour: a unit in two groups, of which one is charged."""
    plan = priced(*PAIR, keys="known", limits=(2, 1), **spend)  # type: ignore[arg-type]
    crowd = ((("a", 0), ("b", 0)), (("a", 1), ("b", 1))) * 3
    worlds = [crowd, *((*crowd, (("a", one), ("b", other))) for one in (0, 4) for other in (0, 4))]
    assert plan.draft.choosers[0].at_once
    assert check(Planned(plan), worlds).holds
    (one, many) = (plan.event.event, plan.event.times)  # type: ignore[attr-defined]
    assert many == 2
    assert check(Planned(plan, claim=one), worlds).violated


def test_groups_that_are_many_or_unknown_are_chosen_by_levels() -> None:
    """All at once take about a millisecond for each squared quantile in every group."""
    assert priced(*LIST, keys="known", limits=(2, 1), epsilon=1).draft.choosers[0].at_once
    unknown = priced(*LIST, keys="unknown", epsilon=1, delta=DELTA).draft.choosers[0]
    assert len(unknown.steps) == 2


@pytest.mark.parametrize("relation", list(Relation))
def test_the_room_for_a_population_is_paid_for(relation: Relation) -> None:
    """Groups gain and lose rows where rows are exchanged, too: the room that follows from their number moves."""
    plan = priced(MEDIAN, relation=relation, quantile_intervals=True, population=True, epsilon=Fraction(8))
    worlds = people([unit for unit in units(1, 1, (0, 4)) if unit[0][0] == "a"], 2)
    assert check(Planned(plan, relation=relation), worlds).holds
    point, _ = plan.event.events  # type: ignore[attr-defined]
    assert check(Planned(plan, relation=relation, claim=point), worlds).violated


@pytest.mark.parametrize("relation", list(Relation))
def test_the_squares_of_a_mean_of_a_population_are_paid_for(relation: Relation) -> None:
    plan = priced(Measure(Statistic.MEAN, X), relation=relation, population=True, epsilon=Fraction(48))
    worlds = people([unit for unit in units(1, 1, (0, 4)) if unit[0][0] == "a"], 2)
    assert len(plan.draft.numbers) == 3
    assert check(Planned(plan, relation=relation), worlds).holds
    first, second, _ = plan.event.events  # type: ignore[attr-defined]
    if relation is Relation.ADD_REMOVE:  # Where values are exchanged, this small world is not the worst one.
        assert check(Planned(plan, relation=relation, claim=Composed([first, second])), worlds).violated


@pytest.mark.parametrize("limits", [(1, 1), (1, 2)])
def test_an_interval_of_a_quantile_holds_it_on_every_small_world(limits: tuple[int, int]) -> None:
    for quantile in (Fraction(1, 2), Fraction(9, 10)):
        plan = priced(Measure(Statistic.QUANTILE, X, quantile), limits=limits, epsilon=4, quantile_intervals=True)
        for data in people([unit for unit in units(1, limits[1], (0, 1, 4)) if unit[0][0] == "a"], 3)[1:]:
            values = sorted(value for unit in data for _, value in unit)
            exact = values[max(0, math.ceil(quantile * len(values)) - 1)]
            masses = Planned(plan).distribution(data).masses
            inside = [mass for ((_, ((_, low, high),)),), mass in masses.items() if low <= exact <= high]
            assert float(sum(inside, ball(0)).mid()) >= 0.95


FAMILIES: dict[str, tuple[list[Measure], dict[str, Any]]] = {
    "rows": ([EVERY["rows"]], {"epsilon": 2 * BIG}),
    "units": ([EVERY["units"]], {"epsilon": 2 * BIG}),
    "units by rho": ([EVERY["units"]], {"rho": Fraction(6)}),
    "rows by rho": ([EVERY["rows"]], {"rho": Fraction(6)}),
    "a median": ([MEDIAN], {"epsilon": Fraction(2)}),
    "a mode": ([MODE], {"epsilon": Fraction(2)}),
    "a mode by rho": ([MODE], {"rho": Fraction(1, 2)}),
    "two quantiles": (PAIR, {"epsilon": Fraction(2)}),
}


def of_family(name: str, most: int = 2) -> tuple[PricedQuery, list[Any]]:
    """Return a table of a family, and all data sets of up to two units of at most so many rows, in any groups."""
    measures, spend = FAMILIES[name]
    rows = [(city, value) for city in ("a", "b") for value in (0, 4)]
    states = [unit for size in range(1, most + 1) for unit in combinations_with_replacement(rows, size)]
    return priced(*measures, keys="known", limits=(3, 2), family=most, **spend), people(states, 2)


@pytest.mark.some(3)
@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_a_table_of_a_family_spends_what_its_rows_in_all_groups_do(name: str) -> None:
    """A choice in every group is paid once: what its scores move by adds up to that of all rows in one group."""
    plan, worlds = of_family(name)
    assert check(Planned(plan), worlds, epsilons=[Fraction(0), Fraction(2), Fraction(4)]).holds
    claim = plan.spend.epsilon
    if claim is not None:
        assert check(Planned(plan), worlds, claim=claim).holds
    if name in ("rows", "units"):  # Nothing is paid for nothing.
        assert claim is not None
        assert check(Planned(plan), worlds, claim=claim * Fraction(9, 10)).violated


@pytest.mark.long
@pytest.mark.parametrize("name", ["rows", "units", "a median", "a mode"])
def test_a_family_that_is_billed_for_fewer_rows_is_caught(name: str) -> None:
    """The wrong neighbour: noise for one row of a unit, where two are counted."""
    _, worlds = of_family(name, 2)
    assert check(Planned(of_family(name, 1)[0]), worlds).violated


def test_a_list_in_a_family_that_is_billed_for_one_of_three_rows_is_caught() -> None:
    others = ((("a", 0), ("a", 1)),) * 4
    worlds = [others, ((("a", 4),) * 3, *others)]
    for most, holds in ((3, True), (1, False)):
        found = check(Planned(of_family("two quantiles", most)[0]), worlds, claim=Fraction(2))
        assert found.holds if holds else found.violated


def test_intervals_in_a_table_of_a_family_are_paid_once_for_all_groups() -> None:
    """One unit, or nobody: its rows are in any groups, and a choice of point and width is made in each."""
    rows = [(city, value) for city in ("a", "b") for value in (0, 4)]
    worlds = people([unit for size in (1, 2) for unit in combinations_with_replacement(rows, size)], 1)
    for most, holds in ((2, True), (1, False)):
        plan = priced(MEDIAN, keys="known", limits=(3, 2), family=most, epsilon=2, quantile_intervals=True)
        found = check(Planned(plan), worlds, claim=Fraction(2))
        assert found.holds if holds else found.violated


def coverage_once_shown(mechanism: Planned, count: int) -> float:
    """The chance of the interval of a shown group to hold its exact count, given that it is shown."""
    plan = mechanism.plan
    reach = plan.draft.noising.numbers[0].reach(plan.spend.confidence)
    with precision(128):
        found = mechanism.distribution(((("a", 0),),) * count)
        shown = [(value, mass) for outcome, mass in found.masses.items() for _, (value,) in outcome]
        inside = sum((mass for value, mass in shown if abs(value - count) <= reach), ball(0))
        return float(inside / sum((mass for _, mass in shown), ball(0)))


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_intervals_hold_for_groups_that_were_shown_whatever_their_size(count: int) -> None:
    """The wrong neighbour: were groups shown by the noise of their values, small ones would be shown only if wrong."""
    honest, _ = planned("unknown groups")
    assert coverage_once_shown(honest, count) >= 0.95
    mutant, _ = planned("unknown groups", shared=True)
    assert count > 1 or coverage_once_shown(mutant, count) < 0.5


def test_a_threshold_one_too_low_is_caught() -> None:
    mechanism, worlds = planned("unknown groups", lower=1)
    assert check(planned("unknown groups")[0], worlds, epsilons=[BIG]).holds
    assert check(mechanism, worlds, epsilons=[BIG]).violated


@pytest.mark.parametrize("limits", [(1, 1), (8, 1), (8, 5)])
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(1)}, {"rho": Fraction(1, 8)}])
def test_a_lone_unit_is_named_with_chance_delta_at_most(limits: tuple[int, int], spend: dict[str, Fraction]) -> None:
    """C14: all groups of one lone unit together, exactly; one step lower and it would be more."""
    delta = Fraction(1, 10**5)
    plan = priced(EVERY["rows"], keys="unknown", limits=limits, delta=delta, **spend)  # type: ignore[arg-type]
    noising = plan.draft.noising
    selection = noising.selection
    assert selection is not None
    with precision(256):
        hidden = (1 - selection.release_probability(1)) ** limits[0]
        assert 1 - hidden <= ball(delta)
        assert 1 - hidden <= ball(selection.delta)
        lower = (1 - selection.law.survival(selection.threshold - 2)) ** limits[0]
        assert 1 - lower > ball(selection.delta)


def test_the_composition_is_what_the_analyst_offered() -> None:
    """Whatever is asked together, the account of the event never exceeds the spend."""
    from discreet.privacy import Relation, epsilon

    measures = [EVERY["rows"], EVERY["mean"], MEDIAN, MODE]
    for keys, limits in (("known", (2, 2)), ("unknown", (3, 1)), ("unknown", (8, 4))):
        plan = priced(*measures, keys=keys, limits=limits, epsilon=Fraction(1), delta=Fraction(1, 10**6))
        assert epsilon(plan.event, Fraction(1, 10**6), relation=Relation.ADD_REMOVE) <= 1
    pure = priced(*measures, keys="known", limits=(3, 2), epsilon=Fraction(1), pure=True)
    assert epsilon(pure.event, 0, relation=Relation.ADD_REMOVE) <= 1
    assert isinstance(priced(EVERY["rows"], epsilon=Fraction(1)).event, DiscreteLaplace)
