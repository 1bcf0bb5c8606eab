"""`discreet data erase` names what holds rows and what stays, and touches nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from discreet.errors import InvalidParameter

PLAN_WITH_SERIES = Path(__file__).parents[1] / "vectors" / "formats" / "bundle" / "bundle" / "plan.toml"


def digests(folder: Path) -> dict[str, str]:
    """Hash all files, but for the log that SQLite makes for whoever looks at a database."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(("-shm", "-wal"))]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def places(answer: dict) -> dict[str, dict]:
    return {Path(one["place"]).name: one for one in answer["places"]}


def test_before_a_release_only_the_table_holds_rows(discreet, folder):
    found = discreet("data", "erase", "--policy", "policy.toml", "--json").json
    assert (found["dataset"], found["unit"], found["erased"]) == ("clinics", "row", False)
    told = places(found)
    assert list(told) == ["visits.csv", "clinics.ledger", "clinics.ledger.anchor"]
    assert [one["holds_rows"] for one in told.values()] == [True, False, False]
    assert [one["is_there"] for one in told.values()] == [True, False, False]
    assert told["clinics.ledger"]["holds"].startswith("0 charges, 0 answers")


def test_after_releases_it_counts_entries_lists_bundles_and_changes_no_byte(discreet, folder):
    assert discreet("release", "plan.toml", "--max-epsilon", "1").code == 0
    assert discreet("plan", "dummy", "plan.toml").code == 0
    ask = ("query", "SELECT COUNT(*) AS n FROM visits", "--policy", "policy.toml", "--epsilon", "0.5")
    assert discreet(*ask, "--max-epsilon", "1").code == 0
    before = digests(folder)
    ran = discreet("data", "erase", "--policy", "plan.toml", "--json")
    assert digests(folder) == before, "no file is changed, and nothing is charged"
    told = places(ran.json)
    assert told["clinics.ledger"]["holds"].startswith("2 charges, 2 answers")
    bundles = [name for name in told if name.startswith("clinics-")]
    assert bundles == ["clinics-once", "clinics-once.zip"]
    assert any("DUMMY" in name for name in before), "a dummy is there, and is not listed"
    assert {name for name, one in told.items() if one["holds_rows"]} == {"visits.csv"}


def test_its_first_words_are_that_nothing_was_erased(discreet, folder):
    ran = discreet("data", "erase", "--policy", "policy.toml")
    assert ran.code == 0
    assert ran.out.startswith("clinics: nothing was erased.")


def test_no_table_is_opened(discreet, folder):
    (folder / "visits.csv").unlink()
    told = places(discreet("data", "erase", "--policy", "policy.toml", "--json").json)
    assert told["visits.csv"]["is_there"] is False


def test_a_public_table_holds_nobody_and_a_version_is_named(discreet, folder):
    policy = (folder / "policy.toml").read_text()
    public = '\n[tables.clinics]\nsource = "clinics.csv"\npublic = true\n[tables.clinics.columns]\n'
    columns = 'town = { kind = "text" }\n'
    (folder / "policy.toml").write_text('version = "2026-11"\n' + policy + public + columns)
    found = discreet("data", "erase", "--policy", "policy.toml", "--json").json
    assert [one["holds_rows"] for one in found["places"]] == [True, False, False, False]
    assert "'2026-11'" in found["steps"][1]


def test_a_ledger_does_not_know_where_its_tables_are(discreet, folder):
    from discreet.cli.commands.data import ErasureAnswer

    with pytest.raises(InvalidParameter, match="does not know where its tables are"):
        ErasureAnswer.of(folder / "clinics.ledger")
    assert discreet("data", "erase", "--policy", "clinics.ledger").code == 2


def test_the_state_of_a_running_total_is_listed_as_private(tmp_path):
    from discreet.cli.commands.data import ErasureAnswer

    (tmp_path / "plan.toml").write_bytes(PLAN_WITH_SERIES.read_bytes())
    states = [one for one in ErasureAnswer.of(tmp_path / "plan.toml").places if one.place.endswith(".running")]
    assert [(one.holds_rows, one.is_there) for one in states] == [(True, False)]
    Path(states[0].place).touch()
    again = [one for one in ErasureAnswer.of(tmp_path / "plan.toml").places if one.place.endswith(".running")]
    assert again[0].is_there
