"""Tables that profiles are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp

CANARIES = ("Zebedee Quillfeather", "zebedee@example.org", "unspeakable rarity")


def people(rows: int = 4000) -> pa.Table:
    """One row each: numbers, days, texts, rare values, and two people who stand out in every column."""
    place = np.arange(rows)
    days = np.datetime64("2021-01-01") + (place % 400)
    town = np.array(["Harbour", "Hill", "Mill", "Station"], object)[place % 4]
    town[0] = CANARIES[2]
    name = [f"Person {number}" for number in place]
    name[0] = CANARIES[0]
    return pa.table(
        {
            "person": place,
            "age": place % 90,
            "height": 150 + (place % 500) / 10,
            "seen": pa.array(days.astype("datetime64[D]")),
            "town": pa.array([None if number % 10 == 9 else value for number, value in enumerate(town.tolist())]),
            "name": pa.array([*name[:-1], CANARIES[1]]),
            "member": pa.array((place % 3 == 0).tolist()),
        }
    )


def session(table: Any, **changed: Any) -> dp.Session:
    """A session on a table, kept in memory."""
    usual = {
        "unit": "row",
        "budget": dp.Budget(epsilon=100, delta=1e-6),
        "ledger": "memory",
        "dataset": "people",
        "principal": "ana",
    }
    return dp.Session(table, **(usual | changed))
