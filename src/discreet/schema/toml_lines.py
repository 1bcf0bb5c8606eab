"""Find the line of a TOML file on which something is said, so that an error can name it."""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

__all__ = ["Place", "line_of", "parse"]

Place: TypeAlias = Sequence[str | int]  # keys and positions, from the root


def parse(text: str) -> dict[str, Any]:
    """Read TOML; decimals stay exact."""
    return tomllib.loads(text, parse_float=Decimal)


def line_of(text: str, place: Place) -> int:
    """Return the line, counted from one, where a place of a valid document is first said; its parent's if it is not.

    Every beginning of a document that ends with a statement is a document too, and what it says only grows: so the
    first one that says it ends with the statement that we look for.
    """
    lines = text.splitlines(keepends=True)
    firsts, ends = _statements(lines)
    deepest = _deepest(parse(text), place)
    index = bisect_left(ends, True, key=lambda end: _has(parse("".join(lines[:end])), deepest))
    return firsts[min(index, len(firsts) - 1)] + 1 if deepest else 1


def _statements(lines: Sequence[str]) -> tuple[list[int], list[int]]:
    """Split a valid document into statements: where each begins, and where the next would."""
    firsts, ends, first = [0], [0], 0
    for end in range(1, len(lines) + 1):
        # An array over many lines is not tried after each of its items: long ones would take long.
        if lines[end - 1].rstrip().endswith(",") and "#" not in lines[end - 1]:
            continue
        if _is_complete("".join(lines[first:end])):
            firsts.append(first)
            ends.append(end)
            first = end
    return firsts, ends


def _is_complete(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _deepest(document: Any, place: Place) -> Place:
    """Return the part of a place that the document says."""
    return next(place[:n] for n in range(len(place), -1, -1) if _has(document, place[:n]))


def _has(document: Any, place: Place) -> bool:
    for step in place:
        if isinstance(document, dict) and step in document:
            document = document[str(step)]
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return False
    return True
