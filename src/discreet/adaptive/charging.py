"""Pay before anything is read."""

from __future__ import annotations

from typing import Protocol

from discreet.privacy.events import Event
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["PricedMechanism", "charge"]


class PricedMechanism(Protocol):
    """What knows its price, which is public, before it sees data."""

    @property
    def event(self) -> Event: ...

    @property
    def relation(self) -> Relation: ...


def charge(mechanism: PricedMechanism, session: Payer | None, *, purpose: str) -> None:
    """Charge the session, if there is one. It raises if the budget does not allow it; nothing is read then."""
    if session is not None:
        session.charge(mechanism.event, relation=mechanism.relation, purpose=purpose)
