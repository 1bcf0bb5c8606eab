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
    assert (draft["unit.max_groups"].value, draft["unit.max_rows_per_group"].value) == (3, 3)


def test_another_unit_is_another_look_and_keeps_what_was_said(draft: Draft) -> None:
    changed = draft.answered("title", "Stays of 2024").answered("unit.column", "row")
    assert changed["title"].value == "Stays of 2024"
    assert changed["unit.column"].value == "row"
    assert "unit.max_groups" not in changed.said
    assert "max_groups" not in changed.confirmed(epsilon=1)


def survey(form: str, folder: Path) -> Path:
    """1,200 people in 400 households: codes with zeros, codes that are reals, rooms, an order, a number of the row."""
    numbers = range(1200)
    table = pa.table(
        {
            "SERIALNO": [f"2019HU{place // 3:05d}" for place in numbers],
            "SPORDER": [place % 3 + 1 for place in numbers],
            "row_number": list(numbers),
            "PUMA": [f"{100 * (place // 3 % 10):05d}" for place in numbers],
            "SEX": [place % 2 + 1 for place in numbers],
            "MAR": [None if place % 11 == 0 else float(place % 5) for place in numbers],
            "rooms": [place % 7 for place in numbers],
            "AGEP": [place % 90 for place in numbers],
            "level": [place % 26 for place in numbers],
        }
    )
    path = folder / f"survey.{form}"
    (pq.write_table if form == "parquet" else csv.write_csv)(table, path)
    return path


@pytest.mark.parametrize("form", ["parquet", "csv"])
class TestCodes:
    """Few whole numbers are codes and codes keep their zeros; what is no amount is never added up."""

    def test_few_whole_numbers_are_categories_and_amounts_are_not(self, form: str, tmp_path: Path) -> None:
        said = draft_plan(survey(form, tmp_path), unit="SERIALNO").value.said
        assert said["columns.SEX"] == {"categories": [1, 2]}
        assert said["columns.MAR"] == {"categories": [0, 1, 2, 3, 4]}
        assert said["columns.SPORDER"] == {"categories": [1, 2, 3]}
        assert said["columns.rooms"] == {"low": 0, "high": 6, "whole": True}
        assert set(said["columns.level"]) == {"low", "high", "whole"}, "26 values are too many for codes"

    @pytest.mark.parametrize("many", [50, 301])
    def test_leading_zeros_are_kept_as_texts(self, form: str, many: int, tmp_path: Path) -> None:
        path = tmp_path / f"zeros.{form}"
        table = pa.table({"area": [f"{place % many:05d}" for place in range(25 * many)]})
        (pq.write_table if form == "parquet" else csv.write_csv)(table, path)
        found = draft_plan(path, unit="row").value["columns.area"]
        listed = {"categories": [f"{place:05d}" for place in range(many)]}
        assert found.value == (listed if many == 50 else None)

    def test_a_few_zeros_make_no_codes_of_numbers(self, form: str, tmp_path: Path) -> None:
        path = tmp_path / f"zeros.{form}"
        table = pa.table({"size": ["007"] * 19 + [str(place) for place in range(10, 2000)]})
        (pq.write_table if form == "parquet" else csv.write_csv)(table, path)
        assert draft_plan(path, unit="row").value["columns.size"].value["whole"]

    def test_tables_count_by_each_code_and_add_up_amounts_only(self, form: str, tmp_path: Path) -> None:
        said = draft_plan(survey(form, tmp_path), unit="SERIALNO").value.said
        assert said["publish.groupings"] == [[], ["SEX"], ["PUMA"], ["SEX", "PUMA"]], "every eleventh MAR is missing"
        assert said["publish.measures"] == {"n": "COUNT(*)", "total_rooms": 'SUM("rooms")'}

    def test_the_plan_says_how_to_label_codes_and_what_else_they_may_be(self, form: str, tmp_path: Path) -> None:
        path = survey(form, tmp_path)
        (tmp_path / "plan.toml").write_text(draft_plan(path, unit="SERIALNO").value.confirmed(epsilon=1))
        plan = read_release_plan(tmp_path / "plan.toml")
        assert check(plan).plan == plan
        comments = [line for line in plan.written.splitlines() if line.startswith("#   ")]
        assert '#   SEX = { categories = [1, 2], labels = { 1 = "what it means" } }' in comments
        assert "#   MAR = { low = 0, high = 4, whole = true }" in comments
        pasted = plan.written.replace("SEX = { categories = [1, 2] }", comments[0].removeprefix("#   "))
        (tmp_path / "plan.toml").write_text(pasted)
        columns = read_release_plan(tmp_path / "plan.toml").policy.tables["survey"].columns
        assert columns["SEX"].labels == ((1, "what it means"),)


