"""The tables of codes that synthetic tables are made of, and what is declared about them before anyone looks.

Adult and nltcs are the ones of the papers on marginals, with their published domains. PUMS is the extract of Fulton
County: ages as they are, incomes in steps of 5,000 from 0 to 250,000 (what lies outside is moved to the ends).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["SYNTH_SETS", "Coded", "keep", "kept", "query"]

INCOME_STEP: Final = 5_000
INCOME_CELLS: Final = 51
ORDERED: Final = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week", "educ", "income")


@dataclass(frozen=True, slots=True)
class Coded:
    """Rows of codes, and how many cells each column has."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: NDArray[np.int32]
    ordered: tuple[str, ...] = ()  # columns whose cells are bins of a number


def adult(folder: Path) -> Coded:
    """Read Adult as the papers cut it into cells."""
    path = folder / "adult"
    sizes: dict[str, int] = json.loads((path / "adult_discretised_mbi_domain.json").read_text(encoding="utf-8"))
    rows = query(f"select * from read_csv('{path / 'adult_discretised_mbi.csv.gz'}')")
    return _coded({name: rows[name] for name in sizes}, sizes)


def nltcs(folder: Path) -> Coded:
    """Read the disabilities: sixteen times yes or no."""
    path = folder / "nltcs"
    sizes: dict[str, int] = json.loads((path / "domain.json").read_text(encoding="utf-8"))
    rows = query(f"select * from '{path / 'nltcs.parquet'}'")
    return _coded({name: rows[name] for name in sizes}, sizes)


def pums(folder: Path) -> Coded:
    """Read Fulton County without its two constant columns."""
    rows = query(f"select * exclude (state, fips) from '{folder / 'pums' / 'pums_fulton_ga.parquet'}'")
    special: dict[str, tuple[Any, int]] = {
        "puma": (rows["puma"] - 1101, 7),
        "age": (rows["age"] - 18, 76),
        "educ": (rows["educ"] - 1, 16),
        "income": (np.floor(rows["income"] / INCOME_STEP), INCOME_CELLS),
    }
    found = {name: special.get(name, (column, 2)) for name, column in rows.items()}
    return _coded(
        {name: codes for name, (codes, _) in found.items()}, {name: size for name, (_, size) in found.items()}
    )


SYNTH_SETS: Final[dict[str, Callable[[Path], Coded]]] = {"Adult": adult, "PUMS": pums, "nltcs": nltcs}


def keep(table: Coded, path: Path) -> None:
    """Write a table for scripts whose environments read NumPy's files only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, codes=table.codes, names=table.names, sizes=table.sizes, ordered=np.array(table.ordered, dtype=str))


def kept(path: Path) -> Coded:
    """Read what was written."""
    with np.load(path) as file:
        names, ordered = tuple(map(str, file["names"])), tuple(map(str, file["ordered"]))
        return Coded(names, tuple(map(int, file["sizes"])), file["codes"], ordered)


def _coded(columns: dict[str, Any], sizes: dict[str, int]) -> Coded:
    """Move every code into its column's cells."""
    moved = [np.clip(np.asarray(columns[name], dtype=np.float64), 0, size - 1) for name, size in sizes.items()]
    ordered = tuple(name for name in sizes if name in ORDERED)
    return Coded(tuple(sizes), tuple(sizes.values()), np.column_stack(moved).astype(np.int32), ordered)


def query(sql: str) -> dict[str, Any]:
    """Return the columns that DuckDB finds."""
    import duckdb

    found: dict[str, Any] = duckdb.connect().execute(sql).fetchnumpy()
    return found
