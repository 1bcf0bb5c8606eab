"""Which cell is the largest is decided exactly, not by floats that are equal."""

from __future__ import annotations

from fractions import Fraction

import pytest

import discreet as dp
from discreet.privacy import GDP, ZCDP, Parallel, gdp_mu, renyi
from discreet.privacy.event_tree import Choice, Spent
from discreet.privacy.tradeoffs import _worst_cells


def test_the_larger_of_two_cells_that_are_one_float_is_billed() -> None:
    larger = Fraction(2) + Fraction(2, 10**20)
    cells = Parallel([ZCDP(1), GDP(mu_squared=larger)])
    assert Fraction(renyi(cells, 2, relation=dp.Relation.ADD_REMOVE)) >= larger


def test_the_larger_of_two_gaussian_cells_that_are_one_float_is_billed() -> None:
    from discreet.balls import bounds, precision

    larger = Fraction(1) + Fraction(1, 10**20)
    cells = tuple(Spent(frozenset({(GDP(mu_squared=size), 1)})) for size in (Fraction(1), larger))
    with precision(256):
        assert bounds(_worst_cells(Choice(cells, 1, 1)))[1] >= larger
    assert gdp_mu(Parallel([GDP(1)]), relation=dp.Relation.ADD_REMOVE) == 1


@pytest.mark.parametrize("epsilon", ["1e-400", "1e-9", "1e3"])
def test_a_quantile_of_any_epsilon_that_was_paid_for_is_answered(epsilon: str) -> None:
    found = dp.median([1, 2], bounds=(0, 10), step=1, epsilon=epsilon, relation=dp.Relation.ADD_REMOVE)
    assert 0 <= found.value <= 10
