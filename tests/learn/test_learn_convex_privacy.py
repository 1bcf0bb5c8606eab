"""What minima with random slopes and noisy sums spend, against integrals over small worlds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import comb, exp, log, prod, sqrt
from typing import Any

import numpy as np
import pytest
from convex_worlds import POINTS, Minimum, PlaneMinimum, added, hockey, replaced, worst

from discreet.balls import bounds
from discreet.errors import InvalidParameter
from discreet.learn.convex import delta_bound
from discreet.learn.convex.logistic_gradient import STEEPEST
from discreet.learn.convex.objective_perturbation import Calibration, ridge_for
from discreet.privacy.gaussian import gaussian_sigma, profile
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
TINY = 1e-7  # What an integral over 20,000 places may be off.


def claim(
    mechanism: Minimum, epsilon: float, relation: Relation, *, noise: float = 1.0, jacobian: float = 1.0
) -> float:
    """Return the delta that is claimed; a wrong one for slopes `noise` times as wide or without the Jacobian."""
    found = delta_bound(
        Fraction(epsilon),
        kappa=Fraction(jacobian * log(1 + float(STEEPEST) / mechanism.ridge)),
        sums=Fraction(0),
        each=Fraction(1 / (noise * mechanism.sigma) ** 2),
        problems=1,
        relation=relation,
    )
    return float(found)


@pytest.mark.parametrize("mechanism", [Minimum(1.0, 0.5), Minimum(2.0, 0.2), Minimum(0.6, 3.0)], ids=repr)
@pytest.mark.parametrize("epsilon", [0.6, 1.0, 2.0])
def test_the_bound_dominates_brute_force_when_a_row_is_added(mechanism: Minimum, epsilon: float) -> None:
    found = worst(mechanism, added(2), epsilon)
    assert found <= claim(mechanism, epsilon, ADD_REMOVE) + TINY


@pytest.mark.parametrize("mechanism", [Minimum(1.0, 0.5), Minimum(2.0, 0.2)], ids=repr)
def test_the_bound_dominates_brute_force_when_a_row_is_replaced(mechanism: Minimum) -> None:
    for epsilon in (0.9, 1.5, 2.5):
        assert worst(mechanism, replaced(1), epsilon) <= claim(mechanism, epsilon, REPLACE_ONE) + TINY


def test_slopes_too_narrow_by_a_factor_1_3_are_caught() -> None:
    """Many rows on one side move the minimum to where one on the other side has a residual of nearly one."""
    mechanism, many = Minimum(1.0, 4.0), ((1.0, 1),) * 400
    found = worst(mechanism, [(many, (*many, (1.0, 0)))], 3.0, beyond=5.0)
    assert claim(mechanism, 3.0, ADD_REMOVE, noise=1.3) + 10 * TINY < found <= claim(mechanism, 3.0, ADD_REMOVE)


def test_a_forgotten_jacobian_is_caught() -> None:
    """With wide slopes and a small ridge nearly all of the loss is the Jacobian."""
    mechanism = Minimum(8.0, 0.02)
    epsilon = 1.5
    assert worst(mechanism, added(1), epsilon) > claim(mechanism, epsilon, ADD_REMOVE, jacobian=0.0) + 10 * TINY
    assert worst(mechanism, added(1), epsilon) <= claim(mechanism, epsilon, ADD_REMOVE) + TINY


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_the_bound_dominates_brute_force_in_the_plane(relation: Relation) -> None:
    mechanism, side = PlaneMinimum(1.0, 0.6), np.linspace(-19, 19, 571)
    width = float(side[1] - side[0]) ** 2
    rows = [((1.0, 0.0), 1), ((0.6, 0.8), 0), ((-0.8, 0.6), 1), ((0.0, -1.0), 0)]
    base = (((0.6, -0.8), 1), ((1.0, 0.0), 1))
    assert mechanism.density(base, side).sum() * width == pytest.approx(1, abs=1e-4)
    pairs = [(base, (*base, row)) for row in rows]
    if relation is REPLACE_ONE:
        pairs = [((*base, a), (*base, b)) for a, b in combinations(rows, 2)]
    for first, second in pairs:
        a, b = mechanism.density(first, side), mechanism.density(second, side)
        for epsilon in (0.8, 1.5, 2.5):
            allowed = claim(Minimum(1.0, 0.6), epsilon, relation) + 1e-4
            assert max(hockey(a, b, width, epsilon), hockey(b, a, width, epsilon)) <= allowed


def test_the_bound_is_tight_for_a_large_ridge() -> None:
    """Then the minimum is one noisy gradient at zero, where residuals are one half."""
    half = Minimum(1.0, 5000.0)
    gaussian = delta_bound(
        Fraction(1), kappa=Fraction(0), sums=Fraction(0), each=Fraction(1, 4), problems=1, relation=ADD_REMOVE
    )
    assert worst(half, added(1), 1.0) == pytest.approx(float(gaussian), rel=0.01)


def test_a_sum_after_the_minimum_adds_its_square_of_mu() -> None:
    """Integrate over the minimum, and use the exact profile of the sum for what is left of epsilon."""
    from scipy.special import ndtr

    mechanism, mu, epsilon = Minimum(1.0, 20.0), 1.5, 1.5
    theta, width = mechanism.axis()
    largest = 0.0
    for less, more in added(1):
        for first, second in ((less, more), (more, less)):
            a, b = mechanism.density(first, theta), mechanism.density(second, theta)
            left = epsilon - np.log(np.maximum(a, 1e-300) / np.maximum(b, 1e-300))
            part = ndtr(mu / 2 - left / mu) - np.exp(np.minimum(left, 700)) * ndtr(-mu / 2 - left / mu)
            largest = max(largest, float((a * np.maximum(part, 0)).sum() * width))
    kappa = Fraction(log(1 + float(STEEPEST) / mechanism.ridge))
    given = {"kappa": kappa, "each": Fraction(1), "problems": 1, "relation": ADD_REMOVE}
    assert largest <= delta_bound(Fraction(epsilon), sums=Fraction(mu**2), **given)  # type: ignore[arg-type]
    # A sum that is not paid for is seen.
    assert largest > delta_bound(Fraction(epsilon), sums=Fraction(0), **given)  # type: ignore[arg-type]


def test_two_problems_of_the_same_rows_cost_two() -> None:
    """Three classes have three problems; here two, with labels that differ, on one axis each."""
    mechanism, epsilon = Minimum(1.5, 1.0), 1.5
    theta = np.linspace(-16, 16, 1201)
    width = float(theta[1] - theta[0]) ** 2
    largest = 0.0
    for x, y in POINTS:
        none = np.outer(mechanism.density((), theta), mechanism.density((), theta))
        one = np.outer(mechanism.density(((x, y),), theta), mechanism.density(((x, 1 - y),), theta))
        largest = max(largest, hockey(none, one, width, epsilon), hockey(one, none, width, epsilon))
    given = {"kappa": Fraction(log(1.25)), "sums": Fraction(0), "each": Fraction(1 / 1.5**2), "relation": ADD_REMOVE}
    assert largest <= delta_bound(Fraction(epsilon), problems=2, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("problems", [1, 3])
def test_a_calibration_keeps_its_promise_and_wastes_little(relation: Relation, problems: int) -> None:
    subject = Calibration(epsilon=Fraction(1), delta=Fraction(1, 10**5), relation=relation, problems=problems)
    assert subject.holds(subject.mu_squared)
    assert not subject.holds(subject.mu_squared * Fraction(1001, 1000))
    gaussian = 1 / gaussian_sigma("0.9", "1e-5")
    assert sqrt(subject.mu_squared) >= (0.95 if problems == 1 else 0.85) * gaussian
    assert float(ridge_for(subject.kappa)) >= float(STEEPEST) / (exp(subject.kappa) - 1)


def test_a_calibration_that_nothing_satisfies_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        Calibration(epsilon=Fraction(1), delta=Fraction(1), relation=ADD_REMOVE)
    with pytest.raises(InvalidParameter):
        Calibration(epsilon=Fraction(0), delta=Fraction(1, 10), relation=ADD_REMOVE)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("problems", [1, 2, 3])
def test_every_choice_of_corners_is_in_the_bound(relation: Relation, problems: int) -> None:
    """A row that comes moves a gradient by 0 or 1; one that is replaced has the corners 0, 1, 1 and 2."""
    kappa, sums, each = Fraction(1, 10), Fraction(1, 50), Fraction(1, 3)
    one = (0, 1) if relation is ADD_REMOVE else (0, 1, 1, 4)
    left = 1 - problems * kappa
    parts = [bounds(profile(sums + sum(corner) * each, left))[1] for corner in product(one, repeat=problems)]
    found = delta_bound(Fraction(1), kappa=kappa, sums=sums, each=each, problems=problems, relation=relation)
    assert float(found) == pytest.approx(min(1.0, float(sum(parts))), rel=1e-9)


# People with several rows: each of k slots weighs 1 / k.
SLOTS = 2


def of_people(mechanism: Minimum | PlaneMinimum, epsilon: float, slots: int, **wrong: float) -> float:
    """Return the delta that is claimed for people that fill so many slots; or a wrong one."""
    found = delta_bound(
        Fraction(epsilon),
        kappa=Fraction(wrong.get("kappa", float(STEEPEST) / mechanism.ridge)),
        sums=Fraction(0),
        each=Fraction(1 / (wrong.get("noise", 1.0) * mechanism.sigma) ** 2),
        problems=1,
        relation=ADD_REMOVE,
        slots=slots,
    )
    return float(found)


def in_slots(people: Any, slots: int) -> Any:
    """Let each person, a tuple of rows, fill so many slots by turns."""
    return tuple(rows[turn % len(rows)] for rows in people for turn in range(slots))


def over_slots(mechanism: Any, slots: int) -> Any:
    """The same minimum with losses of weight 1 / slots: all of it times the number of slots."""
    return type(mechanism)(mechanism.sigma * slots, mechanism.ridge * slots)


@pytest.mark.parametrize("mechanism", [Minimum(1.0, 0.5), Minimum(2.0, 0.2), Minimum(0.6, 3.0)], ids=repr)
@pytest.mark.parametrize("slots", [2, 3])
def test_the_bound_dominates_brute_force_when_a_person_is_added(mechanism: Minimum, slots: int) -> None:
    people = [rows for size in range(1, slots + 1) for rows in combinations_with_replacement(POINTS, size)]
    some = [(), (((1.0, 1),),), (((-0.5, 0), (1.0, 1)),)]
    worlds = [(in_slots(base, slots), in_slots((*base, person), slots)) for base in some for person in people]
    for epsilon in (0.6, 1.0, 2.0):
        found = worst(over_slots(mechanism, slots), worlds, epsilon)
        assert found <= of_people(mechanism, epsilon, slots) + TINY


@pytest.mark.parametrize("slots", [2, 3])
def test_rows_that_keep_their_weight_and_noise_for_a_row_are_caught(slots: int) -> None:
    """Many people on one side move the minimum to where one on the other side has residuals of nearly one."""
    mechanism, epsilon, many = Minimum(1.0, 4.0), 3.0, ((1.0, 1),) * 400
    person = ((1.0, 0),) * slots
    claimed, shared = of_people(mechanism, epsilon, slots), over_slots(mechanism, slots)
    pair = [(many * slots, (*many * slots, *person))]
    assert claimed / 2 < worst(shared, pair, epsilon, beyond=5.0) <= claimed
    assert worst(replace(shared, sigma=mechanism.sigma), pair, epsilon, beyond=5.0) > 2 * claimed
    assert worst(mechanism, [(many, (*many, *person))], epsilon, beyond=5.0) > 2 * claimed


def test_a_jacobian_of_rank_one_is_refuted_by_a_person_with_two_rows_in_the_plane() -> None:
    """A person with rows at right angles raises both eigenvalues: (1 + s / 2)^2 is more than 1 + s."""
    mechanism, epsilon, side = PlaneMinimum(20.0, 0.05), 2.2, np.linspace(-12, 12, 1201)  # Beyond, nothing is curved.
    spread, width = over_slots(mechanism, SLOTS), float(side[1] - side[0]) ** 2
    person = (((1.0, 0.0), 1), ((0.0, 1.0), 0))
    found = hockey(spread.density(person, side), spread.density((), side), width, epsilon)
    alone = log(1 + float(STEEPEST) / mechanism.ridge)
    assert of_people(mechanism, epsilon, SLOTS, kappa=alone) < 1e-9 < 1e-6 < found <= of_people(mechanism, 2.2, SLOTS)
    # Two eigenvalues, each half as large, are what there is at most.
    both = 2 * log(1 + float(STEEPEST) / (2 * mechanism.ridge))
    assert hockey(spread.density(person, side), spread.density((), side), width, both + 0.01) == 0


@pytest.mark.parametrize(("problems", "slots"), [(1, 2), (1, 5), (2, 3), (3, 16)])
def test_every_subset_of_the_slots_is_a_corner(problems: int, slots: int) -> None:
    kappa, sums, each = Fraction(1, 10), Fraction(1, 50), Fraction(1, 3)
    given: dict[str, Any] = {"kappa": kappa, "sums": sums, "each": each, "relation": ADD_REMOVE}
    found = delta_bound(Fraction(2), problems=problems, slots=slots, **given)
    left, exact = 2 - problems * kappa, Fraction(0)
    for moved in product(range(slots + 1), repeat=problems):
        weight = prod(comb(slots, j) for j in moved)
        squares = sum((Fraction(j, slots) ** 2 for j in moved), Fraction(0))
        exact += weight * bounds(profile(sums + squares * each, left))[1]
    assert min(1.0, float(exact)) <= float(found) * (1 + 1e-9)
    assert float(found) <= min(1.0, float(exact)) * (1 if problems * slots**2 <= 512 else 1.1) + 1e-12
    if slots > 2:
        assert found > delta_bound(Fraction(2), problems=problems, **given)  # One corner a person would be too few.


def test_people_with_many_slots_are_calibrated_and_replace_one_is_refused() -> None:
    given: dict[str, Any] = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6)}
    one, many = (Calibration(relation=ADD_REMOVE, slots=slots, **given) for slots in (1, 16))
    assert many.holds(many.mu_squared)
    assert 0.7 * one.mu_squared < many.mu_squared < one.mu_squared
    assert many.ridge == STEEPEST / many.kappa > one.ridge
    with pytest.raises(InvalidParameter):
        _ = Calibration(relation=REPLACE_ONE, slots=2, **given).mu_squared
