"""Private scikit-learn estimators. Each is loaded when it is first named."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import discreet.learn.needs_sklearn  # noqa: F401 - says what to install, if that is missing

__all__ = [
    "PCA",
    "Binner",
    "BoostedTreesClassifier",
    "BoostedTreesRegressor",
    "DPClassifier",
    "DPRegressor",
    "GaussianNB",
    "Imputer",
    "KMeans",
    "LinearRegression",
    "LogisticRegression",
    "MinMaxScaler",
    "PoissonRegressor",
    "PrivateSearch",
    "RandomForestClassifier",
    "Ridge",
    "RobustRegressor",
    "RowFunction",
    "StandardScaler",
]

_HOMES = {
    "Binner": "declared_steps",
    "BoostedTreesClassifier": "trees",
    "BoostedTreesRegressor": "trees",
    "DPClassifier": "neural",
    "DPRegressor": "neural",
    "GaussianNB": "naive_bayes",
    "Imputer": "declared_steps",
    "KMeans": "kmeans",
    "LinearRegression": "linear",
    "LogisticRegression": "logistic",
    "MinMaxScaler": "scalers",
    "PCA": "pca",
    "PoissonRegressor": "poisson",
    "PrivateSearch": "search",
    "RandomForestClassifier": "forest",
    "Ridge": "linear",
    "RobustRegressor": "linear",
    "RowFunction": "pipeline_guard",
    "StandardScaler": "scalers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet.learn.sklearn' has no attribute {name!r}")
    return getattr(import_module(f"discreet.learn.sklearn.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
