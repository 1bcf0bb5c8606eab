"""Quantiles among public candidates: scores by their definition, and the claim on all data sets of a small world."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from subjects import BOTH

from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.mechanisms import Grid, QuantileAmong
from discreet.mechanisms.order_statistics import Ranked
from discreet.privacy.events import PureDP
from discreet.privacy.relation import Relation

GRID = Grid(low=Fraction(0), high=Fraction(9), step=Fraction(1), default=Fraction(4))


def made(candidates: tuple[int, ...] = (0, 2, 3, 7), q: str = "1/2", relation: Relation = BOTH[0]) -> QuantileAmong:
    return QuantileAmong(candidates=candidates, quantile=Fraction(q), epsilon=Fraction(1), grid=GRID, relation=relation)


@given(
    st.lists(st.integers(0, 9), max_size=20),
    st.sets(st.integers(0, 9), min_size=2),
    st.fractions(0, 1, max_denominator=9),
)
def test_scores_are_signed_depths(data: list[int], places: set[int], q: Fraction) -> None:
    mechanism = made(tuple(sorted(places)), str(q))
    expected = []
    for place in sorted(places):
        below, at_most = sum(v < place for v in data), sum(v <= place for v in data)
        expected.append(min(q * len(data) - below, at_most - q * len(data)) * q.denominator)
    assert [Fraction(int(s)) for s in mechanism.scores(Ranked.of(data, GRID))] == expected


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("q", ["1/2", "9/10", "0"])
def test_claim_holds_on_all_data_sets(relation: Relation, q: str) -> None:
    sizes = [0, 1, 2, 3] if relation is Relation.ADD_REMOVE else [3]
    report = verify.check(made(q=q, relation=relation), worlds((0, 1, 3, 5, 9), sizes))
    assert report.holds, str(report)


def test_half_the_sensitivity_is_refuted() -> None:
    """Scores of replace-one with the noise for add-remove."""
    wrong = made(relation=Relation.ADD_REMOVE)
    assert verify.check(wrong, worlds((0, 4, 9), [5]), relation=Relation.REPLACE_ONE, claim=PureDP(1)).violated


@pytest.mark.parametrize("candidates", [(), (3,), (3, 3), (3, 2), (-1, 4), (4, 10)])
def test_candidates_that_are_no_list_of_grid_points_are_refused(candidates: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter):
        made(candidates)


def test_the_release_is_a_candidate() -> None:
    assert {int(made().release([1, 2, 3]).value) for _ in range(50)} <= {0, 2, 3, 7}
