"""The functions for people in a hurry: near the truth, paid before read, nothing guessed."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import privacy
from discreet.errors import AnswerFailed, BudgetExceeded, InvalidParameter, Refused
from discreet.privacy.event_tree import leaves
from discreet.privacy.events import Composed, Event

ADD_REMOVE, REPLACE_ONE = dp.Relation.ADD_REMOVE, dp.Relation.REPLACE_ONE
DATA = [float(value % 50) for value in range(1000)]
LETTERS = list("aaabbc") * 100
ROWS = [[0.3, -0.4]] * 500

# Every function with what it needs besides a relation and a budget.
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "count": (DATA, {}),
    "sum": (DATA, {"bounds": (0, 50)}),
    "mean": (DATA, {"bounds": (0, 50)}),
    "variance": (DATA, {"bounds": (0, 50)}),
    "proportion": ([value > 24 for value in DATA], {}),
    "histogram": (LETTERS, {"bins": ["a", "b", "c"]}),
    "quantile": (DATA, {"q": 0.5, "bounds": (0, 50)}),
    "median": (DATA, {"bounds": (0, 50)}),
    "mode": (LETTERS, {"candidates": ["a", "b", "c"]}),
    "top_k": (LETTERS, {"k": 2, "candidates": ["a", "b", "c"]}),
    "randomized_response": (LETTERS, {"categories": ["a", "b", "c"]}),
    "vector_mean": (ROWS, {"bound": 1, "dimension": 2}),
    "workload": (LETTERS, {"queries": "prefix", "cells": ["a", "b", "c"]}),
}
TRUTHS: dict[str, Any] = {
    "count": 1000,
    "sum": sum(DATA),
    "mean": 24.5,
    "variance": (50**2 - 1) / 12,
    "proportion": 0.5,
    "quantile": 24.5,
    "median": 24.5,
    "mode": "a",
    "top_k": ("a", "b"),
}
NEITHER_RHO_NOR_DELTA = {"quantile", "median", "mode", "top_k", "randomized_response"}


def call(name: str, relation: Any, **fields: Any) -> Any:
    data, known = CALLS[name]
    return getattr(dp, name)(data, relation=relation, **known | fields)


class Purse:
    """A budget that remembers, and refuses beyond its end."""

    def __init__(self, charges: int = 1) -> None:
        self.left, self.seen = charges, []

    def charge(
        self, event: Event, *, relation: Any, purpose: str, unit: str = "row", idempotency_key: str | None = None
    ) -> None:
        if self.left == 0:
            raise BudgetExceeded(asked=event, left=0)
        self.left -= 1
        self.seen.append((event, relation, purpose))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", TRUTHS)
def test_answers_are_near_the_truth_at_a_large_epsilon(name: str, relation: Any) -> None:
    value = call(name, relation, epsilon=50).value
    if isinstance(TRUTHS[name], (str, tuple)):
        assert value == TRUTHS[name]
    else:
        assert float(value) == pytest.approx(TRUTHS[name], rel=0.05)


@pytest.mark.parametrize("name", CALLS)
def test_a_release_costs_exactly_what_was_named(name: str) -> None:
    release = call(name, REPLACE_ONE, epsilon="0.3")
    assert release.cost == "ε = 0.3"
    assert release.relation is REPLACE_ONE
    assert privacy.epsilon(release.event, 0, relation=REPLACE_ONE) == pytest.approx(0.3)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in NEITHER_RHO_NOR_DELTA])
def test_gaussian_budgets_are_kept(name: str) -> None:
    release = call(name, ADD_REMOVE, epsilon=1, delta="1e-6")
    assert release.cost == "ε = 1, δ = 1e-6"
    assert privacy.epsilon(release.event, "1e-6", relation=ADD_REMOVE) <= 1
    release = call(name, ADD_REMOVE, rho="0.02")
    assert release.cost == "ρ = 0.02"


@pytest.mark.parametrize("name", CALLS)
def test_every_function_asks_for_relation_and_budget(name: str) -> None:
    function = getattr(dp, name)
    parameters = inspect.signature(function).parameters
    assert parameters["relation"].default is inspect.Parameter.empty
    assert parameters["epsilon"].default in (None, inspect.Parameter.empty)
    keywords = [p for p in parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    assert {"relation", "epsilon", "session"} <= {p.name for p in keywords}
    data, known = CALLS[name]
    with pytest.raises(TypeError):
        function(data, epsilon=1, **known)
    with pytest.raises((TypeError, InvalidParameter)):
        call(name, ADD_REMOVE)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "x", True, "1e-30"])
@pytest.mark.parametrize("name", CALLS)
def test_a_bad_epsilon_is_refused_and_nothing_is_charged(name: str, epsilon: Any) -> None:
    purse = Purse()
    if epsilon == "1e-30" and name in NEITHER_RHO_NOR_DELTA:
        return  # Choices and answers have no scale that could be too large.
    with pytest.raises(InvalidParameter):
        call(name, REPLACE_ONE, epsilon=epsilon, session=purse)
    assert purse.seen == []


@pytest.mark.parametrize("relation", ["add remove", None, 0])
@pytest.mark.parametrize("name", CALLS)
def test_a_bad_relation_is_refused(name: str, relation: Any) -> None:
    with pytest.raises(InvalidParameter):
        call(name, relation, epsilon=1)


@pytest.mark.parametrize(
    "budget",
    [{}, {"delta": "1e-6"}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": "1e-6"}, {"epsilon": 1, "delta": 0},
     {"epsilon": 1, "delta": 1}, {"epsilon": 1, "delta": math.nan}, {"rho": 0}, {"rho": math.inf}],
)  # fmt: skip
def test_budgets_that_say_too_little_or_too_much_are_refused(budget: dict[str, Any]) -> None:
    for name in CALLS:
        if name not in NEITHER_RHO_NOR_DELTA:
            with pytest.raises(InvalidParameter):
                call(name, ADD_REMOVE, **budget)


def test_a_large_delta_is_refused_where_the_public_rows_is_known() -> None:
    with pytest.raises(InvalidParameter, match="public_rows"):
        call("count", ADD_REMOVE, epsilon=1, delta="0.001", public_rows=1000)
    with pytest.raises(InvalidParameter, match="public_rows"):
        call("mean", REPLACE_ONE, epsilon=1, delta="0.001")  # a thousand rows, and that is public
    call("mean", REPLACE_ONE, epsilon=1, delta="0.001", allow_large_delta=True)
    call("mean", ADD_REMOVE, epsilon=1, delta="0.001")


@pytest.mark.parametrize("name", CALLS)
def test_the_session_pays_once_what_the_release_says(name: str) -> None:
    purse = Purse()
    release = call(name, REPLACE_ONE, epsilon="0.3", session=purse)
    ((event, relation, purpose),) = purse.seen
    assert event == release.event
    assert relation is REPLACE_ONE
    assert purpose


class Guarded(list[Any]):
    """A column that notices when it is read. Its length is public under replace-one only."""

    def __iter__(self) -> Any:
        raise AssertionError("read")

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("read")


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_read_before_it_is_paid_for(name: str, relation: Any) -> None:
    if name == "randomized_response" and relation is ADD_REMOVE:
        return
    _, known = CALLS[name]
    with pytest.raises(BudgetExceeded):
        getattr(dp, name)(Guarded(DATA), relation=relation, epsilon=1, session=Purse(0), **known)
    with pytest.raises(AnswerFailed):
        getattr(dp, name)(Guarded(DATA), relation=relation, epsilon=1, session=Purse(1), **known)
    with pytest.raises(AssertionError, match="read"):
        getattr(dp, name)(Guarded(DATA), relation=relation, epsilon=1, **known)


def test_what_is_no_column_is_refused_before_it_is_paid_for() -> None:
    for name in CALLS:
        purse = Purse()
        _, known = CALLS[name]
        with pytest.raises(InvalidParameter):
            getattr(dp, name)({1, 2}, relation=REPLACE_ONE, epsilon=1, session=purse, **known)
        assert purse.seen == []


@pytest.mark.parametrize("name", ["sum", "mean", "variance", "quantile", "median"])
def test_missing_bounds_name_three_ways_out(name: str) -> None:
    with pytest.raises(Refused) as refusal:
        call(name, ADD_REMOVE, epsilon=1, bounds=None)
    for way in ("publicly known", "histogram", "quantile"):
        assert way in str(refusal.value)


@pytest.mark.parametrize(
    "bounds", [5, (1,), (1, 2, 3), (3, 1), (1, 1), (0, math.inf), (math.nan, 1), ("a", "b"), (None, 1)]
)
def test_bad_bounds_are_refused(bounds: Any) -> None:
    for name in ("sum", "mean", "variance", "median"):
        with pytest.raises(InvalidParameter):
            call(name, ADD_REMOVE, epsilon=1, bounds=bounds)


def test_randomized_response_does_not_exist_under_add_remove() -> None:
    with pytest.raises(Refused, match="ADD_REMOVE"):
        call("randomized_response", ADD_REMOVE, epsilon=1)


def test_missing_values_count_as_declared() -> None:
    column = [None, float("nan"), "x", 10.0]
    wide: dict[str, Any] = {"relation": ADD_REMOVE, "epsilon": 10**4, "step": 1}
    assert dp.sum(column, bounds=(-20, 20), **wide).value == 10
    assert dp.sum(column, bounds=(5, 20), **wide).value == 25
    assert dp.sum(column, bounds=(-20, 20), missing=7, **wide).value == 31
    mean = dp.mean(column, bounds=(0, 20), relation=REPLACE_ONE, epsilon=10**4, step=1)
    assert mean.value == 10


def test_ranges_hold_their_lower_edge_and_the_last_one_both() -> None:
    for column in (
        [0, 9.99, 10, 20, 20.01, -1, None, "x", "15", math.nan],
        np.array([0, 9.99, 10, 20, 20.01, -1, np.nan, 15]),
    ):
        release = dp.histogram(column, edges=[0, 10, 20], relation=ADD_REMOVE, epsilon=10**4)
        assert release.as_dict() == {"[0, 10)": 2, "[10, 20]": 3}
    tenth = dp.histogram([0.1, 0.3], edges=[0, 0.1, 0.3, 1], relation=ADD_REMOVE, epsilon=10**4)
    assert tenth.value == (0, 1, 1)


@pytest.mark.parametrize(
    "fields",
    [{}, {"bins": ["a"], "edges": [0, 1]}, {"edges": [1]}, {"edges": [1, 1]}, {"edges": [2, 1]}, {"bins": "abc"},
     {"edges": [0, math.inf]}, {"bins": []}],
)  # fmt: skip
def test_bad_bins_and_edges_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        dp.histogram(DATA, relation=ADD_REMOVE, epsilon=1, **fields)


def test_a_candidate_is_selected_by_its_score() -> None:
    release = dp.select(["x", "y"], [0, 100], sensitivity=1, relation=ADD_REMOVE, epsilon=10)
    assert release.value == "y"
    assert repr(release) == "y, ε = 10"
    purse = Purse()
    dp.select(["x", "y"], [0, 100], sensitivity=1, relation=ADD_REMOVE, epsilon=10, session=purse)
    assert purse.seen[0][0] == release.event
    with pytest.raises(InvalidParameter):
        dp.select(["x", "y"], [0], sensitivity=1, relation=ADD_REMOVE, epsilon=10)


def test_costs_of_many_answers_compose() -> None:
    spent = [call(name, REPLACE_ONE, epsilon="0.1").event for name in CALLS]
    total = privacy.epsilon(Composed(spent), 0, relation=REPLACE_ONE)
    assert total == pytest.approx(0.1 * len(CALLS))
    assert total >= 0.1 * len(CALLS) - 1e-12
    assert leaves(Composed(spent), relation=REPLACE_ONE).total() >= len(CALLS)


def test_shares_of_a_survey_have_names_and_intervals() -> None:
    release = dp.randomized_response(LETTERS, categories=["a", "b", "c"], relation=REPLACE_ONE, epsilon=3)
    assert list(release.as_dict()) == ["a", "b", "c"]
    assert sum(release.value) == 1
    for value, truth in zip(release.value, (1 / 2, 1 / 3, 1 / 6), strict=True):
        assert abs(float(value) - truth) < 0.25


def test_tables_of_vectors_are_read(recwarn: Any) -> None:
    import pandas as pd

    frame = pd.DataFrame(ROWS)
    release = dp.vector_mean(frame, relation=ADD_REMOVE, bound=1, dimension=2, epsilon=100)
    assert [round(float(value), 1) for value in release.value] == [0.3, -0.4]
    assert not recwarn.list


@pytest.mark.parametrize("value", [1e308, -math.inf, math.nan, None, "x", 10**400])
@pytest.mark.parametrize("name", ["count", "sum", "mean", "variance", "quantile", "median", "proportion"])
def test_no_answer_is_infinite_or_no_number(name: str, value: Any) -> None:
    _, known = CALLS[name]
    release = getattr(dp, name)([value] * 3, relation=REPLACE_ONE, epsilon=1, **known)
    assert math.isfinite(release.value)
    assert isinstance(release.value, (int, Fraction))


# --- quantiles: several at once, and with an interval. ---


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("spent", [{"epsilon": 8}, {"epsilon": 8, "delta": "1e-6"}, {"rho": 8}])
def test_several_quantiles_are_near_and_cost_what_was_said(relation: dp.Relation, spent: dict[str, Any]) -> None:
    found = dp.quantiles(DATA, [0.25, 0.5, 0.75], bounds=(0, 50), step=1, relation=relation, **spent)
    assert np.allclose([float(one) for one in found.value], [12, 24.5, 37], atol=5)
    assert found.estimate == tuple(sorted(found.estimate))
    if "epsilon" in spent:
        bound = privacy.epsilon(found.event, spent.get("delta", 0), relation=relation)
        assert bound <= 8.0000001
        assert bound > 7.9


def test_several_quantiles_say_what_to_spend() -> None:
    for wrong in ({}, {"epsilon": 1, "rho": 1}, {"delta": "1e-6"}):
        with pytest.raises(InvalidParameter, match="what to spend"):
            dp.quantiles(DATA, [0.5], bounds=(0, 50), relation=ADD_REMOVE, **wrong)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_a_median_has_an_interval_where_it_is_asked_for(relation: dp.Relation) -> None:
    plain = dp.median(DATA, bounds=(0, 50), relation=relation, epsilon=1)
    with pytest.raises(Refused):
        plain.interval()
    asked = dp.median(DATA, bounds=(0, 50), relation=relation, epsilon=1, confidence=1 - 1e-9)
    low, high = asked.interval(1 - 1e-9)
    assert low <= Fraction(49, 2) <= high
    assert asked.cost == plain.cost == "ε = 1"
    wider = dp.median(DATA, bounds=(0, 50), relation=relation, epsilon=1, population=True).interval()
    assert wider[1] > wider[0]
    with pytest.raises(InvalidParameter, match="exponential"):
        dp.median(DATA, bounds=(0, 50), relation=relation, epsilon=1, confidence=0.9, method="smooth")


@pytest.mark.parametrize(("budget", "flips"), [({"epsilon": 9}, True), ({"epsilon": 9, "delta": "1e-6"}, False)])
def test_permute_and_flip_is_taken_where_epsilon_alone_counts(budget: dict[str, Any], flips: bool) -> None:
    """A ledger with a delta bills a bounded range a quarter of what it bills a pure epsilon, in rho."""
    account = dp.ledger.Account("visits", "row", ADD_REMOVE, dp.Budget(**budget))
    ledger = dp.ledger.Ledger.open("memory", account)
    kind = privacy.PureDP if flips else privacy.BoundedRange
    for step in ("0.0001", 1):
        found = dp.median(DATA, bounds=(0, 50), step=step, relation=ADD_REMOVE, epsilon=1, session=ledger)
        assert found.event == kind(1)
    several = dp.quantiles(DATA, [0.5], bounds=(0, 50), relation=ADD_REMOVE, epsilon=1, session=ledger)
    assert several.event == kind(1)
