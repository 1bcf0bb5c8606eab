"""The tables that answers are judged on: a whole stand-in, and one in which a single new unit does its worst.

`whole` is the stand-in. In `single` every unit keeps one row of each table, so that no limit touches it. `loud` adds a
unit with many rows, all within the declared bounds; `whale` adds one whose rows are also out of bounds and carry a text
that nobody else has. A private answer moves by no more than a unit's few rows can move it, and never shows that text.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.corpus.names import CANARY, WHALE_NUMBER, WHALE_ROWS, WORLDS
from benchmarks.corpus.policies import Choice, Column, Dataset, Number, Private, Text
from benchmarks.corpus.standins import Tables, draw_values, standin

__all__ = ["make_world", "write_worlds"]

USUAL, HIGH, OUTRAGEOUS = range(3)  # kinds of rows
OUT_OF_BOUNDS: Final = 1_000  # times the upper bound


def make_world(dataset: Dataset, world: str) -> Tables:
    """Return the tables of one world."""
    private = {table.name: table for table in dataset.private}
    return {
        name: _world_table(dataset, private[name], _owned(dataset, table), world) if name in private else table
        for name, table in standin(dataset).items()
    }


def write_worlds(folder: Path, dataset: Dataset) -> None:
    """Write every table of every world as Parquet."""
    import pyarrow.parquet as pq

    for world in WORLDS:
        target = folder / world / dataset.name
        target.mkdir(parents=True, exist_ok=True)
        for name, table in make_world(dataset, world).items():
            pq.write_table(table, target / f"{name}.parquet")


def _world_table(dataset: Dataset, private: Private, table: Any, world: str) -> Any:
    import pyarrow as pa

    if world == "whole":
        return table
    calm = table if dataset.unit == "row" else _first_rows(table, dataset.unit)
    if world == "single":
        return calm
    kinds = (USUAL, HIGH) if world == "loud" else (USUAL, HIGH, OUTRAGEOUS)
    more = [pa.table(_loud_rows(dataset, private, kind), schema=calm.schema) for kind in kinds]
    # A row is a unit of its own: one of them is added, the worst.
    return pa.concat_tables([calm, *(more[-1:] if dataset.unit == "row" else more)])


def _owned(dataset: Dataset, table: Any) -> Any:
    """Leave out the rows of nobody: some subjects drop them and some do not, and that is judged elsewhere."""
    return table if dataset.unit == "row" else table.filter(table.column(dataset.unit).is_valid())


def _first_rows(table: Any, unit: str) -> Any:
    seen: set[Any] = set()
    owners = table.column(unit).to_pylist()
    kept = [place for place, owner in enumerate(owners) if not (owner in seen or seen.add(owner))]  # type: ignore[func-returns-value]
    return table.take(kept)


def _loud_rows(dataset: Dataset, private: Private, kind: int) -> dict[str, list[Any]]:
    """Draw rows like anybody's, or put their numbers at the upper bounds, or beyond."""
    generator = np.random.default_rng((7, kind, zlib.crc32(f"{dataset.name}.{private.name}".encode())))
    size = 1 if dataset.unit == "row" else WHALE_ROWS
    columns = {name: _loud(column, kind, size, generator) for name, column in private.columns.items()}
    if dataset.unit == "row":
        return columns
    owner: Any = f"N{WHALE_NUMBER}" if dataset.text_unit else WHALE_NUMBER
    return columns | {dataset.unit: [owner] * size}


def _loud(column: Column, kind: int, size: int, generator: np.random.Generator) -> list[Any]:
    if isinstance(column, Number) and kind != USUAL:
        value = column.high * (1 if kind == HIGH else OUT_OF_BOUNDS)
        return [float(value) if column.step is not None and float(column.step) < 1 else value] * size
    if isinstance(column, Text | Choice) and kind == OUTRAGEOUS:
        return [CANARY] * size
    return draw_values(column, size, generator)
