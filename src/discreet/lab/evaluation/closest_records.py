"""The closest rows of a table: the mean over columns of how far values are apart, from 0 for equal to 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.lab.attacks.success_rates import Success
from discreet.lab.evaluation.table_rows import CURVE, PEOPLE, TWINS, Codes, ColumnLayout, EvaluatedRows, Places

__all__ = ["Closeness", "ClosestDistances", "closeness", "closest", "secrets_of_closest", "spread_of"]

# --- closeness: The distance to the closest record, as it is often shown, beside what it must be compared with. ---
#
# By itself it proves nothing. A table can be far from every person and still give them away, and rows that many people
# share are close to each other in any honest table. Only the comparison with people who were not in the data says
# something, and only if it differs.


Floats: TypeAlias = NDArray[np.float32]
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_FAR_MORE = 0.5  # Of all rows: no honest table of as many rows holds so many more of them than fresh rows would.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClosestDistances:
    """How far the closest row is from some rows."""

    equal: Success  # rows that are there to the last digit
    quantiles: tuple[float, ...]  # the distance below which 5, 25, 50, 75 and 95 of 100 lie
    curve: tuple[float, ...]  # distances at equal steps of their share

    @property
    def middle(self) -> float:
        """The distance that half of the rows stay below."""
        return self.quantiles[len(self.quantiles) // 2]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """How far the closest row is: of the synthetic table from people in the data and others, and of the real table."""

    members: ClosestDistances  # from people of the real table to the synthetic one
    others: ClosestDistances | None  # from people who were not in it
    real: ClosestDistances  # from people of the real table to other people of it

    def copied(self, error: float) -> bool:
        """Whether rows of the real table are in the synthetic one that could not be there by chance."""
        if self.others is not None:
            return self.members.equal.interval(error / 2)[0] > self.others.equal.interval(error / 2)[1]
        return self.members.equal.share - self.real.equal.share > _FAR_MORE


def closeness(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, holdout: EvaluatedRows | None
) -> Closeness:
    """Measure how far the closest rows are."""
    some, rest = real.split(min(PEOPLE, len(real) // 2))
    outside = None if holdout is None else holdout.some(PEOPLE)
    return Closeness(
        members=spread_of(closest(layout, some, synthetic)),
        others=None if outside is None else spread_of(closest(layout, outside, synthetic)),
        # As many rows as the synthetic table has, so that both had the same chances.
        real=spread_of(closest(layout, some, rest.some(len(synthetic)))),
    )


def spread_of(distances: Floats) -> ClosestDistances:
    """Sum distances up."""
    return ClosestDistances(
        equal=Success(int(np.count_nonzero(distances == 0)), len(distances)),
        quantiles=tuple(np.quantile(distances, _SHARES).tolist()),
        curve=tuple(np.quantile(distances, np.linspace(0, 1, CURVE)).tolist()),
    )


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
