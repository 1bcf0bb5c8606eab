"""Tables of a bundle as files: exact fractions, CSV and Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter
from discreet.exact import ratio
from discreet.formatting import csv_quoted, decimal_text
from discreet.query import ReleaseTable
from discreet.query.release_table import arrow_value
from discreet.release.bundle.dictionary import Deviations, FileColumn, Role, fields_of
from discreet.release.bundle.manifest import DUMMY, table_file
from discreet.release.published import Published
from discreet.schema.columns import Kind, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "EXACT",
    "ExactTable",
    "arrow_table",
    "csv_bytes",
    "exact_tables",
    "parquet_bytes",
    "read_exact",
    "same_parquet",
    "table_files",
    "written_exactly",
]

# --- exact_tables ---
# Every number of a release as an exact fraction, in one file: what is compared with the ledger to the last digit.


EXACT = "tables.json"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExactTable:
    """One table as it is kept exactly: raw, tidy if it was tidied, and the deviations of its noise.

    A series of totals so far is a table too, with a charge of its own.
    """

    name: str
    title: str
    raw: ReleaseTable
    tidy: ReleaseTable | None
    deviations: Deviations
    series: bool = False

    def fields(self, *, tidy: bool) -> tuple[FileColumn, ...]:
        """Return the columns of one of its files. Noise is told of raw values only."""
        if tidy and self.tidy is not None:
            return fields_of(self.tidy, {})
        return fields_of(self.raw, self.deviations)

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Whether each of its files is tidy."""
        return (False,) if self.tidy is None else (False, True)


def exact_tables(published: Published) -> tuple[ExactTable, ...]:
    """Take what is kept of a release: its tables, then its series."""
    tables = [
        ExactTable(
            name=table.plan.name,
            title=table.plan.title,
            raw=table.raw,
            tidy=table.tidy if published.plan.output.tidy else None,
            deviations=table.deviations,
        )
        for table in published.tables
    ]
    series = [
        ExactTable(
            name=running.plan.name,
            title=running.plan.title or running.plan.name,
            raw=running.table,
            tidy=None,
            deviations={"total": running.deviations},
            series=True,
        )
        for running in published.running
    ]
    return (*tables, *series)


def table_files(tables: tuple[ExactTable, ...], formats: tuple[str, ...], *, dummy: bool) -> dict[str, bytes]:
    """Return the file of every table, in every format, raw and tidy."""
    files: dict[str, bytes] = {}
    for table in tables:
        for tidy in table.kinds:
            fields = table.fields(tidy=tidy)  # Once for all formats: every cell is an exact fraction.
            for form in formats:
                name = table_file(table.name, form, tidy=tidy, dummy=dummy)
                files[name] = _written(table, fields, form, tidy=tidy, dummy=dummy)
    return files


def _written(table: ExactTable, fields: tuple[FileColumn, ...], form: str, *, tidy: bool, dummy: bool) -> bytes:
    if form == "csv":
        return csv_bytes(fields)
    about = {"title": table.title, "values": "tidy, biased" if tidy else "raw, with noise only"}
    return parquet_bytes(fields, about | ({"warning": DUMMY} if dummy else {}))


def written_exactly(tables: tuple[ExactTable, ...], *, dummy: bool) -> bytes:
    """Write all tables as one JSON text that does not depend on anything else."""
    document = {
        "format": 1,
        **({"warning": f"{DUMMY}: made of invented rows"} if dummy else {}),
        "tables": {table.name: _packed(table) for table in tables},
    }
    return (json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _packed(table: ExactTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "raw": json.loads(table.raw.to_json()),
        "tidy": None if table.tidy is None else json.loads(table.tidy.to_json()),
        "deviations": {
            name: [str(number) for number in told] if isinstance(told, tuple) else str(told)
            for name, told in table.deviations.items()
        },
        "series": table.series,
    }


def read_exact(held: bytes) -> tuple[ExactTable, ...]:
    """Read what was written exactly; anything else is refused."""
    try:
        document = json.loads(held)
        if document["format"] != 1:
            raise InvalidParameter(f"{EXACT} was written by another version of the package")
        return tuple(_unpacked(name, table) for name, table in document["tables"].items())
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError):
        raise InvalidParameter(f"{EXACT} holds no tables that a release wrote") from None


def _unpacked(name: str, stored: dict[str, Any]) -> ExactTable:
    return ExactTable(
        name=name,
        title=str(stored["title"]),
        raw=ReleaseTable.from_json(json.dumps(stored["raw"])),
        tidy=None if stored["tidy"] is None else ReleaseTable.from_json(json.dumps(stored["tidy"])),
        deviations={
            column: tuple(map(ratio, told)) if isinstance(told, list) else ratio(told)
            for column, told in stored["deviations"].items()
        },
        series=bool(stored["series"]),
    )


# --- csv_text ---
# A table as CSV: UTF-8, one line a row, texts in quotes, numbers bare, nothing where there is no value.
#
# A text that a spreadsheet would take for a formula gets an apostrophe in front, and so does one that begins with an
# apostrophe: taking one away gives the value back. Parquet files hold the texts as they are.


_WAYS = {Role.LOW: -1, Role.HIGH: 1, Role.NOISE: 1}


def csv_bytes(fields: Sequence[FileColumn]) -> bytes:
    """Write the columns of a table."""
    columns = [[csv_quoted(field.name), *map(_writer(field.role), field.values)] for field in fields]
    lines = [",".join(row) for row in zip(*columns, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def _writer(role: Role) -> Callable[[Any], str]:
    way = _WAYS.get(role, 0)
    return lambda value: _csv_text_written(value, way)


def _csv_text_written(value: Any, way: int) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | Fraction():
            return decimal_text(value, way=way)
        case float():
            return repr(value)
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
    return csv_quoted(str(value))


# --- parquet: A table as Parquet, typed by the question, with what it is in its metadata. ---


def parquet_bytes(fields: Sequence[FileColumn], about: Mapping[str, str]) -> bytes:
    """Write the columns of a table; `about` becomes metadata of the file."""
    import pyarrow.parquet as pq

    table = arrow_table(fields).replace_schema_metadata(dict(about))
    written = io.BytesIO()
    pq.write_table(table, written, compression="zstd", version="2.6", store_schema=True)
    return written.getvalue()


def arrow_table(fields: Sequence[FileColumn]) -> pa.Table:
    """Return the columns as an Arrow table; fractions become the nearest floats."""
    import pyarrow as pa

    arrays = [pa.array([_value(v, field.kind) for v in field.values], arrow_type(field.kind)) for field in fields]
    return pa.Table.from_arrays(arrays, names=[field.name for field in fields])


def _value(value: Any, kind: Kind) -> Any:
    return None if value is None else arrow_value(value, kind)


# --- same_table ---
# Whether two Parquet files hold the same table: columns, types and values; how they are packed does not matter.


def same_parquet(one: bytes, other: bytes) -> bool:
    """Compare two files; one that is no Parquet file is not the same as anything."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        tables = [pq.read_table(io.BytesIO(held)) for held in (one, other)]
    except (pa.ArrowException, OSError):
        return False
    return bool(tables[0].equals(tables[1], check_metadata=False))
