"""`discreet source`, and policies whose tables are in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_cluster import Cluster
from system_parts import needs_postgres
from typer.testing import CliRunner

import discreet as dp
from discreet.cli.app import app

POLICY = """
dataset = "clinic"
ledger = "clinic.ledger"
[unit]
column = "who"
max_groups = 1
max_rows_per_group = 10
[budget]
epsilon = 100
[tables.visits.postgres]
table = "public.visits"
dsn_env = "CLINIC_DSN"
[tables.visits.columns]
age = { low = 0, high = 120 }
"""
SECRET = "S3cret-never-told"


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.stdout


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    return file


def test_prepare_writes_statements_and_runs_none() -> None:
    code, text = run("source", "prepare", "postgres", "public.visits", 'public."my table"', "--role", "reader")
    assert code == 0
    assert 'GRANT SELECT ON "public"."visits" TO "reader";' in text
    assert 'GRANT SELECT ON "public"."my table" TO "reader";' in text
    assert 'CREATE ROLE "reader" LOGIN NOSUPERUSER' in text


@pytest.mark.parametrize(
    "words",
    [
        ("mysql", "t"),
        ("postgres", "a;b"),
        ("postgres", "t", "--role", "pg_x"),
        ("postgres", "t", "--role", 'x"; DROP TABLE t'),
        ("postgres", "t", "u", "--columns", "a"),
    ],
)
def test_prepare_refuses_what_it_cannot_write(words: tuple[str, ...]) -> None:
    assert run("source", "prepare", *words)[0] != 0


def test_columns_are_shown_by_a_view() -> None:
    _, text = run("source", "prepare", "postgres", "visits", "--columns", "who, age", "--json")
    statements = json.loads(text)["statements"]
    assert (
        'CREATE VIEW "discreet"."visits" WITH (security_barrier) AS SELECT "who", "age" FROM "public"."visits"'
        in statements
    )
    assert not any("GRANT" in one and '"public"' in one for one in statements)


def test_the_address_is_not_in_the_policy_and_missing_where_it_should_be(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLINIC_DSN", raising=False)
    with pytest.raises(dp.InvalidParameter, match="environment variable CLINIC_DSN"):
        dp.Session.from_policy(policy, principal="me")
    file = tmp_path / "clinic.dsn"
    file.write_text(f"postgresql://nobody:{SECRET}@127.0.0.1:1/clinic\n")
    policy.write_text(POLICY.replace('dsn_env = "CLINIC_DSN"', 'dsn_file = "clinic.dsn"'))
    assert SECRET not in repr(dp.query.read_policy(policy))
    with pytest.raises(dp.Refused, match="cannot be reached"):
        dp.Session.from_policy(policy, principal="me")


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ('dsn_env = "CLINIC_DSN"\n', ""),
        ('dsn_env = "CLINIC_DSN"', 'dsn_env = "A"\ndsn_file = "b"'),
        ('table = "public.visits"', 'table = "a;b"'),
        ("[tables.visits.postgres]", 'tables.visits.source = "a.csv"\n[tables.visits.postgres]'),
    ],
)
def test_a_wrong_place_is_refused_with_its_line(policy: Path, said: str, instead: str) -> None:
    policy.write_text(POLICY.replace(said, instead))
    with pytest.raises(dp.InvalidParameter):
        dp.query.read_policy(policy)


@pytest.fixture
def clinic(postgres_cluster: Cluster) -> Iterator[str]:
    with postgres_cluster.database() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                b"CREATE TABLE visits AS SELECT n % 40 AS who, n % 100 AS age FROM generate_series(1, 400) n"
            )
        yield dsn


@needs_postgres
def test_a_policy_asks_a_table_in_postgres(clinic: str, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC_DSN", clinic)
    code, text = run(
        *("query", "SELECT COUNT(*) AS n FROM visits", "--policy", str(policy), "--epsilon", "100"),
        *("--principal", "me", "--max-epsilon", "100", "--json"),
    )
    assert code == 0, text
    assert any(str(near) in text for near in range(396, 405))  # Noise of 5 has a chance of e^-50.


@needs_postgres
def test_check_tells_what_is_open(clinic: str, policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLINIC_DSN", clinic)
    code, text = run("source", "check", "--policy", str(policy), "--json")
    found = {one["name"]: one["ok"] for one in json.loads(text)["checks"]}
    assert code != 0
    assert found["visits: columns"]
    assert not found["visits: powers"]


def test_check_of_a_policy_without_databases_finds_none_open(policy: Path) -> None:
    head, tail = POLICY.split("[tables.visits.postgres]")
    policy.write_text(f'{head}[tables.visits]\nsource = "a.csv"\n[tables.visits.columns]{tail.split("columns]")[1]}')
    code, text = run("source", "check", "--policy", str(policy))
    assert code == 0
    assert "no table of this policy is in one" in text
