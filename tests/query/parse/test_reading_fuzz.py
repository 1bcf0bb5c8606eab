"""Texts that nobody wrote: mutated queries and queries grown from a grammar. Each is refused, or a closed tree."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from reading_worlds import BY_ROW, BY_UNIT
from searching import searched

from discreet.errors import InvalidParameter, Refused
from discreet.query import ast
from discreet.query.parse.select import read
from discreet.schema.columns import ExpressionFacts

HERE = Path(__file__).parent
CLOSED = {getattr(module, name) for module in (ast, ast, ast) for name in module.__all__ if name[0].isupper()}
PLAIN = (str, int, bool, Fraction, date, Enum, ExpressionFacts, type(None))
WORDS = (HERE / "words.txt").read_text(encoding="utf-8").split()


def seeds() -> list[str]:
    lists = [(HERE / name).read_text(encoding="utf-8").splitlines() for name in ("clauses.txt", "lineage.txt")]
    found = [line[2:] for lines in lists for line in lines if line[:2] in ("+ ", "- ")]
    found += 4 * [line[2:] for lines in lists for line in lines if line[:2] == "+ "]
    escapes = (HERE / "escapes.txt").read_text(encoding="utf-8").splitlines()
    return found + [line for line in escapes if not line.startswith("#")]


def mutated(random: Random, texts: list[str]) -> str:
    """Change a few words of a query, or a few of its letters, or join halves of two."""
    text = random.choice(texts)
    if random.random() < 0.2:
        other = random.choice(texts)
        return text[: random.randrange(len(text) + 1)] + " " + other[random.randrange(len(other) + 1) :]
    parts = re.findall(r"\w+|\s+|[^\w\s]", text)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place = random.randrange(len(parts) + 1)
        match random.randrange(4):
            case 0:
                parts.insert(place, random.choice(WORDS))
            case 1:
                del parts[place : place + random.randint(1, 3)]
            case 2:
                parts[place : place + 1] = [random.choice(WORDS)]
            case 3:
                parts[place:place] = parts[: random.randrange(len(parts) + 1)]
    return "".join(parts)[:5_000]


GRAMMAR: dict[str, list[str]] = {
    "query": [
        "SELECT {items} FROM {from} {where}",
        "SELECT {key} AS k, {items} FROM {from} {where} GROUP BY {grouping} {tail}",
        "WITH q AS ({rows}) SELECT {items} FROM q {where}",
        "SELECT k, n FROM (SELECT {key} AS k, {item} AS n FROM people GROUP BY 1) AS s {tail}",
    ],
    "rows": [
        "SELECT * FROM people {where}",
        "SELECT {number} AS age, income, city, born, name, member FROM people {where}",
        "SELECT uid, {aggregate}({number}) AS age, MAX(income) AS income FROM people GROUP BY uid",
        "SELECT age, income FROM people UNION ALL SELECT amount, discount FROM orders",
        "{query}",
    ],
    "items": ["{item}", "{item} AS a, {item} AS b", "*"],
    "item": [
        "COUNT(*)",
        "{aggregate}({number})",
        "{aggregate}({number}) / COUNT(*)",
        "COUNT(DISTINCT {key})",
        "{number}",
    ],
    "aggregate": ["COUNT", "SUM", "AVG", "MIN", "MAX", "MEDIAN", "VARIANCE"],
    "from": [
        "people",
        "people",
        "people JOIN countries ON country = code",
        "people JOIN (SELECT uid, amount FROM orders) AS o USING (uid)",
        "({rows}) AS s",
    ],
    "where": ["", "", "WHERE {condition}"],
    "grouping": ["1", "ALL", "k", "{key}"],
    "tail": ["", "", "HAVING COUNT(*) > 3", "ORDER BY 2 LIMIT 3"],
    "condition": [
        "{number} > {number}",
        "age IN (1, 2)",
        "{key} IS NULL",
        "{condition} AND {condition}",
        "NOT ({condition} OR {condition})",
        "name LIKE 'a%'",
        "uid IN (SELECT uid FROM orders)",
    ],
    "key": ["city", "member", "age", "name", "YEAR(born)", "DATE_TRUNC('month', born)", "FLOOR({number} / 10)"],
    "number": [
        "age",
        "income",
        "1",
        "0.5",
        "({number} + {number})",
        "({number} - {number})",
        "{number} * {number}",
        "({number} / 7)",
        "CASE WHEN {condition} THEN {number} ELSE {number} END",
        "COALESCE({number}, {number})",
        "LEAST(GREATEST({number}, 0), 9)",
        "CAST({number} AS INTEGER)",
        "ROUND({number}, 1)",
        "ABS({number})",
        "{key}",
    ],
}


def grown(random: Random, symbol: str, depth: int) -> str:
    rules = GRAMMAR[symbol]
    rule = random.choice(rules if depth > 0 else sorted(rules, key=lambda text: text.count("{"))[:2])
    return re.sub(r"\{(\w+)\}", lambda match: grown(random, match[1], depth - 1), rule)


def texts(seed: int, count: int) -> Iterator[str]:
    random = Random(seed)
    known = seeds()
    for _ in range(count):
        yield mutated(random, known) if random.random() < 0.6 else grown(random, "query", 4)[:20_000]


def check_closed(node: Any) -> None:
    """Everything in an accepted tree is one of ours."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, tuple):
            waiting += current
        elif is_dataclass(current) and type(current) in CLOSED:
            waiting += [getattr(current, entry.name) for entry in fields(current)]
        else:
            assert isinstance(current, PLAIN), type(current)


def fuzz(seed: int, count: int) -> tuple[int, float]:
    """Read texts; return how many were accepted and how long the slowest took."""
    accepted, slowest = 0, 0.0
    logging.disable(logging.CRITICAL)
    for text in texts(seed, count):
        start = time.process_time()
        try:
            check_closed(read(text, BY_ROW if len(text) % 5 == 0 else BY_UNIT).question)
            accepted += 1
        except (Refused, InvalidParameter):
            pass
        slowest = max(slowest, time.process_time() - start)
    logging.disable(logging.NOTSET)
    return accepted, slowest


@pytest.mark.parametrize("seed", range(2))
def test_no_text_breaks_the_reader(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    accepted, slowest = fuzz(seed, 600)
    with capsys.disabled():
        print(f"\n{accepted} of 600 texts are questions; the slowest took {slowest:.3f} s")
    assert 80 < accepted < 550


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 102))
def test_a_hundred_thousand_texts_do_not_break_the_reader(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    accepted, slowest = fuzz(searched(seed), 50_000)
    with capsys.disabled():
        print(f"\n{accepted} of 50000 texts are questions; the slowest took {slowest:.3f} s")
    assert accepted > 1_000
