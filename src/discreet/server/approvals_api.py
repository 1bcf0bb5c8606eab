"""Endpoints of approvals: what waits, what an approver should know of it, and the three ways in which it ends."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from discreet.errors import DiscreetError, UnsupportedEvent
from discreet.formatting import significant_up
from discreet.privacy.events import Event
from discreet.privacy.meaning import explain, sentences
from discreet.query.session.plans import Plan
from discreet.server import api_models as models
from discreet.server.accounts import Caller
from discreet.server.app import ApiCall, Endpoint, Server
from discreet.server.approvals import ApprovalRecord
from discreet.server.datasets import ServedDataset
from discreet.server.jobs import Job
from discreet.server.problems import Problem
from discreet.server.question_api import seen_job
from discreet.server.question_attacks import made_up_attacks
from discreet.server.work.kinds import WORK

__all__ = ["APPROVAL_ENDPOINTS", "approval_document", "approve_job", "decline_job", "seen_approvals", "withdraw_job"]


class ApprovalReasonModel(BaseModel):
    """Why somebody approves or declines; whoever asked reads it. Declining needs a reason."""

    model_config = ConfigDict(extra="forbid", strict=True)
    reason: Annotated[str, Field(max_length=500)] = ""


class _ApprovalTold(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ApprovalModel(_ApprovalTold):
    """A release that waits or waited for another custodian: awaiting, approved, declined, withdrawn or expired."""

    number: int
    release: str
    dataset: str
    who: str
    sql: str
    kind: str
    cost: str
    epsilon: str | None
    why: str
    state: str
    asked: float
    until: float
    decided_by: str | None
    decided: float | None
    reason: str | None
    yours_to_decide: bool


class ApprovalsModel(_ApprovalTold):
    """Releases that wait or waited, the newest first; `before` of the next page is the last number."""

    approvals: list[ApprovalModel]


class ApprovalDetailModel(_ApprovalTold):
    """What an approver should know. It follows from the request, declarations and the ledger; no row was read."""

    approval: ApprovalModel
    errors: dict[str, str]
    facts: dict[str, str]
    notes: list[str]
    guarantee: list[str]
    attacks: list[str]
    left: str
    left_after: str


# --- what is told ---


def seen_approvals(server: Server, caller: Caller, *, before: int | None, most: int) -> list[dict[str, Any]]:
    """Return what waits or waited, as far as this caller sees it: their own, or everybody's."""
    only = None if caller.sees_all else caller.name
    found = server.jobs.gate.book.listed(only=only, datasets=caller.granted, before=before, most=most)
    return [_line(server, caller, record) for record in found]


def _line(server: Server, caller: Caller, record: ApprovalRecord) -> dict[str, Any]:
    job = server.jobs.get(record.job)
    return {
        "number": record.number,
        "release": job.id,
        "dataset": job.dataset,
        "who": job.name,
        "sql": job.sql,
        "kind": job.kind,
        "cost": job.cost,
        "epsilon": None if record.epsilon is None else significant_up(Fraction(record.epsilon)),
        "why": record.why,
        "state": record.state,
        "asked": record.asked,
        "until": record.until,
        "decided_by": record.decided_by,
        "decided": record.decided,
        "reason": record.reason,
        "yours_to_decide": server.jobs.gate.may_decide(caller, record),
    }


def approval_document(server: Server, caller: Caller, job: Job) -> dict[str, Any]:
    """Return what an approver should know of a release: its price, expected ±, guarantee, and what is left after it."""
    server.jobs.gate.book.expire()
    record = server.jobs.gate.book.of(job.id)
    if record is None or not record.why:
        raise Problem("not-found")
    served, charged = server.shelf[job.dataset], record.charged()
    told: dict[str, Any] = {"errors": {}, "facts": {}, "notes": [], "attacks": []}
    told |= _estimated(server, caller, job, attacked=server.jobs.gate.may_decide(caller, record))
    return {
        "approval": _line(server, caller, record),
        **told,
        "guarantee": list(_guarantee(served, charged[0])) if charged else [],
        **_left(served, job, charged),
    }


def _estimated(server: Server, caller: Caller, job: Job, *, attacked: bool) -> dict[str, Any]:
    """Price it again, as who asked it, and attack a question on made-up rows for whoever decides."""
    served = server.shelf[job.dataset]
    session, found = served.asked_by(job.name, kind=job.kind), list[str]()
    try:
        if job.kind == "question":
            plan = job.question.plan(session)
            estimate = served.estimate(plan, job.name)
            found = _attacked(server, caller, plan) if attacked else []
        else:
            estimate = WORK[job.kind].offer(served, session, dict(job.details)).document(served, session)
    except (Problem, DiscreetError):
        return {"notes": ["This cannot be asked any more as the data set is declared now."]}
    return {name: estimate[name] for name in ("errors", "facts", "notes")} | {"attacks": found}


