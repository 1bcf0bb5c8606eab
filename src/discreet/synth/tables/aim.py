"""AIM: round by round, select the marginal that the model describes worst for its cost, measure, refit. [MMSM22]"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import final

import numpy as np

from discreet.exact import positive, positive_integer
from discreet.formatting import record
from discreet.mechanisms.parameters import read_share, settle
from discreet.synth.domain.domain import Domain
from discreet.synth.method import Terms
from discreet.synth.tables.graphical.belief_propagation import TreeGrowth, junction_cells
from discreet.synth.tables.graphical.entropy_fit import fit
from discreet.synth.tables.graphical.graphical_model import Graphical
from discreet.synth.tables.group_ties import can_be_tied, measure_ties
from discreet.synth.tables.mst import columns_alone, fitted_to
from discreet.synth.tables.private_table import Candidate, PrivateTable
from discreet.synth.tables.sparse_tables import MeasuredTable
from discreet.synth.tables.table_plan import (
    MEAN_NOISE,
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
from discreet.synth.tables.table_shape import Clique, TableShape, cells

__all__ = ["AIM"]

_LAST_STEPS = 4  # Of the last fit; in between one step is near enough.
_MANY = 2000  # Sets of columns that are looked at in each round.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AIM:
    """Spend the budget in rounds, each on the marginal of up to `ways` columns that promises most. [MMSM22]

    Guarantee   that of its plan.
    Utility     the lowest error of all methods for tables here; slower than MST.

    Args:
        ways: Up to how many columns the marginals have that matter.
        columns_share: The part of the budget for columns by themselves.
        choice_share: The part of each round for choosing a marginal.
        rounds: How many rounds for each column, to begin with.
        longer: By what factor rounds may become more where noise is small.
        clear: How far above its noise a marginal has to be for less to be spent on the next.
        most_cells: How many cells the model may have.
        drowned: The share of all rows that the noise of a pair of columns may amount to.
        label_share: The part of what columns leave that counts the label with every other column, if there is a label.
        ties_share: The part of what columns leave for how numbers go together within groups of bins.

    Examples:
        >>> domain = dp.synth.Domain({"age": dp.synth.Numeric(0, 100, bins=4), "sex": dp.synth.Category(["f", "m"])})
        >>> rows = {"age": [20, 60] * 200, "sex": ["f", "m"] * 200}
        >>> method = dp.synth.tables.AIM(ways=2)
        >>> model = dp.synthesize(rows, method, domain=domain, epsilon=1, delta=1e-6, progress=False)
        >>> len(model.sample(10).to_arrow())
        10
    """

    ways: int = 3  # columns of the marginals that matter
    columns_share: Fraction = Fraction(2, 5)  # of the budget, for columns by themselves
    choice_share: Fraction = Fraction(1, 10)  # of each round, for choosing
    rounds: int = 1  # for each column, to begin with
    longer: int = 4  # by what rounds may become more where noise is small
    clear: float = 3.0  # how far above its noise a marginal has to be for less to be spent on the next
    most_cells: int = 1 << 20  # of the model
    drowned: float = 0.1  # the share of all rows that the noise of a pair of columns may amount to
    label_share: Fraction = Fraction(1, 2)  # of what columns leave, for the label with every other column
    ties_share: Fraction = Fraction(1, 20)  # of what columns leave, for numbers within groups of bins

    __repr__ = record

    def __post_init__(self) -> None:
        for name in ("columns_share", "choice_share", "label_share", "ties_share"):
            settle(self, **{name: read_share(getattr(self, name), name=name)})
        for name in ("ways", "rounds", "longer", "most_cells"):
            settle(self, **{name: positive_integer(getattr(self, name), name=name)})
        for name in ("clear", "drowned"):
            settle(self, **{name: float(positive(getattr(self, name), name=name))})

    @property
    def name(self) -> str:
        return "aim"

    def plan(self, terms: Terms[Domain]) -> TableFitPlan:
        columns = len(terms.domain.names)
        words = (
            f"count the values of {columns} columns with noise; then, as long as the budget lasts, choose up to "
            f"{self.ways} columns whose counts the model gets most wrong, and count those"
        )
        return plan_table(terms, self, words)

    def steps(self, columns: int) -> int:
        return 1 + self.rounds * columns

    def learn(self, table: PrivateTable, shape: TableShape, tell: Tell) -> Learned:
        columns = len(varied_columns(shape.sizes))
        if columns < 2:
            return columns_alone(table, shape)
        tell(f"counting {columns} columns")
        counts = count_columns(table, table.account.left * self.columns_share)
        each = table.account.left / (self.rounds * columns)
        deviation = math.sqrt(table.reach.squared_l2 / (each * (1 - self.choice_share)))
        known = merge_codes(table, shape, counts, Fineness(deviation=deviation, drowned=self.drowned))
        if known is None:
            return columns_alone(table, shape, counts)
        model = fit(known.sizes, known.measured, impossible=known.zeros)
        kept = table.account.left * self.ties_share if len(can_be_tied(shape, known.groupings)) > 1 else Fraction(0)
        rounds = _Rounds(self, known, model, each, each / self.longer, shape.favoured, kept)
        if shape.favoured is not None and shape.favoured in known.varied and self.ways > 1:
            tell(rounds.about_label(shape.favoured, rounds.left * self.label_share))
        while rounds.left > 0:
            tell(rounds.next())
        ties = measure_ties(table, shape, known.groupings, rounds.model, kept) if kept else ()
        rounds.kept = Fraction(0)
        while rounds.left > 0:  # Nothing was worth it: one round more.
            tell(rounds.next())
        return known.groupings, rounds.finished(), ties


@final
@dataclass(slots=True, eq=False)
class _Rounds:
    """What has been measured, and how much the next round may spend. All of it is released."""

    method: AIM
    known: FirstLook
    model: Graphical
    budget: Fraction  # mu^2 of the next round
    least: Fraction  # mu^2 of any round but the last
    favoured: int | None
    kept: Fraction  # mu^2 that is for what comes after the rounds
    measured: list[MeasuredTable] = field(default_factory=list)

    @property
    def left(self) -> Fraction:
        """What rounds may still spend."""
        return self.known.table.account.left - self.kept

    def next(self) -> str:
        """Choose, measure and fit once; say what was done."""
        table = self.known.table
        last = self.left < 2 * self.budget
        if last:
            self.budget = self.left
        noise = MEAN_NOISE * math.sqrt(table.reach.squared_l2 / self._for_measuring)
        candidates = self._candidates(noise)
        chosen = candidates[table.choose(candidates, self.budget * self.method.choice_share)]
        self._measure(chosen.clique, self.left if last else self._for_measuring)
        self.model = self._fitted(1)
        self._adjust(chosen, noise * chosen.expected.size)
        return (
            f"counted {len(chosen.clique)} columns together, {float(table.account.left / table.account.limit):.0%} left"
        )

    def about_label(self, label: int, mu_squared: Fraction) -> str:
        """Measure the label with every other column, without choosing: what predicts it is known of all of them alike.

        Pairs that noise would drown are left out; if that is all of them, nothing is spent.
        """
        pairs: list[Clique] = [
            (min(label, column), max(label, column)) for column in self.known.varied if column != label
        ]
        reach = self.known.table.reach.squared_l2
        while pairs:
            noise = MEAN_NOISE * math.sqrt(reach * len(pairs) / mu_squared)
            clear = [pair for pair in pairs if cells(self.known.sizes, pair) <= self.model.total / (2 * noise)]
            if len(clear) == len(pairs):
                break
            pairs = clear
        if not (pairs := self._fitting(pairs)):
            return "counting the label by itself"
        for pair in pairs:
            self._measure(pair, mu_squared / len(pairs))
        self.model = self._fitted(1)
        return f"counted the label with {len(pairs)} columns"

    def _adjust(self, chosen: Candidate, noise: float) -> None:
        """Spend more a round where noise hides what is left to learn, and less where it is far below it."""
        change = float(np.abs(self.model.marginal(chosen.clique).ravel() - chosen.expected.ravel()).sum())
        if change <= noise:
            self.budget *= 4
        elif change >= self.method.clear * noise:
            self.budget = max(self.budget / 2, self.least)

    def finished(self) -> Graphical:
        """Fit once more, thoroughly."""
        return fitted_to(self.known, self.model, self.measured, steps=_LAST_STEPS)

    def _measure(self, clique: Clique, mu_squared: Fraction) -> None:
        self.measured.append(
            MeasuredTable.of(self.known.table.measure(clique, mu_squared)).with_rare_values(self.known.placed)
        )

    @property
    def _for_measuring(self) -> Fraction:
        return self.budget * (1 - self.method.choice_share)

    def _fitted(self, steps: int) -> Graphical:
        measured = [*self.known.measured, *(one.beside(self.model) for one in self.measured)]
        return fit(self.known.sizes, measured, start=self.model, steps=steps, impossible=self.known.zeros)

    def _candidates(self, noise: float) -> list[Candidate]:
        """List the marginals that fit into the model and are not drowned by noise; columns if there are none."""
        most = self.model.total / (2 * noise)
        cliques = [clique for clique in self._considered() if cells(self.known.sizes, clique) <= most]
        cliques = self._fitting(cliques)
        cliques = cliques or [(column,) for column in self.known.varied or range(len(self.known.sizes))]
        return [
            Candidate(clique, counts, weight=len(clique) + (self.favoured in clique), penalty=noise * counts.size)
            for clique, counts in zip(cliques, self.model.marginals(cliques), strict=True)
        ]

    def _considered(self) -> list[Clique]:
        """List all sets of few enough columns; where these are too many, the larger ones only around measured ones."""
        columns = self.known.varied
        known = {one.clique for one in self.measured}
        listed: list[Clique] = [(column,) for column in columns]
        for ways in range(2, self.method.ways + 1):
            if ways > 2 and math.comb(len(columns), ways) > _MANY:
                listed += sorted({tuple(sorted({*one, column})) for one in known for column in columns})
            else:
                listed += combinations(columns, ways)
        return [clique for clique in dict.fromkeys(listed) if len(clique) <= self.method.ways]

    def _fitting(self, cliques: list[Clique]) -> list[Clique]:
        """List those with which the model stays small; it may grow as the budget is spent."""
        account = self.known.table.account
        room = self.method.most_cells * account.spent / account.limit
        needed = [one.clique for one in self.measured] + [columns for columns, _ in self.known.zeros]
        growth = TreeGrowth.of(self.known.sizes, [*needed, *((column,) for column in range(len(self.known.sizes)))])

        def fits(clique: Clique) -> bool:
            if len(clique) == 2 and 2 * growth.joined(*clique) <= room:  # The greedy tree is hardly ever larger.
                return True
            return junction_cells(self.known.sizes, [*needed, clique]) <= room

        return [clique for clique in cliques if fits(clique)]
