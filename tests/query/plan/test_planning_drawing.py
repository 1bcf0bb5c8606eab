"""Noise on answers: the laws that are promised, intervals that hold, and what is computed from released values."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from planning_worlds import CITY, EVERY, FLAG, LATER, PAY, WORD, Planned, X, catalogue, priced, question, tallied, units
from recorded import replayed
from statistical import fits, rejects

from discreet.balls import precision
from discreet.mechanisms.quotient_intervals import quotient_ends, reach_of_sum
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.query.ast import (
    Choose,
    Combine,
    End,
    Key,
    KeyValue,
    Limit,
    Literal,
    Measure,
    Operator,
    Order,
    OutputColumn,
    ReleasedMeasure,
    Side,
    Statistic,
)
from discreet.query.bounding.aggregation import MeasureTally, Tally, Values
from discreet.query.engine import ExactCounts
from discreet.query.plan import choices
from discreet.query.plan.answers import predicted
from discreet.query.plan.choices import pick
from discreet.query.plan.draft import NumberNoise, Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.release_table import ReleaseTable
from discreet.schema.columns import ExpressionFacts, Kind

ONE = Fraction(1)
NUMBER = ExpressionFacts(kind=Kind.INTEGER)
MANY = 10_000
BIG = Fraction(50)


def number(value: int | Fraction) -> Literal:
    return Literal(value, NUMBER)


def repeated(made: PricedQuery, groups: int, *, rows: int, **columns: tuple[int, int]) -> ExactCounts:
    """Tally `groups` equal groups of `rows` rows; sums of indices less the centre and of squares by column."""
    total, squares = columns.get("sums", (0, 0))
    same = np.full(groups, rows, dtype=np.int64)
    measures = tuple(
        MeasureTally(
            counts=same,
            total=np.full(groups, total, dtype=object),
            squares=np.full(groups, squares, dtype=object),
            distinct=same,
            values=Values(starts=np.arange(groups + 1) * 0, indices=np.empty(0, np.int64)),
        )
        for _ in made.stage.columns
    )
    tally = Tally(units=same, rows=same, measures=measures)
    return ExactCounts(groups=groups, tally=tally, keys=lambda some: [(f"g{g}",) for g in some])


def many(*measures: Measure, groups: int = MANY, limits: tuple[int, int] = (1, 1), **spend: Any) -> PricedQuery:
    """Plan for many known groups, so that one answer has many draws of one law."""
    keys = (Key("city", CITY, tuple(range(groups))),)
    asked = question(*measures, keys="known")
    asked = type(asked)(source=asked.source, keys=keys, measures=asked.measures, outputs=asked.outputs)
    return plan(asked, catalogue(*limits), Spend(**spend), pure=False)


@pytest.mark.statistical
@pytest.mark.parametrize("limits", [(1, 1), (3, 2)])
def test_noise_follows_the_law_of_the_plan(limits: tuple[int, int]) -> None:
    spends: list[dict[str, Any]] = [{"epsilon": ONE}, {"rho": Fraction(1, 2)}]
    for spend in spends:
        made = many(EVERY["rows"], EVERY["sum"], limits=limits, **spend)
        noising = made.draft.noising
        table = made.draw(repeated(made, MANY, rows=7, sums=(11, 0)))
        for name, one, exact in zip(("m0", "m1"), noising.numbers, (7, 11), strict=True):
            sample = np.array([int(table[name].values[row]) for row in range(MANY)]) - exact
            assert fits(sample, one.law)
            assert rejects(sample, _scaled(one.law, Fraction(7, 10)))


def _scaled(law: Any, factor: Fraction) -> Any:
    if isinstance(law, DiscreteLaplaceLaw):
        return DiscreteLaplaceLaw(law.scale * factor)
    return RoundedGaussianLaw(law.variance * factor**2)


@pytest.mark.statistical
def test_numbers_and_groups_have_noise_of_their_own() -> None:
    """The wrong neighbour: one draw for two numbers would make their noises equal in every group."""
    made = many(EVERY["rows"], EVERY["distinct"], epsilon=ONE)
    table = made.draw(repeated(made, MANY, rows=9))
    first, second = (np.array([float(table[name].values[row]) for row in range(MANY)]) - 9 for name in ("m0", "m1"))
    # Under independence the correlation is below 6.5 / sqrt(n) with a chance above 1 - 1e-9.
    assert abs(np.corrcoef(first, second)[0, 1]) < 6.5 / math.sqrt(MANY)
    assert np.corrcoef(first, first)[0, 1] > 0.99


def exact_inside(law: Any, reach: Fraction) -> Fraction:
    from discreet.balls import bounds

    with precision(128):
        return bounds(1 - 2 * law.survival(int(reach)))[0]


@pytest.mark.some(4)
@pytest.mark.parametrize("name", ["rows", "count", "sum", "distinct"])
@pytest.mark.parametrize("spend", [{"epsilon": ONE}, {"rho": Fraction(1, 2)}, {"epsilon": Fraction(1, 7)}])
def test_plus_minus_of_a_number_is_the_least_on_the_grid_with_its_coverage(name: str, spend: dict[str, Any]) -> None:
    made = priced(EVERY[name], keys="known", limits=(2, 3), **spend)
    noising = made.draft.noising
    reach = predicted(made.draft, made.question.outputs[1], None)
    assert reach is not None
    assert exact_inside(noising.numbers[0].law, reach) >= Fraction(95, 100)
    assert exact_inside(noising.numbers[0].law, reach - 1) < Fraction(95, 100)
    cell = made.draw(tallied(made.stage, ((("a", 4),),)))["m0"][0]
    assert cell.plus_minus == reach


def laws(spend: dict[str, Any], limits: tuple[int, int]) -> tuple[NumberNoise, NumberNoise]:
    made = priced(EVERY["mean of later"], limits=limits, **spend)
    total, count = made.draft.noising.numbers
    return total, count


@pytest.mark.parametrize("weight", [Fraction(0), ONE, Fraction(3), Fraction(5, 2)])
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(2)}, {"rho": Fraction(1, 2)}])
def test_the_reach_of_two_noises_is_the_least_with_its_coverage(weight: Fraction, spend: dict[str, Any]) -> None:
    """By listing both laws, which the code under test does for one of them only."""
    total, count = laws(spend, (1, 2))
    reach = reach_of_sum([(ONE, total), (weight, count)], Fraction(95, 100))
    inside, grain = listed_inside(total.law, count.law, weight), Fraction(1, 2 * weight.denominator)
    assert inside(reach) >= 0.95
    assert inside(reach - grain) < 0.95 + 1e-6


def listed_inside(one: Any, other: Any, weight: Fraction) -> Any:
    with precision(64):
        far = 200
        chances = [float(one.pmf(k)) for k in range(-far, far + 1)]
        others = [float(other.pmf(k)) for k in range(-far, far + 1)]
    places = np.arange(-far, far + 1)
    sums = places[:, None] + float(weight) * places[None, :]
    masses = np.array(chances)[:, None] * np.array(others)[None, :]
    return lambda reach: float(masses[np.abs(sums) <= float(reach) + 1e-9].sum())


@pytest.mark.statistical
@pytest.mark.parametrize("spend", [{"epsilon": ONE}, {"rho": Fraction(1, 4)}])
@pytest.mark.parametrize("rows", [3, 40, 400])
def test_intervals_of_means_sums_and_variances_cover_what_they_say(rows: int, spend: dict[str, Any]) -> None:
    """n rows, all at one end of the grid: the mean is far from the centre, where intervals are at their worst."""
    groups = 4000
    measures = (
        Measure(Statistic.MEAN, LATER),
        Measure(Statistic.SUM, LATER),
        Measure(Statistic.VARIANCE, LATER),
        Measure(Statistic.DEVIATION, LATER),
    )
    made = many(*measures, groups=groups, limits=(2, 2), **spend)
    # Later runs from 3 to 5, its centre is 4: every row one step above.
    table = made.draw(repeated(made, groups, rows=rows, sums=(rows, rows)))
    for name, exact in (("m0", 5), ("m1", 5 * rows), ("m2", 0), ("m3", 0)):
        cells = [table[name][row] for row in range(groups)]
        covered = sum(cell.low <= exact <= cell.high for cell in cells)
        assert covered >= 0.95 * groups - 6.5 * math.sqrt(groups * 0.95 * 0.05)
    widths = [cell.plus_minus for cell in (table["m1"][row] for row in range(10))]
    assert len(set(widths)) == 1
    assert widths[0] == predicted(made.draft, made.question.outputs[2], None)


@pytest.mark.some(3)
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(3)}, {"rho": Fraction(1)}])
@pytest.mark.parametrize("rows", [1, 2, 7, 30])
def test_the_interval_of_a_mean_covers_by_the_laws_of_both_noises(rows: int, spend: dict[str, Any]) -> None:
    """All pairs of noises with their exact chances; means on and between grid points, up to the reach of two steps."""
    total, count = laws(spend, (1, 1))
    far = 80
    places = np.arange(-far, far + 1)
    with precision(64):
        chances, others = ([float(one.law.pmf(k)) for k in places.tolist()] for one in (total, count))
    masses = np.outer(chances, others).ravel()
    for exact in range(-2 * rows, 2 * rows + 1, max(1, rows // 3)):
        sums, counts = (grid.ravel() for grid in np.meshgrid(exact + places, rows + places, indexing="ij"))
        low, high = quotient_ends(sums, counts, (total, count), 2, Fraction(95, 100))
        inside = (low[0] * rows <= exact * low[1]) & (exact * high[1] <= high[0] * rows)
        assert masses[inside].sum() >= 0.95


@pytest.mark.statistical
def test_a_reach_a_third_shorter_would_be_seen() -> None:
    """The wrong neighbour of the test above: it has the power to see an interval that is too short."""
    groups = 4000
    made = many(Measure(Statistic.SUM, LATER), Measure(Statistic.MEAN, LATER), groups=groups, epsilon=ONE)
    table = made.draw(repeated(made, groups, rows=10, sums=(10, 10)))
    cells = [table["m0"][row] for row in range(groups)]
    covered = sum(abs(cell.value - 50) <= cell.plus_minus * Fraction(2, 3) for cell in cells)
    assert covered < 0.95 * groups - 6.5 * math.sqrt(groups * 0.95 * 0.05)


def test_a_mean_of_nobody_is_anything_between_the_bounds() -> None:
    made = many(Measure(Statistic.MEAN, LATER), groups=200, epsilon=Fraction(1, 10))
    cells = [made.draw(repeated(made, 200, rows=0))["m0"][row] for row in range(200)]
    assert any((cell.low, cell.high) == (3, 5) for cell in cells)
    assert all(3 <= cell.low <= cell.high <= 5 for cell in cells)


def test_quantiles_and_modes_are_near_where_the_data_are() -> None:
    crowd = tuple((("a", 4),) for _ in range(400))
    measures = (
        Measure(Statistic.QUANTILE, X, Fraction(1, 2)),
        Measure(Statistic.MODE, WORD),
        Measure(Statistic.MODE, FLAG),
        Measure(Statistic.MODE, X),
    )
    spends: list[dict[str, Any]] = [{"epsilon": Fraction(8)}, {"rho": Fraction(8)}]
    for spend in spends:
        made = priced(*measures, **spend)
        row = made.draw(tallied(made.stage, crowd))[0]
        assert [row[f"m{place}"].value for place in range(4)] == [4, "q", True, 4]
        assert row["m0"].plus_minus is None
        assert "rank" in made.draw(tallied(made.stage, crowd))["m0"].no_interval


def test_choices_are_made_where_nobody_is() -> None:
    """An empty group must look like any other: no error, no NULL."""
    measures = (
        Measure(Statistic.QUANTILE, X, Fraction(1, 2)),
        Measure(Statistic.QUANTILE, X, ONE),
        Measure(Statistic.MODE, WORD),
    )
    made = priced(*measures, keys="known", limits=(2, 2), epsilon=ONE)
    for row in made.draw(tallied(made.stage, ((("a", 0),),))):
        assert 0 <= row["m0"].value <= 4
        assert row["m2"].value in ("p", "q")


def test_distinct_values_are_no_more_than_there_can_be() -> None:
    made = many(EVERY["distinct"], groups=300, epsilon=Fraction(1, 5))
    table = made.draw(repeated(made, 300, rows=5))
    assert all(0 <= row["m0"].value <= 5 for row in table.tidy)
    assert any(row["m0"].value > 5 for row in table)


def test_groups_that_are_not_public_are_hidden_or_shown_by_their_units() -> None:
    made = priced(EVERY["rows"], keys="unknown", epsilon=ONE, delta=Fraction(1, 10**6))
    noising = made.draft.noising
    assert noising.selection is not None
    crowd = tuple((("a", 4),) for _ in range(4 * noising.selection.reliable_count()))
    table = made.draw(tallied(made.stage, (*crowd, (("b", 4),))))
    assert [row["city"] for row in table] == ["a"]
    assert len(made.draw(tallied(made.stage, ()))) == 0


def test_a_group_of_many_rows_of_one_unit_is_hidden() -> None:
    """However many rows it may have: it is shown with a chance of delta, which is that of a false alarm here."""
    made = priced(EVERY["rows"], keys="unknown", limits=(1, 1000), epsilon=ONE, delta=Fraction(1, 10**9))
    found = tallied(made.stage, ((("b", 4),) * 1000,))
    assert found.tally.rows.tolist() == [1000]
    assert len(made.draw(found)) == 0


def released(**more: Any) -> Any:
    """A table of three known cities with 300, 200 and 100 rows and little noise, the same one every time."""
    crowd = tuple(((city, 4),) for city, times in zip("abc", (300, 200, 100), strict=True) for _ in range(times))
    asked = question(EVERY["rows"], EVERY["sum"], keys="known", **more)
    made = plan(asked, catalogue(), Spend(epsilon=Fraction(4)), pure=True)
    with replayed("three cities"):
        return made.draw(tallied(made.stage, crowd))


def test_having_order_and_limit_look_at_released_values() -> None:
    above = Combine(Operator.GREATER, (ReleasedMeasure(0), number(150)))
    assert [row["city"] for row in released(having=above)] == ["a", "b"]
    assert [row["city"] for row in released(order=(Order(ReleasedMeasure(0)),))] == ["c", "b", "a"]
    down = (Order(ReleasedMeasure(0), descending=True),)
    assert [row["city"] for row in released(order=down, limit=Limit(1, 1))] == ["b"]
    above_all = Combine(Operator.GREATER, (ReleasedMeasure(0), number(250)))
    mixed = Choose(((above, Choose(((above_all, ReleasedMeasure(0)),), KeyValue(0))),), Literal(None, NUMBER))
    assert [row["city"] for row in released(order=(Order(mixed),))] == ["a", "b", "c"]  # Numbers, texts, NULL.
    assert any("HAVING or LIMIT" in note for note in released(having=above).notes)
    assert not any("HAVING or LIMIT" in note for note in released().notes)


def test_computed_columns_come_with_boxes() -> None:
    share = Combine(Operator.DIVIDE, (ReleasedMeasure(1), ReleasedMeasure(0)))
    shown = (
        OutputColumn("share", share),
        OutputColumn("low", End(0, Side.LOW)),
        OutputColumn("large", Combine(Operator.GREATER, (ReleasedMeasure(0), number(150)))),
        OutputColumn(
            "word", Choose(((Combine(Operator.GREATER, (ReleasedMeasure(0), number(150))), KeyValue(0)),), number(0))
        ),
        OutputColumn("nothing", Combine(Operator.DIVIDE, (ReleasedMeasure(0), number(0)))),
    )
    table = released(outputs=shown)
    first = table[0]
    assert first["share"].low <= 4 <= first["share"].high
    assert 0 < first["share"].plus_minus < 1
    assert first["low"].value < 300
    assert [row["large"].value for row in table] == [True, True, False]
    assert [row["word"].value for row in table] == ["a", "b", 0]
    assert first["nothing"].value is None


def test_a_choice_between_released_values_has_the_interval_of_all_it_may_be() -> None:
    """The wrong neighbour: taking the chosen number for exact would give it a ± of zero."""
    empty = Combine(Operator.EQUAL, (ReleasedMeasure(0), number(0)))
    rows = Choose(((empty, Literal(None, NUMBER)),), ReleasedMeasure(0))  # NULLIF(COUNT(*), 0)
    shown = (
        OutputColumn("n", ReleasedMeasure(0)),
        OutputColumn("rows", rows),
        OutputColumn("share", Combine(Operator.DIVIDE, (ReleasedMeasure(1), rows))),
        OutputColumn("either", Choose(((empty, number(-5)),), ReleasedMeasure(0))),
    )
    for row in released(outputs=shown):
        assert row["rows"] == row["n"]
        assert row["rows"].plus_minus > 0
        assert row["share"].low <= 4 <= row["share"].high
        assert row["either"].low == -5


def test_a_box_covers_at_least_what_it_says() -> None:
    groups = 3000
    made = many(EVERY["rows"], EVERY["sum"], groups=groups, epsilon=Fraction(4))
    asked = made.question
    share = (OutputColumn("share", Combine(Operator.DIVIDE, (ReleasedMeasure(1), ReleasedMeasure(0)))),)
    made = plan(
        type(asked)(source=asked.source, keys=asked.keys, measures=asked.measures, outputs=share),
        catalogue(),
        Spend(epsilon=Fraction(4)),
        pure=True,
    )
    table = made.draw(repeated(made, groups, rows=50, sums=(100, 0)))
    cells = [table["share"][row] for row in range(groups)]
    assert sum(cell.low <= 2 <= cell.high for cell in cells) >= 0.95 * groups


def test_wide_noise_is_drawn_in_a_public_unit_and_still_covered() -> None:
    """Squares of fine grids have noise that no sampler takes in single steps."""
    made = many(Measure(Statistic.VARIANCE, PAY), groups=500, limits=(10, 10), epsilon=Fraction(1, 100))
    noising = made.draft.noising
    squares = noising.numbers[next(p for p, n in enumerate(made.draft.numbers) if n.fold)]
    assert squares.unit > 1
    table = made.draw(repeated(made, 500, rows=10, sums=(0, 0)))
    assert all(cell.low == 0 for cell in (table["m0"][row] for row in range(500)))


def test_every_statistic_is_drawn_for_every_kind_of_groups() -> None:
    crowd = tuple(unit for unit in units(1, 2) for _ in range(30))
    for keys, more in (("none", {}), ("known", {}), ("unknown", {"delta": Fraction(1, 1000)})):
        made = priced(*EVERY.values(), keys=keys, limits=(2, 2), epsilon=Fraction(40), **more)  # type: ignore[arg-type]
        table = made.draw(tallied(made.stage, crowd))
        assert len(table) == (1 if keys == "none" else 3)
        assert all(cell.low <= cell.high for row in table for name, cell in row.items() if name != "city")


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(1)}, {"rho": Fraction(1, 8)}], ids=["flipped", "exponential"])
def test_modes_of_several_rows_a_unit_follow_the_law_that_is_charged(spend: dict[str, Any]) -> None:
    """The wrong neighbour: a factor that forgets the three rows of a unit, so that three times as much is spent."""
    made = priced(Measure(Statistic.MODE, WORD), limits=(1, 3), **spend)
    found = tallied(made.stage, ((("a", 0),) * 3, (("a", 4),)))
    draft, kept = made.draft, found.tally.measures[made.draft.picks[0].column].values
    assert kept is not None
    assert draft.max_rows == 3
    drawn = [("p", "q").index(one) for one in pick(draft, 0, kept, np.zeros(20_000, dtype=np.int64))[0][0]]
    right, wrong = Planned(made), Planned(PricedQuery(replace(draft, max_rows=1)))
    assert fits(drawn, chances(right, found))
    assert rejects(drawn, chances(wrong, found))


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(8)}, {"rho": Fraction(8)}], ids=["flipped", "exponential"])
def test_quantiles_and_their_ends_follow_the_law_that_is_charged(spend: dict[str, Any]) -> None:
    """The wrong neighbour: a choice that forgets that a unit has three rows."""
    made = priced(Measure(Statistic.QUANTILE, X, Fraction(1, 2)), limits=(1, 3), quantile_intervals=True, **spend)
    found = tallied(made.stage, ((("a", 0),) * 3, (("a", 1), ("a", 3))))
    draft, kept = made.draft, found.tally.measures[made.draft.picks[0].column].values
    assert kept is not None
    (drawn,) = pick(draft, 0, kept, np.zeros(5_000, dtype=np.int64))
    laws = [Planned(one)._pick(found, 0, 0).masses for one in (made, PricedQuery(replace(draft, max_rows=1)))]
    places = {outcome: place for place, outcome in enumerate(sorted(laws[0].keys() | laws[1].keys()))}
    seen = [places[tuple(int(end) for end in ends)] for ends in zip(*drawn, strict=True)]
    right, wrong = ([float(law[one].mid()) if one in law else 0.0 for one in places] for law in laws)
    assert fits(seen, right)
    assert rejects(seen, wrong)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("spend", [{"epsilon": Fraction(8)}, {"rho": Fraction(8)}], ids=["flipped", "exponential"])
def test_a_list_and_its_ends_follow_the_law_that_is_charged(
    spend: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrong neighbour: a list that forgets that a unit has three rows."""
    made_of = choices.quantiles_of
    monkeypatch.setattr(choices, "quantiles_of", lambda *asked: replace(made_of(*asked), fineness=1))
    levels = Fraction(1, 2), Fraction(3, 4)
    asked = [Measure(Statistic.QUANTILE, X, one, among=levels) for one in levels]
    made = priced(*asked, limits=(1, 3), quantile_intervals=True, **spend)
    found = tallied(made.stage, ((("a", 0),) * 3, (("a", 1), ("a", 3))))
    draft, kept = made.draft, found.tally.measures[made.draft.picks[0].column].values
    assert kept is not None
    assert draft.choosers[0].at_once
    drawn = pick(draft, 0, kept, np.zeros(1_000, dtype=np.int64))
    laws = [Planned(one)._pick(found, 0, 0).masses for one in (made, PricedQuery(replace(draft, max_rows=1)))]
    places = {outcome: place for place, outcome in enumerate(sorted(laws[0].keys() | laws[1].keys()))}
    seen = []
    for row in range(1_000):
        values = [tuple(int(column[row]) for column in one) for one in drawn]
        seen.append(places[tuple(one[0] for one in values), tuple(one[1:] for one in values)])
    right, wrong = ([float(law[one].mid()) if one in law else 0.0 for one in places] for law in laws)
    assert fits(seen, right)
    assert rejects(seen, wrong)


