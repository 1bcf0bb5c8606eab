"""What the columns of a published file are: keys, then each measured column with its ends and its noise.

CSV, Parquet and the dictionary all follow this one list. Kinds follow from the question, never from the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np

from discreet.query import AnswerColumn, Kind, ReleaseTable
from discreet.query.results.numbers import ExactNumbers

__all__ = ["Deviations", "FileColumn", "Role", "fields_of", "outline_of"]

Deviations: TypeAlias = Mapping[str, Fraction | tuple[Fraction, ...]]  # of each column: of all rows, or row by row


@final
class Role(Enum):
    """What a column of a file is for."""

    KEY = "key"
    VALUE = "value"
    LOW = "low"
    HIGH = "high"
    NOISE = "noise_sd"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """One column of a file: its name there, which column of the table it tells about, and its exact values."""

    name: str
    role: Role
    of: AnswerColumn
    kind: Kind
    values: Sequence[Any]


def fields_of(table: ReleaseTable, deviations: Deviations) -> tuple[FileColumn, ...]:
    """List the columns of the file of a table. Without deviations, as for tidy tables, no noise is told."""
    taken = set(table.names)
    return tuple(field for column in table.columns for field in _fields(column, deviations, taken))


def outline_of(table: ReleaseTable, deviations: Deviations) -> tuple[FileColumn, ...]:
    """List the same columns without their values."""
    none = np.empty(0, dtype=np.int64)
    head = replace(table, columns=tuple(column.take(none) for column in table.columns), rows_shown=0)
    return fields_of(head, {name: () if isinstance(told, tuple) else told for name, told in deviations.items()})


def _fields(column: AnswerColumn, deviations: Deviations, taken: set[str]) -> Iterator[FileColumn]:
    cells = [column[row] for row in range(len(column))]
    role = Role.VALUE if column.measured else Role.KEY
    yield FileColumn(name=column.name, role=role, of=column, kind=column.kind, values=[cell.value for cell in cells])
    if column.measured and column.has_interval:
        for end, values in ((Role.LOW, [cell.low for cell in cells]), (Role.HIGH, [cell.high for cell in cells])):
            yield FileColumn(
                name=_unused(column, end, taken), role=end, of=column, kind=_kind_of_ends(column), values=values
            )
    if column.measured and column.name in deviations:
        told = deviations[column.name]
        noise = list(told) if isinstance(told, tuple) else [told] * len(column)
        yield FileColumn(
            name=_unused(column, Role.NOISE, taken), role=Role.NOISE, of=column, kind=Kind.REAL, values=noise
        )


def _unused(column: AnswerColumn, role: Role, taken: set[str]) -> str:
    """Name an added column; a question may have called one of its own the same."""
    name = f"{column.name}_{role.value}"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _kind_of_ends(column: AnswerColumn) -> Kind:
    whole = all(isinstance(part, ExactNumbers) and part.is_whole for part in (column.low, column.high))
    return Kind.INTEGER if column.kind is Kind.INTEGER and whole else Kind.REAL
