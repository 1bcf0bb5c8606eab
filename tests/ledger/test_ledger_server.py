"""A ledger on a PostgreSQL server: who may do what, what is refused, and that the record says when it was changed."""

from __future__ import annotations

import builtins
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_cluster import Cluster, own_cluster
from system_parts import needs_postgres

from discreet.errors import (
    BudgetExceeded,
    InvalidParameter,
    LedgerDamaged,
    LedgerUnavailable,
    MissingLibrary,
    NotAuthorised,
    Refused,
)
from discreet.ledger import Account, Budget, Ledger, look, move, postgres_rows, relocation, restore
from discreet.ledger.charge_record import ReadClaim
from discreet.ledger.postgres_rows import PostgresRows, clear, plain
from discreet.ledger.postgres_store import PostgresStore, _Connected
from discreet.ledger.requests import ChargeRequest, ClaimRequest, read_request
from discreet.ledger.server_address import LedgerAddress, as_place
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

pytestmark = needs_postgres

ADD = Relation.ADD_REMOVE
ACCOUNT = Account("people", "row", ADD, Budget(1))
TENTH = PureDP("0.1")
DOCS = Path(__file__).parents[2] / "docs" / "ledger.md"


def charge(book: Ledger, **more: Any) -> Any:
    return book.charge(TENTH, relation=ADD, purpose="question", **more)


def changed(place: str, *statements: str) -> None:
    """Change what is on the server as its superuser, around every guard."""
    dsn, _, schema = place.partition("?schema=")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # Triggers do not fire.
        connection.execute(f"SET search_path = {schema}")
        for statement in statements:
            connection.execute(statement)


