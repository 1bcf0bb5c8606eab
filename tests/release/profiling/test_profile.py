"""Laws of whole profiles: what they cost, what they show, and what they never show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pytest
from profile_worlds import CANARIES, people, session

import discreet as dp
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.pages.kit import words
from discreet.privacy.events import ApproxDP, Composed, Gaussian, Repeated
from discreet.query.workers.worker_engine import WorkerEngine
from discreet.release import plan_profile, profile
from discreet.release.profiling import profile_plan as planning
from discreet.release.profiling.cells import ListedCells, Partition, Ranges, ladder
from discreet.release.profiling.column_profiles import open_ends
from discreet.release.profiling.profile_page import page
from discreet.release.profiling.profile_queries import ColumnSearch, ProfiledColumn, count_cells, find_values, share_of
from discreet.release.profiling.profile_results import Profile

SURE = 1e-18  # The delta where no value of one person may be named in a test: there are thousands of them.


@pytest.fixture(scope="module", autouse=True)
def _no_chance() -> Iterator[None]:
    """Take no empty cell for a filled one, but for one in a billion: one in a thousand is too often for tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_WRONG", Fraction(1, 10**10))
        yield


@pytest.fixture(scope="module")
def exact(_no_chance: None) -> Profile:
    """A profile with nearly no noise: epsilon 100 is the most that is allowed."""
    with session(people(), budget=dp.Budget(epsilon=100, delta=SURE)) as opened:
        return plan_profile(opened, epsilon=100, delta=SURE).release()


def _sum_of_mu(history: tuple[Any, ...]) -> Fraction:
    events = [entry.event for entry in history if entry.event is not None]
    leaves = [leaf for event in events for leaf in (event.events if isinstance(event, Composed) else [event])]
    return sum((leaf.mu_squared for leaf in leaves if isinstance(leaf, Gaussian)), Fraction(0))


def test_what_is_charged_is_the_price_that_was_said_for_pure_epsilon() -> None:
    with session(people(300).select(["age", "seen", "town"]), budget=dp.Budget(epsilon=3)) as opened:
        plan = plan_profile(opened, epsilon=2)
        plan.release()
        assert opened.spent.epsilon == 2
        assert plan.epsilon == pytest.approx(2)


def test_what_is_charged_is_the_price_that_was_said_for_gaussian_noise() -> None:
    flags = {f"flag{place}": [True, False] * 100 for place in range(20)}
    wide = pa.table(flags | {"number": list(range(200)), "town": ["Hill", "Mill"] * 100})
    with session(wide, budget=dp.Budget(epsilon=1, delta=1e-6)) as opened:
        plan = plan_profile(opened, epsilon=1, delta=1e-6)
        assert plan.division.gaussian
        plan.release()
        assert _sum_of_mu(opened.history()) == 2 * plan.division.part * plan.division.parts
        assert opened.ledger.total(1e-6).epsilon <= plan.epsilon * (1 + 1e-9) <= 1
        assert opened.spent.delta == Fraction(1, 5 * 10**6)


def test_the_announced_event_is_the_charged_one_with_searches_for_values() -> None:
    with session(people(300)) as opened:
        plan = plan_profile(opened, epsilon=1, delta=1e-6)
        assert plan.event.events[1] == Repeated(ApproxDP(0, Fraction(1, 10**7)), 2)


def test_all_that_finding_values_costs_goes_into_finding_them() -> None:
    with session(people(50)) as opened:
        plan = plan_profile(opened, epsilon=1, delta=1e-6)
        town = next(subject for subject in plan.subjects if subject.name == "town")
        asked = find_values(opened, plan.table, town, plan.division)
        assert asked._asked.priced.measurements == ()
        assert asked.event.events[1:] == (ApproxDP(0, Fraction(1, 10**7)),)


def test_a_profile_fits_a_budget_of_exactly_what_it_may_spend(tmp_path: Path) -> None:
    for delta in (None, 1e-6):
        done = profile(
            people(300).select(["age", "town"]),
            unit="row",
            epsilon=1,
            delta=delta,
            ledger=tmp_path / f"{delta}.ledger",
            dataset="people",
            principal="ana",
        )
        assert len(done.columns) == 2


