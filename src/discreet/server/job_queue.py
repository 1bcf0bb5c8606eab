"""The queue of jobs in the state: servers claim from it, and a server that died loses what it had.

A server has an id and a lease, which it renews while it lives. A claim is a change, and whoever changes the state is
alone, so that no job is claimed twice, nor two of one principal on one data set, by whichever servers. `jobs.server` is
who holds a slot for a job: it stays until the slot is freed, also where an overrun was told before.

When a lease has run out, any other server queues what that server had under way, in its old place. If it was not dead
but stood still, what it tells then is told to nobody, for the job is no longer its own; what it charged and read is in
the ledger under the key of the job, where it counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, final

from discreet.server.accounts import secret
from discreet.server.state_store import ServerState, StateChange, StateUnavailable

__all__ = ["JobQueue"]

_OPEN = "(state IN ('queued', 'running') OR server IS NOT NULL)"  # as the index of these has it
_FREE = (
    "SELECT * FROM jobs WHERE state = 'queued' AND NOT EXISTS (SELECT 1 FROM jobs AS held WHERE held.server IS NOT NULL"
    " AND held.name = jobs.name AND held.dataset = jobs.dataset)"
)
_BEAT = (
    "INSERT INTO servers (id, datasets, since, until) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
    " datasets = excluded.datasets, until = excluded.until"
)
_LIVE = "SELECT id FROM servers WHERE until >= ?"


@final
class JobQueue:
    """What one server does to the queue that all of them share."""

    def __init__(self, state: ServerState, served: Callable[[], Iterable[str]], *, lease: float) -> None:
        self._state, self._served, self._lease = state, served, lease
        self.server = secret(8)

    # --- the life of a server ---

    def beat(self) -> None:
        """Renew the lease, and queue again what servers had whose lease has run out."""
        with self._state.changing() as change:
            now = self._state.now()
            if not self._state.is_shared:  # This one is alone, and whatever others had is left over.
                change.execute("DELETE FROM servers WHERE id <> ?", (self.server,))
            self._renew(change, now)
            self._take_over(change, now)

    def _renew(self, change: StateChange, now: float) -> None:
        change.execute(_BEAT, (self.server, "\n".join(sorted(self._served())), now, now + self._lease))

    def _take_over(self, change: StateChange, now: float) -> None:
        gone = f"server IS NOT NULL AND server NOT IN ({_LIVE})"
        left = change.execute(f"SELECT id, dataset FROM jobs WHERE state = 'running' AND {gone}", (now,)).fetchall()
        change.execute(f"UPDATE jobs SET state = 'queued' WHERE state = 'running' AND {gone}", (now,))
        change.execute(f"UPDATE jobs SET server = NULL WHERE {gone}", (now,))
        change.execute("DELETE FROM servers WHERE until < ?", (now,))
        for job in left:
            self._state.decide("", "job taken over", dataset=job["dataset"], outcome="queued", about=job["id"])

    def queue_orphans(self) -> None:
        """Queue what nobody holds though it runs: its server failed to write what it found. Done at the start only."""
        with self._state.changing() as change:
            change.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running' AND server IS NULL")

    def leave(self) -> None:
        """Give up the lease at once, and with it whatever is still held; a state that is lost does that by itself."""
        with suppress(StateUnavailable), self._state.changing() as change:
            change.execute("DELETE FROM servers WHERE id = ?", (self.server,))
            change.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running' AND server = ?", (self.server,))
            change.execute("UPDATE jobs SET server = NULL WHERE server = ?", (self.server,))

    # --- jobs ---

    def waiting(self, name: str) -> tuple[int, int]:
        """Return how many jobs of somebody wait or hold a slot, and how many wait in all."""
        own = self._state.row(f"SELECT COUNT(*) AS n FROM jobs WHERE name = ? AND {_OPEN}", name)
        queued = self._state.row("SELECT COUNT(*) AS n FROM jobs WHERE state = 'queued'")
        return (0 if own is None else own["n"]), (0 if queued is None else queued["n"])

    def first_free(self) -> Any | None:
        """Return the first job that could begin: nobody holds another of its principal on its data set.

        A data set that only other servers serve is left to them; one that nobody serves is taken, and fails.
        """
        servers = self._state.rows("SELECT datasets FROM servers WHERE until >= ?", self._state.now())
        others = sorted({name for row in servers for name in row["datasets"].split("\n")} - set(self._served()))
        among = f" AND dataset NOT IN ({', '.join('?' * len(others))})" if others else ""
        return self._state.row(f"{_FREE}{among} ORDER BY number LIMIT 1", *others)

    def claim(self) -> Any | None:
        """Take the first job that can begin, and return it as it then is; None if there is none."""
        if self.first_free() is None:
            return None
        with self._state.changing() as change:
            found = self.first_free()
            if found is None:
                return None
            now = self._state.now()
            self._renew(change, now)
            taken = "UPDATE jobs SET state = 'running', started = ?, server = ? WHERE id = ?"
            change.execute(taken, (now, self.server, found["id"]))
            return self._state.row("SELECT * FROM jobs WHERE id = ?", found["id"])

    def tell(self, number: str, answer: str | None, problem: str | None, *, frees: bool) -> bool:
        """Write how a job ended. False if it is no longer this server's: then nothing is written."""
        kept = None if frees else self.server
        change_it = "UPDATE jobs SET state = ?, answer = ?, problem = ?, server = ?"
        values = ("done" if problem is None else "failed", answer, problem, kept, number, self.server)
        with self._state.changing() as change:
            ended = change.execute(f"{change_it} WHERE id = ? AND server = ? AND state = 'running'", values)
            return ended.rowcount > 0

    def free(self, number: str) -> None:
        """Give back the slot of a job."""
        with self._state.changing() as change:
            change.execute("UPDATE jobs SET server = NULL WHERE id = ? AND server = ?", (number, self.server))

    def over_among(self, numbers: list[str]) -> list[str]:
        """Return which of these jobs are over, on whichever server."""
        found = []
        for place in range(0, len(numbers), 100):
            some = numbers[place : place + 100]
            query = f"SELECT id FROM jobs WHERE state IN ('done', 'failed') AND id IN ({', '.join('?' * len(some))})"
            found += [row["id"] for row in self._state.rows(query, *some)]
        return found
