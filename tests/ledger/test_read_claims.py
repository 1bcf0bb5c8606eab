"""A read is claimed before it begins, ends with an answer or never, and only a custodian lets it be tried again."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import AnswerFailed, BudgetExceeded, InvalidParameter, LedgerDamaged, Refused
from discreet.ledger import Account, Budget, Ledger, charges_and_claims, look, restore
from discreet.ledger.anchor import Anchor
from discreet.ledger.charge_record import Head, ReadClaim, StoredAnswer
from discreet.privacy import PureDP
from discreet.privacy.relation import Relation

ADD = Relation.ADD_REMOVE
SMALL = PureDP("0.01")
ACCOUNT = Account("people", "row", ADD, Budget(1))
LONG = 600


def claimed(book: Ledger, key: str | None = None, seconds: float = LONG, **said: Any) -> ReadClaim:
    found = claim(book, key, seconds, **said)
    assert isinstance(found, ReadClaim)
    return found


def claim(book: Ledger, key: str | None = None, seconds: float = LONG, **said: Any) -> ReadClaim | StoredAnswer:
    facts = {"principal": "ann", "plan": key, "version": None} | said
    return book.claim(SMALL, relation=ADD, purpose="question", idempotency_key=key, seconds=seconds, **facts)


def kinds(book: Ledger) -> list[str]:
    return [entry.kind for entry in book.history()]


@pytest.fixture
def book(place: Path | str) -> Iterator[Ledger]:
    with Ledger.open(place, ACCOUNT) as opened:
        yield opened
        opened.verify()


def test_a_claim_is_on_record_with_its_charge_before_anybody_reads(book: Ledger, place: Path | str) -> None:
    found = claimed(book, "k")
    assert kinds(book) == ["open", "charge", "reading"]
    assert look(place).claims() == book.claims() == (found,)
    assert book.store(found, lambda: "42") == "42"
    assert book.claims() == ()
    assert kinds(book)[3:] == ["answer"]


def test_an_answered_question_is_answered_again_and_not_claimed_again(book: Ledger) -> None:
    first = claimed(book, "k", version="v")
    book.store(first, lambda: "42")
    for key in ("k", None):
        again = claim(book, key, plan="k", version="v")
        assert isinstance(again, StoredAnswer)
        assert (again.charge, again.text) == (first.charge, "42")
    assert book.spent().charges == 1


def test_a_draw_holds_up_nobody_and_is_dropped_if_its_claim_has_failed(book: Ledger) -> None:
    found = claimed(book, "k")

    def late() -> str:
        with ThreadPoolExecutor(1) as other:  # Whoever waits for the answer gives up meanwhile.
            other.submit(book.fail, found).result(timeout=60)
        return "42"

    with pytest.raises(Refused, match="this claim has ended"):
        book.store(found, late)
    assert [one.is_failed for one in book.claims()] == [True]
    assert kinds(book) == ["open", "charge", "reading", "failed"]


@pytest.mark.long
def test_the_last_charge_is_found_however_much_was_read_and_answered_since(place: Path | str) -> None:
    """Else "more like the last one" goes away when others' answers are known, which may be before they are told."""
    other = Account("others", "row", ADD, Budget(1))
    with Ledger.open(place, ACCOUNT) as book, Ledger.open(place, other) as busy:
        book.charge(SMALL, relation=ADD, purpose="mine")
        said = book.money()
        for number in range(60):
            busy.store(claimed(busy, f"k{number}"), lambda: "42")
        assert busy.history()[-1].index > 180
        assert book.money() == said


@pytest.mark.parametrize("again", [{"key": "k"}, {"key": None, "plan": "k"}])
def test_what_failed_is_never_charged_or_claimed_again(again: dict[str, Any], book: Ledger) -> None:
    book.fail(claimed(book, "k", version="v"))
    for _ in range(5):
        with pytest.raises(AnswerFailed) as failed:
            claim(book, version="v", **again)
        assert failed.value.__context__ is None
    assert book.spent().charges == 1
    assert kinds(book).count("reading") == 1


