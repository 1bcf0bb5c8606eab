"""Exact numbers behind a query over a tiny world, for brute force: what one unit changes, and what is claimed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from recorded import replayed

import discreet as dp
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.execute import exact_numbers
from discreet.query.parse.select import read
from discreet.query.plan.draft import Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.session.catalogue_builder import build_catalogue

__all__ = ["ROW", "Counted", "counted", "planned"]

ROW = dp.Unit("row")


@dataclass(frozen=True)
class Counted:
    """A plan, what the engine counted, and the exact numbers of each group."""

    priced: PricedQuery
    tallied: ExactCounts
    numbers: tuple[list[int], ...]


def planned(
    sql: str,
    tables: Mapping[str, Any],
    *,
    unit: dp.Unit = ROW,
    columns: Mapping[str, Any] | None = None,
    keys: Mapping[str, Sequence[Hashable]] | None = None,
    spend: Spend | None = None,
) -> PricedQuery:
    """Plan a query."""
    with closing(DuckDBEngine(tables, threads=1)) as engine:
        catalogue = build_catalogue(engine, tables, unit=unit, columns=columns or {})
        question = read(sql, catalogue, keys=keys).question
        return plan(question, catalogue, spend or Spend(epsilon=1, delta="1e-6"), pure=False)


def counted(sql: str, tables: Mapping[str, Any], **how: Any) -> Counted:
    """Plan a query and run its stage, always with the same secret choices."""
    priced = planned(sql, tables, **how)
    with closing(DuckDBEngine(tables, threads=1)) as engine, replayed("review"):
        tallied = engine.run(priced.stage, deadline=Deadline.after(60))
    exact = exact_numbers(priced.draft, tallied.tally)
    return Counted(priced, tallied, tuple([int(number) for number in column] for column in exact))
