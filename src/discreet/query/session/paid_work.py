"""Work on a session's tables that is more than one question: paid for as a whole, before any of it is read.

Whoever watches the ledger sees one charge when the work begins, and nothing of how it goes on: charges of steps that
follow from what was read before would come at times that the rows decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.ledger import Budget, Ledger
from discreet.ledger.charge_record import ReadClaim, StoredAnswer
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.query.plan.draft import Spend
from discreet.query.policy import check_asked
from discreet.query.session.executor import Executor, Patience, check_price
from discreet.query.session.session import Session

__all__ = ["kept_work", "prepaid", "with_seconds"]


def with_seconds(session: Session, seconds: float) -> Session:
    """Return a view of a session in which reading may take so long."""
    return _with_desk(session, replace(session._desk, seconds=seconds))


def _with_desk(session: Session, desk: Executor) -> Session:
    view = session.for_principal(session.principal)
    view._desk = desk
    return view


def kept_work(
    session: Session,
    work: Callable[[], str],
    *,
    event: Event,
    relation: Relation,
    purpose: str,
    unit: str,
    epsilon: Fraction,
    request: str,
    idempotency_key: str,
) -> str:
    """Charge and claim, run what reads rows of the session's own tables, store the text it returns, and return that.

    Under the same key, or for the same `request` on the same declared version of the data, the stored text is returned,
    and nothing is charged or read. So `request` is everything that the text answers, to the letter. If the work fails,
    or whoever waits has given up, it fails with the constant error and counts as a read without an answer; it is not
    tried again. `epsilon` is what was offered: work may not be almost free, as a question may not.
    """
    check_asked(session.unit)
    session._check_unit(unit)
    desk = session._desk
    desk.check_open()
    check_price([Spend(epsilon=epsilon)])
    said = hashlib.sha256(f"{purpose}\n{event!r}\n{request}".encode()).hexdigest()
    asked: dict[str, Any] = {"principal": desk.principal, "project": desk.project, "version": desk.version}
    asked |= {"idempotency_key": idempotency_key, "plan": said}
    found = desk.ledger.stored(**asked)
    if found is not None:
        return found.text
    desk.patience.check()
    desk.engine.check_unchanged()
    claim = desk.ledger.claim(event, relation=relation, purpose=purpose, unit=desk.unit, seconds=desk.seconds, **asked)
    if isinstance(claim, StoredAnswer):
        return claim.text
    desk.patience.claimed(desk.ledger, claim)
    return desk.ledger.attempt(claim, lambda: _stored(desk, claim, work))


def _stored(desk: Executor, claim: ReadClaim, work: Callable[[], str]) -> str:
    """Work, and store what came of it, unless nobody waits any more: then it is dropped."""
    desk.patience.check()
    text = work()
    desk.patience.check()
    return desk.ledger.store(claim, lambda: text)


@contextmanager
def prepaid(session: Session, budget: Budget, *, seconds: float) -> Iterator[Session]:
    """Open a view of a session for work that was paid for: the same tables, and an allowance of its own in memory.

    What is asked in it is held to `budget`, and nothing of it is written anywhere else. It is for `kept_work`.
    """
    account = replace(session.ledger.account, budget=budget)
    own: dict[str, Any] = {"patience": Patience(), "seconds": seconds, "paid": set[str](), "version": None}
    with Ledger.open("memory", account) as book:
        yield _with_desk(session, replace(session._desk, ledger=book, **own))
