"""A curve at many epsilons at once: proven at each, close to one by one, and composed only a few times."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from pld_oracles import compose, delta, discrete_laplace, poisson, precision, product, randomized_response

from discreet.privacy import (
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    Relation,
    Repeated,
)
from discreet.privacy.curves import deltas
from discreet.privacy.guarantee import curve
from discreet.privacy.pld import loss_profile
from discreet.privacy.pld.loss_profile import profile

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE

EVENTS: list[tuple[Event, Relation, int]] = [
    (Repeated(PoissonSampled(Gaussian(1), "0.01"), 1000), AR, 3),
    (Repeated(PoissonSampled(Gaussian("0.7"), "0.1"), 100), AR, 20),
    (Composed([Repeated(PoissonSampled(Gaussian(2), "0.1"), 50), Laplace(2)]), AR, 3),
    (Composed([Repeated(Laplace(10), 30), Repeated(PureDP("0.1"), 20)]), AR, 4),
    (Repeated(BoundedRange("0.3"), 10), AR, 2),
    (Parallel([PureDP(1), Laplace(3), Gaussian(2)]), RO, 2),
    (Composed([Gaussian(3), ApproxDP("0.2", "1e-4")]), AR, 2),
]


def levels(last: int, count: int = 40) -> list[Fraction]:
    return [Fraction(last * n, count) for n in range(count + 1)]


@pytest.mark.parametrize(("event", "relation", "last"), EVENTS, ids=[str(event)[:50] for event, _, _ in EVENTS])
def test_they_are_about_what_each_epsilon_has_on_its_own(event: Event, relation: Relation, last: int) -> None:
    known, points = curve(event, relation), levels(last, 8)
    for together, alone in zip(deltas(known, points), map(known.delta, points), strict=True):
        assert alone * 0.98 <= together <= alone * 1.03 + 1e-12


@pytest.mark.parametrize("order", [1, -1])
def test_they_dominate_brute_force_in_any_order(order: int) -> None:
    found = profile(Counter({PoissonSampled(Composed([PureDP("0.5"), DiscreteLaplace(1, 2)]), "0.3"): 3}), AR)
    points = levels(3, 12)[::order]
    with precision(128):
        inner = product(randomized_response(Fraction(1, 2), 2), discrete_laplace(Fraction(1), 2))
        outcomes = compose(poisson(inner, Fraction(3, 10)), 3)
        for epsilon, bound in zip(points, found.deltas_upper(points), strict=True):
            assert bound >= delta(outcomes, epsilon)[0]


@pytest.mark.parametrize(("event", "relation", "last"), EVENTS[:4], ids=[str(event)[:50] for event, _, _ in EVENTS[:4]])
def test_a_hundred_points_take_few_compositions(
    event: Event, relation: Relation, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    right = loss_profile.at_epsilon
    monkeypatch.setattr(loss_profile, "at_epsilon", lambda *given: calls.append(given[1]) or right(*given))
    deltas(curve(event, relation), levels(last, 100))
    assert 1 <= len(calls) <= 8


def test_a_composition_is_not_used_where_its_noise_would_show() -> None:
    """Far out, delta is below the rounding of a transform that was made for epsilon 0."""
    found = profile(Counter({PoissonSampled(Gaussian(1), "0.01"): 1000}), AR)
    near, far = found.deltas_upper([Fraction(0), Fraction(6)])
    assert near < 0.3
    assert far == pytest.approx(found.delta_upper(Fraction(6)), rel=0.01)
    assert far < 1e-15
