"""Rows that anybody may read, in place of private ones: made up from what a plan declares, or a public sample.

Whoever calls says that a sample is public, and is taken at their word, but for one mistake: a place that the plan reads
private rows from is refused, under any name, link or pattern. Places are compared; none is opened for that.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter, Refused
from discreet.frames.tables import is_table
from discreet.query.engine import RowEngine
from discreet.query.policy import PublicTable, public
from discreet.query.session.engine_choice import open_here
from discreet.query.session.policy_file import TablePolicy
from discreet.query.sources.known_sources import identity_of
from discreet.release.plan import Period, ReleasePlan, catalogue_in, catalogue_of
from discreet.schema.csv_file import CsvFile

__all__ = ["sample_rows"]


@contextmanager
def sample_rows(
    plan: ReleasePlan, period: Period, given: Mapping[str, Any] | None, tables: Mapping[str, Any] | None
) -> Iterator[RowEngine]:
    """Open made-up rows, or the public ones that are given. No source of a private table is among them.

    Raises:
        InvalidParameter: If a private table has no public rows, or these lack a column.
        Refused: If what is called public is a private source, or cannot be told from one.
    """
    if given is None:
        from discreet.query.engines.made_up_rows import dummy_engine

        engine: RowEngine = dummy_engine(catalogue_in(catalogue_of(plan, tables), plan, period))
    else:
        engine = open_here(_public_sources(plan, given, tables or {}))
    try:
        if given is not None:
            _check_columns(plan, engine)
        yield engine
    finally:
        engine.close()


def _public_sources(plan: ReleasePlan, given: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    declared = plan.policy.tables
    private = [name for name, table in declared.items() if not table.public]
    unknown = [name for name in given if name not in private]
    missing = [name for name in private if given.get(name) is None]
    if unknown or missing:
        raise InvalidParameter(
            f"public rows stand in for every private table ({', '.join(private)}), and "
            + (f"there is no private table {unknown[0]!r}" if unknown else f"none were given for {missing[0]!r}")
        )
    samples = {name: _unmarked(given[name]) for name in private}
    for sample in samples.values():
        _check_place(sample, {name: declared[name].source for name in private})
    return {
        name: public(_as_written(table, samples[name]) if name in samples else table.handed(tables.get(name)))
        for name, table in declared.items()
    }


def _unmarked(table: Any) -> Any:
    """Return the table itself: `dp.public` says of it what is known here."""
    return table.table if isinstance(table, PublicTable) else table


def _as_written(table: TablePolicy, sample: Any) -> Any:
    """Return what is read: a CSV file as the plan says that its own is written, anything else as it is."""
    is_csv = isinstance(sample, (str, Path)) and {".csv", ".tsv"} & set(Path(sample).suffixes)
    return replace(table.csv, path=str(sample)) if is_csv and table.csv is not None else sample


def _check_place(sample: Any, sources: Mapping[str, Path | None]) -> None:
    """Refuse the private file itself, and what may be private rows somewhere else than in a file."""
    here = isinstance(sample, (str, Path, CsvFile, list, tuple)) or is_table(sample)
    if not here or identity_of("sample", sample) is not None:  # A connection, too, may be to the private file.
        raise Refused(
            "public rows are files or tables in memory: this is a source somewhere else",
            reason="it may be the private one under another address, which cannot be told without opening it",
            way_out="export the public rows to a file, and name that",
        )
    for name, source in sources.items():
        if source is not None and _places(sample) & _places(source):
            raise Refused(
                f"what is called public here is the source of the private table {name!r}",
                reason="figures of it would be exact, and nobody would have paid for them",
                way_out="name a file that everybody may read; or leave it out, for made-up rows",
            )


def _places(table: Any) -> set[object]:
    """Return where the files of a table are, by path and, where they exist, by what the disk calls them."""
    table = table.path if isinstance(table, CsvFile) else table
    parts = table if isinstance(table, Sequence) and not isinstance(table, str) else [table]
    named = [str(part) for part in parts if isinstance(part, (str, Path))]
    files = [Path(file) for name in named for file in (name, *glob.glob(name, recursive=True))]
    there = [file.stat() for file in files if file.exists()]
    return {file.resolve() for file in files} | {(one.st_dev, one.st_ino) for one in there}


def _check_columns(plan: ReleasePlan, engine: RowEngine) -> None:
    for name, table in plan.policy.tables.items():
        wanted = [] if table.public else [*plan.policy.unit.parts, *table.columns]
        missing = [column for column in wanted if column not in engine.columns(name)]
        if missing:
            raise InvalidParameter(
                f"the public rows for {name!r} have no column {missing[0]!r}: they need the columns that the plan "
                "declares, under the same names"
            )
