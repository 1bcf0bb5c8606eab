"""Consistent tables near the raw ones: least squares, no negative numbers, whole numbers that add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.release.tidy.cell_layout import CellLayout, Known, Spot, known_cells, whole_totals

__all__ = [
    "Adding",
    "FamilyColumn",
    "RawColumn",
    "adding",
    "estimate",
    "family_of",
    "least_squares",
    "nonnegative",
    "tidy_column",
    "whole",
]

# --- adding ---
# Add atoms up to the cells of all tables, and spread cells back to atoms, coarse tables by way of finer ones.


Floats: TypeAlias = NDArray[np.float64]
Axes: TypeAlias = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class AtomBlock:
    """Atoms added up over some axes, from the smallest block that has all the others."""

    axes: Axes  # that are left
    finer: int | None  # None for all atoms
    over: Axes  # to add up, as the finer block numbers its axes
    shape: tuple[int, ...]  # of the finer block, with these axes of length one


@final
@dataclass(frozen=True, slots=True, eq=False)
class Adding:
    """The linear map from atoms to the cells of all tables, one table after the other, and its transpose."""

    shape: tuple[int, ...]  # of the atoms
    blocks: tuple[AtomBlock, ...]  # finer ones first
    spots: tuple[Spot, ...]
    block_of: tuple[int, ...]  # by table

    @property
    def atoms(self) -> int:
        return prod(self.shape)

    def up(self, atoms: Floats) -> list[Floats]:
        """Add atoms up to the cells of every table."""
        sums: list[Floats] = []
        for block in self.blocks:
            finer = atoms.reshape(self.shape) if block.finer is None else sums[block.finer]
            sums.append(finer.sum(axis=block.over))
        parts = (sums[block].reshape(-1) for block in self.block_of)
        counted = (np.bincount(spot.of_part, part, spot.cells) for spot, part in zip(self.spots, parts, strict=True))
        return [cells.astype(np.float64, copy=False) for cells in counted]

    def down(self, cells: Sequence[Floats]) -> Floats:
        """Give every atom the sum of what its cells have: the transpose."""
        atoms = np.zeros(self.shape)
        sums = [np.zeros([self.shape[axis] for axis in block.axes]) for block in self.blocks]
        for spot, number, part in zip(self.spots, self.block_of, cells, strict=True):
            sums[number] += part[spot.of_part].reshape(sums[number].shape)
        for block, added in zip(reversed(self.blocks), reversed(sums), strict=True):
            finer: Floats = atoms if block.finer is None else sums[block.finer]
            finer += added.reshape(block.shape)
        return atoms.reshape(-1)


def adding(spots: Sequence[Spot], shape: tuple[int, ...]) -> Adding:
    """Find for every table the smallest block that it can be added up from."""
    kept = sorted({spot.axes for spot in spots}, key=lambda axes: -prod(shape[axis] for axis in axes))
    blocks = tuple(_block(axes, kept[:number], shape) for number, axes in enumerate(kept))
    return Adding(shape, blocks, tuple(spots), tuple(kept.index(spot.axes) for spot in spots))


def _block(axes: Axes, before: list[Axes], shape: tuple[int, ...]) -> AtomBlock:
    finer = next((n for n in range(len(before) - 1, -1, -1) if set(before[n]) > set(axes)), None)
    left = tuple(range(len(shape))) if finer is None else before[finer]
    over = tuple(place for place, axis in enumerate(left) if axis not in axes)
    return AtomBlock(axes, finer, over, tuple(shape[axis] if axis in axes else 1 for axis in left))


# --- least_squares ---
# The consistent tables that are nearest to the raw ones, every cell weighed by the inverse of its noise variance.


Flags: TypeAlias = NDArray[np.bool_]

MOST_STEPS = 1000
TIGHT = 1e-9  # A slope that is as good as none, where one standard deviation makes a slope of one.


@final
@dataclass(frozen=True, slots=True, eq=False)
class FamilyColumn:
    """One additive column of all tables of a family, in grains."""

    adding: Adding
    raw: tuple[Floats, ...]  # by table, then by cell
    deviations: tuple[float, ...]  # of the noise, by table
    known: Known
    metric: tuple[float, ...] | None = None  # by table, where noise was shared: instead of inverse variances

    @property
    def weights(self) -> tuple[float, ...]:
        """Inverse variances, the largest of them one; or weights that make up the inverse covariance of all tables."""
        if self.metric is not None:
            return self.metric
        least = min(self.deviations)
        return tuple((least / deviation) ** 2 for deviation in self.deviations)

    def misses(self, atoms: Floats) -> list[Floats]:
        """Return how far cells are from the raw ones."""
        return [cells - raw for cells, raw in zip(self.adding.up(atoms), self.raw, strict=True)]

    def misfit(self, atoms: Floats) -> float:
        """Return the sum of squared distances from the raw values, weighed."""
        return self.length(self.misses(atoms))

    def length(self, cells: Sequence[Floats]) -> float:
        """Return the weighed sum of squares of cells."""
        return sum(weight * _square(part) for weight, part in zip(self.weights, cells, strict=True))

    def slope(self, misses: Sequence[Floats]) -> Floats:
        """Return half the derivative of the misfit by atoms."""
        return self.adding.down([weight * miss for weight, miss in zip(self.weights, misses, strict=True)])


def least_squares(
    family: FamilyColumn, *, start: Floats | None = None, free: Flags | None = None, tolerance: float = TIGHT
) -> Floats:
    """Minimise the misfit over atoms that have all known sums; those that are not `free` stay at zero.

    By conjugate gradients: few steps suffice, since tables that are groupings of the same rows have few eigenvalues.

    Theorem     The consistent tables are an affine space that the exact ones are in, and this is the orthogonal
                projection onto it, with inverse variances as the metric: it is never farther from the exact tables
                than the raw ones are, and the best linear unbiased estimate. [HRMS10]
    """
    free = np.ones(family.adding.atoms, np.bool_) if free is None else free
    allowed = _Allowed(family.known, free)
    atoms = allowed.nearest(np.zeros(free.size) if start is None else np.where(free, start, 0.0))
    misses = family.misses(atoms)
    direction = slope = allowed.moves(-family.slope(misses))
    steep, flat = _square(slope), (tolerance * sum(family.weights) * min(family.deviations)) ** 2 * free.size
    for _ in range(MOST_STEPS):
        if steep <= flat:
            break
        moved = family.adding.up(direction)
        far = steep / family.length(moved)
        atoms = atoms + far * direction
        misses = [miss + far * cells for miss, cells in zip(misses, moved, strict=True)]
        slope = allowed.moves(-family.slope(misses))
        before, steep = steep, _square(slope)
        direction = slope + steep / before * direction
    return allowed.nearest(atoms)


def _square(numbers: Floats) -> float:
    # Not a dot product: its threads wait for each other longer than it takes.
    return float((numbers * numbers).sum())


@final
class _Allowed:
    """Which atoms may move, and which moves keep what is known."""

    def __init__(self, known: Known, free: Flags) -> None:
        self.known, self.free = known, free
        self.inverse: Any = _inverse(known, free) if known.count else None

    def moves(self, moves: Floats) -> Floats:
        """Project onto moves of free atoms that change no known sum."""
        moves = np.where(self.free, moves, 0.0)
        if self.inverse is None:
            return moves
        return moves - self._of_sums(self.known.members @ self.known.sums(moves))

    def nearest(self, atoms: Floats) -> Floats:
        """Move atoms as little as possible to have all known sums."""
        if self.inverse is None:
            return atoms
        missing = self.known.values - self.known.members @ self.known.sums(atoms)
        return atoms + self._of_sums(missing)

    def _of_sums(self, sums: Floats) -> Floats:
        by_class = self.known.members.T @ (self.inverse @ sums)
        return np.where(self.free, self.known.spread(by_class), 0.0)


def _inverse(known: Known, free: Flags) -> Any:
    """Return what turns wanted known sums into moves that are the same within every class."""
    from scipy.sparse import diags_array

    sizes = known.sums(free.astype(np.float64))
    gram = known.members @ diags_array(sizes) @ known.members.T
    own = gram.diagonal()
    if gram.nnz <= np.count_nonzero(own):
        return diags_array(np.divide(1, own, out=np.zeros_like(own), where=own > 0))
    return np.linalg.pinv(gram.toarray(), hermitian=True)


# --- nonnegative: The nearest consistent tables without negative numbers. ---


ROUNDS = 100  # of exchanging atoms at zero with free ones
PATIENCE = 3  # rounds without progress
PROGRESS = 0.9  # of the fewest that were wrong before
FEW = 50  # Atoms that are worth being exchanged one by one.
ROUGH, FINE = 1e-3, 1e-5  # First most of it with little effort, then the rest.


def nonnegative(family: FamilyColumn, start: Floats) -> Floats:
    """Minimise the misfit over atoms that are not negative; the total of every class of atoms must be known.

    Theorem     Atoms at zero whose slope points below zero, and free ones without slope, are the minimum. Atoms that
                break this are exchanged all at once while that helps, and else the last of them alone, which ends
                where the minimum is unique. [KP11] Where that takes too long, atoms are exchanged towards zero only.
    """
    free, atoms = _open(family), start
    for tolerance in (ROUGH, FINE):
        atoms, free, found = _exchanged(family, atoms, free, tolerance)
        if not found:
            return _shrunk(family, atoms, free)
    return np.maximum(atoms, 0.0)


def _exchanged(family: FamilyColumn, atoms: Floats, free: Flags, tolerance: float) -> tuple[Floats, Flags, bool]:
    """Return atoms, which of them are free, and whether that is the minimum."""
    best, patience = family.adding.atoms + 1, PATIENCE
    for _ in range(ROUNDS):
        atoms = least_squares(family, start=atoms, free=free, tolerance=tolerance)
        wrong = _wrong(family, atoms, free, _small(family, tolerance))
        if not wrong.size:
            return atoms, free, True
        patience = PATIENCE if wrong.size < PROGRESS * best else patience - 1
        best = min(best, wrong.size)
        if patience < 0 and wrong.size > FEW:
            break
        free = free.copy()
        chosen = wrong if patience >= 0 else wrong[-1:]
        free[chosen] = ~free[chosen]
    return atoms, free, False


def _small(family: FamilyColumn, tolerance: float) -> float:
    """What is as good as zero: ten times what the tolerance leaves of slopes, as a part of a standard deviation."""
    return 10 * tolerance * min(family.deviations)


def _wrong(family: FamilyColumn, atoms: Floats, free: Flags, small: float) -> NDArray[np.intp]:
    """Return the free atoms that are below zero, and those at zero that should be above."""
    below, wanted = free & (atoms < -small), _wanted(family, atoms, free, small) & _open(family)
    return np.flatnonzero(below | wanted)


def _open(family: FamilyColumn) -> Flags:
    """Return the atoms that may be above zero: all but those of classes without anything in them."""
    empty = family.known.spread((family.known.values == 0).astype(np.float64)) > 0
    return ~empty


def _wanted(family: FamilyColumn, atoms: Floats, free: Flags, small: float) -> Flags:
    """Return atoms at zero that would make the misfit smaller above it."""
    known, slope = family.known, family.slope(family.misses(atoms))
    if known.count:
        members = np.maximum(known.sums(free.astype(np.float64)), 1)
        slope = slope - known.spread(known.sums(np.where(free, slope, 0.0)) / members)
    wanted: Flags = ~free & (slope < -small * sum(family.weights))
    return wanted


def _shrunk(family: FamilyColumn, atoms: Floats, free: Flags) -> Floats:
    """Set to zero what is below it until nothing is; in a class with a total above zero something stays free."""
    for _ in range(family.adding.atoms):
        atoms = least_squares(family, start=atoms, free=free, tolerance=ROUGH)
        below = free & (atoms < -_small(family, ROUGH))
        if not below.any():
            break
        free = free & ~below
    return np.maximum(atoms, 0.0)


# --- whole: Whole numbers near consistent real ones. Atoms are rounded, and all tables are added up from them. ---


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


# --- column ---
# One additive column of a family, from raw values to tidy ones: consistent, then not negative, then whole.


LARGEST = float(1 << 50)  # Beyond, floats would not tell whole numbers apart.


@final
@dataclass(frozen=True, slots=True, eq=False)
class RawColumn:
    """A column of every table of a family, in grains: raw values by cell, their noise, and what is known."""

    values: Mapping[str, Floats]  # by table
    deviations: Mapping[str, Fraction]  # by table, in grains
    known: Mapping[tuple[str, int], int]  # by table and cell
    not_negative: bool
    metric: Sequence[tuple[Spot, str, float]] = ()  # groupings with weights, and the table that each is added up from


def estimate(layout: CellLayout, column: RawColumn) -> dict[str, Floats]:
    """Return the weighted least squares estimate of every cell: consistent and unbiased, neither whole nor positive."""
    atoms = least_squares(family_of(layout, column))
    spots = {table: layout.spots[table] for table in column.values}
    return {
        table: np.bincount(spot.of_atom, atoms, spot.cells).astype(np.float64, copy=False)
        for table, spot in spots.items()
    }


def tidy_column(layout: CellLayout, column: RawColumn) -> dict[str, Places]:
    """Return whole numbers of grains that add up in all tables."""
    family = family_of(layout, column)
    atoms = least_squares(family)
    known = family.known
    settled = known.each_class(whole_totals(known, known.sums(atoms), not_negative=column.not_negative))
    family = replace(family, known=settled)
    atoms = nonnegative(family, atoms) if column.not_negative else least_squares(family, start=atoms)
    rounded = whole(family, family.adding.spots, atoms, not_negative=column.not_negative)
    return {table: _added(layout, table, rounded) for table in column.values}


def _added(layout: CellLayout, table: str, atoms: Places) -> Places:
    spot = layout.spots[table]
    cells = np.zeros(spot.cells, np.int64)
    np.add.at(cells, spot.of_atom, atoms)
    return cells


def family_of(layout: CellLayout, column: RawColumn) -> FamilyColumn:
    """Return the least squares problem of a column."""
    if sum(float(np.abs(values).sum()) for values in column.values.values()) > LARGEST:
        raise InvalidParameter("its values have too many grid steps to be added up in floats: declare a coarser step")
    spots = [layout.spots[table] for table in column.values]
    numbers = {table: number for number, table in enumerate(column.values)}
    known = {(numbers[table], cell): value for (table, cell), value in column.known.items()}
    if column.metric:
        least = min(float(deviation) for deviation in column.deviations.values())
        return FamilyColumn(
            adding([spot for spot, _, _ in column.metric], layout.shape),
            tuple(_summed(layout.spots[table], spot, column.values[table]) for spot, table, _ in column.metric),
            (least,),
            known_cells(known, spots, layout.atoms),
            tuple(weight for _, _, weight in column.metric),
        )
    return FamilyColumn(
        adding(spots, layout.shape),
        tuple(_there(layout, table, values) for table, values in column.values.items()),
        tuple(float(column.deviations[table]) for table in column.values),
        known_cells(known, spots, layout.atoms),
    )


def _summed(fine: Spot, coarse: Spot, values: Floats) -> Floats:
    """Add the cells of a table up to those of a coarser grouping."""
    place = np.zeros(fine.cells, np.int64)
    place[fine.of_atom] = coarse.of_atom
    summed: Floats = np.bincount(place, values, coarse.cells).astype(np.float64)
    return summed


def _there(layout: CellLayout, table: str, values: Floats) -> Floats:
    """Leave out what is in cells that no atom is in, such as a district of another region: those are zero."""
    spot = layout.spots[table]
    there = np.zeros(spot.cells, np.bool_)
    there[spot.of_atom] = True
    return np.where(there, values, 0.0)
