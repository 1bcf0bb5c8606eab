"""The one order in which a question is answered: look for its answer, charge and claim, read, draw and store, return.

A crash at any point may lose what was paid, never more than was paid. What fails after the charge looks the same
whatever the data were, is not refunded, and is not read again under that charge: that it failed may depend on one
person, and that is told once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from threading import Event as Closing
from threading import Lock
from typing import TypeVar, final

from discreet.errors import AnswerFailed, BudgetExceeded, DiscreetError, Refused, UnsupportedEvent
from discreet.ledger import Ledger
from discreet.ledger.charge_record import ReadClaim, StoredAnswer
from discreet.ledger.spending import Left
from discreet.pages.progress import working
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.engine import Deadline, Engine, LimitedEngine
from discreet.query.plan.draft import Spend
from discreet.query.session.requests import ChargedRequest

__all__ = ["LEAST_EPSILON", "Executor", "Patience", "check_price"]

T = TypeVar("T")

_NO_ANSWER = "no answer"  # What older releases stored where noise was drawn and no table came of it.
_LONGEST_PURPOSE = 2000  # Characters of a question that the ledger keeps; the fingerprint stands for all of it.


@final
class Patience:
    """How long somebody waits for an answer: until they give up. Then its claim fails, and nothing more is charged."""

    def __init__(self) -> None:
        self._lock, self._is_over = Lock(), False
        self._claimed: tuple[Ledger, ReadClaim] | None = None

    def check(self) -> None:
        """Fail like everything else if nobody waits any more."""
        if self._is_over:
            raise AnswerFailed

    def claimed(self, ledger: Ledger, claim: ReadClaim) -> None:
        """Say what is being read; whoever calls checks afterwards."""
        with self._lock:
            self._claimed = ledger, claim

    def give_up(self) -> bool:
        """Fail what is read and not answered. False if it was answered before that: then the answer is on record."""
        with self._lock:
            self._is_over, claimed = True, self._claimed
        if claimed is None:  # What is claimed from now on fails by `check`.
            return True
        ledger, claim = claimed
        try:
            ledger.fail(claim)
            return any(one.index == claim.index for one in ledger.claims())
        except DiscreetError:  # It stays claimed, which counts as failed, too.
            return True


@final
@dataclass(frozen=True, slots=True)
class Executor:
    """Where questions are paid and answered, for one principal, project and version of the data."""

    ledger: Ledger
    engine: Engine = field(repr=False)
    unit: str
    principal: str
    project: str
    version: str | None
    seconds: float
    shows_time: bool = True  # In notebooks; not where somebody else is told how the time goes.
    process: int = field(default_factory=os.getpid, repr=False)
    closed: Closing = field(default_factory=Closing, repr=False)
    paid: set[str] = field(default_factory=set, repr=False)  # fingerprints of what this session paid for
    patience: Patience = field(default_factory=Patience, repr=False)
    called: Mapping[str, str] = field(default_factory=dict, repr=False)  # one unit, by what the ledger calls it

    def asked_by(self, principal: str, project: str, patience: Patience) -> Executor:
        """Return this one for somebody else, who can give up waiting."""
        return replace(self, principal=principal, project=project, paid=set(), patience=patience)

    def check_open(self) -> None:
        """Refuse to go on after the session was closed, and in a process that only has a copy of it."""
        if self.closed.is_set():
            raise Refused("this session is closed: open another one on the same ledger")
        if os.getpid() != self.process:
            raise Refused(
                "this session belongs to the process that opened it: open another one here, on the same ledger"
            )

    def answer(self, asked: ChargedRequest) -> StoredAnswer:
        """Answer what is asked, or give the stored answer again."""
        self.check_open()
        plan = asked.fingerprint
        found = self._stored(asked)
        self.patience.check()
        claim = self._claim(asked, plan) if found is None else found
        self.paid.add(plan)
        if isinstance(claim, StoredAnswer):
            if claim.text == _NO_ANSWER:
                raise AnswerFailed
            return claim
        self.patience.claimed(self.ledger, claim)
        deadline = Deadline.after(self.seconds)
        # Every failure looks the same from here on: which one it was could depend on somebody's rows.
        with working("answering", shown=self.shows_time, terminal=False) as current:
            current.limit(self.seconds)
            text = self.ledger.attempt(claim, lambda: self._compute(asked, claim, deadline))
        return StoredAnswer(claim.charge, text)

    def _stored(self, asked: ChargedRequest) -> StoredAnswer | None:
        return self.ledger.stored(
            principal=self.principal,
            project=self.project,
            version=self.version,
            idempotency_key=asked.idempotency_key,
            plan=asked.fingerprint,
        )

    def is_free(self, asked: ChargedRequest) -> bool:
        """Tell whether a release would give a stored answer again."""
        try:
            found = self._stored(asked)
        except Refused:  # The key was used for something else: the release says so.
            return False
        return found is not None and found.text != _NO_ANSWER

    def pays_again(self, asked: ChargedRequest) -> bool:
        """Tell whether this session has paid for the same, and nothing says that the data are still the same."""
        return self.version is None and asked.idempotency_key is None and asked.fingerprint in self.paid

    def _claim(self, asked: ChargedRequest, plan: str) -> ReadClaim | StoredAnswer:
        """Charge and claim in one transaction: what is read is on record before the first row is."""
        check_price(asked.spends)
        self.engine.check_unchanged()
        if isinstance(self.engine, LimitedEngine):
            self.engine.check_stages(asked.stages)
        try:
            return self.ledger.claim(
                asked.event,
                relation=asked.relation,
                purpose=asked.text[:_LONGEST_PURPOSE],
                principal=self.principal,
                project=self.project,
                idempotency_key=asked.idempotency_key,
                plan=plan,
                version=self.version,
                unit=self.unit,
                nested=asked.nested,
                seconds=self.seconds,
            )
        except BudgetExceeded as refused:
            raise BudgetExceeded(asked=asked.cost, left=refused.left, way_out=refused.way_out) from None

    def _compute(self, asked: ChargedRequest, claim: ReadClaim, deadline: Deadline) -> str:
        """Read, draw and store, so that an answer that left the process is on record."""
        self.patience.check()
        tallied = self.engine.run_all(asked.stages, deadline=deadline)
        self.patience.check()
        return self.ledger.store(claim, lambda: asked.draw(tallied))

    def read(self, work: Callable[[], T], *, event: Event, relation: Relation, purpose: str) -> T:
        """Charge and claim, then run what reads rows of this session's tables and keeps its result elsewhere."""
        self.check_open()
        self.engine.check_unchanged()
        claim = self.ledger.claim(
            event,
            relation=relation,
            purpose=purpose,
            principal=self.principal,
            project=self.project,
            unit=self.unit,
            seconds=self.seconds,
        )
        if not isinstance(claim, ReadClaim):  # Without a key and a plan nothing is ever the same.
            raise RuntimeError("a charge without a key was taken for an earlier one")
        with working("computing", shown=self.shows_time, terminal=False):
            return self.ledger.attempt(claim, lambda: self._finished(claim, work))

    def _finished(self, claim: ReadClaim, work: Callable[[], T]) -> T:
        result = work()
        self.ledger.finish(claim)
        return result

    def pay(
        self,
        event: Event,
        *,
        relation: Relation,
        purpose: str,
        idempotency_key: str | None = None,
        parts: int | None = None,
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
            idempotency_key=idempotency_key,
            unit=self.unit,
            parts=parts,
        )

    def affords(self, event: Event, *, at_once: bool) -> bool:
        """Tell whether this could be charged, at once or part by part."""
        if at_once:
            return self.times_left(event) > 0
        return self.ledger.affords(event, principal=self.principal, project=self.project, at_once=False)

    def left(self, like: Event | None = None) -> Left:
        """Return what is left, and how many more such events, or charges like the last one, fit all limits."""
        return self.ledger.left(principal=self.principal, project=self.project, like=like)

    def nested_left(self, like: Sequence[Event] = ()) -> tuple[str, ...]:
        """Say what is left for each unit within the first."""
        which = "this one" if like else "the last charge"
        nested = self.ledger.nested_left(like)
        return tuple(f"{left.describe(which)}, for one {self.called.get(unit, unit)}" for unit, _, left in nested)

    def money(self, like: Event | None = None) -> str:
        """Return the one sentence about the budget, for this principal and project."""
        return self.ledger.money(principal=self.principal, project=self.project, like=like, called=self.called)

    def times_left(self, event: Event, nested: Sequence[Event] = ()) -> int:
        """Return how often this could be charged; refuse what this ledger has no account for."""
        try:
            return self.ledger.times_left(event, principal=self.principal, project=self.project, nested=nested)
        except UnsupportedEvent as error:
            raise Refused("this ledger does not take such an answer", reason=str(error)) from None


