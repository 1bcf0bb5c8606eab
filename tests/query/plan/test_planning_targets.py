"""From a wanted error to the least epsilon of three digits that reaches it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from planning_worlds import EVERY, X, priced

from discreet.errors import Refused
from discreet.query.ast import Measure, Statistic
from discreet.query.plan.answers import predicted
from discreet.query.plan.planner import PricedQuery, errors_of, relative_errors_of


def worst(made: PricedQuery, rows: int | None = None) -> Fraction:
    found = [predicted(made.draft, output, rows) for output in made.question.outputs]
    return max(error for error in found if error is not None)


def a_step_less(epsilon: Fraction) -> Fraction:
    """The next smaller number of three significant digits."""
    power = Fraction(1)
    while epsilon / power >= 10:
        power *= 10
    while epsilon / power < 1:
        power /= 10
    return epsilon - power / (100 if epsilon > power else 1000)


@pytest.mark.parametrize("names", [("rows",), ("rows", "sum"), ("sum of later", "mean of later")])
@pytest.mark.parametrize("error", [Fraction(3), Fraction(10), Fraction(33, 2), Fraction(500)])
@pytest.mark.parametrize("more", [{}, {"delta": Fraction(1, 10**6)}])
def test_the_epsilon_of_an_error_is_the_least_that_reaches_it(
    names: tuple[str, ...], error: Fraction, more: dict[str, Any]
) -> None:
    measures = [EVERY[name] for name in names]
    made = priced(*measures, keys="known", limits=(2, 2), error=error, expected=100, **more)
    found = made.spend.epsilon
    assert found is not None
    assert worst(made, 100) <= error
    less = priced(*measures, keys="known", limits=(2, 2), epsilon=a_step_less(found), expected=100, **more)
    assert worst(less, 100) > error


def test_a_relative_error_needs_an_expected_size() -> None:
    for names in (["rows"], ["sum"]):
        with pytest.raises(Refused, match="expected size"):
            priced(*(EVERY[name] for name in names), error=Fraction(1, 10), relative=True)
    by_rows = priced(EVERY["rows"], error=Fraction(1, 10), relative=True, expected=1000)
    assert (
        worst(by_rows) <= 100 < worst(priced(EVERY["rows"], epsilon=a_step_less(by_rows.spend.epsilon or Fraction(0))))
    )
    by_size = priced(EVERY["sum"], error=Fraction(1, 10), relative=True, sizes={"m0": Fraction(4000)})
    assert worst(by_size) <= 400


def test_an_error_of_a_mean_needs_the_rows_of_a_group() -> None:
    with pytest.raises(Refused, match="expected="):
        priced(EVERY["mean"], error=Fraction(1))
    made = priced(EVERY["mean"], error=Fraction(1, 10), expected=5000)
    assert worst(made, 5000) <= Fraction(1, 10)


def test_an_error_that_nothing_reaches_is_refused() -> None:
    with pytest.raises(Refused, match="no epsilon up to 100"):
        priced(*EVERY.values(), keys="known", limits=(5, 5), error=Fraction(1, 10**6), expected=10)
    with pytest.raises(Refused, match="say epsilon"):
        priced(Measure(Statistic.QUANTILE, X, Fraction(1, 2)), error=Fraction(1))


def test_a_solved_plan_is_the_plan_of_its_epsilon() -> None:
    made = priced(EVERY["rows"], error=Fraction(20))
    again = priced(EVERY["rows"], epsilon=made.spend.epsilon)
    assert made.fingerprint == again.fingerprint


@pytest.mark.parametrize("names", [("rows",), ("rows", "sum"), ("sum of later", "mean of later")])
@pytest.mark.parametrize("error", [Fraction(10), Fraction(33, 2), Fraction(500)])
def test_the_rho_of_an_error_is_the_least_that_reaches_it(names: tuple[str, ...], error: Fraction) -> None:
    measures = [EVERY[name] for name in names]
    made = priced(*measures, keys="known", limits=(2, 2), error=error, expected=100, concentrated=True)
    found = made.spend.rho
    assert found is not None
    assert made.spend.epsilon is None
    assert worst(made, 100) <= error
    less = priced(*measures, keys="known", limits=(2, 2), rho=a_step_less(found), expected=100)
    assert worst(less, 100) > error


def test_no_rho_reaches_what_the_largest_does_not() -> None:
    with pytest.raises(Refused, match="no rho up to 50"):
        priced(EVERY["sum"], error=Fraction(1, 10**6), concentrated=True)


def test_relative_errors_are_told_where_a_size_is_declared() -> None:
    made = priced(EVERY["rows"], EVERY["sum"], rho=Fraction(1, 10), expected=1000)
    errors, relative = errors_of(made.draft), relative_errors_of(made.draft)
    assert set(errors) == {"m0", "m1"}
    assert relative == {"m0": errors["m0"] / 1000}
    both = priced(EVERY["rows"], EVERY["sum"], rho=Fraction(1, 10), expected=1000, sizes={"m1": Fraction(50)})
    assert relative_errors_of(both.draft) == {"m0": errors["m0"] / 1000, "m1": errors["m1"] / 50}
