"""Discreet: a plan of twelve tables on real data: what was priced, what came out, and what tidying does to it.

Rows are bounded and added up once, as a release does; then noise is drawn many times by the code that releases, and
every draw is tidied by the code that publishes.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import discreet as dp
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.release_plan.adding_up import adds_up, is_tidy
from benchmarks.release_plan.preparing import prepared
from discreet import release
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.execute import exact_numbers
from discreet.query.plan.answers import ReleasedNumbers
from discreet.query.plan.output_columns import columns_of
from discreet.query.plan.planner import draw_together
from discreet.release.plan import ReleasePlan
from discreet.release.pricing.family_noise import share_noise
from discreet.release.pricing.priced_release import PricedRelease, PricedTable
from discreet.release.published import PublishedTable
from discreet.release.release_order import ask_table
from discreet.release.tidy.cell_layout import CellLayout
from discreet.release.tidy.consistent_tables import RawColumn, estimate, family_of
from discreet.release.tidy.tidying import family_layout, raw_column, tidy_tables

Floats: TypeAlias = NDArray[np.float64]

RELEASES, TIDIED = 2_000, 1_000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One table of the plan, added up once, and its exact numbers, for the custodian's eyes."""

    priced: PricedTable
    tally: ExactCounts
    exact: dict[str, Floats]  # by measured column

    @classmethod
    def counted(cls, table: PricedTable, tally: ExactCounts) -> Source:
        priced = table.priced
        numbers = exact_numbers(priced.draft, tally.tally)
        keys = tuple(zip(*tally.keys(list(range(tally.groups))), strict=True)) if priced.question.keys else ()
        columns, _ = columns_of(priced.draft, ReleasedNumbers(numbers, (), keys, tally.groups))
        return cls(table, tally, {one.name: floats(one) for one in columns if one.measured})


def draw(sources: Sequence[Source]) -> list[PublishedTable]:
    """Draw noise as a release does: once for all tables of a family."""
    drawn = draw_together([source.priced.priced for source in sources], [source.tally for source in sources])
    return [
        PublishedTable(
            plan=one.priced.plan,
            raw=raw,
            tidy=None,
            deviations=one.priced.priced.deviations,
            shared=one.priced.priced.draft.noising.shared,
        )
        for one, raw in zip(sources, drawn, strict=True)
    ]


def read(plan: ReleasePlan, session: dp.Session, priced: PricedRelease) -> list[Source]:
    """Add all tables up at once, so that those of a family are of the same rows and can share their noise."""
    shared = share_noise(plan, {table.name: ask_table(session, table).priced for table in priced.tables})
    tables = [replace(table, priced=shared[table.name]) for table in priced.tables]
    tallies = session._desk.engine.run_all([one.priced.stage for one in tables], deadline=Deadline.after(600))
    return [Source.counted(table, tally) for table, tally in zip(tables, tallies, strict=True)]


def floats(column: Any) -> Floats:
    """Return the values of a column."""
    return np.array([float(column.values[row]) for row in range(len(column))])


def misses(sources: Sequence[Source], draws: Sequence[Sequence[PublishedTable]], part: str) -> dict[Any, Floats]:
    """Return errors by table and column: release by release, cell by cell."""
    found: dict[Any, list[Floats]] = {}
    for tables in draws:
        for source, table in zip(sources, tables, strict=True):
            for name, truth in source.exact.items():
                values = floats(getattr(table, part).column(name))
                found.setdefault((table.plan.name, name), []).append(values - truth)
    return {which: np.array(errors) for which, errors in found.items()}


def report_prices(plan: ReleasePlan, priced: PricedRelease) -> None:
    """Compare the split by accuracy with an even one."""
    even = release.price(replace(plan, allowance=replace(plan.allowance, split="even")))
    assert priced.worst is not None
    assert even.worst is not None
    emit(job="split", tables=len(priced.tables), accuracy=float(priced.worst), even=float(even.worst),
         epsilon=priced.epsilon, delta=float(priced.delta))  # fmt: skip


