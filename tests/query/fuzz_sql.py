"""Random questions that an analyst might write, over small tables with everything in them that goes wrong."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa

import discreet as dp

__all__ = ["COLUMNS", "Sql", "tables"]

CITIES = ("Rome", "Oslo", "Lyon")
COLUMNS: dict[str, dict[str, Any]] = {
    "people": {
        "city": dp.categories(CITIES),
        "age": dp.between(0, 100),
        "pay": dp.between(-50.0, 1000.0, step=0.5),
        "day": dp.between(date(2024, 1, 1), date(2024, 12, 31)),
        "flag": dp.boolean(),
    },
    "visits": {"age": dp.between(-10, 10), "pay": dp.between(0.0, 5.0, step=0.01), "city": dp.categories(CITIES)},
}
_PEOPLE = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("age", pa.int64()),
        ("pay", pa.float64()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
    ]
)
_ODD_REALS = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7e308, None)
_ODD_INTEGERS = (2**63 - 1, -(2**63), 0, -1, None)
TOWNS = pa.table(
    {"city": ["Rome", "Rome", "Oslo", "Lyon", None], "region": ["S", "S", "N", "W", "W"], "rank": [1, 2, 3, 4, 5]}
)
REGIONS = pa.table({"city": ["Rome", "Oslo", "Lyon"], "region": ["S", "N", "W"]})


def tables(random_: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw a few ordinary units, one with far more rows than the policy allows, and rows without a unit."""
    owners = [1, 2, 2, 3, 3, 3, None, *([9] * 10)]
    return [_row(random_, owner) for owner in owners], [_row(random_, owner) for owner in owners[3:]]


def _row(random_: random.Random, owner: int | None) -> dict[str, Any]:
    odd = random_.random() < 0.2
    return {
        "id": owner,
        "city": random_.choice([*CITIES, *CITIES, "Bonn", "", None]),
        "name": random_.choice(["Ada", "Bo", "Cy", "é", "é", None]),
        "age": random_.choice(_ODD_INTEGERS) if odd else random_.randrange(-5, 110),
        "pay": random_.choice(_ODD_REALS) if odd else round(random_.uniform(-80, 1100), 3),
        "day": None if odd else date(2023, 12, 20) + timedelta(days=random_.randrange(400)),
        "flag": random_.choice([True, False, None]),
    }


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as an Arrow table with their schema, even if there are none."""
    return pa.Table.from_pylist(rows, schema=_PEOPLE)


@dataclass
class Sql:
    """A writer of random queries."""

    random: random.Random
    unit: bool  # whether `id` is the unit; else rows are

    def query(self) -> str:
        source, has_region = self._source()
        keys = self._keys(has_region)
        names = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        chosen = [f"{self._aggregate()} AS a{place}" for place in range(self.random.randrange(1, 4))]
        where = f" WHERE {self.condition(2)}" if self.random.random() < 0.5 else ""
        grouping = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join(names + chosen)} FROM {source}{where}{grouping}"

    def _source(self) -> tuple[str, bool]:
        plain = [
            ("people", False),
            ("visits", False),
            (
                "(SELECT id, city, name, age + 1 AS age, pay * 2 AS pay, day, flag FROM people WHERE age < 90) AS t",
                False,
            ),
            ("(SELECT * FROM people UNION ALL SELECT * FROM visits) AS t", False),
            ("(SELECT people.*, r.region FROM people JOIN regions r ON people.city = r.city) AS t", True),
            ("(SELECT people.*, r.region FROM people LEFT JOIN regions r ON people.city = r.city) AS t", True),
        ]
        owned = [
            ("(SELECT people.*, t.region FROM people JOIN towns t ON people.city = t.city) AS t", True),
            (
                "(SELECT p.id, p.city, v.name, p.age, v.pay, p.day, v.flag FROM people p "
                "JOIN visits v ON p.id = v.id) AS t",
                False,
            ),
            (
                "(SELECT p.id, v.city, p.name, v.age, p.pay, p.day, p.flag FROM people p "
                "LEFT JOIN visits v ON p.id = v.id) AS t",
                False,
            ),
            ("(SELECT * FROM people UNION ALL SELECT * FROM people) AS t", False),
            (
                "(SELECT id, city, CASE WHEN COUNT(*) > 1 THEN 'Bo' ELSE 'Ada' END AS name, "
                "LEAST(COUNT(*), 9) AS age, AVG(pay) AS pay, MAX(day) AS day, "
                "MAX(age) > 50 AS flag FROM people GROUP BY id, city) AS t",
                False,
            ),
            (
                "(SELECT id, CASE WHEN MAX(age) > 60 THEN 'Rome' END AS city, "
                "CASE WHEN COUNT(*) > 1 THEN 'Bo' ELSE 'Ada' END AS name, MAX(age) AS age, "
                "LEAST(GREATEST(SUM(pay), -9), 99) AS pay, MIN(day) AS day, "
                "COUNT(DISTINCT name) > 1 AS flag FROM people GROUP BY id) AS t",
                False,
            ),
        ]
        return self.random.choice(plain + owned * 2 if self.unit else plain)

    def _keys(self, has_region: bool) -> list[str]:
        keys = [
            "city",
            "flag",
            "name",
            "FLOOR(age / 25)",
            "CASE WHEN age < 40 THEN 'young' ELSE 'old' END",
            "MONTH(day)",
            "age",
        ]
        return self.random.sample(keys + ["region"] * 3 * has_region, self.random.choice([0, 1, 1, 2]))

    def _aggregate(self) -> str:
        pick = self.random.randrange(13)
        number = self.number(2)
        counted = self.random.choice(["id", "name", "city", number])
        return [
            "COUNT(*)",
            f"COUNT({counted})",
            "COUNT(DISTINCT id)",
            f"COUNT(DISTINCT {counted})",
            f"SUM({number})",
            f"AVG({number})",
            f"VARIANCE({number})",
            f"STDDEV({number})",
            f"MEDIAN({number})",
            f"MIN({number})",
            f"MAX({number})",
            "MODE(flag)",
            f"COUNT(*) FILTER (WHERE {self.condition(1)})",
        ][pick]

    def number(self, depth: int) -> str:
        leaves = ["age", "pay", "age", "pay", str(self.random.randrange(-3, 9)), "0.25", "1000"]
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice(leaves)
        one, other = self.number(depth - 1), self.number(depth - 1)
        forms = [
            f"({one} + {other})",
            f"({one} - {other})",
            f"({one} * {other})",
            f"(-{one})",
            f"ABS({one})",
            f"ROUND({one}, 1)",
            f"FLOOR({one})",
            f"({one} / 7)",
            f"LEAST(GREATEST({one} / NULLIF({other}, 0), -5), 5)",
            f"SQRT(ABS({one}))",
            f"COALESCE({one}, {other})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {other} END",
            f"LEAST({one}, {other})",
            f"(CAST({one} AS INTEGER) % 5)",
        ]
        return self.random.choice(forms)

    def condition(self, depth: int) -> str:
        if depth > 0 and self.random.random() < 0.4:
            word = self.random.choice(["AND", "OR"])
            return f"({self.condition(depth - 1)} {word} NOT {self.condition(depth - 1)})"
        number = self.number(1)
        forms = [
            f"{number} > {self.random.randrange(-5, 60)}",
            f"{number} BETWEEN 3 AND 70",
            "city IN ('Rome', 'Lyon')",
            "name LIKE '%o%'",
            "name IS NOT NULL",
            "flag",
            "day >= DATE '2024-06-01'",
        ]
        return self.random.choice(forms)
