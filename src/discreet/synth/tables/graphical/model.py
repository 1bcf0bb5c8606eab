"""A distribution over the rows of a table that is a product of small tables: a graphical model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.synth.tables.graphical.contraction import Floats
from discreet.synth.tables.graphical.junction import Clique
from discreet.synth.tables.graphical.network import HALF_NEVER, FactorNetwork
from discreet.synth.tables.graphical.querying import Queries
from discreet.synth.tables.graphical.sampling import draw

__all__ = ["Graphical"]


@final
@dataclass(frozen=True, eq=False)
class Graphical:
    """Counts proportional to the exponential of a sum of potentials, one table for each clique of columns."""

    sizes: tuple[int, ...]  # Cells of each column.
    cliques: tuple[Clique, ...]  # With rising columns; every column is in one.
    total: float  # Rows that the counts sum to.
    potentials: tuple[Floats, ...]  # Finite; impossible cells have about -1e9.

    def __post_init__(self) -> None:
        if {column for clique in self.cliques for column in clique} != set(range(len(self.sizes))):
            raise InvalidParameter("the cliques of a model must have all of its columns and no other")
        for clique, table in zip(self.cliques, self.potentials, strict=True):
            if list(clique) != sorted(set(clique)) or table.shape != tuple(self.sizes[column] for column in clique):
                raise InvalidParameter("each clique needs rising columns and a table of potentials of their sizes")
            if not np.isfinite(table).all():
                raise InvalidParameter("the potentials of a model must be finite")
        if not (math.isfinite(self.total) and self.total > 0):
            raise InvalidParameter("the total of a model must be positive and finite")

    def marginal(self, clique: Sequence[int]) -> Floats:
        """Return the expected counts of a clique's cells, in the order of its columns."""
        columns = tuple(clique)
        if len(set(columns)) < len(columns) or not set(columns) <= set(range(len(self.sizes))):
            raise InvalidParameter("a clique must name different columns of the model")
        return np.ascontiguousarray(self._queries.marginal(columns) * self.total)

    def marginals(self, cliques: Iterable[Sequence[int]]) -> list[Floats]:
        """Return the expected counts of many cliques; they share what they have in common."""
        return [self.marginal(clique) for clique in cliques]

    def sample(self, rows: int) -> NDArray[np.int32]:
        """Draw rows of codes whose counts are the expected ones, rounded at random."""
        return draw(self._queries, positive_integer(rows, name="rows"))

    def can_be_sampled(self) -> bool:
        """Tell whether there is a row to draw: potentials can be so far apart that all their products vanish."""
        try:
            return not self._queries.vanish()
        except InvalidParameter:
            return False

    @cached_property
    def _queries(self) -> Queries:
        if min(float(table.max()) for table in self.potentials) < HALF_NEVER:
            raise InvalidParameter("the potentials of a model exclude every row")
        factors = [np.exp(table - table.max()) for table in self.potentials]
        queries = Queries.of(FactorNetwork.of(self.sizes, self.cliques), factors)
        if not math.isfinite(queries.beliefs.log_sum):
            raise InvalidParameter("the potentials of a model exclude every row")
        return queries
