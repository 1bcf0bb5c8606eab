"""Attacks on one question, on made-up rows: exact answers give people away, private ones stay within a proof."""

from __future__ import annotations

import time
from contextlib import contextmanager

import pyarrow as pa
import pytest

import discreet as dp
from discreet.server import question_attacks
from discreet.server.question_attacks import made_up_attacks

pytestmark = pytest.mark.long
SURE = 1e-9


UNITS = {
    "row": "row",
    "who": dp.Unit("who", max_groups=2),
    "replace": dp.Unit("who", relation=dp.Relation.REPLACE_ONE, units=90),
}


@contextmanager
def opened(unit):
    rows = pa.table({"who": list(range(90)), "city": ["A", "B", "C"] * 30, "age": [30, 50, 70] * 30})
    with dp.Session(
        rows,
        unit=UNITS[unit],
        budget=dp.Budget(epsilon=100, delta=1e-6),
        columns={"city": dp.categories(["A", "B", "C"]), "age": dp.between(0, 120, whole=True)},
        ledger="memory",
        dataset="people",
        principal="ana",
    ) as found:
        yield found


@pytest.fixture(params=UNITS)
def session(request):
    with opened(request.param) as found:
        yield found


@pytest.fixture
def people():
    with opened("who") as found:
        yield found


GROUPED = "SELECT city, COUNT(*) AS n, SUM(age) AS years FROM people GROUP BY city"


def tried(plan):
    found = made_up_attacks(plan)
    return {one.name: one for one in found.attacks}


def test_exact_answers_give_people_away_and_private_ones_stay_below_the_ceiling(session):
    attacks = tried(session.sql(GROUPED, epsilon=0.2))
    for one in attacks.values():
        assert one.exact.share > 0.85
        assert one.private.interval(SURE)[0] <= one.ceiling < 0.6
        assert one.by_guessing <= one.ceiling
    assert not list(session.history())[1:]  # Nothing was charged.


def test_answers_without_their_noise_would_be_found_out(session, monkeypatch):
    """The planted mistake: noise that is left out. The same attack is right far above what the price allows."""
    plan = session.sql(GROUPED, epsilon=0.2)
    noiseless = question_attacks._noiseless(plan.priced)
    monkeypatch.setattr(type(plan), "priced", property(lambda self: noiseless))
    honest = question_attacks._membership_ceiling(dp.privacy.PureDP(0.2), dp.Relation.ADD_REMOVE)
    found = tried(plan)["membership"]
    assert found.private.interval(SURE)[0] > honest


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM people WHERE age < 60",
        "SELECT AVG(age) AS mean FROM people WHERE city = 'A'",
        "SELECT city, MEDIAN(age) AS middle FROM people GROUP BY city",
        "SELECT city, COUNT(*) AS n FROM people WHERE age > 119 GROUP BY city",
    ],
)
def test_every_kind_of_question_is_told_in_words_within_seconds(people, sql):
    begun = time.monotonic()
    found = made_up_attacks(people.sql(sql, epsilon=1))
    assert time.monotonic() - begun < 30  # About 1.5 where nothing else runs.
    assert [one.name for one in found.attacks] == ["membership", "differencing"]
    assert "No real row was read" in found.sentences[0]
    assert all("no attacker exceeds" in text for text in found.sentences[1:3])
    assert 0 <= found.counted <= found.made_up


def test_a_question_of_many_cells_is_not_tried(people):
    assert (
        made_up_attacks(
            people.sql("SELECT age, COUNT(*) AS n, AVG(age) AS a, SUM(age) AS s FROM people GROUP BY age", epsilon=1)
        )
        is None
    )
