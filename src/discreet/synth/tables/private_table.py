"""The only door to the rows: whatever passes it was paid for first and has exact noise.

A marginal is the list of counts of all cells of some columns. One row lies in one cell of it, whatever the columns are,
so a unit of at most k rows moves it by k in both norms when it comes or goes, and by 2 k and sqrt(2) k when
it is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.exact import positive, positive_integer
from discreet.mechanisms import Exponential
from discreet.mechanisms.parameters import settle
from discreet.privacy import Relation
from discreet.privacy.events import GDP
from discreet.privacy.relation import read_relation
from discreet.synth.gaussian_prices import choice_cost, choice_epsilon
from discreet.synth.tables.graphical.effects import NoisyMarginal
from discreet.synth.tables.table_shape import Clique, marginal

__all__ = [
    "STEPS",
    "Candidate",
    "MarginalSensitivity",
    "PrivateTable",
    "RoundAccount",
]

# --- account: One account for rounds that are chosen as they go: Gaussian privacy with an exact limit. ---
#
# Guarantee   Whatever is chosen, the transcript of all rounds is as private as one Gaussian mechanism of mu^2 =
# `limit`.
# Theorem     The sum of mu^2 may be divided as the answers say: see `discreet.privacy.gaussian`. [ST22, KTH23]
#             The exponential mechanism takes part with the mu of its trade-off function. [DR19, DRS22]


@final
@dataclass(slots=True)
class RoundAccount:
    """What the rounds of one fit have spent, exactly. A round that would pass the limit is refused before it reads."""

    limit: Fraction  # mu^2 of the whole fit
    spent: Fraction = field(default=Fraction(0), init=False)

    @property
    def event(self) -> GDP:
        """What is charged for the whole fit, before it begins."""
        return GDP(mu_squared=self.limit)

    @property
    def left(self) -> Fraction:
        return self.limit - self.spent

    def charge(self, mu_squared: Fraction) -> None:
        """Take a positive mu^2 from what is left, or refuse."""
        cost = positive(mu_squared, name="mu_squared")
        if cost > self.left:
            raise BudgetExceeded(asked=f"mu^2 = {float(cost):.3g}", left=f"mu^2 = {float(self.left):.3g}")
        self.spent += cost


STEPS = 64  # What a model expects of a cell is rounded to this part of a row, so that scores are whole numbers.
_MOST_CELLS = 1 << 22  # Of a candidate.
_LARGEST = 2.0**33  # Rows in one cell.
_BOUND = 1 << 62  # Of a score.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A marginal that might be measured next: all public."""

    clique: Clique
    expected: NDArray[np.float64]  # what the model says now, in rows, one number a cell
    weight: int = 1  # how much its error matters
    penalty: float = 0.0  # rows taken off the error: what noise would add to it


@final
@dataclass(frozen=True, slots=True)
class MarginalSensitivity:
    """How far one unit moves any marginal: a unit of at most `rows` rows."""

    relation: Relation
    rows: int = 1

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(self, rows=positive_integer(self.rows, name="rows_per_unit"))

    @property
    def l1(self) -> int:
        return self._sides * self.rows

    @property
    def squared_l2(self) -> int:
        # All rows of a unit may lie in one cell, and all rows of the one in its place in one other.
        return self._sides * self.rows**2

    @property
    def _sides(self) -> int:
        return 2 if self.relation is Relation.REPLACE_ONE else 1

    def selection(self, candidates: Sequence[Candidate], epsilon: Fraction) -> Exponential:
        """Return the mechanism that chooses among candidates. A distance moves by at most as much as the counts do."""
        return Exponential(
            epsilon=epsilon,
            sensitivity=Fraction(STEPS * self.l1 * max(candidate.weight for candidate in candidates)),
            candidates=len(candidates),
            relation=self.relation,
        )


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivateTable:
    """Coded rows behind a door: methods see what `measure` and `choose` return, and nothing else."""

    _codes: NDArray[np.int32]
    sizes: tuple[int, ...]
    reach: MarginalSensitivity
    account: RoundAccount
    _counted: dict[Clique, NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"PrivateTable of {len(self.sizes)} columns"

    def measure(self, clique: Clique, mu_squared: Fraction) -> NoisyMarginal:
        """Release a marginal with noise.

        Guarantee   Gaussian privacy of `mu_squared`, charged before a row is read.
        Theorem     Rounding noise to whole counts is post-processing of the continuous mechanism. [BW18, DRS22]
        """
        cost = positive(mu_squared, name="mu_squared")  # Exact: no float decides how much noise there is.
        self.account.charge(cost)
        variance = self.reach.squared_l2 / cost
        counts = self._counts(clique)
        noisy = counts + noise.rounded_gaussian(size=counts.size, variance=variance)
        return NoisyMarginal(clique, noisy.astype(np.float64), math.sqrt(variance + Fraction(1, 12)))

    def choose(self, candidates: Sequence[Candidate], mu_squared: Fraction) -> int:
        """Return the place of a candidate that the model describes badly, by the exponential mechanism.

        The score is weight * (l1 distance of the counts from what is expected - penalty), in whole steps. What is
        expected, weights and penalties come from earlier releases, so only the counts move, and a distance
        moves by at most as much as they do.

        Guarantee   Gaussian privacy of at most `mu_squared`, charged before a row is read.
        """
        epsilon = choice_epsilon(mu_squared)
        self.account.charge(choice_cost(epsilon))
        return self.reach.selection(candidates, epsilon).release(self._scores(candidates)).value

    def recoded(self, maps: Sequence[NDArray[np.int32]], columns: Sequence[int] | None = None) -> PrivateTable:
        """Return the same rows under public maps of codes, one for each new column, on the same account."""
        sources = range(len(self.sizes)) if columns is None else columns
        codes = np.stack([rule[self._codes[:, source]] for rule, source in zip(maps, sources, strict=True)], axis=1)
        sizes = tuple(int(rule.max()) + 1 for rule in maps)
        return PrivateTable(codes, sizes, self.reach, self.account)

    def _counts(self, clique: Clique) -> NDArray[Any]:
        if clique not in self._counted:
            self._counted[clique] = marginal(self._codes, self.sizes, clique)
        return self._counted[clique]

    def _scores(self, candidates: Sequence[Candidate]) -> NDArray[np.int64]:
        # A clamp moves no two scores apart, and none that a table can have is clamped.
        clamped = [min(max(self._score(candidate), -_BOUND), _BOUND) for candidate in candidates]
        return np.array(clamped, np.int64)

    def _score(self, candidate: Candidate) -> int:
        distance = int(np.abs(STEPS * self._counts(candidate.clique) - _steps(candidate.expected)).sum())
        return candidate.weight * (distance - round(candidate.penalty * STEPS))


def _steps(expected: NDArray[np.float64]) -> NDArray[np.int64]:
    """Round to whole steps. With so few cells, none of them larger, no sum of distances leaves 64 bits."""
    if expected.size > _MOST_CELLS:
        raise InvalidParameter(f"a candidate may have {_MOST_CELLS} cells at most")
    return np.rint(np.clip(np.nan_to_num(expected.ravel()), -_LARGEST, _LARGEST) * STEPS).astype(np.int64)
