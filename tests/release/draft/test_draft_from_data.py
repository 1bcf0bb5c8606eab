"""What a draft reads from the data is marked in the plan, and no bundle of it promises more than it keeps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import InvalidParameter
from discreet.release import check, draft_plan, dummy, publish, read_release_plan, verify_bundle
from discreet.release.bundle.verification import explain_bundle

SEEN = ("columns.diagnosis", "columns.salary", "unit.max_groups", "unit.max_rows_per_group")


def people(*, without: str = "") -> pa.Table:
    """320 people with a row each: twenty have an illness that nobody else has, twenty earn far more than the others."""
    rows = []
    for number in range(1, 321):
        diagnosis = "HIV" if 281 <= number <= 300 else ("cold", "flu")[number % 2]
        salary = 900_000 + number if number > 300 else 20_000 + 200 * number
        rows.append({"person_id": f"p{number}", "diagnosis": diagnosis, "salary": salary})
    return pa.Table.from_pylist([row for row in rows if row["person_id"] != without])


def plan_of(folder: Path, table: pa.Table, **answers: object) -> str:
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / "people.parquet")
    draft = draft_plan(folder / "people.parquet").value
    for field, value in answers.items():
        draft = draft.answered(field.replace("__", "."), value)
    text = draft.confirmed(epsilon=1)
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    return text


def marked(text: str) -> list[str]:
    return re.findall(r'^  "(.*)",$', text, re.MULTILINE)


@pytest.mark.parametrize(
    ("without", "field", "before", "after"),
    [("p300", "diagnosis", '"HIV"', None), ("p320", "salary", "high = 1000000", "high = ")],
)
def test_one_person_changes_a_draft_and_the_field_is_marked(tmp_path, without, field, before, after):
    """The look is exact: without one of the twenty a category is gone, or a bound is another."""
    with_all, with_one_less = plan_of(tmp_path / "d", people()), plan_of(tmp_path / "e", people(without=without))
    assert before in with_all
    assert before not in with_one_less
    assert after is None or after in with_one_less
    for text in (with_all, with_one_less):
        assert f"tables.people.columns.{field}" in marked(text)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seen")
    plan_of(folder, people())
    return publish(read_release_plan(folder / "plan.toml"), principal="ana")


class TestBundle:
    """Every text of the bundle names what is not protected, and ticks no box for it."""

    FIELDS = ("tables.people.columns.diagnosis", "tables.people.columns.salary", "unit.max_groups")

    @pytest.mark.parametrize("name", ["guarantee.md", "checklist.md", "README.txt", "report.html", "registry.json"])
    def test_each_text_names_the_fields(self, released, name):
        text = (released / name).read_text().replace("\\_", "_").replace("<wbr>", "")
        for field in self.FIELDS:
            assert field in text, field

    @pytest.mark.parametrize("name", ["guarantee.md", "checklist.md", "README.txt", "report.html"])
    def test_each_text_says_that_one_person_can_be_visible(self, released, name):
        text = (released / name).read_text().replace("\\_", "_").replace("\u00a0", " ")
        assert "person_id can be visible in" in text

    def test_the_guarantee_tells_the_values_and_excepts_them_from_the_formula(self, released):
        text = (released / "guarantee.md").read_text()
        not_protected = text.partition("## What is not protected")[2].partition("\n## ")[0]
        assert "HIV" in not_protected
        assert "1000000" in not_protected
        assert "computed from the data, but for the fields of the plan that were read from the data" in text
        assert "the listed groups, bounds" not in text

    def test_the_report_excepts_them_where_it_promises(self, released):
        text = (released / "report.html").read_text().replace("\u00a0", " ")
        assert ", but for what was read from the data for the plan" in text

    def test_no_box_is_ticked_for_what_was_read(self, released):
        lines = (released / "checklist.md").read_text().splitlines()
        for subject in ("**Sensitivity**", "Parameters tuned on private data", "xact facts about private rows"):
            (found,) = (line for line in lines if subject in line)
            assert found.startswith("- [ ]"), found

    def test_the_registry_lists_them_as_unprotected(self, released):
        entry = json.loads((released / "registry.json").read_text())["deployment"]
        assert "tables.people.columns.diagnosis" in entry["dp_variant"]["unprotected_quantities"]
        assert "never read from the data" not in json.dumps(entry)

    def test_explaining_the_bundle_repeats_what_no_number_covers(self, released):
        told = str(explain_bundle(released))
        assert "This does not cover what was read from the data, without noise, when the plan was drafted" in told
        assert all(field in told for field in self.FIELDS)

    def test_it_is_verified_all_the_same(self, released):
        assert verify_bundle(released, ledger=released.parent.parent / "people.ledger").outcome == "verified"

    def test_a_plan_without_marks_says_none_of_it(self, released, tmp_path):
        text = (released / "plan.toml").read_text()
        (tmp_path / "plan.toml").write_text(re.sub(r"(?s)^from_data = \[.*?^\]\n", "", text, flags=re.MULTILINE))
        bundle = dummy(read_release_plan(tmp_path / "plan.toml"), tmp_path)
        assert "- [x] **Sensitivity**" in (bundle / "checklist.md").read_text()
        assert "was drafted" not in (bundle / "guarantee.md").read_text()


class TestMarks:
    def test_what_the_custodian_says_is_not_marked(self, tmp_path):
        said = {"columns__salary": {"low": 0, "high": 500_000}, "unit__max_groups": 3}
        found = marked(plan_of(tmp_path, people(), **said))
        assert "tables.people.columns.salary" not in found
        assert "unit.max_groups" not in found
        assert "tables.people.columns.diagnosis" in found

    def test_taking_what_is_proposed_is_not_saying_it(self, tmp_path):
        pq.write_table(people(), tmp_path / "people.parquet")
        draft = draft_plan(tmp_path / "people.parquet").value
        for field in SEEN:
            draft = draft.answered(field, draft[field].value)
        assert set(SEEN) <= set(draft.seen)

    def test_another_choice_that_was_read_from_the_rows_stays_marked(self, tmp_path):
        pq.write_table(people(), tmp_path / "people.parquet")
        draft = draft_plan(tmp_path / "people.parquet").value
        for choice in draft["columns.salary"].choices:
            is_seen = isinstance(choice, dict) and not choice.keys() & {"kind"}
            assert ("columns.salary" in draft.answered("columns.salary", choice).seen) is is_seen

    def test_a_choice_beside_no_proposal_is_marked(self, tmp_path):
        """Of a column that seems to name people nothing is proposed, and its values are offered all the same."""
        table = people().rename_columns({"diagnosis": "surname"})
        pq.write_table(table.append_column("ward_id", table["salary"]), tmp_path / "people.parquet")
        draft = draft_plan(tmp_path / "people.parquet").value
        for field in ("columns.surname", "columns.ward_id"):
            assert draft[field].value is None
            (choice, *_) = (one for one in draft[field].choices if one and not one.keys() & {"kind"})
            assert field in draft.answered(field, choice).seen
            assert field not in draft.answered(field, {"low": 0, "high": 7}).seen

    def test_a_choice_that_is_made_again_is_marked(self, tmp_path):
        pq.write_table(people(), tmp_path / "people.parquet")
        draft = draft_plan(tmp_path / "people.parquet").value
        for field in ("columns.diagnosis", "columns.salary"):
            offered = draft[field].value
            again = draft.answered(field, {"kind": "text"}).answered(field, offered)
            assert field in again.seen
            assert field in again.answered("unit.column", "row").seen
        known = {name: draft["columns.salary"].value[name] for name in ("low", "high")}
        assert "columns.salary" in draft.answered("columns.salary", known).seen, "what it is, is not what was read"

    def test_a_number_or_a_list_that_was_read_is_marked_when_it_is_said_again(self, tmp_path):
        pq.write_table(people(), tmp_path / "people.parquet")
        draft = draft_plan(tmp_path / "people.parquet").value
        for field in ("unit.max_groups", "unit.max_rows_per_group", "publish.groupings"):
            read = draft[field].value
            other = [] if isinstance(read, list | tuple) else read + 7
            assert (field in draft.seen, field in draft.answered(field, other).seen) == (True, False)
            assert field in draft.answered(field, other).answered(field, read).seen

    def test_a_part_of_the_categories_that_were_read_is_marked(self, tmp_path):
        pq.write_table(people(), tmp_path / "people.parquet")
        draft = draft_plan(tmp_path / "people.parquet").value
        field = "columns.diagnosis"
        assert field in draft.answered(field, {"categories": draft[field].value["categories"][:2]}).seen
        assert field not in draft.answered(field, {"categories": ["plague"]}).seen

    def test_a_choice_of_an_earlier_look_stays_marked_though_it_is_offered_no_more(self, tmp_path):
        """Twenty rows have an illness, and nineteen people: whoever protects people is not offered it."""
        table = people(without="p300")
        more = pa.Table.from_pylist([{"person_id": "p299", "diagnosis": "HIV", "salary": 20_000}], schema=table.schema)
        pq.write_table(pa.concat_tables([table, more]), tmp_path / "people.parquet")
        draft, field = draft_plan(tmp_path / "people.parquet", unit="row").value, "columns.diagnosis"
        offered = draft[field].value
        assert "HIV" in offered["categories"]
        by_person = (
            draft.answered(field, {"kind": "text"}).answered(field, offered).answered("unit.column", "person_id")
        )
        assert by_person[field].value == offered
        assert offered not in by_person[field].choices
        assert field in by_person.seen

    def test_numbers_are_told_as_the_plan_has_them(self, tmp_path):
        table = people()
        cost = pa.array([value / 8 for value in table["salary"].to_pylist()])
        plan_of(tmp_path, table.append_column("cost", cost))
        (fact,) = (one for one in read_release_plan(tmp_path / "plan.toml").from_data if one.field.endswith(".cost"))
        assert re.fullmatch(r"\{ low = [\d.]+, high = [\d.]+ \}", fact.value)

    def test_a_mark_of_nothing_is_refused(self, tmp_path):
        text = plan_of(tmp_path, people()).replace('"unit.max_groups"', '"unit.max_group"')
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(InvalidParameter, match=r"plan\.toml, line \d+, from_data.*no unit\.max_group"):
            read_release_plan(tmp_path / "plan.toml")

    def test_all_marks_of_nothing_are_told_at_once_with_their_lines(self, tmp_path):
        text = plan_of(tmp_path, people()).replace("from_data = [\n", 'from_data = [\n  "publish.a",\n  "publish.b",\n')
        (tmp_path / "plan.toml").write_text(text)
        first = text.splitlines().index('  "publish.a",') + 1
        named = rf"no publish\.a \(line {first}\); publish\.b \(line {first + 1}\): take them off"
        with pytest.raises(InvalidParameter, match=named):
            read_release_plan(tmp_path / "plan.toml")

    def test_the_check_tells_them(self, tmp_path):
        plan_of(tmp_path, people())
        assert "not protected: " in str(check(read_release_plan(tmp_path / "plan.toml")))
