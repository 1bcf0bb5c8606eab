"""Deep points and regression by many fits: laws, safety and distances by brute force, and what wrong authors do."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from robust.regression_worlds import ADD_REMOVE, BOTH, REPLACE_ONE
from scipy.stats import chisquare
from statistical import fits, rejects

import discreet as dp
from discreet.adaptive import ProposeTestRelease
from discreet.adaptive.no_answer import NO_ANSWER
from discreet.balls import ball, precision
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.privacy.events import ApproxDP, Event
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.relation import Relation
from discreet.robust import Design, TukeyRegression, tukey_em
from discreet.robust.tukey_em import DeepPoint, _floor_logarithm, _floor_logarithms, block_fits

VALUES = range(5)


def point(count: int = 5, depth: int = 2, **fields: Any) -> DeepPoint:
    known: dict[str, Any] = {"low": 0, "high": 4, "dimension": 1, "epsilon": 6, "delta": "0.1"}
    return DeepPoint(count=count, depth=depth, relation=REPLACE_ONE, **(known | fields))


def with_test(mechanism: DeepPoint, epsilon: Any = 3) -> ProposeTestRelease:
    return ProposeTestRelease(
        distance=mechanism.distance, mechanism=mechanism, epsilon=Fraction(epsilon), delta=mechanism.delta
    )


LINE = verify.worlds(tuple(VALUES), [5])
LONG_LINE = verify.worlds((0, 1, 4), [7])
PLANE = verify.worlds(tuple(product((0, 2), (0, 1))), [5])
SUBJECTS = {
    "line": (point(), LINE),
    "shallow line": (point(depth=1, epsilon=9), LINE),
    "deep line": (point(depth=3, epsilon=9), LINE),
    "long line": (point(count=7), LONG_LINE),
    "plane": (point(dimension=2, high=2, epsilon=9, delta="0.2"), PLANE),
}


def unsafety(mechanism: DeepPoint, data: Any) -> float:
    """The delta of the theorem, by counting all places of the grid."""
    places = product(range(mechanism.low, mechanism.high + 1), repeat=mechanism.dimension)
    levels = Counter(mechanism.depth_of(data, place) for place in places)
    rate, t = float(mechanism.epsilon) / 2, mechanism.depth
    total = sum(count * math.exp(rate * level) for level, count in levels.items() if level >= t)
    leaving = levels[t] * math.exp(rate * t) / total
    entering = levels[t - 1] * math.exp(rate * (t - 1)) / total
    return math.exp(2 * rate) * entering + leaving


@pytest.mark.parametrize("name", SUBJECTS)
def test_law_gives_each_place_its_weight(name: str) -> None:
    mechanism, world = SUBJECTS[name]
    for data in list(world.data_sets)[::7]:
        with precision(128):
            law = {place: float(mass.mid()) for place, mass in mechanism.distribution(data).masses.items()}
        table = np.array(data).reshape(len(data), -1)
        weights = {}
        for place in product(range(mechanism.low, mechanism.high + 1), repeat=mechanism.dimension):
            sides = [min((table[:, j] <= x).sum(), (table[:, j] >= x).sum()) for j, x in enumerate(place)]
            if min(sides) >= mechanism.depth:
                weights[place] = math.exp(float(mechanism.epsilon) / 2 * min(sides))
        total = sum(weights.values())
        assert law == pytest.approx({place: weight / total for place, weight in weights.items()})


@pytest.mark.parametrize("name", SUBJECTS)
def test_distance_is_a_lower_bound_that_moves_by_one(name: str) -> None:
    mechanism, world = SUBJECTS[name]
    data_sets = list(world.data_sets)
    wild = {data for data in data_sets if unsafety(mechanism, data) > float(mechanism.delta)}
    far = Counter(mechanism.distance(data) for data in data_sets)
    for data in data_sets:
        nearest = min((changes(data, other) for other in wild), default=mechanism.count + 1)
        assert mechanism.distance(data) <= nearest
    assert verify.sensitivity(mechanism.distance, world, relation=REPLACE_ONE).value == 1
    assert max(far) >= 1, "nothing in this world is safe"


def changes(one: Any, other: Any) -> int:
    return sum((Counter(one) - Counter(other)).values())


@pytest.mark.parametrize("name", SUBJECTS)
def test_claim_holds_on_all_data_sets(name: str) -> None:
    mechanism, world = SUBJECTS[name]
    subject = with_test(mechanism)
    assert isinstance(subject.event, ApproxDP)
    assert (subject.event.epsilon, subject.event.delta) == (3 + mechanism.epsilon, mechanism.delta)
    report = verify.check(subject, world)
    assert report.holds, str(report)


@dataclass(frozen=True)
class Mutant:
    """A deep point with somebody's own weight for depth, and tested or not with somebody's own bill."""

    right: ProposeTestRelease
    rate: Fraction  # of the exponent; the right one is epsilon / 2
    event: Event
    relation: Relation = REPLACE_ONE

    def distribution(self, data: Any) -> Outcomes:
        mechanism = self.right.mechanism
        assert isinstance(mechanism, DeepPoint)
        chance = self.right.test.chance(self.right.distance(data))
        levels = {(place,): mechanism.depth_of(data, (place,)) for place in range(mechanism.low, mechanism.high + 1)}
        kept = {place: (ball(self.rate) * level).exp() for place, level in levels.items() if level >= mechanism.depth}
        total = sum(kept.values(), ball(0))
        masses: dict[Any, Any] = {place: chance * weight / total for place, weight in kept.items()}
        return Outcomes(masses | {NO_ANSWER: 1 - chance})


@dataclass(frozen=True)
class Weighed:
    """Every place is chosen by its depth alone; it would be pure with exp(epsilon depth / 2)."""

    rate: Fraction
    event: Event
    relation: Relation = REPLACE_ONE

    def distribution(self, data: Any) -> Outcomes:
        weights = {place: (ball(self.rate) * point(len(data)).depth_of(data, (place,))).exp() for place in (0, 1)}
        total = sum(weights.values(), ball(0))
        return Outcomes({place: weight / total for place, weight in weights.items()})


def test_depth_weighed_without_the_two_is_refuted() -> None:
    """One record replaces one fit: one place becomes deeper and another one less deep."""
    world = verify.worlds((0, 1), [9])
    for rate, holds in ((Fraction(1), True), (Fraction(2), False)):
        assert verify.check(Weighed(rate, ApproxDP(2, 0)), world).holds is holds


def test_release_billed_without_the_share_of_the_test_is_refuted() -> None:
    """Among many points a small epsilon is enough to choose; a refusal still tells how far unsafe data are."""
    world = verify.worlds((0, 1), [41])
    right = with_test(point(count=41, high=1, epsilon="1/2", delta="1/100"), epsilon=4)
    for event, holds in ((right.event, True), (right.mechanism.event, False)):
        assert verify.check(Mutant(right, Fraction(1, 4), event), world).holds is holds


def test_choosing_without_a_test_is_refuted() -> None:
    """Unsafe data: which places are deep enough changes with one point."""
    mechanism, world = SUBJECTS["line"]
    assert not verify.check(mechanism, world).holds


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["line", "plane"])
def test_release_follows_its_law(name: str) -> None:
    mechanism, world = SUBJECTS[name]
    mechanism = replace(mechanism, epsilon=Fraction(1, 2), depth=1)
    data = list(world.data_sets)[len(world.data_sets) // 2]
    with precision(128):
        masses = {place: float(mass.mid()) for place, mass in mechanism.distribution(data).masses.items()}
    places = sorted(masses)
    drawn = [places.index(mechanism.release(data).value) for _ in range(800)]
    law = np.array([masses[place] for place in places])
    assert fits(drawn, law)
    wrong = law**8 / (law**8).sum()
    assert rejects(drawn, wrong if len(set(law)) > 1 else np.roll(law, 1))


def test_floors_of_logarithms_are_exact() -> None:
    widths = np.array([[1, 2, 3], [10**6, 2**40 + 1, 2**51]])
    assert _floor_logarithms(widths).tolist() == [
        [0 if width == 1 else _floor_logarithm(width) for width in row] for row in widths.tolist()
    ]
    for width in (2, 3, 10**6, 2**40 + 1):
        assert _floor_logarithm(width) == math.floor(math.log(width) * 2**20)


def test_fits_of_blocks_are_least_squares_of_their_rows() -> None:
    generator = np.random.default_rng(4)
    rows = np.column_stack([np.full(300, 1 << 20), generator.integers(-(1 << 20), 1 << 20, size=(300, 3))])
    blocks = generator.integers(0, 10, size=300)
    blocks[blocks == 7] = 6  # An empty one.
    found = block_fits(rows, blocks, 10, 1 << 40)
    for number in range(10):
        mine = rows[blocks == number].astype(float)
        expected = np.full(3, -(2**40) - 1) if number == 7 else np.linalg.lstsq(mine[:, :3], mine[:, 3])[0] * 2**20
        assert found[number] == pytest.approx(expected, abs=1.0)


def test_one_row_changes_one_fit_under_either_relation() -> None:
    generator = np.random.default_rng(5)
    rows = np.column_stack([np.full(60, 1 << 20), generator.integers(-(1 << 20), 1 << 20, size=(60, 2))])
    blocks = generator.integers(0, 6, size=60)
    before = block_fits(rows, blocks, 6, 1 << 40)
    for place in range(0, 60, 7):
        other = rows.copy()
        other[place, 1:] = (1 << 20, -(1 << 20))
        replaced = block_fits(other, blocks, 6, 1 << 40)
        removed = block_fits(np.delete(rows, place, axis=0), np.delete(blocks, place), 6, 1 << 40)
        for after in (replaced, removed):
            changed = (after != before).any(axis=1)
            assert changed.sum() <= 1
            assert set(np.nonzero(changed)[0]) <= {blocks[place]}


def test_blocks_by_position_would_change_many_fits() -> None:
    """The wrong neighbour: rows dealt out in turn, where one that is removed moves all that follow."""
    generator = np.random.default_rng(6)
    rows = np.column_stack([np.full(60, 1 << 20), generator.integers(-(1 << 20), 1 << 20, size=(60, 2))])
    before = block_fits(rows, np.arange(60) % 6, 6, 1 << 40)
    after = block_fits(rows[1:], np.arange(59) % 6, 6, 1 << 40)
    assert (after != before).any(axis=1).sum() > 1


DESIGN = Design.between([(-50, 50)] * 2, (-500, 500))


@pytest.mark.statistical
def test_a_regression_draws_blocks_that_are_fair_whatever_the_place_of_a_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of records that follow each other are two fair draws; a false alarm has a chance of 1e-9."""
    drawn: list[Any] = []

    def kept(rows: Any, blocks: Any, count: int, reach: int) -> Any:
        drawn.append(blocks)
        return block_fits(rows, blocks, count, reach)

    monkeypatch.setattr(tukey_em, "block_fits", kept)
    fields: dict[str, Any] = {"epsilon": Fraction(1), "delta": Fraction(1, 10**6), "blocks": 5}
    TukeyRegression(design=DESIGN, relation=ADD_REMOVE, **fields).release(np.zeros((8000, 3)))
    (blocks,) = drawn
    pairs = blocks[0::2] * 5 + blocks[1::2]
    assert chisquare(np.bincount(pairs, minlength=25)).pvalue > 1e-9


