"""Uniqueness: how many people share their values, under every combination of quasi-identifiers.

Whoever is alone under some columns is alone under more of them. So each combination is counted among those only who
hide in a crowd under all but its last column, and columns of many values come first: few are left to be counted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, up
from discreet.lab.attacks.lab_tables import Codes, Encoded, Lab, NamedColumns, encoded, laboratory, written_columns
from discreet.lab.attacks.scoreboard import Numbers
from discreet.lab.attacks.success_rates import Success
from discreet.noise import discrete_laplace
from discreet.pages.progress import working
from discreet.privacy import PureDP, Relation, best_tpr
from discreet.privacy.not_private import NotPrivate
from discreet.query.engines.duckdb_sandbox import default_threads

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "CROWDS",
    "EDGES",
    "Combination",
    "Crowds",
    "LoneCells",
    "SingledOut",
    "Uniqueness",
    "crowds",
    "lone_cells",
    "singling_out",
    "uniqueness",
]

EDGES = (1, 2, 5, 10, 20, 50, 100)  # The smallest crowd of each class of a profile.
Places: TypeAlias = NDArray[np.int64]
Crowds: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # columns, by number; people in each class of a profile
_DENSE = 4_000_000  # Keys that are counted in a table that fits the caches; beyond that, sorting is faster.
_WORD = 63  # Bits of a key and its place.


@final
@dataclass(frozen=True, slots=True, eq=False)
class _LatticeNode:
    """What is left to count below a combination: rows of people in crowds, and the crowd that each row is in."""

    columns: tuple[int, ...]
    rows: Places | None  # None: all of them
    group: Places
    groups: int
    alone: NDArray[np.bool_] | None  # people who were singled out, if people have several rows …
    gone: int  # … or how many, if every row is a person


def crowds(table: Encoded, size: int, threads: int) -> list[Crowds]:
    """Count the crowds of every combination of up to `size` columns."""
    order = sorted(range(len(table.sizes)), key=lambda column: -table.sizes[column])
    alone = None if table.who is None else np.zeros(table.people, dtype=bool)
    root = _LatticeNode((), None, np.zeros(table.rows, dtype=np.int64), 1, alone, 0)

    def branch(first: int) -> list[Crowds]:
        return list(_below(table, root, order[first:], size))

    with ThreadPoolExecutor(threads) as pool:
        found = [one for part in pool.map(branch, range(len(order))) for one in part]
    return found


def _below(table: Encoded, node: _LatticeNode, columns: list[int], size: int) -> Iterator[Crowds]:
    """Count a node with its first column added, and all that follows from it."""
    deeper = len(node.columns) + 1 < size and len(columns) > 1
    profile, child = _refined(table, node, columns[0], deeper)
    yield child.columns, profile
    if deeper:
        for start in range(1, len(columns)):
            yield from _below(table, child, columns[start:], size)


def _refined(table: Encoded, node: _LatticeNode, column: int, deeper: bool) -> tuple[tuple[int, ...], _LatticeNode]:
    codes = table.codes[column] if node.rows is None else table.codes[column][node.rows]
    keys = node.group * table.sizes[column] + codes
    if table.who is None:
        return _of_rows(node, column, keys, node.groups * table.sizes[column], deeper)
    who = table.who if node.rows is None else table.who[node.rows]
    return _of_people(node, column, keys, node.groups * table.sizes[column], who, table.people)


def _of_rows(
    node: _LatticeNode, column: int, keys: Places, most: int, deeper: bool
) -> tuple[tuple[int, ...], _LatticeNode]:
    """Every row is a person: the size of a crowd is its number of rows."""
    columns = (*node.columns, column)
    if not deeper:
        return _profile(_counted(keys, most), node.gone), _LatticeNode(columns, None, keys[:0], 0, None, 0)
    group, sizes = _numbered(keys, most)
    kept = sizes[group] > 1
    numbers = np.cumsum(sizes > 1) - 1
    profile = _profile(sizes[sizes > 0], node.gone)
    groups = int(numbers[-1]) + 1 if len(numbers) else 0
    return profile, _LatticeNode(columns, _left(node.rows, kept), numbers[group[kept]], groups, None, profile[0])


def _of_people(
    node: _LatticeNode, column: int, keys: Places, most: int, who: Codes, people: int
) -> tuple[tuple[int, ...], _LatticeNode]:
    """People have several rows: a crowd is as large as there are people in it, and people are as alone as a row is."""
    assert node.alone is not None
    group, rows_in = _numbered(keys, most)
    pairs = np.sort(group * people + who)
    first = np.flatnonzero(np.diff(pairs, prepend=-1))
    sizes = np.bincount(pairs[first] // people, minlength=len(rows_in))
    crowd = sizes[group]
    alone = node.alone.copy()
    alone[who[crowd == 1]] = True
    least = np.where(alone, 1, np.iinfo(np.int64).max)
    np.minimum.at(least, who, crowd)
    kept = crowd > 1
    numbers = np.cumsum(sizes > 1) - 1
    child = _LatticeNode(
        (*node.columns, column), _left(node.rows, kept), numbers[group[kept]], int((sizes > 1).sum()), alone, 0
    )
    return _people_in(least), child


def _left(rows: Places | None, kept: NDArray[np.bool_]) -> Places | None:
    """Return the rows that are left; as long as these are all, they need no list."""
    if rows is None:
        return None if kept.all() else np.flatnonzero(kept)
    return rows[kept]


def _numbered(keys: Places, most: int) -> tuple[Places, Places]:
    """Number the groups of equal keys, and count each; with few keys in all, a number may have no group."""
    if most <= _DENSE:
        return keys, np.bincount(keys, minlength=most)
    bits = len(keys).bit_length()
    if most.bit_length() + bits > _WORD:
        _, group, sizes = np.unique(keys, return_inverse=True, return_counts=True)
        return group, sizes
    # A key and its place in one word: numbers are sorted several times as fast as their order is found.
    packed = np.sort(keys << bits | np.arange(len(keys)))
    ordered = packed >> bits
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    group = np.empty_like(keys)
    group[packed & ((1 << bits) - 1)] = np.cumsum(first) - 1
    return group, _runs(ordered)


def _counted(keys: Places, most: int) -> Places:
    """Count the groups of equal keys, without numbering them; the shorter the numbers, the faster they are sorted."""
    if most <= _DENSE:
        return np.bincount(keys)
    return _runs(np.sort(keys.astype(np.int32) if most <= np.iinfo(np.int32).max else keys))


def _runs(ordered: Places) -> Places:
    """Return how long each run of equal numbers is."""
    if not len(ordered):
        return ordered
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return np.diff(starts, append=len(ordered))


def _profile(sizes: Places, gone: int) -> tuple[int, ...]:
    """Count people by the size of their crowd; those who were alone before are still alone."""
    small = np.bincount(np.minimum(sizes, EDGES[-1]), minlength=EDGES[-1] + 1)[: EDGES[-1]]
    people = small * np.arange(EDGES[-1])
    counted = [int(people[low:high].sum()) for low, high in pairwise(EDGES)]
    counted.append(int(sizes.sum()) - sum(counted))
    return counted[0] + gone, *counted[1:]


def _people_in(least: Places) -> tuple[int, ...]:
    classes = np.searchsorted(EDGES, least, side="right") - 1
    return tuple(int(n) for n in np.bincount(classes, minlength=len(EDGES)))


# --- uniqueness ---
# Uniqueness: how many people are alone with their values, under every combination of columns. [Swe02]


CROWDS = ("alone", *(f"{low}-{high - 1}" for low, high in pairwise(EDGES[1:])), f"{EDGES[-1]} or more")
_FEW = 12  # Combinations that are printed and drawn; all of them are in the result.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Some columns, and how many people share their values with how many others."""

    columns: tuple[str, ...]
    profile: tuple[int, ...]  # people by the size of their crowd, in the classes of CROWDS

    @property
    def unique(self) -> Success:
        """The people who are alone with their values."""
        return Success(self.profile[0], sum(self.profile))

    def fewer_than(self, crowd: int) -> Success:
        """The people in a crowd of fewer than so many: whom a table that is k-anonymous has none of. [Swe02]"""
        if crowd not in EDGES[1:]:
            raise InvalidParameter(f"crowds are counted in classes; take one of {', '.join(map(str, EDGES[1:]))}")
        return Success(sum(self.profile[: EDGES.index(crowd)]), sum(self.profile))

    def __str__(self) -> str:
        return f"{100 * self.unique.share:5.1f} %  {', '.join(self.columns)}"

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """Every combination of columns, those that single out most people first; of two alike, the one of fewer columns."""

    columns: tuple[str, ...]
    size: int  # of the largest combination
    rows: int
    people: int
    combinations: tuple[Combination, ...]

    def of(self, *columns: str) -> Combination:
        """Return one combination, in any order of its columns."""
        for one in self.combinations:
            if set(one.columns) == set(columns):
                return one
        raise InvalidParameter(f"there is no combination of these; columns are {', '.join(self.columns)}")

    @property
    def best(self) -> tuple[Combination, ...]:
        """Of each number of columns, the combination that singles out most people."""
        sizes = range(1, self.size + 1)
        return tuple(next(one for one in self.combinations if len(one.columns) == size) for size in sizes)

    @property
    def telling(self) -> tuple[Combination, ...]:
        """The combinations of which no column can be left out without losing somebody, best first."""
        alone = {frozenset(one.columns): one.profile[0] for one in self.combinations} | {frozenset[str](): 0}
        return tuple(
            one
            for one in self.combinations
            if all(one.profile[0] > alone[frozenset(one.columns) - {column}] for column in one.columns)
        )

    def __str__(self) -> str:
        count = len(self.combinations)
        head = f"{self.people:,} people, {count:,} combinations of up to {self.size} of {len(self.columns)} columns"
        lines = ["  alone with their values, at most, if an attacker knows", *_told(self.best)]
        listed = self.telling[:_FEW]
        lines += [f"  the {len(listed)} that single out most, with no column to spare", *_told(listed)]
        worst = self.combinations[0]
        crowd = zip(CROWDS, worst.profile, strict=True)
        lines.append(f"  people by how many have the same {', '.join(worst.columns)}")
        return "\n".join([head, *lines, *(f"    {name:<12} {number:>12,}" for name, number in crowd)])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        listed = [
            {"columns": list(one.columns), "unique": one.unique.share, "profile": list(one.profile)}
            for one in self.combinations
        ]
        document = {"columns": list(self.columns), "size": self.size, "rows": self.rows, "people": self.people}
        return json.dumps(document | {"crowds": list(CROWDS), "combinations": listed}, ensure_ascii=False)

    def plot(self, *, most: int = _FEW, title: str | None = None) -> alt.LayerChart:
        """Draw, for the combinations that single out most, how many people hide in a crowd of which size."""
        from discreet.plots import shares

        drawn = self.telling[:most] or self.combinations[:most]
        parts = {name: [one.profile[i] / self.people for one in drawn] for i, name in enumerate(CROWDS)}
        return shares(
            [" + ".join(one.columns) for one in drawn],
            parts,
            across="people, by how many have the same values",
            title=title,
        )


