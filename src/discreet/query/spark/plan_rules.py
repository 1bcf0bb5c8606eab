"""Which DataFrames and clusters are taken: what a task counts must be the same however often and wherever it runs.

A lost task is run again, a slow one twice, and a unit's rows may be read by two attempts. Under one key the kernel
gives the same numbers for the same rows; so the rows must be the same, and each must be somebody's own: a plan is a
scan of files that are listed once, or of rows in the plan itself, with projections, filters and unions on top that are
deterministic and look at one row. All other plans may mix people, or differ from one attempt to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from discreet.errors import Refused

__all__ = ["check_cluster", "check_plan", "check_settings", "files_of", "infers_types", "partitions_read"]

_ROW_BY_ROW = {"Project", "Filter", "SubqueryAlias", "View", "Union", "LocalRelation", "Range", "ResolvedHint"}
_FORMATS = {"ParquetFileFormat", "OrcFileFormat", "CSVFileFormat", "JsonFileFormat", "TextFileFormat"}
_FOLDERS = "spark.sql.sources.partitionColumnTypeInference.enabled"
_IGNORING = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
_LEFT_OUT = "one row that cannot be read removes the rest of its file, so that one person removes many"
_ON_FILES = "hand over spark.read.parquet(…) or spark.table(…) of files, and filter, join and group in the question"


def check_cluster(context: Any) -> None:
    """Refuse a cluster whose machines talk in the clear: rows and the key of the secret choices pass between them."""
    master = str(context.master)
    if master == "local" or master.startswith("local["):
        return
    settings = context.getConf()

    def is_on(name: str) -> bool:
        return str(settings.get(name, "false")).lower() == "true"

    if not (is_on("spark.authenticate") and (is_on("spark.network.crypto.enabled") or is_on("spark.ssl.rpc.enabled"))):
        raise Refused(
            "this Spark cluster has no authentication, or no encryption between its machines",
            reason="rows of people, and the key by which their rows are chosen, pass from one machine to another",
            way_out="start it with spark.authenticate=true and spark.network.crypto.enabled=true, "
            "and spark.io.encryption.enabled=true for files on its disks",
        )


def check_plan(table: str, frame: Any) -> None:
    """Refuse a DataFrame whose rows could differ between two attempts, or mix the rows of several people."""
    check_settings(frame.sparkSession)
    if frame.isStreaming:
        raise _refused(table, "is a stream", "an answer is about one state of the data")
    for node in _nodes(_analysed(frame)):
        kind = _name(node)
        if kind == "LogicalRelation":
            _check_relation(table, node)
        elif kind not in _ROW_BY_ROW:
            reason = "it may mix rows of several people, or give other rows when a lost task is run again"
            raise _refused(table, f"has a step {kind} in its plan", reason)
        if not node.subqueries().isEmpty():
            raise _refused(table, "has a sub-query in its plan", "it may mix rows of several people")
        for expression in _each(node.expressions()):
            _check_expression(table, expression)


def _check_relation(table: str, node: Any) -> None:
    relation = node.relation()
    if _name(relation) != "HadoopFsRelation" or _name(relation.fileFormat()) not in _FORMATS:
        reason = "only files that are listed once are the same rows when a lost task is run again"
        raise _refused(table, "is not read from Parquet, ORC, CSV, JSON or text files", reason)
    _check_reader(table, _options(relation))
    if _name(relation.location()) != "InMemoryFileIndex":
        raise _refused(table, "does not list its files", "files that come or go would change what a task reads")


def _check_reader(table: str, options: dict[str, str]) -> None:
    """Refuse ways of reading in which one row decides whether others are read at all."""
    if options.get("mode") == "failfast":
        raise _refused(table, "fails at a row that cannot be read (mode FAILFAST)", "that it fails tells of that row")
    if options.get("multiline") == "true":
        reason = "a quotation mark in one row may take in all that follow it, so that one person removes many"
        raise _refused(table, "is read with rows of several lines (multiLine)", reason)
    if any(options.get(name) == "true" for name in ("ignorecorruptfiles", "ignoremissingfiles")):
        raise _refused(table, "leaves out what cannot be read (ignoreCorruptFiles, ignoreMissingFiles)", _LEFT_OUT)


def check_settings(session: Any) -> None:
    """Refuse a session of Spark that leaves files out where one row of them cannot be read."""
    found = [name for name in _IGNORING if str(session.conf.get(name, "false")).lower() == "true"]
    if found:
        raise Refused(
            f"this Spark session leaves out what cannot be read: {', '.join(found)}",
            reason=_LEFT_OUT,
            way_out=f"set {' and '.join(found)} to false",
        )


def _check_expression(table: str, expression: Any) -> None:
    if not expression.deterministic():
        reason = "when a lost task is run again its rows would be others, and a person could be counted twice"
        raise _refused(table, "has an expression that is not deterministic, such as rand(), uuid() or an id", reason)
    for one in _expressions(expression):
        if "UDF" in _name(one) or "UserDefined" in _name(one):
            raise _refused(table, "has a user-defined function in its plan", "nobody can tell what it looks at")


def infers_types(frame: Any) -> bool:
    """Whether types follow from rows: those of JSON do, of CSV where it is asked for, and of folders' names."""
    from_folders = str(frame.sparkSession.conf.get(_FOLDERS, "true")).lower() != "false"
    for node in _nodes(_analysed(frame)):
        if _name(node) == "LogicalRelation":
            relation = node.relation()
            asked, kind = _options(relation), _name(relation.fileFormat())
            if from_folders and relation.partitionSchema().length():
                return True
            if kind == "JsonFileFormat" or (kind == "CSVFileFormat" and asked.get("inferschema") == "true"):
                return True
    return False