def test_a_new_key_asks_anew_and_pays(book: Ledger) -> None:
    book.fail(claimed(book, "k", version="v"))
    again = claimed(book, "another", plan="k", version="v")
    assert book.spent().charges == 2
    book.store(again, lambda: "42")
    for key in ("another", None):  # What is answered is answered, also without a key; the old key failed for ever.
        assert isinstance(claim(book, key, plan="k", version="v"), StoredAnswer)
    with pytest.raises(AnswerFailed):
        claim(book, "k", version="v")
    assert book.spent().charges == 2


def test_without_a_key_and_a_version_the_same_question_is_another_charge(book: Ledger) -> None:
    book.fail(claimed(book, None, plan="p"))
    claimed(book, None, plan="p")
    assert book.spent().charges == 2


@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, AssertionError, KeyboardInterrupt, SystemExit])
def test_whatever_ends_a_read_ends_its_claim(kind: type[BaseException], book: Ledger) -> None:
    def fails() -> str:
        raise kind("a secret")

    with pytest.raises(AnswerFailed if issubclass(kind, Exception) else kind):
        book.attempt(claimed(book, "k"), fails)
    assert [one.is_failed for one in book.claims()] == [True]
    with pytest.raises(AnswerFailed):
        claim(book, "k")


def test_a_claim_whose_time_is_over_has_failed_although_nobody_said_so(book: Ledger) -> None:
    late = claimed(book, "k", seconds=0.001)
    time.sleep(0.01)
    with pytest.raises(AnswerFailed):
        claim(book, "k")
    # Whoever reads it does not know that, and an answer is better than none: it is still the only one.
    assert book.store(late, lambda: "42") == "42"
    assert isinstance(claim(book, "k"), StoredAnswer)


def test_a_claim_that_failed_takes_no_answer_any_more(book: Ledger) -> None:
    """Else a failure that somebody saw would count no more, and be followed by others without end."""
    keyed, unkeyed = claimed(book, "k"), claimed(book)
    for failed in (keyed, unkeyed):
        book.fail(failed)
    with pytest.raises(Refused, match="has ended"):
        book.store(keyed, lambda: "42")
    with pytest.raises(Refused, match="has ended"):
        book.finish(unkeyed)
    assert [one.is_failed and one.counts for one in book.claims()] == [True, True]
    with pytest.raises(AnswerFailed):
        claim(book, "k")


def test_a_claim_of_a_process_that_was_killed_has_failed_at_once(place: Path | str) -> None:
    path = place
    child = os.fork()
    if child == 0:
        with Ledger.open(path, ACCOUNT) as own:
            claimed(own, "k")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with Ledger.open(path, ACCOUNT) as book:
        began = time.monotonic()
        with pytest.raises(AnswerFailed):
            claim(book, "k")
        assert time.monotonic() - began < LONG / 10
        assert book.spent().charges == 1
        book.verify()


def test_four_failures_are_one_too_many(book: Ledger) -> None:
    for number in range(charges_and_claims.MOST_UNANSWERED):
        book.fail(claimed(book, str(number)))
    for key in ("more", None):
        with pytest.raises(Refused, match="discreet ledger reopen") as refused:
            claim(book, key)
        assert "ann" in str(refused.value)
    assert book.spent().charges == charges_and_claims.MOST_UNANSWERED
    claimed(book, "of another", principal="ben")
    with pytest.raises(AnswerFailed):  # What failed is still the constant failure.
        claim(book, "0")


def test_claims_of_processes_that_died_count(place: Path | str) -> None:
    path = place
    for number in range(charges_and_claims.MOST_UNANSWERED):
        child = os.fork()
        if child == 0:
            claimed(Ledger.open(path, ACCOUNT), str(number))
            os._exit(0)
        os.waitpid(child, 0)
    with Ledger.open(path, ACCOUNT) as book, pytest.raises(Refused, match="ended without an answer"):
        claim(book, "one more")


def test_a_question_waits_while_three_are_read_and_goes_on_when_one_is_answered(book: Ledger) -> None:
    first, *_ = [claimed(book, str(number)) for number in range(3)]
    with pytest.raises(Refused, match="being answered"):
        claim(book, "hasty", seconds=0.05)
    assert book.spent().charges == 3
    threading.Timer(0.05, lambda: book.store(first, lambda: "42")).start()
    assert isinstance(claim(book, "patient"), ReadClaim)
    assert len(book.claims()) == 3