@pytest.mark.parametrize("unit", ["row", dp.Unit("person"), dp.Unit("person", max_groups=3, max_rows_per_group=2)])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_noise_that_a_profile_tells_is_the_noise_that_is_drawn(unit: Any, delta: float | None) -> None:
    table = people(50)
    budget = dp.Budget(epsilon=1) if delta is None else dp.Budget(epsilon=1, delta=delta)
    with session(table, unit=unit, budget=budget) as opened:
        plan = plan_profile(opened, epsilon=1, delta=delta)
        for subject in plan.subjects:
            cells = _tried(subject)
            priced = count_cells(opened, plan.table, subject, cells, plan.division, at="count")._asked.priced
            share = share_of(subject, "count")
            assert share is not None
            assert priced.draft.noising.numbers[0].law == plan.division.law(share, cells.cells + 1)


def _tried(subject: ProfiledColumn) -> Partition:
    if subject.search is ColumnSearch.VALUES:
        return ListedCells(("Hill", "Mill"))
    return subject.cells if subject.search is ColumnSearch.NOTHING else ladder(subject.kind)


def test_values_that_few_share_are_in_no_byte_of_a_profile(tmp_path: Path) -> None:
    table = people().select(["person", "age", "town", "name"])
    for unit in ("row", dp.Unit("person")):
        with session(table, unit=unit, budget=dp.Budget(epsilon=4, delta=SURE)) as opened:
            done = plan_profile(opened, epsilon=2, delta=SURE).release()
        shown = done.write(tmp_path / "profile.html").read_text() + done.to_json() + str(done)
        assert not [canary for canary in CANARIES if canary in shown]
        assert "Person" not in shown
        assert "Harbour" in shown


def test_a_plan_is_the_same_for_all_rows_of_a_schema() -> None:
    table = people(200)
    plans = []
    for rows in (table, table.slice(0, 3), table.slice(0, 0)):
        with session(rows) as opened:
            plan = plan_profile(opened, epsilon=1, delta=1e-6)
            plans.append((str(plan), plan.subjects, plan.division))
    assert plans[0] == plans[1] == plans[2]


