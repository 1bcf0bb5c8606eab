"""The three shapes in which a layer hands over the gradients of all rows with respect to one parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, final

import torch
from torch import Tensor

from discreet.learn.torch.clipping import adding, bounds, norms

__all__ = ["Form", "Outer", "Pairs", "RowGradients"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowGradients:
    """The gradient of each row itself. What float32 says here *is* the gradient: its own rounding needs no bound."""

    values: Tensor  # (rows, size), float32

    def squares_up(self) -> Tensor:
        """Bound the squared norm of each row from above, in float64."""
        return norms.squares_up(self.values)

    def sizes(self) -> Tensor | None:
        """Return nothing: these sums do not suffer from terms that cancel."""
        return None

    def without(self, rows: Tensor) -> RowGradients:
        """Return the same with zeros in the given rows, since 0 times infinity is no number."""
        return RowGradients(self.values.masked_fill(rows[:, None], 0.0))

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        """Add the sum over rows of factor times gradient to a flat float64 total."""
        adding.add_rows(total, self.values, factors)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outer:
    """The gradient of a row is `left` times `right` transposed: a matrix of rank one, never formed row by row."""

    left: Tensor  # (rows, p), float32
    right: Tensor  # (rows, d), float32

    def squares_up(self) -> Tensor:
        """Bound the squared norm of each row: |left|^2 |right|^2, infinite if a side is too large to multiply."""
        left, right = norms.squares_up(self.left), norms.squares_up(self.right)
        return torch.where(torch.maximum(left, right) <= bounds.LARGEST_SIZE**2, left * right, torch.inf)

    def sizes(self) -> Tensor | None:
        """Return nothing: one product has nothing to cancel with."""
        return None

    def without(self, rows: Tensor) -> Outer:
        """Return the same with zeros in the given rows."""
        return Outer(self.left.masked_fill(rows[:, None], 0.0), self.right.masked_fill(rows[:, None], 0.0))

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        """Add the sum over rows of factor times gradient to a flat float64 total."""
        adding.add_outer(total, self.left * factors[:, None], self.right)


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
        return torch.cat([norms.pairs_squares_up(*part) for part in self._parts()])

    def sizes(self) -> Tensor | None:
        """Bound the square of the sum of the norms of all positions' terms, in float64 (Cauchy-Schwarz)."""
        sides = norms.squares_up(self.right.flatten(1))
        dense = norms.squares_up(self.left.flatten(1)) if self.left.shape[1] else 0.0
        return sides.mul_(self.picked.shape[1] + dense)

    def without(self, rows: Tensor) -> Pairs:
        """Return the same with zeros in the given rows."""
        zero = rows[:, None, None]
        return replace(self, left=self.left.masked_fill(zero, 0.0), right=self.right.masked_fill(zero, 0.0))

    def add_to(self, total: Tensor, factors: Tensor) -> None:
        """Add the sum over rows of factor times gradient to a flat float64 total."""
        adding.add_pairs(total, self.left, self.picked, self.right, factors)

    def _parts(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Cut the rows so that the inner products of a part fit into a few megabytes."""
        step = max(1, (1 << 20) // self.right.shape[1] ** 2)
        cut = [torch.split(whole, step) for whole in (self.left, self.picked, self.right)]
        return list(zip(*cut, strict=True))


Form: TypeAlias = RowGradients | Outer | Pairs