def test_a_question_waits_for_its_own_answer(book: Ledger) -> None:
    first = claimed(book, "k")
    threading.Timer(0.05, lambda: book.store(first, lambda: "42")).start()
    found = claim(book, "k")
    assert isinstance(found, StoredAnswer)
    assert found.text == "42"
    slow = claimed(book, "slow")
    with pytest.raises(AnswerFailed):
        claim(book, "slow", seconds=0.05)
    book.store(slow, lambda: "43")


def test_of_many_who_ask_at_once_one_reads(book: Ledger) -> None:
    """Threads with one key: one claim, one draw, everybody gets its bits."""
    reads, told, lock = [], [], threading.Lock()

    def ask() -> None:
        found = claim(book, "k")
        if isinstance(found, ReadClaim):
            with lock:
                reads.append(found)
            time.sleep(0.05)
            book.store(found, lambda: os.urandom(8).hex())
        again = claim(book, "k")
        assert isinstance(again, StoredAnswer)
        with lock:
            told.append(again.text)

    together(ask, 8)
    assert len(reads) == 1
    assert len(told) == 8
    assert len(set(told)) == 1


def together(work: Any, number: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hurry(path: Path, process: int, outlet: int) -> None:
    """Ask as fast as possible; fail every second read. Count what was refused."""
    refused = 0
    with Ledger.open(path, Account("people", "row", ADD, Budget(1))) as book:
        for number in range(6):
            try:
                found = claimed(book, f"{process}-{number}")
            except Refused:
                refused += 1
                continue
            assert len([one for one in book.claims() if one.principal == "ann"]) <= charges_and_claims.MOST_UNANSWERED
            if (process + number) % 2:
                book.fail(found)
            else:
                book.store(found, lambda: "42")
    os.write(outlet, bytes([refused]))


def test_processes_at_once_never_have_more_than_three_unanswered(place: Path | str) -> None:
    path, (inlet, outlet) = place, os.pipe()
    Ledger.open(path, ACCOUNT).close()
    children = []
    for process in range(4):
        child = os.fork()
        if child == 0:
            try:
                hurry(path, process, outlet)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    with Ledger.open(path, ACCOUNT) as book:
        assert sum(one.is_failed for one in book.claims()) == charges_and_claims.MOST_UNANSWERED
        assert sum(os.read(inlet, 4)) == 24 - book.spent().charges > 0
        assert_never_more_than_three(book)
        book.verify()


def assert_never_more_than_three(book: Ledger) -> None:
    """Follow the chain: at no entry were there more claims without an answer."""
    unanswered: set[int] = set()
    for entry in book.history():
        if entry.kind == "reading":
            unanswered.add(entry.content["charge"])
        elif entry.kind == "answer":
            unanswered.remove(entry.content["charge"])
        assert len(unanswered) <= charges_and_claims.MOST_UNANSWERED


def test_a_custodian_releases_a_claim_with_a_reason(book: Ledger) -> None:
    old = claimed(book, "k")
    book.fail(old)
    for wrong in ("", "   "):
        with pytest.raises(InvalidParameter, match="say why"):
            book.release_claim(old.charge, reason=wrong, principal="custodian")
        with pytest.raises(InvalidParameter, match="say why"):
            book.release_claim(old.charge, reason="more memory", principal=wrong)
    book.release_claim(old.charge, reason="more memory", principal="custodian")
    entry = book.history()[-1]
    assert entry.kind == "released"
    assert entry.content == {"charge": old.charge.id, "reason": "more memory", "principal": "custodian"}
    new = claimed(book, "k")
    assert (new.charge, book.spent().charges) == (old.charge, 1)
    with pytest.raises(Refused, match="has ended"):  # Whoever still had the old one cannot answer any more.
        book.store(old, lambda: "41")
    with pytest.raises(Refused, match="hand over the claim"):
        book.store(old.charge, lambda: "41")
    assert book.store(new, lambda: "42") == "42"
    with pytest.raises(InvalidParameter, match="no read without an answer"):
        book.release_claim(old.charge, reason="once more", principal="custodian")


def test_a_question_without_a_key_goes_on_under_the_charge_that_was_released(book: Ledger) -> None:
    old = claimed(book, None, plan="p", version="v")
    book.fail(old)
    book.release_claim(old.charge, reason="more memory", principal="custodian")
    assert claimed(book, None, plan="p", version="v").charge == old.charge
    assert book.spent().charges == 1


def test_a_question_at_another_price_is_paid_again(book: Ledger) -> None:
    """Else a read for little noise would go on under a charge for much of it."""
    dear, facts = PureDP("0.5"), {"principal": "ann", "plan": "p", "version": "v"}
    cheap = book.charge(SMALL, relation=ADD, purpose="question", **facts)
    found = book.claim(dear, relation=ADD, purpose="question", seconds=LONG, **facts)
    assert isinstance(found, ReadClaim)
    assert found.charge != cheap
    assert book.spent().epsilon == dear.epsilon + SMALL.epsilon


def test_what_may_still_be_answered_is_not_released(book: Ledger) -> None:
    with pytest.raises(Refused, match="may still be answered"):
        book.release_claim(claimed(book, "k").charge, reason="impatience", principal="custodian")
    with pytest.raises(InvalidParameter, match="has failed"):
        book.reopen("ann", reason="impatience", principal="custodian")


def test_a_custodian_reopens_and_what_failed_stays_unread(book: Ledger) -> None:
    for number in range(3):
        book.fail(claimed(book, str(number)))
    with pytest.raises(InvalidParameter, match="say why"):
        book.reopen("ann", reason="", principal="custodian")
    assert len(book.reopen("ann", reason="a bug of ours", principal="custodian")) == 3
    entry = book.history()[-1]
    assert (entry.kind, entry.content["analyst"], entry.content["reason"]) == ("reopened", "ann", "a bug of ours")
    with pytest.raises(AnswerFailed):
        claim(book, "0")
    for number in range(3, 6):
        book.fail(claimed(book, str(number)))
    with pytest.raises(Refused, match="ended without an answer"):
        claim(book, "more")
    book.verify()


def test_a_result_that_is_kept_elsewhere_ends_a_claim_that_nobody_can_ask_for(book: Ledger) -> None:
    book.finish(claimed(book))
    assert book.claims() == ()
    assert kinds(book)[-1] == "read"
    for keyed in (claimed(book, "k"), claimed(book, None, plan="p", version="v")):
        with pytest.raises(InvalidParameter, match="ends with store"):
            book.finish(keyed)


def test_a_refused_claim_writes_nothing(book: Ledger) -> None:
    before = kinds(book)
    with pytest.raises(BudgetExceeded):
        book.claim(PureDP(2), relation=ADD, purpose="too much", seconds=LONG)
    with pytest.raises(InvalidParameter):
        book.claim(SMALL, relation=ADD, purpose="no time", seconds=0)
    with pytest.raises(InvalidParameter, match="accounted under ADD_REMOVE"):
        book.claim(SMALL, relation=Relation.REPLACE_ONE, purpose="other neighbours", seconds=LONG)
    with pytest.raises(Refused, match="protects each row by itself, and this charge protects everybody who shares a p"):
        book.claim(SMALL, relation=ADD, purpose="other units", unit="person", seconds=LONG)
    assert kinds(book) == before


def test_a_series_claims_each_read_and_its_last_answer_ends_it(book: Ledger) -> None:
    charge = book.charge(SMALL, relation=ADD, purpose="series", principal="ann", idempotency_key="s", parts=4)
    first = book.claim_part(charge, 1, seconds=LONG)
    assert first is not None
    book.store_part(charge, 0, lambda: "1")
    assert book.claims() == (first,)
    book.store_part(charge, 1, lambda: "2")
    assert book.claims() == ()
    assert book.claim_part(charge, 1, seconds=LONG) is None
    second = book.claim_part(charge, 3, seconds=LONG)
    assert second is not None
    book.fail(second)
    with pytest.raises(AnswerFailed):
        book.claim_part(charge, 3, seconds=LONG)
    with pytest.raises(InvalidParameter, match="4 answers"):
        book.claim_part(charge, 4, seconds=LONG)
    book.release_claim(charge, reason="more memory", principal="custodian")
    assert book.claim_part(charge, 3, seconds=LONG) is not None


CHANGES = {
    "forgotten": "DELETE FROM claims",
    "of another": "UPDATE claims SET principal = 'ben'",
    "with more time": "UPDATE claims SET until = until + 1",
    "not failed": "UPDATE claims SET failed = 0",
    "not counted": "UPDATE claims SET counts = 0",
    "of another process": "UPDATE claims SET process = ':::'",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_claim_that_was_changed_beside_the_chain_is_found(change: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with Ledger.open(path, ACCOUNT) as book:
        book.fail(claimed(book, "k"))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(CHANGES[change])
    connection.close()
    with pytest.raises(LedgerDamaged, match="claims"):
        Ledger.open(path, ACCOUNT)
    with pytest.raises(LedgerDamaged, match="claims"):
        look(path)


def test_claims_in_memory_are_claims(tmp_path: Path) -> None:
    with Ledger.open("memory", ACCOUNT) as book:
        book.fail(claimed(book, "k"))
        with pytest.raises(AnswerFailed):
            claim(book, "k")


@contextmanager
def old_ledger(folder: Path) -> Iterator[Path]:
    """A ledger that was written before reads were claimed."""
    path = folder / "ledger"
    script = (Path(__file__).parent.parent / "vectors" / "ledger_format_1.sql").read_text(encoding="utf-8")
    connection = sqlite3.connect(path)
    connection.executescript(script)
    head = Head(*connection.execute("SELECT idx, hash FROM entries ORDER BY idx DESC").fetchone())
    connection.close()
    path.chmod(0o600)
    anchor = Anchor.create(folder / "ledger.anchor")
    anchor.replace(head)
    anchor.close()
    yield path


def test_an_older_ledger_is_looked_at_opened_and_claimed(tmp_path: Path) -> None:
    with old_ledger(tmp_path) as path:
        seen = look(path)
        assert (seen.claims(), len(seen.entries())) == ((), 6)
        with Ledger.open(path, ACCOUNT) as book:
            assert kinds(book)[:6] == ["open", "charge", "answer", "charge", "charge", "part"]
            found = book.stored(idempotency_key="answered", plan="p", principal="ann", version="v")
            assert found is not None
            assert found.text == "42 ± 3"
            # Paid for and never claimed: it may be read once, under that charge.
            paid = book.claim(
                PureDP("0.1"),
                relation=ADD,
                purpose="paid",
                principal="ann",
                idempotency_key="paid",
                plan="q",
                version="v",
                seconds=LONG,
            )
            assert isinstance(paid, ReadClaim)
            assert (paid.charge.id, book.spent().charges) == (4, 3)
            book.verify()
        assert [entry.kind for entry in look(path).entries()][6:] == ["format", "reading"]


def test_an_older_copy_is_restored(tmp_path: Path) -> None:
    with old_ledger(tmp_path) as path:
        (tmp_path / "ledger.anchor").unlink()
        restore(path, [ACCOUNT], reason="the anchor was lost", principal="custodian")
        with Ledger.open(path, ACCOUNT) as book:
            assert book.times_left(SMALL) == 0
            book.verify()


def test_claims_of_a_restored_copy_stay(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with Ledger.open(path, ACCOUNT) as book:
        for number in range(3):
            book.fail(claimed(book, str(number)))
    restore(path, [ACCOUNT], reason="a disk failure", principal="custodian")
    with Ledger.open(path, ACCOUNT) as book:
        book.raise_budget(Budget(2), reason="agreed", principal="custodian")
    with Ledger.open(path, Account("people", "row", ADD, Budget(2))) as book:
        with pytest.raises(Refused, match="ended without an answer"):
            claim(book, "new")
        with pytest.raises(Refused, match="restored from a copy"):
            claim(book, "0")


def test_a_count_that_forgets_the_dead_is_caught(place: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on live claims only, as a wrong author writes it, lets the fourth failure through."""

    def only_the_living(rows: Any, dataset: str, principal: str) -> None:
        living = [one for one in rows.claims(dataset) if one.is_live(time.time_ns() // 1000)]
        if len(living) >= charges_and_claims.MOST_UNANSWERED:
            raise Refused("busy")

    monkeypatch.setattr("discreet.ledger.requests.check_room", only_the_living)
    with (
        pytest.raises(pytest.fail.Exception),
        Ledger.open(place, ACCOUNT) as wrong,
    ):
        test_four_failures_are_one_too_many(wrong)


def test_a_release_without_a_reason_is_caught(place: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charges_and_claims, "_check_reason", lambda reason, principal: None)
    with (
        pytest.raises(pytest.fail.Exception),
        Ledger.open(place, ACCOUNT) as wrong,
    ):
        test_a_custodian_releases_a_claim_with_a_reason(wrong)
