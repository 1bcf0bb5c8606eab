"""Queries that make as much work of one row as they can, each by a size; the sizes are just below the bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import discreet as dp

ALICE = "p.name = 'Alice'"
COPIES = [10, 100, 1000]


def tables(*, alice: bool, people: int = 30) -> dict[str, Any]:
    """People with a text of ten thousand characters, with Alice among them or not, and public lists to multiply by."""
    names = [f"n{number}" for number in range(people)] + (["Alice"] if alice else [])
    private = pa.table(
        {
            "who": list(range(len(names))),
            "name": names,
            "b": ["ab" * 5000] * len(names),
            "one": [1] * len(names),
        }
    )
    lists = {
        f"list{size}": dp.public(pa.table({"one": [1] * size, "x": [str(n) for n in range(size)]})) for size in COPIES
    }
    return {"p": private, "q": private, **lists}


def only_alice(value: str, then: str = "1") -> str:
    return f"SELECT COUNT(CASE WHEN {ALICE} THEN CASE WHEN {value} THEN {then} END END) AS n FROM p"


def concat(size: int) -> str:
    return only_alice(f"LENGTH(CONCAT({', '.join(['b'] * size)})) > 5")


def bars(size: int) -> str:
    return only_alice(f"LENGTH({' || '.join(['b'] * size)}) > 5")


def replaces(size: int) -> str:
    text = "b"
    for place in range(size):
        text = f"REPLACE({text}, '{'ab'[place % 2]}', '{'ab'[(place + 1) % 2] * 100}')"
    return only_alice(f"LENGTH({text}) > 5")


def cases(size: int) -> str:
    chain = " ".join(f"WHEN UPPER(b) = '{place}' THEN LOWER(b)" for place in range(size))
    return only_alice(f"LENGTH(CASE {chain} ELSE b END) > 5")


def likes(size: int) -> str:
    pattern = "%" + "_" * 900 + "x"
    return only_alice(" AND ".join(f"NOT b LIKE '{pattern}{place}'" for place in range(size)))


def copied(size: int) -> str:
    """Copies of a row through public lists, and a text for each of them."""
    text = f"CONCAT(LEFT(p.b, {max(1, size)}), l.x)"
    joins = "JOIN list1000 l ON p.one = l.one JOIN list100 m ON p.one = m.one"
    return f"SELECT COUNT(CASE WHEN {ALICE} AND LENGTH({text}) > 5 THEN 1 END) AS n FROM p {joins}"


def distinct(size: int) -> str:
    text = f"CONCAT(l.x, LEFT(p.b, {max(1, size)}))"
    joins = "JOIN list1000 l ON p.one = l.one"
    return f"SELECT COUNT(DISTINCT CASE WHEN {ALICE} THEN {text} END) AS n FROM p {joins}"


def unlisted(size: int) -> str:
    text = f"CONCAT(l.x, LEFT(p.b, {max(1, size)}))"
    key = f"CASE WHEN {ALICE} THEN {text} END"
    return f"SELECT {key} AS k, COUNT(*) AS n FROM p JOIN list1000 l ON p.one = l.one GROUP BY {key}"


def projected(size: int) -> str:
    """Texts that are made in one sub-query after the other."""
    source = "SELECT who, name, b AS t0 FROM p"
    for place in range(size):
        source = f"SELECT who, name, CONCAT(t{place}, t{place}) AS t{place + 1} FROM ({source}) AS s{place}"
    return f"SELECT COUNT(CASE WHEN name = 'Alice' AND LENGTH(t{size}) > 5 THEN 1 END) AS n FROM ({source}) AS s"


def per_unit(size: int) -> str:
    texts = ", ".join(f"COUNT(DISTINCT CASE WHEN {ALICE} THEN CONCAT(b, '{n}') END) AS d{n}" for n in range(size))
    return f"SELECT COUNT(*) AS n FROM (SELECT who, {texts} FROM p GROUP BY who) AS s WHERE d0 > 0"


def self_joined(size: int) -> str:
    joins = " ".join(f"JOIN q q{place} ON p.who = q{place}.who" for place in range(size))
    return f"SELECT COUNT(*) AS n FROM p {joins} WHERE {ALICE}"


# The largest sizes that are admitted, or nearly so; others have a limit of their own, on depth or on joins.
LARGEST: dict[Callable[[int], str], int] = {
    concat: 550,
    replaces: 28,
    cases: 700,
    likes: 3,
    copied: 8,
    distinct: 2200,
    unlisted: 2200,
}
BOMBS = LARGEST | {bars: 30, per_unit: 150, self_joined: 2, projected: 30}
