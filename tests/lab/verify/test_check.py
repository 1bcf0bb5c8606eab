"""The verifier's numbers enclose the truth, whatever is left out of a listing, and its words promise no more."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutants import Exponential, Noisy, counts

from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.lab.verify.checking import SLACK
from discreet.lab.verify.claim import DivergenceMeasure
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy.events import PureDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
PAIR = worlds([0, 1], [1])
PEOPLE = worlds([1], range(4))
NO_SLACK = Fraction(1, 2**1000)


@dataclass(frozen=True)
class Table:
    """A law for each of two data sets; hidden outcomes of either are left out and make its tail."""

    laws: tuple[dict[Any, Fraction], dict[Any, Fraction]]
    hidden: frozenset[tuple[int, Any]] = frozenset()

    def distribution(self, data: tuple[int, ...]) -> Outcomes:
        (side,) = data
        law = self.laws[side]
        shown = {value: ball(mass) for value, mass in law.items() if (side, value) not in self.hidden}
        rest = sum((mass for value, mass in law.items() if (side, value) in self.hidden), Fraction(0))
        return Outcomes(shown, rest)


@st.composite
def tables(draw: Any, least: int = 0, hide: bool = False) -> Table:
    size = draw(st.integers(2, 5))
    rows = [draw(st.lists(st.integers(least, 20), min_size=size, max_size=size)) for _ in range(2)]
    laws = [{i: Fraction(w, sum(row)) for i, w in enumerate(row)} if sum(row) else {0: Fraction(1)} for row in rows]
    places = st.tuples(st.integers(0, 1), st.integers(0, size - 1))
    hidden = draw(st.sets(places, max_size=size)) if hide else set()
    return Table((laws[0], laws[1]), frozenset(hidden))


def hockey_stick(p: dict[Any, Fraction], q: dict[Any, Fraction], factor: Any) -> Any:
    terms = [ball(mass) - factor * ball(q.get(value, Fraction(0))) for value, mass in p.items()]
    return sum((term.max(ball(0)) for term in terms), ball(0))


def both_orders(table: Table, divergence: Any) -> list[Any]:
    return [divergence(*table.laws), divergence(*reversed(table.laws))]


@given(tables(hide=True), st.sampled_from([0, Fraction(1, 3), 1, 2]), st.sampled_from([0, Fraction(1, 2), 1]))
def test_delta_encloses_the_truth_for_all_listings(table: Table, epsilon: Fraction, claim: Fraction) -> None:
    # The claim decides which pairs floats settle and which go to balls; neither may lose the truth.
    result = verify.check(table, PAIR, relation=REPLACE_ONE, claim=lambda _: claim, epsilons=[epsilon], slack=NO_SLACK)
    with precision(256):
        factor = ball(epsilon).exp()
        truth = [bounds(value) for value in both_orders(table, lambda p, q: hockey_stick(p, q, factor))]
    assert result.lower <= max(high for _, high in truth)
    assert max(low for low, _ in truth) <= result.upper


@given(tables(hide=True))
def test_epsilon_is_never_bounded_above_the_truth_for_all_listings(table: Table) -> None:
    result = verify.check(table, PAIR, relation=REPLACE_ONE, claim=0, slack=NO_SLACK)
    with precision(256):
        truth = max(both_orders(table, _max_divergence))
    assert result.lower <= truth
    if not table.hidden:
        assert result.upper >= truth


def _max_divergence(p: dict[Any, Fraction], q: dict[Any, Fraction]) -> Any:
    """The largest log-ratio, rounded up."""
    ratios = [mass / q[value] if q.get(value) else math.inf for value, mass in p.items() if mass]
    return math.inf if max(ratios) == math.inf else bounds(ball(Fraction(max(ratios))).log())[1]


@given(tables(least=1, hide=True), st.integers(2, 5))
def test_renyi_divergence_encloses_the_truth_for_all_listings(table: Table, order: int) -> None:
    result = verify.check_renyi(table, PAIR, relation=REPLACE_ONE, claim=lambda _: 100, orders=[order], slack=NO_SLACK)

    def truth(p: dict[Any, Fraction], q: dict[Any, Fraction]) -> Fraction:
        return sum((mass**order / q[value] ** (order - 1) for value, mass in p.items()), Fraction(0))

    with precision(256):
        low, high = bounds(ball(max(both_orders(table, truth))).log() / (order - 1))
    assert result.lower <= high
    assert low <= result.upper


@given(tables(least=1))
def test_a_claim_of_the_exact_divergence_holds_and_less_is_violated_for_all_tables(table: Table) -> None:
    truth = max(both_orders(table, lambda p, q: sum(max(m - q[v], 0) for v, m in p.items())))
    exact = verify.check(table, PAIR, relation=REPLACE_ONE, claim=lambda _: truth, epsilons=[0])
    assert exact.holds
    if truth:
        less = truth * (1 - Fraction(1, 2**40))
        assert verify.check(table, PAIR, relation=REPLACE_ONE, claim=lambda _: less, epsilons=[0]).violated


def test_outcomes_left_out_are_neither_a_violation_nor_allowed() -> None:
    law = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    table = Table((law, law), hidden=frozenset({(0, "b"), (1, "b")}))
    result = verify.check(table, PAIR, relation=REPLACE_ONE, claim=1)
    assert not result.holds
    assert not result.violated
    assert result.worst.verdict == "open"
    assert "left open" in str(result)
    assert verify.check(table, PAIR, relation=REPLACE_ONE, claim=1, slack=Fraction(3, 4)).holds


def test_an_outcome_that_only_one_side_can_have_refutes_every_epsilon() -> None:
    table = Table(({"a": Fraction(1)}, {"a": 1 - Fraction(1, 2**70), "b": Fraction(1, 2**70)}))
    result = verify.check(table, PAIR, relation=REPLACE_ONE, claim=600)
    assert result.violated
    assert result.lower == math.inf
    assert result.worst_pair == ((1,), (0,))


def test_laplace_noise_reaches_its_epsilon_and_does_not_exceed_it() -> None:
    mechanism = Noisy(counts(1), [DiscreteLaplaceLaw(Fraction(3))], PureDP("1/3"), ADD_REMOVE)
    result = verify.check(mechanism, PEOPLE, claim=Fraction(1, 3))
    assert result.holds
    assert result.upper == Fraction(1, 3)
    assert Fraction(1, 3) - result.lower < Fraction(1, 2**100)


def test_a_profile_is_compared_at_each_epsilon() -> None:
    mechanism = Noisy(counts(1), [DiscreteLaplaceLaw(Fraction(1))], PureDP(1), ADD_REMOVE)

    def profile(epsilon: Fraction) -> Fraction:
        """Discrete Laplace noise on a count has the profile of randomized response."""
        with precision(128):
            e = ball(1).exp()
            return max(Fraction(0), bounds((e - ball(epsilon).exp()) / (1 + e))[1])

    points = [0, "0.25", "0.5", 1, 2]
    result = verify.check(mechanism, PEOPLE, claim=profile, epsilons=points)
    assert result.holds
    assert [finding.claim.at for finding in result.findings] == [Fraction(point) for point in points]
    assert all(finding.claim.measure is DivergenceMeasure.DELTA for finding in result.findings)
    slightly = verify.check(mechanism, PEOPLE, claim=lambda e: profile(e) * Fraction("0.999"), epsilons=points)
    assert [finding.violated for finding in slightly.findings] == [True, True, True, False, False]


@dataclass(frozen=True)
class Blurred:
    """A fair coin whose probabilities are known to `bits` bits less than the working precision."""

    loss: int
    symmetric: bool = True

    def distribution(self, data: tuple[int, ...]) -> Outcomes:
        from flint import arb, ctx

        half = arb(0.5, 2.0 ** (self.loss - ctx.prec))
        return Outcomes({0: half, 1: half})


def test_precision_is_raised_until_the_claim_is_decided() -> None:
    sharp = verify.check(Blurred(20), PAIR, relation=REPLACE_ONE, claim=0)
    blurred = verify.check(Blurred(100), PAIR, relation=REPLACE_ONE, claim=0)
    assert (sharp.holds, sharp.bits) == (True, 128)
    assert (blurred.holds, blurred.bits) == (True, 256)
    assert not verify.check(Blurred(500), PAIR, relation=REPLACE_ONE, claim=0).holds


def test_a_large_epsilon_is_followed_far_into_the_tails() -> None:
    mechanism = Noisy(counts(1), [DiscreteLaplaceLaw(Fraction(1, 100))], PureDP(100), ADD_REMOVE)
    result = verify.check(mechanism, PEOPLE, claim=100)
    assert result.holds
    assert result.bits > 128


def test_a_query_may_stand_before_the_mechanism() -> None:
    class Answer:
        def distribution(self, answer: int) -> Outcomes:
            from discreet.privacy import outcomes

            return outcomes.from_law(DiscreteLaplaceLaw(Fraction(2)), answer)

    small = worlds([0, 3], range(3))
    held = verify.check(Answer(), small, relation=ADD_REMOVE, claim="1.5", query=sum)
    assert held.holds
    assert verify.check(Answer(), small, relation=ADD_REMOVE, claim="1.4", query=sum).violated
    unhashable = verify.check(
        Blurred(0), small, relation=ADD_REMOVE, claim=0, query=list
    )  # Inputs that cannot be hashed work too.
    assert unhashable.holds


def test_a_mechanism_that_looks_at_the_order_is_not_verified_on_multisets() -> None:
    class Newest:
        """Answers about the last record only: a multiset has none."""

        def distribution(self, data: tuple[int, ...]) -> Outcomes:
            return Outcomes({data[-1]: ball(Fraction(3, 4)), "else": ball(Fraction(1, 4))})

    with pytest.raises(InvalidParameter, match="ordered=True"):
        verify.check(Newest(), worlds([0, 1], [2]), relation=REPLACE_ONE, claim=1)
    assert verify.check(Newest(), worlds([0, 1], [2], ordered=True), relation=REPLACE_ONE, claim=1).violated


def test_counts_of_worlds_and_pairs_are_reported() -> None:
    mechanism = Exponential("ab", Fraction(1, 2), PureDP(1), REPLACE_ONE)
    result = verify.check(mechanism, worlds("ab", [2]), claim=1)
    assert (result.worlds, result.pairs) == (3, 4)
    assert result.slack == SLACK


@settings(deadline=None, max_examples=25)
@given(tables(least=1))
def test_a_result_in_words_never_promises_a_proof_for_all_tables(table: Table) -> None:
    for claim in (0, 1, 700):
        result = verify.check(table, PAIR, relation=REPLACE_ONE, claim=claim)
        for text in (str(result), result._repr_html_()):
            assert "prove" not in text.lower()
            assert ("no violation in this world" in text) == result.holds
            assert ("VIOLATED" in text) == result.violated


def test_html_escapes_what_a_caller_named() -> None:
    law = {"x": Fraction(1)}
    other = {"y": Fraction(1)}

    class Loud:
        def distribution(self, data: tuple[str, ...]) -> Outcomes:
            return Outcomes({k: ball(v) for k, v in (law if data == ("<b>",) else other).items()})

    result = verify.check(Loud(), [("<b>",), ("c",)], relation=REPLACE_ONE, claim=1)
    assert result.violated
    assert "<b>'" not in result._repr_html_()
    assert "&lt;b&gt;" in result._repr_html_()


def test_a_verification_cannot_be_changed() -> None:
    result = verify.check(Blurred(0), PAIR, relation=REPLACE_ONE, claim=0)
    with pytest.raises(FrozenInstanceError):
        result.slack = Fraction(1)  # type: ignore[misc]


class Bad:
    """A mechanism whose law is whatever it was told."""

    def __init__(self, listed: Any) -> None:
        self.listed = listed

    def distribution(self, data: Any) -> Any:
        return self.listed


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        (lambda: Outcomes({0: ball(Fraction(2, 3)), 1: ball(Fraction(2, 3))}), "sum to 1"),
        (lambda: Outcomes({0: ball(Fraction(1, 3))}), "sum to 1"),
        (lambda: Outcomes({0: ball(Fraction(1, 3))}, Fraction(1, 2)), "sum to 1"),
        (lambda: Outcomes({}), "sum to 1"),
        (lambda: Outcomes({0: ball(2), 1: ball(-1)}), "not negative"),
        (lambda: Outcomes({0: ball(1) / ball(0)}), "finite"),
        (lambda: {0: 1}, "Outcomes"),
    ],
)
def test_masses_that_are_no_probabilities_are_refused(listed: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        verify.check(Bad(listed()), PAIR, relation=REPLACE_ONE, claim=1)


FAIR = Bad(Outcomes({0: ball(1)}))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"claim": 1}, "relation="),
        ({"relation": REPLACE_ONE}, "no event"),
        ({"relation": "replace one", "claim": 1}, "relation must be"),
        ({"relation": REPLACE_ONE, "claim": -1}, "negative"),
        ({"relation": REPLACE_ONE, "claim": float("nan")}, "finite"),
        ({"relation": REPLACE_ONE, "claim": float("inf")}, "finite"),
        ({"relation": REPLACE_ONE, "claim": 701}, "claims nothing"),
        ({"relation": REPLACE_ONE, "claim": True}, "number"),
        ({"relation": REPLACE_ONE, "claim": lambda _: 2}, "between 0 and 1"),
        ({"relation": REPLACE_ONE, "claim": lambda _: 0, "epsilons": []}, "nothing is claimed"),
        ({"relation": REPLACE_ONE, "claim": lambda _: 0, "epsilons": [-1]}, "negative"),
        ({"relation": REPLACE_ONE, "claim": 1, "deltas": [0]}, "deltas"),
        ({"relation": REPLACE_ONE, "claim": 1, "slack": 0}, "slack"),
        ({"relation": ADD_REMOVE, "claim": 1}, "neighbours"),
    ],
)
def test_questions_that_make_no_sense_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        verify.check(FAIR, PAIR, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"orders": [1]},
        {"orders": []},
        {"orders": [float("inf")]},
        {"orders": [2], "claim": 1},
        {"orders": [2], "claim": lambda _: -1},
    ],
)
def test_renyi_questions_that_make_no_sense_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidParameter):
        verify.check_renyi(FAIR, PAIR, **({"relation": REPLACE_ONE, "claim": lambda _: 1} | arguments))


def test_a_mechanism_claims_nothing_under_another_relation() -> None:
    mechanism = Noisy(counts(1), [DiscreteLaplaceLaw(Fraction(1))], PureDP(1), ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="claims nothing under REPLACE_ONE"):
        verify.check(mechanism, PAIR, relation=REPLACE_ONE)
    assert verify.check(mechanism, PAIR, relation=REPLACE_ONE, claim=1).holds


def test_empty_worlds_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one data set"):
        verify.check(FAIR, [], relation=REPLACE_ONE, claim=1)
