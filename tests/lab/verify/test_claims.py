"""Events are spelled out as numbers to verify: the pure epsilon, the profile below it, Renyi divergences."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from mutants import Noisy, counts

from discreet import privacy
from discreet.errors import DiscreetError, InvalidParameter, UnsupportedEvent
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.lab.verify.claim import Claim, DivergenceMeasure, claims, renyi_claims
from discreet.noise.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.events import (
    GDP,
    ZCDP,
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    PureDP,
    RandomizedResponse,
)
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
PEOPLE = worlds([1], range(4))


def spelled(event: Any, **asked: Any) -> list[Claim]:
    return claims(event, relation=REPLACE_ONE, **({"epsilons": None, "deltas": None} | asked))


def test_a_pure_event_claims_its_epsilon_and_its_profile_below_it() -> None:
    found = spelled(PureDP(1))
    assert found[0] == Claim(DivergenceMeasure.EPSILON, Fraction(0), Fraction(1))
    assert [claim.at for claim in found[1:]] == [0, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]
    assert all(claim.measure is DivergenceMeasure.DELTA and 0 < claim.value < 1 for claim in found[1:])


def test_an_approximate_event_claims_its_delta_at_its_epsilon() -> None:
    (found,) = spelled(ApproxDP(1, "1e-6"))
    assert (found.measure, found.at) == (DivergenceMeasure.DELTA, 1)
    # The number comes from the accountant: a float, rounded up.
    assert Fraction("1e-6") <= found.value <= Fraction("1e-6") * (1 + Fraction(1, 2**50))


def test_deltas_are_turned_into_epsilons() -> None:
    (found,) = spelled(GDP(1), deltas=["1e-5"])
    assert found.value == Fraction("1e-5")
    assert found.at == Fraction(privacy.epsilon(GDP(1), "1e-5"))


def test_epsilons_are_asked_as_they_are() -> None:
    found = spelled(ZCDP("1/2"), epsilons=[1, "2.5"])
    assert [claim.at for claim in found] == [1, Fraction(5, 2)]
    assert found[0].value == Fraction(privacy.delta(ZCDP("1/2"), 1))


def test_an_event_without_a_guarantee_under_the_relation_is_refused() -> None:
    with pytest.raises(UnsupportedEvent):
        claims(RandomizedResponse(1), relation=ADD_REMOVE, epsilons=None, deltas=None)


@pytest.mark.parametrize("claim", [object(), None, [1], "one", 1j])
def test_claims_that_are_none_are_refused(claim: Any) -> None:
    with pytest.raises(DiscreetError):
        spelled(claim)


def test_renyi_claims_follow_the_event() -> None:
    found = renyi_claims(ZCDP("1/2"), orders=[2, "1.5"], relation=REPLACE_ONE)
    assert [claim.at for claim in found] == [2, Fraction(3, 2)]
    assert found[0].value == Fraction(privacy.renyi(ZCDP("1/2"), 2))
    with pytest.raises(InvalidParameter, match="no finite"):
        renyi_claims(ApproxDP(1, "1e-6"), orders=[2], relation=REPLACE_ONE)


@pytest.mark.parametrize(
    ("law", "event"),
    [
        (DiscreteLaplaceLaw(Fraction(2)), DiscreteLaplace(2, 1)),
        (RoundedGaussianLaw(Fraction(4)), Gaussian(2)),
        (DiscreteGaussianLaw(Fraction(4)), DiscreteGaussian(2, 1)),
        (DiscreteGaussianLaw(Fraction(4)), ZCDP("1/8")),
    ],
    ids=["discrete Laplace", "rounded Gaussian", "discrete Gaussian", "zCDP"],
)
def test_the_events_of_exact_noise_hold_and_are_nearly_reached(law: Any, event: Event) -> None:
    mechanism = Noisy(counts(1), [law], event, ADD_REMOVE)
    profile = verify.check(mechanism, PEOPLE, epsilons=[0, "0.25", 1])
    moments = verify.check_renyi(mechanism, PEOPLE, orders=["1.5", 2, 3, 16])
    assert profile.holds
    assert moments.holds
    assert moments.lower > moments.claimed * Fraction(9, 10)


def test_equality_at_an_exact_number_is_no_violation() -> None:
    # The Renyi divergence of a discrete Gaussian is exactly order * rho when order * shift is a whole number.
    mechanism = Noisy(counts(1), [DiscreteGaussianLaw(Fraction(4))], ZCDP("1/8"), ADD_REMOVE)
    result = verify.check_renyi(mechanism, PEOPLE, orders=[2], claim=lambda order: order / 8)
    assert result.holds
    assert abs(result.lower - Fraction(1, 4)) < Fraction(1, 2**60)
