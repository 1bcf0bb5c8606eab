"""A line that shows how far a run is: steps, epsilon, and the loss on public rows if there are any."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from discreet.learn.torch.told import StepDone
from discreet.mechanisms.text import significant_up

__all__ = ["progress_line"]

_SECONDS = 2.0  # Between two computations of epsilon, which take a twentieth of one.


@contextmanager
def progress_line(
    done: int, total: int, epsilon_after: Callable[[int], float], limit: float
) -> Iterator[Callable[[StepDone], None]]:
    """Show a line while a run goes on; call what is yielded after every step."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    shown = _Epsilon(epsilon_after, limit)
    with Progress(*columns) as progress:
        task = progress.add_task("training", total=total, completed=done, told=shown.text(done, total))

        def tell(step: StepDone) -> None:
            loss = "" if step.public_loss is None else f"  public loss {step.public_loss:.4f}"
            progress.update(task, completed=step.step, told=shown.text(step.step, total) + loss)

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
    return significant_up(Fraction(epsilon), 3)
