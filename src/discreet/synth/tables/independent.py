"""The baseline: every column by itself, as if they had nothing to do with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from discreet.synth.domain import Domain
from discreet.synth.method import Terms
from discreet.synth.tables.compressing import Grouping
from discreet.synth.tables.graphical import NoisyMarginal, fit
from discreet.synth.tables.looking import count_columns
from discreet.synth.tables.measuring import PrivateTable
from discreet.synth.tables.planning import Learned, TableFitPlan, Tell, plan_table
from discreet.synth.tables.shape import TableShape

__all__ = ["Independent", "columns_alone"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Measure each column and draw from each one alone.

    Guarantee   that of its plan.
    Utility     the columns are as good as they can be; whatever they have to do with each other is lost.
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
    return groupings, fit(shape.sizes, measured, impossible=shape.zeros(groupings))
