"""CORR and COVAR in SQL: pairs in which both have a value, shared prices, intervals that cover."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import discreet as dp

GROUPS, ROWS = 200, 150


def table() -> pd.DataFrame:
    """Groups of tied pairs, a tenth of either column missing, each person with two rows of one group."""
    chance = np.random.default_rng(5)
    size = GROUPS * ROWS
    x = chance.uniform(0, 10, size)
    y = np.clip(x * chance.choice([-1, 1], GROUPS).repeat(ROWS) + chance.normal(5, 3, size), 0, 10)
    x[chance.random(size) < 0.1] = np.nan
    y[chance.random(size) < 0.1] = np.nan
    return pd.DataFrame({"u": np.arange(size) // 2, "g": np.arange(size) // ROWS, "x": x.round(2), "y": y.round(2)})


TABLE = table()
ASKED = "CORR(x, y) AS r, COVAR_POP(y, x) AS c, COVAR_SAMP(x, y) AS s"


def session(unit: Any) -> dp.Session:
    declared = {"g": dp.categories(list(range(GROUPS))), "x": dp.between(0, 10), "y": dp.between(0, 10)}
    return dp.Session(
        TABLE,
        unit=unit,
        budget=dp.Budget(rho=50),
        columns=declared,
        ledger="memory",
        dataset="t",
        principal="a",
    )


def exact() -> dict[str, list[float]]:
    pairs = [part[["x", "y"]].dropna() for _, part in TABLE.groupby("g")]
    return {
        "r": [part.x.corr(part.y) for part in pairs],
        "c": [np.cov(part.x, part.y, bias=True)[0, 1] for part in pairs],
        "s": [np.cov(part.x, part.y)[0, 1] for part in pairs],
    }


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("unit", ["row", dp.Unit("u", max_rows_per_group=2)])
def test_intervals_of_pairs_cover_and_are_no_wider_than_they_must(unit: Any) -> None:
    with session(unit) as held:
        answer = held.sql(f"SELECT g, {ASKED} FROM t GROUP BY g", rho=20).release()
    least, slack = int(binom.ppf(1e-10, GROUPS, 0.95)), Fraction(1, 10**6)
    for name, truths in exact().items():
        cells = list(answer[name])
        inside = [
            cell.low - slack <= Fraction(truth) <= cell.high + slack for cell, truth in zip(cells, truths, strict=True)
        ]
        assert sum(inside) >= least
        # The wrong neighbour: a tenth of the noise. It covers too seldom, so the test would see it.
        near = [
            abs(cell.value - Fraction(truth)) < (cell.high - cell.low) / 40
            for cell, truth in zip(cells, truths, strict=True)
        ]
        assert sum(near) < least


def test_pairs_share_what_they_have_in_common() -> None:
    with session("row") as held:
        alone = held.sql("SELECT CORR(x, y) AS r FROM t", rho=1).explain()
        both = held.sql("SELECT CORR(x, y) AS r, COVAR_POP(y, x) AS c, COVAR_SAMP(x, y) AS s FROM t", rho=1)
        assert dict(alone.errors)["r"] == dict(both.explain().errors)["r"]


def test_no_error_of_a_correlation_can_be_asked_for() -> None:
    with session("row") as held:
        with pytest.raises(dp.Refused, match="say epsilon"):
            held.sql("SELECT CORR(x, y) AS r FROM t", error="0.1")
        with pytest.raises(dp.Refused, match="one number"):
            held.sql("SELECT CORR(x, y, contribution_bounds_per_row => (0, 5)) AS r FROM t", rho=1)


def released(frame: pd.DataFrame, columns: dict[str, Any], asked: str) -> dp.Answer:
    with dp.Session(
        frame,
        unit="row",
        budget=dp.Budget(epsilon=1000),
        columns=columns,
        ledger="memory",
        dataset="t",
        principal="a",
    ) as held:
        return held.sql(asked, epsilon=100).release()


@pytest.mark.parametrize("other", [dp.between(0, 10, step=1), dp.between(0, 10), dp.between(0, 10, step="1/3")])
@pytest.mark.parametrize("turned", [False, True])
def test_sums_and_products_are_of_the_same_values_whatever_steps_are_declared(other: Any, turned: bool) -> None:
    # Were one of them of values that are rounded to the step, the covariance of constants would be 3 here, not 0.
    frame = pd.DataFrame({"x": np.full(20_000, 9.4), "y": np.full(20_000, 9.4)})
    columns = dict(zip("yx" if turned else "xy", (dp.between(0, 10, step=1), other), strict=True))
    answer = released(frame, columns, "SELECT COVAR_POP(x, y) AS c, COVAR_SAMP(y, x) AS s FROM t")
    assert abs(next(iter(answer["c"])).value) < 0.1  # more than a hundred times its noise
    assert abs(next(iter(answer["s"])).value) < 0.1


def test_whole_numbers_with_a_step_are_multiplied_as_they_are_added() -> None:
    frame = pd.DataFrame({"x": np.full(20_000, 97), "y": np.full(20_000, 97)})
    declared = dp.between(0, 100, step=10, whole=True)
    answer = released(frame, {"x": declared, "y": declared}, "SELECT COVAR_POP(x, y) AS c FROM t")
    assert abs(next(iter(answer["c"])).value) < 20  # it would be about 140, and its noise is below 0.1


def test_a_correlation_lies_in_its_interval_where_a_spread_is_lost_in_noise() -> None:
    # The covariance is surely above zero, and the variance of y is as large as its noise: often it is not above zero.
    groups, rows = 300, 40
    upper = np.arange(groups * rows) % 2
    frame = pd.DataFrame({"g": np.arange(groups * rows) // rows, "x": 10.0 * upper, "y": 4.86 + 0.28 * upper})
    columns = {"g": dp.categories(list(range(groups))), "x": dp.between(0, 10), "y": dp.between(0, 10)}
    cells = list(released(frame, columns, "SELECT g, CORR(x, y) AS r FROM t GROUP BY g")["r"])
    told = [cell for cell in cells if cell.value is not None]
    assert all(cell.low <= cell.value <= cell.high for cell in told)
    assert sum(cell.value == 0 for cell in told) > 0  # about one in six: that none is happens less than once in 1e15
