"""Private SQL: a question becomes a closed tree, the tree a plan with a price, and the plan, once paid, an answer.

    session = dp.Session("orders.csv", unit=dp.Unit("customer"), budget=dp.Budget(epsilon=1), …)
    session.sql("SELECT COUNT(*) AS n FROM orders", epsilon=0.1).release()

`col` and the statistics `count`, `sum`, `mean` and so on write the same questions in Python, from
`session.table("orders")` on. Everything is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.query.policy import Chain, Resources, Unit, public
    from discreet.query.release_table import ReleaseTable
    from discreet.query.session.builder import (
        col,
        correlation,
        count,
        count_distinct,
        covariance,
        deviation,
        maximum,
        mean,
        median,
        minimum,
        mode,
        quantile,
        sum,
        variance,
    )
    from discreet.query.session.plans import Plan
    from discreet.query.session.policy_file import Policy, policy_schema, read_policy
    from discreet.query.session.private_bounds_and_keys import private_bounds, private_keys, private_limit
    from discreet.query.session.session import Session
    from discreet.query.session.sql_workload import workload
    from discreet.query.sources.postgres import postgres
    from discreet.schema.columns import between, boolean, categories, text
    from discreet.schema.csv_file import csv

_HOMES = {
    "policy": ("Chain", "Resources", "Unit", "public"),
    "release_table": ("ReleaseTable",),
    "session.builder": (
        "col",
        "correlation",
        "count",
        "count_distinct",
        "covariance",
        "deviation",
        "maximum",
        "mean",
        "median",
        "minimum",
        "mode",
        "quantile",
        "sum",
        "variance",
    ),
    "session.plans": ("Plan",),
    "session.policy_file": ("Policy", "policy_schema", "read_policy"),
    "session.private_bounds_and_keys": ("private_bounds", "private_keys", "private_limit"),
    "session.session": ("Session",),
    "session.sql_workload": ("workload",),
    "sources.postgres": ("postgres",),
}
_HOME_OF = {name: f"discreet.query.{home}" for home, names in _HOMES.items() for name in names}
_HOME_OF |= dict.fromkeys(("between", "boolean", "categories", "text"), "discreet.schema.columns")
_HOME_OF["csv"] = "discreet.schema.csv_file"

__all__ = [
    "Chain",
    "Plan",
    "Policy",
    "ReleaseTable",
    "Resources",
    "Session",
    "Unit",
    "between",
    "boolean",
    "categories",
    "col",
    "correlation",
    "count",
    "count_distinct",
    "covariance",
    "csv",
    "deviation",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "policy_schema",
    "postgres",
    "private_bounds",
    "private_keys",
    "private_limit",
    "public",
    "quantile",
    "read_policy",
    "sum",
    "text",
    "variance",
    "workload",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
