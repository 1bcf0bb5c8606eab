"""The kept share in plans: a table of its own, paid with the release, and told wherever its table is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from publishing_world import JANUARY, SMALLER, world

import discreet as dp
from discreet import release
from discreet.release.plan import ReleasePlan

UNIT = ('column = "patient"', 'column = "patient"\nname = "patient"\nrows_at_most = 2')
SEX = ('FROM stays GROUP BY sex"', 'FROM stays GROUP BY sex"\nkept_share = 0.05')
FAMILY = ('where = "cost > 0"', 'where = "cost > 0"\nkept_share = 0.06')
WARDS = ("delta = 1e-8", "delta = 1e-8\nkept_share = 0.05")


def kept_world(folder: Path, *changes: tuple[str, str]) -> ReleasePlan:
    return world(folder, *SMALLER, UNIT, SEX, FAMILY, WARDS, *changes)


def test_each_table_has_its_kept_share_for_a_part_of_the_release(tmp_path: Path) -> None:
    plan = kept_world(tmp_path)
    priced = release.price(plan)
    kept = {table.plan.kept_of: table for table in priced.tables if table.plan.kept_of is not None}
    assert set(kept) == {"by_sex", "stays", "wards"}
    assert float(kept["by_sex"].amount) == pytest.approx(0.05 * 0.02, rel=1e-4)
    assert float(kept["stays"].amount) == pytest.approx(0.06 * 0.02, rel=1e-4)
    assert kept["wards"].threshold == ""
    assert priced.total <= plan.allowance.rho  # type: ignore[operator]


def test_a_bundle_tells_the_kept_share_and_verifies(tmp_path: Path) -> None:
    plan = kept_world(tmp_path)
    bundle = release.publish(plan, principal="ana", period=JANUARY)
    found = release.verify_bundle(bundle, ledger=plan.policy.ledger)
    assert not found.problems
    known = json.loads((bundle / "dictionary.json").read_text(encoding="utf-8"))
    tables = {table["name"]: table for table in known["tables"]}
    assert "of all patients that have rows here are counted with all their rows" in tables["by_sex"]["notes"][0]
    assert any(note.startswith("corrected totals") for note in tables["by_sex"]["notes"])
    assert tables["stays"]["notes"][0] == tables["stays_by_district"]["notes"][0]  # one choice of rows for all of them
    assert tables["stays"]["notes"][0] != tables["by_sex"]["notes"][0]
    columns = {column["name"]: column for column in tables["stays_kept"]["files"][0]["columns"]}
    assert columns["whole_units"]["unit"] == "patients that are counted with all their rows"
    assert columns["all_cost"]["meaning"].startswith("SUM(cost), of all rows (at most 2 of each patient)")
    page = (bundle / "report.html").read_text(encoding="utf-8")
    assert "are counted with all their rows" in page
    assert release.publish(plan, principal="ana", period=JANUARY) == bundle


def test_a_dummy_shows_what_it_will_look_like(tmp_path: Path) -> None:
    folder = release.dummy(kept_world(tmp_path), tmp_path / "try")
    assert (folder / "tables" / "by_sex_kept.DUMMY.csv").exists() or list((folder / "tables").glob("by_sex_kept*"))


def test_a_kept_share_of_what_nothing_cuts_names_its_line(tmp_path: Path) -> None:
    units = (
        '"SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"',
        '"SELECT COUNT(DISTINCT patient) AS stays FROM stays"',
    )
    plan = world(tmp_path, *SMALLER, ('column = "patient"', 'column = "patient"\nrows_at_most = 2'), units)
    assert release.price(plan).tables
    spoilt = world(tmp_path, *SMALLER, units, ('FROM stays"', 'FROM stays"\nkept_share = 0.05'))
    with pytest.raises(dp.InvalidParameter, match=r"kept_share: no limit can cut rows off 'by_sex'"):
        release.price(spoilt)


def test_plans_without_it_have_the_tables_that_they_had(tmp_path: Path) -> None:
    assert not any(table.kept_of for table in world(tmp_path).tables)


def test_dictionary_and_report_say_what_a_median_or_mode_of_an_empty_group_is(tmp_path: Path) -> None:
    chosen = (
        '"SELECT sex, COUNT(*) AS stays FROM stays GROUP BY sex"',
        '"SELECT sex, MEDIAN(cost) AS middle, MODE(district) AS often FROM stays GROUP BY sex"',
    )
    bundle = release.dummy(world(tmp_path, *SMALLER, chosen), tmp_path / "try")
    known = json.loads((bundle / "dictionary.json").read_text(encoding="utf-8"))
    (table,) = (one for one in known["tables"] if one["name"] == "by_sex")
    meanings = {column["name"]: column["meaning"] for column in table["files"][0]["columns"]}
    page = (bundle / "report.html").read_text(encoding="utf-8")
    for name in ("middle", "often"):
        assert "of a group without values it is arbitrary" in meanings[name]
    assert page.count("of a group without values it is arbitrary") >= 2