def _attacked(server: Server, caller: Caller, plan: Plan) -> list[str]:
    """Say what attacks find on made-up rows of the declared columns; no row of the data is read."""
    try:
        with server.one_trial(caller):
            found = made_up_attacks(plan)
    except Problem:
        return ["Another trial of yours is under way: look again when it has ended."]
    return (
        list(found.sentences) if found is not None else ["This question is too large to be attacked on made-up rows."]
    )


def _guarantee(served: ServedDataset, event: Event) -> tuple[str, ...]:
    """Say what the release lets an attacker learn at most, in the words of the library."""
    unit, delta = served.policy.unit, served.session.ledger.account.budget.delta or 0
    try:
        return tuple(sentences(explain(event, delta=delta, relation=unit.relation)))
    except UnsupportedEvent:
        return ("No bound on what this release tells by itself is known; the budget holds for all releases together.",)


def _left(served: ServedDataset, job: Job, charged: tuple[Event, ...]) -> dict[str, str]:
    session = served.asked_by(job.name)
    if not charged:
        return {"left": session.left.describe(), "left_after": "not known before it runs"}
    times = session.ledger.times_left(charged[0], principal=job.name, nested=charged[1:])
    more = min(times, 10**9)
    after = (
        "it does not fit any more" if not more else f"{more - 1:,} more like it" if more > 1 else "none more like it"
    )
    return {"left": session.left.describe(), "left_after": after}


# --- what is done ---


def approve_job(server: Server, caller: Caller, number: str, reason: str) -> Job:
    """Approve a release, and let it run."""
    server.jobs.gate.decide(caller, seen_job(server, caller, number), approve=True, reason=reason)
    server.jobs.take_approved()
    return server.jobs.get(number)


def decline_job(server: Server, caller: Caller, number: str, reason: str) -> Job:
    """Decline a release."""
    server.jobs.gate.decide(caller, seen_job(server, caller, number), approve=False, reason=reason)
    return server.jobs.get(number)


def withdraw_job(server: Server, caller: Caller, number: str) -> Job:
    """Withdraw a release of one's own."""
    server.jobs.gate.withdraw(caller, seen_job(server, caller, number))
    return server.jobs.get(number)


def _approvals(call: ApiCall) -> Any:
    return {"approvals": seen_approvals(call.server, call.caller, before=call.before, most=call.most)}


def _approval(call: ApiCall) -> Any:
    return approval_document(call.server, call.caller, seen_job(call.server, call.caller, call.path["id"]))


def _approve(call: ApiCall) -> Any:
    return _told(approve_job(call.server, call.caller, call.path["id"], call.body.reason))


def _decline(call: ApiCall) -> Any:
    return _told(decline_job(call.server, call.caller, call.path["id"], call.body.reason))


def _withdraw(call: ApiCall) -> Any:
    return _told(withdraw_job(call.server, call.caller, call.path["id"]))


def _told(job: Job) -> dict[str, Any]:
    """Return the release as it is now; nobody waits for its answer here."""
    return models.release_document(job, with_answer=False)


_RELEASE = "/v1/releases/{id}"
APPROVAL_ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/v1/approvals",
        operation="approvals",
        handler=_approvals,
        summary="Releases that wait or waited for another custodian: one's own, or everybody's for whoever checks",
        answer=ApprovalsModel,
        query=("before", "limit"),
    ),
    Endpoint(
        method="GET",
        path="/v1/approvals/{id}",
        operation="approval",
        handler=_approval,
        summary="What an approver should know of a release: price, expected ±, guarantee, what is left after it",
        answer=ApprovalDetailModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_RELEASE}/approve",
        operation="approve",
        handler=_approve,
        summary="Approve a release that somebody else asked for; it is charged when it runs",
        body=ApprovalReasonModel,
        answer=models.ReleaseAnswerModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_RELEASE}/decline",
        operation="approve",
        handler=_decline,
        summary="Decline a release that somebody else asked for, and say why; nothing is charged",
        body=ApprovalReasonModel,
        answer=models.ReleaseAnswerModel,
    ),
    Endpoint(
        method="POST",
        path=f"{_RELEASE}/withdraw",
        operation="withdraw",
        handler=_withdraw,
        summary="Withdraw a release of one's own that waits for an approval; nothing is charged",
        answer=models.ReleaseAnswerModel,
    ),
)
