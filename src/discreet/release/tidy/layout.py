"""Where the cells of a family of tables lie: each is a sum of atoms, the cells of the common refinement.

Atoms are the groups by all columns of the family at once, as finely as any of its tables tells them apart. Everything
here follows from the plan: from groupings, levels and public values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.release.plan import Level

__all__ = ["MOST_ATOMS", "CellLayout", "Spot", "lay_out"]

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
    named = {level.name: level for level in levels}
    used = list(dict.fromkeys(name for by in groupings.values() for name in by))
    axes = [_axis([name for name in used if _base(name, named) == base], base, named, domains) for base in
            _bases_by_use(groupings, named)]  # fmt: skip
    shape = tuple(len(next(iter(axis.values()))) for axis in axes)
    if prod(shape) > MOST_ATOMS:
        raise InvalidParameter(
            f"all groupings of this family together make {prod(shape):,} groups, more than the {MOST_ATOMS:,} that are "
            "made to add up: publish fewer columns in one family, or coarser ones"
        )
    return CellLayout(shape, {table: _spot(by, axes, shape, domains) for table, by in groupings.items()})


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
