"""What kinds of jobs beside questions share: what is offered before they are paid, and what is kept of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, final

from discreet.errors import AnswerFailed, Refused
from discreet.ledger.budget import Budget
from discreet.privacy.events import Event
from discreet.query.engines.made_up_rows import made_up_tables
from discreet.query.policy import PublicTable, check_asked
from discreet.query.session.paid_work import kept_work
from discreet.query.session.session import Session
from discreet.server.datasets import AskedQuestion, ServedDataset, in_memory
from discreet.server.jobs import Job, ledger_key
from discreet.server.offers import OfferedRelease
from discreet.server.problems import Problem

__all__ = ["WorkAnswer", "WorkOffer", "checked_unit", "made_up_session", "made_up_table", "offered", "pay_and_keep"]

_MOST_KEPT = 32 << 20  # characters of an answer, files and all
_MADE_UP_ROWS = 1_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOffer:
    """What a job would cost and do, from public facts alone."""

    release: OfferedRelease
    facts: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def document(self, served: ServedDataset, session: Session) -> dict[str, Any]:
        """Return the price as JSON has it, in the shape of that of a question."""
        release = self.release
        more = 10**9 if release.event is None else session._desk.times_left(release.event, release.nested)
        return {
            "cost": release.cost,
            "affordable": more > 0,
            "more_like_this": min(more, 10**9),
            "facts": dict(self.facts),
            "errors": dict(self.errors),
            "notes": list(self.notes),
            "answer_after": served.seconds_of(release.kind),
        }


def offered(
    kind: str, title: str, *, cost: str, event: Event | None, epsilon: Fraction | None, said: Mapping[str, Any]
) -> OfferedRelease:
    """Return what goes through the door of all releases: a title for people, the price, and all that was said."""
    paid = {"epsilon": str(epsilon)} if epsilon is not None else {}
    question = AskedQuestion(sql=title, offer=paid)
    return OfferedRelease(question=question, cost=cost, event=event, epsilon=epsilon, kind=kind, details=dict(said))


def checked_unit(session: Session, what: str) -> str:
    """Return whom a whole piece of work protects, or refuse it where sessions protect more than one unit."""
    check_asked(session.unit)
    if session.chain is not None:
        raise Refused(
            f"{what} is charged to one unit, and two are protected here, one within the other",
            way_out="ask questions, which charge both; or serve the data with one of the two units",
        )
    return session.unit.account


def pay_and_keep(job: Job, session: Session, offer: OfferedRelease, work: Callable[[], WorkAnswer]) -> str:
    """Charge a job as it was offered, do it, and keep what came of it in the ledger, under its key."""
    if offer.event is None or offer.epsilon is None:
        raise AnswerFailed
    return kept_work(
        session,
        lambda: work().to_json(),
        event=offer.event,
        relation=session.unit.relation,
        purpose=offer.question.sql,
        unit=session.unit.account,
        epsilon=offer.epsilon,
        request=json.dumps([offer.kind, dict(offer.details)], sort_keys=True),
        idempotency_key=ledger_key(job),
    )


# --- what is kept ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAnswer:
    """What came of a job: a few facts, and files by name. All of it was released."""

    told: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)

    def to_json(self) -> str:
        """Write it as the state keeps it."""
        files = {name: base64.b64encode(content).decode() for name, content in self.files.items()}
        text = json.dumps({"told": dict(self.told), "files": files}, ensure_ascii=False, allow_nan=False)
        if len(text) > _MOST_KEPT:
            raise AnswerFailed
        return text

    @classmethod
    def of(cls, job: Job) -> WorkAnswer:
        """Read what came of a job, or raise why there is nothing."""
        if job.kind == "question":
            raise Problem("not-found", "a question has an answer, and no files")
        if job.problem is not None:
            raise job.problem
        if job.answer is None:
            raise Problem("not-found", "this release is not answered yet")
        said = json.loads(job.answer)
        files = {name: base64.b64decode(text) for name, text in said["files"].items()}
        return cls(told=said["told"], files=files)


# --- made-up rows ---


@contextmanager
def made_up_session(served: ServedDataset, budget: Budget) -> Iterator[Session]:
    """Open a session on made-up rows of the declared columns, with a ledger that is forgotten."""
    made_up = made_up_tables(served.session.catalogue, rows=_MADE_UP_ROWS)
    tables = {name: one.table if isinstance(one, PublicTable) else one for name, one in made_up.items()}
    policy = replace(in_memory(served.policy), budget=budget)
    with Session.from_policy(policy, principal="trial", tables=tables) as session:
        yield session


def made_up_table(served: ServedDataset, table: str) -> Any:
    """Return made-up rows of one table."""
    return made_up_tables(served.session.catalogue, rows=_MADE_UP_ROWS)[table]