def report_errors(sources: Sequence[Source], raw: dict[Any, Floats], tidy: dict[Any, Floats]) -> None:
    """Compare the priced error of every column with the errors that came out, and say how tidying leans."""
    for source in sources:
        for name in source.exact:
            which = source.priced.name, name
            deviation = float(source.priced.priced.deviations[name])
            errors, moved = raw[which], tidy[which]
            emit(
                job="column",
                table=source.priced.name,
                family=source.priced.plan.family,
                column=name,
                cells=errors.shape[1],
                releases=errors.shape[0],
                priced_deviation=deviation,
                deviation=float(np.sqrt((errors**2).mean())),
                priced_reach=float(source.priced.errors[name]),
                reach=float(np.quantile(np.abs(errors), CONFIDENCE)),
                lean=float(np.abs(errors.mean(axis=0)).max() / deviation * math.sqrt(errors.shape[0])),
                tidied=moved.shape[0],
                tidy_error=float(np.sqrt((moved**2).mean())),
                tidy_bias=float(moved.mean()),
                tidy_bias_deviation=float(moved.mean(axis=1).std() / math.sqrt(moved.shape[0])),
                tidy_bias_most=float(np.abs(moved.mean(axis=0)).max()),
                smallest=float(np.abs(source.exact[name]).min()),
            )


def report_estimates(plan: ReleasePlan, sources: Sequence[Source], draws: Sequence[Sequence[PublishedTable]]) -> None:
    """Compare the weighted squared error of the consistent estimate with that of raw values, release by release."""
    ratios = [ratio for tables in draws for ratio in _ratios(plan, sources, tables)]
    emit(job="estimate", compared=len(ratios), worse=sum(ratio > 1 for ratio in ratios), largest=max(ratios),
         mean=float(np.mean(ratios)))  # fmt: skip


def _ratios(plan: ReleasePlan, sources: Sequence[Source], tables: Sequence[PublishedTable]) -> list[float]:
    truth = {source.priced.name: source.exact for source in sources}
    ratios = []
    for family in dict.fromkeys(table.plan.family for table in tables if table.plan.family is not None):
        members = {table.plan.name: table for table in tables if table.plan.family == family}
        layout = family_layout(plan, members)
        for name in next(iter(members.values())).plan.measures:
            grain, column = raw_column(plan, members, layout, name)
            exact = {table: truth[table][name] / float(grain) for table in members}
            found = estimate(layout, column)
            raw = _distance(layout, column, column.values, exact)
            ratios.append(_distance(layout, column, found, exact) / raw)
    return ratios


def _distance(layout: CellLayout, column: RawColumn, some: Mapping[str, Floats], exact: Mapping[str, Floats]) -> float:
    """Return the squared distance of two versions, as least squares weighs it."""
    one, other = (family_of(layout, replace(column, values=values)) for values in (some, exact))
    return one.length([cells - right for cells, right in zip(one.raw, other.raw, strict=True)])


def main() -> None:
    """Report the plan on the data sets of the folder that the command line names."""
    plan = release.read_release_plan(prepared(Path(sys.argv[1]), Path(".bench") / "release_plan"))
    priced = release.price(plan)
    report_prices(plan, priced)
    session = dp.Session.from_policy(plan.policy, principal="custodian")
    sources = read(plan, session, priced)
    few = 20 if is_quick() else 1
    draws = [draw(sources) for _ in range(RELEASES // few)]
    started = time.process_time()
    tidied = [tidy_tables(plan, tables) for tables in draws[: TIDIED // few]]
    emit(job="tidy", tidied=len(tidied), seconds=(time.process_time() - started) / len(tidied),
         adding_up=sum(adds_up(tables, plan.levels) for tables in tidied), whole=sum(map(is_tidy, tidied)))  # fmt: skip
    report_errors(sources, misses(sources, draws, "raw"), misses(sources, tidied, "tidy"))
    report_estimates(plan, sources, tidied)


if __name__ == "__main__":
    main()
