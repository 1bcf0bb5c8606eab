"""Stable answers: distances by definition, one step between neighbours, claims that hold, and those that do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from statistical import fits, rejects
from threshold_worlds import (
    ADD_REMOVE,
    BOTH,
    LETTERS,
    REPLACE_ONE,
    assert_pays_first,
    assert_refuses,
    distances_to,
    enclosed,
    multisets,
    neighbours_of,
    small,
)

from discreet.adaptive.no_answer import NO_ANSWER, NoAnswer
from discreet.adaptive.stability import (
    DistanceTest,
    ReleaseIfStable,
    StableMode,
    StableQuery,
    StableSelection,
    mode_distance,
)
from discreet.balls import ball, precision
from discreet.errors import DiscreetError, Refused
from discreet.lab import verify
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP
from discreet.privacy.outcomes import Outcomes

DOMAIN = LETTERS


def mode_of(data: Any, domain: Any = DOMAIN) -> Any:
    """The first of the most frequent values, by definition."""
    return max(domain, key=lambda value: (data.count(value), -domain.index(value)))


def stable_mode(relation: Any, epsilon: Any = 1, delta: Any = "0.01", domain: Any = DOMAIN) -> StableMode:
    return StableMode(domain=domain, epsilon=epsilon, delta=delta, relation=relation)


def counts_of(data: Any, domain: Any = DOMAIN) -> list[int]:
    return [data.count(value) for value in domain]


@pytest.mark.parametrize("relation", BOTH)
def test_mode_distance_is_the_distance_to_another_mode(relation: Any) -> None:
    """C16, on all data sets of up to six over five values; no shortest way needs more than one value more."""
    here = list(small(DOMAIN, relation, 6))
    there = multisets(DOMAIN, range(8) if relation is ADD_REMOVE else [6])
    modes = {data: mode_of(data) for data in there}
    for mode in DOMAIN:
        mine = [data for data in here if modes[data] == mode]
        others = [data for data in there if modes[data] != mode]
        for data, steps in zip(mine, distances_to(mine, others, relation), strict=True):
            assert mode_distance(counts_of(data), relation) == steps


@pytest.mark.parametrize("relation", BOTH)
def test_distances_move_by_one_and_are_one_where_modes_differ(relation: Any) -> None:
    found = small(DOMAIN, relation, 6)
    change = verify.sensitivity(lambda data: mode_distance(counts_of(data), relation), found, relation=relation)
    assert change.value == 1
    for data in found:
        for other in neighbours_of(data, DOMAIN, relation):
            if mode_of(other) != mode_of(data):
                assert mode_distance(counts_of(data), relation) == 1


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("domain", [DOMAIN, None], ids=["declared", "anything"])
def test_stable_mode_keeps_its_claim_on_all_data_sets_of_six(relation: Any, domain: Any) -> None:
    report = verify.check(stable_mode(relation, domain=domain), small(DOMAIN, relation, 6), epsilons=[0, "0.5", 1])
    assert report.holds, str(report)


@pytest.mark.parametrize("relation", BOTH)
def test_the_noisy_distance_costs_nothing_more(relation: Any) -> None:
    """Every outcome (answer, distance) is compared; the whole claim is for both."""
    both = StableMode(domain=DOMAIN[:3], epsilon=1, delta="0.01", relation=relation, with_distance=True)
    assert both.event == stable_mode(relation).event
    report = verify.check(both, small(DOMAIN[:3], relation, 5), epsilons=[0, "0.5", 1])
    assert report.holds, str(report)


def test_a_distance_that_is_drawn_again_is_found_out() -> None:
    """The planted mistake: the answer by one noise and the distance by another, for the price of one."""

    @dataclass(frozen=True)
    class Twice:
        relation: Any = ADD_REMOVE

        @property
        def event(self) -> Any:
            return stable_mode(ADD_REMOVE).event

        def distribution(self, data: Any) -> Outcomes:
            alone = stable_mode(ADD_REMOVE).distribution(data)
            law = DistanceTest(epsilon=Fraction(1), delta=Fraction(1, 100)).law
            return outcomes.product(alone, outcomes.from_law(law, mode_distance(counts_of(data), ADD_REMOVE)))

    assert verify.check(Twice(), small(DOMAIN[:3], ADD_REMOVE, 5)).violated


@pytest.mark.parametrize("count", [1, 10**6])
def test_answer_and_distance_come_from_one_draw(count: int) -> None:
    query = StableQuery(evaluate=len, distance_to_instability=lambda data: data.stop, relation=ADD_REMOVE)
    selection = StableSelection(
        epsilon=1, delta="0.01", sensitivity=1, candidates=2, relation=ADD_REMOVE, monotone=True, with_distance=True
    )
    for mechanism, data in (
        (ReleaseIfStable(query=query, epsilon=1, delta="0.01", with_distance=True), range(count)),
        (
            StableMode(domain=("a", "b"), epsilon=1, delta="0.01", relation=ADD_REMOVE, with_distance=True),
            ["a"] * count,
        ),
        (selection, [count, 0]),
    ):
        for _ in range(40 if count == 1 else 1):
            found = mechanism.release(data)
            answer, distance = found.value
            assert (answer == NO_ANSWER) == (distance <= mechanism.test.threshold)
            assert found.as_dict() == {"answer": answer, "noisy distance": distance}


def test_stable_mode_of_an_undeclared_domain_rivals_values_that_nobody_has() -> None:
    mechanism = stable_mode(ADD_REMOVE, 1, "0.3", domain=None)
    with precision(64):
        alone, contested = (mechanism.distribution(data).masses for data in (["a"] * 9, ["a"] * 9 + ["b"] * 3))
        assert alone["a"].overlaps(mechanism.test.chance(9))
        assert contested["a"].overlaps(mechanism.test.chance(7))
    assert mechanism.release([]).value == NO_ANSWER
    assert mechanism.release([7.0] * 1000).value == 7


@dataclass(frozen=True)
class Literal:
    """An answer with its noisy distance, and somebody's own distance, noise and threshold; grid steps to a unit."""

    answer: Callable[[Any], Any]
    distance: Callable[[Any], int]
    epsilon: Fraction
    threshold: float
    event: ApproxDP
    relation: Any
    steps: int = 1
    symmetric: bool = True

    def distribution(self, data: Any) -> Outcomes:
        noisy = outcomes.from_law(DiscreteLaplaceLaw(self.steps / self.epsilon), self.steps * self.distance(data))
        answer = self.answer(data)
        return outcomes.map(noisy, lambda value: (value, answer if value > self.steps * self.threshold else None))


