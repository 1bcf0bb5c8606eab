"""Reading the log of decisions: pages, filters, and the same as CSV. Writing it is the state's."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from discreet.server.state_store import ServerState

__all__ = ["LOG_FILTERS", "decisions_csv", "found_decisions", "log_filters", "moment"]

LOG_FILTERS = ("who", "what", "about_dataset", "outcome")
_COLUMNS = {"who": "who", "what": "what", "about_dataset": "dataset", "outcome": "outcome"}
_LONGEST_FILTER = 100


def found_decisions(
    state: ServerState,
    *,
    only: Iterable[str] | None,
    before: int | None = None,
    most: int = 100,
    filters: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return decisions, the newest first: all, or those about some data sets; of those, what filters say exactly."""
    conditions, values = ["number < ?"], [(1 << 62) if before is None else before]
    said: list[Any] = list(values)
    if only is not None:
        named = sorted(only)
        conditions.append(f"dataset <> '' AND dataset IN ({', '.join('?' * len(named))})" if named else "1 = 0")
        said += named
    for name, column in _COLUMNS.items():
        if text := (filters or {}).get(name):
            conditions.append(f"{column} = ?")
            said.append(text)
    query = f"SELECT * FROM decisions WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?"
    return [dict(row) for row in state.rows(query, *said, most)]


def log_filters(query: Mapping[str, str]) -> dict[str, str]:
    """Read the filters of a request; no text of the log has a zero, and some databases take none."""
    return {name: query[name].replace("\0", "")[:_LONGEST_FILTER] for name in LOG_FILTERS if query.get(name)}


def moment(at: float) -> str:
    """Write a time of the log."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def decisions_csv(decisions: Iterable[Mapping[str, Any]]) -> str:
    """Write decisions as CSV. No text begins like a formula: programs for tables would run it."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\r\n")
    names = ("number", "at", "who", "what", "dataset", "outcome", "about", "hash")
    writer.writerow(names)
    for one in decisions:
        row = dict(one) | {"at": moment(one["at"])}
        writer.writerow([_no_formula(str(row[name])) for name in names])
    return sink.getvalue()


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
