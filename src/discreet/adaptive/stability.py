"""Stability-based release: an exact answer where no unit can change it, after a noisy test of the distance."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

from discreet import noise
from discreet.adaptive.bounded_memberships import bounded_totals, shown
from discreet.adaptive.no_answer import NO_ANSWER, NOTHING_TO_ENCLOSE, NoAnswer
from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, positive, positive_integer
from discreet.formatting import record
from discreet.frames.column import Data, column_of
from discreet.mechanisms.exponential import Scores, check_selection, read_whole_scores
from discreet.mechanisms.histogram import bin_counts, read_bins
from discreet.mechanisms.parameters import read_confidence, settle, small_delta
from discreet.mechanisms.release import NoInterval, Release
from discreet.noise.laws import DiscreteLaplaceLaw, Law
from discreet.noise.limits import check_noise_scale
from discreet.privacy import outcomes
from discreet.privacy.events import ApproxDP, Composed, DiscreteLaplace
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "DistanceTest",
    "ReleaseIfStable",
    "StableMode",
    "StableQuery",
    "StableSelection",
    "counted",
    "lead",
    "least_excess",
    "mode_distance",
    "reliable",
    "share_of_chance",
    "stable_outcomes",
    "stable_release",
    "steps_to_change",
]

_EXACT = NoInterval(
    reason="an answer that is given is exact: there is no noise in it, and no confidence interval around it"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceTest:
    """Ask, with noise, whether a distance is clearly above one.

    The distance is a whole number that one unit moves by at most one. Between neighbours that must not be told
    apart by what comes after the test, it must be at most one on both sides.

    Guarantee   epsilon for the result of the test, and for the noisy distance itself; a data set at distance one or
                less passes with probability delta at most.
    Theorem     Noise on a number that one unit moves by one; the threshold T is the smallest whole number with
                P[1 + noise > T] <= delta. For real Laplace noise it is 1 + ln(1 / (2 delta)) / epsilon. [ST13, DR14]
    Utility     `reliable_distance(confidence)` is far enough.
    """

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            delta=small_delta(self.delta, public_rows=None),
        )
        check_noise_scale(self._scale)

    @property
    def law(self) -> DiscreteLaplaceLaw:
        """The law of the noise on the distance."""
        return DiscreteLaplaceLaw(self._scale)

    @property
    def threshold(self) -> int:
        """A noisy distance above this passes."""
        return 1 + least_excess(self.law, self.delta)

    @property
    def event(self) -> Composed:
        """What a test spends before an answer that is exact, or that pays for itself between near neighbours."""
        return Composed([DiscreteLaplace(scale=self._scale, sensitivity=1), ApproxDP(0, self.delta)])

    def noisy(self, distance: int) -> int:
        """Release a private distance with noise. It passes the test if it is above the threshold."""
        return distance + noise.discrete_laplace(self._scale)

    def passes(self, distance: int) -> bool:
        """Test a private distance."""
        return self.noisy(distance) > self.threshold

    def chance(self, distance: int) -> arb:
        """Enclose the probability that a distance passes, at the working precision."""
        return self.law.survival(self.threshold - distance)

    def reliable_distance(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return a distance that passes with at least this probability. It is public."""
        return reliable(self.law, self.threshold, exact(confidence, name="confidence"))

    @property
    def _scale(self) -> Fraction:
        return 1 / self.epsilon


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableQuery:
    """A function of the data, with how many units must change before its answer can change.

    `distance_to_instability` returns a whole number of at least 1 that moves by at most 1 between neighbours and is
    1 on both of two neighbours with different answers. The true distance to a different answer is one; a lower bound
    with these properties does. `verify.sensitivity` and `verify.check` look for a counterexample in small worlds.

    Args:
        evaluate: The function from private data to the answer.
        distance_to_instability: The function from private data to that number.
        relation: The neighbouring relation that the distance counts by.

    Examples:
        >>> query = dp.adaptive.StableQuery(
        ...     evaluate=lambda votes: sum(votes) > 0,
        ...     distance_to_instability=lambda votes: max(1, abs(sum(votes))),
        ...     relation=dp.Relation.ADD_REMOVE,
        ... )
        >>> query.distance_to_instability([1, 1, 1, -1])
        2
    """

    evaluate: Callable[[Any], Hashable]
    distance_to_instability: Callable[[Any], int]
    relation: Relation

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseIfStable:
    """Answer exactly if the noisy distance to another answer is above a threshold; otherwise do not answer.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     Neighbours with the same answer differ in the noisy distance only. Neighbours with different answers
                are both at distance one: they are refused alike, and answered with probability delta at most.
                [ST13, DR14]
    Utility     the answer has no noise, whatever the size of its domain; it is given with probability c if the
                distance is `reliable_distance(c)`, about (ln(1 / (2 delta)) + ln(1 / (2 - 2c))) / epsilon.

    Args:
        query: The answer, and how many units must change before it can change.
        epsilon: What a release spends.
        delta: The chance that an unstable answer passes the test; a release spends this, too.
        with_distance: Whether the noisy distance to another answer is released as well, `(answer, distance)`, for the
            same price.

    Examples:
        >>> query = dp.adaptive.StableQuery(
        ...     evaluate=lambda votes: sum(votes) > 0,
        ...     distance_to_instability=lambda votes: max(1, abs(sum(votes))),
        ...     relation=dp.Relation.ADD_REMOVE,
        ... )
        >>> mechanism = dp.adaptive.ReleaseIfStable(query=query, epsilon=1, delta=1e-12)
        >>> mechanism.release([1] * 1000 + [-1] * 10).value
        True
        >>> mechanism.release([1, -1]).value
        NoAnswer()
    """

    query: StableQuery
    epsilon: Fraction
    delta: Fraction
    with_distance: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        test = DistanceTest(epsilon=self.epsilon, delta=self.delta)
        settle(self, epsilon=test.epsilon, delta=test.delta)

    @property
    def relation(self) -> Relation:
        return self.query.relation

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Composed:
        return self.test.event

    def release(self, data: Any, *, session: Payer | None = None) -> Release[Any]:
        """Answer, or decline to."""
        with paid(session, self, purpose="an answer if it is stable"):
            return stable_release(self.test, *self._answer(data), self.relation, with_distance=self.with_distance)

    def distribution(self, data: Any) -> Outcomes:
        return stable_outcomes(self.test, *self._answer(data), with_distance=self.with_distance)

    def true_distance(self, data: Any) -> NotPrivate[int]:
        """Tell the custodian how far the data are from another answer."""
        return NotPrivate(self._answer(data)[1])

    def _answer(self, data: Any) -> tuple[Hashable, int]:
        return self.query.evaluate(data), self.query.distance_to_instability(data)


