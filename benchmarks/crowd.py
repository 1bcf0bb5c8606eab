"""Rows of many users for the speed of private SQL, written once below .bench/ as Parquet.

Users are active by a power law, and most rows of a user are in one city; cities are sized by a power law too. In
`once` every user has one row, except for some who were planted twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.crowd_names import CITIES, folder

__all__ = ["crowd", "crowd_files"]

CHUNK: Final = 1_000_000
PER_FILE: Final = 25_000_000  # rows, where there are several files
DUPLICATES: Final = 100  # one row in so many belongs to a user who has another one


def crowd(kind: str, rows: int) -> Path:
    """Return the file, made if it is not there."""
    path = folder() / f"{kind}-{rows}.parquet"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    return _written(kind, rows, range(0, rows, CHUNK), path)


def crowd_files(kind: str, rows: int, folder: Path) -> Path:
    """Return the folder of the same rows in files of 25 million; files that are there are taken as they are."""
    made = folder / f"{kind}-{rows}"
    made.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, PER_FILE)):
        path = made / f"part-{number:03}.parquet"
        if not path.exists():
            _written(kind, rows, range(start, min(start + PER_FILE, rows), CHUNK), path)
    return made


def _written(kind: str, rows: int, starts: range, path: Path) -> Path:
    import pyarrow.parquet as pq

    unfinished = path.with_suffix(".part")
    writer: Any = None
    for start in starts:
        table = _chunk(kind, rows, start, min(CHUNK, rows - start), start // CHUNK)
        writer = writer or pq.ParquetWriter(unfinished, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=CHUNK)
    writer.close()
    return unfinished.rename(path)


def _chunk(kind: str, rows: int, start: int, size: int, number: int) -> Any:
    import pyarrow as pa

    generator = np.random.default_rng((11, rows, number))
    users = _once(start, size, rows, generator) if kind == "once" else _often(rows // 10, size, generator)
    home = _power_law(CITIES, _scattered(users), 1.1)
    away = _power_law(CITIES, generator.random(size), 1.1)
    return pa.table(
        {
            "user_id": users,
            "city": np.where(generator.random(size) < 0.6, home, away).astype(np.int32),
            "income": generator.lognormal(10.6, 0.7, size),
        }
    )


def _often(users: int, size: int, generator: np.random.Generator) -> Any:
    ranks = _power_law(users, generator.random(size), 0.6)
    return ranks * 2_654_435_761 % users  # A prime above all sizes: the order tells nothing, and nobody is lost.


def _once(start: int, size: int, rows: int, generator: np.random.Generator) -> Any:
    users = np.arange(start, start + size, dtype=np.int64)
    planted = generator.random(size) < 1 / DUPLICATES
    users[planted] = generator.integers(0, rows, int(planted.sum()))
    return users


def _scattered(users: Any) -> Any:
    """Return a number from 0 to 1 that belongs to each user."""
    return (users * 0x9E3779B1 % 2**32) / 2**32


def _power_law(members: int, shares: Any, exponent: float) -> Any:
    """Find the member at each share of the total weight, the weights falling by a power of the rank.

    The sum of the weights is taken for its integral, which is close enough and needs no table.
    """
    top = members ** (1 - exponent)
    ranks = (1 + shares * (top - 1)) ** (1 / (1 - exponent))
    return np.minimum(ranks.astype(np.int64), members) - 1
