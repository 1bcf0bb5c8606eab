"""The choosing mechanism and point functions: thresholds that are enough and nearly least, claims that hold."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from statistical import fits, rejects
from threshold_worlds import ADD_REMOVE, BOTH, LETTERS, REPLACE_ONE, assert_pays_first, assert_refuses, enclosed, small

from discreet.adaptive.choosing_mechanism import Choosing, PointFunction, PointFunctionLearner
from discreet.adaptive.no_answer import NO_ANSWER
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms.exponential import exponential_outcomes
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP
from discreet.privacy.outcomes import Outcomes


def choosing(relation: Any, epsilon: Any = 2, delta: Any = "0.01", growth: int = 1) -> Choosing:
    return Choosing(epsilon=epsilon, delta=Fraction(delta), growth=growth, relation=relation)


def singles(data: Any) -> Counter[Any]:
    return Counter(data)


def pairs(data: Any) -> Counter[Any]:
    """Every record supports a letter and the next one."""
    return Counter(letter for record in data for letter in (record, chr(ord(record) + 1)))


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("growth", "quality"), [(1, singles), (2, pairs)], ids=["one", "two"])
@pytest.mark.parametrize("delta", ["0.2", "0.01"])
def test_claim_holds_on_all_data_sets_of_six(relation: Any, growth: int, quality: Any, delta: str) -> None:
    mechanism = choosing(relation, 4, delta, growth)
    report = verify.check(mechanism, small(LETTERS[:4], relation, 6), query=quality)
    assert report.holds, str(report)


@pytest.mark.parametrize("growth", [1, 3, 100])
@pytest.mark.parametrize(("epsilon", "share"), [(1, "0.5"), (2, "0.2"), (2, "0.8"), ("0.3", "0.9")])
@pytest.mark.parametrize("relation", BOTH)
def test_threshold_is_enough_and_nearly_least(relation: Any, growth: int, epsilon: Any, share: str) -> None:
    """By definition: P[b + noise > T] min(1, k e^(rate (1 - b))) <= delta for every b, k twice if one is replaced."""
    delta = Fraction("1e-4")
    mechanism = Choosing(epsilon=epsilon, delta=delta, growth=growth, relation=relation, test_share=Fraction(share))
    last = math.ceil(math.log(growth / 1e-5) / float(mechanism.rate)) + 1

    def worst(threshold: int) -> Any:
        return max(
            float((mechanism.law.survival(threshold - b) * _new(mechanism, b)).upper()) for b in range(1, last + 1)
        )

    with precision(128):
        assert worst(mechanism.threshold) <= delta
        assert worst(mechanism.threshold - 2) > delta


def _new(mechanism: Choosing, best: int) -> Any:
    times = 1 if mechanism.relation is ADD_REMOVE else 2
    return (ball(times * mechanism.growth) * ball(mechanism.rate * (1 - best)).exp()).min(ball(1))


@dataclass(frozen=True)
class Bold:
    """The same with a threshold as for an answer that is exact: new candidates are forgotten."""

    mechanism: Choosing
    threshold: int
    relation: Any = ADD_REMOVE
    symmetric: bool = True

    @property
    def event(self) -> ApproxDP:
        return self.mechanism.event

    def distribution(self, qualities: Any) -> Outcomes:
        if not qualities:
            return outcomes.point(NO_ANSWER)
        made = self.mechanism.law.survival(self.threshold - max(qualities.values()))
        choice = exponential_outcomes(qualities, factor=self.mechanism.rate)
        return outcomes.mixture([(made, choice), (1 - made, outcomes.point(NO_ANSWER))])


def test_a_threshold_that_forgets_new_candidates_is_refuted() -> None:
    right = Choosing(epsilon=2, delta=Fraction("0.01"), growth=1, relation=ADD_REMOVE, test_share=Fraction(9, 10))
    naive = math.ceil(1 + math.log(1 / 0.02) / 1.8)
    assert naive < right.threshold
    wrong = Bold(right, naive)
    world = [("a",) * n + extra for n in range(12) for extra in ((), ("b",))]
    assert verify.check(wrong, world, query=singles).violated
    assert verify.check(Bold(right, right.threshold), world, query=singles).holds


def test_replacing_billed_as_adding_is_refuted() -> None:
    """Qualities that move both ways, with the rate for those that move one way."""
    wrong = Choosing(epsilon=4, delta=Fraction("0.01"), growth=1, relation=ADD_REMOVE, test_share=Fraction(1, 4))
    report = verify.check(wrong, worlds("ab", [16]), relation=REPLACE_ONE, claim=wrong.event, query=singles)
    assert report.violated
    right = replace(wrong, relation=REPLACE_ONE)
    assert verify.check(right, worlds("ab", [16]), query=singles).holds


def test_choices_are_made_reliably_where_support_is_large() -> None:
    for relation in BOTH:
        mechanism = choosing(relation, 1, "1e-6", 5)
        quality = mechanism.reliable_quality("0.999")
        assert enclosed(mechanism.law, "survival", mechanism.threshold - quality)[0] >= 0.999
    assert mechanism.release({"a": 10**6, "b": 3}).value == "a"
    assert mechanism.release({"a": 1 << 80, "b": 3}).value == "a"
    assert mechanism.release({}).value == mechanism.release({"a": 0, "b": -4}).value == NO_ANSWER


@pytest.mark.statistical
def test_release_follows_distribution() -> None:
    mechanism, support = choosing(ADD_REMOVE, 2, "0.2"), {"a": 4, "b": 3, "c": 1}
    with precision(128):
        right = mechanism.distribution(support).masses
        wrong = mechanism.distribution({"a": 3, "b": 4, "c": 1}).masses
    places = {outcome: place for place, outcome in enumerate(right)}
    sample = [places[mechanism.release(support).value] for _ in range(800)]
    assert fits(sample, [float(mass) for mass in right.values()])
    assert rejects(sample, [float(wrong[outcome]) for outcome in places])


EXAMPLES = [("x", 1), ("x", 0), ("y", 1), (None, 1)]


@pytest.mark.parametrize("relation", BOTH)
def test_point_functions_are_learned_privately(relation: Any) -> None:
    learner = PointFunctionLearner(epsilon=Fraction(4), delta=Fraction("0.05"), relation=relation)
    report = verify.check(learner, small(EXAMPLES, relation, 5))
    assert report.holds, str(report)


def test_point_functions_are_learned_whatever_the_number_of_points() -> None:
    learner = PointFunctionLearner(epsilon=Fraction(1), delta=Fraction("1e-6"), relation=REPLACE_ONE)
    enough = learner.reliable_positives("0.999999999999")
    rare = [(f"point {number}", 0) for number in range(1000)]
    release = learner.release([*rare, *[(2**70, 1)] * enough])
    assert release.value == PointFunction(2**70)
    assert [release.value(point) for point in (2**70, 2.0**70, 2**70 + 1, "x", None)] == [1, 1, 0, 0, 0]
    nothing = learner.release(rare)
    assert nothing.value == PointFunction()
    assert [nothing.value(point) for point in ("x", None, 0)] == [0, 0, 0]
    assert str(nothing.value) == "0 everywhere"
    assert nothing.cost == release.cost


def test_pays_first_and_refuses_nonsense() -> None:
    mechanism = choosing(REPLACE_ONE)
    assert_pays_first(PointFunctionLearner(epsilon=Fraction(1), delta=Fraction(1, 10), relation=ADD_REMOVE), EXAMPLES)
    good = {"epsilon": 1, "delta": "0.1", "growth": 1, "relation": ADD_REMOVE, "test_share": "0.5"}
    assert_refuses(Choosing, good, numbers=["epsilon", "delta", "growth", "test_share"])
    good = {"epsilon": 1, "delta": "0.1", "relation": ADD_REMOVE}
    assert_refuses(PointFunctionLearner, good, numbers=["epsilon", "delta"])
    with pytest.raises(InvalidParameter):
        mechanism.release({"a": 1.5})  # type: ignore[dict-item]
