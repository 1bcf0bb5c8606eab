"""Points that are drawn as a chain have exactly the law that is claimed: every choice of the sampler is enumerated."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from discreet.balls import ball, precision
from discreet.noise import chains
from discreet.noise.chains import PointChain, chain_weight

SHARES = {
    "quartiles": (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)),
    "the ends": (Fraction(0), Fraction(1), Fraction(0)),
    "uneven": (Fraction(1, 10), Fraction(1, 5), Fraction(7, 10)),
    "three": (Fraction(1, 5), Fraction(1, 5), Fraction(1, 5), Fraction(2, 5)),
}
ROWS = {"none": [], "one": [2], "ties": [1, 1, 1, 3], "spread": [0, 1, 3, 3, 4], "the top": [4, 4, 4, 4, 4, 4]}


class HardlyEver(Exception):
    """A way that is too rare to be followed."""


class Enumerated:
    """Answers every random choice of a sampler in all ways, one after the other, and adds up their chances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, keeps_all: bool = False) -> None:
        self.script: list[int] = []
        self.keeps_all = keeps_all
        real = chains._draw_by

        def draw_by(logs: Any) -> tuple[int, Fraction]:
            """Weights are those of the sampler: a whole number below their sum is asked for, and its place told."""
            tops: list[int] = []
            monkeypatch.setattr(chains, "integer_below", lambda limit: tops.append(limit) or 0)
            real(logs)
            chances = []
            place, start = 0, 0
            while start < tops[0]:
                monkeypatch.setattr(chains, "integer_below", lambda limit, start=start: start)
                place, chance = real(logs)
                chances.append((place, chance))
                start += int(chance * tops[0])
            monkeypatch.setattr(chains, "integer_below", self.below_limit)
            place, chance = chances[self.choose([ball(one) for _, one in chances])]
            return place, chance

        monkeypatch.setattr(chains, "_draw_by", draw_by)
        monkeypatch.setattr(chains, "integer_below", self.below_limit)
        monkeypatch.setattr(chains, "revealed", lambda: (0, 64))
        monkeypatch.setattr(chains, "below", self.coin)

    def below_limit(self, limit: int) -> int:
        return self.choose([ball(Fraction(1, limit))] * limit)

    def coin(self, real: Callable[[], Any], *_bits: int) -> bool:
        chance = ball(1) if self.keeps_all else real()
        return self.choose([chance, 1 - chance]) == 0

    def choose(self, chances: list[Any]) -> int:
        if len(self.chance) == len(self.script):
            self.script.append(0)
        at = self.script[len(self.chance)]
        self.widths.append(len(chances))
        self.chance.append((self.chance[-1] if self.chance else ball(1)) * chances[at])
        # What hardly ever happens is left out: the geometric tail of N has no end.
        if self.chance[-1] < ball(Fraction(1, 10**15)):
            raise HardlyEver
        return at

    def laws(self, draw: Callable[[], Any]) -> dict[Any, Any]:
        """Return the chance of every outcome of one attempt."""
        found: dict[Any, Any] = defaultdict(lambda: ball(0))
        while True:
            self.chance, self.widths = list[Any](), list[int]()
            try:
                outcome = draw()
                found[outcome] += self.chance[-1]
            except HardlyEver:
                pass
            del self.script[len(self.widths) :]
            while self.script and self.script[-1] == self.widths[len(self.script) - 1] - 1:
                self.script.pop()
            if not self.script:
                return found
            self.script[-1] += 1


def wanted(chain: PointChain) -> dict[tuple[int, ...], Any]:
    """The law by its definition, over all N that matter."""
    totals = [chain.size] if chain.step is None else range(-60 * chain.step, 60 * chain.step, chain.step)
    weights = {}
    for points in combinations_with_replacement(range(chain.low, chain.high + 1), chain.count):
        orders = math.factorial(chain.count) // math.prod(math.factorial(points.count(one)) for one in set(points))
        ranks = np.searchsorted(chain.ordered, points, "left").tolist()
        scores = [chain_weight(ranks, chain.shares, chain.size, total) for total in totals]
        weights[points] = orders * sum((ball(-chain.rate * score).exp() for score in scores), ball(0))
    total = sum(weights.values(), ball(0))
    return {points: weight / total for points, weight in weights.items()}


def worst_difference(monkeypatch: pytest.MonkeyPatch, chain: PointChain, **options: Any) -> float:
    """Return by how much the law of one attempt, if it succeeds, is off, relative to the law that is claimed."""
    covered = chain.covered
    enumerated = Enumerated(monkeypatch, **options)

    def attempt() -> tuple[int, ...] | None:
        far = covered.far_part
        return covered.draw_far() if far is not None and chains.below(far, 0, 64) else covered.draw_near()

    with precision(128):
        laws = enumerated.laws(attempt)
        kept = sum((mass for points, mass in laws.items() if points is not None), ball(0))
        law = wanted(chain)
        return max(abs(float((laws[points] / kept - mass) / mass)) for points, mass in law.items())


def chain_of(rows: str, shares: str, *, step: int | None, rate: str = "1") -> PointChain:
    return PointChain(np.array(ROWS[rows], np.int64), 0, 4, SHARES[shares], Fraction(rate), step)