def gap(data: Any) -> int:
    """The largest count minus the second largest: the distance of the notes."""
    first, second, *_ = sorted(counts_of(data), reverse=True)
    return first - second


def own(relation: Any) -> Callable[[Any], int]:
    return lambda data: mode_distance(counts_of(data), relation)


def literal(relation: Any, distance: Any, epsilon: int, threshold: float) -> Literal:
    return Literal(mode_of, distance, Fraction(epsilon), threshold, ApproxDP(epsilon, "1e-4"), relation)


TESTS = {epsilon: DistanceTest(epsilon=Fraction(epsilon), delta=Fraction("1e-4")) for epsilon in (1, 2, 4)}
MUTANTS = {
    "ln(1/δ)/ε at ε = 2": literal(ADD_REMOVE, own(ADD_REMOVE), 2, math.log(1e4) / 2),
    "ln(1/δ)/ε at ε = 4": literal(ADD_REMOVE, own(ADD_REMOVE), 4, math.log(1e4) / 4),
    "ln(1/(2δ))/ε without the 1, ε = 1": literal(ADD_REMOVE, own(ADD_REMOVE), 1, math.log(5e3)),
    "ln(1/(2δ))/ε without the 1, ε = 2": literal(REPLACE_ONE, own(REPLACE_ONE), 2, math.log(5e3) / 2),
    "gap max − second where units are replaced": literal(REPLACE_ONE, gap, 1, TESTS[1].threshold),
    "noise 1/ε on the gap where units are replaced": literal(REPLACE_ONE, own(ADD_REMOVE), 1, TESTS[1].threshold),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_stable_modes_are_refuted(name: str) -> None:
    wrong = MUTANTS[name]
    report = verify.check(wrong, small(DOMAIN[:3], wrong.relation, 4))
    assert report.violated


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_right_distances_and_thresholds_pass_with_the_noisy_distance_released(relation: Any, epsilon: int) -> None:
    right = literal(relation, own(relation), epsilon, TESTS[epsilon].threshold)
    assert verify.check(right, small(DOMAIN[:3], relation, 4)).holds


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", 1, 4, 20])
@pytest.mark.parametrize("delta", ["0.4", "1e-3", "1e-12"])
def test_threshold_is_the_least_that_keeps_the_promise(epsilon: Any, delta: str) -> None:
    """At distance one the chance is delta at most; with a threshold one lower it is more."""
    test = DistanceTest(epsilon=epsilon, delta=Fraction(delta))
    with precision(256):
        assert test.chance(1) <= ball(Fraction(delta))
        assert test.chance(0) <= test.chance(1)
        assert test.chance(2) > ball(Fraction(delta)) or test.threshold == 1
    real = 1 + math.log(1 / (2 * float(Fraction(delta)))) / float(Fraction(epsilon))
    assert test.threshold - real < 1


def test_reliable_distance_passes_reliably_and_is_the_least() -> None:
    for test in TESTS.values():
        far = test.reliable_distance("0.99")
        assert enclosed(test, "chance", far)[0] >= 0.99
        assert enclosed(test, "chance", far - 1)[1] < 0.99
    mode = stable_mode(REPLACE_ONE)
    assert mode.true_distance(["a"] * 5 + ["b"]).value == 3
    assert StableSelection(**SCORES, relation=REPLACE_ONE).true_distance([5, 1, 0]).value == 3
    assert mode.reliable_lead() == 2 * mode.test.reliable_distance()


@pytest.mark.statistical
def test_test_passes_as_often_as_it_says() -> None:
    test = DistanceTest(epsilon=Fraction(1), delta=Fraction(3, 10))
    for distance in (1, 2):
        chance = sum(enclosed(test, "chance", distance)) / 2
        sample = [int(test.passes(distance)) for _ in range(1000)]
        assert fits(sample, [1 - chance, chance])
        assert rejects(sample, [1 - chance / 2, chance / 2])


def test_a_refusal_is_a_value_that_costs_the_same() -> None:
    mechanism = stable_mode(ADD_REMOVE)
    told = mechanism.release(["a"] * 1000)
    # Nothing passes once in a hundred times, that is its delta; five times in a row it does not.
    silent = next(release for release in (mechanism.release([]) for _ in range(5)) if release.value == NO_ANSWER)
    assert told.value == "a"
    assert silent.value == NoAnswer()
    assert told.event == silent.event
    assert told.cost == silent.cost == "ε = 1, δ = 0.01"
    assert "no answer" in repr(silent)
    for release in (told, silent):
        with pytest.raises(Refused):
            release.interval()


def has_b(data: Any) -> Any:
    """Whether any record is `b`; stable only where several are."""
    return "b" in data


def letters_needed(data: Any) -> int:
    """One `b` after another goes or changes, or one comes."""
    return int(max(1, data.count("b")))


@pytest.mark.parametrize("relation", BOTH)
def test_any_query_with_a_distance_is_released_if_stable(relation: Any) -> None:
    query = StableQuery(evaluate=has_b, distance_to_instability=letters_needed, relation=relation)
    mechanism = ReleaseIfStable(query=query, epsilon=Fraction(1), delta=Fraction("0.01"))
    report = verify.check(mechanism, small(("a", "b"), relation, 6))
    assert report.holds, str(report)
    assert mechanism.release(["b"] * 100).value is True
    assert mechanism.true_distance(["b"] * 7).value == 7
    assert_pays_first(mechanism, ("a",))


def test_a_distance_that_jumps_is_refuted() -> None:
    """Twice the distance: it moves by two."""
    query = StableQuery(
        evaluate=has_b, distance_to_instability=lambda data: max(1, 2 * data.count("b")), relation=ADD_REMOVE
    )
    wrong = ReleaseIfStable(query=query, epsilon=Fraction(1), delta=Fraction("0.0001"))
    assert verify.check(wrong, small(("b",), ADD_REMOVE, 9)).violated


SCORES = {"epsilon": Fraction(1), "delta": Fraction("0.01"), "sensitivity": 1, "candidates": 3}


@pytest.mark.parametrize(
    "mechanism",
    [
        StableSelection(**SCORES, relation=ADD_REMOVE, monotone=True),
        StableSelection(**SCORES, relation=ADD_REMOVE),
        StableSelection(**SCORES, relation=REPLACE_ONE),
        StableSelection(**SCORES | {"sensitivity": 2}, relation=REPLACE_ONE),
    ],
    ids=["monotone", "both ways", "replaced", "sensitivity two"],
)
def test_stable_selection_keeps_its_claim(mechanism: StableSelection) -> None:
    def scores(data: Any) -> list[int]:
        signs = [1, 1, 1] if mechanism.monotone else [1, -1, 1]
        return [mechanism.sensitivity * s * n for s, n in zip(signs, counts_of(data, LETTERS[:3]), strict=True)]

    report = verify.check(mechanism, small(LETTERS[:3], mechanism.relation, 6), query=scores)
    assert report.holds, str(report)


def test_stable_selection_agrees_with_stable_mode() -> None:
    for data in multisets(DOMAIN, [6]):
        scores = counts_of(data)
        chosen = StableSelection(**SCORES | {"candidates": 5}, relation=REPLACE_ONE)
        with precision(64):
            one = chosen.distribution(scores).masses
            other = stable_mode(REPLACE_ONE).distribution(list(data)).masses
        assert {DOMAIN[k] if isinstance(k, int) else k: str(v) for k, v in one.items()} == {
            k: str(v) for k, v in other.items()
        }


def test_pays_first_and_refuses_nonsense() -> None:
    assert_pays_first(stable_mode(REPLACE_ONE), ["a"])
    assert_refuses(DistanceTest, {"epsilon": 1, "delta": "0.1"}, numbers=["epsilon", "delta"])
    good = {"domain": DOMAIN, "epsilon": 1, "delta": "0.1", "relation": ADD_REMOVE}
    assert_refuses(StableMode, good, numbers=["epsilon", "delta"])
    for domain in ((), ("a",), ("a", "a"), "ab", 5, ([],), (math.nan, 1)):
        with pytest.raises(DiscreetError):
            StableMode(**good | {"domain": domain})
    numbers = ["epsilon", "delta", "sensitivity", "candidates"]
    assert_refuses(StableSelection, SCORES | {"relation": REPLACE_ONE}, numbers=numbers)
    for extra in ({"candidates": 1}, {"relation": REPLACE_ONE, "monotone": True}):
        with pytest.raises(DiscreetError):
            StableSelection(**SCORES | {"relation": ADD_REMOVE} | extra)
