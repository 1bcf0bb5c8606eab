"""One state in two stores: changes are whole, the log only grows, time never goes back, an old copy is refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from server_world import prepare, running
from state_worlds import both_stores, opener, place_of
from system_parts import needs_postgres

from discreet.errors import InvalidParameter, Refused
from discreet.server import state_tables
from discreet.server.accounts import AccountRole, Accounts
from discreet.server.problems import Problem, problem_of
from discreet.server.state_file import StateFile
from discreet.server.state_server import PostgresState, _with_places
from discreet.server.state_store import StateConflict, StateDamaged, StateUnavailable, state_place

SAID = "INSERT INTO people (name, role, since) VALUES (?, 'analyst', 0)"
# As the first slice of the server wrote it.
FIRST_JOBS = """
CREATE TABLE jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, dataset TEXT NOT NULL, name TEXT NOT NULL,
  key TEXT NOT NULL, request TEXT NOT NULL, cost TEXT NOT NULL, state TEXT NOT NULL, problem TEXT, answer TEXT,
  asked REAL NOT NULL, UNIQUE (name, dataset, key)
) STRICT;
INSERT INTO jobs (id, dataset, name, key, request, cost, state, asked)
  VALUES ('j1', 'one', 'analyst', 'own/k', '{"offer": {"epsilon": "0.1"}, "sql": "SELECT COUNT(*) AS n FROM visits"}',
  'e', 'running', 5.0);
