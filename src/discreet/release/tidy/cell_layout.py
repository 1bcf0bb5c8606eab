"""Where the cells of a family of tables lie: each is a sum of atoms, the cells of the common refinement.

Atoms are the groups by all columns of the family at once, as finely as any of its tables tells them apart. Everything
here follows from the plan: from groupings, levels and public values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.release.plan import Level

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "CONTRADICTION",
    "MOST_ATOMS",
    "CellLayout",
    "Known",
    "Places",
    "Spot",
    "axes_of",
    "known_cells",
    "lay_out",
    "whole_totals",
]

Places: TypeAlias = NDArray[np.int64]
Domains: TypeAlias = Mapping[str, tuple[Hashable, ...]]

MOST_ATOMS = 1_000_000  # Half a minute of work for a column.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """One table: which of its cells every atom is in. Cells are numbered with the last key fastest."""

    by: tuple[str, ...]
    domains: tuple[tuple[Hashable, ...], ...]
    of_atom: Places
    axes: tuple[int, ...]  # of the atoms, that its keys are on; in order
    of_part: Places  # the cell of atoms that were added up over all other axes

    @property
    def cells(self) -> int:
        return prod(len(domain) for domain in self.domains)

    def cell(self, keys: Sequence[Hashable]) -> int:
        """Return the number of the cell with these values of the keys."""
        number = 0
        for value, domain in zip(keys, self.domains, strict=True):
            number = number * len(domain) + domain.index(value)
        return number

    def cells_of(self, columns: Sequence[Sequence[Hashable]], rows: int) -> Places:
        """Return the number of the cell of every row, from the columns of keys."""
        numbers = np.zeros(rows, np.int64)
        for column, domain in zip(columns, self.domains, strict=True):
            place = {value: number for number, value in enumerate(domain)}
            numbers = numbers * len(domain) + np.array([place[value] for value in column], np.int64)
        return numbers


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellLayout:
    """A family of tables by name, and the atoms they are sums of: a block with one axis for each column."""

    shape: tuple[int, ...]
    spots: Mapping[str, Spot]

    @property
    def atoms(self) -> int:
        return prod(self.shape)


def lay_out(groupings: Mapping[str, tuple[str, ...]], levels: Sequence[Level], domains: Domains) -> CellLayout:
    """Place every cell of every table; `domains` lists the public values of every column and level that is used.

    Refused are levels that do not have each value once, and families with too many atoms.
    """
    axes = axes_of(groupings, levels, domains)
    shape = tuple(len(next(iter(axis.values()))) for axis in axes)
    if prod(shape) > MOST_ATOMS:
        raise InvalidParameter(
            f"all groupings of this family together make {prod(shape):,} groups, more than the {MOST_ATOMS:,} that are "
            "made to add up: publish fewer columns in one family, or coarser ones"
        )
    return CellLayout(shape, {table: _spot(by, axes, shape, domains) for table, by in groupings.items()})


def axes_of(
    groupings: Mapping[str, tuple[str, ...]], levels: Sequence[Level], domains: Domains
) -> list[dict[str, Places]]:
    """Return for every column that is grouped by, by the names of it and its levels, the place of each value's group.

    Values of a column are those that some table tells apart.
    """
    named = {level.name: level for level in levels}
    used = list(dict.fromkeys(name for by in groupings.values() for name in by))
    return [
        _axis([name for name in used if _base(name, named) == base], base, named, domains)
        for base in _bases_by_use(groupings, named)
    ]


def _bases_by_use(groupings: Mapping[str, tuple[str, ...]], named: Mapping[str, Level]) -> list[str]:
    """Return the columns, those of most tables first: then cells of most tables are runs of neighbouring atoms."""
    uses = [base for by in groupings.values() for base in dict.fromkeys(_base(name, named) for name in by)]
    return sorted(dict.fromkeys(uses), key=lambda base: -uses.count(base))


def _base(name: str, named: Mapping[str, Level]) -> str:
    return list(_chain(name, named))[-1]


def _chain(name: str, named: Mapping[str, Level]) -> Iterator[str]:
    """Yield a level, what it is made of, and so on down to the column."""
    yield name
    for _ in named:
        if name not in named:
            return
        name = named[name].of
        yield name
    if name in named:
        raise InvalidParameter(f"the level {name} is made of itself")


def _axis(names: list[str], base: str, named: Mapping[str, Level], domains: Domains) -> dict[str, Places]:
    """Return, by name, the place of its value for every atom of one column, coarse neighbours side by side."""
    values = domains[base] if base in names else _spelled_out(names, named)
    places = {name: _places(name, base, values, named, domains[name]) for name in names}
    coarse_first = sorted(names, key=lambda name: len(domains[name]))
    table = np.array([places[name] for name in coarse_first], np.int64)
    atoms = np.unique(table, axis=1)
    return dict(zip(coarse_first, atoms, strict=True))


def _spelled_out(names: list[str], named: Mapping[str, Level]) -> tuple[Hashable, ...]:
    """Return the values of a column that only its levels name."""
    lowest = list(_chain(names[0], named))[-2]
    return tuple(value for members in named[lowest].members.values() for value in members)


def _places(
    name: str, base: str, values: tuple[Hashable, ...], named: Mapping[str, Level], domain: tuple[Hashable, ...]
) -> list[int]:
    current = list(values)
    for level in reversed(list(_chain(name, named))[:-1]):
        belongs = _belongs(named[level])
        if any(value not in belongs for value in current):
            raise InvalidParameter(
                f"the level {level} leaves out values of {named[level].of}: list every one of them under its members"
            )
        current = [belongs[value] for value in current]
    place = {value: number for number, value in enumerate(domain)}
    if any(value not in place for value in current):
        raise InvalidParameter(f"the values of {name} are not all among its public values: list the same ones")
    return [place[value] for value in current]


def _belongs(level: Level) -> dict[Hashable, Hashable]:
    pairs = [(value, member) for member, values in level.members.items() for value in values]
    if len({value for value, _ in pairs}) < len(pairs):
        raise InvalidParameter(f"the level {level.name} has a value of {level.of} twice: list it under one member only")
    return dict(pairs)


def _spot(by: tuple[str, ...], axes: Sequence[Mapping[str, Places]], shape: tuple[int, ...], domains: Domains) -> Spot:
    on = {name: next(number for number, axis in enumerate(axes) if name in axis) for name in by}
    kept = tuple(sorted(set(on.values())))
    numbers = np.zeros([size if number in kept else 1 for number, size in enumerate(shape)], np.int64)
    for name in by:
        along = axes[on[name]][name].reshape([-1 if number == on[name] else 1 for number in range(len(shape))])
        numbers = numbers * len(domains[name]) + along
    of_atom = np.broadcast_to(numbers, shape).reshape(-1)
    return Spot(by, tuple(domains[name] for name in by), of_atom, kept, numbers.reshape(-1))


# --- known ---
# Invariants: cells whose numbers everybody knows. Atoms in the same known cells form a class; classes are disjoint.


Floats: TypeAlias = NDArray[np.float64]

CONTRADICTION = (
    "the invariants of this family contradict each other: no tables have all of them at once. Compare each total with "
    "the sum of its parts"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of sums of atoms: the sum over the classes of each row of `members` is its value."""

    classes: Places  # of every atom; -1 where nothing is known
    members: csr_array  # known cell by class: 1 where the class is part of the cell
    values: Places  # in grains, one for each known cell

    @property
    def count(self) -> int:
        """How many classes there are."""
        return int(self.members.shape[1])

    def sums(self, atoms: Floats) -> Floats:
        """Add atoms up by class."""
        sums: Floats = np.bincount(self.classes + 1, atoms, self.count + 1)[1:].astype(np.float64)
        return sums

    def spread(self, by_class: Floats) -> Floats:
        """Give every atom the number of its class, and zero to those that are in none."""
        spread: Floats = np.concatenate([[0.0], by_class])[self.classes + 1]
        return spread

    def each_class(self, totals: Places) -> Known:
        """Know the total of every class instead."""
        from scipy.sparse import eye_array

        return Known(self.classes, eye_array(self.count, dtype=np.int64, format="csr"), totals)


