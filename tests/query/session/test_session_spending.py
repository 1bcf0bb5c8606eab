"""What an analyst offers is read exactly, in one of five words, and never guessed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet.errors import InvalidParameter
from discreet.ledger.budget import Budget
from discreet.query.parse.privacy_options import PrivacyOptions
from discreet.query.session.requests import Offer

PURE, BOTH, RHO = Budget(epsilon=2), Budget(epsilon=2, delta="1e-6"), Budget(rho="0.5")


def test_an_offer_is_read_exactly():
    assert Offer(epsilon=0.1).spend(PURE).epsilon == Fraction(1, 10)
    assert Offer(rho="1/3").spend(RHO).rho == Fraction(1, 3)
    assert Offer(epsilon=1, delta=1e-7).spend(BOTH).delta == Fraction(1, 10**7)


def test_a_share_is_a_part_of_the_lifetime_budget():
    assert Offer(share=0.05).spend(BOTH).epsilon == Fraction(1, 10)
    assert Offer(share="1/5").spend(RHO).rho == Fraction(1, 10)


def test_a_target_error_is_absolute_or_relative_to_what_is_expected():
    assert Offer(error=3).spend(PURE).error == 3
    relative = Offer(relative_error=0.1, expected=500).spend(PURE)
    assert (relative.error, relative.relative, relative.expected) == (Fraction(1, 10), True, 500)
    by_column = Offer(relative_error=0.1, expected={"n": 40}).spend(PURE)
    assert (by_column.sizes, by_column.expected) == ({"n": 40}, None)
    with_rows = Offer(relative_error=0.1, expected={"*": 500, "n": 40}).spend(PURE)
    assert (with_rows.sizes, with_rows.expected) == ({"n": 40}, 500)


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        ({}, "no default"),
        ({"epsilon": 1, "rho": 1}, "epsilon and rho"),
        ({"share": 1, "error": 1}, "share and error"),
        ({"delta": 1e-6}, "no default"),
        ({"relative_error": 0.1}, "relative_error needs an expected value"),
        ({"share": 2}, "at most 1"),
        ({"share": 0}, "above 0"),
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": float("nan")}, "finite"),
        ({"epsilon": 1e20}, "at most"),
        ({"error": -1}, "above 0"),
        ({"epsilon": True}, "number"),
        ({"relative_error": 0.1, "expected": 0}, "at least 1"),
        ({"relative_error": 0.1, "expected": {"n": 0}}, "above 0"),
    ],
)
def test_nonsense_is_refused(offer, words):
    with pytest.raises(InvalidParameter, match=words):
        Offer(**offer).spend(PURE)


def test_a_clause_of_the_query_may_only_tighten():
    assert Offer().with_clause(PrivacyOptions(epsilon=Fraction(2))).spend(PURE).epsilon == 2
    assert Offer(epsilon=1).with_clause(PrivacyOptions(epsilon=Fraction(10**20))).spend(PURE).epsilon == 1
    assert Offer(epsilon=3).with_clause(PrivacyOptions(epsilon=Fraction(2))).spend(PURE).epsilon == 2
    both = Offer(epsilon=1, delta="1e-6").with_clause(PrivacyOptions(delta=Fraction(1, 10**8))).spend(BOTH)
    assert both.delta == Fraction(1, 10**8)
    assert Offer(epsilon=1).with_clause(PrivacyOptions(delta=Fraction(0))).spend(BOTH).delta is None
    for offer in (Offer(rho=1), Offer(share="1/2"), Offer(error=3)):
        with pytest.raises(InvalidParameter, match="exactly one"):
            offer.with_clause(PrivacyOptions(epsilon=Fraction(1))).spend(RHO)
    with pytest.raises(InvalidParameter, match="at most"):
        Offer().with_clause(PrivacyOptions(epsilon=Fraction(10**20))).spend(PURE)


def test_a_share_of_no_budget_is_refused():
    with pytest.raises(InvalidParameter, match="there is none here"):
        Offer(share=0.1).spend(Budget())
