"""A first set of tables: the total, by each of a few columns, and by two of them together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from discreet.query import Kind
from discreet.release.drafting.looking import SeenColumn
from discreet.release.drafting.proposals import declaration

__all__ = ["first_groupings", "first_measures"]

_CODES = re.compile(r"zip|post|code|year|month|day|lat|lon|number|_no$|_nr$|_id$", re.IGNORECASE)  # sums mean nothing
_MOST_KEYS = 3
_MOST_PAIRS = 200  # groups of a table by two columns


def first_groupings(seen: Sequence[SeenColumn]) -> list[list[str]]:
    """Group by the columns with the fewest public values."""
    sizes = {one.name: size for one in seen if (size := _size(one)) is not None and size > 1}
    keys = sorted(sizes, key=lambda name: (sizes[name], name))[:_MOST_KEYS]
    pair = [keys[:2]] if len(keys) > 1 and sizes[keys[0]] * sizes[keys[1]] <= _MOST_PAIRS else []
    return [[], *([key] for key in keys), *pair]


def _size(seen: SeenColumn) -> int | None:
    said = declaration(seen).value
    if said == {"kind": "boolean"}:
        return 2
    return len(said["categories"]) if said and "categories" in said else None


def first_measures(seen: Sequence[SeenColumn]) -> dict[str, str]:
    """Count rows, and add up the first number that is no whole one, or else the first."""
    numbers = sorted((one for one in seen if _is_bounded(one)), key=lambda one: one.kind is not Kind.REAL)
    return {"n": "COUNT(*)"} | {_alias(one.name): f"SUM({_quoted(one.name)})" for one in numbers[:1]}


def _alias(name: str) -> str:
    return re.sub(r"\W+", "_", f"total_{name}", flags=re.ASCII).lower()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_bounded(seen: SeenColumn) -> bool:
    said = declaration(seen).value
    return seen.kind.is_number and bool(said) and "low" in said and not _CODES.search(seen.name)
