"""A delta that lets one person's record out is refused by every statistic, before anything is paid."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.mechanisms import Grid
from discreet.mechanisms import order_statistics as ranks
from discreet.mechanisms.order_statistics import Ranked, SortedRun

REPLACE_ONE = dp.Relation.REPLACE_ONE
ROWS = [float(k % 7) for k in range(300)]
GUESS = dp.Expected.normal(3, 1)
LARGE: dict[str, Any] = {"relation": REPLACE_ONE, "epsilon": 1, "delta": "0.01"}

ASKED: dict[str, Callable[..., Any]] = {
    "mode": lambda **more: dp.mode(ROWS, **LARGE, **more),
    "median": lambda **more: dp.median(ROWS, bounds=(0, 10), step=1, method="smooth", **LARGE, **more),
    "quantile": lambda **more: dp.quantile(ROWS, "0.9", bounds=(0, 10), step=1, **LARGE, **more),
    "clamped": lambda **more: dp.mean(ROWS, bounds=(0, 10), expected=GUESS, **LARGE, **more),
    "clipped": lambda **more: dp.mean(ROWS, bounds=(0, 10), expected=GUESS, method="clipped", **LARGE, **more),
    "paid": lambda **more: dp.mean(ROWS, bounds=(0, 10), expected=GUESS, method="paid", **LARGE, **more),
}


class Counting:
    charged = 0

    def charge(
        self, event: object, *, relation: object, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        self.charged += 1


@pytest.mark.parametrize("name", ASKED)
def test_a_delta_above_one_over_the_rows_is_refused_and_costs_nothing(name: str) -> None:
    session = Counting()
    with pytest.raises(InvalidParameter, match="public_rows"):
        ASKED[name](session=session)
    assert session.charged == 0


@pytest.mark.parametrize("name", ASKED)
def test_a_large_delta_that_is_allowed_is_charged_once_and_answered(name: str) -> None:
    session = Counting()
    assert ASKED[name](session=session, allow_large_delta=True).value is not None
    assert session.charged == 1


@pytest.mark.parametrize("name", ASKED)
def test_rows_that_are_not_there_do_not_allow_a_large_delta(name: str) -> None:
    session = Counting()
    with pytest.raises(InvalidParameter, match="public_rows is not the number of rows"):
        ASKED[name](session=session, public_rows=5)
    assert session.charged == 0


def test_ranks_are_right_if_another_thread_looks_at_others_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it came just after this look was stored, or just before what is stored was used."""
    sample = Ranked(np.arange(1, 301), 0, 400)
    other = SortedRun(200, np.arange(200, 300))

    class Disturbed(list[SortedRun]):
        def __setitem__(self, key: Any, value: Any) -> None:
            super().__setitem__(key, [other])

    object.__setattr__(sample, "_sorted", Disturbed())
    monkeypatch.setattr(ranks, "sorted_run", lambda numbers, first, last: SortedRun(first, numbers[first - 1 : last]))
    assert sample.between(5, 9).tolist() == [5, 6, 7, 8, 9]
    assert sample.between(205, 207).tolist() == [205, 206, 207]


def test_a_clipped_mean_refuses_a_large_delta_unless_told_otherwise() -> None:
    fields: dict[str, Any] = {
        "grid": Grid.between(0, 10, step=1),
        "relation": REPLACE_ONE,
        "epsilon": Fraction(1),
        "delta": Fraction(1, 100),
        "public_rows": 300,
    }
    with pytest.raises(InvalidParameter, match="public_rows"):
        dp.adaptive.ClippedMean(**fields)
    assert dp.adaptive.ClippedMean(**fields, allow_large_delta=True).delta == Fraction(1, 100)
