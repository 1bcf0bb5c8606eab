"""A series day by day: charged once, every day counted and drawn once, a unit never counted too often."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import date
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from running_worlds import FIRST, day, plan_of, running_of, session_of, stays

from discreet import Budget, Session, between, categories
from discreet.errors import BudgetExceeded, InvalidParameter, Refused
from discreet.ledger import Account, Ledger
from discreet.privacy.relation import Relation
from discreet.query.session.policy_file import TablePolicy
from discreet.release import advance, check
from discreet.release.cumulative.advance import key_of_running, opened_state, state_of
from discreet.release.plan import ReleasePlan, Wish
from discreet.release.published import RunningRelease

ROWS: list[tuple[object, int]] = [(1, 0), (1, 0), (1, 2), (2, 1), (2, 4), (3, 0), (None, 0), (4, 5)]


def released(plan: ReleasePlan, rows: list[tuple[object, int]] | pa.Table, until: int) -> RunningRelease | None:
    with session_of(plan, rows) as session:
        return advance(plan, plan.running[0], session, until=day(until))


def kept(plan: ReleasePlan) -> list[int]:
    """The exact counts that the private state holds."""
    with opened_state(state_of(plan, plan.running[0]), may_begin=False) as state:
        return [count for count, _ in state.days()]


def test_a_series_is_charged_once_and_goes_on_from_where_it_was(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    first = released(plan, ROWS, 3)
    assert first is not None
    with session_of(plan, ROWS) as session:
        assert session.spent.charges == 1
        assert session.spent.rho == Fraction(1, 2)
    again, more = released(plan, ROWS, 3), released(plan, ROWS, 6)
    assert again is not None
    assert more is not None
    assert again.table.to_json() == first.table.to_json()
    assert more.table["total"][2] == first.table["total"][2]
    assert [row["day"] for row in more.table] == [day(number) for number in range(6)]
    with session_of(plan, ROWS) as session:
        assert session.spent.charges == 1
        assert [entry.kind for entry in session.history()].count("part") == 6
        session.ledger.verify()


@pytest.mark.parametrize(("most", "counts"), [(1, [2, 1, 0, 0, 0, 1]), (2, [2, 1, 1, 0, 1, 1])])
def test_a_unit_is_counted_on_its_first_days_only(most: int, counts: list[int], tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of(max_days=most))
    released(plan, ROWS, 6)
    assert kept(plan) == counts


def test_it_does_not_matter_how_often_one_looks(tmp_path: Path) -> None:
    (tmp_path / "daily").mkdir()
    daily = plan_of(tmp_path / "daily", running_of(max_days=2))
    for number in range(1, 7):
        released(daily, [row for row in ROWS if row[1] < number], number)
    whole = plan_of(tmp_path, running_of(max_days=2))
    released(whole, ROWS, 6)
    assert kept(daily) == kept(whole)


def test_a_late_row_is_counted_later_and_one_taken_away_stays(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of(max_days=2))
    released(plan, [(1, 0), (2, 0)], 1)
    released(plan, [(2, 0), (3, 0), (3, 1)], 2)  # 1 is gone; 3 comes a day late, and has two days
    released(plan, [(2, 0), (3, 0), (3, 1)], 4)
    assert kept(plan) == [2, 1, 1, 0]


def test_a_table_that_changes_every_day_does_not_count_anybody_more_often(tmp_path: Path) -> None:
    """Without state, a unit that moves from day to day would be counted on each."""
    plan = plan_of(tmp_path, running_of(max_days=1))
    for number in range(6):
        released(plan, [(1, number)], number + 1)
    assert sum(kept(plan)) == 1


def test_units_are_known_again_by_every_kind_of_name(tmp_path: Path) -> None:
    """Two ways to write an accent are two units, as everywhere: what merges units would hide neither."""
    plan, names = plan_of(tmp_path, running_of(max_days=1)), ["07", "7", "\u00e9", "e\u0301", ""]
    released(plan, [(name, 0) for name in names], 1)
    released(plan, [(name, 1) for name in names], 2)
    assert kept(plan) == [5, 0]


def test_another_kind_of_unit_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    released(plan, [(7, 0)], 1)
    with pytest.raises(Refused, match="was of the kind integer and is text now"):
        released(plan, [("7", 1)], 2)
    other = plan_of(tmp_path / "other", running_of())
    (tmp_path / "other").mkdir()
    reals = pa.table({"patient": pa.array([1.5]), "admitted": pa.array([FIRST])})
    with pytest.raises(Refused, match="neither whole numbers nor texts"):
        released(other, reals, 1)


def test_rows_as_units_count_on_their_day(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of(), unit="row")
    released(plan, ROWS, 1)
    released(plan, [*ROWS, (9, 0)], 6)  # The late row of day 0 is not counted: nobody knows rows again.
    assert kept(plan) == [4, 1, 1, 0, 1, 1]


def test_person_days_have_an_account_of_their_own(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of(person_day=True))
    found = released(plan, ROWS, 6)
    assert found is not None
    assert found.unit == "patient and day"
    assert kept(plan) == [2, 1, 1, 0, 1, 1]
    with session_of(plan, ROWS) as session:
        assert session.spent.charges == 0
    account = Account("hospital by day", "patient and day", Relation.ADD_REMOVE, plan.policy.budget)
    with Ledger.open(plan.policy.ledger, account) as book:
        assert book.spent().rho == Fraction(1, 2)


# What follows from all rows of a unit: one day of it more or less changes other days, which were never paid for.
OF_ALL_DAYS: dict[str, tuple[str | None, dict[str, Any]]] = {
    "a column of units": ("land = 'a'", {"land": categories(["a", "b"], of_unit=True)}),
    "the day itself": (None, {"admitted": between(FIRST, day(9), of_unit=True)}),
    "a sub-query": ("patient IN (SELECT patient FROM stays WHERE land = 'a')", {"land": categories(["a", "b"])}),
    "a window": (
        "patient IN (SELECT patient FROM stays QUALIFY COUNT(*) OVER (PARTITION BY patient) > 4)",
        {"land": categories(["a", "b"])},
    ),
}


def counted_by_day(folder: Path, rows: list[tuple[int, int, str]], case: str, *, person_day: bool) -> list[int]:
    where, columns = OF_ALL_DAYS[case]
    folder.mkdir()
    series = running_of(where=where, person_day=person_day, max_days=1 if person_day else 5)
    plan = plan_of(folder, series)
    table = stays([row[:2] for row in rows]).append_column("land", pa.array([row[2] for row in rows]))
    policy = plan.policy
    with Session(
        {"stays": table},
        unit=policy.unit,
        budget=policy.budget,
        ledger=policy.ledger,
        dataset=policy.dataset,
        principal="ana",
        columns={"stays": columns},
    ) as session:
        advance(plan, series, session, until=day(5))
    return kept(plan)


@pytest.mark.parametrize("case", OF_ALL_DAYS)
def test_a_person_day_changes_no_other_day(case: str, tmp_path: Path) -> None:
    """It is priced as one day; where it would change others the series is refused, before it is charged."""
    rows = [(1, number, "a" if number == 0 else "b") for number in range(5)]
    both = [rows, rows[1:]]
    counts = [counted_by_day(tmp_path / f"all {n}", some, case, person_day=False) for n, some in enumerate(both)]
    assert sum(abs(a - b) for a, b in zip(*counts, strict=True)) > 1, "it looks at one day alone: this tests nothing"
    with pytest.raises(Refused, match="looks at other days of the unit"):
        counted_by_day(tmp_path / "apart", rows, case, person_day=True)
    plan = plan_of(tmp_path / "apart", running_of(person_day=True))
    assert not state_of(plan, plan.running[0]).exists()


@pytest.mark.parametrize("case", [*OF_ALL_DAYS, "single rows"])
def test_a_plan_with_days_that_are_not_apart_is_refused_when_it_is_checked(case: str, tmp_path: Path) -> None:
    where, columns = OF_ALL_DAYS.get(case, ("land = 'a'", {"land": categories(["a", "b"])}))
    (tmp_path / "stays.csv").write_text(f"patient,admitted,land\n1,{FIRST},a\n")
    declared = {"admitted": between(FIRST, day(9))} | columns
    tables = {"stays": TablePolicy(source=tmp_path / "stays.csv", public=False, columns=declared)}
    passed = "has no \\[\\[publish"  # The series are sound; what is missing is looked for after them.
    apart = passed if case == "single rows" else "looks at other days of the unit"
    for person_day, says in ((False, passed), (True, apart)):
        plan = plan_of(tmp_path, running_of(where=where, person_day=person_day))
        with pytest.raises((InvalidParameter, Refused), match=says):
            check(replace(plan, policy=replace(plan.policy, tables=tables)))


def test_conditions_and_timestamps_are_read_like_any_sql(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of(where="patient <> 3"))
    table = stays(ROWS)
    moments = table.column("admitted").cast(pa.timestamp("us"))
    released(plan, pa.table({"patient": table.column("patient"), "admitted": moments}), 6)
    assert kept(plan) == [1, 1, 0, 0, 0, 1]


def test_totals_lie_within_their_error(tmp_path: Path) -> None:
    """At rho = 1/2 and 8 days no total is off by 60: 2 e-300 would have to happen."""
    plan = plan_of(tmp_path, running_of())
    rows: list[tuple[object, int]] = [(unit, unit % 6) for unit in range(3000)]
    found = released(plan, rows, 6)
    assert found is not None
    for row, exact in zip(found.table, accumulate([500] * 6), strict=True):
        assert abs(row["total"].value - exact) < 60
        assert row["total"].low < row["total"].value < row["total"].high
    assert len(found.deviations) == 6
    assert found.table.column("total").has_interval


def test_nothing_is_due_before_the_first_day_has_ended(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    with session_of(plan, ROWS) as session:
        assert advance(plan, plan.running[0], session, until=FIRST) is None
        assert advance(plan, plan.running[0], session, until=date(2025, 1, 1)) is None
        assert session.spent.charges == 0
    assert not state_of(plan, plan.running[0]).exists()
    done = released(plan, ROWS, 1000)
    assert done is not None
    assert len(done.table) == 8


def test_a_series_that_the_budget_does_not_hold_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of(), budget=Budget(rho="0.4"))
    with pytest.raises(BudgetExceeded, match=r"ρ = 0\.5"):
        released(plan, ROWS, 3)
    assert not state_of(plan, plan.running[0]).exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"max_days": 2},
        {"days": 9},
        {"where": "patient > 0"},
        {"wish": Wish(rho=Fraction(1, 4))},
        {"person_day": True},
    ],
)
def test_a_series_that_has_begun_stays_as_it_was_said(changed: dict[str, Any], tmp_path: Path) -> None:
    released(plan_of(tmp_path, running_of()), ROWS, 2)
    plan = plan_of(tmp_path, running_of(**changed))
    if "person_day" in changed:  # This is another account, which has no series yet; but the state is taken.
        with pytest.raises(Refused, match="belongs to another series"):
            released(plan, ROWS, 3)
        return
    with pytest.raises(Refused, match="was begun with another"):
        released(plan, ROWS, 3)


def test_another_person_may_go_on_with_a_series(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    released(plan, ROWS, 2)
    with session_of(plan, ROWS, principal="ben") as session:
        found = advance(plan, plan.running[0], session, until=day(4))
        assert session.spent.charges == 1
    assert found is not None
    assert len(found.table) == 4


def test_a_state_that_is_missing_old_or_of_others_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    released(plan, ROWS, 1)
    state = state_of(plan, plan.running[0])
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    old = state.read_bytes()
    released(plan, ROWS, 3)
    state.write_bytes(old)
    with pytest.raises(Refused, match="older than what was released"):
        released(plan, ROWS, 4)
    state.unlink()
    with pytest.raises(Refused, match="is missing"):
        released(plan, ROWS, 4)
    state.write_bytes(old)
    state.chmod(0o644)
    with pytest.raises(Refused, match="chmod 600"):
        released(plan, ROWS, 4)
    assert len(released(plan, ROWS, 3).table) == 3  # type: ignore[union-attr]  # What was told needs no state.


def test_a_state_that_was_counted_anew_is_refused(tmp_path: Path) -> None:
    """An old copy that has counted on by itself has the right number of days, and other people in them."""
    plan = plan_of(tmp_path, running_of())
    released(plan, ROWS, 1)
    state = state_of(plan, plan.running[0])
    old = state.read_bytes()
    released(plan, ROWS, 3)
    state.write_bytes(old)
    with opened_state(state, may_begin=False) as again:
        again.add_counts([9, 9, 9])
    with pytest.raises(Refused, match="of another copy"):
        released(plan, ROWS, 4)


def test_a_ledger_in_memory_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    from dataclasses import replace

    plan = replace(plan, policy=replace(plan.policy, ledger=Path("memory")))
    with session_of(plan_of(tmp_path), ROWS) as session, pytest.raises(Refused, match="name a file"):
        advance(plan, plan.running[0], session, until=day(2))


def test_columns_that_are_no_day_are_named(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    table = stays(ROWS).rename_columns(["patient", "arrived"])
    with pytest.raises(InvalidParameter, match="no date or timestamp 'admitted'"):
        released(plan, table, 2)


def test_the_key_names_plan_and_series(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    assert key_of_running(plan, plan.running[0]) == "running/hospital/so_far"
