"""Ask a subject the whole corpus in every trial, and print what it answers or why it does not."""

from __future__ import annotations

import decimal
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.corpus.names import TRIALS, Trial
from benchmarks.corpus.policies import DATASETS, Dataset
from benchmarks.corpus.queries import Query, queries, spelling
from benchmarks.peers.protocol import emit

__all__ = ["Ask", "ask_all", "load", "world"]

MOST_ROWS = 500
SECONDS = 60

Ask: TypeAlias = Callable[[Query, str], Sequence[Sequence[Any]]]  # a query and its text, to rows


class Late(BaseException):
    """An answer that did not come in time; no library's own handler may take it for an error of its own."""


def world(trial: Trial, dataset: Dataset) -> Path:
    """Return where the tables of a trial lie."""
    return Path(".bench") / "corpus" / trial.world / dataset.name


def load(connection: Any, folder: Path) -> dict[str, int]:
    """Copy all tables of a folder into a DuckDB connection, and count their rows."""
    for path in sorted(folder.glob("*.parquet")):
        connection.execute(f"CREATE TABLE {path.stem} AS SELECT * FROM read_parquet('{path}')")
    return {
        path.stem: connection.execute(f"SELECT COUNT(*) FROM {path.stem}").fetchone()[0]
        for path in folder.glob("*.parquet")
    }


def ask_all(subject: str, start: Callable[[Dataset, Trial], Ask]) -> None:
    """Report every query of every trial."""
    for trial in TRIALS:
        for dataset in DATASETS.values():
            ask = start(dataset, trial)
            for query in queries():
                if query.dataset == dataset.name:
                    emit(trial=trial.world, query=query.id, **_asked(ask, query, spelling(query, subject)))


def _asked(ask: Ask, query: Query, sql: str) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        with _within(SECONDS):
            rows = ask(query, sql)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a peer may say no in any way it likes, even by a panic
        return {"refused": _first_line(error)}
    milliseconds = round((time.perf_counter() - began) * 1e3, 1)
    return {"rows": [[_plain(value) for value in row] for row in rows[:MOST_ROWS]], "milliseconds": milliseconds}


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Late(f"no answer within {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def _first_line(error: BaseException) -> str:
    text = next(iter(str(error).strip().splitlines()), "")
    return re.sub(r" at 0x[0-9a-f]+", "", f"{type(error).__name__}: {text}")[:200]


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
