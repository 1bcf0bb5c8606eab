"""Differential privacy: answers about sensitive data, with a proven bound on what anyone learns about one person.

    import discreet as dp

    dp.mean(ages, bounds=(0, 120), epsilon=0.5, relation=dp.Relation.ADD_REMOVE)

    session = dp.Session("visits.csv", unit="row", budget=dp.Budget(epsilon=1), …)
    session.sql("SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic", epsilon=0.1).release()

One-call statistics, `Session` and what it needs, `Relation`, `Release` and the errors are here. The parts
are `dp.noise`, `dp.privacy`, `dp.mechanisms`, `dp.adaptive`, `dp.ledger`, `dp.robust`, `dp.statistics`, `dp.query`,
`dp.learn`, `dp.synth`, `dp.release`, `dp.client`, `dp.data` and `dp.plots`; in the laboratory, `dp.lab`, are
`dp.attacks`, `dp.audit`, `dp.evaluation` and `dp.verify`. Each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import (
        adaptive,
        client,
        data,
        errors,
        lab,
        learn,
        ledger,
        mechanisms,
        noise,
        plots,
        privacy,
        query,
        release,
        robust,
        statistics,
        synth,
    )
    from discreet.errors import (
        AnswerFailed,
        BudgetExceeded,
        DiscreetError,
        InvalidParameter,
        LedgerDamaged,
        LedgerUnavailable,
        MissingLibrary,
        NoiseOverflow,
        NotAuthorised,
        Refused,
        UnsupportedEvent,
    )
    from discreet.lab import attacks, audit, evaluation, verify
    from discreet.learn.torch import make_private
    from discreet.ledger import Budget, Quota
    from discreet.mechanisms.release import Release
    from discreet.privacy.not_private import NotPrivate
    from discreet.privacy.relation import Relation
    from discreet.query import (
        Chain,
        Plan,
        ReleaseTable,
        Session,
        Unit,
        between,
        boolean,
        categories,
        csv,
        postgres,
        private_bounds,
        private_keys,
        private_limit,
        public,
        text,
    )
    from discreet.statistics import (
        Expected,
        compare,
        correlation,
        count,
        covariance,
        difference,
        histogram,
        mean,
        median,
        mode,
        plot_accuracy,
        plot_neighbours,
        plot_profile,
        plot_tradeoff,
        proportion,
        quantile,
        quantiles,
        randomized_response,
        regression,
        select,
        std,
        sum,
        top_k,
        two_sample_test,
        variance,
        vector_mean,
        workload,
    )
    from discreet.synth.synthesis import synthesize

__all__ = [
    "AnswerFailed",
    "Budget",
    "BudgetExceeded",
    "Chain",
    "DiscreetError",
    "Expected",
    "InvalidParameter",
    "LedgerDamaged",
    "LedgerUnavailable",
    "MissingLibrary",
    "NoiseOverflow",
    "NotAuthorised",
    "NotPrivate",
    "Plan",
    "Quota",
    "Refused",
    "Relation",
    "Release",
    "ReleaseTable",
    "Session",
    "Unit",
    "UnsupportedEvent",
    "adaptive",
    "attacks",
    "audit",
    "between",
    "boolean",
    "categories",
    "client",
    "compare",
    "correlation",
    "count",
    "covariance",
    "csv",
    "data",
    "difference",
    "errors",
    "evaluation",
    "histogram",
    "lab",
    "learn",
    "ledger",
    "make_private",
    "mean",
    "mechanisms",
    "median",
    "mode",
    "noise",
    "plot_accuracy",
    "plot_neighbours",
    "plot_profile",
    "plot_tradeoff",
    "plots",
    "postgres",
    "privacy",
    "private_bounds",
    "private_keys",
    "private_limit",
    "proportion",
    "public",
    "quantile",
    "quantiles",
    "query",
    "randomized_response",
    "regression",
    "release",
    "robust",
    "select",
    "statistics",
    "std",
    "sum",
    "synth",
    "synthesize",
    "text",
    "top_k",
    "two_sample_test",
    "variance",
    "vector_mean",
    "verify",
    "workload",
]

_PARTS = frozenset(
    {
        "adaptive", "client", "data", "errors", "lab", "learn", "ledger", "mechanisms", "noise", "plots", "privacy",
        "query", "release", "robust", "statistics", "synth",
    }
)  # fmt: skip
_IN_THE_LAB = frozenset({"attacks", "audit", "evaluation", "verify"})
_HOMES = {
    "AnswerFailed": "errors",
    "Budget": "ledger",
    "BudgetExceeded": "errors",
    "Chain": "query",
    "DiscreetError": "errors",
    "InvalidParameter": "errors",
    "LedgerDamaged": "errors",
    "LedgerUnavailable": "errors",
    "MissingLibrary": "errors",
    "NoiseOverflow": "errors",
    "NotAuthorised": "errors",
    "NotPrivate": "privacy.not_private",
    "Plan": "query",
    "Quota": "ledger",
    "Refused": "errors",
    "Relation": "privacy.relation",
    "Release": "mechanisms.release",
    "ReleaseTable": "query",
    "Session": "query",
    "Unit": "query",
    "UnsupportedEvent": "errors",
    "between": "query",
    "boolean": "query",
    "categories": "query",
    "csv": "query",
    "make_private": "learn.torch",
    "postgres": "query",
    "private_bounds": "query",
    "private_keys": "query",
    "private_limit": "query",
    "public": "query",
    "synthesize": "synth.synthesis",
    "text": "query",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":  # Read when it is asked for: the metadata cost more than all of `import discreet`.
        from importlib.metadata import version

        return version("discreet")
    if name not in __all__:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    if name in _PARTS:
        return import_module(f"discreet.{name}")
    if name in _IN_THE_LAB:
        return import_module(f"discreet.lab.{name}")
    found = getattr(import_module(f"discreet.{_HOMES.get(name, 'statistics')}"), name)
    globals()[name] = found
    return found


def load_ipython_extension(shell: Any) -> None:
    """Add `%%discreet` to a notebook: `%load_ext discreet` calls this."""
    import_module("discreet.cli.notebook_magic").load(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