@pytest.mark.parametrize("relation", BOTH)
def test_regression_finds_a_clear_line_and_declines_where_there_is_none(relation: Relation) -> None:
    generator = np.random.default_rng(7)
    X = generator.normal(size=(8000, 2))
    y = 3 + X @ np.array([1.0, 2.0]) + 0.1 * generator.normal(size=8000)
    fields: dict[str, Any] = {"epsilon": Fraction(2), "delta": Fraction(1, 10**6), "blocks": 500}
    mechanism = TukeyRegression(design=DESIGN, relation=relation, **fields)
    release = mechanism.release(np.column_stack([X, y]))
    assert [float(value) for value in release.value] == pytest.approx([3, 1, 2], abs=0.1)  # type: ignore[union-attr]
    assert release.labels == ("intercept", "x1", "x2")
    few = mechanism.release(np.column_stack([X, y])[:50])
    assert few.value == NO_ANSWER
    assert few.event == release.event == ApproxDP(2, Fraction(1, 10**6))


def test_distance_to_too_many_failures_moves_by_one_too() -> None:
    mechanism = TukeyRegression(
        design=Design.between([(0, 1)], (0, 1)),
        relation=ADD_REMOVE,
        epsilon=Fraction(40),
        delta=Fraction(1, 10),
        blocks=8,
    )
    reach = int(mechanism.coefficient_bound * 2**20)
    values = ((0, 0), (5, 1), (reach + 1, reach + 1))
    world = verify.worlds(tuple(range(3)), [8])

    def distance(data: Any) -> int:
        return mechanism.mechanism.distance(np.array([values[place] for place in data], dtype=np.int64))

    assert verify.sensitivity(distance, world, relation=REPLACE_ONE).value == 1
    assert distance((2, 2, 0, 0, 0, 0, 0, 0)) == 0 < distance((0,) * 8)


