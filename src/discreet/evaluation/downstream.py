"""Models for others: trained on the synthetic rows or on real ones, and tested on the same real rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.evaluation.caps import FITTED
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows
from discreet.learn.extras import require

__all__ = ["Downstream", "Trained", "downstream"]

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
    layout: ColumnLayout, rows: Sequence[EvaluatedRows], targets: Sequence[Floats], label: int, kind: _Kind
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
class _Kind:
    """A kind of model, and how it likes rows to be written."""

    name: str
    new: Callable[[], Any]
    inputs: Callable[[ColumnLayout, EvaluatedRows, int], Floats]


def _kinds(layout: ColumnLayout, label: int) -> tuple[_Kind, _Kind]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    cells = [place for place in layout.others if place != label]
    marked = [layout.sizes[place] <= _MOST_CELLS for place in cells]
    rest = [False] * (len(layout.numbers) - (label in layout.numbers))
    trees = {"max_iter": 50, "early_stopping": False, "categorical_features": [*marked, *rest]}
    if label in layout.numbers:
        return (
            _Kind("linear regression", lambda: Ridge(alpha=1.0), _spread_out),
            _Kind("boosted trees", lambda: HistGradientBoostingRegressor(**trees), _side_by_side),
        )
    return (
        _Kind("logistic regression", lambda: LogisticRegression(max_iter=300, tol=1e-3), _spread_out),
        _Kind("boosted trees", lambda: HistGradientBoostingClassifier(**trees), _side_by_side),
    )
