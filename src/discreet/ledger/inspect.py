"""Look at a ledger without spending from it: no lease, no anchor moved, nothing written, no account declared.

The chain is read again from its start, and compared with the anchor beside the file if there is one. What is shown is
true of the moment at which it was looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, final
from urllib.parse import quote

from discreet.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable
from discreet.ledger.accounts import LIFETIME, Book, LedgerScope
from discreet.ledger.anchor import anchored_in
from discreet.ledger.budget import Budget
from discreet.ledger.charge_record import BEGINNING, Account, Entry, Head, ReadClaim
from discreet.ledger.charges_and_claims import sums_of
from discreet.ledger.requests import refuse_moved
from discreet.ledger.server_address import LedgerAddress, LedgerPlace, as_place
from discreet.ledger.spending import Left, Spending, delta_share, left_of, more_of, price_words, spending_of
from discreet.ledger.store import LedgerRows
from discreet.ledger.verify_chain import verify
from discreet.pages.kit import Described
from discreet.privacy.events import Event

if TYPE_CHECKING:
    import sqlite3

    from discreet.ledger.sqlite_store import SqliteRows

__all__ = ["LedgerView", "declared_budget", "is_there", "look"]


@final
class LedgerView:
    """What a ledger says, as it was when somebody looked.

    Args:
        rows: The record within one transaction; `look` opens and checks it.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("visits.ledger", account).close()
        >>> view = dp.ledger.look("visits.ledger")
        >>> view.datasets, view.left("visits").epsilon
        (('visits',), Fraction(1, 1))
    """

    def __init__(self, rows: LedgerRows) -> None:
        self._entries = tuple(Entry.read(body, head.hash) for head, body in rows.entries())
        self._answers, self._claims = rows.answers(), rows.claims()
        self._books = {dataset: Book.read(dataset, declared) for dataset, declared in rows.accounts().items()}
        self._sums = {
            dataset: sums_of(rows, dataset, LedgerScope(LIFETIME, book.rule, ""))
            for dataset, book in self._books.items()
        }

    def __repr__(self) -> str:
        return f"LedgerView({', '.join(map(repr, self._books))}; {len(self._entries):,} entries)"

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets that are kept in this ledger."""
        return tuple(self._books)

    def account(self, dataset: str) -> Account:
        """Return what a data set is declared as."""
        return self._book(dataset).account

    def entries(self, dataset: str | None = None) -> tuple[Entry, ...]:
        """Return all entries, or those of one data set."""
        return tuple(entry for entry in self._entries if dataset in (None, entry.dataset))

    def charge(self, index: int) -> Entry | None:
        """Return the entry of a charge; None if there is none of this number."""
        found = self._entries[index - 1] if 0 < index <= len(self._entries) else None
        return found if found is not None and found.kind == "charge" else None

    def answer(self, charge: int) -> str | None:
        """Return the answer that was stored under a charge."""
        return self._answers.get(charge)

    def parts(self, charge: int) -> tuple[str, ...]:
        """Return the answers of a series that were stored under a charge, in order."""
        found = (entry for entry in self._entries if entry.kind == "part" and entry.content["charge"] == charge)
        return tuple(self._answers[entry.index] for entry in found)

    def bundles(self, charge: int) -> tuple[Mapping[str, str], ...]:
        """Return the digests that were recorded of the bundles of a charge, in order."""
        found = (entry for entry in self._entries if entry.kind == "bundle" and entry.content["charge"] == charge)
        return tuple(entry.content["digests"] for entry in found)

    def claims(self, dataset: str | None = None) -> tuple[ReadClaim, ...]:
        """Return all claims that have no answer and were not released, or those on one data set."""
        return tuple(claim for claim in self._claims if dataset in (None, claim.dataset))

    def spent(self, dataset: str) -> Spending:
        """Return the exact sums of what was spent on a data set."""
        book, last = self._book(dataset), self._last_event(dataset)
        words = None if last is None else price_words(last, book.account.relation, book.account.budget)
        return spending_of(book.rule, self._sums[dataset], words)

    def left(self, dataset: str) -> Left:
        """Return what is left of the budget of a data set, rounded down."""
        book, sums = self._book(dataset), self._sums[dataset]
        asked = book.rule, sums, self._last_event(dataset), book.account.relation
        return left_of(book.rule, sums, more_of(*asked), delta_share=delta_share(*asked))

    def _last_event(self, dataset: str) -> Event | None:
        spent = (entry for entry in reversed(self.entries(dataset)) if entry.kind in ("charge", "restored"))
        last = next(spent, None)
        return None if last is None else last.event

    def describe(self, dataset: str) -> Described:
        """Say what is guaranteed, what was spent and what is left."""
        return self._book(dataset).stands(self.spent(dataset), self.left(dataset))

    def _book(self, dataset: str) -> Book:
        if dataset not in self._books:
            listed = ", ".join(self._books) or "none"
            raise InvalidParameter(f"this ledger has no such data set; there are: {listed}")
        return self._books[dataset]


