"""Normal scores: how rows of the same groups go together within them, as ties between columns of numbers say.

Groups of a row are drawn from a joint law; within its groups a row would lie anywhere. Ties give every row a score for
each tied column, drawn from a normal law between the ends of the row's groups, and the values that a group holds are
dealt in the order of scores. So all counts of groups, and of single columns, stay what they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.synth.domain.value_forms import fractions
from discreet.synth.tables.graphical.belief_propagation import Floats

__all__ = ["FARTHEST", "STRONGEST", "NormalScores", "RankedRows", "Tie", "check_ties", "in_order_of", "score_ends"]

STRONGEST = 0.995  # Of ties: nearer to 1 a sampler would hardly move.
FARTHEST = 5.0  # Deviations of a normal law, to which all scores are kept.
_SWEEPS = 8  # Of a Gibbs sampler; it begins near its law.


@final
@dataclass(frozen=True, slots=True)
class Tie:
    """Two columns of numbers, and the correlation of normal scores by which they go together within groups."""

    left: int
    right: int
    strength: float


def check_ties(ties: Sequence[Tie], columns: Iterable[int]) -> None:
    """Refuse ties that are no forest over these columns."""
    tree = {column: column for column in columns}
    for tie in ties:
        if not {tie.left, tie.right} <= tree.keys() or not abs(tie.strength) <= STRONGEST:
            raise InvalidParameter("a tie needs two columns of numbers and a strength between -1 and 1")
        if tree[tie.left] == tree[tie.right]:
            raise InvalidParameter("ties of columns must not close a loop")
        tree = {column: tree[tie.left] if of == tree[tie.right] else of for column, of in tree.items()}


@final
@dataclass(frozen=True, slots=True, eq=False)
class NormalScores:
    """The normal law of the scores of tied columns, and between which ends the scores of each group lie.

    Scores have deviation 1, and columns that are not tied to each other have nothing to do with each other given those
    between them, so the inverse of their covariance has an entry for each tie and no other [Lau96].
    """

    ends: Mapping[int, Floats]  # by column: (groups, 2)
    ties: tuple[Tie, ...]

    def draw(self, groups: NDArray[np.int32]) -> dict[int, Floats]:
        """Draw the scores of rows, given the groups of all their columns: by a few sweeps of a Gibbs sampler."""
        within = {column: ends[groups[:, column]] for column, ends in self.ends.items()}
        scores: dict[int, Floats] = {}
        for _ in range(1 + _SWEEPS):
            for column, ends in within.items():
                mean, deviation = self._given(column, scores, len(groups))
                scores[column] = _between(ends, mean, deviation)
        return scores

    def _given(self, column: int, scores: Mapping[int, Floats], rows: int) -> tuple[Floats, float]:
        """Return the mean of a column's scores and their deviation, given those of its neighbours that are drawn."""
        pull, precision = np.zeros(rows), 1.0
        for tie in self.ties:
            other = tie.right if column == tie.left else tie.left
            if column in (tie.left, tie.right) and other in scores:
                rest = 1 - tie.strength**2
                pull += tie.strength / rest * scores[other]
                precision += tie.strength**2 / rest
        return pull / precision, precision**-0.5


def score_ends(counts: Floats, ordered: NDArray[np.bool_]) -> Floats:
    """Return the normal scores between which each group of a column lies; one without an order lies anywhere."""
    from scipy.special import ndtri

    held = np.where(ordered, np.maximum(counts, 1e-9), 0.0)
    below = np.concatenate([[0.0], np.cumsum(held)]) / max(float(held.sum()), 1e-9)
    scores = np.clip(ndtri(np.minimum(below, 1.0)), -FARTHEST, FARTHEST)
    return np.where(ordered[:, None], np.stack([scores[:-1], scores[1:]], axis=1), [-FARTHEST, FARTHEST])


def _between(ends: Floats, mean: Floats, deviation: float) -> Floats:
    """Draw from a normal law between two ends for each row."""
    from scipy.special import ndtr, ndtri

    low, high = (ends.T - mean) / deviation
    # Chances above the mean are turned below it, where floats tell small ones apart.
    turned = low + high > 0
    low, high = np.where(turned, -high, low), np.where(turned, -low, high)
    least, most = ndtr(low), ndtr(high)
    drawn = np.clip(ndtri(least + fractions(len(mean)) * (most - least)), low, high)
    return np.asarray(mean + deviation * np.where(turned, -drawn, drawn))


def in_order_of(scores: Floats, within: NDArray[np.int32], values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the same values, dealt anew among the rows of each group: the least to the row of the least score."""
    dealt = np.empty_like(values)
    dealt[np.lexsort((scores, within))] = values[np.lexsort((values, within))]
    return dealt


@final
@dataclass(frozen=True, slots=True, eq=False)
class RankedRows:
    """The sorted scores of many rows of one column, group by group: where in its group a score stands."""

    by_group: tuple[Floats, ...]

    @classmethod
    def of(cls, scores: Floats, groups: NDArray[np.int32], size: int) -> RankedRows:
        """Sort the scores of every group."""
        return cls(tuple(np.sort(scores[groups == group]) for group in range(size)))

    def ranks(self, scores: Floats, groups: NDArray[np.int32]) -> Floats:
        """Return the share of its group's rows that each score is above; anywhere between two of them."""
        ranks = fractions(len(scores))
        for group, known in enumerate(self.by_group):
            where = groups == group
            ranks[where] = (np.searchsorted(known, scores[where]) + ranks[where]) / (known.size + 1)
        return ranks
