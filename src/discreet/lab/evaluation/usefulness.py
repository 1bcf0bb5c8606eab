"""Utility of a synthetic table: models that are trained on it, and counts that are read off it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.lab.evaluation.table_rows import CELLS, FITTED, ColumnLayout, EvaluatedRows
from discreet.learn.extras import require
from discreet.privacy import Relation, gaussian_sigma
from discreet.synth.promise import Promise
from discreet.synth.tables.table_shape import Clique, cells, marginal

__all__ = ["Downstream", "Trained", "Workload", "WorkloadTable", "direct_error", "downstream", "workload"]

# --- downstream ---
# Models for others: trained on the synthetic rows or on real ones, and tested on the same real rows.


Floats: TypeAlias = NDArray[np.float64]
_MOST_CELLS = 255  # Of a category that trees take as one; a larger one counts as a number.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """One kind of model: how good it is if trained on synthetic rows, and on real ones."""

    name: str
    synthetic: float
    real: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Downstream:
    """How well models tell a column of real people from the others."""

    label: str
    number: bool  # figures are R², or else shares of right answers
    models: tuple[Trained, ...]
    naive: float  # whoever looks at no other column
    tested: int
    seen: bool  # whether the rows of the test were in the table that was synthesised
    kind: str = "rows"  # or pictures

    @property
    def synthetic(self) -> float:
        """How good the best model is that is trained on synthetic rows."""
        return max(one.synthetic for one in self.models)

    @property
    def real(self) -> float:
        """How good the best model is that is trained on real ones."""
        return max(one.real for one in self.models)

    @property
    def kept(self) -> float | None:
        """The part of what real rows teach that synthetic ones teach too; None where they teach hardly anything."""
        gain = self.real - self.naive
        return None if gain < 0.02 else float(np.clip((self.synthetic - self.naive) / gain, 0.0, 1.0))


def downstream(
    layout: ColumnLayout, synthetic: EvaluatedRows, train: EvaluatedRows, test: EvaluatedRows, *, label: str, seen: bool
) -> Downstream:
    """Train models of a column on synthetic rows and on real ones, and test them on other real rows."""
    require("sklearn", extra="synth")
    place = layout.place(label, what="label")
    number = place in layout.numbers
    rows = synthetic.some(FITTED), train.some(FITTED), test.some(FITTED)
    targets = [_target(layout, one, place) for one in rows]
    models = tuple(_trained(layout, rows, targets, place, kind) for kind in _kinds(layout, place))
    naive = 0.0 if number else float(np.mean(targets[2] == np.bincount(targets[1].astype(np.int64)).argmax()))
    return Downstream(label=label, number=number, models=models, naive=naive, tested=len(rows[2]), seen=seen)


def _trained(
    layout: ColumnLayout, rows: Sequence[EvaluatedRows], targets: Sequence[Floats], label: int, kind: _ModelKind
) -> Trained:
    """Train one kind of model on the first and on the second rows, and test both on the third."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    inputs = [kind.inputs(layout, one, label) for one in rows]
    tested = inputs[2], targets[2]
    # Trees that wait for each other's threads take minutes on a busy machine; one thread takes seconds.
    with threadpool_limits(1):
        made, true = (_score(kind.new, (inputs[at], targets[at]), tested) for at in (0, 1))
    return Trained(name=kind.name, synthetic=made, real=true)


def _spread_out(layout: ColumnLayout, rows: EvaluatedRows, label: int) -> Floats:
    """Write categories as one column a value, numbers as they lie in their bounds and whether they are missing."""
    parts = [np.eye(layout.sizes[place])[rows.codes[:, place]] for place in layout.others if place != label]
    for at, place in enumerate(layout.numbers):
        if place != label:
            numbers = rows.places[:, at].astype(np.float64)
            parts.append(np.stack([np.nan_to_num(numbers, nan=0.5), np.isnan(numbers)], axis=1))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(rows), 1))


def _side_by_side(layout: ColumnLayout, rows: EvaluatedRows, label: int) -> Floats:
    """Write the cells of categories by their numbers, then numbers as they lie in their bounds, missing ones as NaN."""
    cells = [place for place in layout.others if place != label]
    numbers = [at for at, place in enumerate(layout.numbers) if place != label]
    return np.concatenate([rows.codes[:, cells], rows.places[:, numbers]], axis=1).astype(np.float64)


def _target(layout: ColumnLayout, rows: EvaluatedRows, label: int) -> Floats:
    if label in layout.numbers:
        return np.nan_to_num(rows.places[:, layout.numbers.index(label)].astype(np.float64), nan=0.5)
    return rows.codes[:, label].astype(np.float64)


def _score(new: Callable[[], Any], known: tuple[Floats, Floats], tested: tuple[Floats, Floats]) -> float:
    """Train and test; rows that are all of one class teach to answer that class."""
    inputs, target = known
    if len(np.unique(target)) < 2:
        return float(np.mean(tested[1] == target[0]))
    return float(new().fit(inputs, target).score(*tested))


@final
@dataclass(frozen=True, slots=True)
class _ModelKind:
    """A kind of model, and how it likes rows to be written."""

    name: str
    new: Callable[[], Any]
    inputs: Callable[[ColumnLayout, EvaluatedRows, int], Floats]


def _kinds(layout: ColumnLayout, label: int) -> tuple[_ModelKind, _ModelKind]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    cells = [place for place in layout.others if place != label]
    marked = [layout.sizes[place] <= _MOST_CELLS for place in cells]
    rest = [False] * (len(layout.numbers) - (label in layout.numbers))
    trees = {"max_iter": 50, "early_stopping": False, "categorical_features": [*marked, *rest]}
    if label in layout.numbers:
        return (
            _ModelKind("linear regression", lambda: Ridge(alpha=1.0), _spread_out),
            _ModelKind("boosted trees", lambda: HistGradientBoostingRegressor(**trees), _side_by_side),
        )
    return (
        _ModelKind("logistic regression", lambda: LogisticRegression(max_iter=300, tol=1e-3), _spread_out),
        _ModelKind("boosted trees", lambda: HistGradientBoostingClassifier(**trees), _side_by_side),
    )


# --- workload ---
# Questions: how exact counts are that are read off the synthetic table, and how exact direct answers would be.


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
