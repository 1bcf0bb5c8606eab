"""The text of a confirmed plan, with comments that say what is public now and what should be checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.ledger.budget import readable

__all__ = ["plan_text", "toml_value"]

_WARNING = """\
# A release plan. Everything in this file is public, and is part of what is published.
#
# What is listed in from_data was read from the rows. It is public now, one person can be visible in it, and no budget
# accounts for that: every bundle says so. Replace it by facts that are known without the data where you can, such as an
# age from 0 to 120 or the official list of districts, or find it for a price (discreet profile); then take it off the
# list.
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
Spending = tuple[Fraction, Fraction | None]


def plan_text(
    said: Mapping[str, Any], *, table: str, source: str, once: Spending, ever: Spending, seen: Sequence[str] = ()
) -> str:
    """Write the plan; `seen` are the fields whose values were read from the rows."""
    parts = (
        _WARNING,
        _lines(**{name: said[name] for name in ("name", "title", "dataset", "ledger")}),
        _marks(said, table, seen),
        _section("unit", "whom to protect", _unit(said)),
        _section("budget", "what may be spent on these data, ever", _budget(ever)),
        _section(f"tables.{_key(table)}", "", {"source": source}),
        _columns(said, table),
        _section("release", "what one release of all tables may spend together", _budget(once) | {"split": "even"}),
        _schedule(said),
        _section("output", "", {"folder": "published"}),
        _publish(said, table),
    )
    return "\n".join(part for part in parts if part)


def _marks(said: Mapping[str, Any], table: str, seen: Sequence[str]) -> str:
    """List what was read from the rows, by its place in the plan."""
    once = said["schedule.every"] == "once"
    fields = [field for field in seen if not (once and field.startswith("schedule."))]
    places = [f"tables.{table}.{field}" if field.startswith("columns.") else field for field in fields]
    if any(field.startswith("columns.") for field in said):
        places.append(f"tables.{table}.columns")  # Which of them are declared at all was decided by their values too.
    return f"from_data = [\n{''.join(f'  {toml_value(place)},{chr(10)}' for place in places)}]\n" if places else ""


def _unit(said: Mapping[str, Any]) -> dict[str, Any]:
    limits = {name: said.get(f"unit.{name}") for name in ("max_groups", "max_rows_per_group")}
    return {"column": said["unit.column"]} | {name: value for name, value in limits.items() if value is not None}


def _budget(spending: Spending) -> dict[str, Any]:
    epsilon, delta = spending
    return {"epsilon": epsilon} | ({} if delta is None else {"delta": delta})


def _columns(said: Mapping[str, Any], table: str) -> str:
    columns = {field.removeprefix("columns."): value for field, value in said.items() if field.startswith("columns.")}
    declared = {name: value for name, value in columns.items() if value is not None}
    left = [name for name, value in columns.items() if value is None]
    comment = f"# Left out, so nothing can be told of them: {', '.join(map(_comment, left))}\n" if left else ""
    if not declared:
        return comment
    return comment + _section(f"tables.{_key(table)}.columns", "what lies outside is clamped, or in no group", declared)


def _schedule(said: Mapping[str, Any]) -> str:
    if said["schedule.every"] == "once":
        return ""
    entries = {name: said[f"schedule.{name}"] for name in ("every", "first", "column")}
    return _section("schedule", "", {name: value for name, value in entries.items() if value is not None})


def _publish(said: Mapping[str, Any], table: str) -> str:
    entries = {
        "name": said["name"],
        "title": said["title"],
        "from": table,
        "groupings": said["publish.groupings"],
        "measures": said["publish.measures"],
    }
    return f"[[publish]]  # tables of the same rows, which add up\n{_lines(**entries)}"


def _section(name: str, comment: str, entries: Mapping[str, Any]) -> str:
    return f"[{name}]{f'  # {comment}' if comment else ''}\n{_lines(**entries)}"


def _lines(**entries: Any) -> str:
    return "".join(f"{_key(name)} = {toml_value(value)}\n" for name, value in entries.items())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def toml_value(value: Any) -> str:
    """Write a value as TOML has it; a fraction as an exact decimal."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case datetime():
            return value.isoformat(timespec="seconds")
        case date():
            return value.isoformat()
        case Fraction():
            return _fraction(value)
        case Decimal():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case dict():
            return "{ " + ", ".join(f"{_key(name)} = {toml_value(one)}" for name, one in value.items()) + " }"
    return repr(value)


def _fraction(value: Fraction) -> str:
    """Write a number that can be read back exactly; one that is no short decimal is written as a text."""
    short = readable(value)
    return short if Fraction(short) == value and "/" not in short else _text(str(value))


def _text(text: str) -> str:
    """TOML's basic strings are those of JSON, but for DEL and lone surrogates, which no name should have."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _comment(name: str) -> str:
    """Keep a name on its line."""
    return "".join(letter if letter.isprintable() else "�" for letter in name)
