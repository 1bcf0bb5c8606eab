"""Which regression will be more accurate? Each is tried on a public or simulated table of the size of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet.adaptive.no_answer import NoAnswer
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive_integer
from discreet.privacy.relation import Relation
from discreet.statistics.expected import Floats
from discreet.statistics.outlook_tables import error_table, footnote
from discreet.statistics.paying import Bounds
from discreet.statistics.predicted import Predicted
from discreet.statistics.regressions import AUTO_METHOD, METHODS, regression

__all__ = ["FitComparison", "compare_fits"]

_TRIES = 15


@final
@dataclass(frozen=True, slots=True, repr=False)
class FitComparison:
    """How far predictions of each private fit were from those of least squares, root mean square, on public rows."""

    predictions: dict[str, Predicted]
    best: str = AUTO_METHOD

    def __str__(self) -> str:
        return "\n".join([*error_table(self.predictions, self.best), footnote])

    __repr__ = __str__


def compare_fits(
    expected: Any,
    *,
    size: int,
    relation: Relation,
    epsilon: Number,
    delta: Number | None,
    x_bounds: Sequence[Bounds] | None,
    y_bounds: Bounds | None,
) -> FitComparison:
    """Try each method a few times on public rows, repeated until there are `size` of them."""
    X, y = _table(expected, positive_integer(size, name="size"))
    exact = _line(X) @ np.linalg.lstsq(_line(X), y, rcond=None)[0]

    def tried(method: Any) -> Predicted:
        errors, declined = [], 0
        for _ in range(_TRIES):
            fit = regression(
                X,
                y,
                relation=relation,
                x_bounds=x_bounds,
                y_bounds=y_bounds,
                epsilon=epsilon,
                delta=delta,
                method=method,
            ).value
            if isinstance(fit, NoAnswer):
                declined += 1
            else:
                predicted = _line(X) @ np.array([float(part) for part in fit])
                errors.append(float(np.sqrt(np.mean((predicted - exact) ** 2))))
        found = np.quantile(errors, [0.5, 0.95]) if errors else (np.inf, np.inf)
        return Predicted(typical=float(found[0]), wide=float(found[1]), declines=declined / _TRIES)

    return FitComparison({method: tried(method) for method in METHODS})


def _table(expected: Any, size: int) -> tuple[Floats, Floats]:
    try:
        X, y = (np.asarray(part, dtype=np.float64) for part in expected)
    except (TypeError, ValueError):
        X, y = np.empty((0, 0)), np.empty(0)
    if X.ndim != 2 or y.shape != (len(X),) or not X.size or not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise InvalidParameter(
            "for a regression, expected must be a public or simulated table of finite numbers: (features, responses)"
        )
    rows = np.arange(size) % len(X)
    return X[rows], y[rows]


def _line(X: Floats) -> Floats:
    return np.column_stack([np.ones(len(X)), X])