def stable_release(
    test: DistanceTest, answer: Any, distance: int, relation: Relation | str, *, with_distance: bool = False
) -> Release[Any]:
    """Release the answer if its distance passes; with the noisy distance beside it, if that is asked for.

    The distance costs nothing more: the answer follows from it, and the test pays for all of it.
    """
    relation, noisy = read_relation(relation), test.noisy(distance)
    passed = noisy > test.threshold and not isinstance(answer, NoAnswer)
    value = answer if passed else NO_ANSWER
    return Release(
        value=(value, noisy) if with_distance else value,
        event=test.event,
        relation=relation,
        accuracy=_EXACT if passed else NOTHING_TO_ENCLOSE,
        labels=("answer", "noisy distance") if with_distance else None,
        delta=test.delta,
    )


def stable_outcomes(test: DistanceTest, answer: Hashable, distance: int, *, with_distance: bool = False) -> Outcomes:
    """List the law of what `stable_release` releases."""
    if with_distance:
        noisy = outcomes.from_law(test.law, distance)
        return outcomes.map(noisy, lambda found: (answer if found > test.threshold else NO_ANSWER, found))
    chance = test.chance(distance)
    return outcomes.mixture([(chance, outcomes.point(answer)), (1 - chance, outcomes.point(NO_ANSWER))])


# --- thresholds: Thresholds that noise rarely exceeds: exact for noise on the integers. ---


_BITS = 256


@lru_cache(1024)
def least_excess(law: Law, chance: Fraction) -> int:
    """Return the smallest t >= 0 with P[X > t] <= chance, for a law that is symmetric about zero.

    Where no ball can tell the two apart, t is one more than it might be.
    """
    return 0 if 2 * chance >= 1 else law.half_width(1 - 2 * chance)


