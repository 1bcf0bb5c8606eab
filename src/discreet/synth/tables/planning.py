"""A priced fit of a table: everything about it is known before a row is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeAlias, final

from discreet.errors import InvalidParameter
from discreet.privacy.events import GDP
from discreet.synth.domain import Domain, TableRows
from discreet.synth.method import Terms
from discreet.synth.progress import progress_line
from discreet.synth.tables.account import RoundAccount, mu_squared_for
from discreet.synth.tables.compressing import Grouping
from discreet.synth.tables.graphical import Graphical
from discreet.synth.tables.measuring import MarginalSensitivity, PrivateTable
from discreet.synth.tables.model import TableModel
from discreet.synth.tables.shape import TableShape

__all__ = ["Learned", "Learner", "TableFitPlan", "Tell", "plan_table"]

# Of a count on which everything is spent; shares of it have more noise, still below the 2^80 that samplers take.
_VARIANCES = (Fraction(1, 1 << 20), Fraction(1 << 60))
Learned: TypeAlias = tuple[tuple[Grouping, ...], Graphical]
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
