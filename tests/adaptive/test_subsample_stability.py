"""The answer that most parts of the data give: how many parts it takes, against hand-checked numbers and the law."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from threshold_worlds import ADD_REMOVE, BOTH, LETTERS, REPLACE_ONE, enclosed, small

from discreet.adaptive import BlockMode, SubsampleAndAggregate, release_if_subsampling_stable
from discreet.adaptive.no_answer import NO_ANSWER
from discreet.adaptive.subsample_aggregate import blocks_needed
from discreet.errors import DiscreetError
from discreet.lab import verify

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "subsample_aggregate.json").read_text())["vectors"]
Given = dict[str, Any]


def blocks_for_two_thirds(given: Given) -> int:
    chance = 1 - Fraction(math.exp(-given["t"])) / 2
    part = Fraction(given["stable_fraction"]).limit_denominator(100)
    return blocks_needed(epsilon=given["eps"], delta=given["delta"], agreement=part, confidence=chance)


def book_rate(given: Given) -> float:
    """The part of the data in one sample that the textbook asks for; its samples overlap."""
    return float(given["eps"] / (64 * math.log(1 / given["delta"])))


CHECKS = {"ml_attacks/sa_blocks_e1.0": blocks_for_two_thirds, "ml_attacks/sa_dworkroth_q": book_rate}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vectors(vector: Given) -> None:
    found = CHECKS[vector["id"]](vector["inputs"])
    assert math.isclose(found, vector["expected"], rel_tol=max(vector["tolerance"], 1e-15))


def test_every_vector_is_checked() -> None:
    assert {vector["id"] for vector in VECTORS} == set(CHECKS)


def test_disjoint_blocks_may_hold_more_of_the_data_than_the_textbook_asks_for() -> None:
    (rate,) = (vector for vector in VECTORS if vector["id"].endswith("_q"))
    assert 1 / blocks_needed(epsilon=1, delta="1e-6") > 8 * rate["expected"]


@pytest.mark.parametrize("epsilon", ["0.5", 5])
@pytest.mark.parametrize("agreement", ["0.6", "2/3", 1])
@pytest.mark.parametrize("memberships", [1, 3])
def test_agreeing_blocks_are_enough_and_fewer_are_not(epsilon: Any, agreement: Any, memberships: int) -> None:
    """By the exact chance of the mode, where all other blocks agree on the value that wins ties."""
    asked = {"epsilon": epsilon, "delta": "1e-5", "memberships": memberships, "confidence": "0.9"}
    blocks = blocks_needed(agreement=agreement, **asked)

    def chance(count: int) -> float:
        agreeing = math.ceil(Fraction(agreement) * count)
        votes = ["b"] * agreeing + ["a"] * (count - agreeing)
        mode = BlockMode(
            blocks=count, domain=("a", "b"), epsilon=Fraction(epsilon), delta=Fraction("1e-5"), entries=memberships
        )
        return enclosed(mode.test, "chance", mode._winner(votes)[1])[0] if agreeing else 0.0

    assert all(chance(count) >= 0.9 for count in range(blocks, blocks + 40))
    assert blocks == memberships or chance(blocks - 1) < 0.9


def test_rule_of_the_notes_does_not_hold() -> None:
    """With parts of epsilon t of the data, t = 1, nothing is ever named: delta is missing there."""
    blocks = 2
    mode = BlockMode(blocks=blocks, domain=None, epsilon=Fraction(1, 2), delta=Fraction("1e-6"))
    chance = enclosed(mode.test, "chance", mode._winner(["b"] * blocks)[1])[1]
    assert chance < 1e-5 < 1 - math.exp(-1)


def size(rows: Any) -> int:
    """A block of about sixty rows has one of about thirty sizes."""
    return len(rows)


def loudest(rows: Any) -> Any:
    return max(rows, default=None)


def test_a_stable_answer_is_named_and_an_unstable_one_is_not() -> None:
    asked = {"epsilon": 2, "delta": "1e-15", "relation": REPLACE_ONE, "confidence": "0.999999999999", "trusted": True}
    stable = release_if_subsampling_stable(loudest, **asked)  # type: ignore[arg-type]
    assert stable.release(["a"] * 4000 + ["c"] * 4000).value == "c"
    unstable = release_if_subsampling_stable(size, **asked)  # type: ignore[arg-type]
    assert unstable.release(["a"] * 8000).value == NO_ANSWER


@pytest.mark.parametrize("relation", BOTH)
def test_stable_answers_keep_their_claim(relation: Any) -> None:
    made = release_if_subsampling_stable(
        loudest, epsilon=4, delta="0.2", relation=relation, confidence="0.5", agreement=1, trusted=True
    )
    assert made.aggregator.blocks <= 4
    report = verify.check(made, small(LETTERS, relation, 3))
    assert report.holds, str(report)


def test_refuses_nonsense() -> None:
    for extra in (
        {"agreement": "1/2"},
        {"agreement": 2},
        {"agreement": float("nan")},
        {"confidence": 1},
        {"confidence": "x"},
        {"epsilon": 0},
        {"delta": 0},
        {"memberships": 0},
    ):
        with pytest.raises(DiscreetError):
            blocks_needed(**{"epsilon": 1, "delta": "1e-6"} | extra)  # type: ignore[arg-type]
    made = release_if_subsampling_stable(loudest, epsilon=1, delta="1e-6", relation=ADD_REMOVE, trusted=True)
    assert isinstance(made, SubsampleAndAggregate)