def reliable(law: Law, threshold: int, confidence: Fraction) -> int:
    """Return a number that exceeds the threshold with at least this probability after noise."""
    # P[n + X > threshold] = P[X < n - threshold], by symmetry.
    return threshold + 1 + least_excess(law, 1 - read_confidence(confidence))


@lru_cache(1024)
def share_of_chance(delta: Fraction, trials: int) -> Fraction:
    """Return the largest p, rounded down, for which one of `trials` independent events of chance p has chance delta.

    That is p = 1 - (1 - delta)^(1 / trials), at least delta / trials.
    """
    if trials == 1:
        return delta
    with precision(_BITS + delta.denominator.bit_length()):
        return bounds(-(((-ball(delta)).log1p() / trials).expm1()))[0]


# --- stable_mode ---
# The most frequent value, or the best candidate, exactly, if no few units can change which one it is.


# --- mode: The most frequent value, exactly, if no few units can change which one it is. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableMode:
    """Return the most frequent value if it is clearly the most frequent one.

    The domain is public, and its order breaks ties: of equals the first one wins. Rows outside it are not counted.
    With `domain=None` every key counts, ties are broken by the order of keys, and a value nobody has is a rival.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     Another value wins once its count exceeds the winner's, or equals it if it comes first. Under
                add-remove that takes min over b of c_a - c_b + [a before b] units, under replace-one half of it,
                rounded up, because one unit takes from the one and gives to the other. b runs over the whole
                domain, also where nobody is. [ST13, DR14]
    Utility     exact if the lead is `reliable_lead(confidence)`, whatever the size of the domain.

    Args:
        domain: The public values, in the order that breaks ties; None takes every key.
        epsilon: What a release spends.
        delta: The chance that an unstable answer passes the test.
        relation: The neighbouring relation.
        with_distance: Whether the noisy distance to another answer is released as well, `(answer, distance)`, for the
            same price.

    Raises:
        InvalidParameter: If the domain has fewer than two values.

    Examples:
        >>> mode = dp.adaptive.StableMode(
        ...     domain=("a", "b"), epsilon=1, delta=1e-6, relation=dp.Relation.REPLACE_ONE
        ... )
        >>> mode.release(["a"] * 1000 + ["b"]).value
        'a'
    """

    domain: tuple[Hashable, ...] | None
    epsilon: Fraction
    delta: Fraction
    relation: Relation
    with_distance: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(self, epsilon=self.test.epsilon, delta=self.test.delta)
        if self.domain is not None:
            settle(self, domain=read_bins(self.domain))
        if self.domain is not None and len(self.domain) < 2:
            raise InvalidParameter("`domain` needs at least two values")

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Composed:
        return self.test.event

    def reliable_lead(self, confidence: Number = Fraction(95, 100)) -> int:
        """Return by how much a value must be ahead to be named with at least this probability. It is public."""
        return _unit(self.relation) * self.test.reliable_distance(confidence)

    def release(self, data: Data, *, session: Payer | None = None) -> Release[Any]:
        """Name the most frequent value, or decline to."""
        with paid(session, self, purpose="the most frequent value if it is stable"):
            return stable_release(self.test, *self._winner(data), self.relation, with_distance=self.with_distance)

    def distribution(self, data: Data) -> Outcomes:
        return stable_outcomes(self.test, *self._winner(data), with_distance=self.with_distance)

    def true_distance(self, data: Data) -> NotPrivate[int]:
        """Tell the custodian how many units away another winner is."""
        return NotPrivate(self._winner(data)[1])

    def _winner(self, data: Data) -> tuple[Any, int]:
        names, counts = counted(data, self.domain)
        place, gap = lead(counts)
        return names[place], steps_to_change(gap, _unit(self.relation))


def counted(data: Data, domain: tuple[Hashable, ...] | None) -> tuple[Sequence[Any], list[int]]:
    """Name the values of a domain, or all keys that are there, and count each. The counts are private."""
    if domain is not None:
        return domain, list(bin_counts(column_of(data), domain))
    totals = bounded_totals(data, bins_per_unit=1, contribution=1)
    # Values that nobody has, before and after all others: one wins where there is nothing, and rivals every winner,
    # as any value might; the other is its rival.
    return [NO_ANSWER, *map(shown, totals), NO_ANSWER], [0, *totals.values(), 0]


