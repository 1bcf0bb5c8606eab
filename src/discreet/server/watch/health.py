"""Whether a server is alive and ready, for whoever asks, and how it is, for whoever checks it.

`/healthz` and `/readyz` are for programs that watch the process, and anybody may ask them. They answer from memory,
with one of two constant texts: neither what they say nor how soon follows from what others ask at the moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, final

from discreet.custodian_debug import show_hidden
from discreet.server.datasets import DatasetShelf
from discreet.server.state_store import ServerState

__all__ = ["Readiness"]

_LOOK_AGAIN = 5.0  # seconds
_LOST = 60.0  # seconds after which a look that has not ended says no


@final
class Readiness:
    """Whether state and ledgers can be reached, looked at beside the requests, every few seconds at most."""

    def __init__(self, state: ServerState, shelf: DatasetShelf, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._state, self._shelf, self._clock = state, shelf, clock
        self._lock, self._looking = Lock(), False
        self._found, self._looked, self._began = self.look(), clock(), clock()

    def look(self) -> bool:
        """Reach for state and ledgers now."""
        try:
            self._state.row("SELECT 1 AS one")
            return all(self.reaches(one) for one in self._shelf)
        except Exception as error:  # noqa: BLE001 - whatever it was, the server is not ready
            show_hidden(error)
            return False

    @staticmethod
    def reaches(served: Any) -> bool:
        """Tell whether the ledger of a data set can be read."""
        try:
            return bool(served.session.ledger.account is not None)
        except Exception as error:  # noqa: BLE001 - as above
            show_hidden(error)
            return False

    def ready(self) -> bool:
        """Return what was found last, at once; look again beside it if that is some seconds old."""
        with self._lock:
            now = self._clock()
            if not self._looking and now - self._looked >= _LOOK_AGAIN:
                self._looking, self._began = True, now
                Thread(target=self._look_again, name="readiness", daemon=True).start()
            return self._found and not (self._looking and now - self._began > _LOST)

    def _look_again(self) -> None:
        found = self.look()
        with self._lock:
            self._found, self._looked, self._looking = found, self._clock(), False
