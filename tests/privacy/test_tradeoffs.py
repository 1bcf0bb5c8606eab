"""What an attacker can do."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from privacy_brute_force import Law, discrete_laplace, product, response

from discreet.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Grouped,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Relation,
    Repeated,
    SampledWithoutReplacement,
    best_tpr,
    delta,
    epsilon,
    gdp_mu,
    tradeoff,
)

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
RATES = ("0", "0.001", "0.05", "0.3", "0.5", "0.8", "0.99", "1")


def best_test(p: Law, q: Law, fpr: float) -> float:
    """The false negative rate of the Neyman-Pearson test of q against p, written out."""
    ranked = np.argsort(-np.log(np.maximum(q, 1e-320)) + np.log(np.maximum(p, 1e-320)))
    level = np.concatenate([[0], np.cumsum(p[ranked])])
    power = np.concatenate([[0], np.cumsum(q[ranked])])
    return float(1 - np.interp(fpr, level, power))


PAIRS: list[tuple[Event, Law, Law]] = [
    (PureDP("0.8"), response(0.8, 2, 0), response(0.8, 2, 1)),
    (RandomizedResponse("1.2", 6), response(1.2, 6, 0), response(1.2, 6, 1)),
    (DiscreteLaplace(2, 5), discrete_laplace(2.0, 0), discrete_laplace(2.0, 5)),
    (
        ApproxDP(1, "0.03"),
        np.concatenate([[0.03, 0], 0.97 * response(1.0, 2, 0)]),
        np.concatenate([[0, 0.03], 0.97 * response(1.0, 2, 1)]),
    ),
    (
        Composed([DiscreteLaplace(3, 2), RandomizedResponse("0.5", 3)]),
        product(discrete_laplace(3.0, 0, 90), response(0.5, 3, 0)),
        product(discrete_laplace(3.0, 2, 90), response(0.5, 3, 1)),
    ),
]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("event", "p", "q"), PAIRS, ids=[repr(event) for event, _, _ in PAIRS])
def test_no_test_beats_the_bound_and_the_best_one_nearly_meets_it(event: Event, p: Law, q: Law, rate: str) -> None:
    found, true = tradeoff(event, rate), best_test(p, q, float(rate))
    assert found <= true + 1e-12
    assert found >= true - 2e-3
    assert best_tpr(event, rate) >= 1 - true - 1e-12
    assert best_tpr(event, rate) == pytest.approx(1 - found, abs=1e-15)


def test_gaussian_curve_is_exact_and_joins_the_corners() -> None:
    assert tradeoff(Gaussian(1), 0) == 1
    assert tradeoff(Gaussian(1), 1) == 0
    assert tradeoff(Repeated(Gaussian(2), 4), "0.05") == tradeoff(GDP(1), "0.05") == pytest.approx(0.740488977)


@pytest.mark.parametrize("rate", RATES)
def test_approximate_curve_is_the_published_formula(rate: str) -> None:
    x, e, d = float(rate), 1.0, 1e-5
    formula = max(0.0, 1 - d - math.exp(e) * x, math.exp(-e) * (1 - d - x))
    assert tradeoff(ApproxDP(1, "1e-5"), rate) == pytest.approx(formula, abs=1e-12)


@pytest.mark.parametrize(
    ("event", "relation"),
    [
        (ZCDP("0.2"), None),
        (Repeated(PoissonSampled(Gaussian(1), "0.05"), 20), AR),
        (Parallel([PureDP(1), Gaussian(2)]), RO),
    ],
)
def test_every_curve_falls_and_stays_below_the_diagonal(event: Event, relation: Relation | None) -> None:
    found = [tradeoff(event, rate, relation=relation) for rate in ("0.01", "0.1", "0.6")]
    assert all(before > after >= 0 for before, after in pairwise(found))
    assert all(fnr <= 1 - rate for fnr, rate in zip(found, (0.01, 0.1, 0.6), strict=True))


def test_zcdp_curve_is_below_that_of_the_gaussian_with_this_rho() -> None:
    for rate in ("0.01", "0.1", "0.5"):
        assert 0 < tradeoff(ZCDP("0.5"), rate) <= tradeoff(GDP(1), rate)


class TestMu:
    @pytest.mark.parametrize(
        "event",
        [
            PureDP("0.8"),
            RandomizedResponse("1.2", 6),
            DiscreteLaplace(2, 5),
            DiscreteLaplace(2, 6),
            Laplace("0.7"),
            BoundedRange("1.7"),
        ],
    )
    def test_it_dominates_the_profile_and_nothing_smaller_does(self, event: Event) -> None:
        mu = Fraction(gdp_mu(event))
        levels = [Fraction(n, 16) for n in range(48)]
        assert all(delta(event, level) <= delta(GDP(mu), level) for level in levels)
        smaller = GDP(mu * Fraction(97, 100))
        rates = [Fraction(n, 100) for n in range(1, 51)]
        assert any(tradeoff(smaller, rate) > tradeoff(event, rate) for rate in rates)

    def test_squares_add_up(self) -> None:
        assert gdp_mu(Repeated(Gaussian(2), 4)) == 1
        assert gdp_mu(Composed([GDP(3), GDP(4)])) == 5
        both = math.hypot(gdp_mu(Laplace(1)), gdp_mu(PureDP("0.5")))
        assert gdp_mu(Composed([Laplace(1), PureDP("0.5")])) == pytest.approx(both)
        assert gdp_mu(Grouped(Gaussian(6), 3)) == 0.5

    def test_cells(self) -> None:
        cells = Parallel([GDP(3), GDP(4), PureDP("0.01")])
        assert gdp_mu(cells, relation=AR) == 4
        assert gdp_mu(cells, relation=RO) == 5

    def test_a_sample_has_no_more_than_what_runs_on_it(self) -> None:
        """With Gaussian noise no smaller mu holds; a pure event has that of its amplified epsilon."""
        sampled = PoissonSampled(Gaussian(1), "0.1")
        assert gdp_mu(sampled, relation=AR) == 1
        levels = [Fraction(n, 16) for n in range(48)]
        assert all(delta(sampled, level, relation=AR) <= delta(GDP(1), level) for level in levels)
        assert any(delta(sampled, level, relation=AR) > delta(GDP("0.9"), level) for level in range(20, 60))
        pure = PoissonSampled(PureDP(1), "0.1")
        assert gdp_mu(pure, relation=AR) == pytest.approx(gdp_mu(PureDP(epsilon(pure, 0, relation=AR))))

    def test_infinite_where_no_gaussian_bound_is_proven(self) -> None:
        assert gdp_mu(ZCDP(1)) == gdp_mu(ApproxDP(1, "1e-9")) == math.inf
        assert gdp_mu(PoissonSampled(ZCDP(1), "0.1"), relation=AR) == math.inf
        assert gdp_mu(PoissonSampled(ApproxDP("0.1", "1e-9"), "0.1"), relation=AR) == math.inf
        assert gdp_mu(SampledWithoutReplacement(ApproxDP("0.1", "1e-9"), 1, 10), relation=RO) == math.inf
        assert gdp_mu(Grouped(PoissonSampled(Gaussian(1), "0.1"), 2), relation=AR) == math.inf
        assert gdp_mu(PureDP(0)) == 0
