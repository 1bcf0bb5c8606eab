"""One unit more or less changes a tally by no more than the limits allow, and every way to get that wrong is seen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bounding_reference import Plain, Row, everything, ours, plain
from recorded import replayed

from discreet.query.bounding import aggregation, selection, unit_codes
from discreet.query.bounding.aggregation import tally
from discreet.query.bounding.contribution_bounds import ContributionBounds
from discreet.query.bounding.rows import RowChunk

GROUPS = 2
VALUES = (-2, 0, 3)
CELLS = tuple(itertools.product(("u", "v"), range(GROUPS), VALUES))
MEASURE = everything(-2, 3)
LIMITS = tuple(ContributionBounds(max_groups=a, max_rows=b) for a, b in ((1, 1), (1, 2), (2, 1)))
LARGEST = 3  # |index|


def worlds(most: int) -> Iterator[tuple[Row, ...]]:
    for size in range(most + 1):
        yield from itertools.combinations_with_replacement(CELLS, size)


def count(data: Sequence[Row], limits: ContributionBounds, groups: int = GROUPS) -> Plain:
    return ours(data, groups, limits, (MEASURE,), kind=pa.string(), threads=1, label="worlds")


def changes(more: Plain, less: Plain) -> dict[str, list[int]]:
    """Return by how much each number of each group differs."""
    pairs = {
        "units": (more.units, less.units),
        "rows": (more.rows, less.rows),
        "counts": (more.counts[0], less.counts[0]),
        "totals": (more.totals[0], less.totals[0]),
        "squares": (more.squares[0], less.squares[0]),
        "distinct": (more.distinct[0], less.distinct[0]),
    }
    return {name: [abs(a - b) for a, b in zip(*pair, strict=True)] for name, pair in pairs.items()}


def allowed(limits: ContributionBounds) -> dict[str, int]:
    """Return by how much the numbers of one group may differ."""
    most = limits.max_rows
    return {
        "units": 1,
        "rows": most,
        "counts": most,
        "totals": most * LARGEST,
        "squares": most * LARGEST**2,
        "distinct": most,
    }


def excess(changed: dict[str, list[int]], limits: ContributionBounds) -> bool:
    """Tell whether more groups changed than allowed, or one of them by more."""
    touched = {group for values in changed.values() for group, value in enumerate(values) if value}
    too_much = any(max(values) > allowed(limits)[name] for name, values in changed.items())
    return too_much or len(touched) > limits.max_groups


def violated(most: int, limits: ContributionBounds, data: Sequence[Sequence[Row]] | None = None) -> bool:
    """Tell whether removing a unit of some small world changes its tally by too much."""
    for world in worlds(most) if data is None else data:
        for unit in {row[0] for row in world}:
            less = [row for row in world if row[0] != unit]
            if excess(changes(count(world, limits), count(less, limits)), limits):
                return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_removing_a_unit_changes_all_small_worlds_within_limits_and_reaches_them(limits: ContributionBounds) -> None:
    reached = dict.fromkeys(allowed(limits), 0)
    spread = 0
    for world in worlds(3 if limits.max_rows == 1 else 2):
        whole = count(world, limits)
        for unit in {row[0] for row in world}:
            changed = changes(whole, count([row for row in world if row[0] != unit], limits))
            assert not excess(changed, limits)
            reached = {name: max(reached[name], *values) for name, values in changed.items()}
            spread = max(spread, sum(value > 0 for value in changed["rows"]))
    assert reached == allowed(limits)
    assert spread == limits.max_groups


@pytest.mark.long
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_units_are_kept_apart_in_all_small_worlds(limits: ContributionBounds) -> None:
    """What is kept of two units together is what is kept of each of them alone."""
    for world in worlds(3):
        both = count(world, limits)
        alone = [count([row for row in world if row[0] == unit], limits) for unit in ("u", "v")]
        assert both.rows == [sum(part) for part in zip(*(one.rows for one in alone), strict=True)]
        assert both.values[0] == [sorted(a + b) for a, b in zip(alone[0].values[0], alone[1].values[0], strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_removing_a_unit_changes_all_worlds_of_four_rows_within_limits(limits: ContributionBounds) -> None:
    assert not violated(4, limits)


ONE = ContributionBounds(max_groups=1, max_rows=1)
_read, _choose = unit_codes.Reader.read, selection.choose


def colliding(reader: unit_codes.Reader, array: pa.Array) -> Any:
    """Take a hash of the unit for the unit; u and v collide."""
    units, known = _read(reader, array)
    return unit_codes.NumberUnits(np.zeros_like(units.codes)), known


def nobody_is_someone(reader: unit_codes.Reader, array: pa.Array) -> Any:
    """Count rows without a unit as those of one unit."""
    return _read(reader, array.fill_null("nobody"))


def by_company(sizes: Any, some: int, names: Any, streams: Any, secret: Any) -> Any:
    """Draw for places in the data instead of for units."""
    places = np.zeros_like(names)
    places[:, 0] = np.arange(len(sizes))
    return _choose(sizes, some, places, streams, secret)


def owners(*cells: tuple[str | None, int, int]) -> list[Row]:
    return list(cells)


def test_a_hash_for_a_unit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    world = owners(*(("u", group, -2) for group in range(4)), *(("v", group, 3) for group in range(4)))

    def too_much() -> bool:
        labels = (f"hash {turn}" for turn in range(40))
        return any(_change(world, ONE, label, 4) for label in labels)

    assert not too_much()
    monkeypatch.setattr(unit_codes.Reader, "read", colliding)
    assert too_much()


def _change(world: list[Row], limits: ContributionBounds, label: str, groups: int) -> bool:
    less = [row for row in world if row[0] != "v"]
    more, fewer = (ours(data, groups, limits, (MEASURE,), kind=pa.string(), label=label) for data in (world, less))
    return excess(changes(more, fewer), limits)


@pytest.mark.parametrize(("groups", "rows"), [(1, 0), (0, 1)])
def test_a_limit_that_is_one_too_high_is_caught(groups: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(limits: ContributionBounds, *rest: Any) -> selection.Selection:
        higher = ContributionBounds(max_groups=limits.max_groups + groups, max_rows=limits.max_rows + rows)
        return selection.Selection(higher, *rest)

    monkeypatch.setattr(aggregation, "Selection", lenient)
    assert violated(2, ONE)


def test_choices_that_depend_on_company_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    world = owners(*((name, group, place % 6 - 2) for place, name in enumerate("uvwxyz") for group in range(place + 2)))
    without = [row for row in world if row[0] != "u"]

    def moved() -> int:
        changed = changes(count(world, ONE, 8), count(without, ONE, 8))
        return sum(changed["rows"]) + sum(changed["totals"])

    most = 1 + LARGEST
    assert moved() <= most
    monkeypatch.setattr(selection, "choose", by_company)
    assert moved() > most


def test_rows_without_a_unit_never_count(monkeypatch: pytest.MonkeyPatch) -> None:
    world = owners(("u", 0, 3), ("v", 1, 3))
    nobody = world + owners(*((None, group, 3) for group in range(GROUPS) for _ in range(250)))
    assert count(nobody, ONE) == count(world, ONE)
    monkeypatch.setattr(unit_codes.Reader, "read", nobody_is_someone)
    assert count(nobody, ONE) != count(world, ONE)


def test_rows_of_no_group_take_no_part_in_the_choice() -> None:
    """Who has a hundred rows outside of the groups and one inside keeps the one inside."""
    world = owners(*(("u", group, 3) for group in range(100)))
    assert count(world, ONE, 1).rows == [1]
    # Bounded before dropped, it would be kept in one of a hundred cases: this is what the wrong order gives.
    wide = ours(world, 100, ONE, (MEASURE,), kind=pa.string(), label="worlds")
    assert wide.rows[0] == 0


@pytest.mark.parametrize("unit", ["a", "b", "c"])
def test_a_whale_is_bounded(unit: str) -> None:
    """One unit has a hundred thousand rows in ten thousand groups, with other people's values."""
    check_whale(100_000, 10_000, ContributionBounds(max_groups=3, max_rows=2), label=unit)


@pytest.mark.slow
def test_a_whale_of_a_million_rows_is_bounded() -> None:
    check_whale(1_000_000, 10_000, ContributionBounds(max_groups=3, max_rows=2), label="whale")
    check_whale(1_000_000, 10_000, ContributionBounds(max_groups=500, max_rows=40), label="whale")


def check_whale(size: int, groups: int, limits: ContributionBounds, label: str) -> None:
    place = np.arange(size, dtype=np.int64)
    others = RowChunk(units=pa.array(place // 2 + 1), groups=place % groups, measures=(place % 6 - 2,))
    whale = RowChunk(units=pa.array(np.zeros(size, np.int64)), groups=place % groups, measures=(place % 6 - 2,))
    found = []
    for data in ([others, whale], [others]):
        with replayed(label):
            found.append(tally(data, groups=groups, limits=limits, measures=(MEASURE,)))
    more, less = map(plain, found)
    changed = changes(more, less)
    assert not excess(changed, limits)
    assert sum(changed["units"]) == limits.max_groups
    assert sum(changed["rows"]) == limits.max_groups * min(limits.max_rows, size // groups)