def known_cells(cells: Mapping[tuple[int, int], int], spots: Sequence[Spot], atoms: int) -> Known:
    """Read known numbers, by table and cell."""
    from scipy.sparse import csr_array

    codes, marks = np.zeros(atoms, np.int64), np.zeros((1, 0), np.int64)
    for table in sorted({table for table, _ in cells}):
        marked = _marked(spots[table], {cell: n for n, (of, cell) in enumerate(cells) if of == table})
        pairs, codes = np.unique(codes * (len(cells) + 1) + marked + 1, return_inverse=True)
        before, new = np.divmod(pairs, len(cells) + 1)
        marks = np.column_stack([marks[before], new - 1])
    anything = (marks >= 0).any(axis=1)
    classes = np.where(anything, np.cumsum(anything) - 1, -1)[codes]
    place, column = np.nonzero(marks[anything] >= 0)
    shape = (len(cells), int(anything.sum()))
    members = csr_array((np.ones(place.size, np.int64), (marks[anything][place, column], place)), shape=shape)
    return Known(classes, members, np.array(list(cells.values()), np.int64))


def _marked(spot: Spot, numbers: Mapping[int, int]) -> Places:
    """Return which known cell of a table every atom is in, or -1."""
    of_cell = np.full(spot.cells, -1, np.int64)
    of_cell[list(numbers)] = list(numbers.values())
    marked: Places = of_cell[spot.of_atom]
    return marked


def whole_totals(known: Known, wanted: Floats, *, not_negative: bool) -> Places:
    """Return whole totals of all classes that agree with all that is known, as near to what is wanted as can be.

    Refused if there are none: then the invariants contradict each other.
    """
    base = np.rint(np.maximum(wanted, 0) if not_negative else wanted).astype(np.int64)
    missing = known.values - known.members @ base
    moved = base + _moves(known, base, wanted - base, missing, not_negative=not_negative) if missing.any() else base
    if (known.members @ moved != known.values).any() or (not_negative and (moved < 0).any()):
        raise InvalidParameter(CONTRADICTION)
    return moved


def _moves(known: Known, base: Places, wanted: Floats, missing: Places, *, not_negative: bool) -> Places:
    """Solve the integer program: least sum of distances to `wanted`, in moves from `base`."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye_array, hstack

    count, eye = known.count, eye_array(known.count)
    least = -base.astype(float) if not_negative else np.full(count, -np.inf)
    found: Any = milp(
        np.repeat([0.0, 1.0], count),
        integrality=np.repeat([1, 0], count),
        bounds=Bounds(np.concatenate([least, np.zeros(count)]), np.inf),
        constraints=[
            LinearConstraint(hstack([known.members, csr_array(known.members.shape)]), missing, missing),
            LinearConstraint(hstack([eye, -eye]), -np.inf, wanted),
            LinearConstraint(hstack([eye, eye]), wanted, np.inf),
        ],
    )
    if found.x is None:
        raise InvalidParameter(CONTRADICTION)
    moves: Places = np.rint(found.x[:count]).astype(np.int64)
    return moves
