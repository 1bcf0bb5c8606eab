"""What is publicly known of a value before any data are read: its kind, its bounds, perhaps all values it can take.

Facts belong to a node of the tree and never change: another column, even of the same name, is another node.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["INFERRED", "LONGEST_TEXT", "ExpressionFacts", "Kind", "arrow_type"]

INFERRED = "the types of a pandas frame follow from its rows: one missing value or one text changes them, and so tells"
LONGEST_TEXT = 10_000  # Characters that functions of texts look at and return; longer texts are cut.


@final
class Kind(Enum):
    """The kinds of values; the engine stores each in one type of its own."""

    BOOLEAN = "boolean"
    INTEGER = "integer"  # 64 bits
    REAL = "real"  # a double
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"  # microseconds, no time zone
    # Of a frame whose types follow from its rows, and are as private as they are:
    UNDECLARED = "not declared"  # a column that cannot be asked about
    IDENTITY = "identity"  # the column of the unit, of which only equality is asked

    @property
    def is_number(self) -> bool:
        return self in (Kind.INTEGER, Kind.REAL)

    @property
    def is_time(self) -> bool:
        return self in (Kind.DATE, Kind.TIMESTAMP)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionFacts:
    """Public knowledge of one expression. Bounds hold by construction: what is read is clamped, never trusted.

    A date counts in days and a timestamp in microseconds since the first of January 1970.
    """

    kind: Kind
    low: Fraction | None = None
    high: Fraction | None = None
    step: Fraction | None = None  # the declared grid of a real column
    members: tuple[Hashable, ...] | None = None  # every value apart from NULL that counts; others are as if not there
    nullable: bool = True

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InvalidParameter("low must not be above high")

    @property
    def is_bounded(self) -> bool:
        """Whether both bounds are known."""
        return self.low is not None and self.high is not None


# --- arrow_types ---
# The Arrow type in which values of a kind are handed over, to an engine and to whoever reads an answer.


def arrow_type(kind: Kind) -> pa.DataType:
    """Return the type of a kind; it never depends on values."""
    import pyarrow as pa

    return {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.REAL: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
        Kind.UNDECLARED: pa.string(),
        Kind.IDENTITY: pa.string(),
    }[kind]
