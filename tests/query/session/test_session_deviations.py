"""The noise that a plan announces is the noise that a release has."""

from __future__ import annotations

import math

import numpy as np
import pytest
from session_data import opened

import discreet as dp

MEASURES = (
    "COUNT(*) AS n, COUNT(DISTINCT customer) AS people, SUM(price) AS price, AVG(age) AS age, 2 * COUNT(*) AS two"
)


def test_plain_counts_and_sums_have_a_deviation_and_nothing_else(tmp_path):
    with opened(tmp_path) as session:
        plan = session.sql(f"SELECT city, {MEASURES} FROM orders GROUP BY city", rho=1)
        assert set(plan.deviations) == set(plan.variances) == {"n", "people", "price"}


def test_a_deviation_is_the_root_of_its_variance_rounded_up(tmp_path):
    with opened(tmp_path) as session:
        for offer in ({"rho": 1}, {"epsilon": 1}, {"rho": 50}, {"epsilon": 100}, {"rho": "1e-9"}):
            plan = session.sql(f"SELECT city, {MEASURES} FROM orders GROUP BY city", **offer)
            for name, variance in plan.variances.items():
                assert variance <= plan.deviations[name] ** 2 <= variance * (1 + 1e-14)


def test_the_variance_of_gaussian_noise_is_exact(tmp_path):
    with opened(tmp_path) as session:
        plan = session.sql("SELECT COUNT(*) AS n FROM orders", rho="0.01")
        # A customer has two rows at most: 2^2 / (2 rho), and a twelfth for rounding to whole numbers.
        assert plan.variances["n"] == 200 + dp.exact.Fraction(1, 12)


@pytest.mark.statistical
@pytest.mark.parametrize("offer", [{"rho": "0.5"}, {"epsilon": 1}, {"rho": 20}], ids=str)
def test_released_noise_has_the_announced_deviation(offer, tmp_path):
    """The deviation of 6,000 draws errs by 1.5 %, so 12 % are eight of its errors; the wrong neighbour is 30 % off."""
    query = "SELECT age, COUNT(*) AS n, SUM(price) AS price FROM orders GROUP BY age"
    empty = {"price": dp.between(0, 50, step="0.5"), "age": dp.between(1000, 6999)}
    with opened(tmp_path, ledger="memory", columns=empty) as session:
        plan = session.sql(query, **offer)
        table = plan.release()
        for name in ("n", "price"):
            drawn = np.array([float(cell) for cell in table.column(name).values], float)
            drawn = drawn[1:]  # All ages are clamped to the first, which is no noise.
            assert math.sqrt(np.mean(drawn**2)) == pytest.approx(float(plan.deviations[name]), rel=0.12)
            assert math.sqrt(np.mean(drawn**2)) != pytest.approx(1.3 * float(plan.deviations[name]), rel=0.12)
