"""The one order in which a question is answered: look for a stored answer, charge, read, draw and store, return.

A crash at any point may lose what was paid, never more than was paid. What fails after the charge looks the same
whatever the data were, and is not refunded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event as Closing
from typing import final

from discreet.custodian_debug import HiddenFailure
from discreet.errors import AnswerFailed, BudgetExceeded, Refused, UnsupportedEvent
from discreet.ledger import Charge, Ledger, StoredAnswer
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.engine import Deadline, Engine, Tallied
from discreet.query.session.asked import Payable

__all__ = ["Desk"]

_NO_ANSWER = "no answer"  # Stored where noise was drawn and no table came of it.
_LONGEST_PURPOSE = 2000  # Characters of a question that the ledger keeps; the fingerprint stands for all of it.


@final
@dataclass(frozen=True, slots=True)
class Desk:
    """Where questions are paid and answered, for one principal, project and version of the data."""

    ledger: Ledger
    engine: Engine = field(repr=False)
    unit: str
    principal: str
    project: str
    version: str | None
    seconds: float
    process: int = field(default_factory=os.getpid, repr=False)
    closed: Closing = field(default_factory=Closing, repr=False)

    def check_open(self) -> None:
        """Refuse to go on after the session was closed, and in a process that only has a copy of it."""
        if self.closed.is_set():
            raise Refused("this session is closed: open another one on the same ledger")
        if os.getpid() != self.process:
            raise Refused(
                "this session belongs to the process that opened it: open another one here, on the same ledger"
            )

    def answer(self, asked: Payable) -> StoredAnswer:
        """Answer what is asked, or give the stored answer again."""
        self.check_open()
        plan = asked.fingerprint
        found = self.ledger.stored(
            principal=self.principal, project=self.project, version=self.version, key=asked.key, plan=plan
        )
        if found is not None and found.text != _NO_ANSWER:
            return found
        charge = self._charge(asked, plan)
        deadline = Deadline.after(self.seconds)
        text = _NO_ANSWER
        # Every failure looks the same from here on: which one it was could depend on somebody's rows.
        with HiddenFailure():
            text = self._compute(asked, charge, deadline)
        if text == _NO_ANSWER:
            raise AnswerFailed
        return StoredAnswer(charge, text)

    def _charge(self, asked: Payable, plan: str) -> Charge:
        self.engine.check_unchanged()
        try:
            return self.ledger.charge(
                asked.event,
                relation=Relation.ADD_REMOVE,
                purpose=asked.text[:_LONGEST_PURPOSE],
                principal=self.principal,
                project=self.project,
                key=asked.key,
                plan=plan,
                version=self.version,
                unit=self.unit,
            )
        except BudgetExceeded as refused:
            raise BudgetExceeded(asked=asked.cost, left=refused.left) from None

    def _compute(self, asked: Payable, charge: Charge, deadline: Deadline) -> str:
        """Read; then draw and store in one transaction, so that an answer that left the process is on record."""
        tallied = self.engine.run_all(asked.stages, deadline=deadline)
        return self.ledger.store(charge, lambda: _drawn(asked, tallied))

    def pay(
        self, event: Event, *, relation: Relation, purpose: str, key: str | None = None, parts: int | None = None
    ) -> None:
        """Charge what another part of the library spends."""
        self.check_open()
        self.engine.check_unchanged()
        self.ledger.charge(
            event,
            relation=relation,
            purpose=purpose,
            principal=self.principal,
            project=self.project,
            key=key,
            unit=self.unit,
            parts=parts,
        )

    def affords(self, event: Event, *, at_once: bool) -> bool:
        """Tell whether this could be charged, at once or part by part."""
        if at_once:
            return self.times_left(event) > 0
        return self.ledger.affords(event, principal=self.principal, project=self.project, at_once=False)

    def times_left(self, event: Event) -> int:
        """Return how often this could be charged; refuse what this ledger has no account for."""
        try:
            return self.ledger.times_left(event, principal=self.principal, project=self.project)
        except UnsupportedEvent as error:
            raise Refused("this ledger does not take such an answer", reason=str(error)) from None


def _drawn(asked: Payable, tallied: Sequence[Tallied]) -> str:
    """Draw once. That it failed is kept like an answer: under the same key fresh noise would come for free."""
    with HiddenFailure():
        return asked.draw(tallied)
    return _NO_ANSWER
