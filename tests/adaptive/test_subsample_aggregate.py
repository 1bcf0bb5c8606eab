"""Subsample and aggregate: all of it on small worlds over all assignments, and how others got it wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from statistical import fits, rejects
from threshold_worlds import (
    ADD_REMOVE,
    BOTH,
    LETTERS,
    NUMBERS,
    REPLACE_ONE,
    assert_pays_first,
    assert_refuses,
    small,
)

from discreet.adaptive import (
    BlockMode,
    SubsampleAndAggregate,
    block_centre,
    block_median,
    block_trimmed_mean,
    block_winsorised_mean,
    gaussian,
    laplace,
    polynomial,
)
from discreet.adaptive.aggregators import BlockNumber
from discreet.adaptive.block_runner import FAILED
from discreet.adaptive.block_sandbox import unpacked
from discreet.adaptive.no_answer import NO_ANSWER
from discreet.adaptive.order_queries import LowerMedianQuery
from discreet.adaptive.subsample_aggregate import all_assignments, assign, read_records, rows_of
from discreet.balls import precision
from discreet.errors import DiscreetError, InvalidParameter, Refused
from discreet.lab import verify
from discreet.mechanisms import Grid
from discreet.privacy import outcomes
from discreet.privacy.event_tree import grouped
from discreet.privacy.events import ApproxDP, Composed, Grouped, PureDP
from discreet.privacy.outcomes import Outcomes

GRID = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(2))
FINE = Grid.between(0, 100, step="0.1")


def most(rows: Sequence[str]) -> str | None:
    """The most frequent letter; of nothing, nothing."""
    return max(sorted(set(rows)), key=rows.count) if rows else None


def first(rows: Sequence[Any]) -> Any:
    """A function that looks at the order of rows, and fails where there are none."""
    return rows[0]


def total(rows: Sequence[Any]) -> Any:
    return sum(rows)


def mode(blocks: int, epsilon: Any = 1, delta: Any = "0.05", entries: int = 1, domain: Any = LETTERS) -> BlockMode:
    return BlockMode(blocks=blocks, domain=domain, epsilon=epsilon, delta=Fraction(delta), entries=entries)


def trusted(function: Callable[..., Any], aggregator: Any, relation: Any, **more: Any) -> SubsampleAndAggregate:
    return SubsampleAndAggregate(function=function, aggregator=aggregator, relation=relation, trusted=True, **more)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("blocks", [2, 3])
@pytest.mark.parametrize("function", [most, first])
def test_mode_of_blocks_keeps_its_claim(function: Any, blocks: int, relation: Any) -> None:
    mechanism = trusted(function, mode(blocks), relation)
    report = verify.check(mechanism, small(LETTERS, relation, 3), epsilons=[0, "0.5", 1])
    assert report.holds, str(report)


@pytest.mark.parametrize("relation", BOTH)
def test_mode_of_blocks_keeps_its_claim_on_data_sets_of_five(relation: Any) -> None:
    report = verify.check(trusted(most, mode(2, domain=None), relation), small(LETTERS, relation, 5))
    assert report.holds, str(report)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(
    "aggregator",
    [
        block_median(blocks=3, grid=GRID, recipe=polynomial(2, beta="0.3")),
        block_median(blocks=2, grid=GRID, recipe=laplace(2, "0.01", beta="0.3")),
        block_trimmed_mean(blocks=4, grid=GRID, recipe=polynomial(2, beta="0.3"), trimmed=1),
        block_winsorised_mean(blocks=3, grid=GRID, recipe=polynomial(2, beta="0.3"), moved=1),
    ],
    ids=["median of three", "median of two", "trimmed", "Winsorised"],
)
def test_numbers_of_blocks_keep_their_claim(aggregator: Any, relation: Any) -> None:
    report = verify.check(trusted(total, aggregator, relation), small(NUMBERS, relation, 3))
    assert report.holds, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("relation", BOTH)
def test_median_of_blocks_keeps_its_claim_on_data_sets_of_five(relation: Any) -> None:
    aggregator = block_median(blocks=3, grid=GRID, recipe=polynomial(2, beta="0.3"))
    report = verify.check(trusted(total, aggregator, relation), small(NUMBERS, relation, 5))
    assert report.holds, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("relation", BOTH)
def test_mode_of_blocks_keeps_its_claim_on_data_sets_of_six(relation: Any) -> None:
    report = verify.check(trusted(most, mode(3, domain=None), relation), small(LETTERS, relation, 6))
    assert report.holds, str(report)


@pytest.mark.parametrize("relation", BOTH)
def test_centre_of_blocks_keeps_its_claim(relation: Any) -> None:
    aggregator = block_centre(blocks=3, grid=GRID, dimension=1, recipe=gaussian(2, "0.05", beta="0.1"))
    mechanism = trusted(lambda rows: [sum(rows)], aggregator, relation)
    report = verify.check(mechanism, small(NUMBERS, relation, 3))
    assert report.holds, str(report)


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize(
    "aggregator",
    [
        mode(3, entries=2),
        mode(3, entries=2, domain=None),
        block_median(blocks=3, grid=GRID, recipe=polynomial(1, beta="0.2")),
        block_median(blocks=3, grid=GRID, recipe=laplace(1, "0.01", beta="0.2")),
    ],
    ids=["mode", "mode of anything", "median", "median with a delta"],
)
def test_overlapping_blocks_keep_their_claim(aggregator: Any, relation: Any) -> None:
    mechanism = trusted(most if isinstance(aggregator, BlockMode) else total, aggregator, relation, memberships=2)
    values = LETTERS if isinstance(aggregator, BlockMode) else NUMBERS
    report = verify.check(mechanism, small(values, relation, 3))
    assert report.holds, str(report)


def test_overlapping_blocks_pay_for_a_group() -> None:
    pure = block_median(blocks=5, grid=GRID, recipe=polynomial(1, beta="0.2"))
    assert trusted(total, pure, ADD_REMOVE).event == PureDP(1)
    assert trusted(total, pure, ADD_REMOVE, memberships=3).event == Grouped(PureDP(1), 3)
    approximate = block_median(blocks=5, grid=GRID, recipe=laplace(1, "0.001", beta="0.1"))
    release = trusted(total, approximate, ADD_REMOVE, memberships=2).release([1] * 9)
    assert release.event == Grouped(ApproxDP(1, "0.001"), 2)
    assert release.cost.startswith("ε = 2, δ = 0.0037")
    assert trusted(most, mode(5, entries=2), ADD_REMOVE, memberships=2).event == mode(5).event


def test_a_last_group_that_is_not_full_is_paid_like_a_full_one() -> None:
    """Of five blocks an aggregator for two takes three steps."""
    recipe = gaussian(2, "0.05", beta="0.1")
    pairs = block_centre(blocks=9, grid=GRID, dimension=1, recipe=recipe, entries=2)
    for memberships, steps in ((3, 2), (4, 2), (5, 3)):
        event = trusted(lambda rows: [sum(rows)], pairs, ADD_REMOVE, memberships=memberships).event
        assert event == Grouped(pairs.event, steps)
    with pytest.raises(InvalidParameter, match="entries"):
        trusted(most, mode(5, entries=2), ADD_REMOVE, memberships=3)


def test_an_event_of_two_parts_is_not_grouped() -> None:
    """A group of two at distance two passes a test with e^epsilon delta, not twice delta: see the mutant below."""
    with pytest.raises(InvalidParameter, match="entries"):
        trusted(most, mode(5), ADD_REMOVE, memberships=2)
    with pytest.raises(InvalidParameter):
        trusted(most, mode(5), ADD_REMOVE, memberships=6)


@dataclass(frozen=True)
class Wrong:
    """Subsample and aggregate as somebody else wrote it: how blocks are made, and what an empty one says."""

    blocks: int
    event: Any
    relation: Any
    memberships: int = 1
    by_position: bool = False
    empty_answers_for_all: bool = False

    def distribution(self, data: Any) -> Outcomes:
        laws = [self._law(data, blocks) for blocks in self._assignments(len(data))]
        return outcomes.mixture((Fraction(1, len(laws)), law) for law in laws)

    def _assignments(self, count: int) -> list[Any]:
        if self.by_position:
            length = -(-count // self.blocks)
            return [[range(k * length, min(count, (k + 1) * length)) for k in range(self.blocks)]]
        return list(all_assignments(count, blocks=self.blocks, memberships=self.memberships))

    def _law(self, data: Any, blocks: Sequence[Sequence[int]]) -> Outcomes:
        answers = [self._answer(data, [data[i] for i in block]) for block in blocks]
        return mode(self.blocks, 2, "1e-4").distribution(answers)

    def _answer(self, data: Any, rows: list[Any]) -> Any:
        return first(list(data) if self.empty_answers_for_all and not rows else rows) if rows or data else None


CLAIM = mode(2, 2, "1e-4").event


def positions(blocks: int) -> tuple[Wrong, Any]:
    """Blocks of two by position: without the record in front, all are shifted and begin with the other letter."""
    whole = ("b", "a") * blocks
    return Wrong(blocks, CLAIM, ADD_REMOVE, by_position=True), [whole, whole[1:]]


def empty(blocks: int) -> tuple[Wrong, Any]:
    """One record: all blocks but one are empty and say what it says."""
    return Wrong(blocks, CLAIM, REPLACE_ONE, empty_answers_for_all=True), [("a",), ("b",)]


def overlapping(blocks: int, event: Any) -> tuple[Wrong, Any]:
    """One record in all blocks."""
    return Wrong(blocks, event, REPLACE_ONE, memberships=blocks), [("a",), ("b",)]


MUTANTS = {
    "blocks by position": positions(16),
    "an empty block answers for all": empty(16),
    "sixteen memberships billed as one": overlapping(16, CLAIM),
    "four memberships billed part by part": overlapping(4, Composed(grouped(part, 4) for part in CLAIM.events)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_assignments_are_refuted(name: str) -> None:
    wrong, found = MUTANTS[name]
    report = verify.check(wrong, found, epsilons=[2, 8])
    assert report.violated, str(report)


def test_a_group_does_not_see_two_parts_of_a_claim_apart() -> None:
    """Why an event of two parts is not grouped: at distance four the test passes with e^(3 epsilon) delta."""
    wrong, found = overlapping(4, Grouped(CLAIM, 4))
    (finding,) = verify.check(wrong, found, epsilons=[8]).findings
    assert finding.lower > 4 * Fraction("1e-4")
    assert finding.holds  # The group of the whole claim allows for it.


@pytest.mark.parametrize("memberships", [1, 2, 3, 5])
def test_every_record_is_in_as_many_blocks_as_it_should_be(memberships: int) -> None:
    found = assign(1000, blocks=5, memberships=memberships)
    assert len(found) == 5
    assert all(len(set(block.tolist())) == len(block) for block in found)
    assert Counter(record for block in found for record in block.tolist()) == dict.fromkeys(range(1000), memberships)


@pytest.mark.statistical
def test_blocks_of_two_records_follow_the_uniform_law_of_pairs_of_subsets() -> None:
    many = 40_000
    blocks = [set(block.tolist()) for block in assign(many, blocks=4, memberships=2)]
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    drawn = [pairs.index(tuple(k for k in range(4) if i in blocks[k])) for i in range(many)]  # type: ignore[arg-type]
    joint = [6 * drawn[i] + drawn[i + 1] for i in range(0, many, 2)]
    assert fits(joint, [1 / 36] * 36)
    assert rejects(joint, [0.5 / 36 if k < 2 else (1 - 1 / 36) / 34 for k in range(36)])


@pytest.mark.statistical
def test_order_of_rows_in_a_block_follows_the_uniform_law() -> None:
    """Where the first of three records comes to stand, and whether it is before the second."""
    drawn = [assign(3, blocks=1, memberships=1)[0].tolist() for _ in range(2500)]
    orders = [3 * rows.index(0) + rows.index(1) for rows in drawn]
    law = [0 if k in (0, 4, 8) else 1 / 6 for k in range(9)]
    assert fits(orders, law)
    assert rejects(orders, [0 if k in (0, 4, 8) else (0.1 if k == 1 else 0.18) for k in range(9)])


@pytest.mark.statistical
@pytest.mark.parametrize("memberships", [1, 2])
def test_release_follows_distribution(memberships: int) -> None:
    """With a function that looks at order and fails on nothing; as a wrong neighbour, one record replaced."""
    mechanism = trusted(first, mode(3, 2, "0.2", entries=memberships), ADD_REMOVE, memberships=memberships)
    data, other = ["a", "b", "b", "c"], ["a", "b", "b", "b"]
    names = [*LETTERS, NO_ANSWER]
    with precision(64):
        law, wrong = (
            [float(m.get(n, 0)) for n in names] for m in (mechanism.distribution(d).masses for d in (data, other))
        )
    drawn = [names.index(mechanism.release(data).value) for _ in range(2000)]
    assert fits(drawn, law)
    assert rejects(drawn, wrong)


def test_blocks_without_records_are_there() -> None:
    assert [block.tolist() for block in assign(0, blocks=3, memberships=2)] == [[], [], []]
    assert trusted(first, mode(3), ADD_REMOVE).true_answers([]).value == (None, None, None)
    assert trusted(total, block_median(blocks=2, grid=GRID, recipe=polynomial(1, beta="0.1")), ADD_REMOVE).release([])


def test_rows_arrive_as_plain_records_one_by_one() -> None:
    odd = [
        (1, Fraction(1, 3), Decimal("0.10"), date(2020, 1, 2), np.float32(0.5), np.int64(7)),
        {"a": [1.5, None], 2: b"x"},
        object(),
        [["deep"]],
        10**30,
    ]
    sent = rows_of(read_records(odd), [4, 0, 1, 2, 3])
    assert unpacked(sent.packed, array=sent.array) == [
        10**30,
        (1, "1/3", "0.10", "2020-01-02", 0.5, 7),
        {"a": [1.5, None], 2: b"x"},
        None,
        [["deep"]],
    ]
    circle: list[Any] = []
    circle.append(circle)
    assert rows_of([circle], [0])
    assert "x" not in repr(sent)


@pytest.mark.parametrize("kind", ["f8", "i4", "?", "M8[D]", [("a", "i4"), ("b", "f8", 2)]])
def test_arrays_arrive_as_arrays(kind: Any) -> None:
    table = np.zeros((4,) if isinstance(kind, list) else (4, 2), dtype=kind)
    sent = rows_of(read_records(table), [2, 0])
    back = unpacked(sent.packed, array=sent.array)
    assert back.dtype == table.dtype
    assert back.tobytes() == table[[2, 0]].tobytes()


def test_texts_objects_and_masks_arrive_as_lists() -> None:
    assert read_records(np.array(["a", "bcd"])) == ["a", "bcd"]
    assert read_records(np.array([(1, "bcd")], dtype=[("a", "i4"), ("b", "U3")])) == [(1, "bcd")]
    assert read_records(np.array(["a", None], dtype=object)) == ["a", None]
    assert read_records(np.ma.MaskedArray([1, 2], mask=[False, True])) == [1, None]
    for bad in ("text", 5, {1: 2}, np.array(5), None):
        with pytest.raises(InvalidParameter):
            read_records(bad)


def test_a_function_cannot_change_the_rows_of_another_block() -> None:
    data = [[k] for k in range(8)]

    def spoil(rows: list[list[int]]) -> int:
        for row in rows:
            row[0] = 99
        return len(rows)

    mechanism = trusted(spoil, mode(2, entries=2, domain=None), ADD_REMOVE, memberships=2)
    assert mechanism.true_answers(data).value == (8, 8)
    assert data == [[k] for k in range(8)]


ANSWERS = [float("nan"), float("inf"), -float("inf"), 1e308, None, "x", "1/3", [], [1], {"a": 1}, True, FAILED, 10**400]


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_every_answer_is_read_as_a_point_of_the_declared_range(answer: Any) -> None:
    number = block_median(blocks=2, grid=GRID, recipe=polynomial(1, beta="0.1"))
    assert 0 <= number.read(answer) <= 4
    vector = block_centre(blocks=3, grid=GRID, dimension=1, recipe=polynomial(1, beta="0.1"))
    assert all(0 <= part <= 4 for part in vector.read(answer))
    vote = mode(2).read(answer)
    assert vote is None
    hash(mode(2, domain=None).read(answer))
    assert mode(2, domain=None).release([mode(2, domain=None).read(answer)] * 2)


def test_votes_may_be_lists_of_numbers() -> None:
    any_mode = mode(50, domain=None)
    assert any_mode.release([any_mode.read([1, [2.5, "a"]])] * 50).value == (1, (2.5, "a"))
    assert any_mode.release([any_mode.read(FAILED)] * 50).value == NO_ANSWER


def fails_on_a(rows: Sequence[str]) -> str:
    if "a" in rows:
        raise ValueError(f"found {rows}")
    return "b"


def test_a_block_that_fails_says_nothing_and_stops_nobody() -> None:
    mechanism = trusted(fails_on_a, mode(60), ADD_REMOVE)
    answers = mechanism.true_answers(["a"] + ["b"] * 600).value
    assert Counter(answers) == {"b": 59, None: 1}
    assert mechanism.release(["a"] + ["b"] * 600).value == "b"

    def leaves(rows: Any) -> None:
        raise SystemExit(3)

    assert trusted(leaves, mode(2), ADD_REMOVE).true_answers(["a"]).value == (None, None)


def test_progress_counts_blocks_and_nothing_else() -> None:
    seen: list[tuple[int, int]] = []
    trusted(fails_on_a, mode(5), ADD_REMOVE).release(["a", "b"], progress=lambda done, of: seen.append((done, of)))
    assert seen == [(k, 5) for k in range(1, 6)]


def test_rehearsal_tells_what_a_block_would_say_about_made_up_rows() -> None:
    mechanism = trusted(total, block_median(blocks=2, grid=GRID, recipe=polynomial(1, beta="0.1")), ADD_REMOVE)
    assert mechanism.rehearse([1, 2]) == 3
    assert mechanism.rehearse([9, 9]) == 4
    with pytest.raises(Refused) as caught:
        mechanism.rehearse(["secret"])
    assert "secret" not in str(caught.value)


def test_release_is_close_where_blocks_agree() -> None:
    recipe = polynomial(1, beta="0.1")
    values = [40 + (k % 7) / 10 for k in range(30_000)]
    for aggregator in (
        block_median(blocks=301, grid=FINE, recipe=recipe),
        block_winsorised_mean(blocks=301, grid=FINE, recipe=recipe, moved=75),
        block_trimmed_mean(blocks=301, grid=FINE, recipe=recipe, trimmed=75),
    ):
        release = trusted(np.mean, aggregator, REPLACE_ONE).release(np.array(values))
        assert abs(release.value - Fraction("40.3")) < 20
        assert release.relation is REPLACE_ONE
        with pytest.raises(Refused):
            release.interval()


def test_pays_first_and_refuses_nonsense() -> None:
    mechanism = trusted(most, mode(2), REPLACE_ONE)
    assert_pays_first(mechanism, ["a"])
    assert_refuses(
        BlockMode, {"blocks": 3, "domain": LETTERS, "epsilon": 1, "delta": "0.1"}, numbers=["epsilon", "delta"]
    )
    good = {"function": most, "aggregator": mode(4), "relation": ADD_REMOVE, "trusted": True}
    assert_refuses(SubsampleAndAggregate, good, numbers=["memberships"])
    for extra in ({"trusted": "yes"}, {"trusted": False, "function": lambda rows: 1}, {"function": 5}):
        with pytest.raises(DiscreetError):
            SubsampleAndAggregate(**good | extra)  # type: ignore[arg-type]
    for fields in ({"blocks": 0}, {"entries": 0}, {"domain": ("a",)}, {"domain": "ab"}):
        with pytest.raises(DiscreetError):
            BlockMode(**{"blocks": 3, "domain": LETTERS, "epsilon": 1, "delta": "0.1"} | fields)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="number of blocks is public"):
        BlockNumber(query=LowerMedianQuery(grid=GRID), recipe=polynomial(1, beta="0.1"))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="assignments"):
        mechanism.distribution(["a"] * 20)
