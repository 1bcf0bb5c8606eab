"""Whole numbers near consistent real ones. Atoms are rounded, and all tables are added up from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.release.tidy.layout import Spot
from discreet.release.tidy.least_squares import FamilyColumn

__all__ = ["whole"]

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

WHOLE_ROUNDS = 200
IN_VAIN = 1000
WORTH_IT = 1e-4  # steps in a round, for each atom; below ten thousand atoms, any
SMALL = 1e-9  # Gains that could be rounding errors.
WIDE = 10  # Rounding errors of n atoms add up to about half the root of n.


def whole(family: FamilyColumn, spots: Sequence[Spot], atoms: Floats, *, not_negative: bool) -> Places:
    """Return whole atoms near real ones, with the known total of every class; hardly a step makes the misfit less.

    A step moves one atom by one, or one up and another of its class down. Where noise is so wide that no table could
    tell, no steps are tried.
    """
    rounded = _rounded(family, atoms)
    if min(family.deviations) > WIDE * atoms.size**0.5:
        return rounded
    search = _WholeSearch.start(family, spots, rounded, not_negative=not_negative)
    for _ in range(WHOLE_ROUNDS):
        if search.single_steps() + search.double_steps() <= WORTH_IT * atoms.size:
            break
    return np.array(search.atoms, np.int64)


def _rounded(family: FamilyColumn, atoms: Floats) -> Places:
    """Round so that the sum of every run of neighbours of one class is off by less than one."""
    order = np.argsort(family.known.classes, kind="stable")
    classes = family.known.classes[order]
    first = np.flatnonzero(np.diff(classes, prepend=-2))
    running = np.cumsum(atoms[order])
    running -= np.repeat(np.concatenate([[0.0], running[first[1:] - 1]]), np.diff(first, append=classes.size))
    steps = np.floor(running + 0.5)
    rounded = np.diff(steps, prepend=0.0)
    rounded[first] = steps[first]
    result = np.empty(atoms.size, np.int64)
    result[order] = rounded
    return _settled(family, result)


def _settled(family: FamilyColumn, atoms: Places) -> Places:
    """Give every class its total to the last unit: floats may have missed large ones by a few."""
    known = family.known
    sums = np.zeros(known.count + 1, np.int64)
    np.add.at(sums, known.classes + 1, atoms)
    for number in np.flatnonzero(known.values - sums[1:]).tolist():
        members = np.flatnonzero(known.classes == number)
        atoms[members[np.argmax(atoms[members])]] += known.values[number] - sums[number + 1]
    return atoms


def _while_it_helps(steps: Iterator[bool]) -> int:
    """Take steps until many in a row did not help, since others before them did; return how many did."""
    taken = vain = 0
    for helped in steps:
        taken, vain = taken + helped, 0 if helped else vain + 1
        if vain > IN_VAIN:
            break
    return taken


@final
@dataclass(slots=True)
class _WholeSearch:
    """Whole atoms and how far the cells that they add up to are from the raw ones."""

    family: FamilyColumn
    weights: tuple[float, ...]
    spots: Sequence[Spot]
    of_atom: list[list[int]]  # by table
    classes: Places
    atoms: list[int]
    misses: list[list[float]]  # by table and cell, weighed
    not_negative: bool

    @classmethod
    def start(cls, family: FamilyColumn, spots: Sequence[Spot], atoms: Places, *, not_negative: bool) -> _WholeSearch:
        cells = family.adding.up(atoms.astype(np.float64))
        parts = zip(family.weights, cells, family.raw, strict=True)
        misses = [(weight * (cell - raw)).tolist() for weight, cell, raw in parts]
        of_atom = [spot.of_atom.tolist() for spot in spots]
        return cls(family, family.weights, spots, of_atom, family.known.classes, atoms.tolist(), misses, not_negative)

    def single_steps(self) -> int:
        """Move atoms of no class by one where that helps; return how many moved."""
        slope, half = self._slopes(), sum(self.weights) / 2
        helped = np.flatnonzero((self.classes < 0) & (np.abs(slope) > half))
        order = helped[np.argsort(-np.abs(slope[helped]), kind="stable")]
        return _while_it_helps(self._single(atom, half) for atom in order.tolist())

    def _single(self, atom: int, half: float) -> bool:
        slope = self._slope(atom)
        if abs(slope) <= half + SMALL or (slope > 0 and not self._may_fall(atom)):
            return False
        self._move(atom, -1 if slope > 0 else 1)
        return True

    def double_steps(self) -> int:
        """Move one atom up and another of its class down where that helps; return how many pairs moved."""
        return _while_it_helps(self._double(up, down) for up, down in self._pairs(self._slopes()))

    def _pairs(self, slope: Floats) -> Iterator[tuple[int, int]]:
        """Pair, class by class, the atoms that should rise most with those that should fall most."""
        above = np.array(self.atoms, np.int64) > 0
        order = np.lexsort((slope, self.classes))
        for run in np.split(order, np.flatnonzero(np.diff(self.classes[order])) + 1):
            falling = run[above[run]][::-1] if self.not_negative else run[::-1]
            count = min(falling.size, run.size // 2)
            up, down = run[:count], falling[:count]
            helps = slope[down] - slope[up] > self._apart(up, down)
            yield from zip(up[helps].tolist(), down[helps].tolist(), strict=True)

    def _apart(self, some: Places, others: Places) -> Floats:
        """Return the weights of the tables in which pairs of atoms are in different cells."""
        apart = np.zeros(some.size)
        for weight, spot in zip(self.weights, self.spots, strict=True):
            apart += weight * (spot.of_atom[some] != spot.of_atom[others])
        return apart

    def _double(self, up: int, down: int) -> bool:
        gain = 0.0
        for weight, misses, cells in zip(self.weights, self.misses, self.of_atom, strict=True):
            if cells[up] != cells[down]:
                gain += misses[cells[down]] - misses[cells[up]] - weight
        if gain <= SMALL or not self._may_fall(down):
            return False
        self._move(up, 1)
        self._move(down, -1)
        return True

    def _may_fall(self, atom: int) -> bool:
        return not self.not_negative or self.atoms[atom] > 0

    def _slopes(self) -> Floats:
        return self.family.adding.down([np.array(part) for part in self.misses])

    def _slope(self, atom: int) -> float:
        return sum(misses[cells[atom]] for misses, cells in zip(self.misses, self.of_atom, strict=True))

    def _move(self, atom: int, by: int) -> None:
        self.atoms[atom] += by
        for weight, misses, cells in zip(self.weights, self.misses, self.of_atom, strict=True):
            misses[cells[atom]] += weight * by
