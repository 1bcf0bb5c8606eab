"""Tables in Spark: it reads, prunes and spreads rows; tasks count with the kernel of all engines; the driver adds up.

No noise is drawn anywhere but in the process of the session, which is the driver. The keys of secret choices travel in
a broadcast, together with the question, and in nothing else: no setting, plan, name of a job or text of SQL has them.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, final

from discreet.custodian_debug import ConstantFailure
from discreet.errors import AnswerFailed, InvalidParameter, Refused
from discreet.frames.tables import arrow_schema, arrow_table
from discreet.noise.source import read
from discreet.query.ast import Join, JoinKind, is_private
from discreet.query.catalogue import CatalogueColumn
from discreet.query.engine import Deadline, ExactCounts, Stage
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.duckdb_sandbox import Progress
from discreet.query.engines.shared_scans import keys_needed
from discreet.query.engines.sql_queries import stored_names
from discreet.query.engines.tables import check_names, check_public, kinds_of, sql_types
from discreet.query.policy import PublicTable
from discreet.query.spark.partition_reports import Report, check_parts, check_sources, put_together
from discreet.query.spark.partition_tasks import (
    ANCHOR,
    ROUTED,
    Question,
    check_units,
    count_nobody,
    count_part,
    count_rows,
    joins_of,
    private_tables,
    route,
    versions,
)
from discreet.query.spark.plan_rules import (
    check_cluster,
    check_plan,
    check_settings,
    files_of,
    infers_types,
    partitions_read,
)
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SparkEngine", "is_spark"]

T = TypeVar("T")

_MEMORY = 2 << 30
_SETUP = 600.0  # Seconds for reading a public table.
_KEY = 32  # bytes
_BEAT = 0.1  # seconds
_PART = 1 << 26  # Bytes of files for each part.
_MOST_PARTS = 4096
_ANCHORS = 2  # Partitions of the driver's word which parts there are: Spark unites single ones with those of tables.
_TYPES = {
    *("boolean", "byte", "short", "integer", "long", "float", "double"),
    *("string", "char", "varchar", "date", "timestamp", "timestamp_ntz"),
}
_TRIED: set[str] = set()  # Applications whose executors were seen to have our versions.


def is_spark(table: Any) -> bool:
    """Tell a DataFrame of Spark by its type, without loading Spark."""
    homes = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(table).__mro__}
    return ("pyspark", "DataFrame") in homes


@final
@dataclass(frozen=True, slots=True)
class _SparkTable:
    """A DataFrame, the types that its columns have in the count, and its files as they were listed."""

    frame: Any
    types: Mapping[str, str]
    inferred: bool
    files: tuple[tuple[str, int, int], ...]

    def is_unchanged(self) -> bool:
        """Whether the files are those that were listed. Looks at no row."""
        try:
            return files_of(self.frame, now=True) == self.files
        except Exception:  # noqa: BLE001, of Py4J, where a file is gone.
            return False


@final
class SparkEngine:
    """Private tables that are DataFrames of one Spark session; public ones of any kind, which every task gets."""

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        memory: int = _MEMORY,
        parts: int | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        check_names(list(tables), what="tables")
        self._progress, self._parts = on_progress, parts
        private = {name: table for name, table in tables.items() if not isinstance(table, PublicTable)}
        self._spark = _session_of(list(private.values()))
        check_cluster(self._spark.sparkContext)
        self._memory = min(memory, _task_memory(self._spark.sparkContext) or memory)
        self._tables = {name: _opened(name, frame) for name, frame in private.items()}
        _check_executors(self._spark)
        public = {name: table for name, table in tables.items() if isinstance(table, PublicTable)}
        self._public = {name: _public_rows(name, table.table) for name, table in public.items()}
        self._local = DuckDBEngine({name: PublicTable(table) for name, table in self._public.items()})

    def columns(self, table: str) -> Mapping[str, Kind]:
        return kinds_of(table, self._tables[table].types) if table in self._tables else self._local.columns(table)

    def infers_types(self, table: str) -> bool:
        return table in self._tables and self._tables[table].inferred

    def public_columns(self, table: str) -> Mapping[str, CatalogueColumn]:
        check_public(table, self._public)
        return self._local.public_columns(table)

    def public_is_unique(self, table: str, columns: frozenset[str]) -> bool:
        check_public(table, self._public)
        return self._local.public_is_unique(table, columns)

    def public_rows(self, table: str) -> int:
        check_public(table, self._public)
        return self._local.public_rows(table)

    def check_unchanged(self) -> None:
        """Refuse if the files of a table are not those that were listed. Reads no row: ask before a charge."""
        if self._spark.sparkContext._jsc is None:
            raise Refused("the Spark session of these tables was stopped: start one, and open another session on it")
        check_settings(self._spark)
        found = [name for name, table in self._tables.items() if not table.is_unchanged()]
        if found:
            raise Refused(
                f"the files of table {', '.join(map(repr, found))} are not those that its DataFrame lists",
                reason="tasks that run again would read other rows than those that ran before",
                way_out="make the DataFrame again, and open another session on it",
            )

    def check_stages(self, stages: Sequence[Stage]) -> None:
        """Refuse what cannot be spread. Depends on nothing private: ask before a charge."""
        for stage in stages:
            if stage.max_inner is not None:
                raise _unsupported("a unit within a unit (dp.Chain)", "leave out the inner unit")
            if any(_does_not_add_up(join, rows=stage.unit is None) for join in joins_of(stage.source)):
                raise _unsupported("a join that keeps public rows, or of rows with rows", "join on the unit")
        some = [stage for stage in stages if stage.unit is not None]
        for nodes in private_tables(some).values():
            units = {next((c for c in node.columns if c.field.name == node.unit), None) for node in nodes}
            if len({column and (column.column, column.unit_key, column.field.facts.kind) for column in units}) > 1:
                raise _unsupported("a table with two units", "declare one unit for all of them")
        check_units(self._question(some, _SETUP, secrets=(), routing=(bytes(_KEY), bytes(_KEY))))

    def run(self, stage: Stage, *, deadline: Deadline) -> ExactCounts:
        return self.run_all((stage,), deadline=deadline)[0]

    def run_all(self, stages: Sequence[Stage], *, deadline: Deadline) -> tuple[ExactCounts, ...]:
        self.check_stages(stages)
        found: dict[int, ExactCounts] = {}
        keys = iter([(read(_KEY), read(_KEY)) for _ in range(keys_needed(stages))])
        with ConstantFailure():
            self._check()
            for places in _alike(stages):
                some = [stages[place] for place in places]
                secrets = tuple(next(keys) for _ in range(keys_needed(some)))
                question = self._question(some, deadline.left, secrets=secrets, routing=(read(_KEY), read(_KEY)))
                found |= dict(zip(places, self._counted(question, deadline), strict=True))
            self._check()
        return tuple(found[place] for place in range(len(stages)))

    def close(self) -> None:
        """Let go of public tables; the Spark session is its owner's."""
        self._local.close()

    def _check(self) -> None:
        check_settings(self._spark)
        if not all(table.is_unchanged() for table in self._tables.values()):
            raise AnswerFailed

    def _question(self, stages: Sequence[Stage], seconds: float, **keys: Any) -> Question:
        named = private_tables(stages)
        needed = {
            name: sorted({one for node in nodes for column in node.columns for one in stored_names(column)})
            for name, nodes in named.items()
        }
        return Question(
            stages=tuple(stages),
            types={name: {one: self._tables[name].types[one] for one in needed[name]} for name in named},
            public=self._public,
            parts=self._parts or self._fitting(named),
            memory=self._memory,
            seconds=seconds,
            **keys,
        )

    def _fitting(self, names: Mapping[str, Any]) -> int:
        """Choose so many parts that each has a piece of the files, and every core has one."""
        size: int = sum(length for name in names for _, length, _ in self._tables[name].files)
        cores = int(self._spark.sparkContext.defaultParallelism)
        return min(_MOST_PARTS, max(cores, math.ceil(size / _PART)))

    def _counted(self, question: Question, deadline: Deadline) -> tuple[ExactCounts, ...]:
        """Broadcast a question, let tasks count, and put together what they report."""
        context = self._spark.sparkContext
        told = context.broadcast(question.to_bytes())
        try:
            rows = question.stages[0].unit is None
            with _job(context, deadline, self._progress):
                reports = self._of_rows(question, told) if rows else self._of_parts(question, told)
        finally:
            with suppress(Exception):
                told.destroy()
        states = [report.states for report in reports if report.states]
        return put_together(question.stages, states or [count_nobody(question)])

    def _of_parts(self, question: Question, told: Any) -> list[Report]:
        """Route rows to the parts of their units, and count every part in one task."""
        anchors = self._spark.range(0, question.parts, 1, _ANCHORS).selectExpr(
            *("CAST(id AS INT) AS part", "-1 AS source", "-1 AS table", f"{ANCHOR} AS place"),
            *("CAST(0 AS BIGINT) AS rows", "CAST(NULL AS BINARY) AS body"),
        )
        for name in question.tables:
            anchors = anchors.unionAll(self._pruned(question, name).mapInArrow(_router(told, name), ROUTED))
        counted = anchors.repartitionById(question.parts, "part").mapInArrow(_counter(told), "report binary")
        reports = _collected(counted)
        check_parts(reports, question.parts, partitions_read(counted) - _ANCHORS)
        return reports

    def _of_rows(self, question: Question, told: Any) -> list[Report]:
        """Count rows where they are, those of each table in a job of its own: Spark unites partitions of several."""
        every: list[Report] = []
        for name in question.tables:
            counted = self._pruned(question, name).mapInArrow(_row_counter(told, name), "report binary")
            reports = _collected(counted)
            check_sources(reports, partitions_read(counted))
            every += reports
        return every

    def _pruned(self, question: Question, name: str) -> Any:
        from pyspark.sql.functions import col

        columns = [col(f"`{one.replace('`', '``')}`") for one in question.types[name]]
        return self._tables[name].frame.select(*columns)


