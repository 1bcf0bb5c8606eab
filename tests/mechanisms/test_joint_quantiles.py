"""Intervals of quantiles miss no more often than they say, for all data; several quantiles never cross and add up."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from subjects import ADD_REMOVE, BOTH, REPLACE_ONE, UNIT, sizes

from discreet.balls import ball, precision
from discreet.errors import InvalidParameter, Refused
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import Grid, Quantile, QuantileInterval, Quantiles, joint_quantiles
from discreet.noise.chains import chain_weight
from discreet.privacy.events import BoundedRange, Composed, PureDP
from discreet.privacy.relation import Relation

GRID = Grid(low=Fraction(0), high=Fraction(40), step=Fraction(1), default=Fraction(0))
DECILES = tuple(Fraction(tenth, 10) for tenth in range(1, 10))
SHAPES = {
    "spread": np.linspace(0, 40, 80),
    "one value": np.full(80, 17),
    "a gap above": np.array([3] * 41 + [40] * 39),
    "a gap below": np.array([0] * 39 + [37] * 41),
    "few rows": np.array([1, 20, 39]),
    "none": np.array([], dtype=np.int64),
}


def interval(**fields: Any) -> QuantileInterval:
    return QuantileInterval(**{"quantile": "1/2", "epsilon": 2, "grid": GRID, "relation": ADD_REMOVE} | fields)


def truths(data: np.ndarray, q: Fraction) -> list[float]:
    """The quantile by the usual definitions."""
    kinds = ("inverted_cdf", "linear", "lower", "higher", "hazen", "weibull", "median_unbiased")
    placed = np.sort(GRID.indices(data)).astype(float)
    return [float(np.quantile(placed, float(q), method=kind)) for kind in kinds] if placed.size else []  # type: ignore[call-overload]


def misses(mechanism: QuantileInterval, data: np.ndarray) -> Fraction:
    """Return an upper bound of the chance that some usual definition lies outside."""
    wanted = truths(data, mechanism.quantile)
    low, high = (min(wanted), max(wanted)) if wanted else (40, 0)
    with precision(64):
        outside = sum(
            (
                mass
                for (_, first, last), mass in mechanism.distribution(data).masses.items()
                if first > low or last < high
            ),
            ball(0),
        )
        return Fraction(float(outside.upper()))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(("flips", "q"), [(False, "1/2"), (True, "1/2"), (True, "9/10"), (False, "1/10")])
def test_an_interval_misses_no_more_often_than_it_says(shape: str, relation: Relation, flips: bool, q: str) -> None:
    for confidence in (Fraction(1, 2), Fraction(95, 100)):
        mechanism = interval(relation=relation, flips=flips, quantile=q, confidence=confidence)
        assert misses(mechanism, SHAPES[shape]) <= 1 - confidence


def test_an_interval_with_a_goal_of_no_reserve_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuantileInterval, "_goal", lambda self, factor: 0)
    found = [misses(interval(epsilon=1, confidence=Fraction(95, 100)), data) for data in SHAPES.values()]
    assert max(found) > Fraction(1, 20)


@pytest.mark.parametrize("relation", BOTH)
def test_an_interval_whose_width_is_not_paid_is_refuted(relation: Relation) -> None:
    """Its width then follows the data more closely than epsilon allows."""
    small = Grid(low=Fraction(-1), high=Fraction(2), step=Fraction(1), default=Fraction(0))
    honest = interval(quantile="1/4", epsilon=3, grid=small, relation=relation, confidence=Fraction(1, 10))
    world = worlds((-1, 0, 1, 2), sizes(relation, 4))

    class Unpaid:
        event = PureDP(honest.epsilon / 3)
        distribution = staticmethod(honest.distribution)

    Unpaid.relation = relation  # type: ignore[attr-defined]
    assert all(finding.holds for finding in verify.check(honest, world, query=list).findings)
    assert not all(finding.holds for finding in verify.check(Unpaid(), world, query=list).findings)


@pytest.mark.parametrize("relation", BOTH)
def test_the_room_for_a_population_moves_no_further_than_its_sensitivity_says(relation: Relation) -> None:
    mechanism = interval(population=True, relation=relation)
    rooms = [mechanism._room(size) for size in range(3000)]
    assert all(b - a >= 0 for a, b in pairwise(rooms))
    if relation is ADD_REMOVE:
        assert max(b - a for a, b in pairwise(rooms)) <= mechanism._moved
    for size in (500, 2000):
        ranks = rooms[size] / mechanism._parts
        assert binom.cdf(size / 2 - ranks, size, 0.5) <= 0.05 / 4


def test_a_population_is_held_where_the_interval_of_the_sample_misses_it() -> None:
    """100 samples of 2,000 rows: at most 26 may miss at 95 %, by luck less than once in 10^9."""
    chance = np.random.default_rng(7)
    grid = Grid.between(0, 1, step="0.0001")
    missed = {True: 0, False: 0}
    for _ in range(100):
        data = chance.random(2000)
        for population in missed:
            low, high = interval(grid=grid, population=population, epsilon=4, flips=True).release(data).interval()
            missed[population] += not low <= Fraction(1, 2) <= high
    assert missed[True] <= 26
    assert missed[False] > 50


def test_an_interval_says_its_own_confidence_and_refuses_a_higher_one() -> None:
    release = interval(confidence="0.9").release(SHAPES["spread"])
    assert "(90 %)" in repr(release)
    assert release.interval("0.5") == release.interval("0.9")
    with pytest.raises(Refused, match="90 %"):
        release.interval("0.95")


def test_it_is_billed_as_two_events() -> None:
    assert interval(share="1/4").event == Composed([BoundedRange("1.5"), BoundedRange("0.5")])
    assert interval(flips=True).event == Composed([PureDP("0.8"), PureDP("1.2")])


def several(epsilon: int, relation: Relation, grid: Grid = GRID, quantiles: Any = DECILES) -> Quantiles:
    return Quantiles.for_epsilon(epsilon, quantiles=quantiles, grid=grid, relation=relation)


@pytest.mark.parametrize("relation", BOTH)
def test_several_quantiles_never_cross_and_are_near(relation: Relation) -> None:
    data = np.random.default_rng(3).normal(20, 5, 20_000)
    grid = Grid.between(0, 40, step="0.001")
    found = several(4, relation, grid).release(data)
    assert list(found.value) == sorted(found.value)
    assert list(found.as_dict()) == ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]
    assert np.allclose([float(one) for one in found.value], np.quantile(data, np.arange(1, 10) / 10), atol=0.2)
    for shape in SHAPES.values():
        crossed = several(1, relation).release(shape).value
        assert list(crossed) == sorted(crossed)


def test_a_value_that_most_rows_share_is_several_quantiles() -> None:
    data = np.array([5] * 100 + [17] * 800 + [30] * 100)
    assert several(20, ADD_REMOVE).release(data).value[1:8] == (17,) * 7


def test_all_at_once_or_levels_spend_what_was_said() -> None:
    assert [Quantiles.levels(count) for count in (1, 3, 9)] == [(1,), (1, 2), (1, 2, 4, 2)]
    percentiles = tuple(Fraction(one, 100) for one in range(1, 100))
    for quantiles, many in ((DECILES, 1), (percentiles, 7), (("0.5",), 1)):
        pure = several(1, ADD_REMOVE, quantiles=quantiles)
        assert sum(pure.epsilons) == 1
        assert len(pure.epsilons) == many
        squares = Quantiles.for_rho(Fraction(1, 8), quantiles=quantiles, grid=GRID, relation=ADD_REMOVE).epsilons
        assert Fraction(999, 1000) < sum(one**2 for one in squares) <= 1
    assert several(1, ADD_REMOVE).event == BoundedRange(1)


@pytest.mark.parametrize("relation", BOTH)
def test_rows_that_a_fine_grid_keeps_together_are_chosen_by_levels(relation: Relation) -> None:
    """A step cannot be cut into many places here: all at once would choose any points, of which there are most."""
    fine = Grid.between(0, 10**15, step=1)
    asked: dict[str, Any] = {"quantiles": ("0.25", "0.5", "0.75"), "grid": fine, "relation": relation}
    for made in (Quantiles.for_epsilon(20, **asked), Quantiles.for_rho(50, **asked)):
        assert len(made.epsilons) == 2
        assert made.choose(np.zeros(4000, np.int64)) == (0, 0, 0)


@pytest.mark.parametrize("relation", BOTH)
def test_nine_at_once_are_less_than_three_times_as_far_off_as_one(relation: Relation) -> None:
    """40 releases: the mean error is about 2 and 2.7 times that of one, and has a deviation of a twentieth."""
    data = np.arange(20_000) * 5
    grid = Grid.between(0, 100_000, step=1)
    at_once = Quantiles.for_epsilon(Fraction(2), quantiles=DECILES, grid=grid, relation=relation)
    wanted = np.arange(1, 10) * 2000
    off = [np.abs(np.searchsorted(data, at_once.choose(data)) - wanted).mean() for _ in range(40)]
    alone = 0.5 * np.mean(
        [2 * max(q, 1 - q) if relation is ADD_REMOVE else 2 for q in DECILES]
    )  # Two-sided exponential.
    assert np.mean(off) < (2.9 if relation is ADD_REMOVE else 3.5) * float(alone)
    assert np.mean(off) / 2 < at_once.predicted_error < 2 * np.mean(off)


def at_once(relation: Relation, epsilon: int, *quantiles: str) -> Quantiles:
    return Quantiles(
        quantiles=quantiles,  # type: ignore[arg-type]
        epsilons=(Fraction(epsilon),),
        grid=UNIT,
        relation=relation,
        fineness=1,
    )


AT_ONCE_WORLDS = [("1/4", "3/4"), ("0", "1/2", "1"), ("1/10", "1/5")]


@pytest.mark.parametrize("quantiles", AT_ONCE_WORLDS)
@pytest.mark.parametrize("relation", BOTH)
def test_the_claim_of_all_at_once_holds_for_all_neighbours_and_a_third_does_not(
    relation: Relation, quantiles: tuple[str, ...]
) -> None:
    honest = at_once(relation, 3, *quantiles)
    world = worlds((-1, 0, 1), sizes(relation, 4))
    assert verify.check(honest, world, query=list).holds
    assert verify.check_renyi(honest, world, orders=[2, 8], query=list).holds
    assert verify.check(honest, world, query=list, claim=PureDP(1)).violated


MISTAKES = {
    "a row that changes leaves one gap and enters another, and is paid as one": (REPLACE_ONE, "_rate", Fraction(3)),
    "a row is paid half": (ADD_REMOVE, "_rate", Fraction(6)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_gaps_that_are_paid_short_are_refuted(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    relation, name, rate = MISTAKES[mistake]
    honest = at_once(relation, 6, "1/4", "3/4")
    world = worlds((-1, 0, 1), (6,) if relation is REPLACE_ONE else (3, 4, 5, 6))
    assert verify.check(honest, world, query=list).holds
    monkeypatch.setattr(Quantiles, name, rate)
    assert verify.check(honest, world, query=list).violated


def test_wanted_gaps_that_move_with_the_number_of_rows_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With N read from the rows, a row that comes moves all gaps: the score moves by up to 2 and not by 1. [GJK21]"""
    honest = at_once(ADD_REMOVE, 6, "1/4", "3/4")
    world = worlds((-1, 0, 1), (3, 4, 5, 6))
    assert verify.check(honest, world, query=list).holds
    monkeypatch.setattr(Quantiles, "_step", None)
    assert verify.check(honest, world, query=list).violated


