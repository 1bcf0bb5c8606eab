"""Many analysts at once on servers that are killed: who asks, who kills, who looks, and what all of it came to.

Everybody asks under keys of their own and asks again until they hear how it ended, whatever is killed meanwhile. At the
end state and ledger are read: what was accepted is over, what was answered is charged once, nothing is overspent.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from statistics import median, quantiles
from threading import Event, Thread
from typing import Any

import httpx
from server_process import ServerProcess

from discreet.errors import InvalidParameter, LedgerUnavailable
from discreet.query import read_policy
from discreet.query.session.session import Session
from discreet.server.api_models import release_document
from discreet.server.jobs import Job, ledger_key

PRICE = Fraction(1, 100)
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic",
    "SELECT AVG(age) AS a FROM visits",
    "SELECT clinic, SUM(age) AS s FROM visits WHERE age > 30 GROUP BY clinic",
]
WARMED_UP = 0.3  # part of the time without kills of the server after which its memory should stay as it is


@dataclass
class Heard:
    """What one analyst heard."""

    answers: dict[str, Any] = field(default_factory=dict)  # by key
    codes: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    asked: set[tuple[str, str, str]] = field(default_factory=set)  # name, data set and key of what was accepted
    unended: list[str] = field(default_factory=list)


class Analyst(Thread):
    """Asks one question after the other, each until it hears how it ended."""

    def __init__(self, name: str, token: str, servers: Sequence[ServerProcess], datasets: Sequence[str], stop: Event):
        super().__init__(name=name, daemon=True)
        self._servers, self._datasets, self._over = servers, datasets, stop
        self._client = httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=90)
        self.heard, self._chance = Heard(), random.Random()

    def run(self) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            self._ask(f"{number}", self._chance.choice(self._datasets))
            self._over.wait(self._chance.uniform(0, 0.5))

    def _ask(self, key: str, dataset: str) -> None:
        said = {"sql": self._chance.choice(QUESTIONS), "epsilon": "0.01", "idempotency_key": key}
        begun, last = time.monotonic(), time.monotonic() + 300
        while time.monotonic() < last:
            answer = self._sent("POST", f"/v1/datasets/{dataset}/releases?wait=30", said)
            code = "unheard" if answer is None else answer.json().get("code", str(answer.status_code))
            self.heard.codes[code] += 1
            if code in ("200", "202", "answer-failed"):
                self.heard.asked.add((self.name, dataset, key))
            if answer is not None and code == "200":
                self.heard.answers[f"{dataset} {key}"] = answer.json()["answer"]
                self.heard.seconds.append(time.monotonic() - begun)
                return
            if code in ("answer-failed", "budget-exceeded", "refused", "forbidden", "internal"):
                return
            time.sleep(self._chance.uniform(0.05, 0.5))  # not heard, not over yet, too many: the same key again
        self.heard.unended.append(key)

    def _sent(self, method: str, path: str, said: Any) -> httpx.Response | None:
        try:
            return self._client.request(method, self._chance.choice(self._servers).address + path, json=said)
        except httpx.HTTPError:
            return None


@dataclass
class Load:
    """Servers under load, with kills."""

    folder: Path
    servers: Sequence[ServerProcess]
    tokens: dict[str, str]
    datasets: Sequence[str]
    minutes: float
    kills: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, int]] = field(default_factory=list)  # of the first server, without kills of it
    analysts: list[Analyst] = field(default_factory=list)

    def run(self) -> None:
        """Let everybody ask for so long, then let what is under way end."""
        over = Event()
        self.analysts = [Analyst(name, token, self.servers, self.datasets, over) for name, token in self.tokens.items()]
        looking = Thread(target=self._look, args=(over,), daemon=True)
        for thread in (*self.analysts, looking):
            thread.start()
        self._disturb(time.monotonic() + 60 * self.minutes)
        over.set()
        for thread in (*self.analysts, looking):
            thread.join(600)

    def _disturb(self, end: float) -> None:
        """Kill workers all the time, and servers in the first half: in the second, memory is looked at."""
        begun, chance = time.monotonic(), random.Random()
        quiet, next_kill = begun + (end - begun) / 2, begun + min(10.0, (end - begun) / 12)
        while (now := time.monotonic()) < end:
            if now < quiet and now > next_kill:
                chosen = chance.choice(self.servers)
                chosen.kill()
                chosen.start()
                self.kills["server"] += 1
                next_kill = time.monotonic() + min(25.0, (end - begun) / 12) * chance.uniform(0.5, 1.5)
            else:
                self._kill_worker(chance)
            if now > quiet:
                self.memory.append((now, sum(one.resident() for one in self.servers)))
            time.sleep(chance.uniform(0.5, 3))

    def _kill_worker(self, chance: random.Random) -> None:
        found = chance.choice(self.servers).descendants()
        if found and chance.random() < 0.4:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(found), signal.SIGKILL)
                self.kills["worker"] += 1

    def _look(self, over: Event) -> None:
        """Look at what failed, as a custodian does, so that those whose reads were killed may go on."""
        while not over.wait(3):
            for dataset in self.datasets:
                with opened(self.folder, dataset) as session:
                    for name in {claim.principal for claim in session.ledger.claims() if claim.is_failed}:
                        with suppress(InvalidParameter, LedgerUnavailable):  # Some are looked at already.
                            session.ledger.reopen(name, reason="killed by the test", principal="custodian")

    @property
    def growth(self) -> float:
        """By what part memory grew, after warming up."""
        first, last = self.memory[0][0], self.memory[-1][0]
        length = last - first

        def within(low: float, high: float) -> float:
            return median(size for at, size in self.memory if first + low * length <= at <= first + high * length)

        return within(0.85, 1.0) / within(WARMED_UP, WARMED_UP + 0.15) - 1


def opened(folder: Path, dataset: str) -> Session:
    return Session.from_policy(read_policy(folder / f"{dataset}.toml"), principal="custodian")


@dataclass
class Reckoning:
    """What state and ledger say when all is over."""

    jobs: list[Job]
    charged: dict[str, Counter[str]]  # keys of the ledger, by data set
    overspent: list[str]
    answered: list[tuple[float, float]]  # when a job began and was told, by the server's clock

    @classmethod
    def of(cls, folder: Path, datasets: Sequence[str], rows: Callable[[str], Sequence[Any]]) -> Reckoning:
        jobs = [Job.of(row) for row in rows("SELECT * FROM jobs")]
        told = {row["about"]: row["at"] for row in rows("SELECT * FROM decisions WHERE outcome = 'answered'")}
        charged, overspent = dict[str, Counter[str]](), list[str]()
        for dataset in datasets:
            with opened(folder, dataset) as session:
                session.ledger.verify()
                charges = [entry for entry in session.history() if entry.kind == "charge"]
                charged[dataset] = Counter(str(entry.content.get("key")) for entry in charges)
                budget = session.ledger.account.budget
                if len(charges) * PRICE > Fraction(str(budget.epsilon)) or session.spent.share > 1:
                    overspent.append(f"{dataset}: {len(charges)} charges")
        answered = [(job.started, told[job.id]) for job in jobs if job.id in told and job.started is not None]
        return cls(jobs, charged, overspent, answered)

    def complaints(self, analysts: Sequence[Analyst]) -> list[str]:
        """Everything that must not be."""
        found = list(self.overspent)
        found += [f"{job.id} is {job.state}" for job in self.jobs if not job.is_over]
        found += [f"{key} is charged {n} times" for one in self.charged.values() for key, n in one.items() if n > 1]
        done = [job for job in self.jobs if job.state == "done"]
        found += [f"{job.id} is not charged" for job in done if not self.charged[job.dataset][ledger_key(job)]]
        by_key = {(job.name, job.dataset, job.key.removeprefix("own/")): job for job in self.jobs}
        for analyst in analysts:
            heard = analyst.heard
            found += [f"{one} was accepted and is not there" for one in heard.asked if one not in by_key]
            found += [f"{analyst.name} never heard of {key}" for key in heard.unended]
            found += [f"{analyst.name} was told internal"] * heard.codes["internal"]
            for place, answer in heard.answers.items():
                dataset, key = place.split(" ")
                if release_document(by_key[analyst.name, dataset, key])["answer"] != answer:
                    found.append(f"{analyst.name} {place} was told otherwise")
        return found


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    parts = quantiles(values, n=100)
    return median(values), parts[98]
