"""A second writer of random queries, and the nasty little tables that they are asked of.

It shares no production with `fuzz_sql`: what one author forgets, the other may think of.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

import discreet as dp

__all__ = ["DECLARED", "PUBLIC", "Grammar", "Owner", "Tables", "draw_tables"]

Owner = int | str | float | None
Row = dict[str, Any]

TOWNS = ("Ulm", "ULM", "ulm", "Žd", "Zd", "")
_TEXTS = (
    *TOWNS,
    *TOWNS,
    "ﬁ",
    "fi",
    "ſ",
    "s",
    "I",
    "ı",
    "é",
    "é",
    " Ulm",
    "Ulm ",
    "0",
    "01",
    "1e0",
    "nan",
    "2024-02-30",
)
_WHOLE = (0, 1, -1, 5, 5, 7, 99, 100, 101, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), None)
_REAL = (0.0, -0.0, 0.5, 1.5, 2.5, 1e-300, 5e-324, 1e300, math.nan, -math.nan, math.inf, -math.inf, 0.1 + 0.2, None)
_DAYS = (date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(2023, 12, 31), date(2024, 1, 1), None)
_MOMENTS = (datetime(2024, 3, 31, 1, 59, 59, 999999), datetime(1970, 1, 1), datetime(1900, 1, 1), None)

_SCHEMA = {
    "town": pa.string(),
    "note": pa.string(),
    "n": pa.int64(),
    "small": pa.int8(),
    "x": pa.float64(),
    "half": pa.float32(),
    "price": pa.decimal128(12, 3),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "ok": pa.bool_(),
}
DECLARED: dict[str, Any] = {
    "town": dp.categories(TOWNS[:5]),
    "note": dp.text(),
    "n": dp.between(-5, 100),
    "small": dp.between(0, 9),
    "x": dp.between(-2.5, 40.0, step=0.25),
    "half": dp.between(0.0, 1.0, step=0.125),
    "price": dp.between(0.0, 99.0, step=0.01),
    "day": dp.between(date(2023, 12, 30), date(2024, 3, 2)),
    "ok": dp.boolean(),
}
PUBLIC = {
    "places": pa.table(
        {"town": ["Ulm", "ULM", "Žd", "Zd", None], "land": ["a", "b", "b", "c", "c"], "rank": [1, 2, 2, None, 5]}
    ),
    "many": pa.table({"town": ["Ulm", "Ulm", "Ulm", "ulm", "Zd", ""], "land": ["a", "a", "b", "b", "c", None]}),
    "codes": pa.table({"n": [5, 7, 99, 0, -1], "label": ["five", "seven", "lots", "none", "owes"]}),
}
_OWNERS: tuple[Callable[[int], Owner], ...] = (
    lambda place: place,
    lambda place: (
        ["anne", "Anne", "ANNE", "änne", "anne ", " anne", "ﬁ", "fi", "", "0"][place % 10] + "'" * (place // 10)
    ),
    lambda place: [0.0, 0.5, math.inf, -math.inf, 1e300, 5e-324, 1.0, -1.0, 0.1, 0.3][place % 10] + place // 10,
)


@dataclass
class Tables:
    """Two private tables of one kind of owner."""

    stays: list[Row]
    bills: list[Row]
    kind: pa.DataType
    owners: list[Owner] = field(default_factory=list)

    def arrow(
        self, name: str, *, without: Owner = None, place: int | None = None, instead: dict[str, list[Row]] | None = None
    ) -> pa.Table:
        """Return a table, perhaps without the rows of an owner, or without the row at a place of the first table.

        With `instead`, by table, other rows are in their place.
        """
        rows = self.stays if name == "stays" else self.bills
        others = [] if instead is None else instead[name]
        if without is not None:
            rows = [row for row in rows if row["who"] != without] + [row | {"who": without} for row in others]
        if place is not None and name == "stays":
            rows = rows[:place] + others + rows[place + 1 :]
        return pa.Table.from_pylist(rows, schema=pa.schema([("who", self.kind), *_SCHEMA.items()]))


def draw_tables(chance: random.Random) -> Tables:
    """Draw 5 to 50 rows in all: a whale with a third of them, people with a few, and rows of nobody."""
    owner = chance.choice(_OWNERS)
    people = [owner(place) for place in range(chance.randrange(2, 9))]
    whale = people[0]
    kind = {int: pa.int64(), str: pa.string(), float: pa.float64()}[type(whale)]

    def rows(count: int) -> list[Row]:
        return [_row(chance, whale if chance.random() < 0.35 else chance.choice([*people, None])) for _ in range(count)]

    total = chance.randrange(5, 51)
    first = chance.randrange(3, total + 1)
    return Tables(rows(first), rows(total - first), kind, people)


def other_rows(chance: random.Random, most: int) -> dict[str, list[Row]]:
    """Draw rows that one owner could have instead, by table, of a few kinds: what is at an end is there often."""
    kinds = [_row(chance, None) for _ in range(3)]
    return {name: [chance.choice(kinds) for _ in range(chance.randrange(most + 1))] for name in ("stays", "bills")}


def _row(chance: random.Random, owner: Owner) -> Row:
    odd = chance.random() < 0.35
    return {
        "who": owner,
        "town": chance.choice([*TOWNS, "Bonn", None]),
        "note": chance.choice([*_TEXTS, None, "x" * 300]),
        "n": chance.choice(_WHOLE) if odd else chance.randrange(-10, 120),
        "small": chance.choice([None, -128, 127, *range(10)]),
        "x": chance.choice(_REAL) if odd else round(chance.uniform(-5, 50), 2),
        "half": chance.choice([None, math.nan, 0.5, 0.25, 1.0, 2.0, -1.0]),
        "price": chance.choice([None, Decimal("0.005"), Decimal("99.999"), Decimal("-1"), Decimal("12.345")]),
        "day": chance.choice(_DAYS) if odd else date(2023, 12, 25) + timedelta(days=chance.randrange(80)),
        "at": chance.choice(_MOMENTS) if odd else datetime(2024, 1, 1) + timedelta(hours=chance.randrange(2000)),
        "ok": chance.choice([True, False, None]),
    }


@dataclass
class Grammar:
    """Random queries of an analyst who knows the schema and wants to see too much."""

    chance: random.Random
    rows: bool  # whether rows are the units

    def query(self) -> str:
        select, source = self._measures(), self._source()
        keys = self.chance.sample(self._keys(), self.chance.choice([0, 1, 1, 1, 2]))
        named = [f"{key} AS g{place}" for place, key in enumerate(keys)] + [
            f"{one} AS m{place}" for place, one in enumerate(select)
        ]
        where = f" WHERE {self.truth(2)}" if self.chance.random() < 0.4 else ""
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = " HAVING COUNT(*) > 2" if group and self.chance.random() < 0.1 else ""
        return f"SELECT {', '.join(named)} FROM {source}{where}{group}{having}"

    def _measures(self) -> list[str]:
        if self.chance.random() < 0.3:
            return self._pivot()
        return [self._measure() for _ in range(self.chance.randrange(1, 5))]

    def _pivot(self) -> list[str]:
        """Counts that exclude each other, or only seem to."""
        column, values = self.chance.choice(
            [
                ("town", [f"'{town}'" for town in TOWNS[:5]]),
                ("note", ["'é'", "'é'", "'ﬁ'", "'fi'", "'01'", "'1e0'"]),
                ("small", ["0", "1", "2", "2.0", "9"]),
                ("n", ["5", "7", "99", "100"]),
                ("ok", ["TRUE", "FALSE"]),
            ]
        )
        picked = self.chance.sample(values, self.chance.randrange(1, len(values) + 1))
        number = self.number(1)
        forms: list[Callable[[str], str]] = [
            lambda value: f"COUNT(CASE WHEN {column} = {value} THEN 1 END)",
            lambda value: f"SUM(CASE WHEN {column} = {value} THEN {number} END)",
            lambda value: f"COUNT(*) FILTER (WHERE {column} = {value} AND {self.truth(0)})",
            lambda value: f"COUNT(CASE WHEN {column} = {value} THEN {number} END)",
        ]
        form = self.chance.choice(forms)
        extra = self.chance.choice(
            [[], [], ["COUNT(*)"], [f"COUNT({self.value()})"], ["COUNT(CASE WHEN NOT ok THEN 1 END)"]]
        )
        return [form(value) for value in picked] + extra

    def _measure(self) -> str:
        number, value = self.number(2), self.value()
        q = self.chance.choice(["0", "0.1", "0.5", "0.9", "1"])
        return self.chance.choice(
            [
                "COUNT(*)",
                f"COUNT({value})",
                "COUNT(DISTINCT who)" if not self.rows else "COUNT(*)",
                f"COUNT(DISTINCT {value})",
                f"SUM({number})",
                f"AVG({number})",
                f"VAR_POP({number})",
                f"STDDEV_SAMP({number})",
                f"CORR({number}, {self.number(1)})",
                f"COVAR_POP({number}, {self.number(1)})",
                f"MEDIAN({number})",
                f"QUANTILE({number}, {q})",
                f"QUANTILE(FLOOR(LEAST(GREATEST({number}, 0), 4)), [0.25, {q}, 0.75])",
                f"MIN({number})",
                "MODE(town)",
                "MODE(small)",
                f"COUNT_IF({self.truth(2)})",
                f"SUM({self.truth(1)})",
                f"AVG({number}) FILTER (WHERE {self.truth(1)})",
                "MEDIAN(day)",
            ]
        )

    def _keys(self) -> list[str]:
        return [
            "town",
            "note",
            "small",
            "ok",
            "n",
            "MONTH(day)",
            "DATE_TRUNC('month', day)",
            "n % 3",
            "FLOOR(x / 10)",
            "LEFT(note, 1)",
            "LOWER(town)",
            "COALESCE(town, 'none')",
            "CASE WHEN ok THEN 'y' WHEN x > 3 THEN 'n' END",
            "LENGTH(note)",
            "DAYOFWEEK(day)",
        ]

    def _source(self) -> str:
        columns = "town, note, n, small, x, half, price, day, at, ok"
        plain = [
            "stays",
            "stays",
            "bills",
            f"(SELECT who, {columns} FROM stays WHERE {self.truth(1)}) AS t",
            f"(SELECT who, {columns} FROM stays UNION ALL SELECT who, {columns} FROM bills) AS t",
            "(SELECT who, UPPER(town) AS town, REPLACE(note, 'm', 'mm') AS note, n + 1 AS n, small, x / 2 AS x, half, "
            "price, day, at, NOT ok AS ok FROM bills) AS t",
            "(SELECT s.*, p.land FROM stays s JOIN places p ON s.town = p.town) AS t",
            "(SELECT s.*, p.rank FROM stays s LEFT JOIN places p ON s.town = p.town) AS t",
            "(SELECT s.*, c.label FROM stays s JOIN codes c ON s.n = c.n) AS t",
            "(SELECT * FROM stays WHERE town IN (SELECT town FROM places)) AS t",
        ]
        owned = [
            "(SELECT s.*, p.land FROM stays s JOIN many p ON s.town = p.town) AS t",
            "(SELECT s.*, p.land, c.label FROM stays s LEFT JOIN many p ON s.town = p.town LEFT JOIN codes "
            "c ON s.n = c.n) AS t",
            "(SELECT s.who, b.town, s.note, b.n, s.small, b.x, s.half, b.price, s.day, b.at, b.ok FROM "
            f"stays s JOIN bills b ON s.who = b.who WHERE {self._sided()}) AS t",
            "(SELECT s.who, b.town, s.note, s.n, b.small, s.x, b.half, s.price, b.day, s.at, b.ok FROM "
            "stays s LEFT JOIN bills b ON s.who = b.who) AS t",
            "(SELECT a.* FROM stays a JOIN stays b ON a.who = b.who) AS t",
            f"(SELECT * FROM stays WHERE who IN (SELECT who FROM bills WHERE {self.truth(1)})) AS t",
            f"(SELECT * FROM stays WHERE who NOT IN (SELECT who FROM bills WHERE {self.truth(0)})) AS t",
            "(SELECT s.* FROM stays s WHERE EXISTS (SELECT 1 FROM bills b WHERE b.who = s.who AND b.ok)) AS t",
            "(SELECT who, town, MAX(note) AS note, COUNT(*) AS n, MIN(small) AS small, AVG(x) AS x, MAX(half) AS half, "
            "SUM(price) AS price, MIN(day) AS day, MAX(at) AS at, COUNT(DISTINCT note) > 1 AS ok FROM stays "
            "GROUP BY who, town) AS t",
            "(SELECT who, MIN(town) AS town, MIN(note) AS note, LEAST(COUNT(*), 50) AS n, MAX(small) AS "
            "small, LEAST(GREATEST(SUM(x), -9), 9) AS x, "
            "AVG(half) AS half, MAX(price) AS price, MAX(day) AS day, MIN(at) AS at, MAX(n) > 50 AS ok FROM stays "
            "GROUP BY who HAVING COUNT(*) > 1) AS t",
            f"(SELECT * FROM stays QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY {self._order()}) = 1) AS t",
            f"(SELECT * FROM stays WHERE {self.truth(0)} QUALIFY COUNT(*) OVER (PARTITION BY who) > 1) AS t",
            "(SELECT who, town, FIRST_VALUE(note) OVER (PARTITION BY who ORDER BY x) AS note, LEAST(COUNT(*) OVER "
            f"(PARTITION BY who ORDER BY {self._order()}), 50) AS n, MAX(small) OVER (PARTITION BY who) AS small, "
            "LEAST(GREATEST(SUM(x) OVER (PARTITION BY who ORDER BY small), -9), 9) AS x, half, MIN(price) OVER "
            "(PARTITION BY who ORDER BY n DESC) AS price, day, at, ok FROM stays) AS t",
        ]
        return self.chance.choice(plain if self.rows else plain + owned * 2)

    def _order(self) -> str:
        return self.chance.choice(["day", "x DESC, town", "note", "ok", "ABS(half), n"])

    def _sided(self) -> str:
        return self.chance.choice(["s.n > b.n", "s.ok", "b.x < 3 OR s.x IS NULL", "s.town = b.town", "s.day < b.day"])

    def value(self) -> str:
        return self.chance.choice(
            ["town", "note", "n", "x", "price", "day", "ok", "half", self.number(1), self.text(1)]
        )

    def text(self, depth: int) -> str:
        if depth == 0:
            return self.chance.choice(["town", "note", "'Ulm'", "''"])
        one, other = self.text(depth - 1), self.text(depth - 1)
        return self.chance.choice(
            [
                one,
                f"UPPER({one})",
                f"LOWER({one})",
                f"TRIM({one})",
                f"SUBSTRING({one}, 2, 3)",
                f"CONCAT({one}, {other}, 'z')",
                f"({one} || {other})",
                f"REPLACE({one}, 'U', 'UU')",
                f"CAST({self.number(0)} AS VARCHAR)",
                f"COALESCE({one}, {other})",
            ]
        )

    def number(self, depth: int) -> str:
        if depth == 0 or self.chance.random() < 0.2:
            return self.chance.choice(["n", "small", "x", "half", "price", "3", "0", "-0.5"])
        one, other = self.number(depth - 1), self.number(depth - 1)
        return self.chance.choice(
            [
                f"({one} + {other})",
                f"({one} - {other})",
                f"({one} * {other})",
                f"({one} / {other})",
                f"LEAST(GREATEST({one}, -3), 20)",
                f"ABS({one})",
                f"SIGN({one})",
                f"CEIL({one})",
                f"ROUND({one})",
                f"TRUNC({one})",
                f"POWER({one}, 2)",
                f"LEAST(GREATEST(EXP({one}), 0), 10)",
                f"LEAST(GREATEST(LN(ABS({one})), -4), 4)",
                f"LENGTH({self.text(1)})",
                "YEAR(day)",
                "DATE_DIFF('day', DATE '2024-01-01', day)",
                f"CASE WHEN {self.truth(depth - 1)} THEN {one} ELSE {other} END",
                f"COALESCE({one}, {other})",
                f"NULLIF({one}, {other})",
                f"LEAST(GREATEST(TRY_CAST({self.text(1)} AS DOUBLE), -1), 1)",
                f"LEAST(GREATEST(CAST({one} AS INTEGER), -7), 7)",
            ]
        )

    def truth(self, depth: int) -> str:
        if depth and self.chance.random() < 0.45:
            word = self.chance.choice(["AND", "OR"])
            return f"({self.truth(depth - 1)} {word} {self.chance.choice(['', 'NOT '])}{self.truth(depth - 1)})"
        return self.chance.choice(
            [
                "ok",
                "ok IS NOT TRUE",
                f"{self.number(1)} {self.chance.choice(['<', '>=', '=', '<>'])} {self.number(0)}",
                f"{self.text(1)} = 'Ulm'",
                f"{self.text(1)} < 'ulm'",
                "note LIKE '%m%'",
                "note ILIKE 'é%'",
                "town IN ('Ulm', 'Žd', 'nowhere')",
                "x IS DISTINCT FROM half",
                "x BETWEEN -1 AND 7",
                "day > DATE '2024-01-15'",
                "at < TIMESTAMP '2024-02-01 00:00:00'",
                "CAST(at AS DATE) = DATE '2024-01-03'",
                "STARTS_WITH(note, 'U')",
                "n % 2 = 1",
            ]
        )
