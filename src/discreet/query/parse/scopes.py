"""What names mean at one place of a query: the tables in FROM and their columns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, TypeAlias, final

from discreet.query.ast import Apply, Case, Choose, Combine, Expression, Field, Post, Source, fields_of, unit_of
from discreet.query.catalogue import Catalogue
from discreet.query.parse.refusals import Place, Script
from discreet.query.parse.tokens import Bounds
from discreet.query.policy import INFERRED
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = [
    "LARGEST_TREE",
    "Context",
    "FromItem",
    "Scope",
    "ScopeColumn",
    "Sizes",
    "SubqueryRows",
    "new_context",
    "unknown",
]

# --- sizes ---
# How large a tree is when it is written out. A few shared nodes, doubled again and again, would be a forest.


_Node: TypeAlias = Expression | Post
_LISTED = 12  # names of a refusal
LARGEST_TREE = 20_000  # nodes; a list of 10,000 constants has half of them


@final
@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of trees by identity: each node is looked at once, however often it occurs. Keeps the nodes alive."""

    known: dict[int, tuple[_Node, int]] = field(default_factory=dict)

    def of(self, node: _Node) -> int:
        """Return the number of nodes of a tree, written out."""
        waiting = [node]
        while waiting:
            current = waiting[-1]
            missing = [part for part in _parts(current) if id(part) not in self.known]
            if id(current) in self.known or not missing:
                waiting.pop()
                self.known[id(current)] = current, 1 + sum(self.known[id(part)][1] for part in _parts(current))
            else:
                waiting += missing
        return self.known[id(node)][1]


def _parts(node: _Node) -> list[_Node]:
    match node:
        case Apply() | Combine():
            return list(node.arguments)
        case Case() | Choose():
            return [part for branch in node.branches for part in branch] + [node.otherwise]
    return []


_MOST_FIELDS = 5_000  # in one question; a chain of WITH that doubles at each link would make millions


@final
@dataclass(frozen=True, slots=True)
class Context:
    """What stays the same while one query is read."""

    script: Script
    catalogue: Catalogue
    bounds: Mapping[int, Bounds]
    names: Iterator[int]
    queries: Mapping[str, tuple[exp.Expr, Context]]  # of WITH, each with what it may refer to itself
    sizes: Sizes
    placed: set[int]  # bounds that an aggregate has taken

    def fresh(self) -> str:
        """Return a name that occurs nowhere else. No name of the analyst's ever reaches an engine."""
        number = next(self.names)
        if number > _MOST_FIELDS:
            raise self.script.refuse(
                None,
                "this query has too many columns",
                reason="it costs time before anything is paid",
                way_out="name the columns that are needed instead of *, and use each WITH query once",
            )
        return f"f{number}"

    def check_size(self, tree: Expression | Post, place: Place) -> None:
        """Refuse a tree that is small only as long as nobody writes it out."""
        if self.sizes.of(tree) > LARGEST_TREE:
            raise self.script.refuse(
                place,
                "this expression is too large",
                reason="it costs time before anything is paid",
                way_out="compute a part of it in a sub-query, or use each name once",
            )

    def knowing(self, queries: Mapping[str, tuple[exp.Expr, Context]]) -> Context:
        return replace(self, queries=queries)


def new_context(script: Script, catalogue: Catalogue, bounds: Mapping[int, Bounds]) -> Context:
    return Context(script, catalogue, bounds, count(1), {}, Sizes(), set())