def mode_distance(counts: Sequence[int], relation: Relation | str) -> int:
    """Return how many units must change before another of the counted values is the first most frequent one."""
    relation = read_relation(relation)
    return steps_to_change(lead(list(counts))[1], _unit(relation))


def _unit(relation: Relation) -> int:
    """How much of a lead one unit closes."""
    return 1 if relation is Relation.ADD_REMOVE else 2


# --- stable_selection: Name the best of public candidates exactly, if it is far ahead of all others. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StableSelection:
    """Return the candidate with the highest score if its lead is clear; of equals the first one leads.

    For scores that one unit moves all the same way, as counts under add-remove, say `monotone`.

    Guarantee   (epsilon, delta), whether an answer is given or not.
    Theorem     One unit moves a lead, the difference of two scores, by at most twice their sensitivity, or once if
                they move the same way; so the lead in these units, rounded up, is a distance to another winner.
                [ST13, BNS16]
    Utility     exact if the lead is about 2 sensitivity / epsilon times ln(1 / (2 delta)) + ln(1 / (2 - 2c)),
                whatever the number of candidates; permute-and-flip loses ln(candidates) instead, and never declines.

    Args:
        epsilon: What a release spends.
        delta: The chance that an unclear leader passes the test; a release spends this, too.
        sensitivity: How far one unit moves a score at most; a whole number.
        candidates: The public number of candidates, at least 2.
        relation: The neighbouring relation.
        monotone: Whether one unit moves all scores the same way; under add-remove only.
        with_distance: Whether the noisy distance to another answer is released as well, `(answer, distance)`, for the
            same price.

    Raises:
        InvalidParameter: If there are fewer than two candidates, or scores are called monotone under replace-one.

    Examples:
        >>> selection = dp.adaptive.StableSelection(
        ...     epsilon=1, delta=1e-6, sensitivity=1, candidates=3, relation=dp.Relation.ADD_REMOVE, monotone=True
        ... )
        >>> selection.release([10, 2000, 30]).value
        1
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: int  # of every score, for one unit
    candidates: int  # how many; public
    relation: Relation
    monotone: bool = False
    with_distance: bool = False

    __repr__ = record

    def __post_init__(self) -> None:
        check_selection(self)
        settle(self, sensitivity=positive_integer(self.sensitivity, name="sensitivity"))
        if self.candidates < 2:
            raise InvalidParameter("`candidates` must be at least 2")
        settle(self, delta=self.test.delta)

    @property
    def test(self) -> DistanceTest:
        return DistanceTest(epsilon=self.epsilon, delta=self.delta)

    @property
    def event(self) -> Composed:
        return self.test.event

    def release(self, scores: Scores, *, session: Payer | None = None) -> Release[Any]:
        """Return the position of the leader, or decline to."""
        with paid(session, self, purpose="a selection if it is stable"):
            return stable_release(self.test, *self._leader(scores), self.relation, with_distance=self.with_distance)

    def distribution(self, scores: Scores) -> Outcomes:
        return stable_outcomes(self.test, *self._leader(scores), with_distance=self.with_distance)

    def true_distance(self, scores: Scores) -> NotPrivate[int]:
        """Tell the custodian how many units away another winner is."""
        return NotPrivate(self._leader(scores)[1])

    def _leader(self, scores: Scores) -> tuple[int, int]:
        place, gap = lead(read_whole_scores(scores, self.candidates))
        unit = self.sensitivity if self.monotone else 2 * self.sensitivity
        return place, steps_to_change(gap, unit)


def lead(scores: Sequence[int]) -> tuple[int, int]:
    """Return the first of the best, and by how much another one must gain on it to win; at least 1.

    A later one must overtake, an earlier one need only draw level.
    """
    best = max(scores)
    place = scores.index(best)
    ahead = [best - score for score in scores[:place]]
    behind = [best - score + 1 for score in scores[place + 1 :]]
    return place, min(ahead + behind)


def steps_to_change(gap: int, unit: int) -> int:
    """Return how many units must change to close a gap, if one closes `unit` of it at most."""
    return -(-gap // unit)
