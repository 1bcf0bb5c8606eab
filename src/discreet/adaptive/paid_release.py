"""Pay before anything is read; and a refusal as a value, NoAnswer, which is charged alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

from discreet.mechanisms.release import NoInterval
from discreet.privacy.events import Event
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation

__all__ = ["NOTHING_TO_ENCLOSE", "NO_ANSWER", "NoAnswer", "PricedMechanism", "charge"]

# --- charging: Pay before anything is read. ---


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


# --- no_answer: A refusal as a value. ---


@final
@dataclass(frozen=True, slots=True)
class NoAnswer:
    """What is released when a test was not passed. It costs what an answer costs, and says nothing else.

    Examples:
        >>> mechanism = dp.adaptive.StableMode(
        ...     domain=("a", "b"), epsilon=1, delta=1e-12, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> mechanism.release(["a", "b"]).value == dp.adaptive.NO_ANSWER  # but for a chance of delta
        True
    """

    def __str__(self) -> str:
        return "no answer"


NO_ANSWER = NoAnswer()
NOTHING_TO_ENCLOSE = NoInterval(
    reason="no answer was given: the test was not passed. Asking again costs the same again; more data, a larger "
    "epsilon or a more modest proposal make an answer likelier"
)
