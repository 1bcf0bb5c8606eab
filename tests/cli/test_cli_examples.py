"""The examples in the help of every command run, answer as their schema says, and are those of the documentation."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest
from cli_folder import Ran
from cli_tree import commands, examples_in, read_commands
from jsonschema import Draft202012Validator, validate

from discreet.cli.command_runner import run
from discreet.cli.schemas import ANSWERS, schema_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "cli.md"
SCHEMAS = ROOT / "docs" / "schema" / "cli"
# What others need, and after what a plan must be changed.
FIRST, LAST = ("data copy", "init"), ("budget raise", "ledger move", "user disable")
NO_JSON = ("shell", "mcp")  # One is for people, and the other speaks a protocol: a program asks with `query`.
HELLO = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",\
"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}\n'
GIVEN = {"mcp": HELLO, "shell": "\\budget\n"}  # what those are told that sit and wait
# What takes long, or is done for good, is run with --json only; for people only the last step differs.
ONCE = ("budget raise", "data copy", "demo", "init", "key new", "ledger export", "plan dummy")
ONCE += (
    "profile",
    "attack",
    "audit",
    "synth",
    "ledger release",
    "ledger reopen",
    "ledger move",
    "user",
    "token",
    "approve",
    "backup",
)
NAMES = sorted(commands(), key=lambda name: (name in LAST, name not in FIRST, name != FIRST[0]))


def told(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> Ran:
    capfd.readouterr()
    code = run(arguments)
    return Ran(int(code), *capfd.readouterr())


@cache
def helps() -> dict[str, list[list[str]]]:
    """The examples in the help of every command."""
    found = {}
    for name in NAMES:
        with redirect_stdout(io.StringIO()) as text:
            assert run([*name.split(), "--help"]) == 0
        found[name] = examples_in(text.getvalue())
    assert [name for name, examples in found.items() if not examples] == []
    return found


@pytest.mark.long
def test_every_command_has_its_example_which_runs_and_answers_by_its_schema(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    for name, examples in helps().items():
        for example in examples:
            if name in ("ledger release", "ledger reopen"):
                fail_a_read()
            if name in ("approve accept", "approve decline"):
                let_wait(example[2])
            assert example[: len(name.split())] == name.split()
            if name not in NO_JSON:
                check(name, example, True, capfd)
            if name not in ONCE and name.split()[0] not in ONCE:
                monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GIVEN.get(name, "").encode())))
                check(name, example, False, capfd)


def fail_a_read() -> None:
    """Let a read of ana's fail, under charge 40 if there is none of this number yet."""
    from discreet.cli.policies import open_ledger
    from discreet.ledger.charge_record import ReadClaim
    from discreet.privacy import PureDP, Relation

    facts = {"relation": Relation.ADD_REMOVE, "purpose": "a failure", "principal": "ana"}
    with open_ledger(Path("plan.toml"), must_exist=True) as ledger:
        while len(ledger.history()) < 39:
            ledger.charge(PureDP("1e-9"), unit=ledger.account.unit, **facts)
        claim = ledger.claim(PureDP("1e-9"), unit=ledger.account.unit, seconds=60, **facts)
        assert isinstance(claim, ReadClaim)
        ledger.fail(claim)


def let_wait(number: str) -> None:
    """Let a release of ana's wait for another custodian."""
    from discreet.server.state_store import opened_state

    state = opened_state(Path("discreet-server.db"))
    with state.changing() as database:
        database.execute(
            "INSERT INTO jobs (id, dataset, name, key, request, cost, state, asked)"
            " VALUES (?, 'visits', 'ana', ?, ?, 'ε = 1', 'awaiting', 1.0)",
            (number, number, json.dumps({"sql": "SELECT COUNT(*) AS n FROM visits", "offer": {"epsilon": "1"}})),
        )
        database.execute(
            "INSERT INTO approvals (job, dataset, name, epsilon, why, state, asked, until, bound)"
            " VALUES (?, 'visits', 'ana', '1', 'above the limit', 'awaiting', 1.0, 4e9, '')",
            (number,),
        )
    state.close()


def check(name: str, example: list[str], as_json: bool, capfd: pytest.CaptureFixture[str]) -> None:
    ran = told([*example, *(["--json"] if as_json else [])], capfd)
    assert ran.code == 0, f"{example}: {ran.err}"
    assert ran.out.strip()
    if as_json:
        validate(json.loads(ran.out), schema_of(name))


def test_every_command_takes_json_and_has_a_published_schema():
    for name, command in commands().items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--json" in options) is (name not in NO_JSON), name
    assert set(ANSWERS) == {name for name in commands() if name not in NO_JSON} | {"error"}
    assert {file.name for file in SCHEMAS.iterdir()} == {f"{name.replace(' ', '-')}.schema.json" for name in ANSWERS}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_published_schema_is_that_of_the_answers(name):
    """If this fails, `python scripts/make_cli_schemas.py` writes them again."""
    published = json.loads((SCHEMAS / f"{name.replace(' ', '-')}.schema.json").read_text())
    assert published == schema_of(name)
    Draft202012Validator.check_schema(published)


def test_a_schema_refuses_what_it_does_not_name():
    good = {"discreet": "1", "python": "3"}
    validate(good, schema_of("version"))
    for wrong in (good | {"more": 1}, {"discreet": "1"}, good | {"python": 3}):
        assert not Draft202012Validator(schema_of("version")).is_valid(wrong)


def test_the_documentation_shows_the_same_commands(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    shown = {tuple(command) for block in blocks for command in read_commands(block)}
    assert shown == {tuple(example) for examples in helps().values() for example in examples}


def test_the_documentation_has_every_exit_code_with_its_meaning():
    from discreet.cli.exits import MEANINGS

    text = PAGE.read_text()
    for code, meaning in MEANINGS.items():
        assert f"| {int(code)} | {meaning} |" in text
