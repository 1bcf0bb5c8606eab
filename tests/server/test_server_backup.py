"""Copies of the state: whole, checked, and put back on purpose only; what was taken from people does not come back."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from server_world import COUNT, prepare, running
from state_worlds import both_stores, place_of
from system_parts import needs_postgres

from discreet.errors import InvalidParameter, Refused
from discreet.server.accounts import AccountRole, Accounts
from discreet.server.problems import Problem
from discreet.server.state_store import StateDamaged, opened_state
from discreet.server.state_tables import table_names
from discreet.server.watch.backup import check_copy, check_state, make_copy, restore_state

JOB = "INSERT INTO jobs (id, dataset, name, key, request, cost, state, asked) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
SAID = {"reason": "the disk was lost", "by": "test"}


@pytest.fixture(autouse=True)
def anchors(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))


@pytest.fixture
def kind():
    return "file"


@pytest.fixture
def place(kind, tmp_path, request):
    return place_of(kind, tmp_path, request)


def filled(place):
    """People, a token with a cap of which something is used, and a job; return the secrets."""
    state = opened_state(place)
    accounts = Accounts(state)
    invitation = accounts.add("olga", AccountRole.OWNER, (), by="test")
    accounts.add("bot", AccountRole.AGENT, ["one"], by="test")
    token = accounts.new_token("bot", scopes=["release"], datasets=None, cap="3", seconds=60.0, by="test")
    accounts.pay_by(token.split("_")[1], 1)
    with state.changing() as change:
        change.execute(JOB, ("j1", "one", "bot", "k", "{}", "e", "running", 1.5))
    state.close()
    return invitation, token


def everything(place):
    state = opened_state(place)
    found = {table: sorted(map(tuple, state.rows(f"SELECT * FROM {table}")), key=str) for table in table_names()}
    state.close()
    return found


@both_stores
class TestCopies:
    def test_a_copy_has_every_row(self, place, tmp_path):
        filled(place)
        facts = make_copy(place, tmp_path / "copy.db")
        assert (facts.people, facts.jobs, facts.decisions) == (2, 1, 5)
        assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
        assert not (tmp_path / "copy.db.anchor").exists()
        with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            found = {table: sorted(copy.execute(f"SELECT * FROM {table}"), key=str) for table in table_names()}
        assert found == everything(place)
        assert check_copy(tmp_path / "copy.db") == facts

    def test_what_is_there_is_not_written_over(self, place, tmp_path):
        filled(place)
        (tmp_path / "copy.db").write_text("mine")
        with pytest.raises(FileExistsError):
            make_copy(place, tmp_path / "copy.db")
        assert (tmp_path / "copy.db").read_text() == "mine"

    def test_whoever_was_let_in_by_the_copy_is_not_and_caps_are_used_up(self, place, tmp_path, request, kind):
        invitation, token = filled(place)
        make_copy(place, tmp_path / "copy.db")
        there = place if kind == "file" else place_of("server", tmp_path, request)
        facts, invitations = restore_state(there, tmp_path / "copy.db", **SAID)
        assert facts.decisions == 6
        state = opened_state(there)
        state.check_anchored()
        accounts = Accounts(state)
        with pytest.raises(Problem):
            accounts.accept(invitation)
        with pytest.raises(Problem):
            accounts.bearer(token)
        assert [one["used"] for one in accounts.tokens() if one["cap"]] == ["3"]
        assert set(invitations) == {"olga"}
        assert accounts.visitor(accounts.accept(invitations["olga"])[0]).name == "olga"
        assert state.row("SELECT state, server FROM jobs")["state"] == "queued"
        said = [(one["who"], one["what"], one["about"]) for one in state.decisions()]
        assert ("test", "state restored", "the disk was lost") in said
        assert state.decisions_hold()
        with state.changing() as change:  # Numbers go on after those of the copy.
            change.execute(JOB, ("j2", "one", "bot", "k2", "{}", "e", "done", 1.5))
        assert [row["id"] for row in state.rows("SELECT id FROM jobs ORDER BY number")] == ["j1", "j2"]
        state.close()

    def test_an_old_state_that_is_there_is_accepted_as_it_is(self, place, tmp_path):
        filled(place)
        state = opened_state(place)
        with state.changing() as change:  # As if an old copy had been put back.
            for name in ("DROP TRIGGER decisions_last",) if place.endswith("db") else ():
                change.execute(name)
            if state.is_shared:
                change.execute("ALTER TABLE decisions DISABLE TRIGGER ALL")
            change.execute("DELETE FROM decisions WHERE number = 5")
        with pytest.raises(StateDamaged):
            state.check_anchored()
        state.close()
        with pytest.raises(StateDamaged, match="backup restore"):
            check_state(place)
        with pytest.raises(StateDamaged):
            make_copy(place, tmp_path / "copy.db")
        restore_state(place, None, **SAID)
        assert check_state(place).decisions == 6  # with the new invitation of the owner

    @pytest.mark.parametrize("reason", ["", " ", "x" * 501])
    def test_it_says_why(self, place, reason):
        filled(place)
        with pytest.raises(InvalidParameter, match="why"):
            restore_state(place, None, reason=reason, by="test")


class TestFiles:
    @pytest.mark.long
    def test_a_server_starts_on_an_old_copy_only_after_it_was_restored_and_charges_nothing_again(self, tmp_path):
        prepare(tmp_path)
        file, asked = tmp_path / "server.db", COUNT | {"idempotency_key": "k"}
        with running(tmp_path, names=("one",)) as world:
            make_copy(file, tmp_path / "copy.db")
            answer = world.client("owner").post("/v1/datasets/one/releases?wait=60", json=asked).json()["answer"]
            with pytest.raises(Refused, match="another server"):
                restore_state(file, tmp_path / "copy.db", **SAID)
            old = world.tokens["owner"]
        for each in tmp_path.glob("server.db-*"):
            each.unlink()
        shutil.copy(tmp_path / "copy.db", file)
        with pytest.raises(StateDamaged, match="backup restore"), running(tmp_path, names=("one",)):
            pass
        restore_state(file, tmp_path / "copy.db", **SAID)
        assert (tmp_path / "server.db.before-1").exists()
        with running(tmp_path, names=("one",)) as world:
            client = world.client("owner")
            again = client.post("/v1/datasets/one/releases?wait=60", json=asked).json()
            assert (again["answer"], client.get("/v1/datasets/one/budget").json()["charges"]) == (answer, 1)
            assert client.get("/v1/me", headers={"authorization": f"Bearer {old}"}).status_code == 401

    @pytest.mark.parametrize("how", ["edited", "cut in two", "another file", "newer", "not there"])
    def test_a_copy_that_does_not_hold_is_refused_and_nothing_is_put_back(self, tmp_path, how):
        place, copy = str(tmp_path / "state.db"), tmp_path / "copy.db"
        filled(place)
        make_copy(place, copy)
        match how:
            case "edited" | "newer":
                with closing(sqlite3.connect(copy)) as database:
                    change = "UPDATE decisions SET who = 'eve' WHERE number = 2"
                    for one in (
                        ("DROP TRIGGER decisions_stay", change) if how == "edited" else ("PRAGMA user_version=99",)
                    ):
                        database.execute(one)
                    database.commit()
            case "cut in two":
                copy.write_bytes(copy.read_bytes()[: copy.stat().st_size // 2])
            case "another file":
                copy.write_text("a text")
            case "not there":
                copy.unlink()
        before = everything(place)
        for act in (lambda: check_copy(copy), lambda: restore_state(place, copy, **SAID)):
            with pytest.raises((StateDamaged, InvalidParameter, FileNotFoundError)):
                act()
        assert everything(place) == before

    def test_the_planted_mistake_is_found(self, tmp_path, monkeypatch):
        """A restoration that voids nothing lets the old token in: the test above would see it."""
        monkeypatch.setattr("discreet.server.watch.backup.VOIDED", ())
        place = str(tmp_path / "state.db")
        _, token = filled(place)
        make_copy(place, tmp_path / "copy.db")
        restore_state(place, tmp_path / "copy.db", **SAID)
        state = opened_state(place)
        assert Accounts(state).bearer(token).name == "bot"
        state.close()


@needs_postgres
class TestMoves:
    def test_a_state_moves_from_a_file_to_a_database_and_back(self, tmp_path, request):
        file, server = str(tmp_path / "state.db"), place_of("server", tmp_path, request)
        filled(file)
        make_copy(file, tmp_path / "copy.db")
        restore_state(server, tmp_path / "copy.db", **SAID)
        make_copy(server, tmp_path / "back.db")
        assert everything(server) == everything(tmp_path / "back.db")

    def test_a_database_that_has_a_state_or_servers_is_left_alone(self, tmp_path, request):
        file, server = str(tmp_path / "state.db"), place_of("server", tmp_path, request)
        for place in (file, server):
            filled(place)
        make_copy(file, tmp_path / "copy.db")
        with pytest.raises(Refused, match="already"):
            restore_state(server, tmp_path / "copy.db", **SAID)
        state = opened_state(server)
        with state.changing() as change:
            change.execute("INSERT INTO servers VALUES ('s', '', 0, ?)", (state.now() + 60,))
        state.close()
        with pytest.raises(Refused, match="servers run"):
            restore_state(server, None, **SAID)
