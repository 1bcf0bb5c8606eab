"""Made-up people with independent yes-or-no attributes, or genes of which everybody has two copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from discreet import noise
from discreet.attacks.vectors import Floats, Integers
from discreet.errors import InvalidParameter

__all__ = ["Population", "coins", "genome"]

_FINE = 1 << 40
_RAREST = 0.05  # Studies of genes leave rarer variants out. [SOJH09]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """How frequent each attribute is. With `copies` = 2 a person has 0, 1 or 2 of each, as of an allele."""

    frequencies: Floats
    copies: int = 1

    def __post_init__(self) -> None:
        shares = np.array(self.frequencies, dtype=np.float64)
        if shares.ndim != 1 or not len(shares) or not ((shares > 0) & (shares < 1)).all():
            raise InvalidParameter("frequencies must be a list of numbers above 0 and below 1")
        if self.copies not in (1, 2):
            raise InvalidParameter("people have one or two copies of an attribute")
        shares.flags.writeable = False
        object.__setattr__(self, "frequencies", shares)

    @property
    def variances(self) -> Floats:
        """The variance of each attribute in one person."""
        found: Floats = self.copies * self.frequencies * (1 - self.frequencies)
        return found

    @property
    def means(self) -> Floats:
        """How many copies of each attribute people have on average."""
        found: Floats = self.copies * self.frequencies
        return found

    @property
    def squared_change(self) -> int:
        """The most that replacing one person changes the counts: l2, squared."""
        return self.copies**2 * len(self.frequencies)

    def draw(self, people: int) -> Integers:
        """Make up people: one row each, one column for each attribute."""
        drawn = noise.uniform(_FINE, (self.copies, people, len(self.frequencies)))
        found: Integers = (drawn < np.round(self.frequencies * _FINE)).sum(axis=0, dtype=np.int64)
        return found


def coins(attributes: int) -> Population:
    """Return people each of whose attributes is a fair coin."""
    return Population(np.full(_count(attributes), 0.5))


def genome(variants: int) -> Population:
    """Return people as in a study of genes: two copies, minor alleles of frequencies from 5 to 50 %, all alike."""
    drawn = noise.uniform(_FINE, _count(variants)) / _FINE
    return Population(_RAREST + (0.5 - _RAREST) * drawn, copies=2)


def _count(attributes: int) -> int:
    if attributes < 1:
        raise InvalidParameter("there must be at least one attribute")
    return attributes
