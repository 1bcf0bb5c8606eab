"""The twelve classifiers by which DP-MERF and its relatives judge synthetic rows, with the settings of their code.

What differs: AdaBoost knows only the SAMME rule any more (the authors' SAMME.R is gone from scikit-learn), and the
linear SVM for pictures stops after 1,000 rounds instead of 10,000. The same holds for the real rows compared with.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

__all__ = ["NAMES", "for_pictures", "for_tables"]

NAMES: Final = ("LR", "RF", "GNB", "BNB", "SVC", "DT", "LDA", "Ada", "MLP", "Bag", "GBM", "XGB")
PLACES: Final = {
    "LR": ("sklearn.linear_model", "LogisticRegression"),
    "RF": ("sklearn.ensemble", "RandomForestClassifier"),
    "GNB": ("sklearn.naive_bayes", "GaussianNB"),
    "BNB": ("sklearn.naive_bayes", "BernoulliNB"),
    "SVC": ("sklearn.svm", "LinearSVC"),
    "DT": ("sklearn.tree", "DecisionTreeClassifier"),
    "LDA": ("sklearn.discriminant_analysis", "LinearDiscriminantAnalysis"),
    "Ada": ("sklearn.ensemble", "AdaBoostClassifier"),
    "MLP": ("sklearn.neural_network", "MLPClassifier"),
    "Bag": ("sklearn.ensemble", "BaggingClassifier"),
    "GBM": ("sklearn.ensemble", "GradientBoostingClassifier"),
    "XGB": ("xgboost", "XGBClassifier"),
}
PICTURES: Final[dict[str, dict[str, Any]]] = {
    "LR": {"max_iter": 5000},
    "RF": {"n_estimators": 100, "class_weight": "balanced"},
    "BNB": {"binarize": 0.5},
    "SVC": {"max_iter": 1000, "tol": 1e-8, "loss": "hinge"},
    "LDA": {"solver": "eigen", "n_components": 9, "tol": 1e-8, "shrinkage": 0.5},
    "DT": {"class_weight": "balanced"},
    "Ada": {"n_estimators": 100},
    "Bag": {"max_samples": 0.1, "n_estimators": 20},
    "GBM": {"subsample": 0.1, "n_estimators": 50},
    "XGB": {"colsample_bytree": 0.1, "objective": "multi:softprob", "n_estimators": 50, "n_jobs": 1},
}
TABLES: Final[dict[str, dict[str, Any]]] = {
    "LR": {"max_iter": 2000},
    "BNB": {"alpha": 0.02},
    "XGB": {"n_jobs": 1},
}


def for_pictures(name: str) -> Any:
    """Return a classifier as the paper sets it for MNIST."""
    return _made(name, PICTURES)


def for_tables(name: str) -> Any:
    """Return a classifier as the paper sets it for tables."""
    return _made(name, TABLES)


def _made(name: str, settings: dict[str, dict[str, Any]]) -> Any:
    module, found = PLACES[name]
    return getattr(import_module(module), found)(**settings.get(name, {}))
