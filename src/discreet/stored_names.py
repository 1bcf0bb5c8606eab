"""Names of classes, fields and members as they are stored: written down, so that renaming code changes no stored byte.

A format lists its classes in one table: of each the tag, and after a colon its parts in the order in which they are
written. A part is `name`, or `name=attribute` where the attribute was renamed since. A tag or a name that was ever
written is never changed; a new part makes a new version of the format, unless it is left out where it is None: `name?`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, final

__all__ = ["StoredName", "stored_definitions", "stored_names"]


@final
@dataclass(frozen=True, slots=True)
class StoredName:
    """How one class is stored: its tag, and the stored name of each attribute or member."""

    tag: str
    parts: Mapping[str, str]  # attributes, or members of an enum, by the names that are stored
    left_out: frozenset[str] = frozenset()  # stored names of parts that are not written where they are None

    def values(self, value: object) -> Iterator[tuple[str, Any]]:
        """Return each stored name of an object's parts with the value."""
        for name, attribute in self.parts.items():
            found = getattr(value, attribute)
            if found is not None or name not in self.left_out:
                yield name, found

    def member(self, value: Enum) -> str:
        """Return the stored name of a member."""
        return next(name for name, attribute in self.parts.items() if attribute == value.name)

    def arguments(self, stored: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return stored values by attribute, to make the object again; None if they are not exactly its parts."""
        if stored.keys() != self.parts.keys():
            return None
        return {self.parts[name]: value for name, value in stored.items()}


def stored_names(table: Mapping[type[Any], str]) -> dict[type[Any], StoredName]:
    """Read the table of a format. A field or member that it lacks, or has twice, is a mistake in it."""
    names = {kind: _read(line) for kind, line in table.items()}
    for kind, name in names.items():
        if sorted(name.parts.values()) != sorted(_attributes(kind)):
            raise TypeError(f"the stored names of {kind.__name__} are not those of its fields or members")
    if len({name.tag for name in names.values()}) != len(names):
        raise TypeError("two classes of one format are stored under one tag")
    return names


def _read(line: str) -> StoredName:
    tag, _, listed = line.partition(":")
    pairs = [(one.rstrip("?").partition("="), one.endswith("?")) for one in listed.split()]
    parts = {name: attribute or name for (name, _, attribute), _ in pairs}
    if len(parts) != len(pairs):
        raise TypeError(f"a name of {tag} is stored twice")
    return StoredName(tag, parts, frozenset(name for (name, _, _), is_late in pairs if is_late))


def _attributes(kind: type[Any]) -> list[str]:
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    if issubclass(kind, Enum):
        return list(kind.__members__)
    return list(getattr(kind, "_fields", ()))  # of a named tuple


def stored_definitions(schema: dict[str, Any], names: Mapping[type[Any], str]) -> dict[str, Any]:
    """Call the definitions of a JSON Schema what they are called where it is published, in the order of these names."""
    known = {kind.__name__: name for kind, name in names.items()}
    found = schema.get("$defs", {})
    if not found.keys() <= known.keys():
        raise TypeError(f"definitions without a published name: {sorted(found.keys() - known.keys())}")
    title = {"title": known.get(schema["title"], schema["title"])} if "title" in schema else {}
    named = _pointed({**schema, **title}, known)
    listed = {known[key]: {**part, "title": known[key]} for key, part in named.get("$defs", {}).items()}
    return {**named, "$defs": dict(sorted(listed.items()))} if listed else named


def _pointed(part: Any, known: Mapping[str, str]) -> Any:
    """Write all references to definitions anew."""
    if isinstance(part, list):
        return [_pointed(item, known) for item in part]
    if not isinstance(part, dict):
        return part
    head, _, key = str(part.get("$ref", "")).rpartition("/")
    inside = {name: _pointed(value, known) for name, value in part.items()}
    return {**inside, "$ref": f"{head}/{known[key]}"} if "$ref" in part else inside
