"""Whatever goes wrong, no value of the data gets out, and no statement of a stranger reaches the database."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from cli_folder import POLICY, Ran

from discreet.query.workers.worker_engine import WorkerEngine

ESCAPES = Path(__file__).parents[1] / "query" / "parse" / "escapes.txt"
STATEMENTS = [line for line in ESCAPES.read_text().splitlines() if line and not line.startswith("#")]
VISITS = (files("discreet") / "data" / "visits.csv").read_text(encoding="utf-8").rstrip("\n")
CANARY = "canary-5f2e9c"
OFFER = ("--policy", "policy.toml", "--epsilon", "0.5", "--max-epsilon", "1")


def poisoned(folder: Path) -> None:
    """Put a value that is nowhere else into every column of the table, also where a number should be."""
    lines = (folder / "visits.csv").read_text().splitlines()
    row = ",".join([CANARY] * len(lines[0].split(",")))
    (folder / "visits.csv").write_text("\n".join([lines[0], row, *lines[1:40], row]) + "\n")


@pytest.mark.long
def test_escapes_are_all_refused_before_the_database_sees_them(folder, discreet, monkeypatch, capfd):
    """All in one sitting, and some of them as commands of their own."""

    def never(*_, **__):
        raise AssertionError("an engine was asked")

    monkeypatch.setattr(WorkerEngine, "run", never)
    monkeypatch.setattr(WorkerEngine, "run_all", never)
    for statement in STATEMENTS[::12]:
        ran = discreet("query", *OFFER, "--", statement)
        assert (ran.code, ran.out) == (3, ""), statement
    from discreet.cli.policies import open_session
    from discreet.cli.query_support import TypedOffer
    from discreet.cli.repl import Sitting

    with open_session(Path("policy.toml"), principal="me") as session:
        sitting = Sitting(session, TypedOffer(epsilon="0.5"), principal="me", max_epsilon="1", at_delta=None)
        codes = {statement: int(sitting.hear(statement)) for statement in STATEMENTS if not statement.startswith("\\")}
        assert session.spent.charges == 0
    assert set(codes.values()) == {3}, [statement for statement, code in codes.items() if code != 3]


FAILING: list[tuple[str, ...]] = [
    ("query", "SELECT age FROM visits", *OFFER),
    ("query", "SELECT COUNT(*) AS n FROM nowhere", *OFFER),
    ("query", "SELECT SUM(satisfied) AS n FROM visits", *OFFER),
    ("query", "SELECT COUNT(*) AS n FROM visits WHERE clinic = 1", *OFFER),
    ("query", "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", *OFFER[:-2]),
    ("query", "SELECT satisfied, COUNT(*) AS n FROM visits GROUP BY satisfied", *OFFER),
    ("explain", "SELECT satisfied FROM visits", *OFFER[:4]),
    ("query", "SELECT COUNT(*) AS n FROM visits", *OFFER[:2], "--epsilon", "99", "--max-epsilon", "99"),
    ("ledger", "verify", "--policy", "visits.csv"),
    ("budget", "--policy", "visits.csv"),
    ("plan", "check", "visits.csv"),
    ("release", "visits.csv", "--max-epsilon", "1"),
    ("bundle", "verify", "visits.csv"),
    ("doctor", "--policy", "visits.csv"),
]


@pytest.mark.parametrize("arguments", FAILING, ids=lambda arguments: " ".join(arguments)[:60])
def test_no_failing_command_tells_a_value(arguments, folder, discreet, monkeypatch):
    poisoned(folder)
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    ran: Ran = discreet(*arguments)
    assert ran.code in (2, 3, 4, 5), ran.err
    assert CANARY not in ran.out + ran.err


def test_a_file_that_breaks_after_the_charge_tells_nothing(folder, discreet):
    """The table is no table any more when it is read: the failure is constant, and the charge stands."""
    poisoned(folder)
    text = POLICY.replace('source = "visits.csv"', 'source = "visits.parquet"')
    (folder / "policy.toml").write_text(text)
    (folder / "visits.parquet").write_bytes(CANARY.encode() * 100)
    ran = discreet("query", "SELECT COUNT(*) AS n FROM visits", *OFFER)
    assert ran.code in (2, 3)
    assert CANARY not in ran.out + ran.err


def test_the_canary_is_really_read(folder, discreet):
    """Otherwise the tests above would say nothing: a listed value of the same table comes out."""
    poisoned(folder)
    text = POLICY.replace('"Station"]', f'"{CANARY}"]')
    (folder / "policy.toml").write_text(text)
    ran = discreet("query", "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", *OFFER)
    assert ran.code == 0
    assert CANARY in ran.out


TRIGGERS = (
    "CAST(satisfied AS INTEGER) > 0", "1 / age > 0", "age / (age - age) > 0", "LN(age) > 1", "SQRT(age - 60) > 1",
    "CAST(satisfied AS DATE) > DATE '2020-01-01'", "satisfied LIKE '%y%'", "CAST(satisfied AS BOOLEAN)",
    "LENGTH(CONCAT(satisfied, satisfied)) > 3", "age % 7 = 1", "error(satisfied)", "EXP(age) > 1",
)  # fmt: skip


def heard(discreet, rows: str) -> tuple[int, str, str]:
    """What a sitting says on a table with these rows more, but for the numbers, which are noise."""
    Path("visits.csv").write_text(VISITS + rows)
    for file in Path().glob("clinics.ledger*"):
        file.unlink()
    questions = [f"SELECT COUNT(*) AS n FROM visits WHERE {trigger};" for trigger in TRIGGERS]
    ran = discreet("shell", *OFFER[:2], "--epsilon", "0.1", "--max-epsilon", "2", given="\n".join(questions))
    return ran.code, re.sub(r"[-\d,.]+|[ ─]+", " ", ran.out), ran.err


def test_one_odd_row_changes_no_word_and_no_code(folder, discreet):
    """A row that trips a careless engine: text for a number, zeros, NaN, and texts that are no dates."""
    odd = f"\n{CANARY},0,{CANARY},nan,inf,{CANARY}\n9,-1e999,x,{CANARY},0,%_'\";--"
    with_it, without = heard(discreet, odd), heard(discreet, "")
    assert with_it == without
    assert CANARY not in str(with_it)
    assert "±" in without[1]  # Most of them are answered.
    assert "refused" in without[2]  # error() is not.
