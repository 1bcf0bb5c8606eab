"""MST: one-way marginals, and two-way marginals along a maximum spanning tree. [MMS21]"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import positive
from discreet.formatting import record
from discreet.mechanisms.parameters import read_share, settle
from discreet.synth.domain.domain import Domain
from discreet.synth.method import Terms
from discreet.synth.tables.graphical.belief_propagation import junction_cells
from discreet.synth.tables.graphical.effects import NoisyMarginal
from discreet.synth.tables.graphical.entropy_fit import fit
from discreet.synth.tables.graphical.graphical_model import Graphical
from discreet.synth.tables.group_ties import can_be_tied, measure_ties
from discreet.synth.tables.private_table import Candidate, PrivateTable
from discreet.synth.tables.sparse_tables import MeasuredTable, emptied
from discreet.synth.tables.table_model import Grouping
from discreet.synth.tables.table_plan import (
    Fineness,
    FirstLook,
    Learned,
    TableFitPlan,
    Tell,
    count_columns,
    merge_codes,
    plan_table,
    varied_columns,
)
from discreet.synth.tables.table_shape import Clique, TableShape

__all__ = ["MST", "Independent", "columns_alone", "fitted_to"]

_MOST_CELLS = 1 << 24  # Of the model, where rules widen it.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MST:
    """Measure columns, choose a spanning tree of pairs by the exponential mechanism, measure them, fit. [MMS21]

    Guarantee   that of its plan.
    Utility     quick, and what neighbours in the tree have to do with each other is kept.

    Args:
        columns_share: The part of the budget for columns by themselves.
        choices_share: The part for choosing pairs; the rest is for measuring them.
        drowned: The share of all rows that the noise of a pair of columns may amount to.
        ties_share: The part of what pairs would have for how numbers go together within groups of bins.

    Raises:
        InvalidParameter: If nothing is left for counting pairs.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> method = dp.synth.tables.MST()
        >>> model = dp.synthesize(rows, method, domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> len(model.sample(10).to_arrow())
        10
    """

    columns_share: Fraction = Fraction(2, 5)  # of the budget, for columns by themselves
    choices_share: Fraction = Fraction(1, 10)  # for choosing pairs; the rest is for measuring them
    drowned: float = 0.1  # the share of all rows that the noise of a pair of columns may amount to
    ties_share: Fraction = Fraction(1, 20)  # of what pairs would have, for numbers within groups of bins

    __repr__ = record

    def __post_init__(self) -> None:
        for name in ("columns_share", "choices_share", "ties_share"):
            settle(self, **{name: read_share(getattr(self, name), name=name)})
        if not self.columns_share + self.choices_share < 1:
            raise InvalidParameter(
                "columns_share and choices_share must add up to less than 1: the rest is for two-way marginals"
            )
        settle(self, drowned=float(positive(self.drowned, name="drowned")))

    @property
    def name(self) -> str:
        return "mst"

    def plan(self, terms: Terms[Domain]) -> TableFitPlan:
        columns = len(terms.domain.names)
        words = f"count the values of {columns} columns with noise, choose {columns - 1} pairs of them, count those"
        return plan_table(terms, self, words)

    def steps(self, columns: int) -> int:
        return 4

    def learn(self, table: PrivateTable, shape: TableShape, tell: Tell) -> Learned:
        columns, budget = len(varied_columns(shape.sizes)), table.account.left
        if columns < 2:
            return columns_alone(table, shape)
        tell(f"counting {columns} columns")
        counts = count_columns(table, budget * self.columns_share)
        known = merge_codes(table, shape, counts, self._fineness(table))
        if known is None:
            return columns_alone(table, shape, counts)
        if len(known.varied) < 2:
            return columns_alone(table, shape, counts)
        tell(f"choosing {len(known.varied) - 1} pairs")
        single = fit(known.sizes, known.measured, impossible=known.zeros)
        pairs = _tree(known, single, budget * self.choices_share)
        if not pairs:
            return columns_alone(table, shape, counts)
        tell(f"counting {len(pairs)} pairs")
        kept = table.account.left * self.ties_share if len(can_be_tied(shape, known.groupings)) > 1 else Fraction(0)
        counted = _counted(known, pairs, table.account.left - kept)
        tell("fitting the joint law")
        model = fitted_to(known, single, counted)
        ties = measure_ties(table, shape, known.groupings, model, kept) if kept else ()
        if table.account.left > 0:
            model = fitted_to(known, model, [*counted, *_counted(known, pairs, table.account.left)])
        return known.groupings, model, ties

    def _fineness(self, table: PrivateTable) -> Fineness:
        share = (1 - self.columns_share - self.choices_share) / (len(varied_columns(table.sizes)) - 1)
        deviation = math.sqrt(table.reach.squared_l2 / (table.account.limit * share))
        return Fineness(deviation=deviation, drowned=self.drowned)


def _counted(known: FirstLook, pairs: Sequence[Clique], mu_squared: Fraction) -> list[MeasuredTable]:
    return [
        MeasuredTable.of(known.table.measure(pair, mu_squared / len(pairs))).with_rare_values(known.placed)
        for pair in pairs
    ]


def fitted_to(known: FirstLook, start: Graphical, counted: Sequence[MeasuredTable], steps: int = 3) -> Graphical:
    """Fit columns and tables; once more where tables have empty cells, whose sums follow the columns of the model."""
    model = start
    for _ in range(2 if any(one.filled is not None for one in counted) else 1):
        measured = [*known.measured, *(one.beside(model) for one in counted)]
        model = fit(known.sizes, measured, start=model, steps=steps, impossible=known.zeros)
    return emptied(model, counted)


def _tree(known: FirstLook, single: Graphical, mu_squared: Fraction) -> list[Clique]:
    """Choose pairs, each joining two parts of the tree so far, where independence is most wrong.

    Rules can join columns too; a pair that would close too wide a loop with them is left out.
    """
    pairs = list(combinations(known.varied, 2))
    each = mu_squared / (len(known.varied) - 1)
    expected = dict(zip(pairs, single.marginals(pairs), strict=True))
    part = list(range(len(known.sizes)))
    chosen: list[Clique] = []
    while open_pairs := [pair for pair in pairs if part[pair[0]] != part[pair[1]] and _fits(known, chosen, pair)]:
        candidates = [Candidate(pair, expected[pair]) for pair in open_pairs]
        left, right = open_pairs[known.table.choose(candidates, each)]
        chosen.append((left, right))
        part = [part[left] if one == part[right] else one for one in part]
    return chosen


def _fits(known: FirstLook, chosen: list[Clique], pair: Clique) -> bool:
    """Tell whether the model stays small with a pair; without rules a tree of pairs is as small as its pairs."""
    rules = [columns for columns, _ in known.zeros]
    return not rules or junction_cells(known.sizes, [*rules, *chosen, pair]) <= _MOST_CELLS


# --- independent: The baseline: every column by itself, as if they had nothing to do with each other. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Measure each column and draw from each one alone.

    Guarantee   that of its plan.
    Utility     the columns are as good as they can be; whatever they have to do with each other is lost.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> method = dp.synth.tables.Independent()
        >>> model = dp.synthesize(rows, method, domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> len(model.sample(10).to_arrow())
        10
    """

    @property
    def name(self) -> str:
        return "independent"

    def plan(self, terms: Terms[Domain]) -> TableFitPlan:
        columns = len(terms.domain.names)
        return plan_table(terms, self, f"count the values of {columns} columns with noise, each by itself")

    def steps(self, columns: int) -> int:
        return 1

    def learn(self, table: PrivateTable, shape: TableShape, tell: Tell) -> Learned:
        tell(f"counting {len(shape.sizes)} columns")
        return columns_alone(table, shape)


def columns_alone(table: PrivateTable, shape: TableShape, counted: Sequence[NoisyMarginal] = ()) -> Learned:
    """Spend what is left on the columns, and fit them together with what was counted before."""
    measured = [*counted, *count_columns(table, table.account.left)]
    groupings = tuple(Grouping.none(size) for size in shape.sizes)
    return groupings, fit(shape.sizes, measured, impossible=shape.zeros(groupings)), ()
