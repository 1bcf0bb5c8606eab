"""What was changed, cut, replaced or rolled back is refused when the ledger is opened, and while it is open."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import BudgetExceeded, InvalidParameter, LedgerDamaged, LedgerUnavailable, Refused
from discreet.ledger import Account, Budget, Ledger, lease, private_files, restore, sqlite_store
from discreet.ledger.anchor import Anchor
from discreet.ledger.budget import canonical, digest
from discreet.ledger.charge_record import Head
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
TENTH = PureDP("0.1")
ACCOUNT = Account("people", "row", ADD, Budget(1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with three charges and one answer, closed."""
    place = tmp_path / "ledger"
    with Ledger.open(place, ACCOUNT) as book:
        for number in range(3):
            charge = book.charge(
                TENTH, relation=ADD, purpose="question", idempotency_key=str(number), plan="p", version="v"
            )
        book.store(charge, lambda: "42")
    return place


def tampered(path: Path, *statements: str) -> None:
    """Change the file as somebody would who has the disk and knows sqlite3."""
    connection = sqlite3.connect(path, isolation_level=None)
    for trigger in ("entries_stay", "entries_last", "answers_stay", "answers_last"):
        connection.execute(f"DROP TRIGGER {trigger}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


CHANGES = {
    "a price": "UPDATE entries SET body = replace(body, '1/10', '1/99') WHERE idx = 2",
    "a purpose": "UPDATE entries SET body = replace(body, 'question', 'quest') WHERE idx = 3",
    "a hash": "UPDATE entries SET hash = lower(hex(zeroblob(32))) WHERE idx = 2",
    "an entry in the middle": "DELETE FROM entries WHERE idx = 2",
    "the last entry": "DELETE FROM entries WHERE idx = 5",
    "all entries": "DELETE FROM entries",
    "a number": "UPDATE entries SET idx = 9 WHERE idx = 5",
    "a sum": 'UPDATE sums SET body = \'["0","0","0",[],0]\'',
    "no sum": "DELETE FROM sums",
    "a declaration": 'UPDATE accounts SET declared = replace(declared, \'"epsilon":"1"\', \'"epsilon":"9"\')',
    "an answer": "UPDATE answers SET body = '43'",
    "no answer": "DELETE FROM answers",
    "a key": "UPDATE charges SET key = 'other' WHERE key = '1'",
    "no key": "DELETE FROM charges WHERE key = '1'",
    "a question": "UPDATE charges SET question = 'other' WHERE key = '1'",
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found(what: str, path: Path) -> None:
    tampered(path, CHANGES[what])
    with pytest.raises(LedgerDamaged):
        Ledger.open(path, ACCOUNT)


def test_a_change_while_it_is_open_is_found_by_verify(path: Path) -> None:
    with Ledger.open(path, ACCOUNT) as book:
        book.verify()
        tampered(path, CHANGES["a price"])
        with pytest.raises(LedgerDamaged):
            book.verify()


def test_the_tables_themselves_refuse_a_change(path: Path) -> None:
    connection = sqlite3.connect(path)
    for statement in (CHANGES["a price"], CHANGES["the last entry"], CHANGES["an answer"], CHANGES["no answer"]):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(statement)
    connection.close()


def rewritten(path: Path) -> None:
    """Write the whole chain anew with smaller prices, hashes and sums to match: only the anchor can tell."""
    connection = sqlite3.connect(path)
    previous = "0" * 64
    bodies = []
    for (body,) in connection.execute("SELECT body FROM entries ORDER BY idx").fetchall():
        entry = json.loads(body.replace('"1/10"', '"1/99"')) | {"previous": previous}
        bodies.append(canonical(entry))
        previous = digest(bodies[-1])
    connection.close()
    changes = [
        f"UPDATE entries SET body = '{body}', hash = '{digest(body)}' WHERE idx = {i + 1}"
        for i, body in enumerate(bodies)
    ]
    tampered(path, *changes, "UPDATE sums SET body = replace(body, '3/10', '1/33')")


def test_a_chain_that_was_written_anew_is_refused_by_the_anchor(path: Path) -> None:
    rewritten(path)
    with pytest.raises(LedgerDamaged, match="anchored"):
        Ledger.open(path, ACCOUNT)
    path.with_name("ledger.anchor").unlink()  # Without the anchor nobody could tell; so its absence is refused too.
    with pytest.raises(LedgerDamaged, match="anchor"):
        Ledger.open(path, ACCOUNT)


def copied(path: Path) -> Path:
    return Path(shutil.copy2(path, path.with_name("copy")))


def spend(path: Path, times: int = 1) -> None:
    with Ledger.open(path, ACCOUNT) as book:
        for _ in range(times):
            book.charge(TENTH, relation=ADD, purpose="question")


def test_an_old_copy_is_refused(path: Path) -> None:
    old = copied(path)
    spend(path)
    os.replace(old, path)
    with pytest.raises(LedgerDamaged, match="old copy"):
        Ledger.open(path, ACCOUNT)


def test_an_old_copy_that_was_spent_from_elsewhere_is_refused(path: Path) -> None:
    """Two histories of the same length are not the same."""
    old = copied(path)
    elsewhere = path.with_name("elsewhere")
    shutil.copy2(path.with_name("ledger.anchor"), elsewhere)
    with Ledger.open(old, ACCOUNT, anchor=elsewhere) as other:
        other.charge(PureDP("0.2"), relation=ADD, purpose="elsewhere")
    spend(path)
    os.replace(old, path)
    with pytest.raises(LedgerDamaged, match="another one"):
        Ledger.open(path, ACCOUNT)


def test_an_old_copy_is_refused_while_the_ledger_is_open(path: Path) -> None:
    old = copied(path)
    with Ledger.open(path, ACCOUNT) as book:
        book.charge(TENTH, relation=ADD, purpose="question")
        os.replace(old, path)
        with pytest.raises(LedgerDamaged, match="replaced"):
            book.charge(TENTH, relation=ADD, purpose="question")


@pytest.mark.parametrize("cut", [0, 100, 4096, 8192])
def test_a_file_that_was_cut_is_refused(path: Path, cut: int) -> None:
    os.truncate(path, cut)
    with pytest.raises((LedgerDamaged, LedgerUnavailable)):
        Ledger.open(path, ACCOUNT)


def test_a_file_that_is_gone_or_is_something_else_is_refused(path: Path) -> None:
    path.unlink()
    with pytest.raises(LedgerDamaged, match="gone"):
        Ledger.open(path, ACCOUNT)
    path.write_text("not a ledger" * 1000)
    path.chmod(0o600)
    with pytest.raises(LedgerDamaged):
        Ledger.open(path, ACCOUNT)
    other = path.with_name("other")
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    other.chmod(0o600)
    with pytest.raises(LedgerDamaged):
        Ledger.open(other, ACCOUNT)


def test_an_anchor_that_a_crash_left_behind_is_no_reason_to_refuse(path: Path) -> None:
    """One entry behind: it was committed, and nobody had heard of it."""
    anchor = path.with_name("ledger.anchor")
    before = anchor.read_bytes()
    spend(path)
    anchor.write_bytes(before)
    with Ledger.open(path, ACCOUNT) as book:
        assert book.spent().charges == 4
    assert anchor.read_bytes() != before


def test_what_is_read_is_anchored_before_anybody_hears_of_it(path: Path) -> None:
    """Somebody committed and died before the anchor; whoever reads the answer now must not be rolled back."""
    anchor = path.with_name("ledger.anchor")
    before = anchor.read_bytes()
    with Ledger.open(path, ACCOUNT) as book:
        book.charge(TENTH, relation=ADD, purpose="question")
        after = anchor.read_bytes()
        anchor.write_bytes(before[:1024])
        assert book.stored(idempotency_key="2", plan="p", principal="", version="v") is not None
        assert anchor.read_bytes() == after


def test_a_closed_ledger_is_closed(path: Path) -> None:
    book = Ledger.open(path, ACCOUNT)
    book.close()
    book.close()
    for use in (book.left, book.verify, book.history):
        with pytest.raises(Refused, match="closed"):
            use()


@pytest.mark.parametrize("torn", [range(512), range(512, 1024)])
def test_a_torn_slot_of_the_anchor_leaves_the_other_one(path: Path, torn: range) -> None:
    anchor = path.with_name("ledger.anchor")
    spend(path, 2)
    written = bytearray(anchor.read_bytes())
    for place in torn[::3]:
        written[place] = 0
    anchor.write_bytes(bytes(written))
    spend(path)
    for place in range(0, 1024, 3):
        written[place] = 0
    anchor.write_bytes(bytes(written))
    with pytest.raises(LedgerDamaged, match="anchor"):
        Ledger.open(path, ACCOUNT)


@pytest.mark.parametrize("size", [0, 100, 600])
def test_an_anchor_that_was_emptied_is_as_good_as_missing(path: Path, size: int) -> None:
    os.truncate(path.with_name("ledger.anchor"), size)
    with pytest.raises(LedgerDamaged, match="anchor"):
        Ledger.open(path, ACCOUNT)


def test_an_empty_anchor_without_a_ledger_is_the_beginning(tmp_path: Path) -> None:
    """A crash may come right after the first file was made."""
    anchor = tmp_path / "new.anchor"
    anchor.touch(0o600)
    with Ledger.open(tmp_path / "new", ACCOUNT) as book:
        book.charge(TENTH, relation=ADD, purpose="question")
    assert anchor.stat().st_size > 1024


def test_the_newest_slot_is_never_written_over(path: Path) -> None:
    """A torn write must not take away a head that somebody was told."""
    anchor = Anchor(path.with_name("ledger.anchor"))
    start = anchor.read().index
    for index in (start + 1, start + 3, start + 5, start + 5, start + 2, start + 6):
        before, newest = path.with_name("ledger.anchor").read_bytes(), anchor.read()
        anchor.move(Head(index, f"{index:064x}"))
        after = path.with_name("ledger.anchor").read_bytes()
        assert int(after[1024:].split()[0]) == max(index, newest.index)
        changed = [slot for slot in (0, 1) if before[512 * slot :][:512] != after[512 * slot :][:512]]
        assert len(changed) == (index > newest.index)
        assert anchor.read().index == max(index, newest.index)
        assert all(newest.hash.encode() not in before[512 * slot :][:512] for slot in changed)
    anchor.close()


def test_an_anchor_can_be_kept_elsewhere_and_must_be_named(path: Path, tmp_path: Path) -> None:
    place, anchor = tmp_path / "second", tmp_path / "far" / "anchor"
    anchor.parent.mkdir()
    Ledger.open(place, ACCOUNT, anchor=anchor).close()
    assert not place.with_name("second.anchor").exists()
    with pytest.raises(LedgerDamaged, match="missing"):
        Ledger.open(place, ACCOUNT)
    Ledger.open(place, ACCOUNT, anchor=anchor).close()


def test_going_on_with_an_old_copy_counts_everything_as_spent(path: Path) -> None:
    old = copied(path)
    spend(path, 2)
    os.replace(old, path)
    restore(path, [ACCOUNT], reason="the disk failed", principal="custodian")
    with Ledger.open(path, ACCOUNT) as book:
        book.verify()
        assert book.left().epsilon == 0
        with pytest.raises(BudgetExceeded):
            book.charge(PureDP("1e-9"), relation=ADD, purpose="question")
        book.raise_budget(Budget(2), reason="agreed", principal="custodian")
        assert book.times_left(TENTH) == 10
        book.charge(TENTH, relation=ADD, purpose="question")
        assert book.history()[-3].content["reason"] == "the disk failed"
    spend_after = Account("people", "row", ADD, Budget(2))
    with Ledger.open(path, spend_after) as book:
        assert book.left().epsilon == Fraction(9, 10)


def test_what_was_raised_or_opened_since_the_copy_is_spent_too(path: Path) -> None:
    old, raised = copied(path), Account("people", "row", ADD, Budget(3))
    with Ledger.open(path, ACCOUNT) as book:
        book.raise_budget(Budget(3), reason="more", principal="custodian")
    os.replace(old, path)
    with pytest.raises(InvalidParameter, match="people"):
        restore(path, [], reason="the disk failed", principal="custodian")
    for wrong in (Account("people", "row", ADD, Budget("0.5")), Account("people", "customer", ADD, Budget(1))):
        with pytest.raises(Refused):
            restore(path, [wrong], reason="the disk failed", principal="custodian")
    newer = Account("places", "row", ADD, Budget(rho=1))
    restore(path, [raised, newer], reason="the disk failed", principal="custodian")
    for account in (raised, newer):
        with Ledger.open(path, account) as book:
            assert book.times_left(PureDP("1e-6")) == 0


def test_a_restored_approximate_ledger_is_one_event_of_the_whole_budget(tmp_path: Path) -> None:
    place, account = tmp_path / "mixed", Account("people", "row", ADD, Budget(1, "1e-6"))
    with Ledger.open(place, account) as book:
        book.charge(TENTH, relation=ADD, purpose="question")
    place.with_name("mixed.anchor").unlink()
    restore(place, [account], reason="the anchor was lost", principal="custodian")
    with Ledger.open(place, account) as book:
        assert book.spent().epsilon == 1
        assert book.spent().delta == account.budget.delta
        book.raise_budget(Budget(3, "5e-6"), reason="agreed", principal="custodian")
        book.charge(PureDP(2), relation=ADD, purpose="question")
        assert book.times_left(PureDP("0.1")) == 0
        book.verify()


def test_a_newer_format_is_refused_and_an_older_one_grows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, after = sqlite_store.FORMAT, sqlite_store.FORMAT + 1
    monkeypatch.setattr(sqlite_store, "FORMAT", after)
    monkeypatch.setitem(
        sqlite_store.STEPS, now, lambda connection: connection.execute("CREATE TABLE more (x)") and None
    )
    entries = len(history(path))
    assert len(history(path)) == entries
    with Ledger.open(path, ACCOUNT) as book:
        book.verify()
    assert kinds(path)[-1] == "format"
    monkeypatch.setattr(sqlite_store, "FORMAT", now)
    with pytest.raises(LedgerDamaged, match=f"format {after}, this release knows {now}"):
        Ledger.open(path, ACCOUNT)


def history(path: Path) -> tuple[object, ...]:
    with Ledger.open(path, ACCOUNT) as book:
        return book.history()


def kinds(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [json.loads(body)["kind"] for (body,) in connection.execute("SELECT body FROM entries ORDER BY idx")]
    connection.close()
    return found


def test_files_are_private(path: Path) -> None:
    with Ledger.open(path, ACCOUNT):
        assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
    path.chmod(0o644)
    with pytest.raises(Refused, match="chmod 600"):
        Ledger.open(path, ACCOUNT)


def test_a_network_file_system_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_files, "_kind_of_mount", lambda folder: "nfs4")
    with pytest.raises(Refused, match="network file system"):
        Ledger.open(path, ACCOUNT)


def test_the_kind_of_a_mount_is_read_from_the_system() -> None:
    assert private_files._kind_of_mount(Path("/proc/self")) == "proc"


def other_machine() -> dict[str, str]:
    return {"boot": "b", "machine": "m", "name": "n"}


def on(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "host", lambda: machine)
    lease._host_text.cache_clear()


def test_another_machine_waits_until_the_lease_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on(other_machine(), monkeypatch)
    with pytest.raises(LedgerUnavailable, match="another machine"):
        Ledger.open(path, ACCOUNT)
    now = lease.time.time()
    monkeypatch.setattr(lease.time, "time", lambda: now + 61)
    with Ledger.open(path, ACCOUNT) as book:
        book.charge(TENTH, relation=ADD, purpose="question")
        on(other_machine() | {"boot": "after a restart"}, monkeypatch)
        book.charge(TENTH, relation=ADD, purpose="question")
        on(other_machine() | {"name": "in a container"}, monkeypatch)
        book.charge(TENTH, relation=ADD, purpose="question")
        others = [{"boot": "x", "machine": "x", "name": "x"}]
        others.append({"boot": "x", "machine": "m", "name": "x"})  # Made from the same image.
        others.append({"boot": "x", "machine": "x", "name": "n"})  # Named alike.
        for other in others:
            on(other, monkeypatch)
            with pytest.raises(LedgerUnavailable, match="another machine"):
                book.charge(TENTH, relation=ADD, purpose="question")
    lease._host_text.cache_clear()


def test_an_export_can_be_checked_without_the_library(path: Path) -> None:
    with Ledger.open(path, ACCOUNT) as book:
        book.export(path.with_name("export"))
        assert path.with_name("export").stat().st_mode & 0o777 == 0o600
        with pytest.raises(FileExistsError):
            book.export(path.with_name("export"))
    previous = "0" * 64
    for line in path.with_name("export").read_text().splitlines():
        record = json.loads(line)
        assert hashlib.sha256(record["entry"].encode()).hexdigest() == record["hash"]
        assert json.loads(record["entry"])["previous"] == previous
        previous = record["hash"]


def test_a_charge_that_a_restored_copy_has_without_its_answer_is_never_drawn(tmp_path: Path) -> None:
    """The answer may have been told by what was lost: to draw it again is to tell twice for one price."""
    place, account = tmp_path / "ledger", Account("visits", "row", Relation.ADD_REMOVE, Budget(epsilon=1))
    event = PureDP(Fraction(1, 4))
    with Ledger.open(place, account) as book:
        charge = book.charge(event, relation=Relation.ADD_REMOVE, purpose="a count", idempotency_key="one")
        told = book.charge(event, relation=Relation.ADD_REMOVE, purpose="another", idempotency_key="two")
        assert book.store(told, lambda: "12") == "12"
    restore(place, [account], reason="the disk failed", principal="custodian")
    with Ledger.open(place, account) as book:
        with pytest.raises(Refused, match="restored from a copy"):
            book.store(charge, lambda: "13")
        with pytest.raises(Refused, match="new idempotency key"):
            book.charge(event, relation=Relation.ADD_REMOVE, purpose="a count", idempotency_key="one")
        assert book.store(told, lambda: "13") == "12"
        assert book.charge(event, relation=Relation.ADD_REMOVE, purpose="another", idempotency_key="two") == told
        book.verify()