@working("attacking", terminal=False)
def uniqueness(
    rows: Any, columns: NamedColumns | None = None, *, size: int = 3, person: str | None = None
) -> NotPrivate[Uniqueness]:
    """Count the people who are unique under every combination of up to `size` columns.

    `columns` are those that an attacker may know, or a mapping of names to what is calculated, as in SQL, such as
    {"born": "year(birth_date)"}; all if none are named. `person` tells whose rows are whose; without it every row is a
    person. Of people with several rows the one that gives away most counts. A missing value is a value of its own.

    Args:
        rows: The private table: a file of this machine, a frame or an Arrow table.
        columns: The columns that an attacker may know, or what is calculated from them, by name.
        size: How many of them an attacker knows at most.
        person: The column that tells people apart; every row is a person if not said.

    Returns:
        How many are alone under each combination, marked as not private.

    Raises:
        InvalidParameter: If the table has no rows, or there is no such column.

    Examples:
        >>> import pyarrow as pa
        >>> rows = pa.table({"zip": [1, 1, 2], "sex": ["f", "m", "f"]})
        >>> print(dp.attacks.uniqueness(rows, size=2).value.of("zip", "sex").unique)
        3 of 3 (100 %)
    """
    if size < 1:
        raise InvalidParameter("`size`, the number of columns that an attacker knows, must be at least 1")
    with laboratory({"rows": rows}) as lab:
        table = encoded(lab, written_columns(lab, columns, person), person)
    if not table.rows:
        raise InvalidParameter("the table has no rows")
    return NotPrivate(_ranked(table, min(size, len(table.names))))


