"""Whose turn it is: a batch is handed out, its losses come back once, and only then comes the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from discreet.errors import Refused

__all__ = ["Handed", "Turns"]

_LOOP = "for x, y in private.batches():\n             private.step(loss(model(x), y))"


@final
@dataclass(frozen=True, slots=True)
class Handed:
    """A physical batch that waits for its losses."""

    inside: Tensor  # which of its slots hold a record; private
    last: bool  # whether it completes the logical batch; private


@final
class Turns:
    """Refuse losses that nobody asked for, batches that are skipped, and two loops at once."""

    def __init__(self) -> None:
        self._loop = 0
        self._open: Handed | None = None

    def begin(self) -> int:
        """Start a loop; what an earlier one left open is dropped, and it cannot go on."""
        self._loop += 1
        self._open = None
        return self._loop

    def hand_out(self, loop: int, handed: Handed) -> None:
        """Wait for the losses of a batch."""
        self.check(loop)
        self._open = handed

    def check(self, loop: int) -> None:
        """Refuse to hand out a batch while another one waits, or for a loop that was left."""
        if loop != self._loop:
            raise Refused("another loop over private.batches() has begun: go on with that one")
        if self._open is not None:
            raise Refused(
                "a batch was skipped: its losses never came",
                reason="each batch that is handed out is part of one noisy step",
                way_out=f"give every batch to private.step, as in\n         {_LOOP}",
            )

    def take(self) -> Handed:
        """Return the batch whose losses come now."""
        if self._open is None:
            raise Refused(
                "there is no batch that waits for losses",
                reason="each batch is stepped once: a second time would count its rows twice",
                way_out=f"call private.step once for every batch, as in\n         {_LOOP}",
            )
        return self._open

    def close(self) -> None:
        """The losses have come."""
        self._open = None
