"""An engine that spreads rows over tasks as Spark does, all of them in this process: for the laws of all engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.frames.tables import arrow_table
from discreet.noise.source import read
from discreet.query.engine import Deadline, ExactCounts, Stage
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.shared_scans import keys_needed
from discreet.query.engines.tables import sql_types
from discreet.query.policy import PublicTable
from discreet.query.spark.partition_reports import Report, check_parts, check_sources, put_together
from discreet.query.spark.partition_tasks import (
    ANCHOR,
    Question,
    count_nobody,
    count_part,
    count_rows,
    private_tables,
    route,
)

MEMORY = 1 << 29


class SpreadHere:
    """Rows of every table are cut into sources at random; `spoil` may change what the driver gets."""

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        parts: int = 2,
        sources: int = 2,
        seed: int = 0,
        threads: int = 1,
        spoil: Callable[[list[Report]], list[Report]] = lambda reports: reports,
    ) -> None:
        self._local = DuckDBEngine(tables)
        self._private = {n: arrow_table(t) for n, t in tables.items() if not isinstance(t, PublicTable)}
        self._public = {n: arrow_table(t.table) for n, t in tables.items() if isinstance(t, PublicTable)}
        self._parts, self._sources, self._spoil = parts, sources, spoil
        self._random = np.random.default_rng(seed)
        self.columns, self.infers_types = self._local.columns, self._local.infers_types
        self.public_columns, self.public_rows = self._local.public_columns, self._local.public_rows
        self.public_is_unique, self.check_unchanged = self._local.public_is_unique, self._local.check_unchanged
        self.close = self._local.close

    def run(self, stage: Stage, *, deadline: Deadline) -> ExactCounts:
        return self.run_all((stage,), deadline=deadline)[0]

    def run_all(self, stages: Sequence[Stage], *, deadline: Deadline) -> tuple[ExactCounts, ...]:
        if len({stage.unit is None for stage in stages}) != 1:
            return tuple(self.run(stage, deadline=deadline) for stage in stages)
        named = private_tables(stages)
        secrets = tuple((read(32), read(32)) for _ in range(keys_needed(stages)))
        question = Question(
            stages=tuple(stages),
            types={name: sql_types(self._private[name].schema) for name in named},
            public=self._public,
            secrets=secrets,
            routing=(b"r" * 32, b"o" * 32),
            parts=self._parts,
            memory=MEMORY,
            seconds=deadline.left,
        )
        question = Question.from_bytes(question.to_bytes())
        rows = stages[0].unit is None
        reports = self._of_rows(question) if rows else self._of_parts(question)
        reports = self._spoil([Report.from_bytes(report.to_bytes()) for report in reports])
        many = self._sources * len(question.tables)
        check_sources(reports, many) if rows else check_parts(reports, self._parts, many)
        states = [report.states for report in reports if report.states]
        return put_together(question.stages, states or [count_nobody(question)])

    def _of_parts(self, question: Question) -> list[Report]:
        routed = [pa.table(list(zip(*self.anchors(), strict=True)), self.names())]
        source = 0
        for name in question.tables:
            for rows in self._cut(self._private[name]):
                routed += [pa.Table.from_batches([one]) for one in route(question, name, source, rows)]
                source += 1
        whole = pa.concat_tables([one.cast(routed[-1].schema) for one in routed])
        parts = np.asarray(whole.column("part"))
        return [
            count_part(question, whole.filter(pa.array(parts == part)).to_batches(max_chunksize=5))
            for part in range(self._parts)
        ]

    def anchors(self) -> list[tuple[Any, ...]]:
        return [(part, -1, -1, ANCHOR, 0, None) for part in range(self._parts)]

    @staticmethod
    def names() -> list[str]:
        return ["part", "source", "table", "place", "rows", "body"]

    def _of_rows(self, question: Question) -> list[Report]:
        cut = [(name, rows) for name in question.tables for rows in self._cut(self._private[name])]
        return [one for source, (name, rows) in enumerate(cut) for one in count_rows(question, name, source, rows)]

    def _cut(self, table: pa.Table) -> list[list[pa.RecordBatch]]:
        where = self._random.integers(0, self._sources, table.num_rows)
        return [table.filter(pa.array(where == one)).to_batches(max_chunksize=40) for one in range(self._sources)]