def _ranked(table: Encoded, size: int) -> Uniqueness:
    found = [
        Combination(columns=tuple(table.names[i] for i in sorted(numbers)), profile=profile)
        for numbers, profile in crowds(table, size, default_threads())
    ]
    found.sort(key=lambda one: (-one.profile[0], len(one.columns), one.columns))
    return Uniqueness(columns=table.names, size=size, rows=table.rows, people=table.people, combinations=tuple(found))


def _told(combinations: Sequence[Combination]) -> list[str]:
    return [f"    {one}" for one in combinations]


# --- lone_cells ---
# What is left of uniqueness if only noisy counts are published: is there somebody in this cell, or nobody?
#
# Whoever is alone in an exact table is seen in it: a cell of one person is not empty. In a private one, cells of one
# person and empty cells look alike, as far as the guarantee says.


_MOST = 40_000_000  # Cells; each takes a count of 8 bytes and its noise.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoneCells:
    """How often a cell is said to hold somebody that holds one person, or nobody, and what no attacker exceeds."""

    columns: tuple[str, ...]
    epsilon: float
    alone: Success  # cells of one person in which somebody is seen: the true positives
    empty: Success  # empty cells in which somebody is seen: the false positives
    ceiling: float  # the share of true positives that no attacker exceeds, at as many false ones

    def __str__(self) -> str:
        told = [
            ("seen in cells of one person", self.alone),
            ("seen in empty cells", self.empty),
            ("no attacker exceeds", f"{100 * self.ceiling:.0f} %"),
        ]
        head = f"private counts by {', '.join(self.columns)} at ε = {self.epsilon:g}: somebody is"
        return "\n".join([head, *(f"  {label:<28} {value}" for label, value in told)])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw the true and the false positives with their limits, and the ceiling."""
        from discreet.plots import error_bars

        (low, high), (empty_low, empty_high) = self.alone.interval(), self.empty.interval()
        return error_bars(
            ["seen in cells of one person", "seen in empty cells", "no attacker exceeds"],
            [self.alone.share, self.empty.share, self.ceiling],
            [low, empty_low, self.ceiling],
            [high, empty_high, self.ceiling],
            across="share of cells",
            title=title,
        )


@working("attacking", terminal=False)
def lone_cells(rows: Any, columns: NamedColumns, *, epsilon: Number) -> NotPrivate[LoneCells]:
    """Release counts of every combination of values with Laplace noise, and look for those who are alone.

    Every row is a person, who changes one count by one. Somebody is seen in a cell if its noisy count is 1 or more.

    Args:
        rows: The private table: a file of this machine, a frame or an Arrow table.
        columns: The columns whose combinations are counted.
        epsilon: What the release of all counts spends, above 0.

    Returns:
        How often somebody is seen in cells of one person and in empty cells, and the ceiling, marked as not private.

    Raises:
        InvalidParameter: If nobody is alone, or no cell is empty.

    Examples:
        >>> import pyarrow as pa
        >>> rows = pa.table({"zip": [1, 2, 3], "sex": ["f", "m", "f"]})
        >>> dp.attacks.lone_cells(rows, ["zip", "sex"], epsilon=1).value.alone.of
        3
    """
    price = exact(epsilon, name="epsilon")
    if price <= 0:
        raise InvalidParameter("epsilon must be above 0")
    with laboratory({"rows": rows}) as lab:
        counts = _counts(encoded(lab, written_columns(lab, columns, None), None))
    alone, empty = (_seen(int((counts == people).sum()), people, price) for people in (1, 0))
    if not alone.of or not empty.of:
        raise InvalidParameter("no cell has exactly one person, or no cell is empty: there is nothing to compare")
    ceiling = best_tpr(PureDP(price), Fraction(empty.interval()[1]), relation=Relation.ADD_REMOVE)
    return NotPrivate(LoneCells(columns=tuple(columns), epsilon=up(price), alone=alone, empty=empty, ceiling=ceiling))


def _counts(table: Encoded) -> Numbers:
    """Count the rows of every combination of values, also of those that nobody has."""
    cells = math.prod(table.sizes)
    if cells > _MOST:
        raise InvalidParameter(
            f"these columns have {cells:,} combinations of values; {_MOST:,} are the most: coarsen one"
        )
    keys = np.zeros(table.rows, dtype=np.int64)
    for codes, size in zip(table.codes, table.sizes, strict=True):
        keys = keys * size + codes
    return np.bincount(keys, minlength=cells)


def _seen(cells: int, people: int, price: Fraction) -> Success:
    """Draw the noise of cells that hold so many people, and count those in which somebody is seen."""
    return Success(int((people + discrete_laplace(1 / price, cells) >= 1).sum()), cells)


# --- singling_out: Singling out: which few facts about one person leave nobody else in a table. ---


_SINGLING_OUT_MOST = 62  # Columns: each is one bit of a word.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SingledOut:
    """One record: how many people fit all of it, and the smallest combinations of facts that only one person fits."""

    columns: tuple[str, ...]
    size: int  # of the largest combination
    people: int
    fits: int  # people who fit all columns; 0 if nobody does
    combinations: tuple[tuple[str, ...], ...]  # none holds another; the shortest first
    crowds: tuple[tuple[str, int], ...]  # how many fit each column by itself

    def __str__(self) -> str:
        if not self.fits:
            return f"nobody of {self.people:,} fits this record in all of {', '.join(self.columns)}"
        lines = [f"  {crowd:>12,}  {column}" for column, crowd in self.crowds]
        head = [f"{self.fits:,} of {self.people:,} people fit this record; by one column alone"]
        if not self.combinations:
            return "\n".join([*head, *lines, f"no {self.size} columns single it out"])
        singled = [f"  {', '.join(columns)}" for columns in self.combinations]
        return "\n".join([*head, *lines, "only one person fits it in", *singled])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        document = {
            "columns": list(self.columns),
            "size": self.size,
            "people": self.people,
            "fits": self.fits,
            "combinations": [list(columns) for columns in self.combinations],
            "crowds": dict(self.crowds),
        }
        return json.dumps(document, ensure_ascii=False)


@working("attacking", terminal=False)
def singling_out(
    rows: Any, record: Mapping[str, Any], *, size: int = 4, person: str | None = None
) -> NotPrivate[SingledOut]:
    """Find the smallest combinations of columns in which only one person fits a record.

    `record` is what is known of somebody, by column: {"zip": "02138", "birth_date": "1945-07-31"}. Values are read as
    the column has them; None is a missing one. `person` tells whose rows are whose.

    Args:
        rows: The private table: a file of this machine, a frame or an Arrow table.
        record: What is known of somebody.
        size: How many facts a combination has at most.
        person: The column that tells people apart; every row is a person if not said.

    Returns:
        The combinations, marked as not private.

    Raises:
        InvalidParameter: If there are no facts or too many, or there is no such column.

    Examples:
        >>> import pyarrow as pa
        >>> rows = pa.table({"zip": [1, 1, 2], "sex": ["f", "m", "f"], "age": [30, 30, 30]})
        >>> dp.attacks.singling_out(rows, {"zip": 1, "sex": "f", "age": 30}).value.combinations
        (('zip', 'sex'),)
    """
    if size < 1 or not 0 < len(record) <= _SINGLING_OUT_MOST:
        raise InvalidParameter(f"say from 1 to {_SINGLING_OUT_MOST} facts of a record, and a size of at least 1")
    with laboratory({"rows": rows}) as lab:
        _match(lab, record, person)
        return NotPrivate(_found(lab, tuple(record), min(size, len(record)), "rows" if person is None else "who"))


def _match(lab: Lab, record: Mapping[str, Any], person: str | None) -> None:
    """Make a table of which columns each row fits, one bit each; rows that are alike are counted."""
    columns = written_columns(lab, list(record), None)
    types = [lab.columns["rows"][name] for name in columns]
    values = [None if value is None else str(value) for value in record.values()]
    read = lab.connection.execute(f"SELECT {', '.join(f'TRY_CAST(? AS {kind})' for kind in types)}", values).fetchone()
    for name, value, meant in zip(columns, values, read, strict=True):
        if value is not None and meant is None:
            raise InvalidParameter(
                f"what is known of {name!r} cannot be read as its type, {types[[*columns].index(name)]}"
            )
    bits = " + ".join(
        f"CASE WHEN {column} IS NOT DISTINCT FROM CAST(? AS {kind}) THEN {1 << i} ELSE 0 END"
        for i, (column, kind) in enumerate(zip(columns.values(), types, strict=True))
    )
    who = "0" if person is None else lab.column("rows", person)
    lab.connection.execute(
        f"CREATE TEMP TABLE matched AS SELECT CAST({bits} AS BIGINT) AS bits, {who} AS who, count(*) AS rows "
        f"FROM {lab.relations['rows']} GROUP BY ALL",
        values,
    )


def _found(lab: Lab, columns: tuple[str, ...], size: int, counted: str) -> SingledOut:
    amount = "coalesce(sum(rows), 0)" if counted == "rows" else "count(DISTINCT who)"

    def crowd(places: Sequence[int]) -> int:
        mask = sum(1 << place for place in places)
        query = f"SELECT {amount} FROM matched WHERE bits & {mask} = {mask}"
        return int(lab.connection.execute(query).fetchone()[0])

    singled: list[frozenset[int]] = []
    fits = crowd(range(len(columns)))
    for length in range(1, size + 1 if fits else 0):
        for places in combinations(range(len(columns)), length):
            # What holds a combination that singles out needs no counting.
            if not any(smaller <= set(places) for smaller in singled) and crowd(places) == 1:
                singled.append(frozenset(places))
    return SingledOut(
        columns=columns,
        size=size,
        people=crowd(()),
        fits=fits,
        combinations=tuple(tuple(columns[place] for place in sorted(one)) for one in singled),
        crowds=tuple((name, crowd([place])) for place, name in enumerate(columns)),
    )
