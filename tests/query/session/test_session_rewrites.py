"""Equal questions in other words: each is charged, or gets the very same answer; noise never follows from the text."""

from __future__ import annotations

from itertools import product

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


def ask_all(folder, count: int) -> int:
    """Ask all; return how many were answered."""
    budget = dp.Budget(epsilon=10**6)
    with opened(folder, budget=budget, version="1", ledger="memory") as session:
        seen: dict[str, int] = {}
        answered = 0
        for query in rewrites(count):
            before = charges(session)
            try:
                answer = session.sql(query, epsilon="0.5").release().to_json()
            except dp.Refused:
                assert charges(session) == before
                continue
            answered += 1
            after = charges(session)
            assert after == before + 1 or answer in seen
            seen[answer] = after
        values = {float(dp.ReleaseTable.from_json(text)["n"][0].value) for text in seen}
        assert len(seen) == charges(session)
        # Fresh noise for each charge: of this many, most values differ.
        assert len(seen) < 10 or len(values) > 5
    return answered


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
