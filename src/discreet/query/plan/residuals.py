"""Noise for a family of tables, drawn once for all of them: residual measurements.

Tables of a family are sums of the same atoms. A table by A is the sum of its *residuals*: of the total, of what each
column adds to it, of what two columns add to these, and so on, each of them averaged over the groups that the table is
finer by. Every residual is measured once, whichever tables need it, so tables that overlap do not pay for the same
thing twice.

Theorem     Let a level of a column divide each group g' of the level above it into |g'| groups. For a residual A, with
            one level of some columns, let X be the product over its columns of the matrices that take |g'| x - (sum of
            x in g') in every group, and let X count the cells of A, plus Gaussian noise in cell c of variance
                (q / p_A) prod |g'| (|g'| - 1),    with p_A > 0 and the sum of all p_A at most 1.
            One row moves the cells of X in one g' of every column: by |g'| - 1 once and by 1 |g'| - 1 times, so its
            square is prod |g'| (|g'| - 1), and its part of mu squared is p_A / q; nothing, where a g' is one group. For
            all residuals that is at most 1 / q, for each row alike. A root of a sum of squares is a seminorm, so what
            moves atoms by D in all (l1) spends at most D^2 / q of mu squared. [DRS22, XHZK23]
Corollary   Noise of variance v_T on the cells of every table T spends D^2 times the sum of 1 / v_T, if all of D may be
            in one cell. With q the inverse of that sum, residuals spend no more.
Theorem     X / prod |g'| is the residual, and its noise (centred in every g', as the residual is) has the variance
            (q / p_A) prod ((|g'| - 1) / |g'|)^2. A cell of a table has, for each residual below it, one cell of that,
            divided by the number of groups at every step down: residuals are independent, so variances add up.
            With one level a column and s_A = q / p_A this is the mechanism of [XHZK23], and no Gaussian mechanism of
            the same mu has a smaller sum of variances, or largest variance, than the best p_A.

All of it is whole numbers: X is, noise is the exact rounding of a Gaussian to a fine grid, and a cell is one fraction
that is rounded to the nearest whole number, a half to the even one. Noise is symmetric, and so is rounding: whole
tables are right on average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.noise.limits import WIDEST_VARIANCE

__all__ = [
    "GroupTree",
    "Residual",
    "ResidualNoise",
    "SharedDraw",
    "SharedNoise",
    "TableLevels",
    "VarianceTypes",
    "best_shares",
    "is_below",
    "residuals_of",
    "variance_types",
]

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
TableLevels: TypeAlias = tuple[tuple[int, int], ...]  # of every key, in order: the tree, and the level of it
Residual: TypeAlias = tuple[tuple[int, int], ...]  # the same, in the order of the trees

_FINE = 1 << 8  # The least standard deviation of what is drawn: rounding it adds 2^-19 of its variance at most.
_ROUNDING = 1 + Fraction(1, 1 << 19)
_DIGITS = 40  # Bits of a variance that is told, rounded up.
_SHARES = 1 << 30  # Shares are multiples of its inverse.
_SAFE = 1 << 61  # 64 bits hold twice as much.
_MOST_RESIDUALS = 20_000
_MOST_TYPES = 20_000


@final
@dataclass(frozen=True, slots=True)
class GroupTree:
    """The groups of one column, level by level, coarse ones first: for each group the place of the one it is in."""

    parents: tuple[tuple[int, ...], ...]  # of level 1, whose groups are all in the total, 0; then of level 2, …

    def __post_init__(self) -> None:
        above = 1
        for level in self.parents:
            if set(level) != set(range(above)):
                raise InvalidParameter("every group of a level is made of groups of the level below it")
            above = len(level)

    def cells(self, level: int) -> int:
        """Return how many groups a level has; the total is level 0."""
        return len(self.parents[level - 1]) if level else 1

    def sizes(self, level: int) -> Integers:
        """Return for every group of a level how many groups the one above it is divided into."""
        parents = np.array(self.parents[level - 1], np.int64)
        return np.bincount(parents).astype(np.int64)[parents]

    def above(self, level: int, step: int) -> Integers:
        """Return for every group of a level the group of a coarser one that it is in."""
        places = np.arange(self.cells(level), dtype=np.int64)
        for between in range(level, step, -1):
            places = np.array(self.parents[between - 1], np.int64)[places]
        return places

    def common(self, level: int) -> int:
        """Return a multiple of all sizes of a level."""
        return math.lcm(*np.unique(self.sizes(level)).tolist())

    def paths(self, level: int) -> Integers:
        """Return for every group of a level its size at each step from the total down to it."""
        steps = [self.sizes(step)[self.above(level, step)] for step in range(1, level + 1)]
        return np.array(steps, np.int64).reshape(level, self.cells(level))

    def divisor(self, level: int, step: int) -> int:
        """Return what turns a residual of one step, spread over a level, into whole numbers."""
        below = math.prod(self.common(between) for between in range(step + 1, level + 1))
        return below * (self.common(step) ** 2 if step else 1)

    def denominator(self, level: int) -> int:
        """Return the same for all steps down to a level."""
        return math.lcm(*(self.divisor(level, step) for step in range(level + 1)))

    def factors(self, level: int, step: int) -> list[int]:
        """Return by how much a residual of one step counts in each group of a level, times the denominator.

        It is divided by the square of its own size, and by every size that the level is finer by.
        """
        whole, sizes = self.denominator(level), self.paths(level).tolist()
        found = [whole] * self.cells(level)
        for between in range(max(step, 1), level + 1):
            power = 2 if between == step else 1
            found = [left // size**power for left, size in zip(found, sizes[between - 1], strict=True)]
        return found


def residuals_of(tables: Sequence[TableLevels]) -> tuple[Residual, ...]:
    """Return all residuals that tables are made of, small ones first."""
    found: set[Residual] = set()
    for table in tables:
        steps = [[(tree, step) for step in range(level + 1)] for tree, level in sorted(table)]
        found.update(tuple((tree, step) for tree, step in one if step) for one in product(*steps))
        if len(found) > _MOST_RESIDUALS:
            raise InvalidParameter("these tables are made of too many residuals")
    return tuple(sorted(found, key=lambda one: (len(one), one)))


def is_below(residual: Residual, table: TableLevels) -> bool:
    """Whether a table is as fine as a residual, and so is made of it."""
    levels = dict(table)
    return all(levels.get(tree, 0) >= step for tree, step in residual)


@final
@dataclass(frozen=True, slots=True)
class ResidualNoise:
    """Which residuals are measured for which tables, and the part of the price that each of them has."""

    trees: tuple[GroupTree, ...]
    tables: tuple[TableLevels, ...]
    shares: tuple[Fraction, ...]  # of each of `residuals`

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.residuals) or min(self.shares) <= 0 or sum(self.shares) > 1:
            raise InvalidParameter("every residual needs a part of the price, and all of them are the whole at most")

    @property
    def residuals(self) -> tuple[Residual, ...]:
        """What is measured."""
        return residuals_of(self.tables)

    def largest(self) -> tuple[Fraction, ...]:
        """Return the largest variance of a cell of each table, for q = 1, before it is rounded to whole numbers."""
        types = variance_types(self.trees, self.tables)
        values = types.times([1 / float(share) for share in self.shares])
        at = [max(np.flatnonzero(types.tables == one).tolist(), key=values.__getitem__) for one in range(types.count)]
        return tuple(_bits_up(_ROUNDING * types.exact(column, self.shares)) for column in at)

    def _summed(self, table: TableLevels, residual: Residual, cells: NDArray[Any]) -> NDArray[Any]:
        """Add the cells of a table up to those of a residual, whose columns are in the order of trees."""
        steps = dict(residual)
        cells = cells if cells.size * _most(cells) < _SAFE else cells.astype(object)
        for place, (tree, level) in enumerate(table):
            step = steps.get(tree, 0)
            moved = np.moveaxis(cells, place, 0)
            sums = np.zeros((self.trees[tree].cells(step), *moved.shape[1:]), cells.dtype)
            np.add.at(sums, self.trees[tree].above(level, step), moved)
            cells = np.moveaxis(sums, 0, place)
        order = sorted(range(len(table)), key=lambda place: table[place][0])
        kept = cells.transpose(order)
        return kept.reshape([self.trees[tree].cells(step) for tree, step in residual])

    def precisions(self) -> dict[Residual, Fraction] | None:
        """Return weights of groupings, some below zero, whose weighted squares add up to those of all residuals.

        These are squares of errors of residuals over the variances of their noise, for q = 1: the inverse covariance
        of all tables. A square that is centred along an axis is that of its cells less that of the sums above, over
        their size. None where groups of one level have unlike sizes: then weights would differ from cell to cell.
        """
        found: dict[Residual, Fraction] = {}
        for residual, share in zip(self.residuals, self.shares, strict=True):
            sizes = [np.unique(self.trees[tree].sizes(step)).tolist() for tree, step in residual]
            if any(len(kinds) > 1 for kinds in sizes):
                return None
            if any(kinds == [1] for kinds in sizes):
                continue
            own = share / math.prod((Fraction(size - 1, size) for (size,) in sizes), start=Fraction(1))
            for lowered in product((0, 1), repeat=len(residual)):
                steps = ((tree, step - less) for (tree, step), less in zip(residual, lowered, strict=True))
                grouping = tuple((tree, step) for tree, step in steps if step)
                part = math.prod(-size if less else 1 for (size,), less in zip(sizes, lowered, strict=True))
                found[grouping] = found.get(grouping, Fraction(0)) + own / part
        return found

    def fits(self, q: Fraction) -> bool:
        """Whether all of it can be drawn."""
        return all(map(self._is_drawn, self.residuals, (q / share * _finer(q) ** 2 for share in self.shares)))

    def _is_drawn(self, residual: Residual, variance: Fraction) -> bool:
        largest = (int(self.trees[tree].sizes(step).max()) for tree, step in residual)
        return variance * math.prod(size * (size - 1) or 1 for size in largest) <= WIDEST_VARIANCE

    def release(self, tables: Sequence[NDArray[Any]], q: Fraction) -> list[NDArray[Any]]:
        """Measure all residuals once, with noise, and return all tables that follow, in whole numbers.

        Each residual is taken from the first table that has it, so that the tables are one mechanism by construction,
        whatever they hold: nothing here fails, and nothing but the measured residuals decides. Tables of the same rows
        are what they are, plus noise. The exact tables are private.
        """
        fine, measured = _finer(q), dict[Residual, NDArray[Any]]()
        shaped = [
            cells.reshape([self.trees[tree].cells(level) for tree, level in table])
            for table, cells in zip(self.tables, tables, strict=True)
        ]
        for residual, share in zip(self.residuals, self.shares, strict=True):
            first = next(place for place, table in enumerate(self.tables) if is_below(residual, table))
            exact = self._centred(residual, self._summed(self.tables[first], residual, shaped[first]))
            drawn = self._noise(residual, q / share * fine**2)
            kind: Any = np.int64 if fine * _most(exact) + _most(drawn) < _SAFE else object
            told = exact.astype(kind).reshape(-1) * fine + drawn.astype(kind).reshape(
                -1
            )  # One number is an array, too.
            measured[residual] = told.reshape(drawn.shape)
        return [one.whole() for one in self.tables_of(measured, fine)]

    def tables_of(self, measured: Mapping[Residual, NDArray[Any]], fine: int = 1) -> list[SharedDraw]:
        """Return the tables that follow from X, or from noise on it, by residual; `fine` of its steps are one."""
        centred = {residual: self._centred(residual, cells) for residual, cells in measured.items()}
        return [self._added(table, centred, fine) for table in self.tables]

    def _noise(self, residual: Residual, variance: Fraction) -> Integers:
        """Draw noise for every cell of X that a row can move; others are zero."""
        shape = [self.trees[tree].cells(step) for tree, step in residual]
        squares = np.ones(shape, np.int64)
        for place, (tree, step) in enumerate(residual):
            sizes = self.trees[tree].sizes(step)
            squares = squares * _along(sizes * (sizes - 1), place, len(shape))
        drawn = np.zeros(shape, np.int64)
        for square in np.unique(squares[squares > 0]).tolist():
            here = squares == square
            drawn[here] = noise.rounded_gaussian(variance=variance * square, size=int(here.sum()))
        return drawn

    def _centred(self, residual: Residual, cells: NDArray[Any]) -> NDArray[Any]:
        """Take off what X has not: the means within the groups above."""
        grown = math.prod(2 * int(self.trees[tree].sizes(step).max()) for tree, step in residual)
        found = cells if grown * _most(cells) < _SAFE else cells.astype(object)
        for place, (tree, step) in enumerate(residual):
            found = self._less_mean(found, place, tree, step)
        return found

    def _less_mean(self, cells: NDArray[Any], place: int, tree: int, step: int) -> NDArray[Any]:
        """Return |g'| x - (sum of x in g') along one axis."""
        parents, sizes = np.array(self.trees[tree].parents[step - 1], np.int64), self.trees[tree].sizes(step)
        moved = np.moveaxis(cells, place, 0)
        sums = np.zeros((int(parents.max()) + 1, *moved.shape[1:]), cells.dtype)
        np.add.at(sums, parents, moved)
        return np.moveaxis(moved * _along(sizes, 0, moved.ndim) - sums[parents], 0, place)

    def _added(self, table: TableLevels, centred: Mapping[Residual, NDArray[Any]], fine: int) -> SharedDraw:
        """Add up what all residuals give to a table, over a common denominator."""
        denominator = math.prod(self.trees[tree].denominator(level) for tree, level in table)
        below = [one for one in centred if is_below(one, table)]
        most = max(fine, sum(_most(centred[one]) for one in below))
        kind: Any = np.int64 if denominator * most < _SAFE else object
        total = np.zeros([self.trees[tree].cells(level) for tree, level in table], kind)
        for one in below:
            total += self._spread(table, one, centred[one].astype(kind))
        return SharedDraw(total.reshape(-1), denominator * fine)

    def _spread(self, table: TableLevels, residual: Residual, cells: NDArray[Any]) -> NDArray[Any]:
        """Give every cell of a table its part of a residual, times the denominator."""
        steps = dict(residual)
        trees = [tree for tree, _ in table if tree in steps]
        found = cells.transpose([[one for one, _ in residual].index(tree) for tree in trees])
        for place, (tree, level) in enumerate(table):
            step = steps.get(tree, 0)
            if step:
                found = np.take(found, self.trees[tree].above(level, step), axis=place)
            else:
                found = np.expand_dims(found, place)
            factors = np.array(self.trees[tree].factors(level, step), cells.dtype)
            found = found * _along(factors, place, found.ndim)
        return found


def _along(values: NDArray[Any], place: int, dimensions: int) -> NDArray[Any]:
    return values.reshape([-1 if one == place else 1 for one in range(dimensions)])


def _finer(q: Fraction) -> int:
    """Return how many steps are drawn for one of X: shares are at most one, and squares at least."""
    return 1 << (math.ceil(_FINE**2 / q).bit_length() + 1) // 2


def _most(numbers: NDArray[Any]) -> int:
    return max(abs(int(numbers.max())), abs(int(numbers.min())))


def _bits_up(value: Fraction) -> Fraction:
    """Round a positive number up to a few bits."""
    bits = value.numerator.bit_length() - value.denominator.bit_length() - _DIGITS
    step = Fraction(2) ** bits
    return math.ceil(value / step) * step


@final
@dataclass(frozen=True, slots=True, eq=False)
class SharedDraw:
    """The cells of one table: fractions of one denominator."""

    over: NDArray[Any]
    under: int

    def whole(self) -> NDArray[Any]:
        """Return the nearest whole numbers, of two the even one."""
        found = self.over // self.under  # np.divmod takes no whole numbers beyond 64 bits.
        rest = self.over - found * self.under
        above = np.asarray(2 * rest > self.under, np.bool_)
        tied = np.asarray(2 * rest == self.under, np.bool_) & np.asarray(found % 2 == 1, np.bool_)
        return np.asarray(found + (above | tied))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNoise:
    """The noise of one table that is drawn together with its family; it must not be drawn by itself."""

    family: str
    residuals: ResidualNoise
    table: int
    scales: tuple[Fraction | None, ...]  # q of every number; None if its noise is its own
    variances: tuple[Fraction | None, ...]  # the largest of a cell, before it is rounded to a whole number
    aim: str  # what the shares are best for

    @property
    def alone(self) -> tuple[Fraction | None, ...]:
        """The variances of noise of its own that would tell as much as this table does by itself; None if it has that.

        Theorem     A table and the residuals below it follow from each other, so who sees it alone sees all of these:
                    D^2 / q times the sum of their p_A. That other tables pay for them, too, makes them no secret.
        """
        noise, table = self.residuals, self.residuals.tables[self.table]
        told = zip(noise.residuals, noise.shares, strict=True)
        below = sum((share for one, share in told if is_below(one, table)), Fraction(0))
        return tuple(None if q is None else q / below for q in self.scales)


# --- variances: What each residual adds to the variance of each kind of cell, and the best shares of the price. ---
#
# Theorem     With shares p, the variance of a cell is the sum of f_A / p_A. The weighted sum of all variances is then
#             the sum of b_A / p_A, which is least for p_A as the root of b_A (Cauchy and Schwarz). The largest one is
#             least for the p that is best for the sum with some weights, by minimax: the value of the sum is concave in
#             these, and never above the largest, so how far the found one is from the best is known.
#
# Sums are in a fixed order and products apart from them: the same shares come out on every machine.


@final
@dataclass(frozen=True, slots=True, eq=False)
class VarianceTypes:
    """Cells of a table that no residual tells apart, and what each residual adds to their variance, over its share."""

    count: int  # of tables
    residuals: int
    tables: Integers  # of every type
    cells: Floats  # of every type: how many
    rows: Integers  # of every entry: the residual,
    columns: Integers  # the type,
    values: tuple[Fraction, ...]  # and the factor,
    floats: Floats  # near to it

    def times(self, inverse: Sequence[float]) -> Floats:
        """Return the variance of every type for inverse shares."""
        added = np.bincount(self.columns, self.floats * np.array(inverse)[self.rows], self.tables.size)
        return added.astype(np.float64, copy=False)

    def sums(self, weights: Floats) -> Floats:
        """Return b of every residual for weights of types."""
        added = np.bincount(self.rows, self.floats * weights[self.columns], self.residuals)
        return added.astype(np.float64, copy=False)

    def exact(self, column: int, shares: Sequence[Fraction]) -> Fraction:
        """Return the variance of one type."""
        found = np.flatnonzero(self.columns == column).tolist()
        return sum((self.values[entry] / shares[self.rows[entry]] for entry in found), Fraction(0))


def variance_types(trees: Sequence[GroupTree], tables: Sequence[TableLevels]) -> VarianceTypes:
    """Find all kinds of cells."""
    place = {residual: number for number, residual in enumerate(residuals_of(tables))}
    of_type: list[int] = []
    cells: list[int] = []
    entries: list[tuple[int, int, Fraction]] = []
    for number, table in enumerate(tables):
        for paths, count in _types(trees, table):
            entries += [(place[one], len(of_type), value) for one, value in _factors(table, paths) if value]
            of_type.append(number)
            cells.append(count)
        if len(of_type) > _MOST_TYPES:
            raise InvalidParameter("the groups of these tables differ too much")
    rows, columns, values = zip(*entries, strict=True)
    return VarianceTypes(
        len(tables),
        len(place),
        np.array(of_type, np.int64),
        np.array(cells, np.float64),
        np.array(rows, np.int64),
        np.array(columns, np.int64),
        tuple(values),
        np.array([float(value) for value in values]),
    )


def _types(trees: Sequence[GroupTree], table: TableLevels) -> Iterator[tuple[tuple[tuple[int, ...], ...], int]]:
    """Yield the sizes on the way down to a cell, key by key, and how many cells have these."""
    each = []
    for tree, level in table:
        paths, counts = np.unique(trees[tree].paths(level), axis=1, return_counts=True)
        each.append(list(zip(map(tuple, paths.T.tolist()), counts.tolist(), strict=True)))
    if math.prod(len(kinds) for kinds in each) > _MOST_TYPES:
        raise InvalidParameter("the groups of these tables differ too much")
    for kinds in product(*each):
        yield tuple(path for path, _ in kinds), math.prod(count for _, count in kinds)


def _factors(table: TableLevels, paths: Sequence[tuple[int, ...]]) -> Iterator[tuple[Residual, Fraction]]:
    """Yield all residuals below a table with what each adds to the variance of one kind of cell."""
    steps = [
        [((tree, step), _factor(path, step)) for step in range(level + 1)]
        for (tree, level), path in sorted(zip(table, paths, strict=True))
    ]
    for chosen in product(*steps):
        residual = tuple(place for place, _ in chosen if place[1])
        yield residual, math.prod((factor for _, factor in chosen), start=Fraction(1))


def _factor(path: tuple[int, ...], step: int) -> Fraction:
    own = Fraction(path[step - 1] - 1, path[step - 1]) ** 2 if step else Fraction(1)
    return own / math.prod(path[step:]) ** 2


_ROUNDS = 1000
_NEAR = 1.0005  # The largest variance is found to so many times the least.
_LEFT = 1 - 2**-15  # Of the price, so that the least shares fit in.
_BELOW = 0.9995  # Of what no table may exceed: rounding shares moves variances by less.


def best_shares(
    types: VarianceTypes, weights: Sequence[float], *, largest: bool, most: Sequence[float] | None = None
) -> tuple[Fraction, ...] | None:
    """Return the shares for which the sum of all variances, times the weights of tables, is least; or the largest.

    With `most` no table has a variance above it, for q = 1; None if no shares were found for that.
    """
    each = np.array(weights, np.float64)[types.tables]
    if largest:
        return _rounded_down(_least_largest(types, each))
    weighed = types.cells * each
    if most is None:
        return _rounded_down(_least_sum(types, weighed))
    limits = np.array(most, np.float64)[types.tables] * _BELOW
    for _ in range(_ROUNDS):
        shares = _least_sum(types, weighed)
        over = types.times((1 / shares).tolist()) / limits
        if over.max() <= 1:
            return _rounded_down(shares)
        weighed = weighed * np.maximum(over, 1.0)
        weighed = weighed / weighed.max()
    return None


def _least_sum(types: VarianceTypes, weights: Floats) -> Floats:
    roots = np.sqrt(types.sums(weights))
    return np.maximum(roots / math.fsum(roots.tolist()), 1 / _SHARES)  # One of groups that are alone needs nothing.


def _least_largest(types: VarianceTypes, each: Floats) -> Floats:
    """Move weight to the types with the largest variances, until none is far above the bound that weights prove."""
    prices = types.cells / math.fsum(types.cells.tolist())
    best, least = _least_sum(types, prices * each), math.inf
    for _ in range(_ROUNDS):
        shares = _least_sum(types, prices * each)
        found = types.times((1 / shares).tolist()) * each
        if found.max() < least:
            best, least = shares, float(found.max())
        bound = math.fsum((prices * found).tolist())
        if found.max() <= _NEAR * bound:
            break
        prices = prices * np.sqrt(found / found.max())
        prices = prices / math.fsum(prices.tolist())
    return best


def _rounded_down(shares: Floats) -> tuple[Fraction, ...]:
    parts = [max(1, math.floor(share * _LEFT * _SHARES)) for share in shares.tolist()]
    return tuple(Fraction(part, _SHARES) for part in parts)
