"""Noise that is drawn while the gradient is computed, by a thread of its own."""

from __future__ import annotations

import os
import threading
import weakref
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, InvalidParameter
from discreet.exact import integer
from discreet.learn.training.grid_sums import GridSum
from discreet.learn.training.training_plan import TrainingPlan
from discreet.noise.samplers import long_rounded_gaussian

__all__ = ["NoiseAhead"]

Integers: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
_SHORT = 1 << 13  # Numbers; so many take a tenth of a millisecond, as much as waking a thread.
_PATIENCE = 0.1  # Seconds after which a waiting thread looks again whether it should stop.


@final
class NoiseAhead:
    """A row of fresh noise vectors for the steps of one plan. Each is handed out once and never again.

    `ahead` vectors at most wait for their step; with 0 each is drawn when it is asked for. If nothing is said, one
    waits, and none where vectors are so short that drawing is quicker than handing over. In a forked child the
    vectors that the parent drew are dropped, because the parent will use them: the child draws its own. What fails in
    the thread is raised by `next`.
    """

    def __init__(self, plan: TrainingPlan, *, ahead: int | None = None) -> None:
        waiting = int(plan.parameters > _SHORT) if ahead is None else integer(ahead, name="ahead")
        if not 0 <= waiting <= 1024:
            raise InvalidParameter("ahead must lie between 0 and 1024 vectors")
        self.plan = plan
        self._ahead = waiting
        self._drawing: _NoiseDrawing | None = None
        self._closed = False

    def next(self) -> Integers:
        """Return a fresh vector: one whole number of grid steps for every parameter."""
        if self._closed:
            raise InvalidParameter("this prefetcher of noise is closed: start another one")
        if self._ahead == 0:
            return draw(self.plan)
        if self._drawing is None or self._drawing.process != os.getpid():
            self._drawing = _NoiseDrawing(self.plan, self._ahead)
            weakref.finalize(self, self._drawing.stop)
        return self._drawing.take()

    def released(self, total: GridSum, unit: float) -> NDArray[np.float32]:
        """Return a private sum with fresh noise, both whole numbers of grid steps that are added exactly, in `unit`."""
        return total.noisy(self.next(), unit)

    def close(self) -> None:
        """Stop the thread and drop what it drew."""
        self._closed = True
        if self._drawing is not None and self._drawing.process == os.getpid():
            self._drawing.stop()
            self._drawing.thread.join()
        self._drawing = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def draw(plan: TrainingPlan) -> Integers:
    """Draw the noise of one step, in grid steps."""
    return long_rounded_gaussian(plan.variance, plan.parameters)


class _NoiseDrawing:
    """A thread that fills a short queue. It knows nothing of the object that reads it, which can so be collected."""

    def __init__(self, plan: TrainingPlan, ahead: int) -> None:
        self.process = os.getpid()
        self._plan = plan
        self._ready: Queue[Integers] = Queue(ahead)
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="discreet-noise", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def take(self) -> Integers:
        while True:
            try:
                return self._ready.get(timeout=_PATIENCE)
            except Empty:
                self._check()

    def _check(self) -> None:
        """Raise what stopped the thread, if it has stopped and nothing it drew is left."""
        if self.thread.is_alive() or not self._ready.empty():
            return
        if self._failure is not None:
            raise self._failure
        raise DiscreetError("the thread that draws noise has stopped; no noise was added, so release nothing")

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._put(draw(self._plan))
        except BaseException as failure:  # noqa: BLE001 - handed to whoever waits for the noise
            self._failure = failure

    def _put(self, vector: Integers) -> None:
        while not self._stopping.is_set():
            try:
                return self._ready.put(vector, timeout=_PATIENCE)
            except Full:
                continue
