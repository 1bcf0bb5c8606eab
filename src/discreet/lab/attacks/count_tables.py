"""Tables of counts as an attacker finds them: by which columns, of which rows, how noisy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import privacy
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.formatting import record
from discreet.lab.attacks.lab_tables import Lab, laboratory
from discreet.noise import discrete_laplace, rounded_gaussian
from discreet.privacy.not_private import NotPrivate

__all__ = [
    "ALL",
    "AxisLevel",
    "CountNoise",
    "CountTable",
    "Cube",
    "Floats",
    "GroupingAxis",
    "Line",
    "axes_of",
    "condition_axis",
    "fill",
    "noised",
    "published_counts",
    "tabulate",
    "value_axis",
]

Floats: TypeAlias = NDArray[np.float64]


@final
class CountNoise(Enum):
    """Which noise was added to the counts of a table."""

    NONE = "none"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountTable:
    """A published table: how many rows are in each group. A group that is not shown is NaN.

    `where` is the condition, written as in SQL, that its rows fulfil; "" if it counts all rows.
    """

    name: str
    by: tuple[str, ...]
    keys: tuple[tuple[Hashable, ...], ...]
    counts: Floats
    where: str = ""
    noise: CountNoise = CountNoise.NONE
    deviation: float = 0.0  # of the noise

    def __post_init__(self) -> None:
        if len(self.keys) != len(self.counts) or any(len(key) != len(self.by) for key in self.keys):
            raise InvalidParameter(f"table {self.name!r} needs one count for each key, and one value for each column")
        if len(set(self.keys)) != len(self.keys):
            raise InvalidParameter(f"table {self.name!r} has a group twice")
        if not (math.isfinite(self.deviation) and self.deviation >= 0):
            raise InvalidParameter("the standard deviation of the noise must be finite and not negative")
        if (self.noise is CountNoise.NONE) != (self.deviation == 0):
            raise InvalidParameter("say both the kind of noise and its deviation, or neither")

    def draw(self, size: int) -> Floats:
        """Draw fresh noise of the same law: exact integers, as in a release."""
        match self.noise:
            case CountNoise.NONE:
                return np.zeros(size)
            case CountNoise.GAUSSIAN:
                return np.asarray(rounded_gaussian(self.deviation, size), dtype=np.float64)
            case CountNoise.LAPLACE:
                return np.asarray(discrete_laplace(self.deviation / math.sqrt(2), size), dtype=np.float64)


def tabulate(
    rows: Any,
    by: Sequence[str],
    *,
    where: str = "",
    name: str = "table",
    values: Mapping[str, Sequence[Hashable]] | None = None,
    hide_below: int = 0,
) -> NotPrivate[CountTable]:
    """Count rows exactly, in every combination of values, as a careless release would.

    `values` lists the groups of a column; without it those in the data are taken. Counts from 1 to `hide_below` - 1
    are not shown, which is what many offices do.

    Args:
        rows: The private table: a file of this machine, a frame or an Arrow table.
        by: The columns of the groups.
        where: A condition, as in SQL; all rows if not said.
        name: What the table is called.
        values: The groups of columns, by column.
        hide_below: Which counts are hidden.

    Returns:
        The exact counts, marked as not private.

    Raises:
        InvalidParameter: If there is no such column.

    Examples:
        >>> import pyarrow as pa
        >>> rows = pa.table({"clinic": ["Harbour", "Harbour", "Market"]})
        >>> dp.attacks.tabulate(rows, ["clinic"]).value.counts
        array([2., 1.])
    """
    with laboratory({"rows": rows}) as lab:
        found = lab.select(_counting(lab, by, where)).to_pylist()
        listed = {column: _values(lab, column) for column in by} | dict(values or {})
    counted = {tuple(row[f"key_{i}"] for i in range(len(by))): row["rows"] for row in found}
    keys = tuple(product(*(listed[column] for column in by)))
    counts = np.array([_shown(counted.get(key, 0), hide_below) for key in keys], dtype=np.float64)
    return NotPrivate(CountTable(name=name, by=tuple(by), where=where, keys=keys, counts=counts))


def _counting(lab: Lab, by: Sequence[str], where: str) -> str:
    named = "".join(f"{lab.column('rows', column)} AS key_{i}, " for i, column in enumerate(by))
    condition = f" WHERE {lab.condition('rows', where)}" if where else ""
    grouped = f" GROUP BY {', '.join(f'key_{i}' for i in range(len(by)))}" if by else ""
    return f"SELECT {named}count(*) AS rows FROM {lab.relations['rows']}{condition}{grouped}"


def _values(lab: Lab, column: str) -> list[Hashable]:
    """List the values of a column in all rows: also those that no row of a condition has."""
    name = lab.column("rows", column)
    found = lab.select(f"SELECT DISTINCT {name} AS value FROM {lab.relations['rows']} WHERE {name} IS NOT NULL")
    return sorted(found.column("value").to_pylist(), key=str)


def _shown(count: int, hide_below: int) -> float:
    return math.nan if 0 < count < hide_below else float(count)


# --- published: Tables as they were published, read back for an attack: from a bundle, or anybody's. ---


def published_counts(
    table: Any,
    *,
    by: Sequence[str],
    count: str,
    where: str = "",
    name: str = "table",
    noise: CountNoise = CountNoise.GAUSSIAN,
) -> CountTable:
    """Read a published table of counts: its groups, its counts, and how noisy they are.

    A table of a bundle says the deviation of its noise beside each count, in a column such as `patients_noise_sd` for
    `patients`; one without such a column is taken as exact. A count that is not shown is missing.

    Args:
        table: The published table: a file of this machine, a frame or an Arrow table.
        by: The columns of its groups.
        count: The column of its counts.
        where: The condition, as in SQL, that the counted rows fulfil.
        name: What the table is called.
        noise: Which noise its counts have, where they have any.

    Returns:
        The table, for `differencing`.

    Raises:
        InvalidParameter: If there is no such column, or a group is there twice.

    Examples:
        >>> import pyarrow as pa
        >>> table = pa.table({"clinic": ["Harbour", "Market"], "n": [412, 388], "n_noise_sd": [3.2, 3.2]})
        >>> dp.attacks.published_counts(table, by=["clinic"], count="n").deviation
        3.2
    """
    with laboratory({"table": table}) as lab:
        deviation = f"{count}_noise_sd"
        noisy = deviation in lab.columns["table"]
        keys = "".join(f"{lab.column('table', column)} AS key_{i}, " for i, column in enumerate(by))
        said = f"CAST({lab.column('table', deviation)} AS DOUBLE)" if noisy else "0.0"
        counts = f"CAST({lab.column('table', count)} AS DOUBLE)"
        rows = lab.select(
            f"SELECT {keys}{counts} AS count, {said} AS deviation FROM {lab.relations['table']}"
        ).to_pylist()
    most = max((row["deviation"] or 0.0 for row in rows), default=0.0)
    return CountTable(
        name=name,
        by=tuple(by),
        where=where,
        keys=tuple(tuple(row[f"key_{i}"] for i in range(len(by))) for row in rows),
        counts=np.array([math.nan if row["count"] is None else row["count"] for row in rows], dtype=np.float64),
        noise=noise if most > 0 else CountNoise.NONE,
        deviation=most,
    )


# --- noising: Exact tables turned into private ones, to be attacked in the same way. ---


def noised(
    tables: Sequence[CountTable], *, epsilon: Number, delta: Number
) -> tuple[tuple[CountTable, ...], privacy.Event]:
    """Return tables with Gaussian noise that costs `epsilon` at `delta` for all of them together, and what it costs.

    Guarantee   for one row more or less, which changes one count of each table by one.
    Theorem     k Gaussian releases of deviation sqrt(k) sigma cost together what one of sigma does. [DRS22]
    """
    if not tables or any(table.noise is not CountNoise.NONE for table in tables):
        raise InvalidParameter("give at least one table, and exact ones")
    alone = privacy.gaussian_sigma(epsilon, exact(delta, name="delta"))
    # The root is rounded up, so that the noise is not too small.
    sigma = Fraction(alone) * Fraction(math.isqrt(len(tables) * 10**18) + 1, 10**9)
    private = [
        replace(
            table,
            counts=table.counts + np.asarray(rounded_gaussian(sigma, len(table.counts)), dtype=np.float64),
            noise=CountNoise.GAUSSIAN,
            deviation=float(sigma),
        )
        for table in tables
    ]
    return tuple(private), privacy.Repeated(privacy.Gaussian(sigma), len(tables))


# --- count_cube ---
# A cube of all groups, filled with what was published and with all that follows from it by adding and subtracting.
#
# Along a line of the cube (a total and its parts) any one number follows from the others. Where exactly one is unknown
# it is filled in, again and again, until nothing new follows: these are the chains of answers of a tracker. [DDS79]


# --- axes: Axes: what tables are grouped by, as trees of values, so that a group of groups is a group again. ---


ALL = 0  # The node that every axis begins with: all rows, whatever their value.
Line: TypeAlias = tuple[int, tuple[int, ...]]  # A node, and the nodes whose counts add up to its count.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AxisLevel:
    """A coarser grouping of a column: region of district. `members` lists what each of its values is made of.

    Args:
        name: The name of the level, such as "region".
        of: The column, or the level, that it groups.
        members: What each of its values is made of.

    Examples:
        >>> sides = dp.attacks.AxisLevel(
        ...     name="side", of="clinic", members={"River": ["Harbour", "Old Mill"], "Town": ["Hillside", "Market"]}
        ... )
        >>> len(sides.members)
        2
    """

    name: str
    of: str
    members: Mapping[Hashable, Sequence[Hashable]]

    __repr__ = record


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


Places: TypeAlias = NDArray[np.int64]
_MOST = 40_000_000  # Groups; each takes 17 bytes.
_PUBLISHED, _UNKNOWN = -1, -2


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cube:
    """The count of every group, where it is known, and how it came to be known."""

    axes: tuple[GroupingAxis, ...]
    tables: tuple[CountTable, ...]
    counts: Floats  # flat; NaN where unknown
    how: NDArray[np.int32]  # the line by which a count was derived, by its number; or published, or unknown
    cells: Mapping[int, tuple[int, int]]  # the table and the cell of each published group
    lines: tuple[tuple[int, int], ...]  # each line as the number of an axis and of a line of it
    _expanded: dict[int, dict[tuple[int, int], int]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many nodes each axis has."""
        return tuple(axis.size for axis in self.axes)

    def made_of(self, place: int) -> dict[tuple[int, int], int]:
        """Return which published cells a known count is made of, and how often each is added or subtracted."""
        if place not in self._expanded:
            if self.how[place] == _PUBLISHED:
                self._expanded[place] = {self.cells[place]: 1}
            else:
                self._expanded[place] = self._combined(place)
        return self._expanded[place]

    def _combined(self, place: int) -> dict[tuple[int, int], int]:
        total: Counter[tuple[int, int]] = Counter()
        for other, sign in self._sources(place):
            for cell, times in self.made_of(other).items():
                total[cell] += sign * times
        return {cell: times for cell, times in total.items() if times}

    def _sources(self, place: int) -> list[tuple[int, int]]:
        """Return the groups from which a count was derived, each added or subtracted."""
        number, line = self.lines[self.how[place]]
        parent, children = self.axes[number].lines[line]
        stride = prod(self.shape[number + 1 :])
        here = place // stride % self.shape[number]
        base = place - here * stride
        if here == parent:
            return [(base + child * stride, 1) for child in children]
        siblings = [(base + child * stride, -1) for child in children if child != here]
        return [(base + parent * stride, 1), *siblings]


