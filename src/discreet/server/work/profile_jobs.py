"""Profiles as jobs: every column of a table, for one price that is charged before the first of their rounds is read."""

from __future__ import annotations

import json
from typing import Any

from discreet.ledger.budget import Budget
from discreet.query.session.paid_work import prepaid
from discreet.query.session.session import Session
from discreet.release.profiling.profile_page import page
from discreet.release.profiling.profile_plan import ProfilePlan, plan_profile
from discreet.release.profiling.profile_queries import ROUNDS
from discreet.server.datasets import ServedDataset
from discreet.server.jobs import Job
from discreet.server.work.job_kinds import WorkAnswer, WorkOffer, checked_unit, made_up_session, offered, pay_and_keep

__all__ = ["dummy_profile", "offer_profile", "run_profile"]


def _planned(session: Session, said: dict[str, Any]) -> ProfilePlan:
    return plan_profile(session, idempotency_key="profile", **said)


def offer_profile(served: ServedDataset, session: Session, said: dict[str, Any]) -> WorkOffer:
    """Price a profile; nothing is read."""
    checked_unit(session, "a profile")
    plan = _planned(session, said)
    names = ", ".join(subject.name for subject in plan.subjects)
    found = {**said, "table": plan.table.name}
    release = offered(
        "profile",
        f"profile of {plan.table.name}",
        cost=plan.cost,
        event=plan.event,
        epsilon=plan.allowed,
        said=found,
    )
    facts = {"table": plan.table.name, "columns": names, "rounds": ", ".join(plan.rounds)}
    return WorkOffer(release=release, facts=facts, notes=tuple(filter(None, (*plan.hidden, plan.read_as_text))))


def run_profile(job: Job, served: ServedDataset, session: Session) -> str:
    """Charge for all rounds at once, then ask them one after the other within an allowance that nobody sees."""
    said = dict(job.details)
    offer = offer_profile(served, session, said).release
    allowed = Budget(epsilon=said["epsilon"], delta=said["delta"])

    def work() -> WorkAnswer:
        with prepaid(session, allowed, seconds=session._desk.seconds / len(ROUNDS)) as inner:
            return _profiled(_planned(inner, said))

    return pay_and_keep(job, session, offer, work)


def dummy_profile(served: ServedDataset, said: dict[str, Any]) -> WorkAnswer:
    """Make the profile of made-up rows."""
    with made_up_session(served, Budget(epsilon=said["epsilon"], delta=said["delta"])) as session:
        return _profiled(_planned(session, said))


def _profiled(plan: ProfilePlan) -> WorkAnswer:
    found = plan.release()
    text = found.to_json()
    told = {"table": plan.table.name, "columns": len(plan.subjects), "cost": plan.cost}
    return WorkAnswer(told=told, files={"profile.html": page(found).encode(), "profile.json": _plain(text)})


def _plain(text: str) -> bytes:
    return json.dumps(json.loads(text), ensure_ascii=False).encode()
