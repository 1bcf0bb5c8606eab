"""Answers about sensitive data, with a proven bound on what anyone can learn about one person.

    import discreet as dp

    dp.mean(ages, bounds=(0, 120), epsilon=0.5, relation=dp.Relation.ADD_REMOVE)

Functions for people in a hurry, `Relation`, `Release` and the errors are here. The parts are `dp.noise`, `dp.privacy`,
`dp.mechanisms`, `dp.adaptive`, `dp.ledger`, `dp.robust`, `dp.verify`, `dp.statistics` and `dp.plots`. Everything is
loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import adaptive, errors, ledger, mechanisms, noise, plots, privacy, robust, statistics, verify
    from discreet.errors import (
        BudgetExceeded,
        DiscreetError,
        InvalidParameter,
        LedgerDamaged,
        LedgerUnavailable,
        NoiseOverflow,
        Refused,
        UnsupportedEvent,
    )
    from discreet.ledger.budget import Budget
    from discreet.mechanisms.release import Release
    from discreet.privacy.notprivate import NotPrivate
    from discreet.privacy.relation import Relation
    from discreet.statistics import (
        Expected,
        compare,
        count,
        histogram,
        mean,
        median,
        mode,
        plot_accuracy,
        plot_profile,
        plot_tradeoff,
        proportion,
        quantile,
        randomized_response,
        regression,
        select,
        sum,
        top_k,
        variance,
        vector_mean,
    )

__all__ = [
    "Budget",
    "BudgetExceeded",
    "DiscreetError",
    "Expected",
    "InvalidParameter",
    "LedgerDamaged",
    "LedgerUnavailable",
    "NoiseOverflow",
    "NotPrivate",
    "Refused",
    "Relation",
    "Release",
    "UnsupportedEvent",
    "adaptive",
    "compare",
    "count",
    "errors",
    "histogram",
    "ledger",
    "mean",
    "mechanisms",
    "median",
    "mode",
    "noise",
    "plot_accuracy",
    "plot_profile",
    "plot_tradeoff",
    "plots",
    "privacy",
    "proportion",
    "quantile",
    "randomized_response",
    "regression",
    "robust",
    "select",
    "statistics",
    "sum",
    "top_k",
    "variance",
    "vector_mean",
    "verify",
]

_PARTS = ("adaptive", "errors", "ledger", "mechanisms", "noise", "plots", "privacy", "robust", "statistics", "verify")
_HOMES = {
    "Budget": "ledger.budget",
    "BudgetExceeded": "errors",
    "DiscreetError": "errors",
    "InvalidParameter": "errors",
    "LedgerDamaged": "errors",
    "LedgerUnavailable": "errors",
    "NoiseOverflow": "errors",
    "NotPrivate": "privacy.notprivate",
    "Refused": "errors",
    "Relation": "privacy.relation",
    "Release": "mechanisms.release",
    "UnsupportedEvent": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    if name in _PARTS:
        return import_module(f"discreet.{name}")
    found = getattr(import_module(f"discreet.{_HOMES.get(name, 'statistics')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
