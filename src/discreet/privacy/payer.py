"""Who pays: whatever reads private data charges a `Payer` first."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

from discreet.custodian_debug import ConstantFailure
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

__all__ = ["Payer", "Price", "PricedMechanism", "guarded", "paid", "pay"]


class Payer(Protocol):
    """Something that can be charged. It commits the charge or raises; it never returns a flag.

    Examples:
        >>> account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, dp.Budget(epsilon=1))
        >>> payer = dp.ledger.Ledger.open("memory", account)
        >>> release = dp.count([1, 2, 3], relation=dp.Relation.ADD_REMOVE, epsilon=0.25, session=payer)
        >>> payer.left().epsilon
        Fraction(3, 4)
    """

    def charge(
        self, event: Event, *, relation: Relation, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> object:
        """Commit the charge durably or raise, as `BudgetExceeded` or `Refused`; a receipt, if any, is the payer's own.

        relation   between which neighbours the event holds
        purpose    what the charge is for; public
        unit       whom the event protects: "row", or the column whose values tell units apart. A payer that keeps no
                   account for such units refuses: a person may have many rows, and would lose more than is recorded

        The same event under the same `idempotency_key` is paid once, however often an interrupted run asks; another
        event under it is refused. Without a key every call is paid.
        """


class PricedMechanism(Protocol):
    """What knows its price, which is public, before it sees data."""

    @property
    def event(self) -> Event: ...

    @property
    def relation(self) -> Relation: ...


class Price(NamedTuple):
    """An event and the neighbours between which it holds, for what is charged without a mechanism of its own."""

    event: Event
    relation: Relation


def pay(
    payer: Payer | None,
    mechanism: PricedMechanism,
    *,
    purpose: str,
    unit: str = "row",
    idempotency_key: str | None = None,
) -> None:
    """Charge the payer, if there is one, for what a mechanism spends; it raises if it cannot, and nothing is read then.

    Every argument is named to every payer. One whose `charge` does not take `unit` and `idempotency_key` raises
    `TypeError` before it is charged: it could not tell a person from a row, or a retry from a new question.
    """
    if payer is not None:
        payer.charge(
            mechanism.event, relation=mechanism.relation, purpose=purpose, unit=unit, idempotency_key=idempotency_key
        )


def paid(
    payer: Payer | None,
    mechanism: PricedMechanism,
    *,
    purpose: str,
    unit: str = "row",
    idempotency_key: str | None = None,
) -> AbstractContextManager[None, None]:
    """Charge as `pay` does, and return what guards the reading: `with paid(session, mechanism, purpose="count"): …`."""
    pay(payer, mechanism, purpose=purpose, unit=unit, idempotency_key=idempotency_key)
    return guarded(payer)


def guarded(payer: Payer | None) -> AbstractContextManager[None, None]:
    """Return what a read that was paid for happens in: whatever fails in it fails as `AnswerFailed`, in the same words.

    Where nobody pays there is no analyst to hide it from: whoever calls has the data, and sees the error as it is.
    """
    return nullcontext() if payer is None else ConstantFailure()
