"""Axes: what tables are grouped by, as trees of values, so that a group of groups is a group again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from discreet.errors import InvalidParameter

__all__ = ["ALL", "AxisLevel", "GroupingAxis", "Line", "condition_axis", "value_axis"]

ALL = 0  # The node that every axis begins with: all rows, whatever their value.
Line: TypeAlias = tuple[int, tuple[int, ...]]  # A node, and the nodes whose counts add up to its count.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AxisLevel:
    """A coarser grouping of a column: region of district. `members` lists what each of its values is made of."""

    name: str
    of: str
    members: Mapping[Hashable, Sequence[Hashable]]


@final
@dataclass(frozen=True, slots=True)
class GroupingAxis:
    """One thing that rows are told apart by: a column with its levels, or a condition that holds or does not."""

    name: str
    nodes: Mapping[tuple[str, Hashable], int]  # of a column or level and its value; ALL is not among them
    lines: tuple[Line, ...]
    condition: bool = False

    @property
    def size(self) -> int:
        """How many nodes there are, ALL among them."""
        return 1 + len(self.nodes)

    def leaf(self, value: Hashable) -> int:
        """Return the node of a value of the column itself; -1 for a value that no table lists."""
        return self.nodes.get((self.name, value), -1)

    def above(self, node: int) -> tuple[int, ...]:
        """Return a node and all that hold it, ALL first."""
        parents = [parent for parent, children in self.lines if node in children]
        return (*self.above(parents[0]), node) if parents else (node,)


def condition_axis(condition: str) -> GroupingAxis:
    """Return the axis of a condition: rows that fulfil it, and the others."""
    return GroupingAxis(condition, {(condition, True): 1, (condition, False): 2}, ((ALL, (1, 2)),), condition=True)


def value_axis(column: str, values: Sequence[Hashable], levels: Sequence[AxisLevel]) -> GroupingAxis:
    """Return the axis of a column, with at most one level above it."""
    nodes = {(column, value): place for place, value in enumerate(values, start=1)}
    mine = [level for level in levels if level.of == column]
    if len(mine) > 1:
        raise InvalidParameter(f"column {column!r} has two levels: leave one out")
    if not mine:
        return GroupingAxis(column, nodes, ((ALL, tuple(nodes.values())),))
    return _with_level(column, nodes, mine[0])


def _with_level(column: str, nodes: dict[tuple[str, Hashable], int], level: AxisLevel) -> GroupingAxis:
    above = {(level.name, value): len(nodes) + place for place, value in enumerate(level.members, start=1)}
    lines: list[Line] = [(ALL, tuple(above.values()))]
    for value, members in level.members.items():
        below = tuple(nodes[column, member] for member in members if (column, member) in nodes)
        lines.append((above[level.name, value], below))
    if sorted(child for _, children in lines[1:] for child in children) != list(nodes.values()):
        raise InvalidParameter(f"every value of {column!r} must be in exactly one group of level {level.name!r}")
    return GroupingAxis(column, nodes | above, tuple(lines))