def test_texts_are_numbers_only_if_somebody_says_so(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    csv.write_csv(people(2000).select(["person", "age", "seen"]), file)
    with session(str(file)) as opened:
        kinds = [subject.search for subject in plan_profile(opened, epsilon=1, delta=1e-6).subjects]
        assert kinds == [ColumnSearch.VALUES] * 3
        done = plan_profile(opened, epsilon=60, delta=1e-6, numbers=["AGE"], dates=["seen"]).release()
    low, high = done.column("age").bounds
    assert 0 <= low < high <= 100
    assert str(done.column("seen").quantiles[2].value).startswith("2021")
    with session(str(file)) as opened, pytest.raises(InvalidParameter, match="Did you mean"):
        plan_profile(opened, epsilon=1, numbers=["agee"])
    with session(people(10)) as opened, pytest.raises(InvalidParameter, match="leave it out"):
        plan_profile(opened, epsilon=1, numbers=["age"])


def test_texts_without_a_declaration_are_named_before_anything_is_paid(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("who,age,town\n" + "1,30,Bern\n" * 50)
    words: dict[str, Any] = {
        "unit": "row",
        "budget": dp.Budget(epsilon=2),
        "ledger": "memory",
        "dataset": "people",
        "principal": "ana",
    }
    with dp.Session(tmp_path / "people.csv", **words) as opened:
        told = plan_profile(opened, epsilon=1).read_as_text
        assert "without quantiles: who, age, town." in told
        assert told in str(plan_profile(opened, epsilon=1))
        assert "quantiles: who, town." in plan_profile(opened, epsilon=1, numbers=["age"]).read_as_text
    columns = {"who": dp.between(0, 9), "age": dp.between(0, 120), "town": dp.categories(["Bern"])}
    with dp.Session(tmp_path / "people.csv", **words, columns=columns) as declared:
        plan = plan_profile(declared, epsilon=1)
        assert plan.read_as_text == ""
        assert plan.release().column("age").quantiles


def test_a_budget_that_does_not_hold_the_whole_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []
    for method in ("run", "run_all"):
        monkeypatch.setattr(WorkerEngine, method, lambda self, *stages, **named: ran.append(stages))
    with session(people(100), budget=dp.Budget(epsilon=1)) as opened:
        plan = plan_profile(opened, epsilon=2)
        assert not plan.affordable
        with pytest.raises(BudgetExceeded):
            plan.release()
        assert opened.spent.epsilon == 0
    assert ran == []


def test_a_quota_that_does_not_hold_the_whole_reads_nothing() -> None:
    quota = dp.Quota(dp.Budget(epsilon=1), principal="*")
    with session(people(50), budget=dp.Budget(epsilon=9), quotas=[quota]) as opened:
        with pytest.raises(BudgetExceeded):
            plan_profile(opened, epsilon=2).release()
        assert opened.spent.epsilon == 0


def test_a_round_that_does_not_fit_any_more_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with session(people(100).select(["age", "seen"]), budget=dp.Budget(epsilon=2)) as opened:
        plan = plan_profile(opened, epsilon=2)
        ask = planning.ask

        def spend_in_between(used: dp.Session, plans: Any, *, idempotency_key: str, at: str) -> Any:
            if at == "count":
                used.sql("SELECT COUNT(*) AS n FROM people", epsilon=1).release()
                monkeypatch.setattr(WorkerEngine, "run_all", _fail)
            return ask(used, plans, idempotency_key=idempotency_key, at=at)

        monkeypatch.setattr(planning, "ask", spend_in_between)
        with pytest.raises(BudgetExceeded):
            plan.release()
        assert opened.spent.epsilon < 2


def _fail(*_: object, **__: object) -> None:
    raise AssertionError("rows were read without being paid for")


def test_the_rounds_add_up_to_the_whole_price() -> None:
    with session(people(50)) as opened:
        for said in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}):
            plan = plan_profile(opened, **said)
            assert plan.price_of(plan.rounds) == plan.event
            assert sum(map(plan.amount_of, plan.rounds)) == plan.division.part * plan.division.parts
            told = str(plan)
            assert all(f"round {place}" in told for place in range(1, len(plan.rounds) + 1))


def test_an_interrupted_profile_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = {"ledger": tmp_path / "people.ledger", "budget": dp.Budget(epsilon=2)}
    ask, asked = planning.ask, []

    def stop(used: dp.Session, plans: Any, *, idempotency_key: str, at: str) -> Any:
        if at == "narrow" and not asked:
            asked.append(at)
            raise KeyboardInterrupt
        return ask(used, plans, idempotency_key=idempotency_key, at=at)

    monkeypatch.setattr(planning, "ask", stop)
    with session(people(500).select(["age", "town"]), **said) as opened, pytest.raises(KeyboardInterrupt):
        plan_profile(opened, epsilon=2).release()
    with session(people(500).select(["age", "town"]), **said) as opened:
        plan = plan_profile(opened, epsilon=2)
        assert plan.unpaid == ("narrow", "count")
        assert plan.affordable
        first = plan.release()
        assert opened.spent.epsilon == 2
        again = plan_profile(opened, epsilon=2).release()
        assert again.to_json() == first.to_json()
        assert opened.spent.epsilon == 2
        assert [entry.kind for entry in opened.history()].count("charge") == 3


