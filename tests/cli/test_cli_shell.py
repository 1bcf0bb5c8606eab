"""A sitting: questions over several lines, commands with a backslash, a limit for all of it, history and completion."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cli_folder import on_terminal

from discreet.cli.repl import history_file, is_whole

SHELL = ("shell", "--policy", "policy.toml", "--epsilon", "0.5")


@pytest.fixture
def sat(discreet):
    """A sitting without a terminal."""
    return lambda *lines, more=(): discreet(*SHELL, *more, given="\n".join(lines))


def test_a_question_goes_on_until_its_semicolon(sat):
    ran = sat("SELECT clinic,", "  COUNT(*) AS n FROM visits", "", "GROUP BY clinic;", more=("--max-epsilon", "1"))
    assert ran.code == 0, ran.err
    assert "Old Mill" in ran.out
    assert "discreet>" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("text", "whole"),
    [("SELECT 1", False), ("SELECT 1;", True), ("SELECT ';", False), ("SELECT ';';", True), (r"\budget", True),
     (r"\explain SELECT", False), (r"\explain SELECT 1 ;  ", True), ("", False)],
)  # fmt: skip
def test_a_semicolon_outside_of_quotes_ends_a_statement(text, whole):
    assert is_whole(text) is whole


def test_the_limit_is_for_the_whole_sitting(sat):
    question = "SELECT COUNT(*) AS n FROM visits;"
    ran = sat(question, question, question, r"\budget", more=("--max-epsilon", "1"))
    assert ran.code == 3
    assert ran.out.count("±") == 4  # Two answers, each with its line about ±.
    assert "spent: 25 % (2 charges, the last ε = 0.5); left: 4 more like it" in ran.out
    assert "this sitting: ε = 1 of 1" in ran.err


def test_without_a_terminal_or_a_limit_nothing_is_spent(sat):
    ran = sat("SELECT COUNT(*) AS n FROM visits;", r"\budget")
    assert ran.code == 2
    assert "spent: nothing" in ran.out


def test_every_word_with_a_backslash_does_what_help_says(sat):
    ran = sat(
        r"\help",
        r"\tables",
        r"\explain SELECT COUNT(*) AS n FROM visits;",
        r"\offer error=20",
        r"\explain SELECT COUNT(*) AS n FROM visits;",
        r"\nonsense",
        r"\offer much",
        r"\quit",
        "SELECT this is never read;",
    )
    assert ran.code == 2
    assert "visits: each row is protected" in ran.out
    assert ran.out.count("price") == 2
    assert "± 20" in ran.out or "± 19" in ran.out
    assert r"there is no \nonsense" in ran.err
    assert "line 1" not in ran.err


@pytest.mark.long
def test_on_a_terminal_it_asks_completes_and_remembers(folder):
    """`vis` and a tab is the table; the second sitting finds the question of the first with an arrow."""
    state = folder / "state"
    talk = (
        ("discreet> ", "SELECT COUNT(*) AS n\n"),
        ("...> ", "FROM visi\t;\n"),
        ("[y/N]", "y\n"),
        ("left: 5 more like it", ""),
        ("discreet> ", "\\budget\n"),
        ("spent: 12.5 % (1 charge", ""),
        ("discreet> ", "SELECT what is begun"),
        ("what is begun", "\x03"),
        ("iscreet> ", "SELECT age FROM visits;\n"),  # The first letter may stand where it stood.
        ("never shown", ""),
        ("discreet> ", "\\quit\n"),
    )
    ran = on_terminal(*SHELL, folder=folder, answers=talk, XDG_STATE_HOME=str(state))
    assert ran.code == 0, ran.out
    history = state / "discreet" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert stat.S_IMODE(history.parent.stat().st_mode) == 0o700
    assert "FROM visits" in history.read_text()
    talk = (("discreet> ", "\x1b[A\x1b[A\n"), ("rows themselves", ""), ("discreet> ", "\\quit\n"))
    again = on_terminal(*SHELL, folder=folder, answers=talk, XDG_STATE_HOME=str(state))
    assert again.code == 0


@pytest.mark.slow
def test_a_sitting_without_a_folder_for_its_history_still_asks(folder):
    (folder / "state").write_text("a file, where a folder should be")
    talk = (("not remembered", ""), ("discreet> ", "\\budget\n"), ("spent: nothing", ""), ("discreet> ", "\\quit\n"))
    ran = on_terminal(*SHELL, folder=folder, answers=talk, XDG_STATE_HOME=str(folder / "state"))
    assert ran.code == 0


def test_history_lives_in_the_state_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "discreet" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert history_file() == Path.home() / ".local" / "state" / "discreet" / "history"
