"""The closest rows of a table: the mean over columns of how far values are apart, from 0 for equal to 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.caps import TWINS
from discreet.evaluation.rows import Codes, ColumnLayout, EvaluatedRows, Places

__all__ = ["closest", "secrets_of_closest"]

Floats: TypeAlias = NDArray[np.float32]
_BLOCK = 1 << 18  # Pairs of rows that are compared at once: a megabyte stays near the processor.
_EQUAL = 1e-6  # Sums of floats that differ by less are the same.


def closest(layout: ColumnLayout, asked: EvaluatedRows, among: EvaluatedRows) -> Floats:
    """Return for each row how far the closest row of a table is. [Gow71]

    Two values of a category are 0 or 1 apart, two numbers by the part of their bounds that lies between them, and a
    missing number is 1 apart from every other.
    """
    pool = among.some(TWINS)
    nearest = [apart.min(axis=1) for apart in _blocks(layout, asked, pool, without=None)]
    found: Floats = (np.concatenate(nearest) / len(layout.names)).astype(np.float32)
    found[found < _EQUAL] = 0.0
    return found


def secrets_of_closest(
    layout: ColumnLayout, asked: EvaluatedRows, among: EvaluatedRows, secret: int
) -> NDArray[np.int32]:
    """Guess a secret of each row: the commonest one among the rows that are closest in all other columns."""
    pool = among.some(TWINS)
    secrets = pool.codes[:, secret]
    guesses = []
    for apart in _blocks(layout, asked, pool, without=secret):
        ties = apart <= apart.min(axis=1, keepdims=True) + _EQUAL
        guesses += [np.bincount(secrets[tie]).argmax() for tie in ties]
    return np.array(guesses, np.int32)


def _blocks(
    layout: ColumnLayout, asked: EvaluatedRows, pool: EvaluatedRows, *, without: int | None
) -> Iterator[Floats]:
    """Yield sums of distances, some rows against all others at a time."""
    ours, theirs = _columns(layout, asked, without), _columns(layout, pool, without)
    step = max(1, _BLOCK // len(pool))
    for start in range(0, len(asked), step):
        part = slice(start, start + step)
        yield _apart((ours[0][:, part], ours[1][:, part]), theirs, (min(step, len(asked) - start), len(pool)))


def _columns(layout: ColumnLayout, rows: EvaluatedRows, without: int | None) -> tuple[Codes, Places]:
    """Bring the columns to where they lie one after the other."""
    cells = [place for place in layout.others if place != without]
    numbers = [at for at, place in enumerate(layout.numbers) if place != without]
    return rows.codes[:, cells].T.copy(), rows.places[:, numbers].T.copy()


def _apart(ours: tuple[Codes, Places], theirs: tuple[Codes, Places], shape: tuple[int, int]) -> Floats:
    # Whole numbers of two bytes are quicker to add than floats, and exact.
    differing = np.zeros(shape, np.uint16)
    for own, other in zip(ours[0], theirs[0], strict=True):
        differing += own[:, None] != other
    total = differing.astype(np.float32)
    for mine, yours in zip(ours[1], theirs[1], strict=True):
        total += _numbers(mine[:, None], yours)
    return total


def _numbers(mine: Places, yours: Places) -> Floats:
    apart: Floats = np.abs(mine - yours)
    gone = np.isnan(apart)
    if gone.any():
        apart[gone] = (np.isnan(mine) != np.isnan(yours))[gone]
    return apart
