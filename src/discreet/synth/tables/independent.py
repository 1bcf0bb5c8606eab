"""The baseline: every column by itself, as if they had nothing to do with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.synth.domain import Domain
from discreet.synth.method import Terms
from discreet.synth.tables.graphical import fit
from discreet.synth.tables.looking import look
from discreet.synth.tables.measuring import PrivateTable
from discreet.synth.tables.planning import Learned, TablePlan, Tell, plan_table
from discreet.synth.tables.shape import Shape

__all__ = ["Independent"]


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

    def plan(self, terms: Terms[Domain]) -> TablePlan:
        columns = len(terms.domain.names)
        return plan_table(terms, self, f"count the values of {columns} columns with noise, each by itself")

    def steps(self, columns: int) -> int:
        return 1

    def learn(self, table: PrivateTable, shape: Shape, tell: Tell) -> Learned:
        tell(f"counting {len(shape.sizes)} columns")
        known = look(table, shape, table.account.left)
        return known.groupings, fit(known.sizes, known.measured, impossible=known.zeros)
