"""A checkpoint saves an opening the adding up, and nothing else: whatever was changed is found as without it."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.errors import BudgetExceeded, InvalidParameter, LedgerDamaged
from discreet.ledger import Account, Budget, Ledger, Quota, look, restore, sqlite_store, verify_chain
from discreet.ledger import inspect as looking
from discreet.ledger.accounts import LIFETIME
from discreet.ledger.anchor import Anchor
from discreet.ledger.budget import Sums, canonical, digest
from discreet.ledger.charge_record import Entry, Head, written
from discreet.ledger.charges_and_claims import append
from discreet.ledger.postgres_rows import PostgresRows
from discreet.ledger.sqlite_store import OpenFiles, SqliteRows
from discreet.ledger.store import LedgerRows
from discreet.ledger.verify_chain import _SumsOfEntries
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
HUNDREDTH = PureDP("0.01")
ACCOUNT = Account("people", "row", ADD, Budget(1))
EVERY = 20


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint every few entries."""
    for module in (verify_chain, sqlite_store):
        monkeypatch.setattr(module, "CHECKPOINT_EVERY", EVERY)


def live(place: Path | str, keys: range, account: Account = ACCOUNT) -> None:
    """Charge with and without keys, claim, answer, fail."""
    with Ledger.open(place, account) as book:
        for key in keys:
            book.charge(HUNDREDTH, relation=ADD, purpose="plain")
            said = {"idempotency_key": str(key), "plan": f"question {key}", "version": "v"}
            claim = book.claim(HUNDREDTH, relation=ADD, purpose="asked", seconds=60, **said)  # type: ignore[arg-type]
            if key != 7:
                book.store(claim, lambda: "42")  # type: ignore[arg-type]
            else:
                book.fail(claim)  # type: ignore[arg-type]


@pytest.fixture
def path(quick_folder: Path) -> Path:
    """A ledger with three checkpoints, closed."""
    place = quick_folder / "ledger"
    for start in (0, 4, 8, 12):
        live(place, range(start + 1, start + 4))
        with Ledger.open(place, ACCOUNT) as book:
            for _ in range(8):
                book.charge(HUNDREDTH, relation=ADD, purpose="plain")
    assert kinds(place).count("checkpoint") >= 3
    return place


def kinds(path: Path | str) -> list[str]:
    return [entry.kind for entry in look(path).entries()]


def anchored(path: Path) -> Head:
    anchor = Anchor(path.with_name("ledger.anchor"))
    found = anchor.checkpoint()
    anchor.close()
    assert found is not None
    return found


