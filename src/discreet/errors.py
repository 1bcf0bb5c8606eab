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


class DiscreetError(Exception):
    """The root of all errors of this library."""


class InvalidParameter(DiscreetError, ValueError):
    """A public parameter is out of range. No data was read."""


class UnsupportedEvent(DiscreetError, NotImplementedError):
    """No bound is proven for this event under this relation. An accountant never guesses."""


class MissingLibrary(DiscreetError, ModuleNotFoundError):
    """An optional library is not installed. The message has the command that brings it."""


class Refused(DiscreetError):
    """The request cannot be answered privately. The message says where, why and what to do instead.

    A refused query carries the place: `line` and `column` count from one, `excerpt` is that line of the query, perhaps
    shortened, and `caret` how many of its characters come before the place.
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
    """The charge does not fit into what is left. Nothing was read."""

    def __init__(self, *, asked: object, left: object) -> None:
        super().__init__(f"the charge {asked} does not fit into what is left: {left}")
        self.asked = asked
        self.left = left


class AnswerFailed(DiscreetError):
    """A question that was paid could not be answered. The text is always the same: why could depend on the data."""

    def __init__(self) -> None:
        super().__init__(
            "this question could not be answered within its limits of time and memory. Nothing was released and the "
            "charge stands. Asked again under the same key, or without one of the same version of the data, it is "
            "neither charged nor read again: whoever holds the data can look at the machine, its files and its limits, "
            "and then release it (discreet ledger claims)"
        )


class LedgerDamaged(DiscreetError):
    """The record was changed, cut, rolled back, or is not a ledger of this format. Nothing is charged to it."""


class LedgerUnavailable(DiscreetError, OSError):
    """The record cannot be written now. Nothing was read or released; the charge may or may not have been made."""


class NotAuthorised(DiscreetError, PermissionError):
    """This user may not do this. Nothing was read; whoever holds the data can allow it."""


class NoiseOverflow(DiscreetError, OverflowError):
    """A noise value does not fit a 64-bit integer. Nothing was released; a scalar call has no such limit."""
