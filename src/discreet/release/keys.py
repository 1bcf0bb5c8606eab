"""Under which keys the ledger has what a plan releases: a release of a period is charged once, and so is a series."""

from __future__ import annotations

__all__ = ["release_key", "running_key"]


def release_key(plan: object, label: object) -> str:
    """Return the key of the release of a period, from the name of the plan and the label of the period."""
    return f"release/{plan}/{label}"


def running_key(plan: object, series: object) -> str:
    """Return the key of a series, from the name of the plan and its own."""
    return f"running/{plan}/{series}"
