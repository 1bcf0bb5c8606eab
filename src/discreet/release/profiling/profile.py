"""`profile`: a whole table in one call."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from discreet.exact import Number
from discreet.ledger import Budget
from discreet.query import Resources, Session, Unit
from discreet.query.session.catalogue_building import Columns
from discreet.release.profiling.plan import plan_profile
from discreet.release.profiling.results import Profile

__all__ = ["profile"]

_USUAL = Resources()


def profile(
    source: Any,
    *,
    unit: Unit | str,
    epsilon: Number,
    delta: Number | None = None,
    ledger: str | Path,
    dataset: str,
    principal: str,
    columns: Columns | None = None,
    numbers: Iterable[str] = (),
    dates: Iterable[str] = (),
    budget: Budget | None = None,
    key: str = "profile",
    project: str = "",
    version: str | None = None,
    resources: Resources = _USUAL,
) -> Profile:
    """Profile a table: how many, how much is missing, histograms, quantiles and frequent values of every column.

    Guarantee   All of it together is (epsilon, delta)-differentially private for one unit more or less, and is
                charged to the ledger before anything is read. What is not declared in `columns` is found privately.

    A unit that is only the name of a column is counted with one row each. Without a `budget` the data set is opened
    with exactly what this profile may spend. Under the same `key` a profile is paid once, and is resumed if it was
    interrupted.
    """
    with Session(
        source,
        unit=_unit(unit),
        budget=Budget(epsilon=epsilon, delta=delta) if budget is None else budget,
        ledger=ledger,
        dataset=dataset,
        principal=principal,
        columns=columns,
        project=project,
        version=version,
        resources=resources,
    ) as session:
        return plan_profile(session, epsilon=epsilon, delta=delta, numbers=numbers, dates=dates, key=key).release()


def _unit(unit: Unit | str) -> Unit | Literal["row"]:
    if isinstance(unit, Unit):
        return unit
    return "row" if unit == "row" else Unit(unit)
