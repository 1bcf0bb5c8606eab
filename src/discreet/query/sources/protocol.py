"""What a source of rows does: it tells its columns, and streams some of them out of one snapshot.

A source computes nothing but exact sums of whole numbers, if it can. It may leave columns out, and rows by filters of a
closed set whose meaning is the same everywhere; all else is done to its stream by the engine in its cage, with the same
SQL and the same kernel as for a file. So what a source does is a matter of speed, and never of what is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeGuard, final, runtime_checkable

from discreet.custodian_debug import ConstantFailure
from discreet.errors import AnswerFailed, DiscreetError, MissingLibrary, Refused
from discreet.query.engine import Deadline

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ColumnCompares",
    "DataSource",
    "NotNull",
    "RowFilter",
    "ScanRequest",
    "ServerSum",
    "SourceColumn",
    "SourceSnapshot",
    "SumRequest",
    "SummingSnapshot",
    "TextEquals",
    "adds_up",
    "is_source",
    "need",
    "silent",
    "unreachable",
]


@final
@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column as it is declared at its source, as it arrives, and as the engine reads it (both in DuckDB's words).

    Where the two differ, texts arrive that are read as numbers by our own rule, once, where they enter the cage.
    """

    declared: str
    arrives: str
    read_as: str


@final
@dataclass(frozen=True, slots=True)
class NotNull:
    """Rows where a column is not NULL."""

    column: str


@final
@dataclass(frozen=True, slots=True)
class ColumnCompares:
    """Rows where a column of whole numbers or dates compares so with a constant."""

    column: str
    sign: Literal["=", "<", "<=", ">", ">="]
    value: int | date


@final
@dataclass(frozen=True, slots=True)
class TextEquals:
    """Rows where a column of texts is, byte by byte, this one."""

    column: str
    value: str


RowFilter: TypeAlias = NotNull | ColumnCompares | TextEquals


@final
@dataclass(frozen=True, slots=True)
class ScanRequest:
    """Which columns of a table are streamed, in this order, and which rows at least.

    Every row that fulfils all filters is in the stream, once. Rows that do not may be there, too: the engine applies
    its own conditions to all.
    """

    columns: tuple[str, ...]
    filters: tuple[RowFilter, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class ServerSum:
    """A whole number that a server adds up over rows: one for each, or for each where a column is not NULL, or levels.

    The level of a whole number is how far it is above `low`, moved to `low` or `high` first if it is beyond them; NULL
    has none, and adds nothing. What comes is exact, in two columns of 64 bits: the rest by 2^52, and how often.
    """

    of: Literal["rows", "values", "levels", "squares"]
    column: str = ""
    low: int = 0
    high: int = 0

    @property
    def most(self) -> int:
        """What one row adds at most."""
        return 1 if self.of in ("rows", "values") else (self.high - self.low) ** (2 if self.of == "squares" else 1)


@final
@dataclass(frozen=True, slots=True)
class SumRequest:
    """Which sums are streamed of a table, for each combination of values of some columns that occurs.

    Exactly the rows that fulfil all filters count. Values are told apart as they are stored: whole numbers, days, truth
    values and the bytes of texts. Columns come first, then two for each sum, named by `names`.
    """

    table: str
    columns: tuple[str, ...]
    sums: tuple[ServerSum, ...]
    names: tuple[str, ...]
    filters: tuple[RowFilter, ...] = ()


class SourceSnapshot(Protocol):
    """One state of the data of a server, held as long as a question reads."""

    def describe(self, source: DataSource) -> Mapping[str, SourceColumn]:
        """Return the columns that a table has in this state."""

    def stream(self, source: DataSource, request: ScanRequest) -> pa.RecordBatchReader:
        """Stream rows of a table of this server; called for one table after the other."""

    def cancel(self) -> None:
        """Stop whatever runs, from another thread, so that `stream` or its reader raises soon."""


class SummingSnapshot(SourceSnapshot, Protocol):
    """A state of a server that adds up whole numbers itself; its sources have `adds_up = True`."""

    def sums(self, source: DataSource, request: SumRequest) -> pa.RecordBatchReader:
        """Stream sums of a table of this server; called for one request after the other."""


@runtime_checkable
class DataSource(Protocol):
    """A table that is elsewhere. Its public fields tell no password."""

    @property
    def identity(self) -> Hashable:
        """What two sources have in common that are the same table."""

    @property
    def server(self) -> Hashable:
        """What tables have in common that are seen in one snapshot."""

    def describe(self) -> Mapping[str, SourceColumn]:
        """Return the columns of types on the source's list; others are not offered. Reads no row.

        Raises only errors whose texts are our own: `InvalidParameter` for what is declared wrongly, `Refused` for what
        is out of reach.
        """

    def snapshot(self, tables: Sequence[DataSource], deadline: Deadline) -> AbstractContextManager[SourceSnapshot]:
        """Hold one state of the data of this server, for all of its tables that a question reads."""


def is_source(table: Any) -> TypeGuard[DataSource]:
    """Tell a source by the methods of its type: a frame has columns as attributes, and `describe` reads its rows."""
    return all(hasattr(type(table), method) for method in ("describe", "snapshot")) and isinstance(table, DataSource)


def adds_up(source: DataSource) -> bool:
    """Whether the server of a source adds up itself: then its snapshots are `SummingSnapshot`."""
    return bool(getattr(type(source), "adds_up", False))


# --- errors: What a driver says carries values of rows, addresses and passwords. It ends here. ---


def unreachable(what: str) -> Refused:
    """Say that a source does not answer; why is told by no message, which would carry what a driver says."""
    return Refused(
        f"{what} cannot be reached, or does not let this user read its columns",
        reason="what the other side says about it may hold values or passwords, and is not repeated",
        way_out="try the same address and user with the database's own program, then `discreet source check`; "
        "DISCREET_CUSTODIAN_DEBUG=1 shows the custodian what was said",
    )


def silent(failure: Callable[[], DiscreetError] = AnswerFailed) -> ConstantFailure:
    """Replace whatever a driver raises by one constant error; our own pass."""
    return ConstantFailure(but=(DiscreetError,), failure=failure)


def need(*libraries: str, extra: str) -> None:
    """Raise if one of these libraries is missing, with the command that brings it."""
    missing = next((library for library in libraries if find_spec(library) is None), None)
    if missing is not None:
        raise MissingLibrary(
            f"this source needs {missing}, which is not installed: pip install 'discreet[{extra}]'", name=missing
        )