def test_it_is_paid_for_before_anything_is_read() -> None:
    class Purse:
        def charge(
            self, event: Any, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
        ) -> None:
            raise dp.BudgetExceeded(asked=event, left="nothing")

    mechanism = TukeyRegression(design=DESIGN, relation=ADD_REMOVE, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    with pytest.raises(dp.BudgetExceeded):
        mechanism.release("no table at all", session=Purse())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad",
    [
        {"count": 0},
        {"depth": 0},
        {"depth": 4},
        {"low": 4},
        {"high": 1 << 60},
        {"dimension": 0},
        {"epsilon": 0},
        {"epsilon": float("inf")},
        {"delta": 0},
        {"delta": 1},
        {"relation": None},
    ],
)
def test_nonsense_is_refused(bad: dict[str, Any]) -> None:
    fields = {name: getattr(point(), name) for name in ("low", "high", "dimension", "count", "depth", "epsilon")}
    with pytest.raises(InvalidParameter):
        DeepPoint(**(fields | {"delta": Fraction(1, 10), "relation": REPLACE_ONE} | bad))


@pytest.mark.parametrize("bad", [{"blocks": 3}, {"test_share": 0}, {"coefficient_bound": 0}, {"delta": 0}])
def test_nonsense_regressions_are_refused(bad: dict[str, Any]) -> None:
    known: dict[str, Any] = {"design": DESIGN, "relation": ADD_REMOVE, "epsilon": 1, "delta": Fraction(1, 10**6)}
    with pytest.raises(InvalidParameter):
        TukeyRegression(**(known | bad))