def axes_of(tables: Sequence[CountTable], attribute: str, levels: Sequence[AxisLevel] = ()) -> tuple[GroupingAxis, ...]:
    """Return the axes that some tables are about: conditions, columns, and the attribute last."""
    bases = {level.name: level for level in levels}
    values: dict[str, dict[Hashable, None]] = {}
    for table in tables:
        for place, column in enumerate(table.by):
            if column not in bases:
                values.setdefault(column, {}).update(dict.fromkeys(key[place] for key in table.keys))
    if attribute not in values:
        raise InvalidParameter(f"no table is grouped by {attribute!r}: there is nothing to learn about it")
    if any({level.name, level.of} <= set(table.by) for level in levels for table in tables):
        raise InvalidParameter(
            "a table is grouped by a column and by its level, which is redundant: leave the level out"
        )
    missing = [level.of for level in levels if level.of not in values]
    if missing:
        raise InvalidParameter(f"a level groups {missing[0]!r}, but no table is grouped by it: leave the level out")
    names = [*sorted(set(values) - {attribute}), attribute]
    conditions = sorted({table.where for table in tables if table.where})
    columns = [value_axis(name, sorted(values[name], key=str), levels) for name in names]
    return (*(condition_axis(condition) for condition in conditions), *columns)


def fill(axes: tuple[GroupingAxis, ...], tables: Sequence[CountTable]) -> Cube:
    """Enter what was published, and derive all that follows from it by chains of single unknowns."""
    size = prod(axis.size for axis in axes)
    if size > _MOST:
        raise InvalidParameter(f"these tables have {size:,} groups in all; {_MOST:,} are the most: leave out a table")
    counts, how = np.full(size, np.nan), np.full(size, _UNKNOWN, dtype=np.int32)
    cells = _entered(axes, tables)
    for place, (table, cell) in cells.items():
        counts[place], how[place] = tables[table].counts[cell], _PUBLISHED
    lines = tuple((number, line) for number, axis in enumerate(axes) for line in range(len(axis.lines)))
    shape = tuple(axis.size for axis in axes)
    grown = True
    while grown:
        grown = False
        for number in range(len(lines)):
            grown |= _derive(axes, lines, number, counts.reshape(shape), how.reshape(shape))
    return Cube(axes, tuple(tables), counts, how, cells, lines)


