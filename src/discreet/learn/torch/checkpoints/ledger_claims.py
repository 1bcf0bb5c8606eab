"""Claims of training steps as entries of the ledger, beside the charge of the run.

A folder can be copied, and brought back from a backup; the anchor of a ledger notices that. So where a ledger pays for
a run, it also keeps which steps were claimed: one entry a claim, durable before the noise of these steps is drawn.
Every claim has a random token, which the folder that made it keeps. A folder without the token of the last claim is an
older state of the run, or a copy that was left behind.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, final

from discreet import noise
from discreet.errors import Refused
from discreet.ledger import Charge, Entry, Ledger
from discreet.ledger.canonical import canonical

__all__ = ["LedgerClaims", "StepClaim", "new_token"]


class StepClaim(NamedTuple):
    """All steps before this number, and who claimed them."""

    steps: int
    token: str


_NOTHING = StepClaim(0, "")


@final
class LedgerClaims:
    """What a ledger knows about the steps of one run, which it was charged for under a key.

    A charge of today pays for as many claims as the run has steps. One that an earlier release made has room for a
    single one: it claims all steps that are left.
    """

    def __init__(self, ledger: Ledger, charge: Entry, steps: int) -> None:
        self._ledger, self._charge, self._steps = ledger, charge, steps
        self._receipt = Charge(charge.index, charge.index, charge.hash)
        self._texts = self._read()

    @property
    def name(self) -> str:
        """What the folder knows this ledger by: the hash of the charge."""
        return self._charge.hash

    @property
    def last(self) -> StepClaim:
        """The last claim; no step and no token if there is none."""
        return _read(self._texts[-1]) if self._texts else _NOTHING

    def end_of(self, steps: int) -> int:
        """Tell which steps a claim of these really takes."""
        return steps if self._is_series else self._steps

    def add(self, claim: StepClaim) -> None:
        """Commit a claim durably; refuse if somebody else has claimed in the meantime."""
        text, number = canonical({"steps": claim.steps, "token": claim.token}), len(self._texts)
        if self._is_series:
            kept = self._ledger.store_part(self._receipt, number, lambda: text)
        else:
            kept = self._ledger.store(self._receipt, lambda: text)
        if kept != text:
            raise Refused(
                "steps of this run were claimed from another copy of its folder",
                reason="both would draw noise for steps that were paid once",
                way_out="go on there, or name another folder for a new run",
            )
        self._texts = (*self._texts, text)

    @property
    def _is_series(self) -> bool:
        return "parts" in self._charge.content

    def _read(self) -> tuple[str, ...]:
        if self._is_series:
            return self._ledger.parts(self._receipt)
        said: dict[str, Any] = {
            name: self._charge.content.get(name) for name in ("principal", "project", "plan", "version", "key")
        }
        found = self._ledger.stored(**said)
        return () if found is None else (found.text,)


def _read(text: str) -> StepClaim:
    stored = json.loads(text)
    return StepClaim(stored["steps"], stored["token"])


def new_token() -> str:
    """Draw a name that nobody else has."""
    return "".join(f"{int(part):016x}" for part in noise.uniform(1 << 62, 2))
