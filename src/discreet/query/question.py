"""A question: what is asked of which rows, after reading and before planning. Equal trees ask the same."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias, final

from discreet.query.expressions import Expression, Literal
from discreet.query.operators import Operator
from discreet.query.sources import Source

__all__ = [
    "Choose",
    "Combine",
    "End",
    "Key",
    "KeyValue",
    "Limit",
    "Measure",
    "Order",
    "OutputColumn",
    "Post",
    "Query",
    "ReleasedMeasure",
    "Side",
    "Statistic",
]


@final
class Statistic(Enum):
    """What can be asked of a group."""

    ROWS = "rows"  # COUNT(*)
    UNITS = "units"  # COUNT(DISTINCT unit)
    COUNT = "count"  # COUNT(x): values that are not NULL
    DISTINCT = "distinct"  # COUNT(DISTINCT x)
    SUM = "sum"
    MEAN = "mean"
    VARIANCE = "variance"
    DEVIATION = "deviation"
    QUANTILE = "quantile"
    MODE = "mode"


@final
@dataclass(frozen=True, slots=True)
class Measure:
    """One statistic of one expression."""

    statistic: Statistic
    argument: Expression | None = None  # None for ROWS and UNITS only
    quantile: Fraction | None = None  # for QUANTILE only
    sample: bool = True  # for VARIANCE and DEVIATION: divide by n - 1
    called: str = ""  # as the analyst wrote it, such as MAX for an extreme quantile; for notes only


@final
@dataclass(frozen=True, slots=True)
class Key:
    """A group key. `domain` lists its public values in the order of the answer; None if data must tell them."""

    name: str
    expression: Expression
    domain: tuple[Hashable, ...] | None = None  # None as a member counts what is NULL


# What is done to released values only: post-processing, free, and the same whatever the data were.


@final
@dataclass(frozen=True, slots=True)
class ReleasedMeasure:
    """The released value of a measure."""

    measure: int


@final
class Side(Enum):
    LOW = "low"
    HIGH = "high"


@final
@dataclass(frozen=True, slots=True)
class End:
    """An end of the interval of a measure: DP_LOW and DP_HIGH."""

    measure: int
    side: Side


@final
@dataclass(frozen=True, slots=True)
class KeyValue:
    """The value of a key."""

    key: int


@final
@dataclass(frozen=True, slots=True)
class Combine:
    """An operator on released values."""

    operator: Operator
    arguments: tuple[Post, ...]


@final
@dataclass(frozen=True, slots=True)
class Choose:
    """The value of the first branch whose condition is true, or else `otherwise`."""

    branches: tuple[tuple[Post, Post], ...]
    otherwise: Post


Post: TypeAlias = ReleasedMeasure | End | KeyValue | Combine | Choose | Literal


@final
@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer."""

    name: str
    value: Post


@final
@dataclass(frozen=True, slots=True)
class Order:
    """A column to sort the answer by."""

    value: Post
    descending: bool = False


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """How many rows of the answer are shown, and how many are skipped before them."""

    count: int | None
    offset: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Statistics of the groups of a private source, and what is shown of them."""

    source: Source
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]  # distinct
    outputs: tuple[OutputColumn, ...]
    having: Post | None = None
    order: tuple[Order, ...] = ()
    limit: Limit | None = None