def look(path: str | LedgerPlace, *, anchor: str | Path | None = None) -> LedgerView:
    """Read a ledger and check it: hashes, order, sums, declarations and answers, and the anchor if it is there.

    Args:
        path: The file of the ledger, or its address on a PostgreSQL server. Nothing is written to it.
        anchor: The file that holds the end of the record, if it is not beside the ledger.

    Returns:
        What the ledger says.

    Raises:
        InvalidParameter: If there is no such file.
        LedgerDamaged: If the record was changed, cut or rolled back.
        LedgerUnavailable: If the ledger is empty or cannot be read now.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("visits.ledger", account).close()
        >>> dp.ledger.look("visits.ledger").datasets
        ('visits',)
    """
    from discreet.ledger.sqlite_store import SqliteRows, begun, format_of, translated

    address = as_place(path)
    if isinstance(address, LedgerAddress):
        return _look_at_server(address, anchor)
    file = Path(str(path))
    if not file.is_file():
        raise InvalidParameter("there is no ledger of this name: name the file that the policy calls ledger")
    outside = Path(anchor) if anchor is not None else file.with_name(f"{file.name}.anchor")
    if anchor is not None and not outside.is_file():
        raise InvalidParameter("there is no anchor of this name")
    known = anchored_in(outside.read_bytes()) if outside.is_file() else BEGINNING  # before others go on
    with translated(), _opened(file) as connection, begun(connection, "DEFERRED"):
        if not format_of(connection):
            raise LedgerUnavailable("this ledger is empty: open it once to make it")
        rows = SqliteRows(connection)
        verify(rows)
        _check_anchor(rows, known)
        refuse_moved(rows)
        return LedgerView(rows)


def _look_at_server(address: LedgerAddress, anchor: str | Path | None) -> LedgerView:
    from discreet.ledger.postgres_store import server_snapshot

    if not address.exists():
        raise InvalidParameter("there is no ledger at this address yet: the first session or release makes it")
    with server_snapshot(address, None if anchor is None else Path(anchor)) as rows:
        verify(rows)
        refuse_moved(rows)
        return LedgerView(rows)


def is_there(place: str | LedgerPlace) -> bool:
    """Tell whether there is a ledger at a place."""
    found = as_place(place)
    return found.exists() if isinstance(found, LedgerAddress) else place != "memory" and Path(str(place)).exists()


def declared_budget(path: str | LedgerPlace, dataset: str, *, anchor: str | Path | None = None) -> Budget | None:
    """Return the lifetime budget that a ledger has for a data set; None if there is no ledger or account yet."""
    if not is_there(path):
        return None
    seen = look(path, anchor=anchor)
    return seen.account(dataset).budget if dataset in seen.datasets else None


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open for reading only; in a folder where nothing may be written, as a file that does not change."""
    import sqlite3

    still = not os.access(file.parent, os.W_OK) and not file.with_name(f"{file.name}-wal").exists()
    place = f"file:{quote(str(file.resolve()))}?mode=ro{'&immutable=1' if still else ''}"
    connection = sqlite3.connect(place, uri=True, timeout=60.0, isolation_level=None)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection
    finally:
        connection.close()


def _check_anchor(rows: SqliteRows, known: Head) -> None:
    """Refuse a chain that does not contain what was anchored before it was read."""
    if known.index > rows.head().index:
        raise LedgerDamaged(f"this ledger ends at entry {rows.head().index}, but entry {known.index} was anchored")
    if known.index and (rows.entry(known.index) or ("", ""))[1] != known.hash:
        raise LedgerDamaged("this ledger does not contain its anchored entry: it is another one, or was changed")