def files_of(frame: Any, *, now: bool) -> tuple[tuple[str, int, int], ...]:
    """Return path, length and time of every file, as they were listed, or as they are."""
    found = []
    session = frame.sparkSession._jsparkSession
    for node in _nodes(_analysed(frame)):
        if _name(node) == "LogicalRelation":
            for status in _each(node.relation().location().allFiles()):
                path = status.getPath()
                if now:
                    status = path.getFileSystem(session.sessionState().newHadoopConf()).getFileStatus(path)
                found.append((path.toString(), status.getLen(), status.getModificationTime()))
    return tuple(found)


def partitions_read(frame: Any) -> int:
    """Return how many partitions went into a DataFrame that was collected: those before its shuffle, if it has one."""
    query = frame._jdf.queryExecution()
    for node in _steps(query.executedPlan()):
        if _name(node) == "ShuffleExchangeExec":
            return int(node.numMappers())
    return int(query.toRdd().getNumPartitions())


def _steps(node: Any) -> Iterator[Any]:
    """Walk the steps that were run, also those that Spark put into stages meanwhile."""
    yield node
    kind = _name(node)
    if kind == "AdaptiveSparkPlanExec":
        yield from _steps(node.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _steps(node.plan())
    for child in _each(node.children()):
        yield from _steps(child)


def _refused(table: str, what: str, reason: str) -> Refused:
    return Refused(f"table {table!r} {what}", reason=reason, way_out=_ON_FILES)


def _analysed(frame: Any) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in _each(node.children()):
        yield from _nodes(child)


def _expressions(expression: Any) -> Iterator[Any]:
    yield expression
    for child in _each(expression.children()):
        yield from _expressions(child)


def _each(sequence: Any) -> Iterator[Any]:
    """Walk a sequence of Scala."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _options(relation: Any) -> dict[str, str]:
    return {str(key).lower(): str(value).lower() for key, value in _pairs(relation.options())}


def _pairs(mapping: Any) -> Iterator[tuple[Any, Any]]:
    for pair in _each(mapping):
        yield pair._1(), pair._2()


def _name(thing: Any) -> str:
    return str(thing.getClass().getSimpleName()).rstrip("$")
