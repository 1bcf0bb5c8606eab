"""A line that shows how far a run is: steps, epsilon, and the loss on public rows if there are any."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from discreet.formatting import significant_up
from discreet.learn.torch.layers.model_preparation import PreparedModel
from discreet.learn.training.sampling import RunPlan
from discreet.pages.progress import working
from discreet.privacy.events import Event

__all__ = ["StepDone", "StepsSpent", "TrainingReport", "progress_line"]

_SECONDS = 2.0  # Between two computations of epsilon, which take a twentieth of one.


@contextmanager
def progress_line(
    done: int, total: int, epsilon_after: Callable[[int], float], limit: float
) -> Iterator[Callable[[StepDone], None]]:
    """Show a line while a run goes on; call what is yielded after every step."""
    shown = _Epsilon(epsilon_after, limit)
    with working("training", total=total, done=done) as current:

        def tell(step: StepDone) -> None:
            loss = "" if step.public_loss is None else f"  public loss {step.public_loss:.4f}"
            current.step(shown.text(step.step, total) + loss)

        yield tell


class _Epsilon:
    """The epsilon spent so far, computed now and then."""

    def __init__(self, after: Callable[[int], float], limit: float) -> None:
        self._after, self._limit = after, limit
        self._next, self._text = 0.0, ""

    def text(self, step: int, total: int) -> str:
        if time.monotonic() >= self._next or step == total:
            self._text = f"ε {_shown(self._after(step))} of {_shown(self._limit)}"
            self._next = time.monotonic() + _SECONDS
        return self._text


def _shown(epsilon: float) -> str:
    return significant_up(epsilon, 3)


# --- told: What a run tells about itself while it goes on: nothing in it comes from private rows without noise. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """A noisy step is complete. Loggers get one after every step; everything in it may be published.

    Args:
        step: The number of this step, from 1.
        steps: How many steps the run has.
        learning_rate: The learning rate of this step.
        clip: The largest norm of one row's gradient in this step.
        public_loss: The loss on the public rows that are watched, if there are any.
    """

    step: int  # this one, counted from 1
    steps: int  # of the whole run
    learning_rate: float
    clip: float  # the largest norm of one row's gradient in this step
    public_loss: float | None  # on the rows given as watch=…, which are public


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSpent:
    """What the steps so far have spent; the ledger was charged for the whole run before the first one.

    Args:
        steps: How many steps were spent.
        event: What they spent.
        epsilon: The epsilon of it at `delta`, rounded up.
        delta: The delta of the plan.
    """

    steps: int
    event: Event
    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"ε = {significant_up(self.epsilon)} at δ = {self.delta:g} after {self.steps:,} steps"

    __repr__ = __str__


# --- report: What a run will do and promise, and how each layer of its model is handled. ---


@final
@dataclass(frozen=True, slots=True)
class TrainingReport:
    """The plan and the layers of a run. Everything in it is public.

    Args:
        plan: The plan of the run.
        prepared: The layers of the model, and how their gradients are found row by row.
    """

    plan: RunPlan
    prepared: PreparedModel

    def __str__(self) -> str:
        return f"{self.plan.describe()}\n  {self._at_a_time()} at a time\n\n{self.prepared}"

    def _at_a_time(self) -> str:
        records, each = self.plan.physical_batch, self.plan.max_rows
        return f"{records} rows" if each is None else f"{records} times {each:,} rows"

    __repr__ = __str__