@final
@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column that can be named. `origin` is its name in the data, if it comes from there unchanged."""

    name: str
    field: Field
    origin: str | None = None


@final
@dataclass(frozen=True, slots=True)
class FromItem:
    """A table, sub-query or join partner in FROM, under the name it has there."""

    name: str
    columns: tuple[ScopeColumn, ...]


@final
@dataclass(frozen=True, slots=True)
class SubqueryRows:
    """The result of a sub-query or a table: rows, what their columns are called, and where the unit is."""

    source: Source
    columns: tuple[ScopeColumn, ...]
    units: frozenset[str]


@final
@dataclass(frozen=True, slots=True)
class Scope:
    """The rows of FROM and what their columns are called."""

    source: Source
    parts: tuple[FromItem, ...]
    shared: frozenset[str] = frozenset()  # names joined by USING: they mean one column, that of the first part
    units: frozenset[str] = frozenset()  # fields that hold the unit, unchanged
    settled: Mapping[int, Expression] | None = None  # after grouping: what nodes stand for, by identity
    aliases: Mapping[str, Expression] = field(default_factory=dict)  # after grouping, or in QUALIFY: outputs by name
    windows: Mapping[int, Expression] = field(default_factory=dict)  # what is OVER the unit, by identity of its node

    @property
    def unit_field(self) -> Field | None:
        """The column of the unit, if there is one."""
        name = unit_of(self.source)
        return next((found for found in fields_of(self.source) if found.name == name), None)

    @property
    def columns(self) -> Iterator[ScopeColumn]:
        """What `*` stands for: all columns, those of USING once."""
        seen: set[str] = set()
        for part in self.parts:
            for column in part.columns:
                name = column.name.lower()
                if name not in seen or name not in self.shared:
                    yield column
                seen.add(name)

    def look_up(self, script: Script, name: str, table: str | None, place: Place) -> ScopeColumn:
        """Find the one column of a name, without regard to case."""
        parts = self.parts if table is None else self._part(script, table, place)
        found = [column for part in parts for column in part.columns if column.name.lower() == name.lower()]
        if not found:
            names = [column.name for part in parts for column in part.columns]
            raise unknown(script, "column", name, names, place, instead=self._instead(name))
        if len(found) > 1 and name.lower() not in self.shared:
            raise script.refuse(
                place,
                f"more than one column is called {name}",
                reason="only what is understood in full is answered",
                way_out="write the table in front of it: table.column",
            )
        self._check_declared(script, found[0], place)
        return found[0]

    def _instead(self, name: str) -> str | None:
        """Say what stands for the word unit, which is how the manual calls whatever column it is."""
        if name.lower() != "unit":
            return None
        found = [one.name for part in self.parts for one in part.columns if one.field.name in self.units]
        if not found:
            return None
        unit = _as_written(found[0])
        return f"the unit here is {unit}: COUNT(DISTINCT {unit})"

    def _check_declared(self, script: Script, column: ScopeColumn, place: Place) -> None:
        """Refuse a column of which not even the kind is known."""
        if column.field.facts.kind is Kind.UNDECLARED:
            composed = any(one.name == "unit" and one.field.name in self.units for p in self.parts for one in p.columns)
            raise script.refuse(
                place,
                f"nothing is declared of the column {column.name}",
                reason=INFERRED,
                way_out=(
                    "whom is protected is called unit here: COUNT(DISTINCT unit), PARTITION BY unit. Or " * composed
                )
                + "ask the custodian to declare it: columns={…: dp.between(low, high)}, categories, boolean or "
                "text; or to hand the table over as Arrow or polars, whose types are declared",
            )

    def _part(self, script: Script, table: str, place: Place) -> Sequence[FromItem]:
        found = [part for part in self.parts if part.name.lower() == table.lower()]
        if not found:
            raise unknown(script, "table", table, [part.name for part in self.parts], place)
        return found

    def find(self, name: str, table: str | None) -> ScopeColumn | None:
        """Find a column that may not be there, or is there twice."""
        found = [
            column
            for part in self.parts
            if table is None or part.name.lower() == table.lower()
            for column in part.columns
            if column.name.lower() == name.lower()
        ]
        return found[0] if found and (len(found) == 1 or name.lower() in self.shared) else None


def _text_hint(name: str, place: Place) -> str:
    """Say how texts are written, of a name in double quotes: elsewhere these are texts."""
    quoted = getattr(getattr(place, "this", None), "quoted", False)
    return "" if not quoted else "a text stands in single quotes, '" + name.replace("'", "''") + "'; or "


def unknown(
    script: Script, what: str, name: str, names: Sequence[str], place: Place, *, instead: str | None = None
) -> Exception:
    """Refuse a name that is not there, and say what to write `instead`: the nearest, or else the first few that are."""
    known = {each.lower(): each for each in reversed(names)}
    close = [known[each] for each in difflib.get_close_matches(name.lower(), known, n=3)]
    listed = ", ".join([*dict.fromkeys(names)][:_LISTED]) + (", …" if len(known) > _LISTED else "")
    return script.refuse(
        place,
        f"there is no {what} of this name here",
        reason=f"none of the {len(known)} there are has it"
        if close and len(known) > _LISTED
        else f"the policy and the query name these: {listed or 'none'}",
        way_out=instead
        if instead is not None
        else f"did you mean {' or '.join(map(_as_written, close))}?"
        if close
        else f"{_text_hint(name, place)}use one of them, or ask the custodian to add the {what}",
    )


def _as_written(name: str) -> str:
    """Return a name as it stands in SQL: in double quotes where it is more than one plain word."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else '"' + name.replace('"', '""') + '"'
