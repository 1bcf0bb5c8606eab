"""What a column of a table means, in words, from the plan alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from discreet.query import Declared
from discreet.release.plan import Level, ReleasePlan, TablePlan

__all__ = ["ColumnMeaning", "meanings_of"]

_PLAIN = (
    (re.compile(r"COUNT\(\*\)", re.I), "number of rows"),
    (re.compile(r"COUNT\(DISTINCT (?P<x>.+)\)", re.I), "number of different values of {x}"),
    (re.compile(r"COUNT\((?P<x>.+)\)", re.I), "number of rows that have a value of {x}"),
    (re.compile(r"SUM\((?P<x>.+)\)", re.I), "sum of {x}"),
    (re.compile(r"AVG\((?P<x>.+)\)", re.I), "mean of {x}"),
    (re.compile(r"MEDIAN\((?P<x>.+)\)", re.I), "median of {x}"),
    (re.compile(r"MIN\((?P<x>.+)\)", re.I), "a low value of {x}, near its smallest"),
    (re.compile(r"MAX\((?P<x>.+)\)", re.I), "a high value of {x}, near its largest"),
    (re.compile(r"(STDDEV|STDDEV_SAMP|STDDEV_POP)\((?P<x>.+)\)", re.I), "standard deviation of {x}"),
    (re.compile(r"(VARIANCE|VAR_SAMP|VAR_POP)\((?P<x>.+)\)", re.I), "variance of {x}"),
    (re.compile(r"MODE\((?P<x>.+)\)", re.I), "a frequent value of {x}"),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMeaning:
    """What is known of a column: how it is computed, in SQL and in words, and which declared columns it reads."""

    expression: str
    words: str
    reads: Mapping[str, Declared]
    level: Level | None = None


def meanings_of(plan: ReleasePlan, table: TablePlan) -> dict[str, ColumnMeaning]:
    """Return the meaning of each column of a table by its name."""
    expressions = {**_selected(table.sql), **table.measures, **{name: name for name in table.by}}
    levels = {level.name: level for level in plan.levels}
    declared = {name: known for source in plan.policy.tables.values() for name, known in source.columns.items()}
    return {name: _meaning(name, said, levels, declared) for name, said in expressions.items()}


def _meaning(
    name: str, expression: str, levels: Mapping[str, Level], declared: Mapping[str, Declared]
) -> ColumnMeaning:
    level = levels.get(name)
    said = name if level is not None else expression
    words = set(re.findall(r"[A-Za-z_]\w*", level.of if level is not None else said))
    reads = {column: known for column, known in declared.items() if column in words}
    return ColumnMeaning(expression=said, words=_in_words(said, level), reads=reads, level=level)


def _in_words(expression: str, level: Level | None) -> str:
    if level is not None:
        return f"level {level.name}: groups of {level.of}"
    for form, words in _PLAIN:
        found = form.fullmatch(expression.strip())
        if found is not None:
            return words.format(**found.groupdict())
    return expression


@lru_cache(maxsize=256)
def _selected(sql: str) -> Mapping[str, str]:
    """Return what each column is selected as; nothing for a text that only our own reader understands."""
    import sqlglot
    from sqlglot import exp

    try:
        query = sqlglot.parse_one(sql, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return {}
    if not isinstance(query, exp.Select):
        return {}
    return {each.alias_or_name: each.unalias().sql(dialect="duckdb") for each in query.expressions}
