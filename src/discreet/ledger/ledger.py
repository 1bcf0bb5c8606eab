"""The ledger of a data set: charge before reading, store before answering."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path
from typing import Self, TypeVar, final

from discreet.custodian_debug import ConstantFailure
from discreet.errors import InvalidParameter
from discreet.exact import Number
from discreet.ledger.accounts import (
    LIFETIME,
    NO_CAP,
    Book,
    LedgerScope,
    check_declared,
    check_quotas,
    declaration,
    declare,
    granted_quotas,
    quotas_without_grant,
    raised_book,
    replaced_quotas,
)
from discreet.ledger.budget import Budget, Quota, Sums, canonical
from discreet.ledger.charge_record import (
    Account,
    Charge,
    Entry,
    ReadClaim,
    StoredAnswer,
    as_charge,
    check_digests,
    check_key,
    check_nested,
    check_texts,
    facts_of,
    question_of,
)
from discreet.ledger.charges_and_claims import (
    add_claim,
    append,
    bundles_of,
    charge_entry,
    check_not_claimed,
    check_room,
    fail_claim,
    finish_claim,
    last_event,
    nested_left,
    now,
    release_claim,
    reopen,
    sums_of,
    until_claimed,
)
from discreet.ledger.filters import held
from discreet.ledger.installments import (
    add_part,
    check_known,
    check_user_key,
    part_before,
    part_key,
    parts_of,
    read_part_number,
    read_parts_paid,
)
from discreet.ledger.private_files import private
from discreet.ledger.requests import (
    AnswerRequest,
    ChargeRequest,
    ClaimRequest,
    answer_before,
    book_of,
    decided,
    is_shared,
    process_of,
    refuse_arriving,
    refuse_moved,
    with_all_quotas,
)
from discreet.ledger.restoration import whole
from discreet.ledger.server_address import LedgerAddress, LedgerPlace, as_place
from discreet.ledger.spending import (
    Entries,
    Left,
    Spending,
    TightTotal,
    delta_share,
    left_of,
    money,
    money_within,
    more_of,
    price_words,
    spending_of,
)
from discreet.ledger.store import ClosedStore, LedgerRows, Store
from discreet.ledger.verify_chain import Replay, add_checkpoint, verify, verify_opening
from discreet.names import check_path
from discreet.noise import source
from discreet.pages.kit import Described
from discreet.privacy import Composed, Event, Repeated, epsilon
from discreet.privacy.convert import read_delta
from discreet.privacy.relation import Relation, read_relation

__all__ = ["Ledger"]

T = TypeVar("T")


@final
class Ledger:
    """The record of everything that was spent on one data set. It is a `Payer`.

    Guarantee   Whatever anyone asks, in any order, from any number of threads and processes, after any crash: all
                answers together are within the budget, for one unit under the relation of the account.
    Theorem     A filter that only looks at sums which only grow, see docs/ledger.md. [RRUV16, FZ21, Lec21, WRRW23]

    Args:
        store: Where the record is kept; `Ledger.open` makes it.
        dataset: The public name of the data set.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("memory", account)
        >>> release = dp.count([1, 2, 3], relation=dp.Relation.ADD_REMOVE, epsilon=0.25, session=ledger)
        >>> ledger.spent().epsilon, ledger.left().epsilon
        (Fraction(1, 4), Fraction(3, 4))
    """

    _let_go: Callable[[], object]  # Recorded randomness is allowed again, even if nobody closes the ledger.

    def __init__(self, store: Store, dataset: str) -> None:
        self._store, self._dataset = store, dataset

    @classmethod
    def open(
        cls,
        path: str | LedgerPlace,
        account: Account,
        *,
        anchor: str | Path | None = None,
        quotas: Iterable[Quota] = (),
    ) -> Ledger:
        """Open or make the ledger of a data set; `"memory"` keeps it in this process only.

        What was declared before must be declared again, or the ledger is refused. Without `quotas` those that were
        declared before stay in force. The anchor is a small file beside the ledger unless another place is said.
        """
        if not isinstance(account, Account):
            raise InvalidParameter("account must be an Account: the data set, its unit, relation and budget")
        check_texts(dataset=account.dataset, unit=account.unit)
        from discreet.ledger.sqlite_store import MemoryStore, file_store

        with ExitStack() as held:
            if path == "memory":
                store: Store = MemoryStore()
            else:
                held.enter_context(source.hold())  # Recorded randomness and a real budget do not go together.
                beside = None if anchor is None else check_path(anchor, name="anchor")
                place = as_place(path)
                if isinstance(place, LedgerAddress):
                    from discreet.ledger.postgres_store import PostgresStore

                    store = PostgresStore(place, beside)
                else:
                    store = file_store(check_path(path, name="the ledger"), beside)
            ledger = cls(store, account.dataset)
            ledger._declare(account, tuple(quotas))
            ledger._let_go = weakref.finalize(ledger, held.pop_all().close)
            return ledger

    def _declare(self, account: Account, quotas: tuple[Quota, ...]) -> None:
        if is_shared(self._store):  # Verified in a snapshot, so that nobody waits for it.
            with self._store.reading() as rows:
                is_declared, verified = self._verified(rows, account, quotas)
            if verified.is_due:
                with self._store.writing() as rows:
                    add_checkpoint(rows, verified)
            if is_declared:
                return
        with self._store.verifying() as rows:
            is_declared, verified = self._verified(rows, account, quotas)
            if not is_declared:
                book = declare(account, quotas)
                append(rows, self._dataset, "open", declaration(book))
                rows.set_account(account.dataset, book.text())
            add_checkpoint(rows, verified)

    def _verified(self, rows: LedgerRows, account: Account, quotas: tuple[Quota, ...]) -> tuple[bool, Replay]:
        """Verify the record; tell whether the data set was declared, as it is now, and what the entries say."""
        refuse_arriving(rows)
        verified = verify_opening(rows)
        refuse_moved(rows)
        if (before := rows.account(account.dataset)) is not None:
            check_declared(account, quotas, Book.read(account.dataset, before))
        return before is not None, verified

    @property
    def account(self) -> Account:
        """What the data set is declared as now."""
        with self._store.reading() as rows:
            return self._book(rows).account

    @property
    def quotas(self) -> tuple[Quota, ...]:
        """The quotas that are in force now."""
        with self._store.reading() as rows:
            return tuple(quota for quota, _ in self._book(rows).quotas)

    def charge(
        self,
        event: Event,
        *,
        relation: Relation | str,
        purpose: str,
        principal: str = "",
        project: str = "",
        idempotency_key: str | None = None,
        plan: str | None = None,
        version: str | None = None,
        unit: str = "row",
        nested: Sequence[Event] = (),
        parts: int | None = None,
    ) -> Charge:
        """Commit the charge durably or raise; the answer may be lost, the charge never is.

        Functions of the library protect rows. Whoever charges an event that holds for other units names them as the
        account does, and says as `nested` what is spent for each unit within that one.
        An `idempotency_key` that was charged before with the same event, plan, principal, project and version
        returns that charge and costs nothing: its answer, if there is one, is in `stored`.
        With `parts` it pays for a series of that many answers together, which come one by one with `store_part`.
        """
        relation = read_relation(relation)
        facts = facts_of(
            event,
            relation,
            purpose=purpose,
            principal=principal,
            project=project,
            idempotency_key=idempotency_key,
            plan=plan,
            version=version,
            nested=nested,
        )
        check_user_key(idempotency_key)
        if parts is not None:
            facts["parts"] = read_parts_paid(parts)
        return decided(self._store, ChargeRequest(self._dataset, event, facts, unit, nested))

    def claim(
        self,
        event: Event,
        *,
        relation: Relation | str,
        purpose: str,
        seconds: Number,
        principal: str = "",
        project: str = "",
        idempotency_key: str | None = None,
        plan: str | None = None,
        version: str | None = None,
        unit: str = "row",
        nested: Sequence[Event] = (),
    ) -> ReadClaim | StoredAnswer:
        """Charge, unless it was charged before, and claim the one read that the charge pays for; in one transaction.

        Whoever gets a claim reads, within `seconds`, and ends it with `store`. If the same idempotency key, or without
        one the same question, was answered before, its answer is returned; if it is being read now, this waits for it,
        `seconds` at most; if a read of it ended without an answer, `AnswerFailed` is raised, and nothing is charged or
        read. With three reads of this principal on this data set that ended so, nothing is read for them until
        `reopen`.
        """
        relation = read_relation(relation)
        facts = facts_of(
            event,
            relation,
            purpose=purpose,
            principal=principal,
            project=project,
            idempotency_key=idempotency_key,
            plan=plan,
            version=version,
            nested=nested,
        )
        check_user_key(idempotency_key)
        asked = ClaimRequest(self._dataset, event, facts, unit, nested, seconds, process_of(self._store))
        return until_claimed(lambda: decided(self._store, asked), seconds)

    def claim_part(self, charge: Charge | int, number: int, *, seconds: Number) -> ReadClaim | None:
        """Claim a read from which the answers of a series up to `number` follow; None if they are stored already.

        Storing that answer ends the claim. The rest is as for `claim`.
        """
        index = charge.id if isinstance(charge, Charge) else charge

        def attempt() -> ReadClaim | None:
            with self._store.writing() as rows:
                return self._claimed_part(rows, charge_entry(rows, self._dataset, index), number, seconds)

        return until_claimed(attempt, seconds)

    def _claimed_part(self, rows: LedgerRows, entry: Entry, number: int, seconds: Number) -> ReadClaim | None:
        read_part_number(entry, number)
        if rows.by_key(self._dataset, part_key(entry.index, number)) is not None:
            return None
        check_known(rows, entry)
        principal = entry.content["principal"]
        check_not_claimed(rows, entry.index)
        check_room(rows, self._dataset, principal)
        return add_claim(
            rows,
            as_charge(entry),
            dataset=self._dataset,
            principal=principal,
            seconds=seconds,
            process=process_of(self._store),
            part=number,
        )

    def attempt(self, claim: ReadClaim, work: Callable[[], T]) -> T:
        """Read and answer what was claimed. Whatever goes wrong ends the claim, and looks the same from outside."""
        result: list[T] = []
        try:
            with ConstantFailure():
                result.append(work())
        finally:
            if not result:  # Also after an interrupt: that it was read is known.
                with suppress(Exception):
                    self.fail(claim)
        return result[0]

    def fail(self, claim: ReadClaim) -> None:
        """Mark a claim as failed: an entry of its own. Without the mark it counts as failed when its time is over."""
        with self._store.writing() as rows:
            fail_claim(rows, claim)

    def finish(self, claim: ReadClaim) -> None:
        """End a claim whose result is not kept here: an entry of its own. A claim with a key is ended with `store`."""
        with self._store.writing() as rows:
            finish_claim(rows, charge_entry(rows, self._dataset, claim.charge.id), claim)

    def claims(self) -> tuple[ReadClaim, ...]:
        """Return all claims on this data set that have no answer and were not released, in order."""
        with self._store.reading() as rows:
            return rows.claims(self._dataset)

    def release_claim(self, charge: Charge | int, *, reason: str, principal: str) -> None:
        """Let the rows of a charge be read once more, after a read without an answer: an entry, with who and why."""
        index = charge.id if isinstance(charge, Charge) else charge
        with self._store.writing() as rows:
            release_claim(rows, self._dataset, index, reason=reason, principal=principal)

    def reopen(self, analyst: str, *, reason: str, principal: str) -> tuple[ReadClaim, ...]:
        """Let an analyst ask again after failures, which count no more: an entry, with who and why.

        What failed stays unread: that is what `release_claim` is for.
        """
        with self._store.writing() as rows:
            return reopen(rows, self._dataset, analyst, reason=reason, principal=principal)

    def store(self, charge: ReadClaim | Charge | int, draw: Callable[[], str]) -> str:
        """Return the answer of a charge; draw and store it if there is none yet.

        The data was read before, under a claim if it was read from a source. If the process dies here, nothing left it.
        Under a claim nobody else draws: it is drawn first, while others use the ledger, then stored; or dropped, if the
        claim has failed meanwhile.
        """
        claim = charge if isinstance(charge, ReadClaim) else None
        paid = charge.charge if isinstance(charge, ReadClaim) else charge
        index = paid.id if isinstance(paid, Charge) else paid
        if claim is not None or is_shared(self._store):  # Drawn before its turn; one that comes late is dropped.
            with self._store.reading() as rows:
                text = answer_before(rows, self._dataset, index, claim)
            if text is None:
                text = decided(self._store, AnswerRequest(self._dataset, index, claim, _drawn(draw)))
            return text
        with self._store.writing() as rows:
            text = answer_before(rows, self._dataset, index, claim)
            if text is None:
                text = AnswerRequest(self._dataset, index, claim, _drawn(draw)).decide(rows)
            return text

    def record_bundle(self, charge: Charge | int, digests: Mapping[str, str]) -> None:
        """Record the digests of what is published under a charge, once each."""
        index = charge.id if isinstance(charge, Charge) else charge
        check_digests(digests)
        with self._store.writing() as rows:
            charge_entry(rows, self._dataset, index)
            content = {"charge": index, "digests": dict(digests)}
            if content not in bundles_of(rows, index):
                append(rows, self._dataset, "bundle", content)

    def store_part(self, charge: Charge | int, number: int, draw: Callable[[], str]) -> str:
        """Return one answer of a series, counted from 0; draw and store it in one transaction if it is the next one.

        What a series of answers spends together was charged before the first. Each is drawn once, in order.
        """
        index = charge.id if isinstance(charge, Charge) else charge
        if is_shared(self._store):
            with self._store.reading() as rows:
                text = part_before(rows, charge_entry(rows, self._dataset, index), number)
            drawn = _drawn(draw) if text is None else text
            draw = lambda: drawn  # noqa: E731
        with self._store.writing() as rows:
            return add_part(rows, charge_entry(rows, self._dataset, index), number, draw)

    def parts(self, charge: Charge | int) -> tuple[str, ...]:
        """Return the answers of a series that were stored so far, in order."""
        index = charge.id if isinstance(charge, Charge) else charge
        with self._store.reading() as rows:
            return parts_of(rows, charge_entry(rows, self._dataset, index))

    def stored(
        self,
        *,
        principal: str,
        version: str | None,
        idempotency_key: str | None = None,
        plan: str | None = None,
        project: str = "",
    ) -> StoredAnswer | None:
        """Return an answer that was released before, for the same principal, project, data version and plan.

        An `idempotency_key` that was used with anything else is refused. Without a version no plan is ever the same.
        """
        asked = {"principal": principal, "project": project, "plan": plan, "version": version}
        with self._store.reading() as rows:
            index = None if idempotency_key is None else rows.by_key(self._dataset, idempotency_key)
            if index is not None:
                check_key(charge_entry(rows, self._dataset, index), asked)
            else:
                question = question_of(asked)
                index = None if question is None else rows.by_question(self._dataset, question)
            text = None if index is None else rows.answer(index)
            if index is None or text is None:
                return None
            return StoredAnswer(as_charge(charge_entry(rows, self._dataset, index)), text)

    def entry(self, charge: Charge | int) -> Entry:
        """Return the entry of a charge."""
        with self._store.reading() as rows:
            return charge_entry(rows, self._dataset, charge.id if isinstance(charge, Charge) else charge)

    def charged(self, idempotency_key: str) -> Entry | None:
        """Return the entry of the charge that was made under an idempotency key; None if there is none yet."""
        with self._store.reading() as rows:
            index = rows.by_key(self._dataset, idempotency_key)
            return None if index is None else charge_entry(rows, self._dataset, index)

    def spent(self, *, at: Fraction | None = None) -> Spending:
        """Return the exact sums of everything that was charged; `at` is the delta at which the last price is told."""
        with self._store.reading() as rows:
            return self._spending(rows, self._book(rows), at)

    def _spending(self, rows: LedgerRows, book: Book, at: Fraction | None) -> Spending:
        last, account = last_event(rows, self._dataset), book.account
        words = None if last is None else price_words(last, account.relation, account.budget, at)
        return spending_of(book.rule, self._lifetime(rows, book), words)

    def left(self, *, principal: str | None = None, project: str = "", like: Event | None = None) -> Left:
        """Return what is left of the lifetime budget, rounded down, and how many more charges like the last one fit.

        For a `principal` their quotas count too. `like` is another event than that of the last charge.
        """
        with self._store.reading() as rows:
            return self._left(rows, self._book(rows), principal, project, like)

    def _left(self, rows: LedgerRows, book: Book, principal: str | None, project: str, like: Event | None) -> Left:
        event, relation = like or last_event(rows, self._dataset), book.account.relation
        sums = self._lifetime(rows, book)
        most, limit = more_of(book.rule, sums, event, relation), ""
        for scope in self._quota_scopes(rows, book, principal, project):
            more = more_of(scope.rule, sums_of(rows, self._dataset, scope), event, relation)
            if more is not None and (most is None or more < most):
                most, limit = more, scope.text
        if book.lacks_cap(principal or ""):
            most, limit = 0, NO_CAP
        return left_of(book.rule, sums, most, limit, None if limit else delta_share(book.rule, sums, event, relation))

    def _quota_scopes(
        self, rows: LedgerRows, book: Book, principal: str | None, project: str
    ) -> tuple[LedgerScope, ...]:
        if principal is None:
            return ()
        scopes = book.scopes(project=project, principal=principal, time=now(rows))[1:]
        return tuple(scope for scope in scopes if scope.nested is None)

    def money(
        self,
        *,
        principal: str | None = None,
        project: str = "",
        like: Event | None = None,
        at: Fraction | None = None,
        called: Mapping[str, str] | None = None,
    ) -> str:
        """Return one sentence: what was spent and how many more charges like the last one fit, by all limits.

        For a `principal` their quotas count too. `like` is another event than that of the last charge, and `at` the
        delta at which its price is told. Units within the first follow, by the names in `called` that a policy has.
        """
        with self._store.reading() as rows:
            book = self._book(rows)
            spent, left = self._spending(rows, book, at), self._left(rows, book, principal, project, like)
            within = money_within(nested_left(rows, self._dataset, book, ()), called or {})
            return money(spent, left, "it" if like is None else "this one") + within

    def quotas_left(self, *, principal: str = "", project: str = "") -> tuple[tuple[str, Left], ...]:
        """Return every quota that a charge of this principal and project counts against, and what is left of it."""
        with self._store.reading() as rows:
            book, last = self._book(rows), last_event(rows, self._dataset)
            found = []
            for scope in self._quota_scopes(rows, book, principal, project):
                sums = sums_of(rows, self._dataset, scope)
                more = more_of(scope.rule, sums, last, book.account.relation)
                found.append((scope.text, left_of(scope.rule, sums, more)))
            return tuple(found)

    def nested_left(self, like: Sequence[Event] = ()) -> tuple[tuple[str, Spending, Left], ...]:
        """Return what was spent and is left of each unit within the first; how many more fit like these or the last."""
        with self._store.reading() as rows:
            return nested_left(rows, self._dataset, self._book(rows), like)

    def affords(
        self,
        event: Event,
        *,
        principal: str = "",
        project: str = "",
        at_once: bool = True,
        nested: Sequence[Event] = (),
    ) -> bool:
        """Tell whether this event could be charged now, under the lifetime budget and every quota.

        With `at_once=False` its parts are charged one by one, in several charges.
        """
        if at_once:
            return self.times_left(event, principal=principal, project=project, nested=nested) > 0
        with self._store.reading() as rows:
            book = self._book(rows)
            check_nested(nested, book.account)
            relation, scopes = book.account.relation, book.scopes(project=project, principal=principal, time=now(rows))
            priced = [(scope, scope.rule.sum_price(scope.event(event, nested), relation)) for scope in scopes]
            fits = all(scope.rule.times(sums_of(rows, self._dataset, scope), price) > 0 for scope, price in priced)
            return fits and not book.lacks_cap(principal)

    def times_left(self, event: Event, *, principal: str = "", project: str = "", nested: Sequence[Event] = ()) -> int:
        """Return how many more such events could be charged now."""
        found = self.times_left_by(event, principal=principal, project=project, nested=nested)
        return min(times for _, times in found)

    def times_left_by(
        self, event: Event, *, principal: str = "", project: str = "", nested: Sequence[Event] = ()
    ) -> tuple[tuple[str, int], ...]:
        """Return how many more such events every lifetime budget holds now, and each quota that they count against."""
        with self._store.reading() as rows:
            book = self._book(rows)
            check_nested(nested, book.account)
            relation, found = book.account.relation, []
            for scope in book.scopes(project=project, principal=principal, time=now(rows)):
                sums = sums_of(rows, self._dataset, scope)
                found.append((scope.text, held(scope.rule, sums, scope.event(event, nested), relation)))
            return (*found, (NO_CAP, 0)) if book.lacks_cap(principal) else tuple(found)

    def raise_budget(self, new_budget: Budget, *, reason: str, principal: str, unit: str | None = None) -> None:
        """Raise the lifetime budget: an entry of its own, with who did it and why. It cannot be lowered.

        It is raised within its kind, and a pure budget may get its first delta. Until now everybody had the old
        guarantee, and from now on the new one holds for everything, what was spent before included: the same sums go
        on, and what a pure account has spent is taken off the epsilon of every rule that begins with the delta. The
        proof is in docs/ledger.md. With `unit` it is the budget of a unit within the first, by what the account calls
        it, which is raised within its kind.
        """
        check_texts(reason=reason, principal=principal)
        with self._store.writing() as rows:
            book = self._book(rows)
            raised, told = raised_book(book, new_budget, unit, self._lifetime(rows, book))
            if "sums" in told:
                rows.set_sums(self._dataset, LIFETIME, told["sums"])
            facts = {"reason": reason, "principal": principal, **told, **declaration(raised)}
            append(rows, self._dataset, "raise", facts)
            rows.set_account(self._dataset, raised.text())

    def set_quotas(self, quotas: Iterable[Quota], *, reason: str, principal: str) -> None:
        """Replace the quotas: an entry of its own. A quota that was never there before starts with nothing spent.

        Caps of agents stay: they are given with `grant`, and taken back with `end_grant`.
        """
        said = tuple(quotas)
        self._change_quotas(lambda book, ever: replaced_quotas(book, ever, said), reason=reason, principal=principal)

    def grant(self, quota: Quota, *, reason: str, principal: str) -> None:
        """Add the cap of an agent to the quotas, in one transaction: an entry of its own, with who granted it and why.

        The same grant again changes nothing, and its sum goes on. Another cap for the same agent is refused, and so is
        one that was taken back.
        """
        self._change_quotas(lambda book, ever: granted_quotas(book, ever, quota), reason=reason, principal=principal)

    def end_grant(self, agent: str, *, reason: str, principal: str) -> None:
        """Take back the cap of an agent, for good: an entry of its own. From then on nothing is charged to it."""
        self._change_quotas(lambda book, ever: quotas_without_grant(book, agent), reason=reason, principal=principal)

    def _change_quotas(
        self, change: Callable[[Book, Book], tuple[Quota, ...] | None], *, reason: str, principal: str
    ) -> None:
        """Write other quotas, if there are any; `change` gets the book, and one with all quotas that ever were."""
        check_texts(reason=reason, principal=principal)
        with self._store.writing() as rows:
            book = self._book(rows)
            ever = with_all_quotas(rows, book)
            quotas = change(book, ever)
            if quotas is not None:
                changed = ever.with_quotas(quotas)
                check_quotas(book, changed)
                append(rows, self._dataset, "quotas", {"reason": reason, "principal": principal} | declaration(changed))
                rows.set_account(self._dataset, changed.text())

    def verify(self) -> None:
        """Read the whole record again: hashes, order, sums, declarations, answers. Raise if anything is not right."""
        with self._store.verifying() as rows:
            verify(rows)

    def history(self) -> tuple[Entry, ...]:
        """Return every entry of this data set."""
        with self._store.reading() as rows:
            entries = [Entry.read(body, head.hash) for head, body in rows.entries()]
        account = self.account
        mine = (entry for entry in entries if entry.dataset == self._dataset)
        return Entries.of(mine, account.relation, account.budget)

    def export(self, path: str | Path) -> None:
        """Write the whole record as JSON lines, each with its hash; it needs no library to be checked."""
        with self._store.reading() as rows, open(path, "x", encoding="ascii", opener=private) as file:
            for head, body in rows.entries():
                file.write(canonical({"hash": head.hash, "entry": body}) + "\n")

    def total(self, delta: Number) -> TightTotal:
        """Return the tight total of all charges at a delta: right if all of them were fixed in advance."""
        with self._store.reading() as rows:
            relation = self._book(rows).account.relation
        events = _charged(self.history())
        if not events:
            return TightTotal(0.0, read_delta(delta), 0)
        everything = Composed(Repeated(event, count) for event, count in events.items())
        return TightTotal(epsilon(everything, delta, relation=relation), read_delta(delta), events.total())

    def describe(self, *, called: Mapping[str, str] | None = None) -> Described:
        """Say what is guaranteed, what was spent and what is left; `called` has what a policy calls one unit."""
        with self._store.reading() as rows:
            book = self._book(rows)
            spent, left = self._spending(rows, book, None), self._left(rows, book, None, "", None)
        return book.stands(spent, left, self.nested_left() if book.nested else (), called)

    def __repr__(self) -> str:
        """Name the data set; the store is not asked, so that this works when it is closed or away."""
        return f"Ledger({self._dataset!r}{', closed' if isinstance(self._store, ClosedStore) else ''})"

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()
        self._store = ClosedStore()
        self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def _book(self, rows: LedgerRows) -> Book:
        return book_of(rows, self._dataset)

    def _lifetime(self, rows: LedgerRows, book: Book) -> Sums:
        return sums_of(rows, self._dataset, LedgerScope(LIFETIME, book.rule, ""))


def _drawn(draw: Callable[[], str]) -> str:
    text = draw()
    if not isinstance(text, str):
        raise InvalidParameter("draw must return the answer as text")
    return text


def _charged(entries: Iterable[Entry]) -> Counter[Event]:
    """Count what was charged; what came before a copy was restored is one event, the whole budget."""
    events: Counter[Event] = Counter()
    for entry in entries:
        if entry.kind == "restored":
            events = Counter([whole(Budget.unpacked(entry.content["declared"]["budget"]))])
        elif (event := entry.event) is not None:
            events[event] += 1
    return events
