"""Invariants: cells whose numbers everybody knows. Atoms in the same known cells form a class; classes are disjoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.release.tidy.layout import Spot

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["CONTRADICTION", "Known", "known_cells", "whole_totals"]

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

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
