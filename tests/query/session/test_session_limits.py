"""Contribution limits from private histograms: one bin a unit, charged like any question, and totals from the bins."""

from __future__ import annotations

from fractions import Fraction
from math import exp, prod, sqrt
from typing import Any

import pyarrow as pa
import pytest

import discreet as dp
from discreet.query.session.private_bounds_and_keys import _SURE, UnitHistogram, _ends

SIZES = [1] * 500 + [2] * 300 + [3] * 150 + [7] * 45 + [30] * 5


def opened(epsilon: int = 100) -> dp.Session:
    rows = [{"h": unit, "city": "abc"[row % 3]} for unit, size in enumerate(SIZES) for row in range(size)]
    return dp.Session(
        pa.Table.from_pylist(rows),
        unit=dp.Unit("h"),
        budget=dp.Budget(epsilon=epsilon),
        columns={"city": dp.categories(["a", "b", "c"])},
        ledger="memory",
        dataset="t",
        principal="ana",
    )


def test_limits_are_those_that_most_units_keep() -> None:
    with opened() as session:
        found = session.limits(most=64, epsilon=50)
        assert found.rows.ends == (1, 2, 4, 8, 16, 32, 64)
        assert found.max_rows_per_group == 8  # 5 of 1,000 have more, and 50 more than 4
        assert found.max_groups == 1
        assert session.limits(most=64, epsilon=25, coverage="0.9").max_rows_per_group == 4
        assert session.spent.epsilon == 75


def test_groups_and_rows_in_each_are_found_for_half_of_the_price_each() -> None:
    with opened() as session:
        found = session.limits(most=16, epsilon=80, groups=["city"])
        assert (found.max_rows_per_group, found.max_groups) == (4, 4)  # up to 3 groups, and 10 rows in each of few
        assert found.groups is not None
        for bins in (found.rows, found.groups):  # Those of the fullest group do not add up to all rows.
            with pytest.raises(dp.Refused, match="do not tell how many rows"):
                _ = bins.total
        assert session.spent.epsilon == 80
        charges = [entry for entry in session.history() if entry.kind == "charge"]
        assert len(charges) == 2


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"epsilon": Fraction(1, 10)}])
def test_the_total_of_the_bins_holds_the_number_of_all_rows(price: dict[str, Any]) -> None:
    with opened() as session:
        total = session.limits(most=32, **price).rows.total
    assert total.low is not None
    assert total.high is not None
    assert total.low - 2000 < sum(SIZES) < total.high + 2000  # far beyond the noise of both prices
    assert total.low < total.value < total.high


def test_without_noise_ends_are_the_least_and_most_that_bins_hold() -> None:
    ends = _ends(32)
    units = [sum(low < size <= high for size in SIZES) for low, high in zip((0, *ends), ends, strict=False)]
    exact = UnitHistogram(ends, (*map(Fraction, units), Fraction(0)), Fraction(0))
    assert exact.total.low == 500 + 2 * 300 + 3 * 150 + 5 * 45 + 17 * 5
    assert exact.total.high == 500 + 2 * 300 + 4 * 150 + 8 * 45 + 32 * 5
    assert exact.total.low <= sum(SIZES) <= exact.total.high


def test_noise_alone_proposes_no_large_limit() -> None:
    """Where nothing but noise is above a limit, that limit is enough, whatever the noise came out as."""
    noisy = UnitHistogram(
        (1, 2, 4, 8), (Fraction(100), Fraction(9), Fraction(-8), Fraction(7), Fraction(5)), Fraction(10)
    )
    assert noisy.limit(Fraction(98, 100)) == 1
    sure = UnitHistogram(
        (1, 2, 4, 8), (Fraction(100), Fraction(0), Fraction(0), Fraction(90), Fraction(0)), Fraction(10)
    )
    assert sure.limit(Fraction(98, 100)) == 8


def test_what_cannot_be_paid_is_not_half_bought() -> None:
    with opened(epsilon=1) as session:
        with pytest.raises(dp.BudgetExceeded):
            session.limits(most=8, epsilon="1.5", groups=["city"])
        assert session.spent.epsilon == 0


@pytest.mark.parametrize(("words", "reason"), [({"most": 1}, "from 2"), ({"most": 8, "coverage": 1}, "coverage")])
def test_nonsense_is_refused(words: dict[str, Any], reason: str) -> None:
    with opened() as session, pytest.raises(dp.InvalidParameter, match=reason):
        session.limits(epsilon=1, **words)


def beyond(weights: list[float], deviations: float) -> float:
    """The chance that a weighted sum of Laplace noises, no two weights equal, is farther off than so many deviations.

    Partial fractions of its characteristic function: a sum of Laplace laws with other coefficients.
    """
    far = deviations * sqrt(2 * sum(weight**2 for weight in weights))
    return sum(
        prod(own**2 / (own**2 - other**2) for other in weights if other != own) * exp(-far / own) for own in weights
    )


def test_the_total_of_bins_is_as_sure_as_it_says_for_all_weights() -> None:
    """Bins that double have weights that double; one noise by itself is the worst."""
    doubling = [[2.0**place for place in range(count)] for count in range(1, 12)]
    others = [[1.0, a / 20, b / 20] for a in range(1, 20) for b in range(1, a)] + [[1.0, a / 20] for a in range(1, 20)]
    assert max(beyond(weights, float(_SURE)) for weights in doubling + others) <= 0.05
    assert beyond([1.0], 2.0) > 0.05  # Two deviations would not do.


def test_limits_print_as_people_read_them() -> None:
    """The wrong neighbour: a bin that is called by the end of the one before."""
    with opened() as session:
        rows = session.limits(most=8, epsilon=50)
        both = session.limits(most=4, epsilon=50, groups=["city"])
    lines = repr(rows).splitlines()
    assert lines[:2] == ["max_rows_per_group = 8", "max_groups = 1"]
    assert [line.strip().split("  ")[0] for line in lines[4:9]] == ["1", "2", "3 to 4", "5 to 8", "more than 8"]
    assert rows.rows.called == ("1", "2", "3 to 4", "5 to 8", "more than 8")
    for place, exact in enumerate((500, 300, 150, 45, 5)):
        shown = rows.releases[0]["units"][place]
        assert lines[4 + place].endswith(str(shown))
        assert abs(shown.value - exact) <= 3  # at ε = 50 a noise of 3 has a chance of e^-150
    assert lines[-1] == "± at 95 %, ε = 50, add-remove"
    assert "rows in the fullest group" in repr(both)
    assert "ε = 25 and ε = 25" in repr(both)
    for found in (rows, both):
        page = found._repr_html_()
        assert page.count("<table") == 1 + len(found.releases)
        assert "ProposedLimits(" not in page + repr(found)
