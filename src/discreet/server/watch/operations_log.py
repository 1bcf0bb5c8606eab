"""What a server says on its standard error while it runs: that it started and stopped, and what it decided.

A line follows from requests, accounts and declarations, like the log of decisions that it repeats: no SQL, no value of
data, no address of a page, and no time that something took. So the lines are the same for neighbouring data, but for
whether a release failed. A text that somebody chose stays within its line and its quotes.

Lines are written by a thread of their own: who reads them slowly holds nobody up. What does not fit is counted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from queue import Full, Queue
from threading import Thread
from typing import Any, TextIO, final

from discreet.errors import InvalidParameter

__all__ = ["LOG_FORMS", "OperationsLog"]

LOG_FORMS = ("json", "text", "off")
_MOST_WAITING = 10_000
_LAST_SECONDS = 2.0  # that lines have to be written when the server stops


@final
class OperationsLog:
    """The log of one process."""

    def __init__(self, form: str, sink: TextIO | None = None) -> None:
        if form not in LOG_FORMS:
            raise InvalidParameter(f"--log is one of {', '.join(LOG_FORMS)}")
        self._form, self._sink = form, sink
        self._lines: Queue[str | None] = Queue(_MOST_WAITING)
        self._lost = 0
        self._thread = Thread(target=self._write, name="log", daemon=True)
        if form != "off":
            self._thread.start()

    def decided(self, said: Sequence[Any]) -> None:
        """Repeat a decision that is on record: number, time, who, what, data set, outcome, about."""
        number, at, who, what, dataset, outcome, about = said
        facts = {"number": number, "who": who, "what": what, "dataset": dataset, "outcome": outcome, "about": about}
        self.say("decision", at=at, **facts)

    def say(self, event: str, *, at: float | None = None, **facts: Any) -> None:
        """Say that something happened; nobody waits for it to be written."""
        if self._form == "off":
            return
        moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
        when = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
        try:
            self._lines.put_nowait(_line(self._form, when, event, facts))
        except Full:
            self._lost += 1

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            self._put(line)
            if self._lost and self._lines.empty():
                lost, self._lost = self._lost, 0
                self.say("lost", lines=lost)

    def _put(self, line: str) -> None:
        try:
            sink = self._sink or sys.stderr
            sink.write(line + "\n")
            sink.flush()
        except (OSError, ValueError):
            self._lost += 1  # Who read it is gone: the server goes on.

    def stop(self) -> None:
        """Say that the server stopped, and write what waits, for a moment."""
        if self._form == "off" or not self._thread.is_alive():
            return
        self.say("stop")
        try:
            self._lines.put(None, timeout=_LAST_SECONDS)
        except Full:
            return
        self._thread.join(_LAST_SECONDS)


def _line(form: str, when: str, event: str, facts: dict[str, Any]) -> str:
    """Write a line: everything that is not a plain letter is escaped, so that no text ends it or forges another."""
    if form == "json":
        return json.dumps({"at": when, "event": event} | facts, ensure_ascii=True)
    told = " ".join(f"{name}={json.dumps(value, ensure_ascii=True)}" for name, value in facts.items() if value != "")
    return f"{when} {event} {told}".rstrip()
