"""Equal questions in other words: each is charged, or gets the very same answer; noise never follows from the text."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from session_data import charges, opened

import discreet as dp
from discreet.query.engine import ExactCounts
from discreet.query.plan.planner import PricedQuery

# Ways to say the same: how the count is written, what is added to the condition, how names and blanks are written.
COUNTS = ["COUNT(*)", "count(*)", "COUNT(1)", "SUM(1)", "COUNT( * )"]
TRUE = ["", " AND 1 = 1", " AND TRUE", " AND NOT FALSE", " AND age = age", " OR FALSE", " AND age IS NOT NULL"]
BOUNDS = [
    "age >= 30",
    "age > 29",
    "NOT age < 30",
    "30 <= age",
    "age - 30 >= 0",
    "age BETWEEN 30 AND 100",
    "NOT (age < 30)",
]
NAMES = ["orders", "ORDERS", "orders AS o", '"orders"', "(SELECT * FROM orders) AS o"]
LAYOUT = ["SELECT {} AS n FROM {} WHERE ({}){}", "select {} as n\nfrom {}\nwhere ({}){}"]


@pytest.fixture(autouse=True)
def almost_free(monkeypatch):
    """Let questions cost next to nothing, so that two draws never agree."""
    monkeypatch.setattr("discreet.query.session.executor.LEAST_EPSILON", Fraction(1, 10**20))


def rewrites(count: int) -> list[str]:
    written = [
        layout.format(counted, name, bound, true)
        for layout, counted, name, bound, true in product(LAYOUT, COUNTS, NAMES, BOUNDS, TRUE)
    ]
    return written[:: max(1, len(written) // count)][:count]


def ask_all(folder: Path, count: int) -> int:
    """Ask all; return how many were answered."""
    with opened(folder, budget=dp.Budget(epsilon=1), version="1", ledger="memory") as session:
        answers: list[str] = []
        for query in rewrites(count):
            before = charges(session)
            try:
                # So little is spent that two draws never agree: what is the same is the same answer.
                answer = session.sql(query, epsilon="1e-14").release().to_json()
            except dp.Refused:
                assert charges(session) == before
                continue
            assert (charges(session) == before + 1) == (answer not in answers)
            answers.append(answer)
        assert len(set(answers)) == charges(session) > 5
    return len(answers)


def test_every_rewrite_is_charged_or_bit_identical(tmp_path):
    assert ask_all(tmp_path, 60) >= 40


@pytest.mark.slow
def test_a_thousand_rewrites_are_charged_or_bit_identical(tmp_path):
    assert ask_all(tmp_path, 1000) >= 700


def test_a_thousand_rewrites_are_a_thousand_texts():
    assert len(set(rewrites(1000))) == 1000


def distinct_answers(folder: Path) -> int:
    """Ask the same words of the same data under eight names, and count how many answers differ."""
    answers = set()
    for dataset in "abcdefgh":
        with opened(folder, dataset=dataset, version="1", ledger="memory") as session:
            query = "SELECT COUNT(*) AS n, SUM(age) AS total FROM orders"
            answers.add(session.sql(query, epsilon="1e-11").release().to_json())
    return len(answers)


def test_noise_does_not_follow_from_text_or_data(tmp_path):
    assert distinct_answers(tmp_path) == 8


def test_noise_that_follows_from_the_text_is_caught(tmp_path, monkeypatch):
    drawn: dict[str, dp.ReleaseTable] = {}
    draw = PricedQuery.draw

    def remembered(self: PricedQuery, tallied: ExactCounts) -> dp.ReleaseTable:
        return drawn.setdefault(self.fingerprint, draw(self, tallied))

    monkeypatch.setattr(PricedQuery, "draw", remembered)
    assert distinct_answers(tmp_path) == 1
