"""The scoreboard: diaries are found by a few things known roughly; nobody is named who does not stand out."""

from __future__ import annotations

import json
from datetime import date, timedelta
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidParameter, Refused
from discreet.lab.attacks import Rule, item_counts, scoreboard
from discreet.lab.attacks.scoreboard import ItemCounts, Scoreboard, _said
from discreet.lab.attacks.success_rates import Success
from discreet.privacy import NotPrivate, PureDP, Relation, best_tpr

COLUMNS = {"person": "who", "item": "film", "value": "stars", "when": "day"}
FALSE_ALARM = 1e-9


@cache
def films(people: int = 400, each: int = 12, there_are: int = 300) -> pa.Table:
    """Everybody rates a few of many films, popular ones more often, over half a year."""
    generator = np.random.default_rng(8)
    popular = 1 / np.arange(1, there_are + 1)
    rated = [generator.choice(there_are, each, replace=False, p=popular / popular.sum()) for _ in range(people)]
    days = [date(2024, 1, 1) + timedelta(int(day)) for day in generator.integers(0, 180, people * each)]
    who = np.repeat(np.arange(people), each)
    stars = generator.integers(1, 11, people * each)
    return pa.table({"who": who, "film": np.concatenate(rated), "stars": stars, "day": days})


def found(rows: Any = None, **changed: Any) -> Scoreboard:
    options = {"known": (4, 8), "days": (3,), "targets": 200} | changed
    return scoreboard(films() if rows is None else rows, **COLUMNS, **options).value


def test_people_are_found_by_a_few_things_known_roughly() -> None:
    few, many = found().trials
    assert few.right.interval(FALSE_ALARM)[0] > 0.5
    assert many.right.interval(FALSE_ALARM)[0] > 0.8
    assert many.wrong.interval(FALSE_ALARM)[1] < 0.2
    assert (many.eligible, many.right.of) == (400, 200)
    assert many.right.hits + many.wrong.hits + many.nobody.hits == 200


def test_false_facts_and_dates_that_are_weeks_off_do_not_save_anybody() -> None:
    (trial,) = found(known=(8,), days=(14,), false_facts=2).trials
    assert trial.right.interval(FALSE_ALARM)[0] > 0.5


def test_hardly_anybody_is_named_whose_diary_is_not_there() -> None:
    """The test of eccentricity alone would name many: this is what the second rule is for."""
    (with_both,) = found(known=(8,)).trials
    (alone,) = found(known=(8,), rule=Rule(fit=0.0, eccentricity=0.0)).trials
    assert with_both.absent.interval(FALSE_ALARM)[1] < 0.3
    assert alone.absent.interval(FALSE_ALARM)[0] > 0.3


def test_nobody_stands_out_if_all_diaries_are_alike() -> None:
    one = films(people=2, each=12)
    alike = pa.concat_tables([one.slice(0, 12).set_column(0, "who", pa.array(np.full(12, copy))) for copy in range(20)])
    (trial,) = found(alike, known=(8,)).trials
    assert trial.nobody == Success(20, 20)


def test_seconds_since_1970_are_a_time_too() -> None:
    days = np.array(films().column("day").to_pylist(), dtype="datetime64[s]").astype(np.int64)
    seconds = films().set_column(3, "day", pa.array(days))
    assert found(seconds, known=(8,)).trials[0].right.interval(FALSE_ALARM)[0] > 0.8


def test_a_result_is_not_private_and_prints_draws_and_writes_itself() -> None:
    result = scoreboard(films(), **COLUMNS, known=(8,), days=(3, 14), targets=50)
    assert isinstance(result, NotPrivate)
    assert "NOT PRIVATE" in str(result)
    assert "400 people, " in str(result)
    written = json.loads(result.value.to_json())
    assert written["trials"][0]["right"]["of"] == 50
    assert written["baseline"] == 1 / 400
    told = f"{100 * result.value.trials[0].right.share:.1f} %"
    assert f'"told": "{told}"' in result.value.plot().to_json()


@pytest.mark.parametrize(
    "wrong", [{"known": (0,)}, {"known": ()}, {"days": (-1,)}, {"targets": 0}, {"false_facts": 4}, {"known": (13,)}]
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        found(**wrong)


@pytest.mark.parametrize("wrong", [{"fit": 1.5}, {"eccentricity": -1.0}, {"day_scale": 0.0}, {"value_scale": np.nan}])
def test_a_rule_of_nonsense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        Rule(**wrong)


def test_a_network_is_refused() -> None:
    with pytest.raises(Refused, match="another machine"):
        scoreboard("s3://bucket/ratings.parquet", **COLUMNS)


def counts(epsilon: str, **changed: Any) -> ItemCounts:
    return item_counts(films(), epsilon=epsilon, **COLUMNS, **changed).value


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", ["0.1", "1", "10"])
def test_presence_in_noisy_counts_stays_below_the_ceiling(epsilon: str) -> None:
    result = counts(epsilon)
    false = result.absent.interval(FALSE_ALARM)[1]
    ceiling = best_tpr(PureDP(epsilon), Fraction(false), relation=Relation.ADD_REMOVE)
    assert result.present.interval(FALSE_ALARM)[0] <= ceiling


@pytest.mark.statistical
def test_noise_that_is_too_small_breaks_the_ceiling() -> None:
    """A release that forgets that a person counts for many items, and claims ε = 1."""
    every = np.ones((2000, 8), dtype=np.int64)
    present, absent = (_said(part, Fraction(1, 4)) for part in (every, 0 * every))
    ceiling = best_tpr(PureDP(1), Fraction(absent.interval(FALSE_ALARM)[1]), relation=Relation.ADD_REMOVE)
    assert present.interval(FALSE_ALARM)[0] > ceiling


def test_a_person_counts_for_no_more_items_than_is_allowed() -> None:
    """With one item each, at most one of eight known things counts: there is hardly anything to find, at any price."""
    result = counts("1000", most=1)
    assert result.present.hits == 0
    assert counts("1000", most=12).present.share == 1


def test_item_counts_print_draw_and_write_themselves() -> None:
    result = item_counts(films(), epsilon=1, **COLUMNS, targets=50)
    assert "no attacker exceeds" in str(result)
    assert json.loads(result.value.to_json())["most"] == 20
    assert "no attacker exceeds" in result.value.plot().to_json()
    with pytest.raises(InvalidParameter):
        counts("0")
    with pytest.raises(InvalidParameter, match="know fewer"):
        counts("1", known=13)
