"""Per-example gradients of one parameter, in the three forms in which layers hand them over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from discreet.learn.torch.clipping.float_error import (
    BLOCK,
    CHAIN,
    CHUNK,
    DOUBLE,
    LARGEST_SIZE,
    TINY,
    gamma,
    rows_exactly,
)

__all__ = [
    "Form",
    "Outer",
    "Pairs",
    "Part",
    "Picks",
    "Positions",
    "RowGradients",
    "add_outer",
    "add_pairs",
    "add_rows",
    "add_short_rows",
    "adds_finished",
    "combine",
    "digests",
    "even_length",
    "is_short",
    "joint_squares_up",
    "of_people",
    "pairs_squares_up",
    "squares_up",
]

# --- lengths: How rows and numbers are cut into pieces that float32 may add up. ---


@cache
def even_length(size: int, most: int) -> int:
    """Return the longest piece of at most `most` that divides `size`, or 0 if that is short."""
    longest = max(length for length in range(1, most + 1) if size % length == 0)
    return longest if 2 * longest >= min(size, most) else 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowGradients:
    """The gradient of each row itself. What float32 says here *is* the gradient: its own rounding needs no bound."""

    values: Tensor  # (rows, size), float32

    def squares_up(self) -> Tensor:
        """Bound the squared norm of each row from above, in float64."""
        return squares_up(self.values)

    def sizes(self) -> Tensor | None:
        """Return nothing: these sums do not suffer from terms that cancel."""
        return None

    def without(self, rows: Tensor) -> RowGradients:
        """Return the same with zeros in the given rows, since 0 times infinity is no number."""
        return RowGradients(self.values.masked_fill(rows[:, None], 0.0))

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        """Add the sum over rows of factor times gradient to a flat float64 total."""
        add_rows(total, self.values, factors)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outer:
    """The gradient of a row is `left` times `right` transposed: a matrix of rank one, never formed row by row."""

    left: Tensor  # (rows, p), float32
    right: Tensor  # (rows, d), float32

    def squares_up(self) -> Tensor:
        """Bound the squared norm of each row: |left|^2 |right|^2, infinite if a side is too large to multiply."""
        return joint_squares_up([self])

    def squares_beside(self, left: Doubles) -> Doubles:
        """Bound the squared norm of each row, given that of its left side."""
        right = _squares([self.right])
        return np.where(np.maximum(left, right) <= LARGEST_SIZE**2, left * right, np.inf)

    def sizes(self) -> Tensor | None:
        """Return nothing: one product has nothing to cancel with."""
        return None

    def without(self, rows: Tensor) -> Outer:
        """Return the same with zeros in the given rows."""
        return Outer(self.left.masked_fill(rows[:, None], 0.0), self.right.masked_fill(rows[:, None], 0.0))

    @property
    def is_large(self) -> bool:
        """Whether the sum is long enough to stay in float32, in few enough pieces, until it is read."""
        (rows, height), width = self.left.shape, self.right.shape[1]
        size = height * width
        return size > _SMALL and rows <= _KEPT * CHAIN * BLOCK and is_chained(self.left, self.right)

    def pieces(self, factors: Tensor) -> list[Tensor]:
        """Return flat float32 sums over chains of rows, of factor times gradient: together they are the sum."""
        left, chains = self.left * factors[:, None], _chains(self.left.shape[0], chained=True)
        rooms = [torch.empty(left.shape[1], self.right.shape[1]) for _ in chains]
        return [room.view(-1) for room in _chain_sums(left, self.right, chains, rooms)]

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        """Add the sum over rows of factor times gradient to a flat float64 total."""
        add_outer(total, self.left * factors[:, None], self.right)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The gradient of a row is a sum over positions of left times right transposed.

    The left sides of the last positions may be unit vectors (the rows that an embedding picked). Norms come from the
    inner products of positions, sums from one matrix product; both in float64, since terms may cancel.
    """

    left: Tensor  # (rows, dense positions, p), float32
    picked: Tensor  # (rows, picked positions), int64: the left side is a unit vector
    right: Tensor  # (rows, dense + picked positions, d), float32
    height: int  # p

    def squares_up(self) -> Tensor:
        """Bound the squared norm of each row: sum over s, t of <left_s, left_t> <right_s, right_t>, and its error."""
        return torch.cat([pairs_squares_up(*part) for part in self._parts()])

    def sizes(self) -> Tensor | None:
        """Bound the square of the sum of the norms of all positions' terms, in float64 (Cauchy-Schwarz)."""
        sides = squares_up(self.right.flatten(1))
        dense = squares_up(self.left.flatten(1)) if self.left.shape[1] else 0.0
        return sides.mul_(self.picked.shape[1] + dense)

    def without(self, rows: Tensor) -> Pairs:
        """Return the same with zeros in the given rows."""
        zero = rows[:, None, None]
        return replace(self, left=self.left.masked_fill(zero, 0.0), right=self.right.masked_fill(zero, 0.0))

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        """Add the sum over rows of factor times gradient to a flat float64 total."""
        add_pairs(total, self.left, self.picked, self.right, factors)

    def _parts(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Cut the rows so that the inner products of a part fit into a few megabytes."""
        step = max(1, (1 << 20) // self.right.shape[1] ** 2)
        cut = [torch.split(whole, step) for whole in (self.left, self.picked, self.right)]
        return list(zip(*cut, strict=True))


Form: TypeAlias = RowGradients | Outer | Pairs
Doubles: TypeAlias = NDArray[np.float64]


def digests(form: Form) -> Tensor:
    """Return a whole number for each record that other bits of what its gradient is made of surely change.

    Not against somebody who chooses the bits; for a trial that need not keep the gradients of all rows.
    """
    found = torch.zeros(1, dtype=torch.int64)
    for part in (part for side in fields(form) if isinstance(part := getattr(form, side.name), Tensor)):
        rows = part.flatten(1)
        bits = rows.view(torch.int32) if rows.is_floating_point() else rows
        factors = torch.arange(bits.shape[1]).mul_(2).add_(1).mul_(_MIXING)
        pieces = torch.split(bits, max(1, (1 << 22) // max(1, bits.shape[1])))
        found = found * _MIXING + torch.cat([(piece.long() * factors).sum(1) for piece in pieces])
    return found


_MIXING = 0x1E3779B97F4A7C15  # An odd number whose bits look like chance.


# --- adding ---
# Sums over rows: short ones in float32, then float64, so that the rounding of one row touches one block only.


_SMALL = 1 << 15  # Numbers; the sums of all blocks of so small a parameter are formed at once.
_KEPT = 4  # Sums of chains that are kept in float32 until the whole sum is read; more are added up in float64.


def add_outer(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add the sum over rows of left_i right_i' to a flat float64 total: one small product for each block of rows."""
    if total.numel() <= _SMALL:
        return _add_blocks(total, left, right)
    whole, chains = total.numpy(), _chains(left.shape[0], is_chained(left, right))
    for block in _chain_sums(left, right, chains, [torch.empty(left.shape[1], right.shape[1])]):
        # NumPy adds float32 to float64 without a copy, a third faster than torch does.
        np.add(whole, block.view(-1).numpy(), out=whole)


def _chain_sums(
    left: Tensor, right: Tensor, chains: Sequence[Sequence[slice]], rooms: list[Tensor]
) -> Iterator[Tensor]:
    """Yield float32 sums of left_i right_i' over chains of rows, in `rooms` one after the other."""
    # What was tried lies in memory like this.
    left, right = _aligned(left.contiguous()), _aligned(right.contiguous())
    for number, chain in enumerate(chains):
        room = rooms[number % len(rooms)]
        torch.mm(left[chain[0]].T, right[chain[0]], out=room)
        for rows in chain[1:]:
            room.addmm_(left[rows].T, right[rows])
        yield room


def is_chained(left: Tensor, right: Tensor) -> bool:
    """Whether sums of blocks may be added to each other by the product itself."""
    return adds_finished(left.shape[0], left.shape[1], right.shape[1], *_kernels())


def _kernels() -> tuple[int, bool, bool]:
    """What decides, beside shapes, which kernel multiplies and how: threads, oneDNN, and what becomes of tiny numbers.

    torch does not say whether it flushes those to zero, but one of them shows it.
    """
    tiny = torch.full((1,), 2.0**-127)
    return torch.get_num_threads(), bool(torch.backends.mkldnn.enabled), not bool(tiny.mul_(0.5))


@cache
def adds_finished(rows: int, height: int, width: int, threads: int, onednn: bool, flushed: bool) -> bool:
    """Try bit for bit whether `addmm_` adds a finished product, in every block of a batch of this shape.

    `chain_error` holds for a product that is rounded by itself and added once. A kernel that goes on adding to what is
    there rounds as often as a block has rows. Which kernel runs is decided by shapes, places in memory and `_kernels`,
    not by values: these are such that two ways to add give other bits almost everywhere.
    """
    left, right = _uneven_numbers(rows, height), _uneven_numbers(rows, width)
    total, product = torch.empty(height, width), torch.empty(height, width)
    for first, *others in _chains(rows, chained=True):
        torch.mm(left[first].T, right[first], out=total)
        for block in others:
            torch.mm(left[block].T, right[block], out=product)
            product.add_(total)
            total.addmm_(left[block].T, right[block])
            if not torch.equal(product.view(torch.int32), total.view(torch.int32)):
                return False
    return True


def _uneven_numbers(rows: int, size: int) -> Tensor:
    numbers = torch.arange(1, rows * size + 1, dtype=torch.float64)
    return numbers.mul_(12.9898).sin_().mul_(3.7).float().reshape(rows, size)


def add_rows(total: Tensor, values: Tensor, factors: Tensor) -> None:
    """Add the sum over rows of factor_i values_i to a flat float64 total."""
    _add_blocks(total, factors[:, None], values)


def add_short_rows(totals: Sequence[tuple[Tensor, Tensor]], factors: Tensor) -> None:
    """Do so for several totals at once, each with its values: side by side these are those of one parameter."""
    if len(totals) == 1:
        return add_rows(*totals[0], factors)
    sizes = [values.shape[1] for _, values in totals]
    sums = torch.zeros(sum(sizes), dtype=torch.float64)
    add_rows(sums, torch.cat([values for _, values in totals], 1), factors)
    for (total, _), part in zip(totals, torch.split(sums, sizes), strict=True):
        total.add_(part)


def _add_blocks(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left' right of every block, all that are of one length at once."""
    rows, height = left.shape
    length = _block_length(rows)
    whole = rows - rows % length
    first, second = left[:whole].reshape(-1, length, height), right[:whole].reshape(-1, length, right.shape[1])
    total.add_(torch.bmm(first.transpose(1, 2), second).sum(0, dtype=torch.float64).view(-1))
    if whole < rows:
        total.add_(torch.mm(left[whole:].T, right[whole:]).view(-1))


def _block_length(rows: int) -> int:
    """As few blocks of at most BLOCK rows as there can be, and these as even as they can be.

    All parameters of a model are cut at the same slots. `block_error` needs that: one record touches two blocks of
    every parameter, and if those held other records for other parameters, a record could put its norm where the error
    of its own block is the largest, and more than BLOCK records would count.
    """
    return -(-rows // -(-rows // BLOCK))


def _blocks(rows: int) -> list[slice]:
    length = _block_length(rows)
    return [slice(at, min(at + length, rows)) for at in range(0, rows, length)]


def _chains(rows: int, chained: bool) -> list[list[slice]]:
    """Put blocks into chains of at most CHAIN, as even as they can be, or of one where blocks may not be chained."""
    blocks = _blocks(rows)
    most = CHAIN if chained else 1
    step = -(-len(blocks) // -(-len(blocks) // most))
    return [blocks[at : at + step] for at in range(0, len(blocks), step)]


def add_pairs(total: Tensor, left: Tensor, picked: Tensor, right: Tensor, factors: Tensor) -> None:
    """Add the sum over rows and positions of factor left right', with unit vectors as left sides where picked."""
    whole = total.view(-1, right.shape[2])
    step = rows_exactly(right.shape[1])
    for start in range(0, len(right), step):
        rows = slice(start, start + step)
        whole.add_(_some_pairs(whole, left[rows], picked[rows], right[rows], factors[rows]))


def _some_pairs(like: Tensor, left: Tensor, picked: Tensor, right: Tensor, factors: Tensor) -> Tensor:
    scaled = right.double() * factors.double()[:, None, None]
    dense = left.shape[1]
    part = torch.zeros_like(like)
    if dense:
        part.addmm_(left.double().flatten(0, 1).T, scaled[:, :dense].flatten(0, 1))
    if picked.shape[1]:
        part.index_add_(0, picked.flatten(), scaled[:, dense:].flatten(0, 1))
    return part


# --- norms: Squared norms that are never below the true ones. ---


def joint_squares_up(forms: Sequence[Form]) -> Tensor:
    """Bound the squared norm of each row over several parameters together.

    Gradients that are at hand row by row are measured at once. What a linear layer pairs with its inputs is, where
    there is one position, the gradient of its bias as well: one norm serves both.
    """
    lefts = {_place(form.left): _squares([form.left]) for form in forms if isinstance(form, Outer)}
    squares: list[Doubles] = []
    rows: list[Tensor] = []
    with np.errstate(invalid="ignore"):  # Zero times infinity; what is no number becomes infinite.
        for form in forms:
            if isinstance(form, Outer):
                squares.append(form.squares_beside(lefts[_place(form.left)]))
            elif isinstance(form, Pairs):
                squares.append(form.squares_up().numpy())
            elif (known := lefts.get(_place(form.values))) is not None:
                squares.append(known)
            else:
                rows.append(form.values)
    several = [*squares, _squares(_side_by_side_if_short(rows))] if rows else squares
    total = several[0].copy()
    for more in several[1:]:
        total += more
    return torch.from_numpy(total)


def _side_by_side_if_short(several: list[Tensor]) -> list[Tensor]:
    """Join matrices of short rows, as biases have: one long one takes less time than many short ones."""
    short = [values for values in several if is_short(values)]
    return [*(values for values in several if not is_short(values)), torch.cat(short, 1)] if len(short) > 1 else several


def is_short(values: Tensor) -> bool:
    """Whether a call takes longer than what it does with rows of this length."""
    return values.shape[1] <= CHUNK


def _place(values: Tensor) -> tuple[object, ...]:
    """Tell tensors apart that are not the same numbers in the same place of memory."""
    return values.data_ptr(), values.shape, values.stride()


def _squares(several: list[Tensor]) -> Doubles:
    """Bound the squared norm of the rows of matrices side by side, with the factor of the longest chunk for all.

    Vectors as short as these take NumPy a third of the time that they take torch.
    """
    cut = [part for values in several for part in _in_chunks(values)]
    lengths = [torch.linalg.vector_norm(part, dim=-1, keepdim=part.dim() == 2).numpy() for part in cut]
    joined = lengths[0] if len(lengths) == 1 else np.concatenate(lengths, 1)
    each: Doubles = np.square(joined, dtype=np.float64)
    squares: Doubles = each[:, 0] if each.shape[1] == 1 else each.sum(1)
    squares *= max(_up(part.shape[-1]) for part in cut)
    squares += sum(values.shape[1] for values in several) * TINY
    return squares


def _in_chunks(values: Tensor) -> list[Tensor]:
    """Cut the rows of a matrix into chunks that float32 may add up: (rows, chunks, length), twice if need be."""
    size = values.shape[1]
    if size <= CHUNK:
        return [values]
    if length := even_length(size, CHUNK):
        return [torch.unflatten(values, 1, (-1, length))]
    whole = size - size % CHUNK
    return [torch.unflatten(values[:, :whole], 1, (-1, CHUNK)), values[:, whole:]]


def squares_up(values: Tensor) -> Tensor:
    """Bound the squared norm of each row of a matrix from above, in float64.

    float32 adds up at most CHUNK squares, float64 the chunks. A square below the range of float32 is counted as TINY.
    """
    return torch.from_numpy(_squares([values]))


@cache
def _up(length: int) -> float:
    """Return a factor that makes up for all roundings of a chunk's squared norm.

    The square of a chunk's norm passes length + 1 roundings of float32: the square, the sum, twice that of the root.
    That an upper bound divides by 1 - gamma, and all of float64, is inside of four roundings more.
    """
    return 1 + float(gamma(length + 5))


def pairs_squares_up(left: Tensor, picked: Tensor, right: Tensor) -> Tensor:
    """Bound the squared norms of sums over positions of left_t right_t' by inner products of positions.

    An inner product of length n passes n roundings, their product one, and the two sums over positions 2 T: the error
    is at most gamma(p + d + 2 T + 1) sum_st |l_s||l_t||r_s||r_t|, which is at most gamma |L|^2 |R|^2.
    """
    left, right = left.double(), right.double()
    between = torch.bmm(right, right.transpose(1, 2))
    across = _left_products(left, picked)
    size = _trace(across) * _trace(between)
    depth = left.shape[2] + right.shape[2] + 2 * right.shape[1] + 8
    wrong = float(gamma(depth, DOUBLE))
    # Terms that cancel may add up to less than 0 in floats; a bound on the error comes on top of what is clamped.
    return across.mul_(between).sum(2).sum(1).clamp_(min=0.0).add_(size * (2 * wrong))


def _left_products(left: Tensor, picked: Tensor) -> Tensor:
    same = (picked[:, :, None] == picked[:, None, :]).double()
    if not left.shape[1]:
        return same
    dense = torch.bmm(left, left.transpose(1, 2))
    if not picked.shape[1]:
        return dense
    mixed = left.gather(2, picked[:, None, :].expand(-1, left.shape[1], -1))
    return torch.cat([torch.cat([dense, mixed], 2), torch.cat([mixed.transpose(1, 2), same], 2)], 1)


def _trace(products: Tensor) -> Tensor:
    return products.diagonal(dim1=1, dim2=2).sum(1)


# --- parts ---
# What one call of a layer contributes to one parameter, and how the calls that share a parameter become one form.


_ROOM = 1 << 26  # float32 numbers that the gradients of all rows may take for one parameter


@final
@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """Sum over positions of left times right transposed: linear layers, and convolutions once unfolded."""

    left: Tensor  # (rows, positions, p)
    right: Tensor  # (rows, positions, d)

    def formed(self) -> Tensor:
        """Return the gradient of each row, flat."""
        return torch.bmm(_aligned(self.left).transpose(1, 2), _aligned(self.right)).flatten(1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Picks:
    """Sum over positions of the unit vector that an index names times right transposed: embeddings."""

    picked: Tensor  # (rows, positions), int64
    right: Tensor  # (rows, positions, d)
    height: int

    def formed(self) -> Tensor:
        """Return the gradient of each row, flat."""
        whole = self.right.new_zeros(len(self.right), self.height, self.right.shape[2])
        return whole.scatter_add_(1, self.picked[:, :, None].expand_as(self.right), self.right).flatten(1)


Part: TypeAlias = RowGradients | Positions | Picks


def of_people(part: Part, each: int, filled: Tensor) -> Part:
    """Make every `each` rows positions of one person, whose gradient is their sum; what is padded is exactly zero.

    Both factors of a product are cleared: the derivative of a loss at a row of zeros may be infinite, and zero times
    that is no number. It is done whether or not something is padded, so that the layout of what is multiplied, and with
    it the order of additions, follows from shapes alone.
    """
    if isinstance(part, RowGradients):
        return RowGradients(_cleared(part.values, filled).reshape(-1, each, part.values.shape[1]).sum(1))
    if isinstance(part, Picks):
        return Picks(_side_by_side(part.picked, each), _side_by_side(_cleared(part.right, filled), each), part.height)
    return Positions(*(_side_by_side(_cleared(side, filled), each) for side in (part.left, part.right)))


def _cleared(values: Tensor, filled: Tensor) -> Tensor:
    return values.masked_fill(~filled.reshape(-1, *(1,) * (values.dim() - 1)), 0.0).contiguous()


def _side_by_side(values: Tensor, each: int) -> Tensor:
    """(people * each, positions, …) -> (people, each * positions, …)"""
    return values.reshape(len(values) // each, each * values.shape[1], *values.shape[2:])


def combine(parts: list[Part]) -> Form:
    """Join all that one parameter gets: gradients of several calls add up, their norms do not.

    Positions of several calls are positions of one longer call; so weights that are used twice, unrolled in time or
    shared by an embedding and a linear layer cost no more than their calls.
    """
    if any(isinstance(part, RowGradients) for part in parts):
        return RowGradients(_added([_formed(part) for part in parts]))
    dense = [part for part in parts if isinstance(part, Positions)]
    picks = [part for part in parts if isinstance(part, Picks)]
    if not picks:
        return _dense_form(_joined([part.left for part in dense]), _joined([part.right for part in dense]))
    return _picked_form(dense, picks)


def _dense_form(left: Tensor, right: Tensor) -> Form:
    rows, positions, height = left.shape
    if positions == 1:
        return Outer(left[:, 0], right[:, 0])
    if _forming_is_cheaper(rows, positions, height, right.shape[2]):
        return RowGradients(Positions(left, right).formed())
    return Pairs(left, torch.zeros(rows, 0, dtype=torch.int64), right, height)


def _forming_is_cheaper(rows: int, positions: int, height: int, width: int) -> bool:
    """Compare multiplications: to form and pass three times, against inner products and one sum, both in float64."""
    formed = height * width * (positions + 40)
    paired = 2 * positions * (positions * (height + width) + height * width) + 8 * positions * (height + width)
    return formed <= paired and rows * height * width <= _ROOM


def _picked_form(dense: list[Positions], picks: list[Picks]) -> Pairs:
    height, rows = picks[0].height, len(picks[0].right)
    left = _joined([part.left for part in dense]) if dense else picks[0].right.new_zeros(rows, 0, height)
    right = _joined([*(part.right for part in dense), *(part.right for part in picks)])
    return Pairs(left, _joined([part.picked for part in picks]), right, height)


def _formed(part: Part) -> Tensor:
    return part.values if isinstance(part, RowGradients) else part.formed()


def _joined(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, 1)


def _added(tensors: list[Tensor]) -> Tensor:
    total = tensors[0]
    for more in tensors[1:]:
        total = total + more
    return total


def _aligned(values: Tensor) -> Tensor:
    """Copy what starts off a cache line: kernels may add in another order there; aligned ones are checked."""
    return values if values.data_ptr() % 64 == 0 else values.clone()
