"""Cells that nobody declared, found privately: values that enough rows share, and bins at about equal counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from discreet.adaptive.truncated_histogram import TruncatedHistogram
from discreet.mechanisms.column import Column, is_missing
from discreet.mechanisms.fields import settle
from discreet.privacy.events import ApproxDP
from discreet.privacy.relation import Relation
from discreet.synth.domain.category import LONGEST, OTHER, Category, text_of
from discreet.synth.domain.coding import TableRows
from discreet.synth.domain.domain import Declared, Domain
from discreet.synth.domain.numeric import Numeric
from discreet.synth.domain.quantile_bins import QuantileBins

__all__ = ["CellSearch"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellSearch:
    """Find the values of unlisted categories and the bins of numbers, from one row of each unit.

    Guarantee   (epsilon, delta), shared evenly between the columns that are found; one row a unit is looked at.
    Theorem     A truncated histogram for each category [KKMN09, Vad17], medians of medians for each numeric column
                [KSS22], and the sum of their epsilons and deltas.
    Utility     a value is found if about (columns / epsilon) ln(columns / delta) rows have it.
    """

    domain: Domain
    epsilon: Fraction
    delta: Fraction
    relation: Relation

    @property
    def event(self) -> ApproxDP:
        """What is spent."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def largest(self) -> Domain:
        """A public domain with as many cells as could be found, to plan with."""
        return self._with({name: _largest(self.domain.columns[name]) for name in self._open})

    def settled(self, rows: TableRows) -> Domain:
        """Find what is open. This reads; the charge is the caller's."""
        columns = rows.columns()
        return self._with({name: self._found(self.domain.columns[name], columns[name]) for name in self._open})

    @property
    def _open(self) -> list[str]:
        return [name for name, column in self.domain.columns.items() if not column.is_settled]

    def _with(self, columns: dict[str, Declared]) -> Domain:
        domain = Domain({**self.domain.columns, **columns})
        settle(domain, impossible=self.domain.impossible)  # No rule is about a column that was open.
        return domain

    def _found(self, column: Declared, values: Column) -> Declared:
        epsilon, delta = self.epsilon / len(self._open), self.delta / len(self._open)
        if isinstance(column, Numeric):
            finder = QuantileBins(column=column, epsilon=epsilon, relation=self.relation)
            return column.with_edges(finder.edges(values))
        histogram = TruncatedHistogram.laplace(epsilon, delta, relation=self.relation)
        return _kept(column, histogram.measure(_texts(values)))


def _kept(column: Category, found: tuple[tuple[str, int], ...]) -> Category:
    """Keep the most frequent values, in the order of their names."""
    named = (one for one in found if one[0] != OTHER and len(one[0]) <= LONGEST)
    ranked = sorted(named, key=lambda one: (-one[1], one[0]))
    return Category(sorted(text for text, _ in ranked[: column.most]), other=True, null=column.null)


def _texts(column: Column) -> list[str | None]:
    """Return what a category of texts would see of each row, None where there is no such value."""
    return [None if is_missing(value) else text_of(value) for value in column.objects()]


def _largest(column: Declared) -> Declared:
    if isinstance(column, Numeric):
        edges = np.linspace(float(column.low), float(column.high), QuantileBins.bins + 1)[1:-1]
        inner = sorted({Fraction(edge) for edge in edges if column.low < Fraction(edge) <= column.high})
        return column.with_edges(inner)
    return Category([f"value {place}" for place in range(column.most or 1)], other=True, null=column.null)