PRAGMA user_version = 1;
"""


@pytest.fixture
def kind():
    return "file"


@pytest.fixture
def place(kind, tmp_path, request):
    return place_of(kind, tmp_path, request)


@pytest.fixture
def opened(place, tmp_path):
    """Opens the state, again and again; everything is closed in the end."""
    made, open_it = [], opener(place, tmp_path)

    def one(**more):
        made.append(open_it(**more))
        return made[-1]

    yield one
    for state in made:
        state.close()


@both_stores
class TestBothStores:
    def test_a_state_that_another_server_adds_to_while_it_is_checked_is_no_old_copy(self, opened, monkeypatch):
        here, there = opened(), opened()
        there.decide("ana", "something")
        row = here.row

        def followed(query, *values):
            found = row(query, *values)
            if not values:  # the end of the log
                there.decide("ana", "something else")
            return found

        monkeypatch.setattr(here, "row", followed)
        here.check_anchored()
        assert here.decisions()[0]["number"] == 2

    def test_a_change_is_whole_or_not_at_all_and_one_within_it_is_part_of_it(self, opened):
        state = opened()

        def fails():
            with state.changing() as change:
                change.execute(SAID, ("ana",))
                state.decide("ana", "something")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        assert state.rows("SELECT * FROM people") == state.rows("SELECT * FROM decisions") == []
        with state.changing() as change:
            change.execute(SAID, ("ana",))
            state.decide("ana", "something")
        assert [row["name"] for row in opened().rows("SELECT name FROM people")] == ["ana"]
        assert (len(state.decisions()), state.decisions_hold()) == (1, True)

    def test_rows_are_read_by_name_and_by_place(self, opened):
        state = opened()
        state.decide("ana", "100 % 'sure'?", about="é")
        row = state.row("SELECT who, what FROM decisions WHERE about = ? AND what LIKE '100 %'", "é")
        assert (row["who"], row[1], tuple(row)) == ("ana", "100 % 'sure'?", ("ana", "100 % 'sure'?"))
        assert dict(row) == {"who": "ana", "what": "100 % 'sure'?"}

    def test_decisions_are_neither_changed_nor_deleted(self, opened):
        state = opened()
        state.decide("ana", "something")
        for change in ("UPDATE decisions SET who = 'bea'", "DELETE FROM decisions"):
            with pytest.raises(StateConflict), state.changing() as database:
                database.execute(change)
        assert state.decisions_hold()

    def test_what_is_there_twice_is_a_conflict_and_not_a_failure(self, opened):
        state = opened()
        with pytest.raises(StateConflict), state.changing() as change:
            change.executemany(SAID, [("ana",), ("ana",)])
        assert state.rows("SELECT * FROM people") == []

    @pytest.mark.parametrize("text", ["\ud800", "a\ud800b"])
    def test_texts_that_cannot_be_kept_are_refused(self, opened, text):
        with pytest.raises(InvalidParameter, match="characters"):
            opened().decide(text, "something")

    def test_two_that_write_make_one_chain(self, opened):
        """Several servers, or a server and the command line."""
        states = [opened(machine=name) for name in ("a", "b")]

        def write(state):
            for number in range(20):
                state.decide("ana", f"thing {number}")

        threads = [threading.Thread(target=write, args=(state,)) for state in states]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = states[0].decisions()
        assert [one["number"] for one in found] == list(range(40, 0, -1))
        assert states[0].decisions_hold()
        assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)

    def test_what_is_read_in_a_change_is_still_so_when_it_is_written(self, opened):
        """Two servers take prices off one cap: none is forgotten."""
        states = [opened(machine=name) for name in ("a", "b")]
        accounts = [Accounts(state) for state in states]
        accounts[0].add("bot", AccountRole.AGENT, ["one"], by="test")
        said = {"scopes": ("release",), "datasets": None, "cap": "100", "seconds": 60.0}
        public = accounts[0].new_token("bot", by="test", **said).split("_")[1]
        threads = [threading.Thread(target=lambda a=a: [a.pay_by(public, 1) for _ in range(20)]) for a in accounts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert states[0].row("SELECT used FROM tokens WHERE id = ?", public)["used"] == "40"

    def test_time_never_goes_back_on_another_server_either(self, opened):
        ahead, behind = opened(clock=lambda: 2_000.0), opened(machine="b", clock=lambda: 1_000.0)
        ahead.decide("ana", "something")
        behind.decide("bea", "something")
        assert [one["at"] for one in behind.decisions()] == [2_000.0, 2_000.0]
        assert behind.now() == 2_000.0
        assert opened(clock=lambda: 1_000.0).now() == 2_000.0

    def test_time_goes_on_after_a_clock_that_was_far_ahead(self, opened):
        """Else visits, tokens and lock-outs end when the clock has caught up: in years."""
        ahead = 5_000_000_000.0
        opened(clock=lambda: ahead).decide("somebody", "something")
        state = opened()
        first = state.now()
        time.sleep(0.02)
        assert ahead <= first < first + 0.01 <= state.now() < ahead + 600

    def test_a_newer_format_is_refused_and_left_alone(self, opened, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr("discreet.server.state_store.FORMAT", 3)
            patch.setattr("discreet.server.state_store.MIGRATIONS", {3: ()})
            opened()
        for _ in range(2):
            with pytest.raises(InvalidParameter, match="newer version"):
                opened()

    def test_a_step_that_fails_leaves_the_state_as_it_was(self, opened, monkeypatch):
        opened().decide("ana", "something")
        column = state_tables.AddedColumn("people", "motto", "TEXT")
        with monkeypatch.context() as patch:
            patch.setattr("discreet.server.state_store.FORMAT", 3)
            patch.setattr("discreet.server.state_store.MIGRATIONS", {3: (column, "ALTER TABLE nowhere ADD a TEXT")})
            with pytest.raises(StateUnavailable):
                opened()
        assert "motto" not in opened()._table_columns("people")
        with monkeypatch.context() as patch:
            patch.setattr("discreet.server.state_store.FORMAT", 3)
            patch.setattr("discreet.server.state_store.MIGRATIONS", {3: (column,)})
            assert "motto" in opened()._table_columns("people")
            assert opened().decisions_hold()

    def test_every_table_has_the_columns_that_are_written_down(self, opened):
        state = opened()
        for table in state_tables.table_names():
            made = next(one for one in state_tables.statements() if f"EXISTS {table} (" in one)
            assert all(name in made for name in state._table_columns(table))
            assert state._table_columns(table)


@both_stores
@pytest.mark.long
def test_an_account_lives_its_life(opened):
    """Everything that accounts write, on either store."""
    state = opened()
    accounts = Accounts(state)
    invitation = accounts.add("ana", AccountRole.ANALYST, ["one"], by="test")
    with pytest.raises(InvalidParameter, match="already"):
        accounts.add("ANA", AccountRole.READER, (), by="test")
    assert accounts.visitor(accounts.accept(invitation)[0]).invited
    with pytest.raises(Problem):
        accounts.accept(invitation)
    accounts.set_password("ana", "correct horse battery")
    for _ in range(2):
        with pytest.raises(Problem):
            accounts.sign_in("ana", "wrong")
    cookie, _ = accounts.sign_in("ana", "correct horse battery")
    assert accounts.visitor(cookie).name == "ana"
    for revoke, granted in ((False, {"one", "two"}), (False, {"one", "two"}), (True, {"one"})):
        accounts.grant("ana", ["two"], revoke=revoke, by="test")
        assert accounts.visitor(cookie).granted == granted
    said = {"scopes": ["read", "release"], "datasets": ["one"], "cap": "1", "seconds": 60.0}
    token = accounts.new_token("ana", by="test", **said)
    public = token.split("_")[1]
    accounts.pay_by(public, 1)
    with pytest.raises(Problem, match="budget"):
        accounts.pay_by(public, 1)
    assert accounts.bearer(token).granted == {"one"}
    accounts.revoke(public, by="test")
    with pytest.raises(Problem):
        accounts.bearer(token)
    accounts.sign_out(cookie, name="ana")
    assert accounts.visitor(cookie) is None
    accounts.disable("ana", by="test")
    assert [bool(one["disabled"]) for one in accounts.people()] == [True]
    assert len(accounts.tokens()) == 2
    assert state.decisions_hold()


class TestFormats:
    @pytest.mark.long
    def test_a_file_of_the_first_slice_is_read_and_its_jobs_go_on(self, tmp_path):
        prepare(tmp_path)
        with closing(sqlite3.connect(tmp_path / "server.db")) as database:
            database.executescript(FIRST_JOBS)
        (tmp_path / "server.db").chmod(0o600)
        with running(tmp_path, names=("one",)) as world:
            job = world.server.jobs.get("j1")
            assert job.kind == "question"
            told = world.client("owner").get("/v1/releases/j1?wait=60").json()
            assert told["state"] == "done"
        with closing(sqlite3.connect(tmp_path / "server.db")) as database:
            assert database.execute("PRAGMA user_version").fetchone()[0] == state_tables.FORMAT

    def test_every_format_has_its_step(self):
        assert set(state_tables.MIGRATIONS) == set(range(2, state_tables.FORMAT + 1))


class TestOldCopies:
    """C22: whoever puts an old copy of the state back, or cuts or edits it, starts no server on it."""

    def edit(self, file, *changes):
        with closing(sqlite3.connect(file)) as database:
            for change in ("DROP TRIGGER decisions_stay", "DROP TRIGGER decisions_last", *changes):
                database.execute(change)
            database.commit()

    def old_copy(self, file):
        state = StateFile(file)
        state.decide("ana", "first")
        state.copy_to(file.with_name("old.db"))
        state.decide("ana", "token revoke")
        state.close()
        for each in file.parent.glob(f"{file.name}-*"):
            each.unlink()

    @pytest.mark.parametrize("how", ["old copy", "cut", "edited", "other", "no anchor", "emptied"])
    def test_a_server_does_not_start_on_it(self, tmp_path, how):
        prepare(tmp_path)
        file = tmp_path / "server.db"
        self.old_copy(file)
        match how:
            case "old copy":
                shutil.copy(tmp_path / "old.db", file)
            case "cut":
                self.edit(file, "DELETE FROM decisions WHERE number = 2")
            case "edited":
                self.edit(file, "UPDATE decisions SET what = 'x' WHERE number = 1")
            case "other":
                file.unlink()
                other = StateFile(file, anchor=tmp_path / "other.anchor")
                for _ in range(3):
                    other.decide("eve", "something")
                other.close()
            case "no anchor":
                (tmp_path / "server.db.anchor").unlink()
            case "emptied":
                file.unlink()
        with pytest.raises((StateDamaged, Refused)), running(tmp_path, names=("one",)):
            pass

    def test_the_state_as_it_is_starts(self, tmp_path):
        file = tmp_path / "server.db"
        self.old_copy(file)
        state = StateFile(file)
        state.check_anchored()
        assert state.decisions_hold()
        state.close()

    def test_one_that_is_put_back_while_it_is_open_gets_no_further_decision(self, tmp_path):
        file = tmp_path / "server.db"
        self.old_copy(file)
        state = StateFile(file)
        with closing(sqlite3.connect(tmp_path / "old.db")) as old, closing(sqlite3.connect(file)) as new:
            old.backup(new)
        with pytest.raises(StateDamaged) as damaged:
            state.decide("ana", "something")
        assert problem_of(damaged.value).kind.code == "unavailable"
        state.close()

    @needs_postgres
    def test_a_database_that_is_put_back_is_refused_by_machines_that_saw_more(self, tmp_path, request):
        place = place_of("server", tmp_path, request)
        open_it = opener(place, tmp_path)
        state = open_it()
        for _ in range(2):
            state.decide("ana", "something")
        with state.changing() as change:
            change.execute("ALTER TABLE decisions DISABLE TRIGGER ALL")
            change.execute("DELETE FROM decisions WHERE number = 2")
        with pytest.raises(StateDamaged, match="backup restore"):
            state.check_anchored()
        with pytest.raises(StateDamaged):
            state.decide("ana", "something")
        state.close()
        other = open_it(machine="new")  # It was never there before, and takes what it finds,
        other.check_anchored()
        with other.changing() as change:
            change.execute("ALTER TABLE decisions DISABLE TRIGGER ALL")
            change.execute("DELETE FROM decisions WHERE number = 1")
        with pytest.raises(StateDamaged):  # from then on.
            other.check_anchored()
        other.close()


@needs_postgres
class TestPlaces:
    def test_a_password_is_neither_taken_nor_repeated(self, tmp_path):
        with pytest.raises(Refused) as refused:
            state_place("postgresql://ana:geheim@db.example/states")
        assert "geheim" not in str(refused.value)
        found = state_place(tmp_path / "postgresql:" / "x")
        assert found == tmp_path / "postgresql:" / "x"

    def test_an_address_may_come_as_a_path_and_has_a_schema_of_its_own(self, postgres_database):
        from pathlib import Path

        for said in (postgres_database, Path(postgres_database)):
            assert state_place(said).schema == "discreet_server"
        assert state_place(f"{postgres_database}?schema=mine").schema == "mine"

    def test_the_schema_of_a_ledger_is_refused(self, postgres_database, tmp_path):
        from discreet.ledger import Account, Budget, Ledger
        from discreet.privacy.relation import Relation

        account = Account("people", "row", Relation.ADD_REMOVE, Budget(1))
        Ledger.open(f"{postgres_database}?schema=taken", account, anchor=tmp_path / "a").close()
        with pytest.raises(Refused, match="ledger"):
            PostgresState(state_place(f"{postgres_database}?schema=taken"), anchor=tmp_path / "b")

    def test_values_stand_where_they_are_asked_for(self):
        assert _with_places("SELECT '?' || ? LIKE '%'") == "SELECT '?' || %s LIKE '%%'"

    def test_a_database_that_is_not_there_is_unavailable_and_soon(self, tmp_path):
        with pytest.raises(StateUnavailable) as told:
            PostgresState(state_place("postgresql://nobody@127.0.0.1:1/none"), anchor=tmp_path / "a")
        assert problem_of(told.value).kind == Problem("unavailable").kind


@needs_postgres
def test_a_backend_that_is_ended_between_two_changes_is_not_noticed(tmp_path, request):
    state = opener(place_of("server", tmp_path, request), tmp_path)()
    for use in (lambda: state.decide("ana", "x"), lambda: state.rows("SELECT * FROM decisions")):
        backend = state._connection.info.backend_pid
        request.getfixturevalue("postgres_cluster").execute(f"SELECT pg_terminate_backend({backend})")
        use()
    assert state.decisions_hold()
    state.close()


def test_a_state_needs_its_owner_only(tmp_path):
    state = StateFile(tmp_path / "state.db")
    state.decide("ana", "x")
    state.close()
    assert {os.stat(file).st_mode & 0o077 for file in tmp_path.iterdir()} == {0}
