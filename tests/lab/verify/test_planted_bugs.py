"""Verification refutes every planted bug with a pair of neighbours, and lets the corrected mechanism pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from mutants import (
    Exponential,
    ForcedResponse,
    KeptResponse,
    Noisy,
    NoisyMax,
    PermuteAndFlip,
    RepeatedResponse,
    SparseVector,
    analytic_variance,
    counts,
    steps,
)

from discreet.balls import precision
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.lab.verify.claim import Verification
from discreet.lab.verify.small_worlds import Worlds
from discreet.noise.laws import DiscreteGaussianLaw, DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.events import (
    ZCDP,
    ApproxDP,
    BoundedRange,
    DiscreteLaplace,
    Laplace,
    Parallel,
    PureDP,
    RandomizedResponse,
    Repeated,
)
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
ORDERS = (Fraction(3, 2), 2, 8)


@dataclass(frozen=True)
class Bug:
    """A wrong mechanism, its right twin, and a world in which the difference shows."""

    name: str
    wrong: Any
    right: Any
    worlds: Worlds
    check: Callable[..., Verification] = verify.check


def renyi(mechanism: Any, small: Worlds) -> Verification:
    return verify.check_renyi(mechanism, small, orders=ORDERS)


def laplace(scale: Any, epsilon: Any = 1) -> Noisy:
    return Noisy(counts(1), [DiscreteLaplaceLaw(Fraction(scale))], PureDP(epsilon), ADD_REMOVE)


def gaussian(sigma_squared: Fraction, law: type, length: int, claim: ApproxDP) -> Noisy:
    return Noisy(steps(length), [law(sigma_squared * length**2)], claim, ADD_REMOVE)


def sparse(queries: Callable[..., Sequence[int]], relation: Relation, *noise: Any, tells: bool = False) -> Any:
    return SparseVector(queries, *noise, PureDP(E), relation, tells)


def squares(fold: int) -> Callable[..., Sequence[int]]:
    """Sum the squares of 0 and 2, less the fold each."""
    return lambda data: [sum((2 * value) ** 2 - fold for value in data)]


def alternating(data: tuple[int, ...]) -> list[int]:
    """Two counts asked in turn; one replaced record lowers the one and raises the other."""
    return [data.count(0), data.count(1)] * 3


def same(data: tuple[int, ...]) -> list[int]:
    """One count asked three times."""
    return [len(data)] * 3


BITS = worlds([0, 1], range(4))
THREE = worlds("abc", [2, 4])
PEOPLE = worlds([1], range(4))
PAIRS = worlds([0, 1], [1, 2, 3])
E = Fraction(2)
# In the order of the arguments of SparseVector: threshold scale, query scale, positives.
ALGORITHM_1 = (2 / E, 4 / E, 1)
ALGORITHM_1_TWICE = (2 / E, 8 / E, 2)

BUGS = [
    Bug(
        "squares with the noise of those less half of the largest",
        Noisy(squares(0), [DiscreteLaplaceLaw(Fraction(2))], PureDP(1), ADD_REMOVE),
        Noisy(squares(2), [DiscreteLaplaceLaw(Fraction(2))], PureDP(1), ADD_REMOVE),
        BITS,
    ),
    Bug("Laplace scale Δ/2ε", laplace("0.5"), laplace(1), BITS),
    Bug("Laplace scale 1 % too small", laplace("0.99"), laplace(1), BITS),
    Bug(
        "exponential mechanism without the 2",
        Exponential("abc", Fraction(1), PureDP(1), REPLACE_ONE),
        Exponential("abc", Fraction(1, 2), BoundedRange(1), REPLACE_ONE),
        THREE,
    ),
    Bug(
        "noisy max of scale 1/ε on scores that are not monotone",
        NoisyMax("abc", Fraction(1), PureDP(1), REPLACE_ONE),
        NoisyMax("abc", Fraction(2), PureDP(1), REPLACE_ONE),
        THREE,
    ),
    Bug(
        "classical Gaussian formula at ε = 20",
        gaussian(Fraction("0.0701933"), RoundedGaussianLaw, 20, ApproxDP(20, "1e-6")),  # 2 ln(1.25/δ)/ε²
        gaussian(analytic_variance(20, 1e-6), RoundedGaussianLaw, 20, ApproxDP(20, "1e-6")),
        worlds([0, 1], range(3)),
    ),
    Bug(
        "randomized response with swapped probabilities",
        ForcedResponse(Fraction(1, 2), RandomizedResponse("0.5"), swapped=True),
        ForcedResponse(Fraction(1, 2), RandomizedResponse("0.5")),
        worlds([0, 1], [1, 2, 3], ordered=True),
    ),
    Bug(
        "sparse vector that tells the value it compared (Alg. 3)",
        sparse(same, ADD_REMOVE, 2 / E, 2 / E, 1, tells=True),
        sparse(same, ADD_REMOVE, *ALGORITHM_1),
        PEOPLE,
    ),
    Bug(
        "sparse vector whose noise does not grow with c (Alg. 4)",
        sparse(alternating, REPLACE_ONE, 4 / E, 4 / (3 * E), 2),
        sparse(alternating, REPLACE_ONE, *ALGORITHM_1_TWICE),
        PAIRS,
    ),
    Bug(
        "sparse vector without noise on the queries (Alg. 5)",
        sparse(alternating, REPLACE_ONE, 2 / E, None, None),
        sparse(alternating, REPLACE_ONE, *ALGORITHM_1),
        PAIRS,
    ),
    Bug(
        "sparse vector that never stops (Alg. 6)",
        sparse(alternating, REPLACE_ONE, 2 / E, 2 / E, None),
        sparse(alternating, REPLACE_ONE, *ALGORITHM_1),
        PAIRS,
    ),
    Bug(
        "histogram noise 1/ε when a record is replaced",
        Noisy(counts(0, 1), [DiscreteLaplaceLaw(Fraction(1, 2))] * 2, PureDP(2), REPLACE_ONE),
        Noisy(counts(0, 1), [DiscreteLaplaceLaw(Fraction(1))] * 2, PureDP(2), REPLACE_ONE),
        worlds([0, 1], [1, 2]),
    ),
    Bug(
        "discrete Laplace billed with the continuous Renyi formula",
        Noisy(counts(1), [DiscreteLaplaceLaw(Fraction(2))], Laplace(2), ADD_REMOVE),
        Noisy(counts(1), [DiscreteLaplaceLaw(Fraction(2))], DiscreteLaplace(2, 1), ADD_REMOVE),
        BITS,
        renyi,
    ),
    Bug(
        "permute-and-flip billed ε²/8",
        PermuteAndFlip("abc", Fraction(1, 2), ZCDP("1/8"), REPLACE_ONE),
        Exponential("abc", Fraction(1, 2), ZCDP("1/8"), REPLACE_ONE),
        THREE,
        renyi,
    ),
    Bug(
        "permute-and-flip billed as bounded range",
        PermuteAndFlip("abc", Fraction(1, 2), BoundedRange(1), REPLACE_ONE),
        PermuteAndFlip("abc", Fraction(1, 2), PureDP(1), REPLACE_ONE),
        THREE,
        renyi,
    ),
    Bug(
        "discrete Gaussian at the analytic σ",
        gaussian(analytic_variance(8, 1e-6), DiscreteGaussianLaw, 1, ApproxDP(8, "1e-6")),
        gaussian(analytic_variance(8, 1e-6), RoundedGaussianLaw, 1, ApproxDP(8, "1e-6")),
        worlds([0, 1], range(3)),
    ),
    Bug(
        "ten answers billed as one",
        RepeatedResponse(Fraction(1, 10), 10, RandomizedResponse("0.1")),
        RepeatedResponse(Fraction(1, 10), 10, Repeated(RandomizedResponse("0.1"), 10)),
        worlds([0, 1], [1]),
    ),
    Bug(
        "parallel composition billed as the largest when a record is replaced",
        Noisy(
            counts(0, 1),
            [DiscreteLaplaceLaw(Fraction(1)), DiscreteLaplaceLaw(Fraction(1, 2))],
            PureDP(2),
            REPLACE_ONE,
        ),
        Noisy(
            counts(0, 1),
            [DiscreteLaplaceLaw(Fraction(1)), DiscreteLaplaceLaw(Fraction(1, 2))],
            Parallel([PureDP(1), PureDP(2)]),
            REPLACE_ONE,
        ),
        worlds([0, 1], [1, 2]),
    ),
    Bug(
        "randomized response where a record may be added",
        ForcedResponse(Fraction(1, 2), PureDP("0.5"), relation=ADD_REMOVE),
        ForcedResponse(Fraction(1, 2), PureDP("0.5"), relation=REPLACE_ONE),
        worlds([0, 1], [1, 2, 3], ordered=True),
    ),
]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_verification_refutes_the_bug_with_a_pair(bug: Bug) -> None:
    result = bug.check(bug.wrong, bug.worlds)
    assert result.violated
    assert not result.holds
    assert result.lower > result.claimed
    one, other = result.worst_pair
    assert {one, other} <= set(bug.worlds)
    assert abs(len(one) - len(other)) == (1 if bug.wrong.relation is ADD_REMOVE else 0)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_verification_passes_the_corrected_twin(bug: Bug) -> None:
    result = bug.check(bug.right, bug.worlds)
    assert result.holds
    assert not result.violated
    assert result.upper <= result.claimed + result.slack


def test_a_discrete_gaussian_at_the_analytic_sigma_triples_delta() -> None:
    wrong = gaussian(analytic_variance(8, 1e-6), DiscreteGaussianLaw, 1, ApproxDP(8, "1e-6"))
    result = verify.check(wrong, worlds([0, 1], range(3)), epsilons=[8])
    assert 2.5 < float(result.lower) / 1e-6 < 4


def test_lying_instead_of_keeping_is_as_private_but_biased() -> None:
    with precision(64):
        for bit in (0, 1):
            assert KeptResponse(Fraction(1)).mean_estimate(bit).overlaps(bit)
            assert not KeptResponse(Fraction(1), lies=True).mean_estimate(bit).overlaps(bit)
