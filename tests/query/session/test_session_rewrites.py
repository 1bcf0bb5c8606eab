"""Equal questions in other words: each is charged, or gets the very same answer; noise never follows from the text."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from session_data import charges, opened

import discreet as dp

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


def test_the_same_words_in_two_sessions_have_other_noise(tmp_path):
    """Noise that is derived from the text, or from text and data, would be the same."""
    answers = set()
    for dataset in "abcdefgh":
        with opened(tmp_path, dataset=dataset, version="1", ledger="memory") as session:
            query = "SELECT COUNT(*) AS n, SUM(age) AS total FROM orders"
            answers.add(session.sql(query, epsilon="0.1").release()["total"][0].value)
    assert len(answers) > 4
