"""What a series costs follows from public facts, and is what its wish asks for."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from running_worlds import day, plan_of, running_of, session_of

from discreet import Budget, Relation
from discreet.errors import InvalidParameter, Refused
from discreet.privacy import epsilon
from discreet.release import advance, price_running
from discreet.release.cumulative.advance import dummy_running, next_charge
from discreet.release.plan import Allowance, Period, Wish

ADD = Relation.ADD_REMOVE


def test_every_wish_is_met(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    by_rho = price_running(plan, running_of(wish=Wish(rho=Fraction(1, 8))))
    assert by_rho.event.mu_squared == Fraction(1, 4)
    by_epsilon = price_running(plan, running_of(wish=Wish(epsilon=Fraction(1))))
    assert 0.9999 <= epsilon(by_epsilon.event, Fraction(1, 10**7), relation=ADD) <= 1
    by_share = price_running(plan, running_of(wish=Wish(share=Fraction(1, 4))))
    assert by_share.mu_squared == by_epsilon.mu_squared / 4
    by_error = price_running(plan, running_of(wish=Wish(error=Fraction(20))))
    assert 19.9 < max(by_error.errors) <= 20
    rho = replace(plan, allowance=Allowance(rho=Fraction(1, 2), delta=Fraction(1, 10**6)))
    assert price_running(rho, running_of(wish=Wish(share=Fraction(1, 2)))).mu_squared == Fraction(1, 2)


def test_the_event_is_exact_and_says_the_price(tmp_path: Path) -> None:
    priced = price_running(plan_of(tmp_path), running_of(days=30, max_days=3, wish=Wish(rho=Fraction(1, 3))))
    assert priced.event.squared_sensitivity == priced.strategy.squared_sensitivity(3)
    assert priced.event.variance == Fraction(priced.squared_sensitivity) / Fraction(2, 3)
    assert priced.epsilon == epsilon(priced.event, Fraction(1, 10**7), relation=ADD)


def test_a_person_day_costs_like_one_day_and_says_so(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    person, by_day = price_running(plan, running_of()), price_running(plan, running_of(person_day=True))
    assert by_day.event == person.event
    assert by_day.unit == "patient and day"
    assert "several days" in str(by_day)
    assert "one patient, counted on 1 day" in str(person)


def test_errors_hold_with_the_rounding_that_they_name(tmp_path: Path) -> None:
    priced = price_running(plan_of(tmp_path), running_of())
    for error, deviation in zip(priced.errors, priced.deviations, strict=True):
        assert error > Fraction(195996, 100000) * deviation
        assert error < Fraction(1962, 1000) * deviation + Fraction(1, 100)


WRONG: dict[str, dict[str, Any]] = {
    "no wish": {"wish": Wish()},
    "two wishes": {"wish": Wish(rho=Fraction(1), epsilon=Fraction(1))},
    "a relative error": {"wish": Wish(relative_error=Fraction(1, 10))},
    "no days": {"days": 0},
    "no counted days": {"max_days": 0},
    "more counted days than days": {"max_days": 9},
    "days and person days": {"max_days": 2, "person_day": True},
    "a price that protects nobody": {"wish": Wish(rho=Fraction(51))},
    "a price of nothing": {"wish": Wish(rho=Fraction(1, 10**12))},
    "an error of nobody": {"wish": Wish(error=Fraction(1, 100))},
    "a century": {"days": 36_500},
}


@pytest.mark.parametrize("what", WRONG)
def test_nonsense_is_refused(what: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter):
        price_running(plan_of(tmp_path), running_of(**WRONG[what]))


def test_a_pure_budget_and_epsilon_without_delta_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="give"):
        price_running(plan_of(tmp_path, budget=Budget(4)), running_of())
    plan = replace(plan_of(tmp_path), allowance=Allowance(epsilon=Fraction(1)))
    with pytest.raises(InvalidParameter, match="needs the delta"):
        price_running(plan, running_of(wish=Wish(epsilon=Fraction(1))))
    with pytest.raises(InvalidParameter, match="a row is on one day"):
        price_running(plan_of(tmp_path, unit="row"), running_of(max_days=2))


def test_text_and_json_tell_price_errors_and_what_else_could_be_done(tmp_path: Path) -> None:
    priced = price_running(plan_of(tmp_path), running_of(days=365))
    for word in (
        "365 days from 2026-01-01",
        "ρ = 0.5",
        "once for all days",
        "scaled square root",
        "independent totals",
    ):
        assert word in str(priced)
    packed = json.loads(json.dumps(priced.to_json()))
    assert len(packed["deviations"]) == len(packed["errors"]) == 365
    assert packed["instead"]["independent totals"] > 6 * max(packed["deviations"])
    assert packed["instead"]["no way goes below"] < max(packed["deviations"])


def test_a_dummy_looks_like_a_release_and_costs_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, running_of())
    found = dummy_running(plan, plan.running[0], until=day(3))
    assert found is not None
    assert found.charge is None
    assert found.table.names == ("day", "total")
    assert len(found.table) == len(found.deviations) == 3
    assert dummy_running(plan, plan.running[0], until=date(2025, 1, 1)) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("person_day", [False, True])
def test_the_next_charge_holds_a_series_until_it_has_begun(person_day: bool, tmp_path: Path) -> None:
    running = running_of(person_day=person_day)
    plan, period = plan_of(tmp_path, running), Period(label="2026-01-01", first=day(0), end=day(1))
    before = next_charge(plan, period)
    assert dict(before.parts) == {"so_far": price_running(plan, running).event}
    assert before.epsilon == price_running(plan, running).epsilon
    assert list(tmp_path.iterdir()) == []
    with session_of(plan, [(1, 0)]) as session:
        assert next_charge(plan, period, session).parts.keys() == {"so_far"}
        advance(plan, running, session, until=day(1))
        assert next_charge(plan, period, session).parts == {}
    after = next_charge(plan, period)
    assert (after.event, after.epsilon) == (None, 0.0)
    assert next_charge(plan, Period(label="once")).parts == {}  # A plan that releases once tells no series.
