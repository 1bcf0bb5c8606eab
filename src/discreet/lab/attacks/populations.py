"""Made-up people, tables as yes-or-no attributes, and releases of many counts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive
from discreet.formatting import record
from discreet.lab.attacks.lab_tables import laboratory, text_of
from discreet.mechanisms.gaussian import VectorGaussian
from discreet.privacy import Event, Relation, gaussian_sigma
from discreet.privacy.relation import read_relation

__all__ = [
    "Floats",
    "Indicators",
    "Integers",
    "Population",
    "VectorRelease",
    "coins",
    "deviation_of",
    "gaussian_counts",
    "genome",
    "halves",
    "indicators",
    "released",
]

# --- vectors: Releases of many counts at once, as an attacker meets them: ours, anybody's, or exact numbers. ---


Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class VectorRelease(Protocol):
    """Whatever publishes a vector of counts and claims a guarantee for it: `VectorGaussian`, `VectorLaplace`, yours."""

    @property
    def event(self) -> Event:
        """What one release claims to spend."""

    @property
    def relation(self) -> Relation:
        """Who is a neighbour in that claim."""

    def release(self, answer: Sequence[int]) -> Any:
        """Publish an exact vector; the result has a `value` and, as ours do, a `noise`."""


def gaussian_counts(
    cells: int, *, squared_sensitivity: Number, epsilon: Number, delta: Number, relation: Relation | str
) -> VectorGaussian:
    """Return the Gaussian mechanism that publishes so many counts together for (epsilon, delta).

    Args:
        cells: How many counts there are.
        squared_sensitivity: The square of how far one person moves them, in the l2 norm.
        epsilon: What the release of all of them spends.
        delta: The delta that goes with it.
        relation: The neighbouring relation.

    Returns:
        The mechanism, for `tracing`, `reconstruction` and `marginal_reconstruction`.

    Raises:
        InvalidParameter: If a number is out of range.

    Examples:
        >>> mechanism = dp.attacks.gaussian_counts(
        ...     10_000, squared_sensitivity=10_000, epsilon=1, delta="1e-6", relation=dp.Relation.REPLACE_ONE
        ... )
        >>> round(float(mechanism.variance) ** 0.5)
        422
    """
    relation = read_relation(relation)
    changed = positive(squared_sensitivity, name="squared_sensitivity")
    sigma = Fraction(gaussian_sigma(epsilon, delta))
    return VectorGaussian(squared_sensitivity=changed, variance=sigma**2 * changed, dimension=cells, relation=relation)


def released(mechanism: VectorRelease | None, counts: Integers) -> Floats:
    """Publish counts: by a mechanism, with fresh noise, or as they are."""
    if mechanism is None:
        return counts.astype(np.float64)
    value = np.asarray(mechanism.release(counts.tolist()).value, dtype=np.float64)
    if value.shape != counts.shape:
        raise InvalidParameter("the release must have as many numbers as there are counts")
    return value


def deviation_of(mechanism: VectorRelease | None, cells: int) -> float:
    """Return the deviation of the noise that a mechanism declares: an attacker knows it. 0 if it declares none."""
    if mechanism is None:
        return 0.0
    law = getattr(mechanism.release([0] * cells), "noise", None)
    return 0.0 if law is None else float(law.standard_deviation)


# --- populations: Made-up people with independent yes-or-no attributes, or genes of which everybody has two copies. ---


_FINE = 1 << 40
_RAREST = 0.05  # Studies of genes leave rarer variants out. [SOJH09]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """How frequent each attribute is. With `copies` = 2 a person has 0, 1 or 2 of each, as of an allele."""

    frequencies: Floats
    copies: int = 1

    __repr__ = record

    def __post_init__(self) -> None:
        shares = np.array(self.frequencies, dtype=np.float64)
        if shares.ndim != 1 or not len(shares) or not ((shares > 0) & (shares < 1)).all():
            raise InvalidParameter("frequencies must be a list of numbers above 0 and below 1")
        if self.copies not in (1, 2):
            raise InvalidParameter("`copies` must be 1 or 2")
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
    """Return people each of whose attributes is a fair coin.

    Args:
        attributes: How many attributes a person has.

    Returns:
        The population; `draw(n)` makes up people.

    Raises:
        InvalidParameter: If there are no attributes.

    Examples:
        >>> dp.attacks.coins(1000).draw(5).shape
        (5, 1000)
    """
    return Population(np.full(_count(attributes), 0.5))


def genome(variants: int) -> Population:
    """Return people as in a study of genes: two copies, minor alleles of frequencies from 5 to 50 %, all alike.

    Args:
        variants: How many variants are looked at.

    Returns:
        The population; `draw(n)` makes up people. Frequencies are drawn anew in every call.

    Raises:
        InvalidParameter: If there are no variants.

    Examples:
        >>> dp.attacks.genome(1200).draw(60).shape
        (60, 1200)
    """
    drawn = noise.uniform(_FINE, _count(variants)) / _FINE
    return Population(_RAREST + (0.5 - _RAREST) * drawn, copies=2)


def _count(attributes: int) -> int:
    if attributes < 1:
        raise InvalidParameter("there must be at least one attribute")
    return attributes


# --- indicators: A table as yes-or-no attributes: one for each value of each column, as tables of counts show them. ---


_MOST = 2_000  # Values of a column: one that has more tells people apart by itself.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """Rows of 0 and 1, one column for each value of a column of the table."""

    names: tuple[str, ...]
    rows: Integers
    squared_change: int  # l2, squared: the most that replacing one row changes the counts


def indicators(table: Any, columns: Sequence[str]) -> Indicators:
    """Read columns of a table of this machine; what is missing is a value too. Two values make one attribute.

    Args:
        table: The private table: a file of this machine, a frame or an Arrow table.
        columns: The columns to read.

    Returns:
        The names of the attributes, the rows of 0 and 1, and how many attributes one person changes.

    Raises:
        InvalidParameter: If no columns are said, or there is no such column.

    Examples:
        >>> import pyarrow as pa
        >>> table = pa.table({"sex": ["f", "m", "f"], "clinic": ["A", "B", "C"]})
        >>> dp.attacks.indicators(table, ["sex", "clinic"]).rows.shape
        (3, 4)
    """
    if not columns:
        raise InvalidParameter("say which columns are counted, such as columns=['sex', 'district']")
    with laboratory({"table": table}) as lab:
        listed = ", ".join(f"{text_of(lab.column('table', name))} AS c{i}" for i, name in enumerate(columns))
        found = lab.select(f"SELECT {listed} FROM {lab.relations['table']}")
    read = [_one(name, found.column(f"c{i}").to_pylist()) for i, name in enumerate(columns)]
    names = tuple(name for labels, _ in read for name in labels)
    change = sum(1 if len(labels) == 1 else 2 for labels, _ in read)
    return Indicators(names, np.hstack([rows for _, rows in read]), change)


def halves(rows: Integers) -> tuple[Integers, Integers]:
    """Divide people at random into members and strangers.

    Args:
        rows: The private rows, an array: people by attributes.

    Returns:
        Members and strangers, for `tracing`.

    Examples:
        >>> members, strangers = dp.attacks.halves(dp.attacks.coins(100).draw(50))
        >>> len(members), len(strangers)
        (25, 25)
    """
    order = noise.permutation(len(rows))
    return rows[order[::2]], rows[order[1::2]]


def _one(name: str, values: list[str | None]) -> tuple[list[str], Integers]:
    texts = np.array(["" if value is None else value for value in values], dtype=object)
    distinct, codes = np.unique(texts.astype(str), return_inverse=True)
    if not 2 <= len(distinct) <= _MOST:
        raise InvalidParameter(f"column {name!r} must have from two to {_MOST:,} different values")
    kept = distinct[1:] if len(distinct) == 2 else distinct
    first = len(distinct) - len(kept)
    rows = (codes[:, None] == np.arange(first, len(distinct))[None, :]).astype(np.int64)
    return [f"{name} = {value}" for value in kept], rows
