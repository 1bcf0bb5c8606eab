"""What a policy file says is done or refused, never passed over."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import InvalidParameter

ORDERS = pa.table({"customer": [1, 1, 2], "city": ["a", "b", "a"], "price": [1, 2, 3]})
CITIES = pa.table({"city": ["a", "b"], "people": [10, 20]})
POLICY = """\
dataset = "shop"
ledger = "shop.ledger"

[unit]
column = "customer"

[budget]
epsilon = 1

[tables.orders.columns.price]
low = 0
high = 10

[tables.cities]
public = true
"""


def opened(folder: Path, policy: str) -> dp.Session:
    file = folder / "policy.toml"
    file.write_text(policy, encoding="utf-8")
    return dp.Session.from_policy(file, principal="ana", tables={"orders": ORDERS, "cities": CITIES})


def test_bounds_of_a_public_table_are_refused_as_by_the_constructor(tmp_path: Path) -> None:
    opened(tmp_path, POLICY).close()
    declared = POLICY + "\n[tables.cities.columns.people]\nlow = 0\nhigh = 5\n"
    with pytest.raises(InvalidParameter, match="public: its columns are read, not declared"):
        opened(tmp_path, declared)


def test_two_declarations_of_one_column_are_refused(tmp_path: Path) -> None:
    """SQL does not tell them apart, so one of them would be passed over."""
    with pytest.raises(InvalidParameter, match="up to upper and lower case"):
        opened(tmp_path, POLICY + "\n[tables.orders.columns.PRICE]\nlow = 0\nhigh = 99\n")
    declared = {"orders": {"price": dp.between(0, 9)}, "Orders": {"price": dp.between(0, 99)}}
    with pytest.raises(InvalidParameter, match="up to upper and lower case"):
        dp.Session(
            {"orders": ORDERS},
            unit="row",
            columns=declared,
            ledger="memory",
            dataset="shop",
            principal="ana",
            budget=dp.Budget(1),
        )