def _entered(axes: Sequence[GroupingAxis], tables: Sequence[CountTable]) -> dict[int, tuple[int, int]]:
    """Find the place of every published count; of two for one group, the less noisy is taken."""
    cells: dict[int, tuple[int, int]] = {}
    order = sorted(range(len(tables)), key=lambda number: -tables[number].deviation)
    for number in order:
        table = tables[number]
        for cell, key in enumerate(table.keys):
            if not np.isnan(table.counts[cell]):
                cells[_place(axes, table, key)] = (number, cell)
    return cells


def _place(axes: Sequence[GroupingAxis], table: CountTable, key: tuple[Hashable, ...]) -> int:
    known = [*zip(table.by, key, strict=True), (table.where, True)]
    place = 0
    for axis in axes:
        place = place * axis.size + next((axis.nodes[one] for one in known if one in axis.nodes), ALL)
    return place


def _derive(
    axes: Sequence[GroupingAxis],
    lines: Sequence[tuple[int, int]],
    number: int,
    counts: Floats,
    how: NDArray[np.int32],
) -> bool:
    """Fill in what follows along one line everywhere in the cube; tell whether anything did."""
    axis, line = lines[number]
    parent, children = axes[axis].lines[line]
    nodes = np.array([parent, *children])
    seen = np.moveaxis(counts, axis, 0)[nodes]
    unknown = np.isnan(seen)
    single = unknown.sum(axis=0) == 1
    if not single.any():
        return False
    where = np.argmax(unknown, axis=0)[single]
    parts = np.where(unknown, 0.0, seen)[:, single]
    missing = parts[0] - parts[1:].sum(axis=0)
    spots = (nodes[where], *np.argwhere(single).T)
    np.moveaxis(counts, axis, 0)[spots] = np.where(where == 0, -missing, missing)
    np.moveaxis(how, axis, 0)[spots] = number
    return True