def test_a_profile_tells_the_truth_at_a_large_epsilon(exact: Profile) -> None:
    assert abs(exact.units.value - 4000) <= exact.units.plus_minus + 20
    age, height = exact.column("age"), exact.column("height")
    assert age.missing.tidy < 30
    assert age.quantiles[2].low <= 44 <= age.quantiles[2].high
    assert height.bounds[0] <= 150.1
    assert height.bounds[1] >= 199.9
    assert abs(height.quantiles[2].value - 175) < 3
    for cell in age.cells:
        if cell.low is not None and cell.high is not None:
            truth = sum(cell.low <= place % 90 < cell.high for place in range(4000))
            assert abs(cell.count.value - truth) <= 6 * max(1, cell.count.plus_minus)


def test_values_and_truth_values_are_counted_near_the_truth(exact: Profile) -> None:
    town = exact.column("town")
    assert {cell.label for cell in town.top} == {"Harbour", "Hill", "Mill", "Station"}
    assert abs(town.missing.value - 400) <= 6 * max(1, town.missing.plus_minus)
    assert town.cells[-1].rest
    member = {cell.label: cell.count.value for cell in exact.column("member").cells}
    assert set(member) == {"false", "true"}
    assert abs(member["true"] - 1334) < 40
    assert "no value is named" in exact.column("name").reasons[0]


def test_a_person_with_many_rows_counts_within_the_limits() -> None:
    table = pa.table({"person": [place % 20 for place in range(4000)], "x": [5] * 4000})
    said = {"columns": {"x": dp.between(0, 10)}, "budget": dp.Budget(epsilon=100)}
    counted = {}
    for rows in (1, 50):
        unit = dp.Unit("person", max_rows_per_group=rows)
        with session(table, unit=unit, **said) as opened:
            done = plan_profile(opened, epsilon=100).release()
        counted[rows] = done.column("x").present.value
        assert [column.name for column in done.columns] == ["x"]
        assert abs(done.units.value - 20) < 10
    assert abs(counted[1] - 20) < 10
    assert abs(counted[50] - 1000) < 200


