"""The exact law of one step, for all neighbours in small worlds, against what the step claims to spend."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from small_steps import SmallPeopleStep, SmallStep, arrangements

from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import Worlds
from discreet.privacy import Relation

EPSILONS = [Fraction(1, 4), Fraction(1), Fraction(3)]
VALUES = [(-1.0,), (0.4,), (9.0,), (math.inf,)]
SMALL = worlds(VALUES, range(4))
STEP = SmallStep()
SAMPLED = SmallStep(rate=Fraction(1, 3))
COUNTED = SmallStep(rate=Fraction(1, 2), count_variance=Fraction(5, 4))


def claims_hold(step: SmallStep | SmallPeopleStep, data: Worlds) -> bool:
    return verify.check(step, data, relation=Relation.ADD_REMOVE, epsilons=EPSILONS).holds


def test_a_multiset_has_as_many_orders_as_it_should() -> None:
    rows = ((1.0,), (1.0,), (2.0,), (3.0,))
    assert len(set(arrangements(rows))) == len(list(arrangements(rows))) == 12


@pytest.mark.parametrize("step", [STEP, SAMPLED, replace(SAMPLED, block=1), replace(SAMPLED, block=3)])
def test_a_step_claims_no_less_than_it_spends(step: SmallStep) -> None:
    result = verify.check(step, SMALL, relation=Relation.ADD_REMOVE, epsilons=EPSILONS)
    assert result.holds, str(result)
    assert result.lower > 0


def test_two_coordinates_claim_no_less_than_they_spend() -> None:
    step = SmallStep(rate=Fraction(1, 2), coordinates=2, multiplier=Fraction(1, 2))
    data = worlds([(0.6, -0.6), (-0.3, 5.0)], range(3))
    assert claims_hold(step, data)
    assert not claims_hold(replace(step, wrong="half noise"), data)


def test_gradient_and_count_together_claim_no_less_than_they_spend() -> None:
    data = worlds([(0.4,), (9.0,)], range(2))
    assert claims_hold(COUNTED, data)
    assert not claims_hold(replace(COUNTED, wrong="count is free"), data)


@pytest.mark.parametrize(
    "wrong", ["half noise", "noise / B", "no clip", "actual divisor", "empty is skipped", "fixed size", "no grid"]
)
def test_every_planted_mistake_is_caught(wrong: str) -> None:
    assert not claims_hold(replace(SAMPLED, wrong=wrong), worlds(VALUES[:3], range(3)))


def test_without_the_random_order_one_record_moves_every_block() -> None:
    """Rows of 0.4 and 0 grid steps, so placed that one more in front pairs up what was apart, in block after block."""
    low, high = (0.0,), (0.4,)
    before = (low, high, high, low) * 3
    data = Worlds((before, (low, *before)), ordered=True)
    step = SmallStep(clip=Fraction(1, 2), grid=Fraction(1), multiplier=Fraction(1, 2))
    assert claims_hold(step, data)
    assert not claims_hold(replace(step, wrong="no order"), data)


PEOPLE = [((-1.0,),), ((9.0,), (9.0,)), ((0.4,), (9.0,), (9.0,)), ((math.inf,), (1.0,))]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("step", [STEP, SAMPLED])
def test_a_person_with_several_rows_loses_no_more_than_a_row(step: SmallStep, most: int) -> None:
    result = verify.check(
        SmallPeopleStep(step=step, most=most), worlds(PEOPLE, range(3)), relation=Relation.ADD_REMOVE, epsilons=EPSILONS
    )
    assert result.holds, str(result)
    assert result.lower > 0


@pytest.mark.parametrize("wrong", ["clips rows", "samples rows", "noise for a row", "two groups"])
def test_every_mistake_about_people_is_caught(wrong: str) -> None:
    assert not claims_hold(SmallPeopleStep(step=SAMPLED, wrong=wrong), worlds(PEOPLE[:3], range(2)))
