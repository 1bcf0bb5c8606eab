"""What can be asked, as the page shows it: tables and columns with units, bounds and values, and the words of SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from discreet.query.policy import Unit
from discreet.server.datasets import ServedDataset

__all__ = ["SQL_FUNCTIONS", "SQL_WORDS", "schema_tree", "unit_words"]

# What the parser reads, for highlighting and completion; a test asks it about every function.
SQL_WORDS = (
    "SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER ASC DESC LIMIT AS AND OR NOT IN IS NULL BETWEEN LIKE ILIKE CASE "
    "WHEN THEN ELSE END JOIN LEFT INNER ON USING WITH FILTER WITHIN OVER PARTITION TRUE FALSE INTERVAL DATE TIMESTAMP "
    "ALL EXISTS INTEGER DOUBLE DECIMAL VARCHAR BOOLEAN"
)
SQL_FUNCTIONS = (
    "COUNT SUM AVG MEDIAN QUANTILE QUANTILE_CONT FIVE_NUMBERS MIN MAX MODE VARIANCE VAR_SAMP VAR_POP STDDEV "
    "STDDEV_SAMP STDDEV_POP CORR COVAR_SAMP COVAR_POP COUNT_IF APPROX_COUNT_DISTINCT "
    "ABS SIGN FLOOR CEIL ROUND TRUNC SQRT LN LOG10 EXP POWER "
    "LEAST GREATEST COALESCE IFNULL NULLIF IF LOWER UPPER LENGTH TRIM SUBSTRING LEFT RIGHT CONCAT REPLACE STARTS_WITH "
    "ENDS_WITH CONTAINS YEAR QUARTER MONTH WEEK DAY DAYOFWEEK DAYOFYEAR HOUR MINUTE SECOND EXTRACT DATE_PART "
    "DATE_TRUNC DATE_DIFF STRFTIME CAST TRY_CAST"
)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_RESERVED = frozenset(word.casefold() for word in SQL_WORDS.split())


def schema_tree(served: ServedDataset) -> list[dict[str, Any]]:
    """Return the tables with what is declared of them, and how each name and value is written in SQL."""
    return [
        {
            "name": table["name"],
            "written": _name(table["name"]),
            "private": table["private"],
            "columns": [_column(one, table["unit"]) for one in table["columns"]],
        }
        for table in served.public_facts()["tables"]
    ]


def _column(column: Mapping[str, Any], unit: str | None) -> dict[str, Any]:
    listed = column["values"] or []
    return {
        "name": column["name"],
        "written": _name(column["name"]),
        "told": "tells apart whom it protects" if column["name"] == unit else _told(column),
        "values": [(str(one), _value(one)) for one in listed],
        "more": (column["values_in_all"] or 0) - len(listed),
    }


def _told(column: Mapping[str, Any]) -> str:
    kind, low, high = column["kind"], column["low"], column["high"]
    if column["values"] is not None:
        return (
            f"{column['values_in_all']:,} values" if kind == "text" else f"{kind}, {column['values_in_all']:,} values"
        )
    if low is None and high is None:
        return kind if kind in ("text", "boolean") else f"{kind}, no bounds declared"
    ends = [_number(end) for end in (low, high)]
    if low is None or high is None:
        return f"{kind}, {f'at least {ends[0]}' if high is None else f'at most {ends[1]}'}"
    return f"{kind}, {ends[0]} to {ends[1]}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _name(name: str) -> str:
    plain = _PLAIN.fullmatch(name) and name.casefold() not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value) if isinstance(value, (int, float)) else "'" + str(value).replace("'", "''") + "'"


def unit_words(unit: Unit) -> str:
    """Say with how much of its rows one unit is counted in an answer."""
    if unit.is_row:
        return "Each row is counted once."
    groups = "one group" if unit.max_groups == 1 else f"{unit.max_groups:,} groups"
    rows = "one row" if unit.max_rows_per_group == 1 else f"{unit.max_rows_per_group:,} rows"
    return f"Each {unit.noun} is counted in at most {groups} of an answer, with at most {rows} in each."
