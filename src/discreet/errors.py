"""Every error this library raises.

DiscreetError
├── InvalidParameter      a public parameter is out of range; no data was read
├── UnsupportedEvent      an accountant has no proof for this event; it never guesses
├── MissingLibrary        an optional library is not installed; says which extra brings it
├── Refused               the request cannot be answered privately; says where, why and the way out
├── BudgetExceeded        the ledger refused the charge; carries asked and left
├── AnswerFailed          a question that was paid could not be answered; says nothing more, whatever the data are
├── LedgerDamaged         the record was changed, cut, rolled back or is not the one declared
├── LedgerUnavailable     the record cannot be written now: disk, permissions or another machine
├── NotAuthorised         this user may not do this; nothing was read
└── NoiseOverflow         a noise value does not fit 64 bits; nothing was released

No message contains a data value, only public parameters.
"""

from __future__ import annotations

import linecache
from types import TracebackType

__all__ = [
    "AnswerFailed",
    "BudgetExceeded",
    "DiscreetError",
    "InvalidParameter",
    "LedgerDamaged",
    "LedgerUnavailable",
    "MissingLibrary",
    "NoiseOverflow",
    "NotAuthorised",
    "Refused",
    "UnsupportedEvent",
]

_LONGEST = 8_000  # Letters of a message: names in it may come from files that others wrote.


class DiscreetError(Exception):
    """The root of all errors of this library.

    Examples:
        >>> try:
        ...     dp.privacy.PureDP(epsilon=-1)
        ... except dp.DiscreetError as error:
        ...     print(error)
        epsilon must ...
    """

    def __str__(self) -> str:
        """Return the message, at most some pages of it, and nothing in it that could steer a terminal."""
        text = super().__str__()
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
        return "".join(letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text)

    def _render_traceback_(self, *_asked: object) -> list[str]:
        """Return what notebooks show in place of a traceback: the caller's own line, and the message."""
        return [*_own_line(self.__traceback__), f"{type(self).__name__}: {self}"]


def _own_line(trace: TracebackType | None) -> list[str]:
    """Return the line from which this library was called: the last one above the first of its own."""
    called = None
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] != __package__:
        called, trace = trace, trace.tb_next
    if called is None:
        return []
    written = linecache.getline(called.tb_frame.f_code.co_filename, called.tb_lineno).strip()
    return [f"line {called.tb_lineno}: {written}", ""] if written else []


class InvalidParameter(DiscreetError, ValueError):
    """A public parameter is out of range. No data was read.

    Examples:
        >>> dp.privacy.PureDP(epsilon=-1)
        Traceback (most recent call last):
        discreet.errors.InvalidParameter: epsilon ...
    """


class UnsupportedEvent(DiscreetError, NotImplementedError):
    """No bound is proven for this event under this relation. An accountant never guesses.

    Examples:
        >>> dp.privacy.epsilon(dp.privacy.RandomizedResponse(1), 0, relation=dp.Relation.ADD_REMOVE)
        Traceback (most recent call last):
        discreet.errors.UnsupportedEvent: ...
    """


class MissingLibrary(DiscreetError, ModuleNotFoundError):
    """An optional library is not installed. The message has the command that brings it.

    Examples:
        >>> issubclass(dp.MissingLibrary, ModuleNotFoundError)
        True
    """


class Refused(DiscreetError):
    """The request cannot be answered privately. The message says where, why and what to do instead.

    A refused query carries the place: `line` and `column` count from one, `excerpt` is that line of the query, perhaps
    shortened, and `caret` how many of its characters come before the place.

    Args:
        problem: What cannot be done, as the first line of the message.
        reason: Why it cannot be done privately; empty leaves the line out.
        way_out: What to do instead; empty leaves the line out.
        line: The line of a query at which the problem is, from one.
        column: The column of that line, from one.
        excerpt: That line of the query, perhaps shortened.
        caret: How many characters of the excerpt come before the place.

    Examples:
        >>> print(dp.Refused("no exact rows", reason="a row is one person", way_out="ask for a count"))
        no exact rows
          why: a row is one person
          way out: ask for a count
    """

    def __init__(
        self,
        problem: str,
        *,
        reason: str = "",
        way_out: str = "",
        line: int | None = None,
        column: int | None = None,
        excerpt: str = "",
        caret: int = 0,
    ) -> None:
        self.problem = problem
        self.reason = reason
        self.way_out = way_out
        self.line = line
        self.column = column
        self.excerpt = excerpt
        self.caret = caret
        super().__init__("\n".join([problem, *self._place(), *self._advice()]))

    def _place(self) -> list[str]:
        if self.line is None:
            return []
        place = f"  at line {self.line}, column {self.column}"
        return [f"{place}:", f"    {self.excerpt}", f"    {' ' * self.caret}^"] if self.excerpt else [place]

    def _advice(self) -> list[str]:
        told = (("why", self.reason), ("way out", self.way_out))
        return [f"  {name}: {text}" for name, text in told if text]


