"""What passes the door to the rows: every sensitivity and price against brute force, and mutants that are caught."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from statistical import fits, rejects

from discreet import privacy
from discreet.errors import BudgetExceeded, InvalidParameter
from discreet.lab import verify
from discreet.lab.verify.claim import Verification
from discreet.noise import RoundedGaussianLaw
from discreet.privacy import GDP, Relation, outcomes
from discreet.privacy.outcomes import Outcomes
from discreet.synth.gaussian_prices import choice_cost, choice_epsilon, mu_squared_for
from discreet.synth.tables.group_ties import _Parts
from discreet.synth.tables.private_table import STEPS, Candidate, MarginalSensitivity, PrivateTable, RoundAccount
from discreet.synth.tables.table_model import Grouping, group_cells
from discreet.synth.tables.table_shape import marginal

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
SIZES = (2, 3)
ROWS = tuple(itertools.product(range(2), range(3)))
CLIQUES = ((0,), (1,), (0, 1))
World = tuple[tuple[int, int], ...]


def table(world: World, reach: MarginalSensitivity, limit: Fraction = Fraction(1)) -> PrivateTable:
    codes = np.array(world, np.int32).reshape(-1, 2)
    return PrivateTable(codes, SIZES, reach, RoundAccount(limit))


def candidates(weights: Sequence[int] = (1, 1)) -> list[Candidate]:
    """The two columns, with what some model may say of them."""
    said = (np.array([0.5, 1.25]), np.array([0.1, 1.9, 0.3]))
    return [Candidate((place,), said[place], weight, 0.7) for place, weight in enumerate(weights)]


def unit_neighbours(relation: Relation, rows: int) -> list[tuple[World, World]]:
    """All pairs that differ by one unit of at most so many rows, beside an empty table and some others."""
    units = [unit for size in range(rows + 1) for unit in itertools.combinations_with_replacement(ROWS, size)]
    beside: tuple[World, ...] = ((), ((1, 2), (0, 1))) if rows == 1 else (((1, 2),),)
    pairs = itertools.product(units, units if relation is RO else [()])
    return [((*rest, *one), (*rest, *other)) for one, other in pairs for rest in beside]


@pytest.mark.parametrize("relation", [AR, RO])
@pytest.mark.parametrize("rows", [1, 2])
def test_reach_is_what_brute_force_finds(relation, rows):
    """Sharp, so that a sensitivity of the other relation, or one that forgets rows, would be caught here."""
    reach = MarginalSensitivity(relation, rows)
    moved_l1, moved_l2, moved_score = [], [], []
    listed = candidates((1, 3))
    for one, other in unit_neighbours(relation, rows):
        codes = [np.array(world, np.int32).reshape(-1, 2) for world in (one, other)]
        for clique in CLIQUES:
            change = marginal(codes[0], SIZES, clique) - marginal(codes[1], SIZES, clique)
            moved_l1.append(int(np.abs(change).sum()))
            moved_l2.append(int((change**2).sum()))
        scores = [table(world, reach)._scores(listed) for world in (one, other)]
        moved_score.append(int(np.abs(scores[0] - scores[1]).max()))
    assert max(moved_l1) == reach.l1
    assert max(moved_l2) == reach.squared_l2
    sensitivity = reach.selection(listed, Fraction(1)).sensitivity
    assert max(moved_score) <= sensitivity
    assert max(moved_score) > sensitivity - 2 * STEPS  # What is expected here is not a whole number of rows.


@dataclass(frozen=True)
class Round:
    """One adaptive round as methods run it: choose a column, then count it, with noise that depends on the choice."""

    reach: MarginalSensitivity
    relation: Relation
    limit: Fraction
    scores: Callable[[PrivateTable, list[Candidate]], Sequence[Any]] = PrivateTable._scores
    choose: Callable[[Any, Sequence[Any]], Outcomes] = lambda mechanism, scores: mechanism.distribution(scores)
    symmetric: bool = True

    @property
    def event(self) -> GDP:
        return GDP(mu_squared=self.limit)

    def distribution(self, world: World) -> Outcomes:
        rows = table(world, self.reach)
        listed = candidates()
        epsilon = choice_epsilon(Fraction(1, 2))
        chosen = self.choose(self.reach.selection(listed, epsilon), self.scores(rows, listed))
        left = 1 - choice_cost(epsilon)
        return outcomes.mixture(
            (chance, self._counted(rows, place, left / (1 + place))) for place, chance in chosen.masses.items()
        )

    def _counted(self, rows: PrivateTable, place: int, mu_squared: Fraction) -> Outcomes:
        # The first cell alone: the others would only make the listing long. The law is the one `measure` draws from.
        law = RoundedGaussianLaw(self.reach.squared_l2 / mu_squared)
        return outcomes.map(outcomes.from_law(law, int(rows._counts((place,))[0])), lambda count: (place, count))


def verified(subject: Round, sizes: Sequence[int] = (0, 1, 2)) -> Verification:
    return verify.check(
        subject, verify.worlds(ROWS, sizes), relation=subject.relation, claim=subject.event, epsilons=["0.5", 1, 3]
    )


@pytest.mark.parametrize("relation", [AR, RO])
def test_price_of_an_adaptive_round_dominates_brute_force(relation):
    report = verified(Round(MarginalSensitivity(relation), relation, Fraction(1)))
    assert report.holds, report


def _argmax(mechanism: Any, scores: Sequence[Any]) -> Outcomes:
    return outcomes.point(max(range(len(scores)), key=scores.__getitem__))


def _per_row(rows: PrivateTable, listed: list[Candidate]) -> list[Fraction]:
    """Scores as shares of the private number of rows, as if one row could not change that."""
    count = max(1, len(rows._codes))
    return [Fraction(int(score) * 40, count) for score in rows._scores(listed)]


MUTANTS = {
    "sensitivity of the other relation": Round(MarginalSensitivity(AR), RO, Fraction(1)),
    "the best one chosen outright": Round(MarginalSensitivity(AR), AR, Fraction(1), choose=_argmax),
    "scores over the private number of rows": Round(MarginalSensitivity(AR), AR, Fraction(1), scores=_per_row),
    "the choice is not paid for": Round(MarginalSensitivity(AR), AR, 1 - choice_cost(choice_epsilon(Fraction(1, 2)))),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_refuted(name):
    report = verified(MUTANTS[name])
    assert report.violated, report


@dataclass(frozen=True)
class Merged:
    """Count the two cells of a column, merged if rare: by exact counts, which is the mistake, or by noisy ones."""

    exact: bool
    relation: Relation = AR
    symmetric: bool = True

    @property
    def event(self) -> GDP:
        return GDP(mu_squared=Fraction(1))

    def distribution(self, world: World) -> Outcomes:
        counts = [sum(row[1] == code for row in world) for code in range(2)]
        law = RoundedGaussianLaw(Fraction(1))
        noisy = outcomes.product(*(outcomes.from_law(law, count, cutoff="1e-6") for count in counts))
        return outcomes.map(noisy, lambda seen: self._told(seen, counts))

    def _told(self, seen: tuple[int, ...], counts: Sequence[int]) -> tuple[Any, ...]:
        by = np.array(counts if self.exact else seen, np.float64)
        groups = group_cells(
            by, 1.0, rare=2.0, most=9, ordered=np.zeros(2, np.bool_), kinds=np.zeros(2, np.int64)
        ).groups
        return (*groups.tolist(), *np.bincount(groups, seen).tolist())


def test_merging_by_noisy_counts_is_free_and_by_exact_counts_is_not():
    world = verify.worlds([(0, 0), (0, 1)], (1, 2))
    ask = {"epsilons": [2], "slack": "1e-5"}
    assert verify.check(Merged(exact=False), world, **ask).holds
    assert verify.check(Merged(exact=True), world, **ask).violated


@dataclass(frozen=True)
class TwoResolutions:
    """Count the groups of a column, then parts of groups that are cut by what was seen: both through the door."""

    reach: MarginalSensitivity
    relation: Relation
    limit: Fraction = Fraction(1)  # What is said to be spent; a half is for each resolution.
    exact: bool = False  # Groups are cut by exact counts, which is a mistake.
    symmetric: bool = True

    @property
    def event(self) -> GDP:
        return GDP(mu_squared=self.limit)

    def distribution(self, world: World) -> Outcomes:
        rows = table(world, self.reach)
        law = RoundedGaussianLaw(self.reach.squared_l2 / Fraction(1, 2))
        counts = rows._counts((1,))
        seen = outcomes.from_law(law, int(counts[0]), cutoff="1e-7")
        return outcomes.mixture(
            (chance, self._finer(rows, law, int(counts[0]) if self.exact else count, count))
            for count, chance in seen.masses.items()
        )

    def _finer(self, rows: PrivateTable, law: RoundedGaussianLaw, by: int, seen: int) -> Outcomes:
        # One group of three codes, cut where half of its rows are below.
        shares = np.array([max(by, 0) + 1.0, 1.0, 1.0])
        grouping = Grouping(np.zeros(3, np.int32), shares / shares.sum())
        parts = _Parts.of(grouping, np.ones(3, np.bool_), np.array([1.0])).codes
        count = int(rows.recoded([parts], [1])._counts((0,))[0])
        told = tuple(parts.tolist()) if self.exact else ()
        return outcomes.map(outcomes.from_law(law, count, cutoff="1e-7"), lambda finer: (seen, *told, finer))


@pytest.mark.parametrize("relation", [AR, RO])
def test_price_of_a_second_resolution_dominates_brute_force(relation):
    report = resolved(TwoResolutions(MarginalSensitivity(relation), relation))
    assert report.holds, report


@pytest.mark.parametrize(
    "mutant",
    [
        TwoResolutions(MarginalSensitivity(AR), AR, Fraction(1, 2)),
        TwoResolutions(MarginalSensitivity(AR), AR, exact=True),
    ],
    ids=["measured and not charged", "groups cut by exact counts"],
)
def test_a_wrong_second_resolution_is_refuted(mutant):
    report = resolved(mutant)
    assert report.violated, report


def resolved(subject: TwoResolutions) -> Verification:
    worlds = verify.worlds([(0, code) for code in range(3)], (0, 1, 2))
    return verify.check(
        subject, worlds, relation=subject.relation, claim=subject.event, epsilons=["0.5", 1, 2], slack="1e-6"
    )


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_choice_cost_dominates_brute_force(epsilon):
    """All pairs of score vectors a step apart, at all levels: no exponential mechanism passes its Gaussian price."""
    claim = GDP(mu_squared=choice_cost(epsilon))
    levels = [epsilon * Fraction(share, 8) for share in range(-8, 9)]
    allowed = [_profile(claim, level) for level in levels]
    spans = [np.array(moves) * float(epsilon) for moves in itertools.product((0.0, 0.5, 1.0), repeat=3)]
    for start in ([0.0, 0.0, 0.0], [0.0, -3.0, -6.0], [0.0, -0.5, 2.0]):
        for moves in spans:
            first, second = _softmax(np.array(start)), _softmax(np.array(start) + moves)
            for level, most in zip(levels, allowed, strict=True):
                gap = np.maximum(first - np.exp(float(level)) * second, 0).sum()
                assert gap <= most + 1e-12


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def _profile(claim: GDP, level: Fraction) -> float:
    """The hockey-stick divergence at any level; below 0 by symmetry: 1 - e^l + e^l H(-l)."""
    if level >= 0:
        return privacy.delta(claim, level)
    return 1 - float(np.exp(float(level))) * (1 - privacy.delta(claim, -level))


def test_a_cheaper_choice_would_be_refuted():
    """The zCDP price of a choice is no Gaussian price: at some level a mechanism passes it."""
    epsilon = Fraction(4)
    wrong = GDP(mu_squared=epsilon**2 / 4)
    odds = 1 / (1 + np.exp(-float(epsilon) / 2))
    assert privacy.delta(wrong, 0) < 2 * odds - 1  # Two candidates whose scores change places.
    assert privacy.delta(GDP(mu_squared=choice_cost(epsilon)), 0) >= 2 * odds - 1


def test_account_adds_up_exactly_and_refuses_the_last_straw():
    account = RoundAccount(Fraction(1))
    for _ in range(3):
        account.charge(Fraction(1, 3))
    assert account.left == 0
    with pytest.raises(BudgetExceeded):
        account.charge(Fraction(1, 10**30))
    assert account.spent == 1
    with pytest.raises(InvalidParameter):
        RoundAccount(Fraction(1)).charge(Fraction(-1))


@pytest.mark.parametrize(
    "ask", [lambda rows: rows.measure((0,), Fraction(2)), lambda rows: rows.choose(candidates(), Fraction(3))]
)
def test_a_round_that_does_not_fit_reads_nothing(ask, monkeypatch):
    read = []
    monkeypatch.setattr(PrivateTable, "_counts", lambda self, clique: read.append(clique))
    with pytest.raises(BudgetExceeded):
        ask(table(((0, 1),), MarginalSensitivity(AR)))
    assert not read


def test_budget_is_the_largest_that_keeps_its_promise():
    for epsilon, delta in ((Fraction(1), Fraction(1, 10**9)), (Fraction(1, 10), Fraction(1, 10**9)), (10, "1e-5")):
        limit = mu_squared_for(epsilon, delta)
        assert privacy.epsilon(GDP(mu_squared=limit), delta) <= epsilon
        assert privacy.epsilon(GDP(mu_squared=limit * Fraction(1001, 1000)), delta) > epsilon
    with pytest.raises(InvalidParameter, match="delta"):
        mu_squared_for(1, 0)


def test_choice_epsilon_spends_nearly_all_it_is_given():
    for share in (Fraction(1, 10**6), Fraction(1, 100), Fraction(1), Fraction(9)):
        epsilon = choice_epsilon(share)
        assert choice_cost(epsilon) <= share < choice_cost(epsilon * Fraction(1001, 1000))


@pytest.mark.parametrize(("relation", "rows", "variance"), [(AR, 1, 25), (RO, 1, 50), (AR, 3, 225), (RO, 2, 200)])
def test_measured_noise_follows_rounded_gaussian(relation, rows, variance):
    codes = np.zeros((5, 1), np.int32)
    seen = PrivateTable(codes, (8_000,), MarginalSensitivity(relation, rows), RoundAccount(Fraction(1))).measure(
        (0,), Fraction(1, 25)
    )
    noise_seen = seen.values.astype(np.int64) - np.bincount([0] * 5, minlength=8_000)
    assert fits(noise_seen, RoundedGaussianLaw(Fraction(variance)))
    assert rejects(noise_seen, RoundedGaussianLaw(Fraction(variance) * Fraction(5, 4)))
    assert rejects(noise_seen, RoundedGaussianLaw(Fraction(variance) * Fraction(4, 5)))
    assert seen.deviation == pytest.approx((variance + 1 / 12) ** 0.5)


@pytest.mark.parametrize("columns", [None, (1, 0, 0)])
@pytest.mark.parametrize(("relation", "rows"), [(AR, 3), (RO, 2)])
def test_rows_under_other_codes_are_as_dear_and_paid_from_the_same_account(relation, rows, columns):
    """Merged codes are of the same units: noise for fewer of their rows, or a fresh budget, would break the promise."""
    first = table(((0, 1), (1, 2)), MarginalSensitivity(relation, rows))
    maps = [np.zeros(size, np.int32) for size in (SIZES if columns is None else [SIZES[place] for place in columns])]
    merged = first.recoded(maps, columns)
    assert merged.reach == first.reach
    plain, seen = first.measure((0,), Fraction(1, 4)), merged.measure((0,), Fraction(1, 4))
    assert seen.deviation == plain.deviation
    assert first.account.spent == merged.account.spent == Fraction(1, 2)


def test_scores_cannot_leave_64_bits():
    said = np.array([np.inf, -1e300])
    big = table(((0, 0),), MarginalSensitivity(AR))._scores([Candidate((0,), said)])
    small = table(((0, 0), (0, 0)), MarginalSensitivity(AR))._scores([Candidate((0,), said)])
    assert abs(big[0] - small[0]) <= STEPS
    with pytest.raises(InvalidParameter):
        table((), MarginalSensitivity(AR))._scores([Candidate((0,), np.zeros(1 << 23))])
