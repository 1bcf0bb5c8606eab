"""Contribution bounds: how much one unit may give, and the range and the use of every measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from discreet.errors import InvalidParameter
from discreet.exact import integer, positive_integer

__all__ = ["MOST_GROUPS", "BoundedColumn", "ContributionBounds"]

_LARGEST = 1 << 52  # Of an index on a grid, up or down; see `discreet.mechanisms.grid`.
_MOST = 1 << 31  # Rows or groups kept of one unit; more is a mistake.
MOST_GROUPS = 1 << 31


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContributionBounds:
    """How much of one unit is counted: at most `max_groups` of its groups, and `max_rows` of its rows in each."""

    max_groups: int
    max_rows: int

    def __post_init__(self) -> None:
        for name, value in (("max_groups", self.max_groups), ("max_rows", self.max_rows)):
            if positive_integer(value, name=name) > _MOST:
                raise InvalidParameter(f"{name} must be at most 2^31")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedColumn:
    """A column of whole numbers, indices on a public grid, and what is wanted of it besides how many are not NULL.

    An index outside of `low` to `high` counts as the nearest of the two.
    """

    low: int
    high: int
    centre: int = 0  # taken off every index before sums and squares are added up
    total: bool = False
    squares: bool = False
    distinct: bool = False  # how many distinct indices each group has
    values: bool = False  # the kept indices themselves

    def __post_init__(self) -> None:
        names = ("low", self.low), ("high", self.high), ("centre", self.centre)
        if any(abs(integer(value, name=name)) > _LARGEST for name, value in names):
            raise InvalidParameter("low, high and centre must lie between -2^52 and 2^52")
        if self.low > self.high:
            raise InvalidParameter("low must not be above high")

    @property
    def bits(self) -> int:
        """How many bits a level takes: 0 for NULL, else the index counted from `low`, from 1 on."""
        return (self.high - self.low + 1).bit_length()