def tampered(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for trigger in ("entries_stay", "entries_last", "answers_stay", "answers_last"):
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def is_refused(path: Path) -> bool:
    try:
        Ledger.open(path, ACCOUNT).close()
    except LedgerDamaged:
        return True
    return False


def test_an_opening_adds_up_only_what_came_after_the_anchored_checkpoint(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, added, entries = anchored(path), _SumsOfEntries.add, list[int]()

    def noted(self: _SumsOfEntries, entry: Entry) -> None:
        entries.append(entry.index)
        added(self, entry)

    monkeypatch.setattr(_SumsOfEntries, "add", noted)
    with Ledger.open(path, ACCOUNT) as book:
        assert min(entries) == mark.index  # the checkpoint itself, which is compared
        spent = book.spent()
        entries.clear()
        book.verify()
        assert min(entries) == 1
        assert book.spent() == spent
    assert spent.epsilon == HUNDREDTH.epsilon * kinds(path).count("charge")


CHANGES = {
    "a price": "UPDATE entries SET body = replace(body, '1/100', '1/999') WHERE idx = 2",
    "a purpose": "UPDATE entries SET body = replace(body, 'plain', 'fancy') WHERE idx = 2",
    "a hash": "UPDATE entries SET hash = lower(hex(zeroblob(32))) WHERE idx = 2",
    "a time": "UPDATE entries SET time = time + 1 WHERE idx = 2",
    "a time that begins alike": "UPDATE entries SET time = time / 10 WHERE idx = 2",
    "a time that is none": "UPDATE entries SET time = 'noon' WHERE idx = 2",
    "a text into bytes": "UPDATE entries SET body = CAST(body AS BLOB) WHERE idx = 2",
    "an answer into bytes": "UPDATE answers SET body = CAST(body AS BLOB)",
    "an entry": "DELETE FROM entries WHERE idx = 2",
    "a number": "UPDATE entries SET idx = 900 WHERE idx = 2",
    "the order": "UPDATE entries SET idx = CASE idx WHEN 900 THEN 2 ELSE idx END WHERE idx IN (2, 900)",
    "a sum": 'UPDATE sums SET body = \'["0","0","0",[],0]\'',
    "no sum": "DELETE FROM sums",
    "a declaration": 'UPDATE accounts SET declared = replace(declared, \'"epsilon":"1"\', \'"epsilon":"9"\')',
    "an answer": "UPDATE answers SET body = '43' WHERE charge = (SELECT min(charge) FROM answers)",
    "no answer": "DELETE FROM answers WHERE charge = (SELECT min(charge) FROM answers)",
    "a key": "UPDATE charges SET key = 'other' WHERE key = '1'",
    "no key": "DELETE FROM charges WHERE key = '1'",
    "a question": "UPDATE charges SET question = 'other' WHERE key = '1'",
    "a claim": "UPDATE claims SET principal = 'eve'",
    "no claim": "DELETE FROM claims",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_before_the_checkpoint_is_found(what: str, path: Path) -> None:
    assert anchored(path).index > 20
    if what == "the order":  # Two entries change places.
        tampered(path, "UPDATE entries SET idx = 900 WHERE idx = 2", "UPDATE entries SET idx = 2 WHERE idx = 3")
        tampered(path, "UPDATE entries SET idx = 3 WHERE idx = 900")
    else:
        tampered(path, CHANGES[what])
    assert is_refused(path)


def test_a_ledger_that_trusts_written_hashes_would_miss_a_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: an opening that follows the column of hashes, and hashes nothing itself."""

    class Believed:
        def __init__(self, body: bytes) -> None:
            self.body = body

        def hexdigest(self) -> str:
            return hashes[self.body]

    tampered(path, CHANGES["a purpose"])
    with sqlite3.connect(path) as connection:
        hashes = dict(connection.execute("SELECT CAST(body AS BLOB), hash FROM entries"))
    assert is_refused(path)
    monkeypatch.setattr(verify_chain, "sha256", Believed)
    assert not is_refused(path)


def forged(path: Path, sums: Callable[[list[list[str]]], list[list[str]]]) -> None:
    """Add a checkpoint as somebody would who holds the file and not the anchor, and make the table agree with it."""
    connection = sqlite3.connect(path, isolation_level=None)
    rows = SqliteRows(connection)
    told = sums([[dataset, scope, text] for (dataset, scope), text in sorted(rows.all_sums().items())])
    head, body = written(rows.head(), kind="checkpoint", dataset="", time=rows.head().time, content={"sums": told})
    rows.append(head, body)
    for dataset, scope, text in told:
        rows.set_sums(dataset, scope, text)
    connection.close()


def nothing(sums: list[list[str]]) -> list[list[str]]:
    return [[dataset, scope, Sums.nothing(0).text()] for dataset, scope, _ in sums]


def from_the_chain(rows: LedgerRows) -> Head | None:
    """Wrong: take the newest checkpoint of the chain, whether it is anchored or not."""
    found = [head for head, body in rows.entries() if '"kind":"checkpoint"' in body]
    return found[-1] if found else None


def test_a_forged_checkpoint_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forged(path, nothing)
    assert is_refused(path)
    monkeypatch.setattr(SqliteRows, "checkpoint", from_the_chain)
    assert not is_refused(path)  # The planted mistake has the whole budget again.


def test_a_stale_checkpoint_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(entry for entry in look(path).entries() if entry.kind == "checkpoint")
    forged(path, lambda _: first.content["sums"])
    assert is_refused(path)
    monkeypatch.setattr(SqliteRows, "checkpoint", from_the_chain)
    assert not is_refused(path)


def test_a_checkpoint_that_is_not_in_the_chain_is_refused(path: Path) -> None:
    mark = anchored(path)
    anchor = path.with_name("ledger.anchor")
    before = anchor.read_bytes()
    for wrong in (Head(mark.index, "0" * 64), Head(mark.index + 1, mark.hash), Head(9999, mark.hash)):
        anchor.write_bytes(before[:1536])
        opened = Anchor(anchor)
        opened.keep_checkpoint(wrong)
        opened.close()
        with pytest.raises(LedgerDamaged, match="anchored checkpoint"):
            Ledger.open(path, ACCOUNT)


def test_another_entry_than_a_checkpoint_is_not_taken_for_one(path: Path) -> None:
    mark = anchored(path)
    other = next(entry for entry in look(path).entries() if entry.index == mark.index + 1)
    anchor = Anchor(path.with_name("ledger.anchor"))
    anchor.keep_checkpoint(Head(other.index, other.hash))
    anchor.close()
    with pytest.raises(LedgerDamaged, match="another entry"):
        Ledger.open(path, ACCOUNT)


def test_a_torn_checkpoint_in_the_anchor_is_none_and_comes_back(path: Path) -> None:
    mark, anchor = anchored(path), path.with_name("ledger.anchor")
    anchor.write_bytes(anchor.read_bytes()[:-300] + b"x" * 300)
    assert not is_refused(path)
    assert anchored(path).index >= mark.index  # All was added up again, and what agrees is anchored.


def test_a_head_is_not_taken_for_a_checkpoint(path: Path) -> None:
    anchor = path.with_name("ledger.anchor")
    written_before = anchor.read_bytes()
    anchor.write_bytes(written_before[:1536] + written_before[:512])
    opened = Anchor(anchor)
    assert opened.checkpoint() is None
    opened.close()


def from_the_table(rows: LedgerRows, verified: object = None) -> None:
    """Wrong: write down the sums that are kept beside the chain."""
    sums = [[dataset, scope, text] for (dataset, scope), text in sorted(rows.all_sums().items())]
    entry = append(rows, "", "checkpoint", {"sums": sums})
    rows.anchor_checkpoint(Head(entry.index, entry.hash))


def spent_after_a_change(path: Path) -> None:
    """Change the sums while the ledger is open, and charge until a checkpoint is due."""
    with Ledger.open(path, ACCOUNT) as book:
        tampered(path, CHANGES["a sum"])
        charge_until_a_checkpoint(book)


def charge_until_a_checkpoint(book: Ledger) -> None:
    for _ in range(EVERY + 1):
        book.charge(HUNDREDTH, relation=ADD, purpose="plain")


def test_a_change_of_sums_is_not_made_to_last_by_a_checkpoint(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LedgerDamaged, match="sums"):
        spent_after_a_change(path)
    assert is_refused(path)
    monkeypatch.setattr(sqlite_store, "add_checkpoint", from_the_table)
    other = path.with_name("other")
    live(other, range(1, 9))
    spent_after_a_change(other)
    assert not is_refused(other)  # The planted mistake has forgotten what was spent.


def test_a_store_whose_checkpoint_found_damage_charges_nothing_more(path: Path) -> None:
    """Whoever writes the checkpoint is told; so is everybody who comes later, and who opens the files again."""
    with Ledger.open(path, ACCOUNT) as book:
        tampered(path, CHANGES["a sum"])
        with pytest.raises(LedgerDamaged, match="sums"):
            charge_until_a_checkpoint(book)
        before = len(book.history())
        for _ in range(3):
            check_refused(book)
        book._store.drop()  # type: ignore[attr-defined]
        check_refused(book)
        assert len(book.history()) == before


def check_refused(book: Ledger) -> None:
    with pytest.raises(LedgerDamaged, match="sums"):
        book.charge(HUNDREDTH, relation=ADD, purpose="plain")
    with pytest.raises(LedgerDamaged, match="sums"):
        book.claim(HUNDREDTH, relation=ADD, purpose="asked", seconds=60)
    with pytest.raises(LedgerDamaged, match="sums"):
        book.raise_budget(Budget(2), reason="agreed", principal="custodian")


def test_what_was_found_damaged_is_refused_until_it_was_verified(place: Path | str) -> None:
    with Ledger.open(place, ACCOUNT) as book:
        book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        with book._store.writing() as rows:
            right = rows.sums("people", LIFETIME)
            rows.set_sums("people", LIFETIME, Sums.nothing(0).text())
        with pytest.raises(LedgerDamaged, match="sums"):
            book.verify()
        check_refused(book)
        with pytest.raises(LedgerDamaged, match="sums"):
            book.verify()
        check_refused(book)
        with book._store.verifying() as rows:
            rows.set_sums("people", LIFETIME, right or "")
        book.verify()
        assert book.charge(HUNDREDTH, relation=ADD, purpose="plain").id == 3


def broken_page(path: Path) -> None:
    """Write over a page that no charge without a key reads."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'charges'").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute("UPDATE lease SET until = until + 1")  # So that whoever has pages in memory reads them again.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def unreadable(path: Path, body: str) -> None:
    """Change an entry into something that is none, with the hash that it has then."""
    tampered(path, f"UPDATE entries SET body = '{body}', hash = '{digest(body)}' WHERE idx = 3")


UNREADABLE: dict[str, Callable[[Path], None]] = {
    "no JSON": lambda path: unreadable(path, "nothing"),
    "no object": lambda path: unreadable(path, "[1]"),
    "an object without names": lambda path: unreadable(path, "{}"),
    "a text that is none": lambda path: tampered(path, "UPDATE entries SET body = CAST(x'ff41' AS TEXT) WHERE idx = 3"),
    "a sum that is none": lambda path: tampered(path, "INSERT INTO sums VALUES ('x', 'x', CAST(x'ff' AS TEXT))"),
    "a page that is none": broken_page,
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_even_be_read_is_damage_and_stays_found(what: str, quick_folder: Path) -> None:
    """Whatever the database or JSON says of it, the next charge is refused as well."""
    path = quick_folder / "ledger"
    with Ledger.open(path, ACCOUNT) as book:
        for _ in range(5):
            book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        UNREADABLE[what](path)
        with pytest.raises(LedgerDamaged):
            book.history() if what == "a text that is none" else book.verify()
        with pytest.raises(LedgerDamaged):
            book.charge(HUNDREDTH, relation=ADD, purpose="plain")
    assert is_refused(path)
    with pytest.raises(LedgerDamaged):
        look(path)


@pytest.mark.parametrize("what", ["sums", "declared"])
@pytest.mark.parametrize("text", ["nothing", "[1]", "{}", '["x","0","0",[],1]'])
def test_a_charge_that_cannot_read_what_it_goes_on_from_finds_damage(what: str, text: str, place: Path | str) -> None:
    with Ledger.open(place, ACCOUNT) as book:
        book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        with book._store.writing() as rows:
            rows.set_sums("people", LIFETIME, text) if what == "sums" else rows.set_account("people", text)
            append(rows, "people", "bundle", {"charge": 2, "digests": {}})  # A server is sent what has an entry.
        with pytest.raises(LedgerDamaged, match="cannot be read"):
            book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        with pytest.raises(LedgerDamaged, match="cannot be read"), book._store.writing():
            pytest.fail("damage that was found stays found, whatever is asked next")


def test_a_server_whose_tables_are_damaged_stays_so(server_place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from psycopg.errors import DataCorrupted

    def corrupted(self: PostgresRows, *, after: int = 0) -> None:
        raise DataCorrupted("invalid page in block 7")

    with Ledger.open(server_place, ACCOUNT) as book:
        book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        with monkeypatch.context() as patched:
            patched.setattr(PostgresRows, "entries", corrupted)
            with pytest.raises(LedgerDamaged, match="tables"):
                book.verify()
        with pytest.raises(LedgerDamaged, match="tables"):
            book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        book.verify()
        assert book.charge(HUNDREDTH, relation=ADD, purpose="plain").id == 3


def test_a_store_that_another_thread_closes_is_opened_again(
    quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while somebody looks whether a checkpoint is due: that is a part of its turn."""
    is_due, closing = OpenFiles.is_due, list[threading.Thread]()
    with Ledger.open(quick_folder / "ledger", ACCOUNT) as book:

        def closed(self: OpenFiles, every: int) -> bool:
            closing.append(threading.Thread(target=book._store.close))
            closing[-1].start()
            closing[-1].join(0.05)
            return is_due(self, every)

        for _ in range(EVERY):
            book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        with monkeypatch.context() as patched:
            patched.setattr(OpenFiles, "is_due", closed)
            for _ in range(3):
                book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        for thread in closing:
            thread.join()
        book.verify()
        assert book.spent().charges == EVERY + 3


def test_a_checkpoint_that_is_anchored_after_a_snapshot_is_no_damage(
    server_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two open a ledger of one machine at once; the one writes a checkpoint when the other has begun to read."""
    for start in (1, 11, 21):
        live(server_place, range(start, start + 8))
    before, checkpoint, others = kinds(server_place).count("checkpoint"), PostgresRows.checkpoint, list[str]()

    def late(self: PostgresRows) -> Head | None:
        if not others:
            others.append("opened")
            live(server_place, range(0))
        return checkpoint(self)

    monkeypatch.setattr(PostgresRows, "checkpoint", late)
    with Ledger.open(server_place, ACCOUNT) as book:
        book.verify()
    assert kinds(server_place).count("checkpoint") > before


def test_who_looks_while_others_charge_sees_no_damage(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger.open(path, ACCOUNT) as book:

        def slow(rows: LedgerRows) -> None:
            verify_chain.verify(rows)
            book.charge(HUNDREDTH, relation=ADD, purpose="plain")

        monkeypatch.setattr(looking, "verify", slow)
        assert look(path).spent("people").charges == book.spent().charges - 1


def test_what_would_not_be_read_as_it_is_written_is_no_entry(place: Path | str) -> None:
    """Two halves of a pair are read as one character, which is sorted elsewhere; and so are numbers as names."""
    with Ledger.open(place, ACCOUNT) as book:
        charge = book.charge(HUNDREDTH, relation=ADD, purpose="plain")
        for names in ({"\ud83d\ude00": "x", "\uffff": "y"}, {10: "x", 9: "y"}, {None: "x"}, {"a": None}):
            with pytest.raises(InvalidParameter):
                book.record_bundle(charge, names)  # type: ignore[arg-type]
        digests = {"\ud83d\ude00": "x", "\uffff": "y"}
        with book._store.writing() as rows, pytest.raises(InvalidParameter, match="as it is written"):
            append(rows, "people", "bundle", {"charge": charge.id, "digests": digests})
        book.record_bundle(charge, {"\U0001f600": "x", "\uffff": "y", "": "z"})
        book.verify()


@pytest.mark.parametrize("late", [False, True])
def test_bytes_in_place_of_a_text_are_found_by_everybody_who_verifies(path: Path, late: bool) -> None:
    which = "SELECT max(idx) FROM entries" if late else "2"
    with Ledger.open(path, ACCOUNT) as book:
        tampered(path, f"UPDATE entries SET body = CAST(body AS BLOB) WHERE idx = ({which})")
        with pytest.raises(LedgerDamaged):
            book.verify()
    with pytest.raises(LedgerDamaged):
        look(path)
    assert is_refused(path)


def test_an_entry_in_another_form_is_refused(path: Path) -> None:
    """Names could be hidden in escapes, where nobody looks for them in the bytes."""
    connection = sqlite3.connect(path, isolation_level=None)
    rows = SqliteRows(connection)
    head, body = written(rows.head(), kind="format", dataset="", time=rows.head().time, content={"from": 1, "to": 2})
    hidden = body.replace('"from"', '"\\u0066rom"')
    rows.append(Head(head.index, verify_chain.digest(hidden), head.time), hidden)
    connection.close()
    with pytest.raises(LedgerDamaged, match="not written as entries are"):
        Ledger.open(path, ACCOUNT)


def test_names_of_users_are_no_links_of_the_chain(tmp_path: Path) -> None:
    """A purpose, a key and a file of a bundle may be called what fields of entries are called."""
    place = tmp_path / "ledger"
    with Ledger.open(place, ACCOUNT) as book:
        for number in range(EVERY):
            charge = book.charge(
                HUNDREDTH,
                relation=ADD,
                purpose='"previous":"' + "0" * 64 + '","time":7,"key":',
                idempotency_key=f'{number},"kind":"charge"',
            )
            book.record_bundle(charge, {"previous": "0" * 64, "time": "7", "kind": "charge"})
    for _ in range(2):
        with Ledger.open(place, ACCOUNT) as book:
            book.verify()
    assert "checkpoint" in kinds(place)


def test_a_restored_copy_begins_without_a_checkpoint(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.chmod(0o600)
    live(path, range(30, 38))
    copy.replace(path)
    assert is_refused(path)
    restore(path, [ACCOUNT], reason="the disk failed", principal="custodian")
    with Ledger.open(path, ACCOUNT) as book:
        assert book.times_left(HUNDREDTH) == 0
        with pytest.raises(BudgetExceeded):
            book.charge(HUNDREDTH, relation=ADD, purpose="more")


def test_checkpoints_go_with_raised_budgets_quotas_and_every_store(place: Path | str) -> None:
    """Whatever changes the sums or the rules stands in the chain before and after checkpoints."""
    quota = Quota(Budget(epsilon=3), principal="*")
    before = Budget(2)
    for number, budget in enumerate((before, Budget(3, "1e-6"), Budget(4, "1e-6"))):
        account = Account("people", "row", ADD, before)
        with Ledger.open(place, account, quotas=[quota] if number == 0 else ()) as book:
            if number:
                book.raise_budget(budget, reason="agreed", principal="custodian")
            for _ in range(EVERY + 1):
                book.charge(HUNDREDTH, relation=ADD, purpose="plain", principal="ana")
            book.verify()
        before = budget
    for _ in range(2):
        with Ledger.open(place, Account("people", "row", ADD, before)) as book:
            assert book.spent().charges == 3 * (EVERY + 1)
            book.verify()
    assert kinds(place).count("checkpoint") >= 2


def test_sums_that_are_too_many_are_not_written_again_and_again(tmp_path: Path) -> None:
    """A checkpoint that is longer than the entries it stands for is none."""
    place, quota = tmp_path / "ledger", Quota(Budget(epsilon=1), principal="*")
    for _ in range(2):
        with Ledger.open(place, ACCOUNT, quotas=[quota]) as book:
            for number in range(EVERY + 5):
                book.charge(PureDP("0.001"), relation=ADD, purpose="plain", principal=str(number))
    assert "checkpoint" not in kinds(place)


def test_a_checkpoint_costs_nothing_and_belongs_to_no_data_set(path: Path) -> None:
    with Ledger.open(path, ACCOUNT) as book:
        assert "checkpoint" not in {entry.kind for entry in book.history()}
    for entry in look(path).entries():
        if entry.kind == "checkpoint":
            assert entry.dataset == ""
            assert canonical(entry.content["sums"]).count("people") == 1
