"""A first plan: what is seen stays on the custodian's terminal until it is confirmed; then it is a plan that runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_folder import on_terminal

INIT = ("init", "visits.csv", "--out", "first.toml")


def test_without_a_terminal_nothing_of_the_file_is_told(discreet, folder):
    """Clinics, ages and bounds go into the plan, and nowhere else."""
    ran = discreet(*INIT, "--unit", "patient", "--epsilon", "1", "--yes")
    assert ran.code == 0, ran.err
    assert "reading" not in ran.err, "progress is for terminals"
    plan = (folder / "first.toml").read_text()
    assert "Harbour" in plan
    assert "Harbour" not in ran.out + ran.err
    assert "2,000" not in ran.out + ran.err
    assert "leave out values that fewer than 20 units have, and rows with other values are not counted" in ran.err
    assert "# Lists may not be complete" in plan
    assert discreet("plan", "check", "first.toml").code == 0


def test_it_needs_a_yes_and_an_epsilon_and_overwrites_nothing(discreet, folder):
    assert discreet(*INIT, "--epsilon", "1").code == 2
    missing = discreet(*INIT, "--yes")
    assert missing.code == 2
    assert "no default" in missing.err
    assert not (folder / "first.toml").exists()
    (folder / "first.toml").write_text("mine")
    assert discreet(*INIT, "--epsilon", "1", "--yes").code == 2
    assert (folder / "first.toml").read_text() == "mine"


@pytest.mark.long
def test_on_a_terminal_each_proposal_is_asked_and_the_whole_confirmed(folder):
    talk = (
        ("NOT PRIVATE", ""),
        ("unit.column = ", "nobody\n"),
        ("there is no column 'nobody'", "patient\n"),
        ("name = ", "clinics\n"),
        ("title = ", "Visits by clinic\n"),
        ("dataset = ", "!\n"),
        ("as ε?", "1\n"),
        ("ever, as ε?", "3\n"),
        ("becomes public. [y/N]", "y\n"),
    )
    ran = on_terminal(*INIT, folder=folder, answers=talk)
    assert ran.code == 0, ran.out
    plan = (folder / "first.toml").read_text()
    assert 'name = "clinics"' in plan
    assert 'title = "Visits by clinic"' in plan
    assert 'column = "patient"' in plan
    assert ran.out.index("NOT PRIVATE") < ran.out.index("unit.column")


def test_what_is_not_confirmed_is_not_written(discreet, monkeypatch):
    monkeypatch.setattr("discreet.cli.draft_support.can_ask", lambda: True)
    ran = discreet(*INIT, "--epsilon", "1", "--lifetime-epsilon", "2", given="!\nn\n")
    assert ran.code == 3
    assert "nothing was written" in ran.err
    assert not Path("first.toml").exists()


def test_progress_tells_the_column_that_is_looked_at(discreet, monkeypatch):
    told: list[str] = []
    monkeypatch.setattr("discreet.cli.output.Working.step", lambda self, stage: told.append(stage))
    assert discreet(*INIT, "--unit", "patient", "--epsilon", "1", "--yes").code == 0
    assert told[0] == "reading the file"
    assert any(stage.startswith("looking at column 2 of ") for stage in told)
    assert max(map(len, told)) <= 40
