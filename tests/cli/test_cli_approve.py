"""`discreet approve`: what it refuses, and that a running server takes what it decides."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from discreet.cli.command_runner import run
from discreet.server.state_store import opened_state


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def add(number, name):
        state = opened_state(Path("discreet-server.db"))
        with state.changing() as database:
            database.execute(
                "INSERT INTO jobs (id, dataset, name, key, request, cost, state, asked)"
                " VALUES (?, 'visits', ?, ?, ?, 'ε = 1', 'awaiting', 1.0)",
                (number, name, number, json.dumps({"sql": "SELECT 1", "offer": {}})),
            )
            database.execute(
                "INSERT INTO approvals (job, dataset, name, epsilon, why, state, asked, until, bound)"
                " VALUES (?, 'visits', ?, '1', 'above', 'awaiting', 1.0, 4e9, '')",
                (number, name),
            )
        state.close()

    return add


def state_of(number):
    state = opened_state(Path("discreet-server.db"))
    found = state.row("SELECT state FROM jobs WHERE id = ?", number)["state"]
    said = [row["who"] for row in state.rows("SELECT who FROM decisions WHERE about = ?", number)]
    state.close()
    return found, said


def test_a_decision_is_logged_under_the_name_of_the_operating_system(waiting, capfd):
    waiting("a" * 32, "ana")
    assert run(["approve", "list", "--json"]) == 0
    (listed,) = json.loads(capfd.readouterr().out)["waiting"]
    assert (listed["id"], listed["who"], listed["epsilon"]) == ("a" * 32, "ana", "1")
    assert run(["approve", "accept", "a" * 8]) == 0
    assert state_of("a" * 32) == ("queued", [f"command line ({getpass.getuser()})"])
    assert run(["approve", "decline", "a" * 32, "--reason", "late"]) == 2  # It was decided.


def test_an_account_of_the_same_name_approves_nothing_of_its_own(waiting, monkeypatch):
    waiting("b" * 32, "Ana")
    monkeypatch.setattr(getpass, "getuser", lambda: "ana")
    assert run(["approve", "accept", "b" * 32]) == 3
    assert state_of("b" * 32) == ("awaiting", [])


@pytest.mark.parametrize("number", ["c", "%" * 8, "d" * 32, ""])
def test_what_does_not_name_one_release_is_refused(waiting, number):
    waiting("c" * 32, "ana")
    assert run(["approve", "accept", number]) == 2
    assert state_of("c" * 32)[0] == "awaiting"


def test_a_beginning_of_two_releases_names_none(waiting):
    waiting("e" * 31 + "1", "ana")
    waiting("e" * 31 + "2", "ana")
    assert run(["approve", "accept", "e" * 8]) == 2