class BudgetExceeded(DiscreetError):
    """The charge does not fit into what is left. Nothing was read.

    Args:
        asked: What was to be charged, as public text or a value that prints.
        left: What is left of the budget.
        way_out: What to do instead; empty leaves the line out.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> ledger = dp.ledger.Ledger.open("memory", account)
        >>> dp.count([1, 2], relation=dp.Relation.ADD_REMOVE, epsilon=2, session=ledger)
        Traceback (most recent call last):
        discreet.errors.BudgetExceeded: ...
    """

    def __init__(self, *, asked: object, left: object, way_out: str = "") -> None:
        told = f"\n  way out: {way_out}" if way_out else ""
        super().__init__(f"the charge {asked} does not fit into what is left: {left}{told}")
        self.asked = asked
        self.left = left
        self.way_out = way_out


class AnswerFailed(DiscreetError):
    """What was paid for could not be answered. The text is always the same: why could depend on the data.

    Examples:
        >>> query = dp.adaptive.StableQuery(
        ...     evaluate=lambda rows: 1 / 0, distance_to_instability=len, relation=dp.Relation.ADD_REMOVE
        ... )
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1, delta=1e-5))
        >>> with dp.ledger.Ledger.open("memory", account) as ledger:
        ...     dp.adaptive.ReleaseIfStable(query=query, epsilon="0.5", delta=1e-6).release([1], session=ledger)
        Traceback (most recent call last):
        discreet.errors.AnswerFailed: ...
    """

    def __init__(self) -> None:
        super().__init__(
            "this could not be answered. Why is not told, since it could depend on one row: the limits of time and "
            "memory, or a value that a function, a model or a loss does not take. Nothing was released and the charge "
            "stands. A query that is asked again under the same key, or without one of the same version of the data, "
            "is neither charged nor read again: whoever holds the data can see the reason in a process that is started "
            "with DISCREET_CUSTODIAN_DEBUG=1, look at the machine, its files and its limits, and then release the "
            "query (discreet ledger claims)"
        )


class LedgerDamaged(DiscreetError):
    """The record was changed, cut, rolled back, or is not a ledger of this format. Nothing is charged to it.

    Examples:
        >>> from pathlib import Path
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("visits.ledger", account).close()
        >>> _ = Path("visits.ledger").write_bytes(b"")
        >>> dp.ledger.Ledger.open("visits.ledger", account)
        Traceback (most recent call last):
        discreet.errors.LedgerDamaged: ...
    """


class LedgerUnavailable(DiscreetError, OSError):
    """The record cannot be written now. Nothing was read or released; the charge may or may not have been made.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> dp.ledger.Ledger.open("nowhere/visits.ledger", account)
        Traceback (most recent call last):
        discreet.errors.LedgerUnavailable: ...
    """


class NotAuthorised(DiscreetError, PermissionError):
    """This user may not do this. Nothing was read; whoever holds the data can allow it.

    Examples:
        >>> key = dp.release.new_key("office.key", passphrase="long and secret")
        >>> dp.release.read_signing_key("office.key")
        Traceback (most recent call last):
        discreet.errors.NotAuthorised: ...
    """


class NoiseOverflow(DiscreetError, OverflowError):
    """A noise value does not fit a 64-bit integer. Nothing was released; a scalar call has no such limit.

    Examples:
        >>> issubclass(dp.NoiseOverflow, OverflowError)
        True
    """