class TestLimits:
    """Limits leave most units whole in every table that is proposed, or that somebody is likely to ask for."""

    def planes(self, folder: Path, airports: int) -> Path:
        """60 planes with 300 flights each, from as many airports."""
        numbers = range(18_000)
        table = pa.table(
            {
                "tail": [f"N{place % 60}" for place in numbers],
                "origin": [f"A{place // 60 % airports}" for place in numbers],
            }
        )
        pq.write_table(table, folder / "flights.parquet")
        return folder / "flights.parquet"

    @pytest.mark.parametrize(("airports", "groups"), [(3, 3), (100, 100)])
    def test_the_keys_of_tables_decide_and_else_those_that_may_be_asked(self, airports, groups, tmp_path) -> None:
        draft = draft_plan(self.planes(tmp_path, airports), unit="tail").value
        assert (draft["columns.origin"].value is None) is (airports == 100)
        assert draft["unit.max_groups"].value == groups
        assert draft["unit.max_rows_per_group"].value == 500, "the total counts every plane in one group"
        why = draft["unit.max_rows_per_group"].why
        assert why.endswith("in total 100 %, and in every table of the family" if airports == 3 else "by origin 100 %")
        assert {"unit.max_groups", "unit.max_rows_per_group"} <= set(draft.seen)

    def test_what_a_limit_cuts_is_told_to_the_custodian(self, tmp_path) -> None:
        table = pa.table({"who": [place for place in range(100) for _ in range(1 if place else 901)]})
        pq.write_table(table.append_column("kind", pa.array(["a", "b"] * 500)), tmp_path / "a.parquet")
        draft = draft_plan(tmp_path / "a.parquet", unit="who").value
        assert draft["unit.max_rows_per_group"].value == 1
        assert "in total 10 %" in draft["unit.max_rows_per_group"].why


def test_progress_tells_stages_and_no_value(file: Path) -> None:
    stages: list[str] = []
    draft_plan(file, on_progress=stages.append)
    assert stages[0] == "reading the file"
    assert "looking at column 9 of 9: insured" in stages
    assert not [stage for stage in stages if any(canary in stage for canary in CANARIES)]


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


def test_lists_that_may_lack_values_say_so_and_not_how_many(draft: Draft) -> None:
    """One patient has an illness of their own: whether a list lacks any must not be seen in the plan."""
    assert (draft["columns.illness"].rarer, draft["columns.town"].rarer) == (1, 0)
    text = draft.confirmed(epsilon=1)
    told = next(line for line in text.splitlines() if line.startswith("# values are not counted. Add"))
    assert told.removesuffix(", insured") == "# values are not counted. Add what the official list has: town, illness"
    said = draft.answered("columns.town", {"categories": ["Harbour", "Hill", "Mill", "Quay"]})
    assert "the official list has: illness" in said.confirmed(epsilon=1)


def test_logarithms_are_not_added_up(tmp_path: Path) -> None:
    values = [2.5 + place / 1000 for place in range(400)]
    pq.write_table(pa.table({"person": range(400), "lnhhexp": values, "LogWage": values}), tmp_path / "ln.parquet")
    assert draft_plan(tmp_path / "ln.parquet").value["publish.measures"].value == {"n": "COUNT(*)"}


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
