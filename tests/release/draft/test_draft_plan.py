"""Laws of drafts: what is proposed is shared by many, what is confirmed can be released, the rest stays secret."""

from __future__ import annotations

import json
import pickle
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from discreet.errors import InvalidParameter, Refused
from discreet.privacy.not_private import NotPrivate
from discreet.release import check, draft_plan, read_release_plan
from discreet.release.draft.plan_draft import Draft

ROWS = 900
CANARIES = ("unheard-of malady", "987654", "2061", "zebedee@example.org")


def stays() -> pa.Table:
    """Three stays for each of 300 patients, and one patient who stands out in every column."""
    numbers = range(ROWS)
    days = [date(2024, 3, 1) + timedelta(days=place % 300) for place in numbers]
    return pa.table(
        {
            "patient_id": [place // 3 for place in numbers],
            "email": [f"p{place}@example.org" for place in numbers[:-1]] + [CANARIES[3]],
            "town": [["Harbour", "Hill", "Mill"][place % 3] for place in numbers],
            "illness": [["cold", "flu"][place % 2] for place in numbers[:-1]] + [CANARIES[0]],
            "cost": [float(50 + place % 400) for place in numbers[:-1]] + [float(CANARIES[1])],
            "nights": [place % 11 for place in numbers[:-1]] + [int(CANARIES[1])],
            "admitted": [*days[:-1], date(int(CANARIES[2]), 5, 6)],
            "noted": [datetime(2024, 1, 1) + timedelta(hours=place) for place in numbers],
            "insured": [place % 5 > 0 for place in numbers],
        }
    )


@pytest.fixture(scope="module", params=["parquet", "csv"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drafts") / f"stays.{request.param}"
    (pq.write_table if request.param == "parquet" else csv.write_csv)(stays(), path)
    return path


@pytest.fixture(scope="module")
def draft(file: Path) -> Draft:
    return draft_plan(file).value


def test_a_draft_is_not_private(file: Path) -> None:
    found = draft_plan(file)
    assert isinstance(found, NotPrivate)
    assert str(found).startswith("NOT PRIVATE")
    with pytest.raises(Refused):
        pickle.dumps(found)


def test_a_confirmed_draft_passes_the_check(draft: Draft, tmp_path: Path) -> None:
    for answers in ({}, {"schedule.every": "month", "schedule.column": "admitted"}, {"publish.groupings": [[]]}):
        said = draft
        for field, value in answers.items():
            said = said.answered(field, value)
        for spending in ({"epsilon": 1}, {"epsilon": "0.1", "delta": 1e-6, "lifetime_epsilon": 5}):
            plan = tmp_path / "plan.toml"
            plan.write_text(said.confirmed(**spending, folder=tmp_path), encoding="utf-8")
            read = read_release_plan(plan)
            assert check(read).plan == read
            assert read.policy.tables["stays"].source.resolve() == draft.path.resolve()


def test_one_person_decides_no_bound_and_no_category(draft: Draft) -> None:
    written = draft.confirmed(epsilon=1)
    assert not [canary for canary in CANARIES if canary in written]
    assert draft["columns.illness"].value == {"categories": ["cold", "flu"]}
    assert "1 rarer values" in draft["columns.illness"].why
    assert draft["columns.nights"].value == {"low": 0, "high": 10, "whole": True}
    assert draft["columns.cost"].value["high"] <= 500
    assert draft["columns.admitted"].value == {"low": date(2024, 1, 1), "high": date(2024, 12, 31)}


def test_a_person_with_very_many_rows_is_one_unit(tmp_path: Path) -> None:
    """Fifty rows of one patient are one patient's: their value is no category, and no bound."""
    table = pa.table({"patient": [0] * 50 + list(range(1, 101)), "kind": ["odd"] * 50 + ["even"] * 100})
    pq.write_table(table.append_column("size", pa.array([9999] * 50 + list(range(100)))), tmp_path / "a.parquet")
    said = draft_plan(tmp_path / "a.parquet").value.said
    assert said["columns.kind"] == {"categories": ["even"]}
    assert said["columns.size"]["high"] <= 100
    rows = draft_plan(tmp_path / "a.parquet", unit="row").value.said
    assert rows["columns.kind"] == {"categories": ["even", "odd"]}


def test_texts_that_name_people_are_never_proposed(draft: Draft) -> None:
    assert draft["columns.email"].value is None
    assert "name people" in draft["columns.email"].why
    assert "@" not in draft.confirmed(epsilon=1)


def test_many_different_texts_are_never_proposed(tmp_path: Path) -> None:
    table = pa.table({"what": [f"value {place % 300}" for place in range(30_000)]})
    pq.write_table(table, tmp_path / "a.parquet")
    found = draft_plan(tmp_path / "a.parquet").value["columns.what"]
    assert found.value is None
    assert all(choice is None or "categories" not in choice for choice in found.choices)


def test_units_are_found_by_name_and_rows_are_always_a_choice(draft: Draft) -> None:
    unit = draft["unit.column"]
    assert unit.value == "patient_id"
    assert "row" in unit.choices
    assert "300 different values" in unit.why
    assert (draft["unit.max_groups"].value, draft["unit.max_rows_per_group"].value) == (3, 2)


def test_another_unit_is_another_look_and_keeps_what_was_said(draft: Draft) -> None:
    changed = draft.answered("title", "Stays of 2024").answered("unit.column", "row")
    assert changed["title"].value == "Stays of 2024"
    assert changed["unit.column"].value == "row"
    assert "unit.max_groups" not in changed.said
    assert "max_groups" not in changed.confirmed(epsilon=1)


def test_no_epsilon_is_ever_proposed(draft: Draft) -> None:
    assert not [field for field in draft.said if "epsilon" in field or "delta" in field]
    with pytest.raises(TypeError):
        draft.confirmed()  # type: ignore[call-arg]
    for wrong in ({"epsilon": 0}, {"epsilon": -1}, {"epsilon": 1, "lifetime_epsilon": 0}):
        with pytest.raises(InvalidParameter):
            draft.confirmed(**wrong)


def test_a_delta_needs_a_lifetime_budget_that_holds_a_release(draft: Draft) -> None:
    with pytest.raises(InvalidParameter, match="lifetime"):
        draft.confirmed(epsilon=1, delta=1e-6)


def test_the_file_says_that_it_is_public_now(draft: Draft) -> None:
    written = draft.confirmed(epsilon=1)
    assert "public now" in written.split("[unit]")[0]
    assert "Left out" in written


def test_the_schedule_takes_the_latest_kind_of_date(draft: Draft) -> None:
    assert draft["schedule.every"].value == "once"
    assert set(draft["schedule.column"].choices) == {"admitted", "noted", None}
    assert draft["schedule.first"].value == date(2024, 1, 1)
    with pytest.raises(InvalidParameter, match="one of"):
        draft.answered("schedule.every", "fortnight")


def test_names_of_any_letters_come_back_as_they_are(tmp_path: Path) -> None:
    odd = 'we"ird \\ n\u00e4me #1'
    path = tmp_path / "odd data.parquet"
    pq.write_table(pa.table({odd: ["a'b", 'c"d'] * 50, "x]": [0.5, 1.5] * 50}), path)
    plan = tmp_path / "plan.toml"
    plan.write_text(draft_plan(path).value.confirmed(epsilon=1), encoding="utf-8")
    columns = check(read_release_plan(plan)).plan.policy.tables["data"].columns
    assert columns[odd].facts.members == ("a'b", 'c"d')
    assert "x]" in columns


def test_few_rows_propose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    csv.write_csv(stays().slice(0, 15), path)
    draft = draft_plan(path, unit="row").value
    columns = {field: value for field, value in draft.said.items() if field.startswith("columns.")}
    assert set(map(json.dumps, columns.values())) == {"null"}
    assert draft["publish.groupings"].value == [[]]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.parquet", None, {}),
        ("broken.parquet", b"secret 1234", {}),
        ("notes.txt", b"secret 1234", {}),
        ("empty.csv", b"", {}),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_value(tmp_path: Path, name: str, content: Any, said: Any) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidParameter) as refused:
        draft_plan(tmp_path / name, **said)
    assert "1234" not in str(refused.value)


def test_wrong_names_are_refused_with_the_right_ones(draft: Draft, file: Path) -> None:
    with pytest.raises(InvalidParameter, match="patient_id"):
        draft_plan(file, unit="patientid")
    with pytest.raises(InvalidParameter, match=r"columns\.cost"):
        draft.answered("columns.costs", None)
