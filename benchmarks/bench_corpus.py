"""Private SQL: how much of what analysts ask is answered, refused, or answered wrongly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.corpus.judge import Verdict, judge
from benchmarks.corpus.names import HUGE, TRIALS, WHALE_ROWS
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import Query, queries
from benchmarks.corpus.truth import truths
from benchmarks.corpus.worlds import write_worlds
from benchmarks.environments import OURS, ROOT
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table

__all__ = ["measure", "tables"]

SCRIPTS: Final = {OURS: "discreet_corpus", "smartnoise-sql": "smartnoise_sql_corpus", "pyqrlew": "pyqrlew_corpus"}
NAMES: Final = {OURS: "Discreet", "smartnoise-sql": "SmartNoise SQL", "pyqrlew": "Qrlew"}
DOMAINS: Final = {
    "tpch": "orders (TPC-H-like)",
    "adult": "census: Adult",
    "pums": "census: PUMS",
    "retail": "retail",
    "flights": "flights",
    "hospital": "hospital",
}
FEWEST: Final = 150


def measure(*, quick: bool, data: Path | None) -> Results:
    """Ask every subject every query in every trial, and keep the verdicts; then ours on real data, if there are any."""
    for dataset in DATASETS.values():
        write_worlds(ROOT / ".bench" / "corpus", dataset)
    gathering = gather(quick=quick)
    for subject, script in SCRIPTS.items():
        if (environment := gathering.environment(subject)) is not None:
            gathering.run(environment, script)
    gathering.rows = _verdicts(gathering.rows)
    if data is not None and (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_real", str(data.resolve()))
        gathering.failures = {
            name.replace(str(data.resolve()), "DATA"): why for name, why in gathering.failures.items()
        }
    return gathering.results("corpus")


def _verdicts(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace answers by what they are worth."""
    said: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        said.setdefault((row["subject"], row["query"]), {})[row["trial"]] = row
    true: dict[str, dict[str, Any]] = {}
    for dataset in DATASETS.values():
        true |= truths(dataset, tuple(query for query in queries() if query.dataset == dataset.name))
    asked = {query.id: query for query in queries()}
    return [
        _row(subject, asked[name], judge(asked[name], trials, true[name])) for (subject, name), trials in said.items()
    ]


def _row(subject: str, query: Query, verdict: Verdict) -> dict[str, Any]:
    row: dict[str, Any] = {"subject": subject, "query": query.id, "expected": query.expected}
    return row | {"outcome": verdict.outcome, "reason": verdict.reason}


def counts(results: Results, subject: str, dataset: str | None, *, answerable: bool) -> Counter[str]:
    """Count the outcomes of one subject."""
    return Counter(
        row["outcome"]
        for row in results.rows
        if row["subject"] == subject
        and "outcome" in row
        and (dataset is None or row["query"].startswith(f"{dataset}/"))
        and (row["expected"] == "answered") == answerable
    )


def tables(results: Results) -> tuple[Table, ...]:
    """Show the shares, and every query that some subject answers wrongly."""
    return shares(results), wrong_answers(results)


def shares(results: Results) -> Table:
    """Count by data set who answers, refuses and errs."""
    rows = [_share(results, name, dataset) for dataset, name in DOMAINS.items()]
    return Table(
        title="Queries of analysts: answered / refused / answered wrongly",
        columns=("data", "to answer", *NAMES.values(), "to refuse", *(f"{name} " for name in NAMES.values())),
        rows=(*rows, _share(results, "all", None)),
        remarks=(
            f"{_total(results)} queries in `benchmarks/corpus/*.sql`, on seeded stand-ins with the schema of the real "
            "data. " + ", ".join(map(str, goals(results))) + ".",
            f"Every subject is asked at epsilon {HUGE:,} (ours takes at most 100; that limit is lifted for this). "
            "Wrong means: with limits that cut nothing, more than 2 % of the column's largest value away from DuckDB "
            "without privacy (10 % for quantiles and extremes; counts may be off by one); fewer than three quarters of "
            f"the groups; or one new unit with {3 * WHALE_ROWS:,} rows of each table, of which "
            f"{TRIALS[1].rows_in_all} may count, shows by its name, by a text that it alone has, or by a change of a "
            "count or sum that so few rows cannot make.",
            "Peers get their own spelling where there is one: dates as plain literals, names that are no keywords, the "
            "query without BigQuery's clause. SmartNoise SQL runs on DuckDB through its PostgreSQL reader, Qrlew's "
            "PostgreSQL on DuckDB.",
            *_on_real_data(results),
            *results.missing(),
        ),
    )


def _on_real_data(results: Results) -> tuple[str, ...]:
    real = [row["answered"] for row in results.rows if row.get("trial") == "real"]
    said = f"On the real data at epsilon 1, at most 3 groups × 4 rows a unit, ours answers {sum(real)} of {len(real)}."
    return (said,) if real else ()


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge ourselves: everything as expected, nothing wrong."""
    ours = [row for row in results.rows if row["subject"] == OURS and "outcome" in row]
    expected = [row for row in ours if row["expected"].partition(":")[0] == row["outcome"]]
    return (
        Goal(f"at least {FEWEST}", _total(results) >= FEWEST),
        Goal("ours all as expected", len(ours) == len(expected) > 0),
    )


def _total(results: Results) -> int:
    return len({row["query"] for row in results.rows})


def _share(results: Results, name: str, dataset: str | None) -> tuple[str, ...]:
    cells = [name]
    for answerable in (True, False):
        found = [counts(results, subject, dataset, answerable=answerable) for subject in NAMES]
        cells += [str(max(count.total() for count in found)), *map(_three, found)]
    return tuple(cells)


def _three(count: Counter[str]) -> str:
    return " / ".join(str(count[outcome]) for outcome in ("answered", "refused", "wrong")) if count else MISSING


def wrong_answers(results: Results) -> Table:
    """List what is answered wrongly, and why it is called so."""
    rows = [row for row in results.rows if row.get("outcome") == "wrong"]
    return Table(
        title="Answered wrongly",
        columns=("query", "who", "why"),
        rows=tuple((row["query"], NAMES[row["subject"]], row["reason"]) for row in rows),
    )
