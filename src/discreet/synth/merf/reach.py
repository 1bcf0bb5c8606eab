"""How far one row, or one unit, can move the sum of all vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.exact import positive_integer
from discreet.mechanisms.fields import read_relation
from discreet.privacy.relation import Relation

__all__ = ["SumSensitivity"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumSensitivity:
    """Bounds on the squared length of a row's vector of whole numbers, part by part.

    A row's vector stands in the place of its class; all other places are zero.

    Guarantee   the sum moves by at most the root of `squared_sensitivity` in the l2 norm.
    Theorem     Adding a row adds its vector. Replacing one by another of an unlike class moves two places, by both
                lengths. Within a class the constant part cancels; parts u, v without negative numbers have u·v >= 0, so
                |u - v|² <= |u|² + |v|²; the turning part may point the other way, |u - v| <= |u| + |v|. [HAP21]
    """

    constant: int  # the same number for every row, which counts the rows of a class
    positive: int  # numbers that are never negative, such as pixels and the cells of a column
    turning: int  # cosines and sines

    @property
    def squared(self) -> int:
        """The squared length that no row passes."""
        return self.constant + self.positive + self.turning

    def squared_sensitivity(self, relation: Relation, rows_per_unit: int = 1) -> int:
        """The squared l2 norm by which one unit can move the sum; k rows move it k times as far, at most.

        A unit that is replaced may have fewer rows than before: a row that only goes moves less than one replaced.
        """
        rows = positive_integer(rows_per_unit, name="rows_per_unit")
        if read_relation(relation) is Relation.ADD_REMOVE:
            return rows * rows * self.squared
        return rows * rows * max(2 * self.squared, 2 * self.positive + 4 * self.turning)
