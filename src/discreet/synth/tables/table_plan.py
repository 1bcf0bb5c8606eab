"""A priced fit of a table: everything about it is known before a row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.privacy.events import GDP
from discreet.synth.domain.coding import TableRows
from discreet.synth.domain.domain import Domain
from discreet.synth.gaussian_prices import mu_squared_for
from discreet.synth.method import Terms, progress_line
from discreet.synth.tables.graphical.effects import NoisyMarginal
from discreet.synth.tables.graphical.graphical_model import Graphical
from discreet.synth.tables.normal_scores import Tie
from discreet.synth.tables.private_table import MarginalSensitivity, PrivateTable, RoundAccount
from discreet.synth.tables.table_model import Grouping, TableModel, group_cells
from discreet.synth.tables.table_shape import TableShape, Zeros

__all__ = [
    "MEAN_NOISE",
    "Fineness",
    "FirstLook",
    "Learned",
    "Learner",
    "TableFitPlan",
    "Tell",
    "count_columns",
    "merge_codes",
    "plan_table",
    "varied_columns",
]

# Of a count on which everything is spent; shares of it have more noise, still below the 2^80 that samplers take.
_VARIANCES = (Fraction(1, 1 << 20), Fraction(1 << 60))
Learned: TypeAlias = tuple[tuple[Grouping, ...], Graphical, tuple[Tie, ...]]
Tell: TypeAlias = Callable[[str], None]  # is told what is done next; public


class Learner(Protocol):
    """A way to learn a joint law from a table behind its door."""

    @property
    def name(self) -> str:
        """What it is called."""

    def steps(self, columns: int) -> int:
        """Return about how often `learn` tells what it does."""

    def learn(self, table: PrivateTable, shape: TableShape, tell: Tell) -> Learned:
        """Spend what the table's account allows and return the law."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableFitPlan:
    """What will be done and what it costs.

    Guarantee   Gaussian privacy of `mu_squared` for one unit under the relation of the terms: the account refuses
                the round that would pass it, before it reads.
    """

    terms: Terms[Domain]
    learner: Learner
    words: str
    mu_squared: Fraction

    @property
    def event(self) -> GDP:
        return GDP(mu_squared=self.mu_squared)

    def describe(self) -> str:
        return self.words

    def fit(self, rows: TableRows, *, progress: bool) -> TableModel:
        """Read the rows, spend, and return a model that may be published."""
        domain = self.terms.domain
        reach = MarginalSensitivity(self.terms.relation, self.terms.rows_per_unit)
        table = PrivateTable(rows.codes(), domain.sizes, reach, RoundAccount(self.mu_squared))
        shape = TableShape.of(domain, self.terms.label)
        with progress_line(self.learner.name, self.learner.steps(len(shape.sizes)), shown=progress) as tell:
            return TableModel(domain, *self.learner.learn(table, shape, tell))


def plan_table(terms: Terms[Domain], learner: Learner, words: str) -> TableFitPlan:
    """Price a fit, or refuse a domain that is not settled."""
    if not terms.domain.is_settled:
        raise InvalidParameter(
            "the domain has bins that are not found yet: declare the number of bins or their edges, "
            "or let dp.synthesize find them privately"
        )
    budget = mu_squared_for(terms.epsilon, terms.delta)
    variance = MarginalSensitivity(terms.relation, terms.rows_per_unit).squared_l2 / budget
    if not _VARIANCES[0] <= variance <= _VARIANCES[1]:
        # A fit that cannot be done must not be charged.
        raise InvalidParameter(
            "epsilon, delta and rows_per_unit ask for noise of no use, far below a row or above all tables: "
            "take an epsilon between 1/1000 and 100, and fewer rows of a unit"
        )
    return TableFitPlan(terms=terms, learner=learner, words=words, mu_squared=budget)


# --- looking: The first look: every column by itself, which also says what joint marginals can tell apart. ---


MEAN_NOISE = math.sqrt(2 / math.pi)  # The mean size of Gaussian noise, in standard deviations.
_FEWEST = 2.5  # Groups; where pairs can pay for fewer a column, they tell less than their noise hides.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fineness:
    """How far codes are told apart, so that noise does not drown what pairs of columns tell."""

    deviation: float  # of the noise that pairs will be measured with, in rows
    drowned: float  # the share of all rows that the noise of a pair of columns may amount to
    rare: float = 3.0  # deviations of a column's own noise that a group should hold

    def groups(self, rows: float) -> float:
        """Return how many groups of a column can pay: m of them make m^2 cells a pair, with noise in each."""
        return math.sqrt(self.drowned * rows / (MEAN_NOISE / 2 * self.deviation))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FirstLook:
    """What is known after it: groups of codes, and the same table in groups."""

    table: PrivateTable
    groupings: tuple[Grouping, ...]
    measured: tuple[NoisyMarginal, ...]  # the columns, in groups
    zeros: tuple[Zeros, ...]
    placed: tuple[NDArray[np.bool_], ...]  # of each column's groups, whether it has a place among the others

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.table.sizes

    @property
    def varied(self) -> list[int]:
        """The columns of more than one group: only these have anything to do with each other."""
        return varied_columns(self.sizes)


def varied_columns(sizes: Sequence[int]) -> list[int]:
    """List the columns of more than one cell. The others are known without looking, so nothing is spent on them."""
    return [column for column, size in enumerate(sizes) if size > 1]


def count_columns(table: PrivateTable, mu_squared: Fraction) -> list[NoisyMarginal]:
    """Measure every column of more than one cell by itself, for `mu_squared` in all; if there is none, the rows."""
    columns = varied_columns(table.sizes) or [0]
    return [table.measure((column,), mu_squared / len(columns)) for column in columns]


def merge_codes(
    table: PrivateTable, shape: TableShape, counts: Sequence[NoisyMarginal], fineness: Fineness
) -> FirstLook | None:
    """Merge codes as far as noise would drown them; None if pairs of columns are drowned altogether.

    All of it follows from noisy counts and public facts.
    """
    rows = max(1.0, float(np.median([one.values.sum() for one in counts])))
    most = fineness.groups(rows)
    if most < _FEWEST:
        return None
    groupings = [Grouping.none(size) for size in shape.sizes]
    for one in counts:
        (column,) = one.clique
        groupings[column] = group_cells(
            one.values,
            float(one.deviation),
            rare=fineness.rare,
            most=round(most),
            ordered=shape.ordered[column],
            kinds=shape.kinds[column],
        )
    measured = tuple(_grouped(one, groupings[one.clique[0]]) for one in counts)
    merged = table.recoded([grouping.groups for grouping in groupings])
    placed = [np.bincount(own.groups, ordered) > 0 for own, ordered in zip(groupings, shape.ordered, strict=True)]
    return FirstLook(merged, tuple(groupings), measured, tuple(shape.zeros(groupings)), tuple(placed))


def _grouped(counts: NoisyMarginal, grouping: Grouping) -> NoisyMarginal:
    """Add noisy counts within groups; so do the variances of their noise."""
    members = np.bincount(grouping.groups)
    values = np.bincount(grouping.groups, counts.values).astype(np.float64)
    return NoisyMarginal(counts.clique, values, float(counts.deviation) * np.sqrt(members))
