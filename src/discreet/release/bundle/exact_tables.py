"""Every number of a release as an exact fraction, in one file: what is compared with the ledger to the last digit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, final

from discreet.errors import InvalidParameter
from discreet.exact import ratio
from discreet.query import ReleaseTable
from discreet.release.bundle.csv_text import csv_bytes
from discreet.release.bundle.layout import Deviations, FileColumn, fields_of
from discreet.release.bundle.naming import DUMMY, table_file
from discreet.release.bundle.parquet import parquet_bytes
from discreet.release.published import Published

__all__ = ["EXACT", "ExactTable", "exact_tables", "read_exact", "table_files", "written_exactly"]

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
