"""Every way to fail has its exit code, says where, why and how to mend it, and tells nothing of the data."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer
from cli_folder import ASK, POLICY, environment, prepare
from jsonschema import validate

from discreet import errors
from discreet.cli.command_runner import told
from discreet.cli.exits import EXITS, MEANINGS, Code, code_of
from discreet.cli.schemas import schema_of


def test_the_codes_are_those_that_are_promised():
    assert {code.name: int(code) for code in Code} == {
        "OK": 0, "USAGE": 2, "REFUSED": 3, "EXHAUSTED": 4, "NOT_AUTHORISED": 5, "NOT_CHECKED": 6, "BUG": 70,
        "INTERRUPTED": 130,
    }  # fmt: skip
    assert set(MEANINGS) == set(Code)


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_of_the_library_has_a_code_that_is_no_bug(name):
    assert any(kind in EXITS for kind in getattr(errors, name).__mro__)
    assert EXITS.get(getattr(errors, name), Code.REFUSED) is not Code.BUG


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidParameter("x"), 2),
        (FileNotFoundError(2, "No such file", "a"), 2),
        (errors.Refused("x"), 3),
        (errors.AnswerFailed(), 3),
        (errors.LedgerDamaged("x"), 3),
        (errors.LedgerUnavailable("x"), 3),
        (typer.Abort(), 3),
        (OSError(28, "No space left"), 3),
        (errors.BudgetExceeded(asked=1, left=0), 4),
        (errors.NotAuthorised("x"), 5),
        (PermissionError(13, "Permission denied", "a"), 5),
        (ValueError("x"), 70),
        (AssertionError("x"), 70),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: value if isinstance(value, int) else type(value).__name__,
)
def test_each_error_ends_with_its_code(error, code):
    assert code_of(error) == code


def test_a_usage_error_is_2_and_nothing_is_spent(discreet, folder):
    for arguments in (["nonsense"], ["query"], ["query", "SELECT 1", "--policy", "missing.toml"], [*ASK[:4], "--what"]):
        ran = discreet(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("usage: ")
    assert not (folder / "clinics.ledger").exists()


def test_a_bad_policy_names_its_line(discreet, folder):
    Path("policy.toml").write_text(POLICY.replace("epsilon = 4", "epsilom = 4"))
    ran = discreet(*ASK)
    assert ran.code == 2
    assert "policy.toml, line 8" in ran.err
    assert "Did you mean epsilon?" in ran.err


def test_a_refused_question_is_3_and_has_its_place(discreet):
    ran = discreet("query", "SELECT age FROM visits", *ASK[2:], "--max-epsilon", "1")
    assert ran.code == 3
    assert "line 1, column 8" in ran.err
    assert "way out" in ran.err


def test_a_budget_that_does_not_hold_the_price_is_4(discreet):
    ran = discreet(*ASK[:-1], "3.5", "--max-epsilon", "9")
    assert ran.code == 4
    assert "discreet budget raise" in ran.err
    assert discreet("budget", "--policy", "policy.toml", "--json").json["charges"] == 0


AS_NOBODY = """
import os, sys
from discreet.cli.command_runner import run
arguments = sys.argv[1:]
assert run(["explain", *arguments, "--epsilon", "0.5"]) == 0  # Loads what is needed while it still may.
if os.geteuid() == 0:
    os.setegid(65534), os.seteuid(65534)
sys.exit(run(["query", *arguments, "--epsilon", "0.5", "--max-epsilon", "1", "--policy", "shut.toml"]))
"""


@pytest.mark.long
def test_what_the_system_forbids_is_5():
    """A ledger in a folder of somebody else."""
    with tempfile.TemporaryDirectory() as place:
        folder = prepare(Path(place))
        folder.chmod(0o755)
        (folder / "shut").mkdir(mode=0o500)
        (folder / "shut.toml").write_text(POLICY.replace("clinics.ledger", "shut/clinics.ledger"))
        script = [sys.executable, "-c", AS_NOBODY, ASK[1], "--policy", "policy.toml"]
        ran = subprocess.run(script, cwd=folder, env=environment(), capture_output=True, text=True, timeout=120)
    assert ran.returncode == 5, ran.stderr
    assert "may not" in ran.stderr


def test_errors_are_json_where_json_is_asked_for(discreet):
    for arguments, code in (
        (("query", "SELECT age FROM visits", *ASK[2:], "--max-epsilon", "1", "--json"), 3),
        ((*ASK, "--json"), 2),
        (("nonsense", "--json"), 2),
    ):
        ran = discreet(*arguments)
        told_why = json.loads(ran.err)  # Nothing else is said to a program.
        validate(told_why, schema_of("error"))
        assert (ran.code, told_why["error"]["code"], ran.out) == (code, code, "")


def test_a_bug_says_nothing_of_its_error(monkeypatch, discreet):
    class Broken:
        @classmethod
        def installed(cls):
            raise ValueError("secret-4711")

    monkeypatch.setattr("discreet.cli.commands.version.Version", Broken)
    for debug, places in (("", False), ("1", True)):
        monkeypatch.setenv("DISCREET_DEBUG", debug)
        ran = discreet("version")
        assert ran.code == 70
        assert "secret-4711" not in ran.out + ran.err
        assert ("test_cli_exits.py" in ran.err and "ValueError" in ran.err) is places
    assert told(ValueError("secret-4711")) == told(KeyError("other"))


def test_what_could_steer_a_terminal_is_replaced():
    assert "\x1b" not in told(errors.InvalidParameter("a\x1b[2Jb"))
