"""Arrays of a part, for subjects that have NumPy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import FOLDER, Part

__all__ = ["exponential_maximum", "gram_root", "on_grid", "values"]

Floats = NDArray[np.float64]


def values(part: Part) -> Floats:
    """Return the data of a part; several parts in a row share them."""
    return _read(part.file, part.columns)


@lru_cache(4)
def _read(file: str, columns: int) -> Floats:
    found = np.fromfile(FOLDER / file)
    return found if columns == 1 else found.reshape(-1, columns)


def on_grid(part: Part, estimates: Floats) -> Floats:
    """Round answers to the public grid and move them into the bounds: free for everybody."""
    step = float(part.step)
    return np.clip(np.rint(estimates / step) * step, float(part.low), float(part.high))


def gram_root(part: Part) -> Floats:
    """Return a small table with the Gram matrix of features, a constant one and the response, in this order."""
    return _root(part.file, part.columns)


@lru_cache(4)
def _root(file: str, columns: int) -> Floats:
    design = _read(file, columns)
    table = np.column_stack([design[:, :-1], np.ones(len(design)), design[:, -1]])
    return np.asarray(np.linalg.qr(table, mode="r"))


def exponential_maximum(scores: Floats, scale: float, count: int, generator: np.random.Generator) -> Floats:
    """Draw the index of the largest of scores with exponential noise: the law of permute-and-flip."""
    # What is 60 scales below the best is best with a chance below e^-60 times their number.
    near = np.flatnonzero(scores >= scores.max() - 60 * scale)
    chosen = np.empty(count, dtype=np.int64)
    block = max(1, 2_000_000 // len(near))
    for start in range(0, count, block):
        stop = min(start + block, count)
        noisy = scores[near] + generator.exponential(scale, (stop - start, len(near)))
        chosen[start:stop] = near[noisy.argmax(axis=1)]
    return chosen.astype(float)
