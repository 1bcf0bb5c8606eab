"""Purchases of a million people, and a plan of twelve tables about them, for the speed of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

__all__ = ["GROUPINGS", "QUERIES", "plan_text", "purchases"]

CHUNK: Final = 1_000_000
CITIES: Final = tuple(f"City {number:03}" for number in range(100))
REGIONS: Final = tuple(f"Region {number:02}" for number in range(10))
PRODUCTS: Final = tuple(f"Product {number:02}" for number in range(20))
BANDS: Final = ("0-17", "18-34", "35-64", "65+")
SEXES: Final = ("f", "m")
GROUPINGS: Final = (
    (),
    ("region",),
    ("city",),
    ("sex",),
    ("band",),
    ("product",),
    ("region", "sex"),
    ("region", "band"),
    ("city", "sex"),
    ("region", "product"),
    ("sex", "band"),
    ("region", "sex", "band"),
)
_MEASURES: Final = "COUNT(*) AS purchases, SUM(amount) AS amount"
# The same tables as anybody would ask for them without privacy.
QUERIES: Final = tuple(
    f"SELECT {', '.join((*keys, _MEASURES))} FROM shopping{' GROUP BY ' + ', '.join(keys) if keys else ''}"
    for keys in GROUPINGS
)


def plan_text(source: Path) -> str:
    """Write the plan: one family of twelve groupings of the same rows."""
    return f"""\
name = "shopping"
title = "Purchases"
dataset = "shopping"
ledger = "shopping.ledger"
[unit]
column = "person"
max_groups = 2
max_rows_per_group = 2
[budget]
epsilon = 100
delta = 1e-4
[tables.shopping]
source = "{source}"
[tables.shopping.columns]
city = {{ categories = {list(CITIES)} }}
region = {{ categories = {list(REGIONS)} }}
sex = {{ categories = {list(SEXES)} }}
band = {{ categories = {list(BANDS)} }}
product = {{ categories = {list(PRODUCTS)} }}
amount = {{ low = 0, high = 500, step = "0.01" }}
[release]
epsilon = 1
delta = 1e-7
[output]
folder = "published"
[[publish]]
name = "shopping"
from = "shopping"
groupings = {[list(keys) for keys in GROUPINGS]}
measures = {{ purchases = "COUNT(*)", amount = "SUM(amount)" }}
expected = {{ "*" = 10000 }}
"""


def purchases(folder: Path, rows: int) -> Path:
    """Return the file, made if it is not there: a tenth as many people as rows, most of whose rows are in one city."""
    import numpy as np
    import pyarrow.parquet as pq

    path = folder / f"shopping-{rows}.parquet"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    unfinished, writer = path.with_suffix(".part"), None
    for start in range(0, rows, CHUNK):
        table = _chunk(rows // 10, min(CHUNK, rows - start), np.random.default_rng((5, rows, start)))
        writer = writer or pq.ParquetWriter(unfinished, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=CHUNK)
    assert writer is not None
    writer.close()
    return unfinished.rename(path)


def _chunk(people: int, size: int, generator: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    who = generator.integers(0, people, size)
    fixed = who * 2_654_435_761 % (1 << 32)  # What belongs to a person is a function of who they are.
    home = np.minimum((len(CITIES) * (fixed / (1 << 32)) ** 3).astype(np.int64), len(CITIES) - 1)
    city = np.where(generator.random(size) < 0.9, home, generator.integers(0, len(CITIES), size))
    places = {
        "city": (CITIES, city),
        "region": (REGIONS, city // 10),
        "sex": (SEXES, fixed % 2),
        "band": (BANDS, fixed // 7 % 4),
        "product": (PRODUCTS, generator.integers(0, len(PRODUCTS), size)),
    }
    columns = {name: pa.array(values).take(pa.array(at)) for name, (values, at) in places.items()}
    return pa.table({"person": who, **columns, "amount": np.round(generator.gamma(2, 30, size), 2)})
