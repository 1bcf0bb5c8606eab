"""Releases as jobs: queued, run by a few workers, answered at a time that was declared beforehand.

What can be seen from outside (when a job starts, when it is answered, how long others wait) follows from when jobs were
asked for and from declared times alone:

- a job starts when a slot is free and nobody runs another job of the same principal on the same data set;
- its answer is told `answer_after` seconds after its start, however soon it was known;
- the slot stays taken until then;
- what is not known by then is the constant failure, in the ledger too, where it counts; reading was killed before by
  the session's own deadline, and a draw that ends late is dropped;
- a slot with such a job stays taken until its thread has ended, in whole multiples of `answer_after`.

Of several servers on one state the same is true of all slots together: a slot of any server takes the next job, when it
is freed or at the next of its looks, whose pace is fixed; and whoever waits at one server for a job of another hears of
it at such a look, after its time. A job whose server died begins anew when the lease of that server has run out, and
its time is counted from there: the failure of a machine is seen, like an overrun.

That a job overran is seen, and one analyst's load can push another over the time: docs/server.md says so. Every job has
an idempotency key in the ledger, so that one which was under way when the server died is charged once and read once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from threading import Condition, Event, Lock, Thread
from typing import Any, TypeAlias, final

from discreet.custodian_debug import show_hidden
from discreet.errors import AnswerFailed
from discreet.privacy.events import Event as PrivacyEvent
from discreet.query.release_table import ReleaseTable
from discreet.query.session.executor import Patience
from discreet.query.session.session import Session
from discreet.server.accounts import Accounts, Caller, secret
from discreet.server.approvals import AWAITING, ApprovalGate, Weighed
from discreet.server.datasets import AskedQuestion, DatasetShelf, ServedDataset
from discreet.server.job_queue import JobQueue
from discreet.server.problems import Problem, problem_of
from discreet.server.state_store import ServerState, StateUnavailable

__all__ = ["Job", "JobRunner", "Jobs", "Pause", "ledger_key", "operation_of", "run_question"]

_MOST_WAITING = 8  # jobs of a principal that are queued or run
_MOST_QUEUED = 1_000
_LONGEST_KEY = 200
_LEASE = 30.0  # seconds after which a server that is silent is dead
_PACE = 0.25  # seconds between looks at what other servers and the command line did
_EXPIRY = 1.0  # seconds between looks for approvals that came too late
_WRITE_AGAIN, _LAST_TRIES = 0.2, 25  # seconds between tries to write how a job ended; tries when the server stops


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A release that was asked for, as it is on record."""

    id: str
    dataset: str
    name: str
    key: str
    sql: str
    offer: dict[str, Any]
    cost: str
    state: str  # awaiting (a person's approval), queued, running, done or failed
    asked: float
    answer: str | None
    problem: Problem | None
    token: str | None  # the public part of the one that it was asked with
    kind: str = "question"  # how it is worked off: a key of the kinds that `Jobs` knows
    details: Mapping[str, Any] = field(default_factory=dict)  # what another kind than a question asks for
    started: float | None = None  # when it began: with the declared time, all that progress follows from

    @property
    def question(self) -> AskedQuestion:
        """What was asked."""
        return AskedQuestion(sql=self.sql, offer=self.offer)

    @property
    def is_over(self) -> bool:
        """Whether it is answered, or failed."""
        return self.state in ("done", "failed")

    def table(self) -> ReleaseTable:
        """Return the answer, or raise why there is none."""
        if self.problem is not None:
            raise self.problem
        if self.answer is None:
            raise Problem("not-found", "this release is not answered yet")
        return ReleaseTable.from_json(self.answer)

    @classmethod
    def of(cls, row: Any) -> Job:
        """Read a row of the state."""
        said = json.loads(row["request"])
        problem = None if row["problem"] is None else Problem.read(json.loads(row["problem"]))
        same = ("id", "dataset", "name", "key", "cost", "state", "asked", "answer", "kind", "started")
        named = {name: row[name] for name in same}
        details = said.get("details", {})
        return cls(
            **named,
            sql=said["sql"],
            offer=said["offer"],
            problem=problem,
            token=said.get("token"),
            details=details,
        )


