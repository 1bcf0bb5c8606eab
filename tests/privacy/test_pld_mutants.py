"""Wrong accountants, each one change away from the right one. What the right one passes must refute them."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from pld_oracles import compose as enumerate_all
from pld_oracles import delta, discrete_laplace, poisson, precision, product, randomized_response

from discreet.balls import ball
from discreet.privacy import closed_forms
from discreet.privacy.events import (
    GDP,
    ApproxDP,
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    SampledWithoutReplacement,
)
from discreet.privacy.pld import convolution, divergence_bounds, loss_profile, losses, sampled_pairs
from discreet.privacy.pld import pairs as pair
from discreet.privacy.pld.convolution import Aim
from discreet.privacy.pld.loss_profile import profile
from discreet.privacy.relation import Relation

Patch = pytest.MonkeyPatch
AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def coarse(patch: Patch) -> None:
    """A coarse grid makes the bound loose, and shows what a wrong rounding does."""
    patch.setattr(Aim, "step", lambda self, goal: 0.07)


def pure_holds() -> bool:
    with precision(128):
        outcomes = enumerate_all(randomized_response(Fraction("0.3"), 2), 8)
        found = profile(Counter({PureDP("0.3"): 8}), None)
        return all(found.delta_upper(e) >= delta(outcomes, e)[0] for e in map(Fraction, ("0.1", "0.5", "1.1", "2")))


def lower_holds() -> bool:
    with precision(128):
        outcomes = enumerate_all(randomized_response(Fraction("0.3"), 2), 8)
        found = profile(Counter({PureDP("0.3"): 8}), None)
        return all(found.delta_lower(e) <= delta(outcomes, e)[1] for e in map(Fraction, ("0.1", "0.5", "1.1", "2")))


def laplace_with_pure(epsilon: float) -> float:
    """delta of Laplace(1) and PureDP(1) together: the one of Laplace noise, moved by each loss of the other."""

    def alone(e: float) -> float:
        return -math.expm1(e) if e < -1 else max(0.0, -math.expm1((e - 1) / 2))

    return (math.e * alone(epsilon - 1) + alone(epsilon + 1)) / (1 + math.e)


def lower_of_cells_holds() -> bool:
    """The lattice of PureDP puts all ends of the cells of Laplace noise on the grid."""
    found = profile(Counter({Laplace(1): 1, PureDP(1): 1}), None)
    levels = [n / 20 for n in range(40)]
    return all(found.delta_lower(Fraction(e)) <= laplace_with_pure(e) * (1 + 1e-12) for e in levels)


def large_lower_holds() -> bool:
    """At epsilons of a hundred thousand a grid step is some nats; the closed form of Gaussian noise knows the truth."""
    for times, target in ((1000, Fraction(1, 10**3)), (100_000, Fraction(1, 10**7))):
        truth = closed_forms.curve(GDP(mu_squared=4 * times)).upper(target)
        if profile(Counter({Gaussian("0.5"): times}), None).epsilon_lower(target) > truth:
            return False
    return True


def sampled_holds() -> bool:
    with precision(128):
        outcomes = enumerate_all(poisson(randomized_response(Fraction(1), 2), Fraction(1, 5)), 6)
        found = profile(Counter({PoissonSampled(PureDP(1), "0.2"): 6}), AR)
        return all(found.delta_upper(e) >= delta(outcomes, e)[0] for e in map(Fraction, ("0.1", "0.4", "0.8")))


def revealing_holds() -> bool:
    found = profile(Counter({ApproxDP("0.1", "1e-3"): 20}), None)
    return found.epsilon_upper(Fraction("0.01")) == math.inf and found.delta_upper(Fraction(3)) >= 0.0198


def sampled_revealing_holds() -> bool:
    """A draw of one in five, an even chance that the drawn unit is revealed, and one randomized response."""
    drawn, half = Fraction(1, 5), Fraction(1, 2)
    with precision(128):
        same, only_p, only_q = (ball(half), ball(half)), (ball(half), ball(0)), (ball(0), ball(half))
        outcomes = product(poisson([same, only_p, only_q], drawn), randomized_response(Fraction(1), 2))
        found = profile(Counter({PoissonSampled(ApproxDP(0, half), drawn): 1, PureDP(1): 1}), AR)
        return all(found.delta_upper(e) >= delta(outcomes, e)[0] for e in map(Fraction, ("0.1", "0.5", "0.7")))


def replaced_holds() -> bool:
    with precision(128):
        above = [(p, q) for p, q in poisson(discrete_laplace(Fraction(1), 2), Fraction(3, 10)) if p > q]
        rest = 1 - sum((p + q for p, q in above), 0 * above[0][0])
        outcomes = enumerate_all([*above, *((q, p) for p, q in above), (rest, rest)], 3)
        found = profile(Counter({SampledWithoutReplacement(DiscreteLaplace(1, 2), 3, 10): 3}), RO)
        return all(found.delta_upper(e) >= delta(outcomes, e)[0] for e in map(Fraction, ("0", "0.2", "0.7", "1.2")))


def nested_holds() -> bool:
    with precision(128):
        inner_pair = product(randomized_response(Fraction(1, 2), 2), randomized_response(Fraction(1), 2))
        outcomes = enumerate_all(poisson(inner_pair, Fraction(1, 4)), 4)
        found = profile(Counter({PoissonSampled(Composed([PureDP("0.5"), PureDP(1)]), "1/4"): 4}), AR)
        return all(found.delta_upper(e) >= delta(outcomes, e)[0] for e in map(Fraction, ("0.1", "0.6", "1.2")))


def rounded_to_nearest(patch: Patch) -> None:
    coarse(patch)

    def wrong(atoms: pair.DominatingPair, step: float) -> losses.GridLoss:
        nearest = dataclasses.replace(atoms, loss=np.rint(atoms.loss / step) * step)
        return dataclasses.replace(losses.on_grid(nearest, step), slip=0.0)

    patch.setattr(loss_profile, "all_on_grid", lambda pairs, step: [wrong(atoms, step) for atoms in pairs])


def rounded_up_for_the_lower_bound(patch: Patch) -> None:
    """All mass goes up, and the lower bound does not know."""
    coarse(patch)

    def wrong(atoms: pair.DominatingPair, step: float) -> losses.GridLoss:
        return losses.on_grid(dataclasses.replace(atoms, loss=np.ceil(atoms.loss / step) * step), step)

    patch.setattr(loss_profile, "all_on_grid", lambda pairs, step: [wrong(atoms, step) for atoms in pairs])


def nothing_given_away_for_the_grid(patch: Patch) -> None:
    coarse(patch)
    patch.setattr(divergence_bounds.Divergence, "surplus", lambda self, epsilon: 0.0)


def nothing_given_away_for_a_large_epsilon(patch: Patch) -> None:
    patch.setattr(divergence_bounds.Divergence, "shift", lambda self, chance: 0.0)


def cells_taken_for_atoms(patch: Patch) -> None:
    """What a continuous law lost when it was cut into cells is forgotten where their ends are grid points."""
    right = losses.all_on_grid
    atoms = dataclasses.replace
    patch.setattr(
        loss_profile, "all_on_grid", lambda pairs, step: right([atoms(each, cut=False) for each in pairs], step)
    )


def counted_once(patch: Patch) -> None:
    right = loss_profile._directions
    patch.setattr(loss_profile, "_directions", lambda *given: [[(p, 1) for p, _ in pairs] for pairs in right(*given)])


def counted_once_in_a_sample(patch: Patch) -> None:
    right = sampled_pairs.composed
    patch.setattr(sampled_pairs, "composed", lambda build: right(lambda ticks: build(ticks)[:1]))


def only_the_absent_direction(patch: Patch) -> None:
    right = sampled_pairs.SampledTerm.pairs
    patch.setattr(sampled_pairs.SampledTerm, "pairs", lambda self, ticks, tail: right(self, ticks, tail)[1:])


def infinite_losses_forgotten(patch: Patch) -> None:
    patch.setattr(convolution, "ever", lambda chances: 0.0)


def vanishing_mass_forgotten(patch: Patch) -> None:
    right = sampled_pairs.poisson

    def wrong(atoms: pair.DominatingPair, rate: sampled_pairs.Rate) -> pair.DominatingPair:
        return right(dataclasses.replace(atoms, vanishing=0.0), rate)

    patch.setattr(sampled_pairs, "poisson", wrong)


def no_mirror_images(patch: Patch) -> None:
    fixed_size = sampled_pairs.fixed_size

    def wrong(atoms: pair.DominatingPair, rate: sampled_pairs.Rate) -> pair.DominatingPair:
        right = fixed_size(atoms, rate)
        positive = right.loss > 0
        rest = 1 - right.p[positive].sum()
        return dataclasses.replace(
            right,
            loss=np.append(right.loss[positive], -1.0),
            p=np.append(right.p[positive], rest),
            q=np.append(right.q[positive], rest),
        )

    patch.setattr(sampled_pairs, "fixed_size", wrong)


def sampling_rate_squared(patch: Patch) -> None:
    right = sampled_pairs.poisson
    patch.setattr(
        sampled_pairs, "poisson", lambda atoms, rate: right(atoms, sampled_pairs.Rate(rate.drawn**2, 1 - rate.drawn**2))
    )


MUTANTS: list[tuple[Callable[[Patch], None], Callable[[], bool]]] = [
    (rounded_to_nearest, pure_holds),
    (rounded_up_for_the_lower_bound, lower_holds),
    (nothing_given_away_for_the_grid, lower_holds),
    (nothing_given_away_for_a_large_epsilon, large_lower_holds),
    (cells_taken_for_atoms, lower_of_cells_holds),
    (counted_once, pure_holds),
    (counted_once_in_a_sample, nested_holds),
    (only_the_absent_direction, sampled_holds),
    (infinite_losses_forgotten, revealing_holds),
    (vanishing_mass_forgotten, sampled_revealing_holds),
    (no_mirror_images, replaced_holds),
    (sampling_rate_squared, sampled_holds),
]


@pytest.mark.parametrize("holds", dict.fromkeys(holds for _, holds in MUTANTS), ids=lambda holds: holds.__name__)
def test_the_right_accountant_passes(holds: Callable[[], bool], monkeypatch: Patch) -> None:
    assert holds()
    coarse(monkeypatch)
    assert holds()


@pytest.mark.parametrize(("mutate", "holds"), MUTANTS, ids=[mutate.__name__ for mutate, _ in MUTANTS])
def test_a_wrong_accountant_is_caught(
    mutate: Callable[[Patch], None], holds: Callable[[], bool], monkeypatch: Patch
) -> None:
    mutate(monkeypatch)
    assert not holds()
