"""Every estimator in scikit-learn's shape, fitted on a few rows; floats of matrices are rounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import discreet as dp

from .flow import Flow, Said
from .made_up import RELATIONS, labels, matrix

__all__ = ["flows"]

_S = dp.learn.sklearn
_ROWS = matrix(1500, 3)
_TARGET = _ROWS @ [1.0, -2.0, 0.5] + 0.5
_CLASSES = labels(_ROWS)
_BOTH: dict[str, Any] = {"epsilon": 2, "delta": "1e-6"}
_IN: dict[str, Any] = {"bounds": (-1, 1), **_BOTH}
_LINE: dict[str, Any] = {"target_bounds": (-4, 4), **_IN}


def flows() -> Iterator[Flow]:
    """Every estimator and its methods, under both relations."""
    torch.set_num_threads(1)
    for word, relation in RELATIONS.items():
        at: dict[str, Any] = {"relation": relation.value, "public_rows": len(_ROWS)}
        for name, make, target in (*_lines(at), *_classes(at), *_shapes(at)):
            yield Flow(f"{name}, {word}", lambda make=make, target=target: _fitted(make(), target), rounded=True)
    yield Flow("DPClassifier", lambda: _network(_S.DPClassifier, _CLASSES, classes=[0, 1]), rounded=True)
    yield Flow("DPRegressor", lambda: _network(_S.DPRegressor, _TARGET, target_bounds=(-4, 4)), rounded=True)


_Case = tuple[str, Any, Any]


def _lines(at: dict[str, Any]) -> Iterator[_Case]:
    for method in ("auto", "refined", "adassp"):
        yield (
            f"LinearRegression {method}",
            lambda method=method: _S.LinearRegression(method=method, **_LINE, **at),
            _TARGET,
        )
    yield "Ridge", lambda: _S.Ridge(alpha=2.0, **_LINE, **at), _TARGET
    yield "RobustRegressor", lambda: _S.RobustRegressor(**_LINE, **at), _TARGET


def _classes(at: dict[str, Any]) -> Iterator[_Case]:
    yield "LogisticRegression", lambda: _S.LogisticRegression(classes=[0, 1], **_IN, **at), _CLASSES
    yield "GaussianNB", lambda: _bayes(at), _CLASSES
    yield (
        "PrivateSearch",
        lambda: _S.PrivateSearch(
            _S.GaussianNB(epsilon=1, bounds=(-1, 1), classes=[0, 1]), {"var_smoothing": [1e-4, 1.0]}, **_BOTH, **at
        ),
        _CLASSES,
    )


def _bayes(at: dict[str, Any]) -> Any:
    return _S.GaussianNB(classes=[0, 1], **_IN, **at)


def _shapes(at: dict[str, Any]) -> Iterator[_Case]:
    yield "PCA", lambda: _S.PCA(2, **_IN, **at), None
    yield "KMeans", lambda: _S.KMeans(3, **_IN, **at), None
    yield "StandardScaler", lambda: _S.StandardScaler(**_IN, **at), None
    yield "MinMaxScaler", lambda: _S.MinMaxScaler(epsilon=2, bounds=(-9, 9), coverage=0.8, **at), None


def _fitted(model: Any, target: Any) -> Said:
    model.fit(_ROWS) if target is None else model.fit(_ROWS, target)
    learned = {name: _array(model, name) for name in sorted(vars(model)) if name.endswith("_")}
    used = {name: getattr(model, name)(_ROWS[:20]) for name in _METHODS if _has(model, name)}
    spent = model.privacy_spent_
    words = [str(model.summary()) if hasattr(model, "summary") else "", str(spent)]
    return Said([{k: v for k, v in learned.items() if v is not None}, used, spent.event, spent.epsilon], words)


_METHODS = ("predict", "predict_proba", "decision_function", "transform")


def _has(model: Any, name: str) -> bool:
    return callable(getattr(model, name, None))


def _array(model: Any, name: str) -> Any:
    """Return a learned number or array, and nothing of what else a model remembers."""
    value = getattr(model, name)
    numbers = isinstance(value, int | float | str) or (isinstance(value, np.ndarray) and value.dtype.kind in "fiubU")
    return value if numbers and not name.startswith("_") else None


def _network(kind: Any, target: Any, **how: Any) -> Said:
    torch.manual_seed(5)
    return _fitted(kind(_linear, public_rows=len(_ROWS), epochs=1, batch_size=100, **how, **_IN), target)


def _linear(inputs: int, outputs: int) -> torch.nn.Module:
    torch.manual_seed(7)
    return torch.nn.Linear(inputs, outputs)
