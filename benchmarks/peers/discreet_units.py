"""Discreet: the time of a question for one unit and for two, and of a shared scan with one choice for a family."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import discreet as dp
from benchmarks.peers.protocol import emit, is_quick
from benchmarks.timing import Timing, once
from discreet.query.bounding.contribution_bounds import BoundedColumn, ContributionBounds
from discreet.query.bounding.rows import RowChunk
from discreet.query.bounding.shared_counts import SharedCount, tally_all

ASKED: Final = 1_000_000  # rows of a question
SCANNED: Final = 4_000_000  # rows of a scan
TURNS: Final = 15
CHUNK: Final = 1 << 17
QUESTIONS: Final = {
    "count by sex": "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex",
    "count, sum and mean by sex": "SELECT sex, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS a FROM t GROUP BY sex",
}
KEYS: Final = {"sex": (0, 2), "age": (1, 20), "region": (2, 10)}
GROUPINGS: Final = ("", "sex", "age", "region", "sex age", "sex region", "age region", "sex age region")


def report(job: str, jobs: Mapping[str, Callable[[], object]], *, turns: int, **labels: object) -> None:
    """Time several jobs in turns; tell the least CPU time, and the least and the median by the clock on the wall."""
    timed: dict[str, list[Timing]] = {name: [] for name in jobs}
    for call in jobs.values():
        call()  # Workers start with the first question.
    for _ in range(turns):
        for name, call in jobs.items():
            timed[name].append(once(call))
    for name, found in timed.items():
        walls = [each.wall for each in found]
        emit(
            job=job,
            way=name,
            cpu=min(each.cpu for each in found),
            wall=min(walls),
            median=statistics.median(walls),
            turns=turns,
            **labels,
        )


def sessions(rows: int) -> dict[str, dp.Session]:
    """Open the same table for households alone, for people alone, and for both."""
    drawn = np.random.default_rng(1)
    table = pa.table(
        {
            "household": drawn.integers(0, rows * 2 // 5, rows),
            "person": drawn.integers(1, 6, rows),
            "sex": drawn.integers(1, 3, rows),
            "income": drawn.integers(0, 100_000, rows),
        }
    )
    person = dp.Unit(["household", "person"], max_rows_per_group=3, max_groups=2)
    units: dict[str, dp.Unit | dp.Chain] = {
        "household": dp.Unit("household", max_rows_per_group=3, max_groups=2),
        "person": person,
        "both": dp.Chain(dp.Unit("household"), person, max_inner=3),
    }
    plenty = dp.Budget(epsilon=1000)
    return {
        name: dp.Session(
            {"t": table},
            unit=unit,
            budget=[plenty, plenty] if isinstance(unit, dp.Chain) else plenty,
            columns={"t": {"sex": dp.categories([1, 2]), "income": dp.between(0, 100_000, whole=True)}},
            ledger="memory",
            dataset="t",
            principal="bench",
        )
        for name, unit in units.items()
    }


def show_questions() -> None:
    """Ask the same questions for one unit and for two, each paid anew."""
    rows = ASKED // 10 if is_quick() else ASKED
    opened = sessions(rows)
    for job, question in QUESTIONS.items():
        jobs = {name: _asking(session, question) for name, session in opened.items()}
        report(job, jobs, turns=2 if is_quick() else TURNS, rows=rows)


def _asking(session: dp.Session, question: str) -> Callable[[], object]:
    return lambda: session.sql(question, epsilon=0.01).release()


def worlds(rows: int) -> dict[str, NDArray[np.int64]]:
    """Whose each row is: units with one row, a few, or many."""
    drawn = np.random.default_rng(2)
    sizes = np.minimum(1 + drawn.poisson(1.5, rows), 12)
    made = {
        "one row a unit": np.arange(rows),
        "households, 2.5 rows": np.repeat(np.arange(rows), sizes)[:rows],
        "planes, 80 rows": drawn.integers(0, max(1, rows // 80), rows),
    }
    return {name: drawn.permutation(units) for name, units in made.items()}


def show_families() -> None:
    """Count eight tables in one scan: by a choice of rows for each table, and by one for all."""
    rows = SCANNED // 20 if is_quick() else SCANNED
    columns = [BoundedColumn(low=0, high=high) for high in (1, 19, 9, 999)]
    income = ((3, BoundedColumn(low=0, high=999, total=True)),)
    own = [_part(grouping, income) for grouping in GROUPINGS]
    one = [replace(part, limits=ContributionBounds(max_groups=1, max_rows=4), family="all") for part in own]
    for name, units in worlds(rows).items():
        chunks = _chunks(units, columns)
        jobs = {
            "own choices": lambda: tally_all(chunks, carried=columns, parts=own),  # noqa: B023
            "one choice": lambda: tally_all(chunks, carried=columns, parts=one),  # noqa: B023
        }
        report(name, jobs, turns=2 if is_quick() else TURNS // 3, rows=rows)


def _part(grouping: str, income: tuple[tuple[int, BoundedColumn], ...]) -> SharedCount:
    keys = tuple(KEYS[key] for key in grouping.split())
    groups = math.prod(size for _, size in keys)
    limits = ContributionBounds(max_groups=min(3, groups), max_rows=4)
    return SharedCount(limits=limits, keys=keys, measures=income)


def _chunks(units: NDArray[np.int64], columns: list[BoundedColumn]) -> list[RowChunk]:
    drawn = np.random.default_rng(3)
    values = [drawn.integers(0, column.high + 1, len(units)) for column in columns]
    return [
        RowChunk(units=pa.array(units[at : at + CHUNK]), measures=tuple(each[at : at + CHUNK] for each in values))
        for at in range(0, len(units), CHUNK)
    ]


def main() -> None:
    """Time both."""
    show_questions()
    show_families()


if __name__ == "__main__":
    main()