def small_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cover little, so that much is drawn from the rest."""
    monkeypatch.setattr(chains, "_FIRST", 1)
    monkeypatch.setattr(chains, "_NEAR", 1.0)
    monkeypatch.setattr(chains, "_RARE", -1000.0)


def cases() -> Iterator[tuple[str, str, int | None, float]]:
    """Blocks of one rank and of several; N known, and among coarse multiples that are put together."""
    yield from ((rows, "quartiles", step, block) for rows in ROWS for step in (None, 3) for block in (0.1, 3.0))
    yield from ((rows, "uneven", step, 3.0) for rows in ("ties", "the top") for step in (None, 3))
    yield from (("spread", "the ends", step, 0.1) for step in (None, 3))
    yield from (("ties", "three", None, block) for block in (0.1, 3.0))
    yield "spread", "uneven", 1, 3.0


@pytest.mark.long
@pytest.mark.parametrize(("rows", "shares", "step", "block"), list(cases()))
def test_the_law_of_all_choices_is_the_one_that_is_claimed(
    rows: str, shares: str, step: int | None, block: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_reach(monkeypatch)
    monkeypatch.setattr(chains, "_BLOCK", block)
    assert worst_difference(monkeypatch, chain_of(rows, shares, step=step)) < 1e-9


def test_a_proposal_whose_ratio_is_forgotten_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    small_reach(monkeypatch)
    monkeypatch.setattr(chains, "_BLOCK", 3.0)
    assert worst_difference(monkeypatch, chain_of("ties", "quartiles", step=None), keeps_all=True) > 0.1


def test_points_that_no_block_covers_are_missed_if_they_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    small_reach(monkeypatch)
    monkeypatch.setattr(chains._CoveredPart, "far_part", None)
    assert worst_difference(monkeypatch, chain_of("spread", "quartiles", step=None)) > 0.1


def all_kept_within_the_bound(monkeypatch: pytest.MonkeyPatch, chain: PointChain) -> None:
    with precision(128):
        Enumerated(monkeypatch).laws(chain.covered.draw_near)


@pytest.mark.parametrize("mistake", ["none", "a block counts as its middle", "totals count as their middle"])
def test_a_bound_that_forgets_how_far_a_block_is_off_is_exceeded(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to draw is tried: one of them would have to be kept with more than certainty."""
    monkeypatch.setattr(chains, "_BLOCK", 6.0)
    monkeypatch.setattr(chains, "_NEAR", 0.1)
    monkeypatch.setattr(chains, "_FIRST", 9)
    monkeypatch.setattr(chains, "_RARE", -1000.0)
    monkeypatch.setattr(chains, "_LIGHT", -100.0)
    step = 2 if mistake.startswith("totals") else None
    real_blocks, real_log = chains._CoveredPart._blocks, chains._CoveredPart._log_of

    def blocks(self: chains._CoveredPart) -> chains._RankBlocks:
        found = real_blocks(self)
        return replace(found, logs=np.log(found.points.astype(float)))

    def log_of(self: chains._CoveredPart, totals: chains._TotalsBlock) -> float:
        return self._sums_at(totals).whole + math.log(totals.count)

    if mistake == "a block counts as its middle":
        monkeypatch.setattr(chains._CoveredPart, "_blocks", blocks)
    if mistake == "totals count as their middle":
        monkeypatch.setattr(chains._CoveredPart, "_log_of", log_of)
    chain = chain_of("spread", "quartiles", step=None) if step is None else chain_of("none", "the ends", step=step)
    if mistake == "none":
        assert real_log is chains._CoveredPart._log_of
        return all_kept_within_the_bound(monkeypatch, chain)
    with pytest.raises(AssertionError, match="bound"):
        all_kept_within_the_bound(monkeypatch, chain)


def test_where_many_n_weigh_the_same_points_are_kept_nearly_as_often_as_drawn() -> None:
    """Rows of two values and no room between them: S is the same for hundreds of N, and all of their blocks matter."""
    rows, shares, rate, step = np.repeat([0, 1], 1200), (Fraction(1, 4),) * 4, Fraction(1, 2), 8
    cells = {0: 1, 1200: 1, 2400: 3}  # ranks, and how many points have them
    logs = []
    for ranks in combinations_with_replacement(cells, 3):
        sets = math.prod(cells[rank] ** ranks.count(rank) / math.factorial(ranks.count(rank)) for rank in set(ranks))
        scores = [chain_weight(ranks, shares, rows.size, step * place) for place in range(-400, 1000)]
        logs.append(math.log(sets) + np.logaddexp.reduce([-float(rate * score) for score in scores]))
    assert -0.1 < np.logaddexp.reduce(logs) - PointChain(rows, 0, 4, shares, rate, step).covered.bound < 0


def test_long_columns_are_drawn_near_to_the_wanted_ranks() -> None:
    """With 10^5 rows and nine points the mean rank error is about 3 / epsilon; 20 / epsilon is never seen."""
    rows = np.sort(np.random.default_rng(5).integers(0, 1 << 40, 100_000))
    shares = (Fraction(1, 10),) * 10
    for rate, step in ((Fraction(1, 2), 8), (Fraction(1, 4), None), (Fraction(1, 200), 800)):
        points = PointChain(rows, 0, 1 << 40, shares, rate, step).draw()
        assert list(points) == sorted(points)
        off = np.abs(np.searchsorted(rows, points) - np.arange(1, 10) * 10_000).mean()
        assert off < 20 / (2 * float(rate))


@pytest.mark.parametrize("rate", ["5e-13", "0.01", "500000"])
def test_extreme_rates_and_columns_are_drawn_from(rate: str) -> None:
    for rows in ([], [0] * 50, [1 << 50] * 50, list(range(100))):
        for step in (None, max(1, int(4 / Fraction(rate)))):
            chain = PointChain(np.array(rows, np.int64), 0, 1 << 50, (Fraction(1, 6),) * 6, Fraction(rate), step)
            points = chain.draw()
            assert list(points) == sorted(points)
            assert 0 <= points[0] <= points[-1] <= 1 << 50