def test_what_is_counted_of_a_person_with_many_rows_is_said_and_is_so() -> None:
    """A person has 9 rows of 0 and one of 1: one row at random would be 0 for 900 of 1000, one value is for 500."""
    table = pa.table(
        {"person": [place // 10 for place in range(10_000)], "x": [int(n % 10 == 9) for n in range(10_000)]}
    )
    said = {"columns": {"x": dp.categories([0, 1])}, "budget": dp.Budget(epsilon=100)}
    with session(table, unit=dp.Unit("person"), **said) as opened:
        plan = plan_profile(opened, epsilon=100)
        priced, done = str(plan), plan.release()
    zeros, ones, _ = (cell.count.value for cell in done.column("x").cells)
    assert abs(zeros - ones) < 250
    counted = (
        "Each person is counted in one of its values or ranges of a column, taken at random: values that few of its "
    )
    for told in (priced, str(done), done.notes[0], page(done), done._repr_html_()):
        assert counted in told
        assert "one row of each" not in told
    assert str(done).splitlines()[2].startswith("NOT COUNTS OF ALL ROWS: Each person")
    assert page(done).index("Not counts of all rows.") < page(done).index("All columns")
    assert (
        str(done)
        .splitlines()[0]
        .endswith(f"{done.units.value:,} ± {done.units.plus_minus:,} different values of person")
    )


def test_quantiles_say_of_what_they_are() -> None:
    table = pa.table({"person": [place // 2 for place in range(4000)], "x": list(range(4000))})
    said = {"columns": {"x": dp.between(0, 4000)}, "budget": dp.Budget(epsilon=100)}
    with session(table, unit=dp.Unit("person"), **said) as opened:
        done = plan_profile(opened, epsilon=100).release()
    assert "  quantiles of one value of each person 5 %:" in str(done)
    assert "this part of one value of each person lies below" in page(done)
    assert "as counted: half below" in page(done)
    assert "median of one value of each person, or most" in done._repr_html_()


def test_bounds_with_much_beyond_them_are_not_offered_as_bounds() -> None:
    cells = Ranges(cuts=(Fraction(5), Fraction(14)), whole=True)
    assert open_ends(cells, [90, 360, 550]) == {"above": "about 55 % lie at 14 or above"}
    assert set(open_ends(cells, [200, 360, 440])) == {"below", "above"}
    assert open_ends(cells, [90, 850, 60]) == {}
    declared = Ranges(cuts=(Fraction(5),), low=Fraction(0), high=Fraction(14))
    assert open_ends(declared, [500, 500]) == {}


def test_a_column_whose_bounds_were_not_found_says_so_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "shown_cells", lambda *_: Ranges(cuts=(Fraction(5), Fraction(14)), whole=True))
    with session(people().select(["age"]), budget=dp.Budget(epsilon=100)) as opened:
        done = plan_profile(opened, epsilon=100).release()
    age = done.column("age")
    assert age.basis == "bounds not found: about 84 % lie at 14 or above"
    assert age.bounds == (5, None)
    assert "bounds not found: about 84 % lie at 14 or above. Declare bounds" in str(done)
    assert "50 %: 14 or more (14 … more)" in str(done)
    assert "bounds found" not in str(done) + page(done)
    assert "half or more at 14 or above" in page(done)
    told = json.loads(done.to_json())["columns"][0]
    assert [one.get("beyond") for one in told["quantiles"]] == ["below", *["above"] * 4]


def test_the_share_of_delta_that_is_said_is_the_one_that_is_spent() -> None:
    with session(people(500).select(["age", "town"])) as opened:
        plan = plan_profile(opened, epsilon=1, delta=1e-6)
        spent, told = plan.division.delta_each, str(plan)
    assert spent == Fraction(1, 5 * 10**6)
    assert "A fifth of δ is for these" in told
    assert "and δ = 2e-7" in told


def test_declared_columns_need_one_round_only() -> None:
    said = {"age": dp.between(0, 120), "town": dp.categories(["Harbour", "Hill"])}
    with session(people(500).select(["age", "town"]), columns=said, budget=dp.Budget(epsilon=50)) as opened:
        plan = plan_profile(opened, epsilon=50)
        assert plan.rounds == ("count",)
        done = plan.release()
    assert done.column("age").cells[0].low == 0
    assert done.column("age").cells[-1].high == 120
    assert [cell.label for cell in done.column("town").cells] == ["Harbour", "Hill", "other values"]


def test_texts_without_a_delta_say_why_they_are_not_named() -> None:
    with session(people(100).select(["town"]), budget=dp.Budget(epsilon=1)) as opened:
        done = plan_profile(opened, epsilon=1).release()
    assert "spend a delta" in done.column("town").reasons[0]


def test_json_has_every_number_with_its_plus_minus(exact: Profile) -> None:
    written = json.loads(exact.to_json())
    assert written["spent"]["allowed_epsilon"] == 100
    for column in written["columns"]:
        for count in [column["missing"], column["present"], *(cell["count"] for cell in column["cells"])]:
            assert {"value", "plus_minus", "low", "high"} == count.keys()


def test_nonsense_is_refused() -> None:
    with session(people(10).select(["member", "person"])) as opened:
        for wrong in (
            {"epsilon": 0},
            {"epsilon": 101},
            {"epsilon": 1, "idempotency_key": " "},
            {"epsilon": 1, "delta": -1},
        ):
            with pytest.raises(InvalidParameter):
                plan_profile(opened, **wrong)
        with pytest.raises(InvalidParameter, match="Did you mean"):
            plan_profile(opened, epsilon=1).release().column("memberr")
    nobody = session(people(10).select(["person"]), unit=dp.Unit("person"))
    with nobody as opened, pytest.raises(InvalidParameter, match="nothing to profile"):
        plan_profile(opened, epsilon=1)


def test_a_profile_is_a_table_in_a_notebook(exact: Profile) -> None:
    shown = exact._repr_html_()
    assert shown.count("<tr>") == 1 + len(exact.columns)
    assert shown.startswith(f"<p>{words(str(exact).splitlines()[0])}</p><table>")
    for column in exact.columns:
        assert f'<td style="text-align:left">{words(column.name)}</td>' in shown
