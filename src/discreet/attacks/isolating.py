"""Who is alone in a group: people whom published counts single out, once they are added and subtracted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.axes import ALL, GroupingAxis
from discreet.attacks.cube import Cube
from discreet.attacks.local import Lab, laboratory, text_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["People", "Target", "isolated", "people_of"]

Places: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class People:
    """The rows of a table as nodes of axes, and whose they are. Only rows whose values are all listed are here."""

    nodes: Places  # one row for each row, one column for each axis
    once: NDArray[np.bool_]  # whether a row is the only one of its person
    whose: Places  # the number of the person of each row
    names: pa.Array  # of persons, by number

    def __len__(self) -> int:
        return len(self.nodes)

    def name(self, row: int) -> str:
        """Return whose row it is."""
        return str(self.names[int(self.whose[row])].as_py())


@final
@dataclass(frozen=True, slots=True)
class Target:
    """Somebody who is alone in a group: the person, the place of the group in a cube, and the attribute."""

    who: str
    group: tuple[int, ...]  # a node of each axis but the attribute's
    attribute: int  # the node of the true attribute

    def place(self, shape: Sequence[int], attribute: int) -> int:
        """Return where the group's count of an attribute is."""
        place = 0
        for node, size in zip((*self.group, attribute), shape, strict=True):
            place = place * size + node
        return place


def people_of(rows: Any, axes: Sequence[GroupingAxis], person: str | None) -> People:
    """Read rows as nodes of axes; without a column that tells people apart, each row is a person."""
    with laboratory({"rows": rows}) as lab:
        columns = [_column(lab, axis) for axis in axes]
        who = "row_number() OVER ()" if person is None else lab.column("rows", person)
        listed = ", ".join(f"{column} AS axis_{i}" for i, column in enumerate(columns))
        found = lab.select(f"SELECT {text_of(who)} AS who, {listed} FROM {lab.relations['rows']}")
    nodes = np.column_stack([_nodes(found.column(f"axis_{i}"), axis) for i, axis in enumerate(axes)])
    persons = found.column("who").combine_chunks().dictionary_encode()
    whose = persons.indices.fill_null(-1).to_numpy().astype(np.int64)
    kept = (nodes >= 0).all(axis=1) & (whose >= 0)
    times = np.bincount(whose[whose >= 0], minlength=1)
    return People(nodes[kept], times[whose[kept]] == 1, whose[kept], persons.dictionary)


def _column(lab: Lab, axis: GroupingAxis) -> str:
    return lab.condition("rows", axis.name) if axis.condition else lab.column("rows", axis.name)


def _nodes(column: pa.ChunkedArray, axis: GroupingAxis) -> Places:
    """Return the node of each value; -1 for missing ones and for those that no table lists."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
    places = [axis.leaf(value) for value in encoded.dictionary.to_pylist()]
    nodes: Places = np.array([*places, -1], dtype=np.int64)[codes]
    return nodes


def isolated(cube: Cube, people: People) -> tuple[Target, ...]:
    """Find everybody who is alone in a group of known count, by the group that takes the fewest published numbers."""
    alone = np.isclose(cube.counts, 1.0, atol=0.25)
    found: dict[int, list[tuple[int, ...]]] = {}
    for choice in _choices(cube.axes[:-1]):
        nodes = _lifted(people.nodes[:, :-1], cube.axes[:-1], choice)
        for row in _truly_alone(_places(nodes, cube.shape), alone):
            if people.once[row]:
                found.setdefault(int(row), []).append(tuple(int(node) for node in nodes[row]))
    return tuple(_target(cube, people, row, groups) for row, groups in found.items())


def _truly_alone(places: Places, alone: NDArray[np.bool_]) -> Places:
    """Return rows that are the only one of a group of count 1: published numbers may be about other data, or wrong."""
    rows = np.nonzero(alone[places])[0]
    _, first, times = np.unique(places[rows], return_index=True, return_counts=True)
    single: Places = rows[first[times == 1]]
    return single


def _target(cube: Cube, people: People, row: int, groups: Sequence[tuple[int, ...]]) -> Target:
    attribute = int(people.nodes[row, -1])
    targets = [Target(people.name(row), group, attribute) for group in groups]
    return min(targets, key=lambda target: len(cube.made_of(target.place(cube.shape, ALL))))


def _choices(axes: Sequence[GroupingAxis]) -> Iterator[tuple[int, ...]]:
    """List how many steps up from its leaf each axis may go, all the way to ALL first."""
    return product(*(range(len(axis.above(1)) - 1, -1, -1) for axis in axes))


def _lifted(nodes: Places, axes: Sequence[GroupingAxis], up: Sequence[int]) -> Places:
    """Replace each node by the one that is some steps above it."""
    lifted = np.empty_like(nodes)
    for place, (axis, steps) in enumerate(zip(axes, up, strict=True)):
        table = np.array([_step(axis, node, steps) for node in range(axis.size)], dtype=np.int64)
        lifted[:, place] = table[nodes[:, place]]
    return lifted


def _step(axis: GroupingAxis, node: int, steps: int) -> int:
    above = axis.above(node)
    return above[max(0, len(above) - 1 - steps)]


def _places(nodes: Places, shape: Sequence[int]) -> Places:
    """Return where the count of each row's group is, whatever the attribute."""
    place = np.zeros(len(nodes), dtype=np.int64)
    for column, size in zip(nodes.T, shape[:-1], strict=True):
        place = place * size + column
    return place * shape[-1] + ALL
