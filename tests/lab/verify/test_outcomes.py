"""Listings of output laws: nothing is lost on the way, and what is left out is bounded."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import privacy
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.noise.laws import (
    DiscreteGaussianLaw,
    DiscreteLaplaceLaw,
    GeometricLaw,
    RoundedGaussianLaw,
    RoundedLaplaceLaw,
)
from discreet.privacy import Relation, outcomes
from discreet.privacy.outcomes import CUTOFF, Outcomes

LAWS = [
    DiscreteLaplaceLaw(Fraction(3, 2)),
    RoundedLaplaceLaw(Fraction(3, 2)),
    GeometricLaw(Fraction(3, 2)),
    DiscreteGaussianLaw(Fraction(5, 2)),
    RoundedGaussianLaw(Fraction(5, 2)),
]
COUNTS = verify.worlds([0], [0, 1, 2, 3])
HALVES = Outcomes({0: ball(Fraction(1, 2)), 1: ball(Fraction(1, 2))})


def ends(listed: Outcomes) -> tuple[Fraction, Fraction]:
    """The least and the largest total that the listing allows."""
    total = sum(listed.masses.values(), ball(0))
    low, high = bounds(total)
    return low, high + listed.tail


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_listed_law_sums_to_one_with_its_tail(law: Any) -> None:
    with precision(128):
        listed = outcomes.from_law(law, 7)
        low, high = ends(listed)
        assert low <= 1 <= high
        assert listed.tail <= CUTOFF * Fraction(1001, 1000)
        assert listed.masses[8].overlaps(law.pmf(1))


def test_a_listed_law_is_moved_to_its_centre_and_no_further() -> None:
    with precision(64):
        listed = outcomes.from_law(GeometricLaw(Fraction(1)), 5, cutoff="1e-3")
    assert min(listed.masses) == 5
    assert max(listed.masses) < 20


def test_a_listing_follows_the_working_precision() -> None:
    law = DiscreteLaplaceLaw(Fraction(7))
    found = []
    for bits in (64, 128, 256):
        with precision(bits):
            listed = outcomes.from_law(law)
            found.append((bounds(listed.masses[0].rad())[1], listed.tail))
    assert all(radius < before / 2**60 for (before, _), (radius, _) in pairwise(found))
    assert all(tail < before / 2**40 for (_, before), (_, tail) in pairwise(found))


def test_a_product_multiplies_masses_and_adds_tails() -> None:
    part = Outcomes({"a": ball(Fraction(3, 4))}, Fraction(1, 4))
    both = outcomes.product(part, part, HALVES)
    assert set(both.masses) == {("a", "a", 0), ("a", "a", 1)}
    assert both.masses["a", "a", 0].contains(ball(Fraction(9, 32)))
    assert both.tail == Fraction(1, 2)
    assert outcomes.product().masses == {(): ball(1)}


def test_a_mixture_weighs_masses_and_tails() -> None:
    part = Outcomes({0: ball(Fraction(3, 4))}, Fraction(1, 4))
    mixed = outcomes.mixture([(Fraction(1, 2), HALVES), (ball(Fraction(1, 4)), part)], rest=Fraction(1, 4))
    assert mixed.masses[0].contains(ball(Fraction(1, 4) + Fraction(3, 16)))
    assert Fraction(5, 16) <= mixed.tail < Fraction(5, 16) + Fraction(1, 2**20)


def test_post_processing_adds_up_what_it_joins() -> None:
    joined = outcomes.map(Outcomes({-1: ball(Fraction(1, 3)), 1: ball(Fraction(2, 3))}), abs)
    assert set(joined.masses) == {1}
    assert joined.masses[1].contains(1)


def test_pruning_moves_what_it_drops_into_the_tail() -> None:
    with precision(128):
        full = outcomes.from_law(DiscreteLaplaceLaw(Fraction(2)))
        short = outcomes.prune(full, cutoff="1e-6")
        assert len(short.masses) < len(full.masses) / 2
        assert short.tail <= full.tail + Fraction("1e-6")
        low, high = ends(short)
        assert low <= 1 <= high


def test_a_constant_is_certain() -> None:
    assert outcomes.point("x") == Outcomes({"x": ball(1)}, Fraction(0))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 5))
def test_totals_are_kept_for_all_products_and_images(weights: list[int], modulus: int) -> None:
    whole = sum(weights) + 1
    part = Outcomes({i: ball(Fraction(w, whole)) for i, w in enumerate(weights)}, Fraction(1, whole))
    image = outcomes.map(outcomes.product(part, part), lambda row: sum(row) % modulus)
    low, high = ends(image)
    assert low <= 1 <= high + Fraction(1, 2**40)


@pytest.mark.parametrize("cutoff", [0, 1, -1, 2, "nan", float("nan"), True])
def test_a_cutoff_that_leaves_nothing_or_everything_is_refused(cutoff: Any) -> None:
    with pytest.raises(InvalidParameter):
        outcomes.from_law(DiscreteLaplaceLaw(Fraction(1)), cutoff=cutoff)


def test_listings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="too long"):
        outcomes.from_law(DiscreteLaplaceLaw(Fraction(10**9)))
    wide = outcomes.from_law(DiscreteLaplaceLaw(Fraction(10)))
    with pytest.raises(InvalidParameter, match="too long"):
        outcomes.product(wide, wide, wide)


@pytest.mark.parametrize("tail", [-1, 2, float("inf"), "x", None])
def test_a_tail_that_is_no_probability_is_refused(tail: Any) -> None:
    with pytest.raises(InvalidParameter):
        Outcomes({}, tail)


def test_a_listing_shows_no_outcome_when_printed() -> None:
    assert "secret" not in repr(outcomes.point("secret"))


def test_a_long_product_leaves_out_dust_and_counts_it() -> None:
    with precision(128):
        part = outcomes.from_law(DiscreteLaplaceLaw(Fraction(1)))
        both = outcomes.product(part, part)
        assert len(both.masses) < len(part.masses) ** 2
        assert 2 * part.tail < both.tail <= 2 * part.tail + CUTOFF
        low, high = ends(both)
        assert low <= 1 <= high


def test_a_mixture_allows_for_what_one_part_lists_and_another_leaves_out() -> None:
    with precision(64):
        short, long = Outcomes({0: ball(1) - ball(Fraction(1, 8))}, Fraction(1, 8)), Outcomes({0: ball(1), 1: ball(0)})
        mixed = outcomes.mixture([(Fraction(1, 2), short), (Fraction(1, 4), long)], rest=Fraction(1, 4))
        assert mixed.masses[1].contains(ball(0))
        assert mixed.masses[1].contains(ball(Fraction(1, 16) + Fraction(1, 4)))
        assert not mixed.masses[1].contains(ball(Fraction(1, 2)))
        assert mixed.masses[0].contains(ball(Fraction(11, 16)))
        assert mixed.tail == Fraction(5, 16)


@dataclass(frozen=True)
class Mapped:
    """Discrete noise on a count, of which only a function is released."""

    function: Callable[[int], Hashable]
    noise: Any
    event: privacy.Event
    relation: Relation = Relation.ADD_REMOVE

    def distribution(self, count: int) -> Outcomes:
        return outcomes.map(outcomes.from_law(self.noise, count), self.function)


FUNCTIONS: dict[str, Callable[[int], Hashable]] = {
    "few: clamped": lambda value: max(-1, min(3, value)),
    "few: above": lambda value: value > 0,
    "few: remainder": lambda value: value % 3,
    "many: clamped": lambda value: max(-20, min(20, value)),
    "many: rounded": lambda value: value // 4,
    "many: absolute": abs,
    "many: relabelled": lambda value: (value, "count"),
    "one": lambda value: None,
}
TIGHT = [name for name in FUNCTIONS if name not in ("few: remainder", "one")]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("scale", [Fraction(2), Fraction(1, 3)])
def test_a_function_of_a_right_mechanism_is_not_called_violated(name, scale):
    """What lies beyond the listing may be mapped to what is listed: no mass of it may be taken for lost."""
    event = privacy.DiscreteLaplace(scale=scale, sensitivity=1)
    found = verify.check(Mapped(FUNCTIONS[name], DiscreteLaplaceLaw(scale), event), COUNTS, query=len)
    assert found.holds, found.headline


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_gaussian_noise_is_not_called_violated(name):
    event = privacy.DiscreteGaussian(variance=4, squared_sensitivity=1)
    found = verify.check(Mapped(FUNCTIONS[name], DiscreteGaussianLaw(4), event), COUNTS, query=len)
    assert found.holds, found.headline


@pytest.mark.parametrize("name", TIGHT)
def test_a_function_of_a_mechanism_with_a_millionth_too_little_noise_is_refuted(name):
    claimed = privacy.DiscreteLaplace(scale=2, sensitivity=1)
    wrong = DiscreteLaplaceLaw(2 - Fraction(1, 10**6))
    assert verify.check(Mapped(FUNCTIONS[name], wrong, claimed), COUNTS, query=len).violated


def test_an_image_may_hold_what_was_not_listed():
    image = outcomes.map(Outcomes({1: ball(Fraction(1, 4)), 2: ball(Fraction(1, 2))}, Fraction(1, 4)), lambda _: 0)
    low, high = bounds(image.masses[0])
    assert (low <= Fraction(3, 4), high >= 1) == (True, True)
