"""Move a ledger to another place: from a file to a server and back, whole, verified, and never into two places.

The order: make the other place, see that it is empty and reserve it, so that nobody begins a ledger there; close this
one with an entry `moved`, which names where to; copy everything, that entry included, and add an entry `arrived`, in
one transaction; verify. A ledger whose last entry is `moved` has no accounts, so nobody can add anything to it, also
those who have it open. If anything breaks in between, the same command goes on; to a third place it is refused, since
two copies would spend the same budget twice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import InvalidParameter, LedgerDamaged, Refused
from discreet.ledger.budget import canonical, digest
from discreet.ledger.charge_record import Entry, Head, check_texts
from discreet.ledger.charges_and_claims import append
from discreet.ledger.inspect import LedgerView, is_there, look
from discreet.ledger.server_address import LedgerAddress, LedgerPlace, as_place
from discreet.ledger.store import LedgerRows
from discreet.ledger.verify_chain import verify
from discreet.names import check_path
from discreet.noise import source

if TYPE_CHECKING:
    from discreet.ledger.postgres_store import PostgresStore
    from discreet.ledger.sqlite_store import FileStore

__all__ = ["move"]

_RESERVED = ""  # Where no ledger is yet, no data set is declared: what stands there is a mark, see `refuse_arriving`.


def move(
    path: str | LedgerPlace,
    to: str | LedgerPlace,
    *,
    reason: str,
    principal: str,
    anchor: str | Path | None = None,
    to_anchor: str | Path | None = None,
) -> LedgerView:
    """Move a ledger to a place where there is none yet; afterwards the old one cannot be charged any more.

    Args:
        path: The file of the ledger, or its address on a PostgreSQL server.
        to: The file, or the address, where it will be.
        reason: Why it is moved; it stands in the record.
        principal: Who moves it; it stands in the record.
        anchor: The anchor of the old place, if it is not the usual one.
        to_anchor: The anchor of the new place, if it is not the usual one.

    Returns:
        What the ledger says at its new place, where it was verified again.

    Raises:
        InvalidParameter: If there is no ledger at `path`.
        Refused: If there is another ledger at `to` already, or this one was moved elsewhere before.
        LedgerDamaged: If the ledger is not whole.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("visits.ledger", account).close()
        >>> dp.ledger.move("visits.ledger", "other.ledger", reason="a new disk", principal="ana").datasets
        ('visits',)
    """
    check_texts(reason=reason, principal=principal)
    if not is_there(path):
        raise InvalidParameter("there is no ledger to move at this place")
    name, identity = _named(to)
    if identity == _named(path)[1]:
        raise InvalidParameter("a ledger cannot be moved to where it is")
    with source.hold():
        old, new = _store(path, anchor), _store(to, to_anchor)
        try:
            _reserve(new, identity, _named(path)[1])
            facts = {"to": name, "place": identity, "reason": reason, "principal": principal}
            _moved(old, new, facts)
        finally:
            old.close()
            new.close()
    return look(to, anchor=to_anchor)


def _named(place: str | LedgerPlace) -> tuple[str, str]:
    """Return what a place is called in the record, without a user or a folder, and what is the same for it always."""
    found = as_place(place)
    if isinstance(found, LedgerAddress):
        return found.name, found.identity
    file = check_path(place, name="the ledger").resolve()
    return file.name, digest(canonical([str(file)]))


def _store(place: str | LedgerPlace, anchor: str | Path | None) -> FileStore | PostgresStore:
    from discreet.ledger.postgres_store import PostgresStore
    from discreet.ledger.sqlite_store import file_store

    found, outside = as_place(place), None if anchor is None else Path(anchor)
    if isinstance(found, LedgerAddress):
        return PostgresStore(found, outside)
    return file_store(check_path(place, name="the ledger"), outside)


def _reserve(new: FileStore | PostgresStore, identity: str, origin: str) -> None:
    """Let nobody begin a ledger at the new place, or move another one there, before this one has arrived."""
    with new.writing() as rows:
        last, mark = _last(rows), canonical({"from": origin})
        if last is not None and (last.kind != "arrived" or last.content.get("place") != identity):
            raise Refused("there is a ledger at that place already", way_out="name a place where there is none")
        if last is None and rows.accounts().get(_RESERVED, mark) != mark:
            raise Refused("another ledger is being moved to that place", way_out="name a place where there is none")
        if last is None:
            rows.clear_accounts()  # Whoever may not do that learns it before the old place is closed.
            rows.set_account(_RESERVED, mark)


def _last(rows: LedgerRows) -> Entry | None:
    found = rows.entry(rows.head().index)
    return None if found is None else Entry.read(*found)


def _moved(old: FileStore | PostgresStore, new: FileStore | PostgresStore, facts: dict[str, str]) -> None:
    """Close the old place, then fill the new one; each in one transaction."""
    with old.verifying() as rows:
        verify(rows)
        last = _last(rows)
        if last is None or last.kind != "moved":
            append(rows, "", "moved", facts)
            rows.clear_accounts()
        elif last.content["place"] != facts["place"]:
            raise Refused(
                f"this ledger was moved to {last.content['to']} before",
                reason="a second copy would spend the same budget twice",
                way_out="move it on from there",
            )
    with old.reading() as rows, new.writing() as copy:
        head = rows.head()
        if copy.head().index == 0:
            copy.clear_accounts()
            _copy(rows, copy)
            append(copy, "", "arrived", {"place": facts["place"]})
            for dataset, declared in _declared(rows).items():
                copy.set_account(dataset, declared)
        if (copy.entry(head.index) or ("", ""))[1] != head.hash:
            raise LedgerDamaged("the copy does not contain the end of this ledger: it is another one")
        verify(copy)


def _copy(rows: LedgerRows, copy: LedgerRows) -> None:
    for head, body in rows.entries():
        copy.append(Head(head.index, head.hash, head.time), body)
    for charge, text in rows.answers().items():
        copy.set_answer(charge, text)
    for (dataset, scope), text in rows.all_sums().items():
        copy.set_sums(dataset, scope, text)
    for index, (dataset, key, question) in rows.remembered().items():
        copy.remember(index, dataset, key=key, question=question)
    for claim in rows.claims():
        copy.set_claim(claim)


def _declared(rows: LedgerRows) -> dict[str, str]:
    """Return what was declared when the ledger was closed: its last entries say so."""
    found: dict[str, str] = {}
    for _, body in rows.entries():
        if '"declared":' in body:
            entry = json.loads(body)
            if "declared" in entry:
                found[entry["dataset"]] = canonical(entry["declared"])
    return found
