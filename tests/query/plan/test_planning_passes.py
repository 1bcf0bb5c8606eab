"""The passes one by one: limits, grids, what is shared, which noise, what is refused, and what a plan is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from planning_worlds import CITIES, CITY, EVERY, FREE, PAY, SURE, WHO, X, catalogue, priced, question, table

from discreet.errors import InvalidParameter, Refused
from discreet.query.ast import (
    Apply,
    Field,
    Filter,
    Join,
    JoinKind,
    Key,
    Measure,
    Named,
    Operator,
    OutputColumn,
    PerUnit,
    Project,
    ReleasedMeasure,
    Source,
    Statistic,
    Table,
    TableColumn,
    UnionAll,
    UnitStatistic,
    UnitTotal,
)
from discreet.query.catalogue import Catalogue, CatalogueTable
from discreet.query.plan.choices import quantiles_of
from discreet.query.plan.contribution_limits import bound_contributions
from discreet.query.plan.draft import (
    Added,
    BundledDraft,
    FinalDraft,
    LimitedDraft,
    MeasuredDraft,
    PlanRequest,
    QuantilesPick,
    SensitivityDraft,
    Spend,
    TallySpec,
    known_as,
)
from discreet.query.plan.fingerprint import canonical
from discreet.query.plan.measurements import bound_changes, choose_measurements, grid_of
from discreet.query.plan.noise_selection import bundle_numbers, choose_noise
from discreet.query.plan.planner import PricedQuery, plan
from discreet.schema.columns import ExpressionFacts, Kind

ONE = Fraction(1)
TRUE = Apply(Operator.IS_NULL, (X,), ExpressionFacts(kind=Kind.BOOLEAN))


def planned(
    source: Source, *measures: Measure, keys: tuple[Key, ...] = (), rows: bool = False, **more: Any
) -> PricedQuery:
    asked = question(*(measures or (EVERY["rows"],)), source=source, keys="none")
    asked = replace(asked, keys=keys)
    return plan(asked, more.pop("catalogue", catalogue(3, 4, rows=rows)), Spend(epsilon=ONE), pure=True, **more)


def limits_of(made: PricedQuery) -> tuple[int, int]:
    return made.stage.max_groups, made.stage.max_rows_per_group


# Limits.


def test_limits_are_those_of_the_policy_and_of_the_groups() -> None:
    city = Key("city", CITY, CITIES)
    assert limits_of(planned(table())) == (1, 4)  # Without keys there is one group.
    assert limits_of(planned(table(), keys=(city,))) == (3, 4)
    assert limits_of(planned(table(), keys=(replace(city, domain=("a", "b")),))) == (2, 4)
    assert limits_of(planned(table(None), keys=(city,), rows=True)) == (1, 1)


def test_an_analyst_may_tighten_limits_and_not_widen_them() -> None:
    city = Key("city", CITY, CITIES)
    tight = SimpleNamespace(max_groups=2, max_rows_per_group=1, family=None)
    assert limits_of(planned(table(), keys=(city,), limits=tight)) == (2, 1)
    assert limits_of(
        planned(table(), keys=(city,), limits=SimpleNamespace(max_groups=None, max_rows_per_group=3, family=None))
    ) == (
        3,
        3,
    )
    for wide in (
        SimpleNamespace(max_groups=4, max_rows_per_group=None, family=None),
        SimpleNamespace(max_groups=None, max_rows_per_group=5, family=None),
    ):
        with pytest.raises(InvalidParameter, match="only be tightened"):
            planned(table(), keys=(city,), limits=wide)
    with pytest.raises(InvalidParameter):
        planned(table(), limits=SimpleNamespace(max_groups=0, max_rows_per_group=None, family=None))


def per_unit(*keys: str) -> PerUnit:
    total = UnitTotal(Field("spent", PAY.facts), UnitStatistic.SUM, PAY, Fraction(1, 100))
    named = tuple(Named(Field(key, CITY.facts), CITY) for key in keys)
    return PerUnit(table(), Field("person", WHO.facts), named, (total,))


def test_a_subquery_per_unit_has_one_row_for_each_of_them() -> None:
    city = Key("city", Field("town", CITY.facts), CITIES)
    other = Key("city", CITY, CITIES)
    assert limits_of(planned(per_unit(), keys=(other,))) == (1, 1)
    assert limits_of(planned(Filter(per_unit(), TRUE), keys=(other,))) == (1, 1)
    assert limits_of(planned(per_unit("town"), keys=(city,))) == (3, 1)
    assert limits_of(planned(per_unit("town", "place"), keys=(city,))) == (3, 4)  # Rows differ in another key.
    assert limits_of(planned(per_unit("town"), keys=(other,))) == (3, 4)
    assert limits_of(planned(UnionAll((per_unit(), per_unit()), (Field("p", WHO.facts),), "p"))) == (1, 4)


def public_join(left: Source) -> Join:
    zone = Table("zones", False, (TableColumn("zone", Field("zone", CITY.facts)),))
    return Join(left, zone, JoinKind.INNER, ((CITY, Field("zone", CITY.facts)),))


def with_zones(*, unique: bool, rows: bool) -> Catalogue:
    known = catalogue(3, 4, rows=rows)
    keys = frozenset({frozenset({"zone"})}) if unique else frozenset()
    zones = CatalogueTable(name="zones", private=False, columns={}, unique=keys)
    return Catalogue(tables={**known.tables, "zones": zones}, unit=known.unit)


def test_a_join_keeps_one_row_only_where_the_public_side_has_no_duplicates() -> None:
    joined = public_join(per_unit())
    assert limits_of(planned(joined, catalogue=with_zones(unique=True, rows=False))) == (1, 1)
    assert limits_of(planned(joined, catalogue=with_zones(unique=False, rows=False))) == (1, 4)
    both = Join(per_unit(), per_unit(), JoinKind.INNER, ((WHO, WHO),))
    assert limits_of(planned(both)) == (1, 1)
    assert limits_of(planned(Join(per_unit(), table(), JoinKind.INNER, ((WHO, WHO),)))) == (1, 4)


@pytest.mark.parametrize(
    "source",
    [
        public_join(table(None)),
        Join(table(None), table(None), JoinKind.INNER, ((WHO, WHO),)),
        UnionAll((table(None), Filter(table(None), TRUE)), (X,)),
        per_unit(),
    ],
)
def test_what_may_repeat_a_row_is_refused_where_rows_are_units(source: Source) -> None:
    with pytest.raises(Refused, match="rows are the units"):
        planned(source, catalogue=with_zones(unique=False, rows=True))


def test_what_keeps_rows_apart_is_allowed_where_rows_are_units() -> None:
    known = with_zones(unique=True, rows=True)
    other = replace(table(None), table="others")
    for source in (
        public_join(table(None)),
        UnionAll((table(None), other), (X,)),
        Project(table(None), (Named(X, X),)),
    ):
        assert limits_of(planned(source, catalogue=known)) == (1, 1)


def test_a_source_that_lost_its_unit_is_refused() -> None:
    with pytest.raises(Refused, match="whom a row belongs to"):
        planned(table(None))
    with pytest.raises(Refused, match="nothing here is private"):
        planned(Table("zones", False, (TableColumn("zone", CITY),)))


def test_too_many_public_groups_are_refused() -> None:
    keys = tuple(Key(f"k{n}", X, tuple(range(1001))) for n in range(2))
    with pytest.raises(Refused, match="1,002,001 groups"):
        planned(table(), keys=keys)


# Grids.


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.001, 0.001), (1e9, 1e9 + 1), (-1e100, 1e100), (0, 1e-100)])
def test_sums_of_reals_are_counted_in_steps_below_a_trillionth_of_the_width(low: float, high: float) -> None:
    facts = ExpressionFacts(kind=Kind.REAL, low=Fraction(low), high=Fraction(high))
    width = Fraction(high) - Fraction(low)
    added = grid_of(facts, centred=True, called="SUM")
    assert added.step <= width / 2**40 or max(abs(added.first), abs(added.last)) > 2**46, "the finest there is"
    assert max(abs(added.first), abs(added.last)) <= 2**50
    picked = grid_of(facts, centred=False, called="MEDIAN", picked=True)
    assert added.step <= picked.step <= width / 10**6
    assert width / 10**7 <= picked.step, "more steps than it needs make a pick worse"


@pytest.mark.parametrize(
    ("facts", "centred", "expected"),
    [
        (ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(100)), True, (0, 100, 1)),
        (ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(1)), True, (0, 1, Fraction(1, 2))),
        (ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(1)), False, (0, 1, 1)),
        (ExpressionFacts(kind=Kind.BOOLEAN), False, (0, 1, 1)),
        (ExpressionFacts(kind=Kind.REAL, low=Fraction(0), high=Fraction(5000)), False, (0, 5000, Fraction(1, 10**9))),
        (
            ExpressionFacts(kind=Kind.REAL, low=Fraction(0), high=ONE, step=Fraction(1, 4)),
            False,
            (0, 1, Fraction(1, 4)),
        ),
        (ExpressionFacts(kind=Kind.INTEGER, low=Fraction(5), high=Fraction(5)), False, (0, 5, 1)),
        (ExpressionFacts(kind=Kind.INTEGER, low=Fraction(0), high=Fraction(0)), False, (0, 1, 1)),
        (ExpressionFacts(kind=Kind.DATE, low=Fraction(10), high=Fraction(20)), False, (10, 20, 1)),
    ],
)
def test_grids_follow_from_facts(facts: ExpressionFacts, centred: bool, expected: tuple[Any, ...]) -> None:
    grid = grid_of(facts, centred=centred, called="SUM")
    assert (grid.low, grid.high, grid.step) == expected


@pytest.mark.parametrize("low", [Fraction(1, 3), Fraction(-10, 7), Fraction("3.3333333333333335"), Fraction(10) ** 15])
@pytest.mark.parametrize("width", [Fraction(1, 10**9), Fraction(1), Fraction(10) ** 12, Fraction(1 << 60)])
def test_grids_hold_their_bounds_and_are_fine(low: Fraction, width: Fraction) -> None:
    for kind in (Kind.REAL, Kind.INTEGER, Kind.TIMESTAMP):
        grid = grid_of(ExpressionFacts(kind=kind, low=low, high=low + width), centred=True, called="SUM")
        assert grid.low <= low < low + width <= grid.high or width < 1
        assert grid.high - grid.low <= width * Fraction(11, 10) + 2 * grid.step
        assert max(abs(grid.first), abs(grid.last)) <= 1 << 52


def test_what_has_no_bounds_is_refused_with_a_way_out() -> None:
    for facts in (ExpressionFacts(kind=Kind.INTEGER), ExpressionFacts(kind=Kind.REAL, low=Fraction(0))):
        with pytest.raises(Refused, match=r"dp\.between"):
            priced(Measure(Statistic.SUM, Field("x", facts)), epsilon=ONE)
    with pytest.raises(Refused, match="of text"):
        priced(Measure(Statistic.MEAN, FREE), epsilon=ONE)
    with pytest.raises(Refused, match=r"dp\.categories"):
        priced(Measure(Statistic.MODE, FREE), epsilon=ONE)
    with pytest.raises(Refused, match="MODE would choose"):
        priced(Measure(Statistic.MODE, PAY), epsilon=ONE)


# Sharing.


def tallied_names(*names: str, limits: tuple[int, int] = (1, 2)) -> list[str]:
    made = priced(*(EVERY[name] for name in names), limits=limits, epsilon=ONE)
    return [number.tallying.value for number in made.draft.numbers]


def test_what_is_needed_twice_is_paid_once() -> None:
    assert tallied_names("mean", "count") == ["total", "count"]
    assert tallied_names("mean", "sum") == ["total", "count"]
    assert tallied_names("variance", "deviation", "mean", "sum", "count") == ["total", "squares", "count"]
    assert tallied_names("rows", "count of sure") == ["rows"]
    assert tallied_names("rows", "count") == ["count", "nulls"]  # A row is one or the other: one price for both.
    assert tallied_names("rows", "mean") == ["count", "nulls", "total"]
    assert tallied_names("rows", "count", "count of sure") == ["rows", "count"]
    assert tallied_names("rows", "count", "units", limits=(1, 1)) == ["rows", "count"]
    assert tallied_names("rows", "units") == ["rows", "units"]
    assert tallied_names("rows", "units", limits=(1, 1)) == ["rows"]


def test_a_column_is_read_once() -> None:
    made = priced(EVERY["rows"], EVERY["count"], EVERY["sum"], EVERY["mean"], EVERY["variance"], epsilon=ONE)
    (column,) = made.stage.columns
    assert (column.wants.total, column.wants.squares, column.centre) == (True, True, 2)


def test_a_sum_is_about_the_centre_only_where_a_count_is_there() -> None:
    alone = priced(EVERY["sum of later"], epsilon=ONE).draft.recipes[0]
    beside = priced(EVERY["sum of later"], EVERY["mean of later"], epsilon=ONE).draft.recipes[0]
    rows = priced(Measure(Statistic.SUM, SURE), EVERY["rows"], epsilon=ONE).draft.recipes[0]
    assert isinstance(alone, Added)
    assert isinstance(beside, Added)
    assert isinstance(rows, Added)
    assert (alone.centre, beside.centre, rows.centre) == (0, 4, 2)


def test_both_forms_of_a_sum_are_chosen_where_they_err_less() -> None:
    """The rule of `_sum`, by the plans themselves: a sum alone and one beside its mean."""
    from discreet.query.plan.answers import predicted

    alone = priced(EVERY["sum of later"], epsilon=ONE)
    beside = priced(EVERY["sum of later"], EVERY["mean of later"], epsilon=Fraction(2))
    separately = predicted(alone.draft, alone.question.outputs[0], None)
    together = predicted(beside.draft, beside.question.outputs[0], None)
    assert separately is not None
    assert together is not None
    assert together < separately  # At the same price each, centring leaves less noise.


# Noise.


def test_noise_is_laplace_gaussian_or_the_better_of_both() -> None:
    def gaussian(limits: tuple[int, int], *measures: str, **spend: Any) -> bool:
        noising = priced(*(EVERY[name] for name in measures), keys="known", limits=limits, **spend).draft.noising
        return noising.gaussian

    delta = Fraction(1, 10**6)
    assert not gaussian((3, 1), "rows", epsilon=ONE)
    assert gaussian((1, 1), "rows", rho=ONE)
    assert not gaussian((1, 1), "rows", epsilon=ONE, delta=delta)
    assert gaussian((3, 1), *EVERY, epsilon=ONE, delta=delta)


def test_the_better_noise_is_the_one_that_is_predicted_to_err_less() -> None:
    """By the half widths of both, for many vectors: never more than the other."""
    from discreet.query.plan import noise_selection
    from discreet.query.plan.answers import predicted

    for names in (("rows",), ("rows", "sum"), ("rows", "sum", "variance"), tuple(EVERY)):
        for limits in ((1, 1), (2, 1), (3, 2)):
            made = priced(
                *(EVERY[name] for name in names), keys="known", limits=limits, epsilon=ONE, delta=Fraction(1, 10**6)
            )
            other = noise_selection._laplace(made.draft, ONE, None) if made.draft.noising.gaussian else None
            if other is not None:
                mine, theirs = (predicted(d, made.question.outputs[1], None) for d in (made.draft, other))
                assert mine is not None
                assert theirs is not None
                assert mine <= theirs + 1


def test_what_cannot_be_paid_is_refused() -> None:
    with pytest.raises(Refused, match="say delta="):
        priced(EVERY["rows"], keys="unknown", epsilon=ONE)
    with pytest.raises(Refused, match="pure ledger"):
        priced(EVERY["rows"], keys="unknown", epsilon=ONE, pure=True)
    for spend in ({"epsilon": ONE, "delta": Fraction(1, 10)}, {"rho": ONE}):
        with pytest.raises(Refused, match="pure"):
            priced(EVERY["rows"], pure=True, **spend)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "spend",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": 1e20},
        {"epsilon": 101},
        {"rho": 51},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "confidence": 1},
        {"error": 0},
        {"epsilon": 1, "relative": True},
        {"epsilon": 1, "expected": 0},
        {"epsilon": True},
    ],
)
def test_a_senseless_spend_is_refused(spend: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Spend(**spend)


def test_an_epsilon_is_read_exactly() -> None:
    assert Spend(epsilon=0.1).epsilon == Fraction(1, 10)  # type: ignore[arg-type]


# Names, notes and explanations.


def test_a_fingerprint_is_that_of_the_plan_and_of_no_other() -> None:
    def of(*measures: str, keys: str = "known", limits: tuple[int, int] = (2, 2), **spend: Any) -> str:
        return priced(*(EVERY[name] for name in measures), keys=keys, limits=limits, **spend).fingerprint

    base = of("rows", epsilon=ONE)
    assert base == of("rows", epsilon=ONE) == of("rows", epsilon=Fraction("1.0"), expected=10)
    others = {
        of("rows", epsilon=Fraction(2)),
        of("units", epsilon=ONE),
        of("rows", epsilon=ONE, limits=(1, 2)),
        of("rows", epsilon=ONE, keys="none"),
        of("rows", rho=ONE),
        of("rows", epsilon=ONE, confidence=Fraction(9, 10)),
        of("rows", epsilon=ONE, delta=Fraction(1, 10**6)),
    }
    assert len(others | {base}) == 8


def test_names_of_columns_are_part_of_a_fingerprint() -> None:
    asked = question(EVERY["rows"])
    renamed = replace(asked, outputs=(OutputColumn("n", ReleasedMeasure(0)),))
    prints = {plan(q, catalogue(), Spend(epsilon=ONE), pure=True).fingerprint for q in (asked, renamed)}
    assert len(prints) == 2


def test_an_explanation_says_everything_and_spends_nothing() -> None:
    made = priced(EVERY["rows"], EVERY["mean"], keys="unknown", limits=(2, 3), epsilon=ONE, delta=Fraction(1, 10**6))
    text = str(made.explain(left="ε = 3"))
    for part in (
        "ε = 1, δ = 1e-6",
        "each who",
        "Laplace",
        "hidden unless",
        "ε = 3",
        "m0",
        "1,000 rows",
        "clamped to 0 … 4",
    ):
        assert part in text
    assert "<table>" in made.explain()._repr_html_()
    assert '"price"' in made.explain().to_json()
    assert "if a group has 50 rows" in str(priced(EVERY["mean"], epsilon=ONE, expected=50).explain())


def test_notes_tell_how_a_mean_differs_and_what_a_maximum_is() -> None:
    top = Measure(Statistic.QUANTILE, X, ONE, called="MAX")
    notes = " ".join(priced(EVERY["mean"], top, EVERY["distinct"], limits=(1, 3), epsilon=ONE).notes)
    for part in ("mean of each unit's mean", "MAX is chosen near the extreme", "distinct values among the rows"):
        assert part in notes
    assert "mean of each unit" in " ".join(priced(EVERY["mean"], epsilon=ONE).notes)  # of one row that is drawn
    assert "mean of each unit" not in " ".join(priced(EVERY["rows"], epsilon=ONE).notes)


def test_html_of_an_explanation_is_escaped() -> None:
    asked = replace(question(EVERY["rows"]), outputs=(OutputColumn("<script>", ReleasedMeasure(0)),))
    shown = plan(asked, catalogue(), Spend(epsilon=ONE), pure=True).explain()._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_units_are_asked_of_the_engine_only_where_they_are_needed() -> None:
    delta = Fraction(1, 10**6)
    assert not priced(EVERY["rows"], limits=(1, 3), epsilon=ONE).stage.wants_units
    assert priced(EVERY["units"], limits=(1, 3), epsilon=ONE).stage.wants_units
    assert priced(EVERY["rows"], keys="unknown", limits=(1, 3), epsilon=ONE, delta=delta).stage.wants_units
    assert not priced(EVERY["rows"], keys="unknown", limits=(3, 1), epsilon=ONE, delta=delta).stage.wants_units


def test_an_answer_that_names_what_is_not_asked_is_refused() -> None:
    for outputs in ((), (OutputColumn("n", ReleasedMeasure(1)),)):
        with pytest.raises((InvalidParameter, Refused)):
            plan(replace(question(EVERY["rows"]), outputs=outputs), catalogue(), Spend(epsilon=ONE), pure=True)


def test_planning_is_quick(capsys: pytest.CaptureFixture[str]) -> None:
    """Never a gate: machines differ."""
    priced(*EVERY.values(), keys="known", limits=(3, 2), epsilon=ONE, delta=Fraction(1, 10**6))
    start = perf_counter()
    for tenth in range(1, 11):
        made = priced(*EVERY.values(), keys="known", limits=(3, 2), epsilon=Fraction(tenth, 10))
        assert made.event is not None
        assert made.fingerprint
    with capsys.disabled():
        print(f"\nplanning {len(EVERY)} statistics: {100 * (perf_counter() - start):.2f} ms")


STAGES: dict[Callable[[Any], PlanRequest], type[PlanRequest]] = {
    bound_contributions: LimitedDraft,
    choose_measurements: MeasuredDraft,
    bound_changes: SensitivityDraft,
    bundle_numbers: BundledDraft,
    choose_noise: FinalDraft,
}


def test_each_pass_takes_the_stage_before_it_and_leaves_what_was_decided() -> None:
    made = priced(EVERY["mean"], keys="known", limits=(2, 2), epsilon=ONE).draft
    draft = PlanRequest(**known_as(PlanRequest, made))
    for apply, stage in STAGES.items():
        assert stage.__base__ is type(draft)
        found = apply(draft)
        assert type(found) is stage
        assert known_as(type(draft), found) == known_as(type(draft), draft)
        assert apply(made) == found  # A later stage is taken back to an earlier one.
        draft = found
    assert draft == made
    assert {number.tallying for number in made.numbers} == {TallySpec.TOTAL, TallySpec.COUNT}


def test_intervals_of_quantiles_are_refused_where_there_is_nothing_to_pay_for() -> None:
    with pytest.raises(Refused, match="none is asked for here"):
        priced(EVERY["rows"], epsilon=1, quantile_intervals=True)
    day = Field("day", ExpressionFacts(kind=Kind.DATE, low=Fraction(0), high=Fraction(9)))
    with pytest.raises(Refused, match="dates and times"):
        priced(Measure(Statistic.QUANTILE, day, Fraction(1, 2)), epsilon=1, quantile_intervals=True)
    for wrong in (1, "yes", None):
        with pytest.raises(InvalidParameter):
            Spend(epsilon=1, quantile_intervals=wrong)  # type: ignore[arg-type]


def test_lists_and_populations_have_fingerprints_of_their_own_and_others_keep_theirs() -> None:
    """What was paid for before there were lists is found again: nothing of them is written where there is none."""
    levels = Fraction(1, 4), Fraction(1, 2)
    asked = [Measure(Statistic.QUANTILE, X, one) for one in levels]
    listed = [replace(one, among=levels) for one in asked]
    plans = [priced(*measures, epsilon=1) for measures in (asked, listed)]
    plans += [priced(*asked, epsilon=1, quantile_intervals=True, population=one) for one in (False, True)]
    assert len({plan.fingerprint for plan in plans}) == 4
    assert "among" not in canonical(asked[0])
    assert "among" in canonical(listed[0])


@pytest.mark.parametrize("spend", [{"epsilon": Fraction(1, 10**9)}, {"rho": Fraction(1, 10**13)}, {"epsilon": 100}])
def test_a_list_of_any_price_is_made_before_it_is_charged(spend: dict[str, Any]) -> None:
    """A mechanism that takes no such epsilon must not say so when it is drawn: then it is paid already."""
    levels = tuple(Fraction(part, 10) for part in range(1, 10))
    made = priced(*(Measure(Statistic.QUANTILE, X, one, among=levels) for one in levels), limits=(3, 50), **spend)
    (asked,), (chooser,) = made.draft.picks, made.draft.choosers
    assert isinstance(asked, QuantilesPick)
    mechanism = quantiles_of(made.draft, asked, chooser)
    assert sum(mechanism.epsilons) * 50 <= sum(chooser.shares) * chooser.epsilon
    assert len(mechanism.choose(np.zeros(3, dtype=np.int64))) == 9


def test_a_price_that_rounds_to_nothing_is_refused_before_it_is_charged() -> None:
    for among in (None, (Fraction(1, 4), Fraction(1, 2))):
        with pytest.raises(InvalidParameter, match="above 0"):
            priced(Measure(Statistic.QUANTILE, X, Fraction(1, 2), among=among), rho=Fraction(1, 10**30))


def test_a_population_is_refused_where_rows_are_no_independent_draws() -> None:
    asked = Measure(Statistic.QUANTILE, X, Fraction(1, 2))
    with pytest.raises(Refused, match="drawn independently"):
        priced(asked, limits=(1, 2), epsilon=1, quantile_intervals=True, population=True)
    with pytest.raises(Refused, match="none is asked for here"):
        priced(asked, epsilon=1, population=True)
    with pytest.raises(Refused, match="covers sampling error"):
        priced(Measure(Statistic.MEAN, X), error=1, expected=100, population=True)
    with pytest.raises(InvalidParameter, match="one of them"):
        priced(replace(asked, among=(Fraction(1, 4),)), epsilon=1)
    source = replace(catalogue(), unit=replace(catalogue().unit, window="day", time="at"))
    with pytest.raises(Refused, match="windows of time"):
        plan(question(asked), source, Spend(epsilon=1, quantile_intervals=True, population=True), pure=False)
