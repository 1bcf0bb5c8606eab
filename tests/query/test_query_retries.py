"""A charge draws noise once: a question that fails after the draw cannot be asked again for fresh noise.

What is computed from released values may fail for some of them only. If the same key then bought another draw, every
try would tell whether fresh noise fell on one side or the other, as often as one likes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.errors import AnswerFailed
from discreet.query.ast import Operator
from discreet.query.functions.intervals import Interval
from discreet.query.plan.output_columns import apply, ends_of
from discreet.query.plan.planner import PricedQuery

TABLE = pa.table({"u": list(range(60)), "x": [1] * 60})


def _session(**more: Any) -> dp.Session:
    return dp.Session(
        {"t": TABLE},
        unit=dp.Unit("u"),
        budget=dp.Budget(epsilon=10),
        ledger="memory",
        dataset="d",
        principal="p",
        columns={"x": dp.between(0, 10)},
        **more,
    )


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Count draws, all of which fail once the noise is there."""
    made: list[object] = []

    def failing(self: PricedQuery, tallied: object) -> object:
        made.append(draw(self, tallied))
        raise ValueError("no table for this noise")

    draw: Callable[..., object] = PricedQuery.draw
    monkeypatch.setattr(PricedQuery, "draw", failing)
    return made


@pytest.mark.parametrize("version", [None, "1"])
def test_a_draw_that_failed_is_not_drawn_again_under_its_key(draws: list[object], version: str | None) -> None:
    with _session(version=version) as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1, idempotency_key="k")
        for _ in range(3):
            with pytest.raises(AnswerFailed):
                plan.release()
        assert len(draws) == 1


def test_without_a_key_the_same_question_of_the_same_version_is_not_drawn_again(draws: list[object]) -> None:
    with _session(version="1") as session:
        for _ in range(3):
            with pytest.raises(AnswerFailed):
                session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).release()
        assert len(draws) == session.spent.charges == 1


def test_without_a_key_and_a_version_every_draw_is_paid(draws: list[object]) -> None:
    with _session() as session:
        for paid in (1, 2, 3):
            with pytest.raises(AnswerFailed):
                session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1).release()
            assert len(draws) == len([entry for entry in session.history() if entry.kind == "charge"]) == paid


@pytest.mark.parametrize(
    "computed",
    [
        "POWER(POWER(POWER(POWER(POWER(POWER(n, 8), 8), 8), 8), 8), 8)",
        "SQRT(POWER(POWER(POWER(n, 8), 8), 8) * POWER(POWER(POWER(n, 8), 8), 8))",
        "1 / POWER(POWER(POWER(POWER(n, 8), 8), 8), 8)",
        "EXP(POWER(n, 8))",
        "LENGTH(REPLACE(CAST(CAST(n AS INTEGER) AS VARCHAR), '', 'xxxxxxxxxxxxxxxx'))",
    ],
)
def test_no_released_number_is_too_much_to_compute_with(computed: str) -> None:
    asked = f"SELECT CASE WHEN n > 0 THEN {computed} ELSE 1 END AS z FROM (SELECT COUNT(*) AS n FROM t) AS q"
    with _session() as session:
        assert session.sql(asked, epsilon=5).release().to_json()


def test_numbers_and_texts_stay_short() -> None:
    number: Any = Fraction(1, 3)
    text: Any = "ab"
    for _ in range(40):
        number = apply(Operator.MULTIPLY, [number, number])
        text = apply(Operator.CONCAT, [text, text])
    assert number == 0 or number.denominator.bit_length() <= 2048
    assert len(text) == 10_000
    assert apply(Operator.POWER, [Fraction(10**300), 8]) is None
    assert len(apply(Operator.REPLACE, [text, "a", "z" * 90_000])) == 10_000
    wide = Interval(Fraction(1), Fraction(10**600))
    assert ends_of(Operator.MULTIPLY, [wide, wide]) is None
    assert ends_of(Operator.SQUARE_ROOT, [wide]) is None
