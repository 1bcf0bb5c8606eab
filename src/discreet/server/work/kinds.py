"""All kinds of jobs beside questions: how each is offered, tried on made-up rows, and worked off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from discreet.query.session.session import Session
from discreet.server.accounts import Caller
from discreet.server.app import Server
from discreet.server.datasets import ServedDataset
from discreet.server.jobs import Job, JobRunner
from discreet.server.offers import queue_release
from discreet.server.work.job_kinds import WorkAnswer, WorkOffer
from discreet.server.work.model_jobs import (
    dummy_synth,
    dummy_training,
    offer_synth,
    offer_training,
    run_synth,
    run_training,
)
from discreet.server.work.plan_jobs import PlacedPlans, dummy_plan, offer_plan, run_plan
from discreet.server.work.profile_jobs import dummy_profile, offer_profile, run_profile

__all__ = ["WORK", "KindOfWork", "ask_work", "estimated_work", "job_runners", "tried_work"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KindOfWork:
    """A kind of job: its price from public facts, and the same on made-up rows."""

    offer: Callable[[ServedDataset, Session, dict[str, Any]], WorkOffer]
    dummy: Callable[[ServedDataset, dict[str, Any]], WorkAnswer]


WORK: Mapping[str, KindOfWork] = {
    "plan": KindOfWork(offer=offer_plan, dummy=dummy_plan),
    "profile": KindOfWork(offer=offer_profile, dummy=dummy_profile),
    "synth": KindOfWork(offer=offer_synth, dummy=dummy_synth),
    "train": KindOfWork(offer=offer_training, dummy=dummy_training),
}


def job_runners(plans: PlacedPlans) -> dict[str, JobRunner]:
    """Return how each kind is worked off."""
    return {"plan": run_plan(plans), "profile": run_profile, "synth": run_synth, "train": run_training}


def _offered(server: Server, caller: Caller, dataset: str, kind: str, said: dict[str, Any]) -> tuple[Any, ...]:
    served = server.shelf[dataset]
    session = served.asked_by(caller.name, kind=kind)
    return served, session, WORK[kind].offer(served, session, said)


def estimated_work(server: Server, caller: Caller, dataset: str, kind: str, said: dict[str, Any]) -> dict[str, Any]:
    """Say what a job costs; free, and nothing is read."""
    served, session, offer = _offered(server, caller, dataset, kind, said)
    document: dict[str, Any] = offer.document(served, session)
    return document


def tried_work(server: Server, caller: Caller, dataset: str, kind: str, said: dict[str, Any]) -> WorkAnswer:
    """Do a job on made-up rows, one at a time for each account."""
    served = server.shelf[dataset]
    with server.one_trial(caller):
        return WORK[kind].dummy(served, said)


def ask_work(server: Server, caller: Caller, dataset: str, kind: str, said: dict[str, Any], key: str | None) -> Job:
    """Price a job, refuse what cannot be done or paid, and queue it."""
    _, _, offer = _offered(server, caller, dataset, kind, said)
    return queue_release(server, caller, dataset, offer.release, key)