JobRunner: TypeAlias = Callable[[Job, ServedDataset, Session], str]
"""How a kind of job is worked off: in a session under the asker's name, to the answer as it is stored.

It charges, reads, draws and stores through that session and nothing else, under the key `ledger_key(job)`.
"""


def run_question(job: Job, served: ServedDataset, session: Session) -> str:
    """Answer a question: the kind of job that every server knows."""
    return job.question.plan(session, idempotency_key=ledger_key(job)).release().to_json()


def operation_of(kind: str) -> str:
    """Return what somebody must be allowed to do for a job of a kind: when it is asked for, and when it begins."""
    return "plan release" if kind == "plan" else "release"


Pause: TypeAlias = Callable[[float, Event], None]


def _until_moment(moment: float, known: Event) -> None:
    """Wait until a moment, whether the answer is known or not; tests replace it by a clock of their own."""
    time.sleep(max(0.0, moment - time.monotonic()))


@final
class Jobs:
    """The queue of a server, and the threads that work it off."""

    def __init__(
        self,
        state: ServerState,
        shelf: DatasetShelf,
        accounts: Accounts,
        *,
        workers: int,
        until: Pause = _until_moment,
        kinds: Mapping[str, JobRunner] | None = None,
        gate: ApprovalGate | None = None,
        lease: float = _LEASE,
        pace: float = _PACE,
    ) -> None:
        self.gate = gate or ApprovalGate(state, shelf, accounts)
        self._kinds = {"question": run_question, **(kinds or {})}
        self._until = until
        self._state, self._shelf, self._accounts = state, shelf, accounts
        self._changed, self._stopping, self._ended = Condition(), False, Event()
        self._queue = JobQueue(state, lambda: [one.name for one in shelf], lease=lease)
        self._lease, self._pace, self._news = lease, pace, 0
        self._over: dict[str, Future[None]] = {}  # of jobs for which somebody waits here
        self._over_changes = Lock()  # Of its own: the loop that serves everybody takes it.
        self._asking: defaultdict[str, Lock] = defaultdict(Lock)  # by name
        self._threads = [Thread(target=self._work, name=f"slot {n}", daemon=True) for n in range(workers)]
        self._threads.append(Thread(target=self._look_around, name="looks", daemon=True))

    def start(self) -> None:
        """Begin to work, first on what was under way when a server ended; the ledger knows what was charged."""
        self._queue.beat()
        self._queue.queue_orphans()
        for thread in self._threads:
            thread.start()

    def ask(
        self,
        caller: Caller,
        dataset: str,
        question: AskedQuestion,
        cost: str,
        key: str | None,
        pay: Callable[[], None],
        *,
        kind: str = "question",
        details: Mapping[str, Any] | None = None,
        charged: Sequence[PrivacyEvent] | None = None,
    ) -> Job:
        """Queue a release; under a key that was used, return what it stands for. `pay` takes it off a token's cap.

        It may wait for the ledger. So nobody waits for it but the same account: what others are told has its time.
        `charged` is what it will be charged, then what for units within; nothing if it was paid before. Above a limit
        it waits for another custodian, and where nobody said what is charged it waits wherever there is a limit.
        """
        if key is not None and not 0 < len(key) <= _LONGEST_KEY:
            raise Problem("invalid", f"an idempotency key has at most {_LONGEST_KEY} characters")
        said = _said(kind, question, details or {})
        weighed = self.gate.weigh(caller, dataset, charged)
        with self._changed:
            alone = self._asking[caller.name]
        with alone:
            own = key if key is None else f"own/{key}"
            found = None if own is None else self._by_key(caller.name, dataset, own)
            if found is not None:
                if _written(_said(found.kind, found.question, found.details)) != _written(said):
                    raise Problem("key-used", "this idempotency key stands for another question or price")
                return found
            self._check_room(caller.name)
            pay()
            asked = _written(said | {"token": caller.token})
            job = self._add(caller.name, dataset, own, asked, cost, kind, weighed)
            self._wake()
            return job

    def _check_room(self, name: str) -> None:
        waiting, queued = self._queue.waiting(name)
        if waiting + self.gate.book.waiting(name) >= _MOST_WAITING or queued >= _MOST_QUEUED:
            raise Problem("too-many", f"at most {_MOST_WAITING} releases of one account wait at a time")

    def _add(
        self, name: str, dataset: str, key: str | None, said: str, cost: str, kind: str, weighed: Weighed | None
    ) -> Job:
        number, now = secret(16), self._state.now()
        with self._state.changing() as database:
            self._check_room(name)  # Other servers ask, too.
            if key is not None and (found := self._by_key(name, dataset, key)) is not None:
                return found
            database.execute(
                "INSERT INTO jobs (id, dataset, name, key, request, cost, state, asked, kind) "
                "VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?)",
                (number, dataset, name, key or f"job/{number}", said, cost, now, kind),
            )
            added = Job.of(database.execute("SELECT * FROM jobs WHERE id = ?", (number,)).fetchone())
            if self.gate.holds_back(database, added, weighed):
                database.execute("UPDATE jobs SET state = ? WHERE id = ?", (AWAITING, number))
            job = self.get(number)
            self._state.decide(name, "release", dataset=dataset, outcome=job.state, about=number)
        return job

    def take_approved(self) -> None:
        """Begin what was approved, on a page or by the API, as soon as there is a slot."""
        self._wake()

    def _wake(self) -> None:
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    # --- looking around ---

    def _look_around(self) -> None:
        """At a fixed pace: live on, look what other servers did, and end what waited for too long."""
        last = {self._queue.beat: time.monotonic(), self.gate.book.expire: 0.0}
        every = {self._queue.beat: self._lease / 4, self.gate.book.expire: _EXPIRY}
        while not self._ended.wait(self._pace):
            try:
                for act, seconds in every.items():
                    if time.monotonic() - last[act] >= seconds:
                        last[act] = time.monotonic()
                        act()
                self._tell_waiting()
                if self._queue.first_free() is not None:
                    self._wake()
            except Exception as error:  # noqa: BLE001 - the state could not be read: it is looked at again
                show_hidden(error)

    def _tell_waiting(self) -> None:
        """Tell whoever waits here for jobs that are over, on whichever server."""
        with self._over_changes:
            numbers = list(self._over)
        for number in self._queue.over_among(numbers) if numbers else ():
            self._is_over(number)

    def _is_over(self, number: str) -> None:
        with self._over_changes:
            over = self._over.pop(number, None)
        if over is not None and not over.done():
            over.set_result(None)

    def get(self, number: str) -> Job:
        """Return a job by its id, which nobody can guess."""
        row = self._state.row("SELECT * FROM jobs WHERE id = ?", number)
        if row is None:
            raise Problem("not-found")
        return Job.of(row)

    def over(self, job: Job) -> Future[None] | None:
        """Return what is done when a job is over; None if it is over already, or waits for a person."""
        if job.is_over or job.state == AWAITING:
            return None
        with self._over_changes:
            return self._over.setdefault(job.id, Future())

    def of_dataset(self, dataset: str, *, only: str | None, most: int, after: str | None = None) -> list[Job]:
        """Return the last jobs of a data set without their answers, the newest first: of one principal, or of all.

        With `after`, those that follow this one in the list; its number is not told, since it counts everybody's.
        """
        columns = "id, dataset, name, key, request, cost, state, asked, NULL AS answer, problem, kind, started"
        seen, of = ("dataset = ?", [dataset]) if only is None else ("dataset = ? AND name = ?", [dataset, only])
        if after is not None:  # The one that is named is one of these, too: else the page is empty.
            seen, of = f"{seen} AND number < (SELECT number FROM jobs WHERE id = ? AND {seen})", [*of, after, *of]
        query = f"SELECT {columns} FROM jobs WHERE {seen} ORDER BY number DESC LIMIT ?"
        return [Job.of(row) for row in self._state.rows(query, *of, most)]

    def _by_key(self, name: str, dataset: str, key: str) -> Job | None:
        query = "SELECT * FROM jobs WHERE name = ? AND dataset = ? AND key = ?"
        row = self._state.row(query, name, dataset, key)
        return None if row is None else Job.of(row)

    # --- working ---

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._run(job)
            except Exception as error:  # noqa: BLE001 - it could not be written down: the next server runs it again
                show_hidden(error)
                self._free(job)
            self._wake()

    def _next(self) -> Job | None:
        """Wait for a job that can begin; it is this server's when this returns."""
        while not self._stopping:
            seen = self._news
            try:
                row = self._queue.claim()
            except Exception as error:  # noqa: BLE001 - the state cannot be read or written now: it is tried again
                show_hidden(error)
                row = None
            if row is not None:
                return Job.of(row)
            with self._changed:
                if not self._stopping and self._news == seen:
                    self._changed.wait()
        return None

    def _run(self, job: Job) -> None:
        """Compute in a thread of its own, tell at the declared time, and keep the slot until the thread has ended.

        What is answered in the ledger at the last moment, and not known here yet, is told when the slot is freed.
        """
        begun, after = time.monotonic(), self._answer_after(job)
        known, found, patience = Event(), _Found(), Patience()
        thread = Thread(target=self._compute, args=(job, found, known, patience), name="release", daemon=True)
        thread.start()
        self._until(begun + after, known)
        is_late = after > 0 and not known.is_set()
        has_failed = is_late and patience.give_up()
        if has_failed:
            self._tell(job, None, problem_of(AnswerFailed()), frees=False)
        thread.join()
        if is_late:
            self._until(begun + after * ceil((time.monotonic() - begun) / after), known)
        if has_failed:
            self._free(job)
        else:
            self._tell(job, found.answer, found.problem, frees=True)

    def _answer_after(self, job: Job) -> float:
        try:
            return self._shelf[job.dataset].seconds_of(job.kind)
        except Problem:
            return 0.0  # It is no longer served: nothing is read.

    def _compute(self, job: Job, found: _Found, known: Event, patience: Patience) -> None:
        try:
            if not self._accounts.may_still(job.name, job.dataset, job.token, operation_of(job.kind)):
                raise Problem("forbidden", "this account or token may no longer do this; nothing was charged")
            served = self._shelf[job.dataset]
            self.gate.check_may_run(job)
            found.answer = self._kinds[job.kind](job, served, served.asked_by(job.name, patience, kind=job.kind))
        except BaseException as error:  # noqa: BLE001 - whatever it was, one of a list of problems is told
            found.problem = problem_of(error)
        known.set()

    def _tell(self, job: Job, answer: str | None, problem: Problem | None, *, frees: bool) -> None:
        """Write how a job ended, as soon as the state can be written; what another server took over is not told."""
        written = None if problem is None else json.dumps(problem.document())
        outcome = "answered" if problem is None else problem.kind.code

        def tell() -> None:
            with self._state.changing():
                if self._queue.tell(job.id, answer, written, frees=frees):
                    self._state.decide(job.name, "release", dataset=job.dataset, outcome=outcome, about=job.id)

        self._persevering(tell)
        self._is_over(job.id)

    def _free(self, job: Job) -> None:
        with suppress(StateUnavailable):
            self._persevering(lambda: self._queue.free(job.id))

    def _persevering(self, write: Callable[[], None]) -> None:
        """Write something that may be written twice, again and again while the state is lost.

        A server that is to stop does not try for long: the next one runs the job again, and finds its answer.
        """
        tries = 0
        while True:
            try:
                return write()
            except StateUnavailable:
                tries += self._stopping
                if tries > _LAST_TRIES:
                    raise
            time.sleep(_WRITE_AGAIN)

    def stop(self, *, within: float | None = None) -> None:
        """Let running jobs end at their declared times; those that wait are run by the next server.

        So is what has not ended within some seconds: the ledger knows what was charged and read.
        """
        until = None if within is None else time.monotonic() + within
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        *slots, looks = self._threads
        for thread in slots:
            if thread.ident is not None:
                thread.join(None if until is None else max(0.0, until - time.monotonic()))
        self._ended.set()
        if looks.ident is not None:
            looks.join()
            self._queue.leave()


@final
class _Found:
    """What a thread found out."""

    answer: str | None = None
    problem: Problem | None = None


def _said(kind: str, question: AskedQuestion, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for, as it is stored; a question is stored as it always was."""
    said: dict[str, Any] = {"sql": question.sql, "offer": dict(question.offer)}
    return said if kind == "question" else said | {"kind": kind, "details": dict(details)}


def _written(said: Any) -> str:
    return json.dumps(said, sort_keys=True)


def ledger_key(job: Job) -> str:
    """Return the key in the ledger: it follows from name and key, so that a lost state charges nobody twice."""
    return f"server/{hashlib.sha256(json.dumps([job.name, job.dataset, job.key]).encode()).hexdigest()[:40]}"
