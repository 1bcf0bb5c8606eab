"""Restore a ledger from an old copy after a disk was lost: everything counts as spent, and only when said.

What was charged since the copy was made is unknown, but it was within the budget, for the filter saw to that. So
everything up to now, known and lost, is one event: the whole budget. Nothing is left until the budget is raised,
which is a decision of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from discreet.errors import InvalidParameter, Refused
from discreet.ledger.accounts import LIFETIME, Book, as_split, check_restored, declaration, declare
from discreet.ledger.budget import Budget, Sums
from discreet.ledger.charge_record import Account, check_texts
from discreet.ledger.charges_and_claims import append
from discreet.ledger.filters import PrivacyFilter
from discreet.ledger.requests import refuse_moved
from discreet.ledger.server_address import LedgerAddress, LedgerPlace, as_place
from discreet.ledger.store import LedgerRows
from discreet.ledger.verify_chain import verify
from discreet.noise import source
from discreet.privacy.events import ZCDP, ApproxDP, Event, PureDP
from discreet.privacy.relation import Relation

__all__ = ["exhausted", "restore", "whole"]


def restore(
    path: str | LedgerPlace,
    accounts: Iterable[Account],
    *,
    reason: str,
    principal: str,
    anchor: str | Path | None = None,
) -> None:
    """Accept the ledger file that is there, though its anchor knows more, or is lost too.

    `accounts` are all data sets that were ever opened in this ledger, each as it was last declared: budgets that were
    raised and data sets that were opened since the copy was made included. Every one of them counts as fully spent.

    Args:
        path: The file of the ledger, for instance from a backup; or its address on a PostgreSQL server.
        accounts: All data sets that were ever opened in it, as they were last declared.
        reason: Why it is restored; it stands in the record.
        principal: Who restores it; it stands in the record.
        anchor: The file that holds the end of the record, if it is not beside the ledger.

    Raises:
        InvalidParameter: If a data set of the ledger is not among the accounts.
        Refused: If an account has no lifetime budget: what it spent is unknown.
        LedgerDamaged: If the file itself is no whole record.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("visits.ledger", account).close()
        >>> dp.ledger.restore("visits.ledger", [account], reason="backup of Monday", principal="ana")
        >>> dp.ledger.look("visits.ledger").left("visits").epsilon
        Fraction(0, 1)
    """
    from discreet.ledger.postgres_store import PostgresStore
    from discreet.ledger.sqlite_store import FileStore, file_store

    listed = {account.dataset: account for account in accounts}
    check_texts(reason=reason, principal=principal)
    with source.hold():
        address, outside = as_place(path), None if anchor is None else Path(anchor)
        store: FileStore | PostgresStore
        if isinstance(address, LedgerAddress):
            store = PostgresStore(address, outside)
        else:
            store = file_store(Path(str(path)), outside)
        with store.restoring() as rows:
            verify(rows)
            refuse_moved(rows)
            _spend_everything(rows, listed, {"reason": reason, "principal": principal})
        store.close()


def _spend_everything(rows: LedgerRows, accounts: Mapping[str, Account], facts: Mapping[str, str]) -> None:
    declared = rows.accounts()
    if missing := sorted(declared.keys() - accounts.keys()):
        raise InvalidParameter(f"these data sets are in the ledger too, say how they were declared: {missing}")
    for dataset, account in accounts.items():
        book = _last_declared(account, declared.get(dataset))
        sums, scopes = exhausted(book), book.nested_scopes()
        nested = [_used_up(scope.rule, book.account.relation).text() for scope in scopes]
        content = {**facts, "sums": sums.text(), **({"nested_sums": nested} if nested else {}), **declaration(book)}
        append(rows, dataset, "restored", content)
        rows.set_sums(dataset, LIFETIME, sums.text())
        for scope, text in zip(scopes, nested, strict=True):
            rows.set_sums(dataset, scope.name, text)
        rows.set_account(dataset, book.text())


def _last_declared(account: Account, before: str | None) -> Book:
    if before is None:
        return declare(account, ())
    book = Book.read(account.dataset, before)
    budget = as_split(account.budget, book.rule)
    check_restored(book.account, replace(account, budget=budget))
    for number, (_, inner) in enumerate(account.nested):
        book = book.with_nested_budget(number, inner)
    return book.with_budget(budget)


def exhausted(book: Book) -> Sums:
    """Return the sums after one event that is the whole budget."""
    return _used_up(book.rule, book.account.relation)


def _used_up(rule: PrivacyFilter, relation: Relation) -> Sums:
    return Sums.nothing(rule.shares.kept).plus(rule.price(whole(rule.budget), relation))


def whole(budget: Budget) -> Event:
    """Return one event that is a whole budget."""
    match budget.kind:
        case "pure":
            return PureDP(budget.epsilon or 0)
        case "concentrated":
            return ZCDP(budget.rho or 0)
        case "approximate":
            return ApproxDP(budget.epsilon or 0, budget.delta or 0)
        case _:
            raise Refused("a data set without a lifetime budget cannot be restored: what it spent is unknown")
