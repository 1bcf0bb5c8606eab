"""Questions: how exact counts are that are read off the synthetic table, and how exact direct answers would be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.evaluation.caps import CELLS
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows
from discreet.privacy import Relation, gaussian_sigma
from discreet.synth.promise import Promise
from discreet.synth.tables.counting import Clique, cells, marginal

__all__ = ["Workload", "WorkloadTable", "direct_error", "workload"]

_TWO_SIDED = 1.959964  # Of a normal law: 95 of 100 draws lie within so many deviations.
_MOST = 60  # Questions that are asked unless somebody says which.
_SHARE = 95


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTable:
    """One table of counts: 95 of 100 of its cells are within these errors, in rows of the real table."""

    columns: tuple[str, ...]
    cells: int
    synthetic: float
    alone: float | None  # a direct answer with the whole budget of the synthetic table
    shared: float | None  # a direct answer if all these questions share that budget

    @property
    def better_alone(self) -> bool:
        """Whether this question by itself is answered more exactly if it is asked directly."""
        return self.alone is not None and self.alone < self.synthetic

    @property
    def better_shared(self) -> bool:
        """Whether it is even if all questions are asked."""
        return self.shared is not None and self.shared < self.synthetic


@final
@dataclass(frozen=True, slots=True)
class Workload:
    """All questions."""

    asked: tuple[WorkloadTable, ...]
    rows: int  # of the real table, which the errors are to be held against

    @property
    def better_alone(self) -> int:
        """How many questions would be answered more exactly each by itself."""
        return sum(one.better_alone for one in self.asked)

    @property
    def better_shared(self) -> int:
        """How many would be even if all were asked directly."""
        return sum(one.better_shared for one in self.asked)


def workload(
    layout: ColumnLayout,
    synthetic: EvaluatedRows,
    real: EvaluatedRows,
    *,
    promise: Promise | None,
    label: str | None,
    questions: Sequence[Sequence[str]] | None,
) -> Workload:
    """Ask both tables the same questions."""
    sets = _usual(layout, label) if questions is None else tuple(_read(layout, names) for names in questions)
    alone = None if promise is None else direct_error(promise, 1)
    shared = None if promise is None else direct_error(promise, len(sets))
    asked = tuple(
        WorkloadTable(
            columns=tuple(layout.names[place] for place in one),
            cells=cells(layout.sizes, one),
            synthetic=_error(layout, synthetic, real, one),
            alone=alone,
            shared=shared,
        )
        for one in sets
    )
    return Workload(asked, len(real))


def direct_error(promise: Promise, questions: int) -> float:
    """Return the ± of 95 in 100 of a direct count if so many tables of counts share the budget of a promise.

    One unit changes one cell of each table by as many rows as it has, or two cells if it is replaced.
    """
    moves = 2 if promise.relation is Relation.REPLACE_ONE else 1
    if promise.delta > 0:
        moved = promise.rows_per_unit * math.sqrt(moves * questions)
        return _TWO_SIDED * moved * gaussian_sigma(promise.epsilon, promise.delta)
    # P(|noise| > t) = exp(-t / scale), so 95 of 100 lie within scale * log 20.
    return math.log(20) * promise.rows_per_unit * moves * questions / promise.epsilon


def _error(layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, columns: Clique) -> float:
    """Return what 95 of 100 cells stay within; the synthetic counts are scaled to as many rows as there are."""
    made, true = (marginal(rows.codes, layout.sizes, columns) for rows in (synthetic, real))
    return float(np.percentile(np.abs(made * (len(real) / len(synthetic)) - true), _SHARE))


def _usual(layout: ColumnLayout, label: str | None) -> tuple[Clique, ...]:
    """Take every column, every column by the label, and then other pairs, as many as are usual."""
    places = range(len(layout.names))
    marked = None if label is None else layout.place(label, what="label")
    pairs = sorted(combinations(places, 2), key=lambda pair: marked not in pair)
    sets = [*((place,) for place in places), *pairs]
    return tuple(one for one in sets if cells(layout.sizes, one) <= CELLS)[:_MOST]


def _read(layout: ColumnLayout, names: Sequence[str]) -> Clique:
    if isinstance(names, str) or not names:
        raise InvalidParameter('each question of a workload must be a list of columns, such as ["sex", "diagnosis"]')
    places = tuple(sorted({layout.place(name, what="a column of the workload") for name in names}))
    if cells(layout.sizes, places) > CELLS:
        raise InvalidParameter(f"a question of the workload has more than {CELLS:,} cells: ask for fewer columns")
    return places
