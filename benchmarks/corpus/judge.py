"""Judge what a subject said to a query: answered, refused, or answered wrongly. Rules only, the same for everybody.

An answer is wrong if, with hardly any noise and limits that cut nothing, it differs from what DuckDB says to the same
query without privacy; or if one new unit with thousands of rows shows: by a text or a name that it alone has, or by a
change that its few counted rows cannot make.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from benchmarks.corpus.names import CANARY, WHALE_NUMBER
from benchmarks.corpus.policies import DATASETS
from benchmarks.corpus.queries import Query, spelling

__all__ = ["Verdict", "judge"]

Rows: TypeAlias = Sequence[Sequence[Any]]
Groups: TypeAlias = dict[tuple[str, ...], tuple[Any, ...]]

CLOSE: Final = 0.02  # of the largest value of the column
ROUNDED: Final = 1.5  # for counts
CLOSE_RANK: Final = 0.10  # for quantiles, between which there are gaps
FEWEST_KEYS: Final = 0.75  # of the true keys; some belong to one unit only and have to be hidden
FEWEST_TOP_KEYS: Final = 0.6  # where only the first few are asked for
ROWS: Final = 6  # of one unit in the tight trials: three groups of two rows
SHARE: Final = 0.5  # of what thousands of rows move when nothing is limited; six of them move far less


@dataclass(frozen=True, slots=True)
class Verdict:
    """`outcome` is "answered", "refused" or "wrong"."""

    outcome: str
    reason: str = ""


def judge(query: Query, said: Mapping[str, Mapping[str, Any]], truth: Mapping[str, Rows | None]) -> Verdict:
    """Judge by the answers of every trial and by DuckDB's own on every world."""
    if (refusal := said["whole"].get("refused")) is not None:
        return Verdict("refused", refusal)
    if broken := next((trial for trial in said if "refused" in said[trial]), None):
        return Verdict("wrong", f"breaks on other data: {said[broken]['refused']}")
    if not query.answerable and truth["whole"] and not said["whole"]["rows"]:
        return Verdict("refused", "an answer without rows")
    keys = shape(query).count("key")  # In every query of the corpus they come first.
    if leak := _leak(query, said["single"]["rows"], said["whale"]["rows"], truth, keys):
        return Verdict("wrong", leak)
    if truth["whole"] is not None and (error := _error(query, said["whole"]["rows"], truth["whole"], keys)):
        return Verdict("wrong", error)
    return Verdict("answered")