def test_quantiles_of_a_list_are_in_order_and_empty_where_a_group_may_be() -> None:
    levels = tuple(Fraction(part, 10) for part in (1, 3, 5, 9))
    asked = [Measure(Statistic.QUANTILE, X, one, among=levels) for one in levels]
    for spend in ({"epsilon": Fraction(1)}, {"rho": Fraction(1, 8)}):
        made = priced(*asked, EVERY["rows"], keys="known", **spend)
        assert len(made.measurements) == 2  # One part of the price, as one quantile would be.
        table = made.draw(tallied(made.stage, tuple((("a", place % 5),) for place in range(500))))
        shown = [[row[f"m{place}"].value for place in range(4)] for row in table]
        assert shown[0] == sorted(shown[0])
        assert all(value is None for row in shown[1:] for value in row)


def test_a_quantile_has_its_interval_where_it_is_paid_for() -> None:
    asked = Measure(Statistic.QUANTILE, X, Fraction(1, 2))
    twice = (
        OutputColumn("m", ReleasedMeasure(0)),
        OutputColumn("less", Combine(Operator.NEGATE, (ReleasedMeasure(0),))),
    )
    other = Measure(Statistic.QUANTILE, X, Fraction(9, 10))
    both = OutputColumn("both", Combine(Operator.ADD, (ReleasedMeasure(0), ReleasedMeasure(1))))
    source = question(asked, other, outputs=(*twice, both))
    plain, paid = (
        plan(source, catalogue(), Spend(epsilon=BIG, quantile_intervals=one), pure=True) for one in (False, True)
    )
    people = tuple((("a", value),) for value in (0, 1, 2, 2, 2, 3, 4) * 40)
    without, found = plain.draw(tallied(plain.stage, people)), paid.draw(tallied(paid.stage, people))
    assert "quantile_intervals" in without.column("m").no_interval
    assert without.column("m")[0].interval() is None
    assert found.column("m")[0].interval() == (2, 2)
    assert found.column("less")[0].interval() == (-2, -2)
    assert found.column("m").no_interval == ""
    # Both at once would need an interval each of a higher confidence than was paid for.
    assert found.column("both")[0].interval() is None
    assert plain.fingerprint != paid.fingerprint
    assert ReleaseTable.from_json(found.to_json()).column("m")[0] == found.column("m")[0]


def chances(planned: Planned, found: ExactCounts) -> list[float]:
    """The law of a mode, which `test_planning_verified` compares with the charge."""
    masses = planned._pick(found, 0, 0).masses
    return [float(masses[place].mid()) for place in range(2)]
