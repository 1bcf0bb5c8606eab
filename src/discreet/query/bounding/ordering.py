"""Sort keys with several threads, and cut what is sorted into blocks of whole units."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Here", "blocks", "sort"]

Integers: TypeAlias = NDArray[np.int64]
_BLOCK = 1 << 17  # Keys looked at together: they and what is made of them stay in the cache.
_WORTH = 1 << 16  # Keys for which a second thread pays.


@final
class Here(Executor):
    """Does the work where it is handed over: in a thread that is one of several already."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*given, **named))
        return done


def sort(keys: Integers, workers: Executor, threads: int) -> None:
    """Sort in place: split by rank, which is linear, then sort the parts at the same time."""
    parts = _split(keys, threads if keys.size >= _WORTH else 1)
    list(workers.map(np.ndarray.sort, parts))


def _split(keys: Integers, parts: int) -> list[Integers]:
    if parts == 1:
        return [keys]
    left = parts // 2
    middle = keys.size * left // parts
    keys.partition(middle)
    return _split(keys[:middle], left) + _split(keys[middle:], parts - left)


def blocks(keys: Integers, unit_shift: int) -> list[Integers]:
    """Cut sorted keys into blocks of about one size; no unit is in two of them."""
    units = keys[::_BLOCK] >> unit_shift
    cuts = np.unique(np.searchsorted(keys, units << unit_shift))
    return [part for part in np.split(keys, cuts) if part.size]