CHANGES = {
    "an entry": "UPDATE entries SET body = replace(body, 'question', 'nothing') WHERE idx = 2",
    "the last entry": "DELETE FROM entries WHERE idx = (SELECT max(idx) FROM entries)",
    "the sums": "DELETE FROM sums",
    "an answer": "UPDATE answers SET body = 'another'",
    "no answer": "DELETE FROM answers",
    "a key": "UPDATE charges SET key = 'other'",
    "the account": "UPDATE accounts SET declared = replace(declared, '1', '9')",
    "the order": "UPDATE entries SET idx = idx + 10 WHERE idx = 2",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_record_is_found(what: str, server_place: str) -> None:
    with Ledger.open(server_place, ACCOUNT) as book:
        book.store(charge(book, idempotency_key="k"), lambda: "42")
    changed(server_place, CHANGES[what])
    with pytest.raises(LedgerDamaged):
        Ledger.open(server_place, ACCOUNT)
    with pytest.raises(LedgerDamaged):
        look(server_place)


@pytest.mark.parametrize("table", ["entries", "answers", "outcomes"])
@pytest.mark.parametrize("how", ["DELETE FROM {}", "TRUNCATE {}", "UPDATE {} SET ctid = ctid"])
def test_the_record_cannot_be_changed_by_a_sql_shell(how: str, table: str, server_place: str) -> None:
    with Ledger.open(server_place, ACCOUNT) as book:
        book.store(charge(book), lambda: "42")
    dsn, _, schema = server_place.partition("?schema=")
    statement = how.format(f"{schema}.{table}").replace(
        "ctid = ctid", "hash = hash" if table != "answers" else "body = ''"
    )
    with psycopg.connect(dsn, autocommit=True) as connection, pytest.raises(psycopg.errors.RaiseException):
        connection.execute(statement)


def rolled_back(place: str) -> None:
    """Put the state after the first entry back, as a restored dump would: chain and sums agree with each other."""
    changed(
        place,
        "DELETE FROM entries WHERE idx > 1",
        "DELETE FROM sums",
        "DELETE FROM charges",
        "UPDATE ledger SET idx = 1, hash = (SELECT hash FROM entries WHERE idx = 1)",
    )


def test_a_server_that_was_rolled_back_is_refused_by_every_machine_that_saw_more(
    server_place: str, tmp_path: Path
) -> None:
    with Ledger.open(server_place, ACCOUNT, anchor=tmp_path / "one") as book:
        charge(book)
        with Ledger.open(server_place, ACCOUNT, anchor=tmp_path / "two") as other:
            assert other.spent().charges == 1  # It saw the charge, and never made one.
        rolled_back(server_place)
        for call in (lambda: charge(book), book.spent, book.verify):  # also while it is open
            with pytest.raises(LedgerDamaged, match="anchored on this machine"):
                call()
    for anchor in ("one", "two"):
        with pytest.raises(LedgerDamaged, match="anchored on this machine"):
            Ledger.open(server_place, ACCOUNT, anchor=tmp_path / anchor)
    Ledger.open(server_place, ACCOUNT, anchor=tmp_path / "never here before").close()


def test_a_machine_that_saw_more_takes_no_word_from_one_that_did_not(server_place: str, tmp_path: Path) -> None:
    """Its request is decided by a machine that knows nothing of what was lost: it is charged, and never told."""
    told: list[Any] = []

    def waits(book: Ledger) -> None:
        try:
            told.append(charge(book))
        except LedgerDamaged as error:
            told.append(str(error))

    with (
        Ledger.open(server_place, ACCOUNT, anchor=tmp_path / "one") as book,
        Ledger.open(server_place, ACCOUNT, anchor=tmp_path / "two") as other,
    ):
        charge(book)
        charge(book)
        rolled_back(server_place)
        for store in (book._store, other._store):
            assert isinstance(store, PostgresStore)
            store._is_crowded = store is book._store
        here = other._store._connected()  # type: ignore[attr-defined]
        here.execute("SELECT pg_advisory_lock(%s)", here.gate)
        thread = threading.Thread(target=waits, args=(book,))
        thread.start()
        while not here.execute("SELECT FROM {s}.requests").fetchall():
            time.sleep(0.01)
        charge(other)  # decides both, and leaves the gate
        thread.join()
        assert other.spent().charges == 2
    assert len(told) == 1
    assert "does not contain its anchored entry" in str(told[0])


def test_a_ledger_that_was_dropped_and_begun_anew_is_refused(server_place: str, tmp_path: Path) -> None:
    with Ledger.open(server_place, ACCOUNT) as book:
        charge(book)
    dsn, _, schema = server_place.partition("?schema=")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(LedgerDamaged, match="anchored on this machine"):
        Ledger.open(server_place, ACCOUNT)
    with Ledger.open(server_place, ACCOUNT, anchor=tmp_path / "elsewhere") as book:
        charge(book)
        charge(book)
    with pytest.raises(LedgerDamaged, match="does not contain its anchored entry"):
        Ledger.open(server_place, ACCOUNT)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_commits_is_refused(setting: str, tmp_path: Path) -> None:
    with own_cluster() as cluster:
        cluster.execute(f"ALTER SYSTEM SET {setting} = off")
        cluster.restart("fast")
        with pytest.raises(Refused, match="fsync or full_page_writes is off"):
            Ledger.open(cluster.dsn(), ACCOUNT, anchor=tmp_path / "anchor")


def test_commits_are_flushed_whatever_the_role_prefers(
    postgres_cluster: Cluster, server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c synchronous_commit=off -c default_transaction_isolation=serializable")
    with Ledger.open(server_place, ACCOUNT) as book:
        charge(book)
        store = book._store
        assert isinstance(store, PostgresStore)
        for name, value in (("synchronous_commit", "on"), ("default_transaction_isolation", "read committed")):
            found = store._connected().execute(f"SHOW {name}").fetchone()
            assert found[0] == value


def test_a_password_is_never_part_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in (
        "postgresql://ana:hunter2@db.example/ledgers",
        "postgresql://db.example/ledgers?password=hunter2",
        "postgresql://db.example/ledgers?sslpassword=hunter2&schema=x",
        Path("postgresql://ana:hunter2@db.example/ledgers"),
        "postgresql://ana:hunter2/@db.example:/x/ledgers?port=hunter2",
        "postgres://ana:hunter2@@db.example/l%zzhunter2",
    ):
        with pytest.raises((Refused, InvalidParameter, LedgerUnavailable)) as refused:
            Ledger.open(address, ACCOUNT)
        assert "hunter2" not in f"{refused.value!r} {refused.value} {refused.value.__cause__}"
        assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_wrong_password_and_a_missing_database_are_told_without_it(
    postgres_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not postgres_cluster.execute("SELECT FROM pg_roles WHERE rolname = 'with_password'"):
        postgres_cluster.execute("CREATE ROLE with_password LOGIN")
    postgres_cluster.execute("ALTER ROLE with_password PASSWORD 'correct horse'")
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    with pytest.raises(NotAuthorised) as refused:
        Ledger.open(postgres_cluster.dsn(user="with_password"), ACCOUNT, anchor=tmp_path / "anchor")
    assert "hunter2" not in str(refused.value)
    monkeypatch.setenv("PGPASSWORD", "correct horse")
    with postgres_cluster.database() as dsn:
        postgres_cluster.execute(f"ALTER DATABASE {dsn.rpartition('/')[2]} OWNER TO with_password")
        mine = dsn.replace("postgres@", "with_password@")
        with Ledger.open(mine, ACCOUNT, anchor=tmp_path / "anchor") as book:
            charge(book)
            assert "horse" not in f"{book!r} {book.history()!r} {vars(book._store)!r}"
    with pytest.raises(LedgerUnavailable, match="no such database"):
        Ledger.open(postgres_cluster.dsn("nowhere"), ACCOUNT, anchor=tmp_path / "other")
    with pytest.raises(LedgerUnavailable, match="no such role"):
        Ledger.open(postgres_cluster.dsn(user="nobody_here"), ACCOUNT, anchor=tmp_path / "other")
    monkeypatch.delenv("PGPASSWORD")
    with pytest.raises(NotAuthorised, match="asks for a password"):
        Ledger.open(postgres_cluster.dsn(user="with_password"), ACCOUNT, anchor=tmp_path / "other")
    for address, why in (
        ("postgresql://127.0.0.1:9/ledgers", "nothing listens at this port"),
        ("postgresql://no-such-host.invalid/ledgers", "its host has no address"),
        ("postgresql:///ledgers?host=/nowhere", "no server has its socket there"),
    ):
        with pytest.raises(LedgerUnavailable, match=f"cannot be reached.*{why}"):
            Ledger.open(address, ACCOUNT, anchor=tmp_path / "other")
    assert "horse" not in postgres_cluster.log


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "psycopg":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingLibrary, match="`postgres`"):
        Ledger.open("postgresql://db.example/ledgers", ACCOUNT)


def granted(role: str, schema: str) -> list[str]:
    """Return the statements that docs/ledger.md gives to whoever owns the database."""
    found = re.search(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text = found[1].replace("discreet_user", role).replace("SCHEMA discreet", f"SCHEMA {schema}")
    return [each for each in text.replace(" discreet.", f" {schema}.").split(";") if each.strip()]


@contextmanager
def least(cluster: Cluster, place: str) -> Iterator[str]:
    """Make a role that may do what the documentation says, and no more; return the address for it."""
    dsn, _, schema = place.partition("?schema=")
    role, database = f"u_{schema}", dsn.rpartition("/")[2]
    for statement in (f"CREATE ROLE {role} LOGIN", *granted(role, schema)):
        cluster.execute(statement, database)
    yield place.replace("postgres@", f"{role}@")
    cluster.execute(f"DROP OWNED BY {role}", database)
    cluster.execute(f"DROP ROLE {role}")


def test_a_role_with_the_grants_of_the_documentation_spends_and_can_change_nothing(
    postgres_cluster: Cluster, server_place: str
) -> None:
    Ledger.open(server_place, ACCOUNT).close()
    with least(postgres_cluster, server_place) as place:
        with Ledger.open(place, ACCOUNT) as book:
            claim = book.claim(TENTH, relation=ADD, purpose="q", principal="ana", seconds=60, idempotency_key="k")
            book.store(claim, lambda: "42")
            book.raise_budget(Budget(2), reason="more", principal="ana")
            book.verify()
        dsn, _, schema = place.partition("?schema=")
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in (
                f"DELETE FROM {schema}.entries",
                f"UPDATE {schema}.entries SET body = ''",
                f"DELETE FROM {schema}.answers",
                f"UPDATE {schema}.outcomes SET told = ''",
                f"DELETE FROM {schema}.sums",
                f"DELETE FROM {schema}.ledger",
                f"TRUNCATE {schema}.entries",
                f"DROP TABLE {schema}.entries",
                f"ALTER TABLE {schema}.entries DISABLE TRIGGER ALL",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement)


def test_a_role_without_grants_is_told_so(postgres_cluster: Cluster, server_place: str) -> None:
    Ledger.open(server_place, ACCOUNT).close()
    role = f"n_{server_place.rpartition('=')[2]}"
    postgres_cluster.execute(f"CREATE ROLE {role} LOGIN")
    for place in (server_place, server_place.partition("?")[0] + "?schema=never_made"):
        with pytest.raises(NotAuthorised, match=r"docs/ledger\.md"):
            Ledger.open(place.replace("postgres@", f"{role}@"), ACCOUNT)
    postgres_cluster.execute(f"DROP ROLE {role}")


def test_tables_of_a_newer_release_are_refused(server_place: str) -> None:
    Ledger.open(server_place, ACCOUNT).close()
    changed(server_place, "UPDATE ledger SET format = 99")
    with pytest.raises(LedgerDamaged, match="newer release"):
        Ledger.open(server_place, ACCOUNT)


def test_texts_with_nul_and_long_keys_are_kept(server_place: str) -> None:
    text = "a\0b\\0c\\\\\0" + "é" * 9000
    for each in ("", "\\", "\0", "\\0", "\\\0", "\0\\", text):
        assert clear(plain(each)) == each
    account = Account("people\0" + "é" * 900, "row", ADD, Budget(1))
    with Ledger.open(server_place, account) as book:
        paid = charge(book, idempotency_key=text, plan="p\0", version="v", principal="ana\0")
        assert book.store(paid, lambda: text) == text
        assert charge(book, idempotency_key=text, plan="p\0", version="v", principal="ana\0") == paid
        assert book.store(paid, lambda: "never") == text
        book.verify()
    assert look(server_place).answer(paid.id) == text


def test_requests_are_read_as_they_were_written() -> None:
    facts = {
        "event": json.loads(TENTH.to_json()),
        "relation": ADD.value,
        "purpose": "q",
        "principal": "",
        "project": "",
    }
    for asked in (
        ChargeRequest("people", TENTH, facts, "row", ()),
        ClaimRequest("people", TENTH, facts, "row", (), "0.1", "here"),
    ):
        again = read_request(asked.text())
        assert again.text() == asked.text()
        assert again.event == TENTH
    newer = asked.text().replace('"form":1', '"form":2')
    with pytest.raises(InvalidParameter, match="another release"):
        read_request(newer)


def waiting(place: str, body: str) -> None:
    changed(place, f"INSERT INTO requests (id, since, body) VALUES (gen_random_uuid(), 0, '{body}')")


def test_a_request_that_nobody_can_read_is_left_to_whoever_asked(server_place: str) -> None:
    """Also hostile ones: they are decided for nobody, and do not stop the others."""
    with Ledger.open(server_place, ACCOUNT) as book:
        for body in ("", "{}", "[]", '{"form":1,"kind":"charge"}', '{"form":99}', "null", '{"form":1,"kind":"answer"}'):
            waiting(server_place, body)
        charge(book)
        book.verify()
        assert book.spent().charges == 1
    dsn, _, schema = server_place.partition("?schema=")
    with psycopg.connect(dsn) as connection:
        assert connection.execute(f"SELECT count(*) FROM {schema}.requests").fetchone() == (0,)
        assert connection.execute(f"SELECT count(*) FROM {schema}.outcomes WHERE told IS NULL").fetchone() is not None


def test_a_request_that_cannot_be_stored_does_not_stop_the_others(server_place: str) -> None:
    """One whose key is no text for the server, and one that no parser survives, of clients that are gone."""
    with Ledger.open(server_place, ACCOUNT) as book:
        facts = {"relation": ADD.value, "purpose": "q", "principal": "", "project": "", "key": "\ud800"}
        said = facts | {"event": json.loads(TENTH.to_json())}
        waiting(server_place, ChargeRequest("people", TENTH, said, "row", ()).text())
        waiting(server_place, "[" * 100_000)
        charge(book)
        charge(book)
        book.verify()
        assert book.spent().charges == 2


@pytest.mark.parametrize("text", ["{s}", "a {s}.b", "%s", "{}", "'; COMMIT; --", "\\", "$$"])
def test_texts_that_look_like_a_part_of_a_statement_are_kept(text: str, server_place: str) -> None:
    with Ledger.open(server_place, ACCOUNT) as book:
        said: dict[str, Any] = {"principal": text, "project": text, "plan": text, "version": text}
        paid = book.charge(TENTH, relation=ADD, purpose=text, idempotency_key=text, **said)
        assert book.store(paid, lambda: text) == text
        book.verify()
        assert book.stored(idempotency_key=text, principal=text, plan=text, version=text, project=text) is not None


def test_a_request_that_does_not_fit_takes_nothing_from_the_others(server_place: str) -> None:
    """One of those that wait would exceed the budget: it is refused, and those before and after it are charged."""
    with Ledger.open(server_place, ACCOUNT) as book:
        charge(book)
        facts = {"relation": ADD.value, "purpose": "q", "principal": "", "project": ""}
        for epsilon in ("0.2", "0.9", "0.3"):
            event = PureDP(epsilon)
            said = facts | {"event": json.loads(event.to_json())}
            waiting(server_place, ChargeRequest("people", event, said, "row", ()).text())
        charge(book)
        assert book.spent().epsilon == PureDP("0.7").epsilon
        with pytest.raises(BudgetExceeded):
            book.charge(PureDP("0.4"), relation=ADD, purpose="q")
        book.verify()


def test_an_address_is_the_same_from_a_text_and_from_a_path() -> None:
    for text in (
        "postgresql://ana@db.example:5433/ledgers?schema=health&sslmode=verify-full",
        "postgresql:///ledgers?host=/run/postgresql",
    ):
        one, other = as_place(text), as_place(Path(text))
        assert isinstance(one, LedgerAddress)
        assert one == other
    assert as_place("visits.ledger") == "visits.ledger"


def test_a_name_has_the_port_that_is_not_the_usual_one_and_no_user() -> None:
    """Whoever reads "was moved to …" is to name that place."""
    for text, name in (
        (
            "postgresql://ana@db.example:5433/ledgers?schema=health",
            "postgresql://db.example:5433/ledgers?schema=health",
        ),
        ("postgresql://ana@db.example:5432/ledgers", "postgresql://db.example/ledgers"),
        ("postgresql://ana@db.example/ledgers", "postgresql://db.example/ledgers"),
    ):
        place = as_place(text)
        assert isinstance(place, LedgerAddress)
        assert place.name == name
    for wrong in (
        "postgresql://db.example",
        "postgresql://db.example/ledgers?schema=A-b",
        "postgresql://h/d?nonsense=1",
    ):
        with pytest.raises(InvalidParameter):
            as_place(wrong)


# --- what was decided, and for how long that is known ---


def outcomes(place: str) -> int:
    dsn, _, schema = place.partition("?schema=")
    with psycopg.connect(dsn) as connection:
        found = connection.execute(f"SELECT count(*) FROM {schema}.outcomes").fetchone()
    assert found is not None
    return int(found[0])


def test_outcomes_are_forgotten_and_who_asks_after_that_is_refused(
    postgres_cluster: Cluster, server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A charge whose outcome may be forgotten is never made a second time, and the others go on."""
    monkeypatch.setattr(postgres_rows, "_KEPT", 10)
    monkeypatch.setattr(postgres_rows, "_STEP", 5)
    account = Account("people", "row", ADD, Budget(100))
    Ledger.open(server_place, account).close()
    with least(postgres_cluster, server_place) as place, Ledger.open(place, account) as book:
        real, lost = _Connected.ask, list[int]()

        def slow(self: Any, statement: str, *values: Any) -> Any:
            found = real(self, statement, *values)
            if ".decided(" in statement and not lost:
                lost.append(1)  # What it did is not heard of, and then comes much else.
                self.connection.close()
                with Ledger.open(place, account) as other:
                    for _ in range(30):
                        charge(other)
                raise psycopg.OperationalError("the connection was lost")
            return found

        with monkeypatch.context() as patch:
            patch.setattr(_Connected, "ask", slow)
            with pytest.raises(LedgerUnavailable, match="cannot be known whether this was charged"):
                charge(book)
        assert lost
        assert 10 <= outcomes(server_place) <= 16
        assert book.spent().charges == 31  # once
        charge(book)
        book.verify()


def test_a_request_that_may_have_been_decided_before_is_left_to_whoever_asked(
    server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_rows, "_KEPT", 10)
    monkeypatch.setattr(postgres_rows, "_STEP", 5)
    account = Account("people", "row", ADD, Budget(100))
    with Ledger.open(server_place, account) as book:
        for _ in range(30):
            charge(book)
        facts = {"relation": ADD.value, "purpose": "q", "principal": "", "project": ""}
        said = facts | {"event": json.loads(TENTH.to_json())}
        waiting(server_place, ChargeRequest("people", TENTH, said, "row", ()).text())  # since 0
        charge(book)
        assert book.spent().charges == 31


def test_a_draw_never_stands_in_the_table_of_requests(server_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a crowd: one that comes late is dropped, and nobody may have seen it."""
    seen: list[str] = []
    real = _Connected.ask

    def spied(self: Any, statement: str, *values: Any) -> Any:
        seen.extend(str(value) for value in values if ".asked(" in statement)
        return real(self, statement, *values)

    monkeypatch.setattr(_Connected, "ask", spied)
    with Ledger.open(server_place, ACCOUNT) as book:
        store = book._store
        assert isinstance(store, PostgresStore)
        store._is_crowded = True
        paid = charge(book)
        store._is_crowded = True
        assert book.store(paid, lambda: "a secret draw") == "a secret draw"
    assert seen
    assert not any("secret" in value for value in seen)


def test_tables_of_the_first_format_are_brought_up_to_date(
    postgres_cluster: Cluster, server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what was granted before, and every entry."""
    dsn, _, schema = server_place.partition("?schema=")
    first = postgres_rows._TABLES.replace("{s}", schema).replace("{beginning}", "0" * 64)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(first)
    with least(postgres_cluster, server_place) as place:
        with pytest.raises(NotAuthorised):  # Who may only use the tables cannot change them.
            Ledger.open(place, ACCOUNT)
        Ledger.open(server_place, ACCOUNT).close()
        with Ledger.open(place, ACCOUNT) as book:
            charge(book)
            book.verify()


# --- moving ---


def filled(place: Path | str) -> tuple[Any, ...]:
    with Ledger.open(place, ACCOUNT) as book:
        book.store(charge(book, idempotency_key="k\0", plan="p", version="v"), lambda: "42\0")
        failed = book.claim(TENTH, relation=ADD, purpose="q", principal="ana", seconds=60, idempotency_key="f")
        book.fail(failed)
        series = charge(book, idempotency_key="s", parts=3)
        book.store_part(series, 0, lambda: "day 0")
        return tuple((entry.index, entry.hash) for entry in book.history())


def test_a_ledger_moves_to_a_server_and_back_with_every_hash(server_place: str, tmp_path: Path) -> None:
    first, back = tmp_path / "first.ledger", tmp_path / "back.ledger"
    before = filled(first)
    there = move(first, server_place, reason="several machines", principal="ana")
    assert [entry.kind for entry in there.entries("")] == ["moved", "arrived"]
    with Ledger.open(server_place, ACCOUNT) as book:
        assert tuple((entry.index, entry.hash) for entry in book.history()) == before
        assert charge(book, idempotency_key="k\0", plan="p", version="v").id == 2
        assert book.stored(principal="", version="v", plan="p", idempotency_key="k\0").text == "42\0"  # type: ignore[union-attr]
        assert [claim.is_failed for claim in book.claims()] == [True]
        charge(book)
        more = tuple((entry.index, entry.hash) for entry in book.history())
    move(server_place, back, reason="one machine again", principal="ana")
    with Ledger.open(back, ACCOUNT) as book:
        assert tuple((entry.index, entry.hash) for entry in book.history()) == more
        assert book.spent().charges == 4
        charge(book)
        book.verify()
    for closed in (first, server_place):
        with pytest.raises(Refused, match="was moved to"):
            Ledger.open(closed, ACCOUNT)
        with pytest.raises(Refused, match="was moved to"):
            look(closed)


@pytest.mark.parametrize("much", [1, 2000])
def test_a_long_ledger_moves_in_parts(
    much: int, server_place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    real = PostgresRows.payload

    def spied(self: PostgresRows, *given: Any) -> str | None:
        text = real(self, *given)
        sent.append(len(text or ""))
        return text

    before = filled(tmp_path / "first.ledger")
    monkeypatch.setattr(postgres_rows, "_MUCH", much)
    monkeypatch.setattr(PostgresRows, "payload", spied)
    move(tmp_path / "first.ledger", server_place, reason="several machines", principal="ana")
    assert len(sent) > (12 if much == 1 else 4)
    with Ledger.open(server_place, ACCOUNT) as book:
        assert tuple((entry.index, entry.hash) for entry in book.history()) == before
        charge(book)
        book.verify()


def test_a_ledger_that_was_moved_cannot_be_charged_by_those_who_have_it_open(server_place: str, tmp_path: Path) -> None:
    for source, target in ((tmp_path / "a.ledger", server_place), (server_place, tmp_path / "b.ledger")):
        with Ledger.open(source, ACCOUNT) as book:
            charge(book)
            move(source, target, reason="several machines", principal="ana")
            with pytest.raises(Refused, match="not declared"):
                charge(book)
            with pytest.raises(Refused):
                book.raise_budget(Budget(5), reason="more", principal="ana")


def test_nothing_is_added_to_a_ledger_that_was_moved(server_place: str, tmp_path: Path) -> None:
    """An answer that is stored at the old place would be drawn a second time at the new one."""
    for source, target in ((tmp_path / "a.ledger", server_place), (server_place, tmp_path / "b.ledger")):
        with Ledger.open(source, ACCOUNT) as book:
            paid, series = charge(book), charge(book, idempotency_key=f"s {target}", parts=2)
            said: dict[str, Any] = {"relation": ADD, "purpose": "q", "principal": str(target), "seconds": 60}
            claim, failed = (book.claim(PureDP("0.01"), idempotency_key=f"{n} {target}", **said) for n in range(2))
            assert isinstance(failed, ReadClaim)
            book.fail(failed)
            move(source, target, reason="several machines", principal="ana")
            for late in (
                lambda: book.store(paid, lambda: "42"),  # noqa: B023
                lambda: book.store(claim, lambda: "42"),  # noqa: B023
                lambda: book.store_part(series, 0, lambda: "42"),  # noqa: B023
                lambda: book.claim_part(series, 0, seconds=9),  # noqa: B023
                lambda: book.record_bundle(paid, {"file": "0" * 64}),  # noqa: B023
                lambda: book.fail(claim),  # noqa: B023
                lambda: book.release_claim(failed.charge, reason="again", principal="ana"),  # noqa: B023
                lambda: book.reopen(said["principal"], reason="again", principal="ana"),  # noqa: B023
            ):
                with pytest.raises(Refused, match="not declared"):
                    late()
        with pytest.raises(Refused, match="was moved to"):
            restore(source, [ACCOUNT], reason="back again", principal="ana")
        with pytest.raises(Refused, match="was moved to"):
            Ledger.open(source, ACCOUNT)
        with Ledger.open(target, ACCOUNT) as book:
            book.verify()
            assert book.store(paid, lambda: "42") == "42"


@pytest.mark.parametrize("to_server", [True, False])
def test_where_a_ledger_is_being_moved_to_nobody_begins_another(
    to_server: bool, server_place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move breaks when the old place is closed: a ledger that began at the new one would have a second budget."""
    first: Path | str = tmp_path / "first.ledger"
    target: Path | str = server_place
    first, target = (first, target) if to_server else (target, first)
    filled(first)
    filled(tmp_path / "other.ledger")
    with monkeypatch.context() as broken:
        broken.setattr(relocation, "_copy", lambda *_: (_ for _ in ()).throw(OSError("the power failed")))
        with pytest.raises(OSError, match="power"):
            move(first, target, reason="several machines", principal="ana")
    with pytest.raises(Refused, match="being moved to this place"):
        Ledger.open(target, ACCOUNT)
    with pytest.raises(Refused, match="another ledger is being moved"):
        move(tmp_path / "other.ledger", target, reason="over it", principal="ana")
    Ledger.open(tmp_path / "other.ledger", ACCOUNT).close()  # It stays where it was.
    move(first, target, reason="again", principal="ana")
    with Ledger.open(target, ACCOUNT) as book:
        book.verify()
        charge(book)


def test_a_ledger_moves_to_one_place_only(server_place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tmp_path / "first.ledger"
    filled(first)
    with monkeypatch.context() as broken:
        broken.setattr(relocation, "_copy", lambda *_: (_ for _ in ()).throw(OSError("the power failed")))
        with pytest.raises(OSError, match="power"):
            move(first, server_place, reason="several machines", principal="ana")
    with pytest.raises(Refused, match="was moved to"):
        Ledger.open(first, ACCOUNT)
    with pytest.raises(Refused, match="spend the same budget twice"):
        move(first, tmp_path / "third.ledger", reason="elsewhere", principal="ana")
    moved = move(first, server_place, reason="again", principal="ana")  # It goes on.
    assert move(first, server_place, reason="again", principal="ana").entries() == moved.entries()
    with Ledger.open(server_place, ACCOUNT) as book:
        charge(book)
    with pytest.raises(Refused, match="already"):
        move(first, server_place, reason="again", principal="ana")
    filled(tmp_path / "other.ledger")
    with pytest.raises(Refused, match="already"):
        move(tmp_path / "other.ledger", server_place, reason="over it", principal="ana")
    with pytest.raises(InvalidParameter, match="where it is"):
        move(server_place, server_place, reason="nothing", principal="ana")