def _collected(counted: Any) -> list[Report]:
    return [Report.from_bytes(bytes(row[0])) for row in counted.collect()]


def _does_not_add_up(join: Join, *, rows: bool) -> bool:
    """Whether a join of all rows is not the joins of its parts together: a public row that is kept is in every part."""
    private = is_private(join.left), is_private(join.right)
    return (join.kind is JoinKind.LEFT and private == (False, True)) or (rows and all(private))


def _alike(stages: Sequence[Stage]) -> list[list[int]]:
    """Put the places of stages with a unit together, which one shuffle answers; those of rows are alone."""
    units = [place for place, stage in enumerate(stages) if stage.unit is not None]
    return [*([units] if units else []), *([place] for place, stage in enumerate(stages) if stage.unit is None)]


# --- tasks: functions that Spark sends to executors, with a broadcast and a name of a table and nothing else. ---


def _router(told: Any, table: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def routed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with ConstantFailure():
            question = Question.from_bytes(told.value)
        return route(question, table, _place(), batches)

    return routed


def _counter(told: Any) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with ConstantFailure():
            question = Question.from_bytes(told.value)
        yield _written(count_part(question, batches))

    return counted


def _row_counter(told: Any, table: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with ConstantFailure():
            question = Question.from_bytes(told.value)
        for report in count_rows(question, table, _place(), batches):
            yield _written(report)

    return counted


def _written(report: Report) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.record_batch([pa.array([report.to_bytes()], pa.binary())], ["report"])


def _place() -> int:
    """Return the number of the partition that this task reads, the same in every attempt."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


@contextmanager
def _job(context: Any, deadline: Deadline, progress: Progress | None) -> Iterator[None]:
    """Run jobs under a name of their own, and cancel them at the deadline."""
    group, done, allowed = f"discreet-{next(_NUMBERS)}", threading.Event(), deadline.left
    before = [(name, context.getLocalProperty(name)) for name in _OF_GROUPS]

    def watch() -> None:
        while not done.wait(min(_BEAT, max(deadline.left, 0.001))):
            if progress is not None:
                progress(allowed - deadline.left, allowed)
            if not deadline.left:
                context.cancelJobGroup(group)

    watcher = threading.Thread(target=watch, daemon=True)
    context.setJobGroup(group, "a question of discreet", interruptOnCancel=True)
    watcher.start()
    try:
        with _hushed():
            yield
    finally:
        done.set()
        watcher.join()
        for name, value in before:
            context.setLocalProperty(name, value)


@contextmanager
def _hushed() -> Iterator[None]:
    """Turn off loggers that print an error before anybody can catch it, with the value that it is about.

    They are on again when the last of all questions that run at once is done.
    """
    with _HUSH:
        if not _HUSHED:
            _WERE_ON.extend(logger for name in _TELLING if not (logger := logging.getLogger(name)).disabled)
        _HUSHED.append(None)
        for logger in _WERE_ON:
            logger.disabled = True
    try:
        yield
    finally:
        with _HUSH:
            _HUSHED.pop()
            while not _HUSHED and _WERE_ON:
                _WERE_ON.pop().disabled = False


_HUSH = threading.Lock()
_HUSHED: list[None] = []  # One for each question that runs.
_WERE_ON: list[logging.Logger] = []
_NUMBERS = itertools.count(1)  # of questions, for the names of their jobs
_TELLING = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_OF_GROUPS = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


# --- opening ---


def _session_of(frames: Sequence[Any]) -> Any:
    """Return the one session of all frames."""
    if any(type(frame).__module__.startswith("pyspark.sql.connect") for frame in frames):
        raise Refused(
            "DataFrames of Spark Connect are not taken yet",
            reason="their plans cannot be looked at, and a broadcast has no way to the executors",
            way_out="open the session in the driver's own process, with SparkSession.builder.master(…)",
        )
    sessions = {id(frame.sparkSession): frame.sparkSession for frame in frames}
    if len(sessions) != 1:
        raise InvalidParameter("all private tables must be DataFrames of one Spark session")
    (session,) = sessions.values()
    return session


def _task_memory(context: Any) -> int | None:
    """Return what Spark allows the Python of one task, if it is told how much that is."""
    settings = context.getConf()
    allowed = settings.get("spark.executor.pyspark.memory")
    if allowed is None:
        return None
    size = int(context._jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(allowed))
    return size // max(1, int(settings.get("spark.executor.cores", "1")))


def _opened(name: str, frame: Any) -> _SparkTable:
    """Look at the plan and the schema of a frame, at no row."""
    check_plan(name, frame)
    check_names([field.name for field in frame.schema.fields], what=f"columns of table {name!r}")
    types = sql_types(arrow_schema(_empty(frame)))
    return _SparkTable(frame, types, infers_types(frame), files_of(frame, now=False))


def _offered(frame: Any) -> list[Any]:
    """Return the fields of plain types; nested ones, bytes and intervals are left out."""
    return [
        field
        for field in frame.schema.fields
        if field.dataType.typeName() in _TYPES or field.dataType.typeName().startswith("decimal")
    ]


def _empty(frame: Any) -> pa.Table:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    types = [(field.name, to_arrow_type(field.dataType, timezone="UTC")) for field in _offered(frame)]
    return pa.schema(types).empty_table()


def _public_rows(name: str, table: Any) -> pa.Table:
    """Read a public table, of whatever kind it is, into memory: every task gets it."""
    if is_spark(table):
        from pyspark.sql.functions import col

        names = [f"`{field.name.replace('`', '``')}`" for field in _offered(table)]
        return arrow_table(table.select(*map(col, names)).toArrow())
    with closing(DuckDBEngine({name: PublicTable(table)})) as engine:
        rows = arrow_table(engine.public_table(name))
        if kinds_of(name, sql_types(rows.schema)) != dict(engine.columns(name)):
            raise Refused(f"public table {name!r} has types that cannot be sent to tasks: hand it over as Arrow")
    return rows


def _check_executors(session: Any) -> None:
    """Refuse executors with other versions than the driver: one look at each core for each application."""
    import pyarrow as pa

    context, ours = session.sparkContext, versions()
    if context.applicationId in _TRIED:
        return

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            from discreet.query.spark.partition_tasks import versions

            here = ", ".join(versions())
        except ImportError:
            here = ""
        for _ in batches:
            yield pa.record_batch([pa.array([here], pa.string())], ["told"])

    cores = max(1, context.defaultParallelism)
    try:
        found = {row[0] for row in session.range(0, cores, 1, cores).mapInArrow(told, "told string").collect()}
    except Exception:  # noqa: BLE001, of Py4J; nothing private was read, and its text names machines.
        found = {""}
    if found != {", ".join(ours)}:
        raise Refused(
            "the executors of this Spark cluster do not have what the driver has",
            reason=f"the driver counts with {', '.join(ours)}, and so must all, or numbers do not belong together",
            way_out="set PYSPARK_PYTHON to the driver's own Python, or pack its environment and hand it over with "
            "spark.archives, as docs/engines.md shows",
        )
    _TRIED.add(context.applicationId)


def _unsupported(what: str, way_out: str) -> Refused:
    return Refused(
        f"{what}: not on Spark yet", reason="it was not proven for rows that are spread over tasks", way_out=way_out
    )