def test_parts_of_a_level_paid_in_full_each_are_refuted_under_replace_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that changes may leave one part and enter another: each is worth half of the level's epsilon."""
    mechanism = Quantiles(
        quantiles=(Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)),
        epsilons=(Fraction(1, 10), Fraction(6)),
        grid=UNIT,
        relation=REPLACE_ONE,
        fineness=1,
    )
    world = worlds((-1, 0, 1), (6,))
    assert all(finding.holds for finding in verify.check(mechanism, world, query=list).findings)
    honest = Quantiles._middle

    def in_full(self: Quantiles, part: Any) -> Quantile:
        made = honest(self, part)
        return Quantile(
            quantile=made.quantile, epsilon=2 * made.epsilon, grid=made.grid, relation=ADD_REMOVE, flips=made.flips
        )

    monkeypatch.setattr(joint_quantiles.Quantiles, "_middle", in_full)
    assert not all(finding.holds for finding in verify.check(mechanism, world, query=list).findings)


@pytest.mark.parametrize("bad", [(), ("0.5", "0.5"), ("0.6", "0.5"), ("1.5",), ("x",)])
def test_quantiles_out_of_order_are_refused(bad: tuple[str, ...]) -> None:
    with pytest.raises(InvalidParameter):
        several(1, ADD_REMOVE, quantiles=bad)