# --- least_price ---
# The least that a question costs. Below it an answer tells nothing, and only its failure could tell anything.
#
# A failure after the charge is one constant error, but that it came is a bit, and which rows it depends on is limited
# by what one row can cost (`plan/contribution_limits.py`), not excluded. So a question may not be almost free: at the
# least price a count has noise of 100,000 rows and more, and a budget of epsilon = 1 holds 100,000 such questions.


LEAST_EPSILON = Fraction(1, 10**5)


def check_price(spends: Iterable[Spend]) -> None:
    """Refuse what costs less than the least price altogether; rho is compared by what a pure epsilon amounts to."""
    said = list(spends)
    epsilon = sum((spend.epsilon or Fraction(0) for spend in said), Fraction(0))
    rho = sum((spend.rho or Fraction(0) for spend in said), Fraction(0))
    if epsilon < LEAST_EPSILON and rho < LEAST_EPSILON**2 / 2:  # epsilon-DP is epsilon^2 / 2 of rho. [BS16]
        raise Refused(
            f"a question costs at least ε = {float(LEAST_EPSILON):g} (or ρ = {float(LEAST_EPSILON**2 / 2):g})",
            reason="for less, noise hides any answer, and only whether it fails could tell anything",
            way_out="spend more, or put several questions together under one price with session.batch",
        )
