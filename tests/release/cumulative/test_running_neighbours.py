"""All small worlds: whatever one unit's rows are, and however they change, it moves what is told within the claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product

import pyarrow as pa
import pytest
from statistical import fits, rejects

from discreet import noise
from discreet.ledger.sqlite_store import connect
from discreet.noise.laws import RoundedGaussianLaw
from discreet.release.cumulative.advance import State
from discreet.release.cumulative.series_price import PricedRunning, measured_day, read_day
from discreet.release.cumulative.strategies import DayTree, Strategy, scaled_root, square_root
from discreet.release.plan import RunningPlan

Days = frozenset[int]
History = tuple[Days, ...]  # what a unit's rows were on each day that somebody looked
OTHERS: dict[str, tuple[Days, ...]] = {"b": (frozenset({0}), frozenset({0, 1}), frozenset({2}), frozenset({2, 3}))}


def subsets(days: int) -> list[Days]:
    return [frozenset(chosen) for size in range(days + 1) for chosen in combinations(range(days), size)]


def first_days(rows: dict[str, Days], until: int, most: int) -> pa.Table:
    """What the engine returns: the first days of every unit, by the rows of now."""
    found = [
        (unit, place, day)
        for unit, days in rows.items()
        for place, day in enumerate(sorted(day for day in days if day < until)[:most], 1)
    ]
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    kinds = (pa.string(), pa.int64(), pa.int64())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table(dict(zip(("unit", "place", "day"), arrays, strict=True)))


def counted(histories: Mapping[str, Sequence[Days]], days: int, most: int) -> list[int]:
    """Count day by day, each time by the rows that are there then."""
    connection = connect(":memory:")
    state = State(connection)
    state.begin("charge", "text")
    for today in range(days):
        rows = {unit: history[today] for unit, history in histories.items()}
        state.add_units(first_days(rows, today + 1, most), today + 1)
    found = [count for count, _ in state.days()]
    connection.close()
    return found


def worlds(days: int) -> Iterator[History]:
    """Every way in which the rows of one unit can be, day by day; those dated later do not matter yet."""
    yield from product(*(subsets(today + 1) for today in range(days)))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_unit_adds_one_to_few_days_whatever_becomes_of_its_rows(most: int) -> None:
    days = 3
    without = counted(OTHERS, days, most)
    reached = 0
    for history in worlds(days):
        extra = [a - b for a, b in zip(counted({**OTHERS, "a": history}, days, most), without, strict=True)]
        assert set(extra) <= {0, 1}
        assert sum(extra) <= most
        reached = max(reached, sum(extra))
    assert reached == most


def test_a_series_without_memory_is_caught() -> None:
    """Wrong: count by the rows of today alone. A unit that moves is counted every day."""
    history = [frozenset({0}), frozenset({1}), frozenset({2})]
    today = [sum(1 for day in sorted(history[now])[:1] if day == now) for now in range(3)]
    assert sum(today) == 3 > sum(counted({"a": history}, 3, 1)) == 1


@pytest.mark.parametrize("make", [DayTree, square_root, scaled_root])
@pytest.mark.parametrize("days", [1, 2, 3, 4])
def test_what_is_told_moves_within_the_sensitivity_for_all_neighbours(
    make: Callable[[int], Strategy], days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All sets of days of one unit, through counting and measuring as they are, with the noise left out."""
    monkeypatch.setattr(
        "discreet.release.cumulative.series_price.noise.rounded_gaussian", lambda *, size, variance: [0] * size
    )
    for most in range(1, days + 1):
        priced = priced_of(make(days), most)
        without = told(priced, counted(OTHERS, days, most))
        changes = [
            sum((a - b) ** 2 for a, b in zip(told(priced, counts), without, strict=True))
            for counts in {tuple(counted({**OTHERS, "a": (own,) * days}, days, most)) for own in subsets(days)}
        ]
        assert max(changes) <= priced.squared_sensitivity
        assert max(changes) == priced.squared_sensitivity or make is scaled_root
        # The loss of Gaussian noise depends on this alone: the largest is that of the event, or a little less.
        assert max(changes) / priced.variance <= priced.event.mu_squared == priced.mu_squared


def priced_of(strategy: Strategy, most: int) -> PricedRunning:
    running = RunningPlan(
        name="s", title="", source="t", day="d", first="2026-01-01", days=strategy.days, max_days=most
    )
    return PricedRunning("p", running, "patient", strategy, Fraction(1), None)


def told(priced: PricedRunning, counts: Sequence[int]) -> list[int]:
    days = (read_day(measured_day(priced, counts[: day + 1], "")) for day in range(len(counts)))
    return [number for numbers, _ in days for number in numbers]


@pytest.mark.statistical
@pytest.mark.parametrize("make", [DayTree, scaled_root])
def test_totals_have_the_variance_that_was_told(
    make: Callable[[int], Strategy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """2500 runs: 7 standard errors are 20 % of the variance; with a deviation of 0.7 it would be 51 % less."""
    priced = priced_of(make(4), 1)
    counts, runs = [3, 0, 1, 4], 2500
    drawn = iter(noise.rounded_gaussian(size=7 * runs, variance=priced.variance).tolist())

    def served(*, size: int, variance: Fraction) -> list[int]:
        assert variance == priced.variance
        return [next(drawn) for _ in range(size)]

    monkeypatch.setattr("discreet.release.cumulative.series_price.noise.rounded_gaussian", served)
    errors = []
    for _ in range(runs):
        parts = [read_day(measured_day(priced, counts[: day + 1], ""))[0] for day in range(4)]
        errors.append(float(priced.strategy.totals(parts)[-1]) - sum(counts))
    variance = sum(error**2 for error in errors) / runs
    told_variance = float(priced.deviations[-1]) ** 2
    assert abs(variance / told_variance - 1) < 0.2
    assert abs(variance / (0.49 * told_variance) - 1) > 0.2
    outside = sum(abs(error) > priced.errors[-1] for error in errors) / runs
    assert outside < 0.05 + 6.2 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.statistical
@pytest.mark.parametrize("make", [DayTree, scaled_root])
@pytest.mark.parametrize("most", [1, 4])
def test_what_is_told_of_a_day_follows_the_law_that_is_charged(make: Callable[[int], Strategy], most: int) -> None:
    """The wrong neighbour: noise for one of the days on which a unit is counted."""
    priced = priced_of(make(4), most)
    exact = sum(priced.strategy.weights(0)[0])
    drawn = [read_day(measured_day(priced, [1], ""))[0][0] - exact for _ in range(3000)]
    assert fits(drawn, RoundedGaussianLaw(priced.variance))
    assert rejects(drawn, RoundedGaussianLaw(priced.variance / 4))
    assert priced.event.variance == priced.variance
    assert priced.event.squared_sensitivity == priced.strategy.squared_sensitivity(most)