def test_there_is_one_epsilon_for_each_level() -> None:
    with pytest.raises(InvalidParameter, match="level"):
        Quantiles(quantiles=DECILES, epsilons=(Fraction(1), Fraction(1)), grid=GRID, relation=ADD_REMOVE)
    for bad in (
        {"flips": True},
        {"epsilons": (Fraction(1, 10**13),)},
        {"quantiles": [Fraction(k, 40) for k in range(40)]},
    ):
        with pytest.raises(InvalidParameter, match="at once"):
            Quantiles(**{"quantiles": DECILES, "epsilons": (1,), "grid": GRID, "relation": ADD_REMOVE} | bad)


@pytest.mark.parametrize("shape", ["even", "falling"])
def test_an_interval_is_less_than_twice_as_wide_as_one_by_an_oracle(shape: str) -> None:
    """The oracle knows the law of the point, and states the shortest interval around it that covers in 95 of 100."""
    fine = Grid(low=Fraction(0), high=Fraction(300), step=Fraction(1), default=Fraction(0))
    even = (np.arange(1200) + 0.5) / 1200
    data = 300 * even if shape == "even" else np.minimum(300, 100 * -np.log(1 - even))
    mechanism = interval(grid=fine, epsilon=1)
    truth = float(np.median(data))
    with precision(64):
        points = {point: float(mass) for point, mass in mechanism.point.distribution(data).masses.items()}
        width = sum(
            float(mass) * (last - first) for (_, first, last), mass in mechanism.distribution(data).masses.items()
        )
    errors = sorted((point - truth, mass) for point, mass in points.items())
    cumulated = np.cumsum([mass for _, mass in errors])
    ends = [int(np.searchsorted(cumulated, before + 0.95)) for before in (0.0, *cumulated[:-1])]
    shortest = min(errors[end][0] - errors[first][0] for first, end in enumerate(ends) if end < len(errors))
    assert shortest <= width <= 2 * shortest


def test_no_score_of_gaps_is_steeper_where_rows_change() -> None:
    """From wanted gaps to others it takes as many changed rows as the score over 2 says: none with sensitivity 1 falls
    by more. The wrong neighbour: the largest of all gap errors is fewer."""
    wanted, reached, steps = (2, 1, 2, 1), {(2, 1, 2, 1): 0}, 0
    edge = {wanted}
    while edge:
        steps += 1
        moved = {
            tuple(rows - (at == i) + (at == j) for at, rows in enumerate(gaps))
            for gaps in edge
            for i in range(4)
            for j in range(4)
            if gaps[i] > 0
        }
        edge = {gaps for gaps in moved if gaps not in reached}
        reached |= dict.fromkeys(edge, steps)
    assert len(reached) == 84  # all ways to cut six rows into four gaps
    shares = tuple(Fraction(rows, 6) for rows in wanted)
    scores = {gaps: chain_weight(tuple(accumulate(gaps[:-1])), shares, 6, 6) / 2 for gaps in reached}
    assert scores == reached
    assert {gaps: max(abs(a - b) for a, b in zip(gaps, wanted, strict=True)) for gaps in reached} != reached
