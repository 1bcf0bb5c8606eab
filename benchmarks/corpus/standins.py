"""Small seeded tables with the schema of each data set, so that the corpus runs where the real data are not.

Values are drawn from what the policy declares; they resemble the real ones in shape only.
"""

from __future__ import annotations

import zlib
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from benchmarks.corpus.policies import Choice, Column, Dataset, Number, Private, Text, Time

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Tables", "draw_values", "public", "standin"]

Tables: TypeAlias = "dict[str, pa.Table]"
SEED: Final = 2013
FIRST_UNIT: Final = 10_001  # Identifiers say nothing: they start anywhere.


def standin(dataset: Dataset, *, times: int = 1) -> Tables:
    """Draw the private tables, `times` as many units as the policy says, and add the public ones."""
    import pyarrow as pa

    drawn = {table.name: _draw(dataset, table, dataset.units * times) for table in dataset.private}
    if dataset.name == "tpch":
        _link_lines(drawn)
    return {name: pa.table(columns) for name, columns in drawn.items()} | public(dataset)


def public(dataset: Dataset) -> Tables:
    """Return the public tables."""
    import pyarrow as pa

    return {
        table.name: pa.table({column: table.column(column) for column in table.columns}) for table in dataset.public
    }


def _draw(dataset: Dataset, table: Private, units: int) -> dict[str, list[Any]]:
    generator = np.random.default_rng((SEED, zlib.crc32(f"{dataset.name}.{table.name}".encode())))
    owners = np.repeat(np.arange(units), generator.integers(table.rows[0], table.rows[1] + 1, units))
    columns = {name: draw_values(column, len(owners), generator) for name, column in table.columns.items()}
    return columns if dataset.unit == "row" else columns | {dataset.unit: _units(dataset, owners, generator)}


def _units(dataset: Dataset, owners: Any, generator: np.random.Generator) -> list[Any]:
    names = [f"N{owner}" if dataset.text_unit else int(owner) for owner in owners + FIRST_UNIT]
    return _with_nulls(names, dataset.null_units if len(names) > dataset.units else 0.0, generator)


def draw_values(column: Column, size: int, generator: np.random.Generator) -> list[Any]:
    match column:
        case Number():
            return _with_nulls(_numbers(column, size, generator), column.nulls, generator)
        case Choice(values=members) | Text(examples=members):
            return _with_nulls(
                [members[place] for place in _skewed(len(members), size, generator)], column.nulls, generator
            )
        case Time():
            return [_moment(column, share) for share in generator.random(size)]


def _numbers(column: Number, size: int, generator: np.random.Generator) -> list[Any]:
    low, high = column.usual or (column.low, column.high)
    if column.step is None or float(column.step) >= 1:
        return [int(value) for value in generator.integers(int(low), int(high) + 1, size)]
    decimals = len(column.step.partition(".")[2])
    return [round(float(value), decimals) for value in generator.uniform(low, high, size)]


def _skewed(members: int, size: int, generator: np.random.Generator) -> list[int]:
    """Take the first members more often, the last ones still often enough to be seen."""
    weights = 1 / np.sqrt(np.arange(1, members + 1))
    return [int(place) for place in generator.choice(members, size, p=weights / weights.sum())]


def _moment(column: Time, share: float) -> date | datetime:
    length = column.high - column.low
    return column.low + (
        timedelta(minutes=int(share * length / timedelta(minutes=1)))
        if column.is_timestamp
        else timedelta(days=int(share * length.days))
    )


def _with_nulls(values: list[Any], share: float, generator: np.random.Generator) -> list[Any]:
    missing = generator.random(len(values)) < share
    return [None if absent else value for value, absent in zip(values, missing, strict=True)]


def _link_lines(drawn: dict[str, dict[str, list[Any]]]) -> None:
    """Number the orders, and give every line an order of its own customer; lines of nobody's order go."""
    orders, lines = drawn["orders"], drawn["lineitem"]
    orders["orderkey"] = list(range(1, len(orders["custkey"]) + 1))
    of_customer: dict[int, list[int]] = {}
    for order, customer in zip(orders["orderkey"], orders["custkey"], strict=True):
        of_customer.setdefault(customer, []).append(order)
    kept = [place for place, customer in enumerate(lines["custkey"]) if customer in of_customer]
    for name, values in lines.items():
        lines[name] = [values[place] for place in kept]
    choices = (of_customer[customer] for customer in lines["custkey"])
    lines["orderkey"] = [orders_of[place % len(orders_of)] for place, orders_of in enumerate(choices)]
