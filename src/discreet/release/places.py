"""Where a plan file says something, so that what is found wrong later still names the line."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from discreet.errors import InvalidParameter, Refused
from discreet.query.session.toml_lines import Place, line_of, parse
from discreet.release.plan import ReleasePlan

__all__ = ["located", "place_of", "told_at"]


def place_of(plan: ReleasePlan, table: str, *words: str) -> Place:
    """Return where a published table is said, down to the first of the words that is there; () if it is not."""
    said = next((one for one in plan.tables if one.name == table), None)
    name = table if said is None or said.family is None else said.family
    for part in ("publish", "running"):
        for index, entry in enumerate(_document(plan).get(part, ())):
            if entry.get("name") == name:
                word = next((word for word in words if word in entry), None)
                return (part, index) if word is None else (part, index, word)
    return ()


def told_at(plan: ReleasePlan, place: Place, text: str, *, below: int = 0) -> str:
    """Say something of a place; `below` is how many lines further down it stands, in a text of many lines."""
    if not plan.written:
        return text
    where = ".".join(map(str, place)) or "the file"
    line = line_of(plan.written, place) + below
    return f"{plan.file or 'plan'}, line {line}, {where}: {text}"


def located(plan: ReleasePlan, place: Place, error: InvalidParameter | Refused) -> InvalidParameter | Refused:
    """Return the same error with its place in the plan file."""
    if isinstance(error, InvalidParameter):
        return InvalidParameter(told_at(plan, place, str(error)))
    below = 0 if error.line is None else _first_line(plan, place) + error.line - 1
    return Refused(
        told_at(plan, place, error.problem, below=below),
        reason=error.reason,
        way_out=error.way_out,
        line=error.line,
        column=error.column,
        excerpt=error.excerpt,
        caret=error.caret,
    )


def _first_line(plan: ReleasePlan, place: Place) -> int:
    """Return how many lines below its name a text begins: one if it begins on a line of its own."""
    if not plan.written:
        return 0
    line = plan.written.splitlines()[line_of(plan.written, place) - 1]
    return 1 if line.rstrip().endswith(('"""', "'''")) else 0


def _document(plan: ReleasePlan) -> dict[str, Sequence[dict[str, object]]]:
    try:
        return parse(plan.written)
    except tomllib.TOMLDecodeError:
        return {}
