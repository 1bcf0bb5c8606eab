"""Ties within groups: a second, finer resolution of pairs of numbers, measured by a few cells and drawn as ranks.

Noise lets pairs of columns be counted in few groups of bins, and rows that fall into the same groups would be spread
there as if columns had nothing to do with each other: a wage and its logarithm would agree on a group and on nothing
else. So pairs of numbers that go together are counted once more, with every group cut into a lower and an upper part.
Noise drowns most of these cells, but one number is asked of all of them: how strong a bivariate normal law is that,
within the groups of the model, would give such counts. That is the strength of a tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.tables.graphical.belief_propagation import Floats
from discreet.synth.tables.graphical.graphical_model import Graphical
from discreet.synth.tables.normal_scores import FARTHEST, STRONGEST, Tie
from discreet.synth.tables.private_table import PrivateTable
from discreet.synth.tables.table_model import Grouping
from discreet.synth.tables.table_shape import TableShape, cells

__all__ = ["can_be_tied", "measure_ties"]

_LEAST = 0.3  # The correlation of groups from which on a pair is looked at.
_TELLING = 0.9  # A strength that noise must leave clear,
_CLEAR = 2.0  # by so many deviations.
_SURE = 2.0  # Deviations by which a tie has to be nearer to what was counted than none.
_POINTS = 4  # In each part of a group, at which a normal law is looked at.
_MOST_CELLS = 1 << 16  # Of a pair's groups: a law has 64 numbers for each. Finer groups leave little to tie.
_STEPS = (0.3, 0.5, 0.65, 0.75, 0.82, 0.88, 0.92, 0.95, 0.97, 0.985, STRONGEST)
_STRENGTHS = (0.0, *_STEPS, *(-step for step in _STEPS))


# --- measuring: Which part of its groups a row lies in, for two columns at once. ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The codes of one column in the lower and the upper part of their groups, and where these lie in its law."""

    codes: NDArray[np.int32]  # twice the group, and one more in its upper part
    ordered: NDArray[np.bool_]  # of each group, whether it has a place among the others
    ends: Floats  # (groups, 2, 2): the chances below the beginning and the end of each part

    @classmethod
    def of(cls, grouping: Grouping, ordered: NDArray[np.bool_], counts: Floats) -> _Parts:
        """Cut every group of several codes where half of its rows are below, by noisy counts."""
        placed = np.bincount(grouping.groups, ordered) > 0
        held = np.where(placed, np.maximum(counts, 1e-9), 0.0)
        below = np.concatenate([[0.0], np.cumsum(held[grouping.groups] * grouping.shares)]) / held.sum()
        codes, ends = 2 * grouping.groups, np.zeros((grouping.size, 2, 2))
        for group in range(grouping.size):
            members = np.flatnonzero(grouping.groups == group)
            first, last = (below[members[0]], below[members[-1] + 1]) if placed[group] else (0.0, 1.0)
            cut = last
            if placed[group] and members.size > 1:
                upper = members[np.argmin(np.abs(below[members[1:]] - (first + last) / 2)) + 1 :]
                codes[upper], cut = 2 * group + 1, below[upper[0]]
            ends[group] = [[first, cut], [cut, last]]
        return cls(codes.astype(np.int32), placed, ends)

    @property
    def points(self) -> tuple[Floats, Floats]:
        """Normal scores within parts, (groups, parts, points), and their weights."""
        from scipy.special import ndtri

        steps = (np.arange(_POINTS) + 0.5) / _POINTS
        first, width = self.ends[..., 0, None], np.diff(self.ends, axis=2)
        scores = np.clip(ndtri(np.minimum(first + steps * width, 1.0)), -FARTHEST, FARTHEST)
        return scores, np.broadcast_to(width / _POINTS, scores.shape)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two columns with parts, and what the model says of their groups, in rows. All of it is released."""

    columns: tuple[int, int]
    parts: tuple[_Parts, _Parts]
    counts: Floats

    @property
    def correlation(self) -> float:
        """That of the ranks of groups."""
        placed = np.outer(*(part.ordered for part in self.parts))
        joint = np.where(placed, np.maximum(self.counts, 0.0), 0.0)
        joint /= max(float(joint.sum()), 1e-9)
        sides = [joint.sum(axis=1), joint.sum(axis=0)]
        ranks = [np.cumsum(side) - side / 2 - 0.5 for side in sides]
        spread = [float(side @ rank**2) for side, rank in zip(sides, ranks, strict=True)]
        return float(ranks[0] @ joint @ ranks[1]) / math.sqrt(max(spread[0] * spread[1], 1e-12))

    def expected(self, strength: float) -> Floats:
        """Return how many rows would lie in each pair of parts, (groups, parts, groups, parts)."""
        (left, wide), (right, high) = (part.points for part in self.parts)
        x, y = left.reshape(-1, 1), right.reshape(1, -1)
        law = (strength * x * y - strength**2 * (x**2 + y**2) / 2) / (1 - strength**2)
        law = law.reshape(*left.shape, *right.shape)
        # Each cell of groups by itself, so that no law is too small for a float.
        mass = np.exp(law - law.max(axis=(1, 2, 4, 5), keepdims=True)) * np.multiply.outer(wide, high)
        parts = mass.sum(axis=(2, 5))
        whole = parts.sum(axis=(1, 3), keepdims=True)
        return np.asarray(self.counts[:, None, :, None] * parts / np.maximum(whole, np.finfo(float).tiny))

    @property
    def telling(self) -> float:
        """How far apart counts of parts are for columns that go together and for others: the square of it, in rows."""
        return float(((self.expected(math.copysign(_TELLING, self.correlation)) - self.expected(0.0)) ** 2).sum())

    def tie(self, table: PrivateTable, mu_squared: Fraction) -> Tie | None:
        """Measure, and find the strength that fits best; None where noise may be all there is."""
        finer = table.recoded([part.codes for part in self.parts], self.columns)
        noisy = finer.measure((0, 1), mu_squared)
        seen = np.zeros([2 * len(part.ends) for part in self.parts])
        seen[tuple(map(slice, finer.sizes))] = noisy.values.reshape(finer.sizes)  # The last part may have no code.
        seen = seen.reshape(len(self.parts[0].ends), 2, -1, 2)
        faults = {strength: float(((seen - self.expected(strength)) ** 2).sum()) for strength in _STRENGTHS}
        best = min(faults, key=faults.__getitem__)
        is_clear = faults[0.0] - faults[best] > (_SURE * float(np.max(noisy.deviation))) ** 2
        return Tie(*self.columns, best) if is_clear else None


def can_be_tied(shape: TableShape, groupings: Sequence[Grouping]) -> list[int]:
    """List the columns of numbers of which some bins were merged."""
    return [
        column
        for column, grouping in enumerate(groupings)
        if shape.ordered[column].any() and 1 < grouping.size < grouping.groups.size
    ]


def measure_ties(
    table: PrivateTable, shape: TableShape, groupings: Sequence[Grouping], model: Graphical, mu_squared: Fraction
) -> tuple[Tie, ...]:
    """Choose pairs by the model, and spend `mu_squared` on all of them; nothing if there is none worth it.

    Guarantee   Gaussian privacy of `mu_squared` at most, charged to the table's account before it is read: parts are
                marginals of codes under public maps.
    """
    chosen = _forest(_pairs(shape, groupings, model), float(table.reach.squared_l2 / mu_squared))
    found = [pair.tie(table, mu_squared / len(chosen)) for pair in chosen]
    return tuple(tie for tie in found if tie is not None)


def _pairs(shape: TableShape, groupings: Sequence[Grouping], model: Graphical) -> list[_Pair]:
    columns = can_be_tied(shape, groupings)
    parts = {one: _Parts.of(groupings[one], shape.ordered[one], model.marginal((one,))) for one in columns}
    listed = [pair for pair in combinations(columns, 2) if cells(model.sizes, pair) <= _MOST_CELLS]
    return [
        _Pair(pair, (parts[pair[0]], parts[pair[1]]), counts)
        for pair, counts in zip(listed, model.marginals(listed), strict=True)
    ]


def _forest(pairs: Sequence[_Pair], variance: float) -> list[_Pair]:
    """Choose pairs that are not tied through others yet, the strongest first, as long as noise leaves them clear.

    `variance` is that of a cell on which everything would be spent.
    """
    strengths = {pair.columns: abs(pair.correlation) for pair in pairs}
    ranked = sorted(pairs, key=lambda pair: -strengths[pair.columns])
    part = {column: column for pair in pairs for column in pair.columns}
    chosen: list[_Pair] = []
    for pair in ranked:
        left, right = (part[column] for column in pair.columns)
        if strengths[pair.columns] < _LEAST or left == right or pair.telling < _CLEAR**2 * variance * (len(chosen) + 1):
            continue
        chosen.append(pair)
        part = {column: left if of == right else of for column, of in part.items()}
    return chosen
