"""What a run tells about itself while it goes on: nothing in it comes from private rows without noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.mechanisms.text import significant_up
from discreet.privacy.events import Event

__all__ = ["StepDone", "StepsSpent"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """A noisy step is complete. Loggers get one after every step; everything in it may be published."""

    step: int  # this one, counted from 1
    steps: int  # of the whole run
    learning_rate: float
    clip: float  # the largest norm of one row's gradient in this step
    public_loss: float | None  # on the rows given as watch=…, which are public


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSpent:
    """What the steps so far have spent; the ledger was charged for the whole run before the first one."""

    steps: int
    event: Event
    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"ε = {significant_up(Fraction(self.epsilon))} at δ = {self.delta:g} after {self.steps:,} steps"