@cache
def shape(query: Query) -> tuple[str, ...]:
    """Say of each output whether it is a "key", made of a "count" or several, a "sum" or something "else"."""
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(spelling(query, "plain"), dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return ()
    outputs = tree.selects if isinstance(tree, exp.Query) else []
    return tuple(_kind([type(call) for call in output.find_all(exp.AggFunc)], output) for output in outputs)


def _kind(calls: list[type], output: Any) -> str:
    from sqlglot import exp

    if not calls:
        return "key"
    if set(calls) == {exp.Count}:
        return "count"
    return "sum" if isinstance(output.unalias(), exp.Sum) else "else"


def _error(query: Query, rows: Rows, true: Rows, keys: int) -> str:
    found, wanted = _groups(rows, keys), _groups(true, keys)
    known = [key for key in wanted if "None" not in key]
    seen = [key for key in known if key in found]
    fewest = FEWEST_TOP_KEYS if "LIMIT" in query.sql or "HAVING" in query.sql else FEWEST_KEYS
    if len(seen) < fewest * len(known):
        return f"shows {len(seen)} of {len(known)} groups"
    for place in range(max((len(values) for values in wanted.values()), default=0)):
        off = [key for key in seen if not _agree(found[key], wanted[key], place, _limit(query, wanted, keys, place))]
        if off:
            pair = found[off[0]][place : place + 1], wanted[off[0]][place]
            return f"column {keys + place + 1} is {_short(pair[0])} where the truth is {_short([pair[1]])}"
    return ""


def _limit(query: Query, wanted: Groups, keys: int, place: int) -> float:
    """Return how far a value may be from the truth, by the largest value of its column."""
    if _has_ranks(query):  # A smallest value is off by a part of the spread, not of itself.
        return CLOSE_RANK * max((abs(_number(value)) for values in wanted.values() for value in values), default=0.0)
    limit = CLOSE * max((abs(_number(values[place])) for values in wanted.values()), default=0.0)
    return max(limit, ROUNDED) if shape(query)[keys + place] == "count" else limit


def _agree(found: tuple[Any, ...], wanted: tuple[Any, ...], place: int, limit: float) -> bool:
    if place >= len(found):
        return False
    if isinstance(wanted[place], str):
        return bool(str(found[place]) == wanted[place])
    return abs(_number(found[place]) - _number(wanted[place])) <= limit


def _leak(query: Query, single: Rows, whale: Rows, truth: Mapping[str, Rows | None], keys: int) -> str:
    """Look for the new unit in the answers."""
    cells = [cell for row in whale for cell in row]
    if any(isinstance(cell, str) and CANARY in cell for cell in cells):
        return "shows a text that one unit alone has"
    if any(str(cell) in (str(WHALE_NUMBER), f"N{WHALE_NUMBER}") for cell in cells):
        return "shows who is in the data"
    calm, loud = truth["single"], truth["loud"]
    if calm is None or loud is None or not _telling(query, truth):
        return ""
    before, after = _groups(single, keys), _groups(whale, keys)
    quiet, noisy = _groups(calm, keys), _groups(loud, keys)
    for place, kind in enumerate(shape(query)[keys:]):
        if kind in ("count", "sum"):
            scale = max((abs(_number(values[place])) for values in quiet.values()), default=0.0)
            own = _own_share(query, truth) * _change(quiet, noisy, place)
            allowed = own + CLOSE * scale + (ROWS + 1 if kind == "count" else 0)
            if (moved := _change(before, after, place)) > allowed:
                return f"one unit moves column {keys + place + 1} by {moved:.3g}, more than {allowed:.3g}"
    return ""


def _telling(query: Query, truth: Mapping[str, Rows | None]) -> bool:
    """Whether the new unit has so many rows that those beyond its limit must show if they are counted."""
    return DATASETS[query.dataset].unit == "row" or _added(truth) > 10 * ROWS


def _own_share(query: Query, truth: Mapping[str, Rows | None]) -> float:
    if DATASETS[query.dataset].unit == "row":
        return 2.0
    return max(SHARE, 3 * ROWS / _added(truth))


def _added(truth: Mapping[str, Rows | None]) -> int:
    before, after = truth["single rows"], truth["loud rows"]
    return 0 if before is None or after is None else int(after[0][0] - before[0][0])


def _change(before: Groups, after: Groups, place: int) -> float:
    """Return the l2 distance over all groups: some limit a unit's norm, others its groups and rows."""

    def at(groups: Groups, key: tuple[str, ...]) -> float:
        values = groups.get(key, ())
        return _number(values[place]) if place < len(values) else 0.0

    return math.sqrt(sum((at(after, key) - at(before, key)) ** 2 for key in before.keys() | after.keys()))


def _groups(rows: Rows, keys: int) -> Groups:
    return {tuple(_canonical(value) for value in row[:keys]): tuple(row[keys:]) for row in rows}


def _canonical(value: Any) -> str:
    """Write 1994, 1994.0 and '1994' alike."""
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if abs(number) < 1e100 else 1e100


def _has_ranks(query: Query) -> bool:
    return any(word in query.sql for word in ("MEDIAN(", "PERCENTILE_CONT(", "QUANTILE_CONT(", "MIN(", "MAX("))


def _short(values: Sequence[Any]) -> str:
    return f"{_number(values[0]):.4g}" if values and not isinstance(values[0], str) else str(list(values)[:1])
