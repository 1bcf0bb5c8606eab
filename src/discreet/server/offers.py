"""The one door to every release, of whatever kind: its price is held against ledger and cap, and it is queued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

from discreet.privacy.events import Event
from discreet.server.accounts import Caller
from discreet.server.app import Server
from discreet.server.datasets import AskedQuestion
from discreet.server.jobs import Job, operation_of
from discreet.server.problems import Problem

__all__ = ["OfferedRelease", "queue_release"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRelease:
    """What somebody asks for, and what is offered for it; nothing is charged yet, and nothing was read."""

    question: AskedQuestion  # of another kind than a question: what it is, in a few words, and what was offered
    cost: str
    event: Event | None  # None if all of it was paid before
    nested: tuple[Event, ...] = ()
    epsilon: Fraction | None  # what the cap of a token counts; None if the price was said otherwise
    kind: str = "question"
    details: Mapping[str, Any] = field(default_factory=dict)


def queue_release(server: Server, caller: Caller, dataset: str, offered: OfferedRelease, key: str | None) -> Job:
    """Refuse what this caller may not ask for or cannot pay, and queue the rest.

    Under an idempotency key that was used, what it stands for is returned and nothing is paid again.
    """
    caller.check(operation_of(offered.kind), dataset)
    ledger, event = server.shelf[dataset].session.ledger, offered.event

    def pay() -> None:
        if event is not None and not ledger.times_left(event, principal=caller.name, nested=offered.nested):
            raise Problem("budget-exceeded", f"the price {offered.cost} does not fit into what is left")
        if caller.token is not None:
            server.accounts.pay_by(caller.token, offered.epsilon)

    said = offered.question, offered.cost, key, pay
    charged = () if event is None else (event, *offered.nested)
    return server.jobs.ask(caller, dataset, *said, kind=offered.kind, details=offered.details, charged=charged)
