"""Lone cells: whoever is alone in an exact table is hidden in a private one, as far as the guarantee says."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidParameter
from discreet.lab.attacks import lone_cells
from discreet.lab.attacks.uniqueness_search import LoneCells, _seen
from discreet.privacy import PureDP, Relation, best_tpr

FALSE_ALARM = 1e-9
PEOPLE = pa.table({"a": np.arange(3000) % 211, "b": np.arange(3000) * 7 % 97})


def ceiling(found: LoneCells) -> float:
    false = Fraction(found.empty.interval(FALSE_ALARM)[1])
    return best_tpr(PureDP(exact_epsilon(found)), false, relation=Relation.ADD_REMOVE)


def exact_epsilon(found: LoneCells) -> Fraction:
    return Fraction(str(found.epsilon))


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", ["0.1", "1", "10"])
def test_seeing_those_who_are_alone_stays_below_the_ceiling(epsilon: str) -> None:
    found = lone_cells(PEOPLE, ["a", "b"], epsilon=epsilon).value
    assert (found.alone.of, found.empty.of) == (3000, 211 * 97 - 3000)
    assert found.alone.interval(FALSE_ALARM)[0] <= ceiling(found)


@pytest.mark.statistical
def test_noise_that_is_too_small_breaks_the_ceiling() -> None:
    """Counts at ε = 8 that claim ε = 1."""
    alone, empty = _seen(20_000, 1, Fraction(8)), _seen(20_000, 0, Fraction(8))
    most = best_tpr(PureDP(1), Fraction(empty.interval(FALSE_ALARM)[1]), relation=Relation.ADD_REMOVE)
    assert alone.interval(FALSE_ALARM)[0] > most


def test_with_hardly_any_noise_everybody_who_is_alone_is_seen() -> None:
    found = lone_cells(PEOPLE, ["a", "b"], epsilon=1000).value
    assert (found.alone.share, found.empty.share) == (1, 0)


def test_a_result_prints_draws_and_writes_itself() -> None:
    found = lone_cells(PEOPLE, {"a": "a", "half": "b // 2"}, epsilon=1)
    assert "NOT PRIVATE" in str(found)
    assert json.loads(found.value.to_json())["columns"] == ["a", "half"]
    assert "no attacker exceeds" in found.value.plot().to_json()


def test_nonsense_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="above 0"):
        lone_cells(PEOPLE, ["a"], epsilon=0)
    with pytest.raises(InvalidParameter, match="no cell has exactly one person"):
        lone_cells(PEOPLE, ["a"], epsilon=1)
    many = pa.table({name: np.arange(400) for name in "abc"})
    with pytest.raises(InvalidParameter, match="64,000,000 combinations"):
        lone_cells(many, ["a", "b", "c"], epsilon=1)
