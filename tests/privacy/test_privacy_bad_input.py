"""Nonsense is refused by name; extremes are accounted for or refused; nothing is NaN, hangs or gets cheaper."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from discreet.errors import DiscreetError, InvalidParameter, UnsupportedEvent
from discreet.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Grouped,
    Laplace,
    Parallel,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Relation,
    Repeated,
    SampledWithoutReplacement,
    best_tpr,
    calibrate,
    compose,
    convert,
    delta,
    epsilon,
    epsilon_bounds,
    from_json,
    gaussian_sigma,
    gdp_mu,
    group,
    renyi,
    subsample,
    tradeoff,
)

AR, RO = Relation.ADD_REMOVE, Relation.REPLACE_ONE
ANY: Any = None

NOT_NUMBERS: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    Decimal("NaN"),
    Decimal("Infinity"),
    Decimal("1e99999"),
    np.float64("nan"),
    "nan",
    "inf",
    "1,5",
    "",
    "one",
    "1/0",
    "0x10",
    "9" * 5000,
    None,
    True,
    [1],
    (1,),
    {},
    1j,
    b"1",
    object(),
    np.array([1.0]),
]
NEGATIVE: list[Any] = [-1, -1e-320, "-0.5", Fraction(-1, 3), Decimal("-1")]
NOT_COUNTS: list[Any] = [0, -1, 1.0, "3", None, True, Fraction(3), math.nan, math.inf, [1], 1j, Decimal(2)]


def _cases() -> list[tuple[str, Callable[[], object]]]:
    found: list[tuple[str, Callable[[], object]]] = []

    def refuse(name: str, call: Callable[[Any], object], values: list[Any]) -> None:
        for value in values:
            found.append((f"{name}({str(value)[:12]!r}: {type(value).__name__})", partial(call, value)))

    nonsense = NOT_NUMBERS + NEGATIVE
    event = Gaussian(1)
    refuse("epsilon delta", lambda v: epsilon(event, v), [*nonsense, 1, 1.5, "1"])
    refuse("epsilon_bounds delta", lambda v: epsilon_bounds(event, v), [*NEGATIVE, 1, 2, math.nan, None])
    refuse("delta epsilon", lambda v: delta(event, v), nonsense)
    refuse("renyi order", lambda v: renyi(event, v), [*nonsense, 1, 0, "1", "0.999"])
    refuse("tradeoff fpr", lambda v: tradeoff(event, v), [*nonsense, "1.0001", 2])
    refuse("best_tpr fpr", lambda v: best_tpr(event, v), [*NEGATIVE, 2, math.nan, None])
    refuse("sigma epsilon", lambda v: gaussian_sigma(v, 1e-6), nonsense)
    refuse("sigma delta", lambda v: gaussian_sigma(1, v), [*nonsense, 0, 1, 2])
    refuse("sigma sensitivity", lambda v: gaussian_sigma(1, 1e-6, v), [*nonsense, 0, "1e400", "1e-400"])
    refuse("calibrate epsilon", lambda v: calibrate(Gaussian, epsilon=v, delta=1e-6), [*nonsense, 0, "1e-400"])
    refuse("calibrate delta", lambda v: calibrate(Gaussian, epsilon=1, delta=v), [*NEGATIVE, 1, math.nan, None, 0])
    refuse("calibrate event", lambda v: calibrate(v, epsilon=1, delta=1e-6), [None, 3, Gaussian(1), "x"])
    refuse("calibrate flag", lambda v: calibrate(Gaussian, epsilon=1, delta=1e-6, increasing=v), [1, None, "yes"])
    refuse("cks order", lambda v: convert.renyi_to_epsilon(v, 1, 1e-6), [*nonsense, 1])
    refuse("cks divergence", lambda v: convert.renyi_to_epsilon(2, v, 1e-6), nonsense)
    refuse("cks delta", lambda v: convert.renyi_to_epsilon(2, 1, v), [*NEGATIVE, 1, 2, math.nan])
    refuse("cks to delta", lambda v: convert.renyi_to_delta(2, 1, v), nonsense)
    refuse("mironov", lambda v: convert.mironov(2, v, 1e-6), nonsense)
    refuse("zcdp rho", lambda v: convert.zcdp_to_epsilon(v, 1e-6), nonsense)
    refuse("zcdp delta", lambda v: convert.zcdp_to_epsilon(1, v), [*NEGATIVE, 1, math.nan])
    refuse("zcdp simple", lambda v: convert.zcdp_simple(v, 1e-6), nonsense)
    refuse("zcdp to delta", lambda v: convert.zcdp_to_delta(v, 1), nonsense)
    refuse("pure to zcdp", convert.pure_to_zcdp, nonsense)
    refuse("pure to zcdp simple", convert.pure_to_zcdp_simple, nonsense)
    refuse("range to zcdp", convert.bounded_range_to_zcdp, nonsense)
    refuse("to replace one", convert.to_replace_one, [None, 3, "PureDP", RandomizedResponse(1)])
    refuse("advanced times", lambda v: compose.advanced(1, 0, v, 1e-6), NOT_COUNTS)
    refuse("advanced slack", lambda v: compose.advanced(1, 0, 2, v), [*NEGATIVE, 0, 1, math.nan])
    refuse("advanced epsilon", lambda v: compose.advanced(v, 0, 2, 1e-6), nonsense)
    refuse("optimal times", lambda v: compose.optimal(1, 0, v, 1e-6), [*NOT_COUNTS, 10**9])
    refuse("optimal delta", lambda v: compose.optimal(1, v, 2, 1e-6), [*NEGATIVE, 1.5, math.nan])
    refuse("optimal target", lambda v: compose.optimal(1, 0, 2, v), [*NEGATIVE, 1, math.nan, None])
    refuse("basic", compose.basic, [[], None, 3, [1], [Gaussian(1)], "abc", [None]])
    refuse("parallel relation", lambda v: compose.parallel([PureDP(1)], v), [None, "add remove", 1])
    refuse("parallel parts", lambda v: compose.parallel(v, AR), [[], None, [1], [ZCDP(1)]])
    refuse("poisson q", lambda v: subsample.poisson(1, 0, v), [*nonsense, "1.1", 2])
    refuse("poisson epsilon", lambda v: subsample.poisson(v, 0, 0.5), nonsense)
    refuse("without sizes", lambda v: subsample.without_replacement(1, 0, v, 10), [*NOT_COUNTS, 11])
    refuse("with sizes", lambda v: subsample.with_replacement(1, 0, 10, v), NOT_COUNTS)
    refuse("group size", lambda v: group.approximate(1, 0, v), NOT_COUNTS)
    refuse("group order", lambda v: group.renyi(v, 1, 4), [*nonsense, 1, 7])
    refuse("relation", lambda v: epsilon(event, 1e-6, relation=v), ["add remove", 1, AR.name, object()])
    refuse("event", lambda v: epsilon(v, 1e-6), [None, 3, "Gaussian", [Gaussian(1)], Gaussian, {}])
    refuse("event of gdp_mu", gdp_mu, [None, 3, "Gaussian"])
    refuse("event of renyi", lambda v: renyi(v, 2), [None, 3, "Gaussian"])
    refuse("PureDP", PureDP, nonsense)
    refuse("Gaussian", Gaussian, [*nonsense, 0])
    refuse("Laplace", Laplace, [*nonsense, 0])
    refuse("ZCDP", ZCDP, nonsense)
    refuse("GDP", GDP, [*nonsense, 0])
    refuse("DiscreteLaplace scale", lambda v: DiscreteLaplace(v, 1), [*nonsense, 0])
    refuse("DiscreteLaplace shift", lambda v: DiscreteLaplace(1, v), NOT_COUNTS)
    refuse("DiscreteGaussian", lambda v: DiscreteGaussian(v, 1), [*nonsense, 0])
    refuse("RandomizedResponse", lambda v: RandomizedResponse(1, v), [*NOT_COUNTS, 1])
    refuse("PoissonSampled", lambda v: PoissonSampled(event, v), [*nonsense, 0, "1.01"])
    refuse("fixed sample", lambda v: SampledWithoutReplacement(event, v, 10), [*NOT_COUNTS, 11])
    refuse("Repeated", lambda v: Repeated(event, v), NOT_COUNTS)
    refuse("Composed", Composed, [[], None, 3, [1], [None]])
    refuse("Parallel", Parallel, [[], None, 3, [1], [None]])
    refuse("Grouped", lambda v: Grouped(event, v), NOT_COUNTS)
    refuse("from_json", from_json, ["", "{}", "[]", "3", '{"name": "PureDP"}', "null", None])
    return found


CASES = _cases()


def test_there_are_many_of_them() -> None:
    assert len(CASES) >= 1000


@pytest.mark.parametrize("what", sorted({name.partition("(")[0] for name, _ in CASES}))
def test_nonsense_is_refused(what: str) -> None:
    for name, call in (case for case in CASES if case[0].partition("(")[0] == what):
        with pytest.raises(DiscreetError) as refused:
            call()
        assert isinstance(refused.value, (InvalidParameter, UnsupportedEvent)), name
        assert len(str(refused.value)) < 300, name


TINY, HUGE = "1e-320", 1e308
EXTREME_EVENTS: list[tuple[Event, Relation | None]] = [
    (make(value), None)
    for make in (PureDP, Gaussian, Laplace, ZCDP, GDP, BoundedRange, RandomizedResponse)
    for value in (TINY, "1e-12", 10**9, HUGE)
]
EXTREME_EVENTS += [
    (ApproxDP(1, 1), None),
    (ApproxDP(1, "1e-320"), None),
    (ApproxDP(HUGE, 0), None),
    (DiscreteLaplace(TINY, 1), None),
    (DiscreteLaplace(HUGE, 10**12), None),
    (DiscreteLaplace(1, 10**300), None),
    (DiscreteGaussian(TINY, 1), None),
    (DiscreteGaussian(HUGE, 1), None),
    (DiscreteGaussian("0.3", "0.5"), None),
    (DiscreteGaussian(10**9, 10**9), None),
    (PoissonSampled(Gaussian(1), TINY), AR),
    (PoissonSampled(Gaussian(TINY), "0.5"), AR),
    (PoissonSampled(Gaussian(HUGE), "0.5"), AR),
    (PoissonSampled(PureDP(HUGE), "0.5"), AR),
    (PoissonSampled(Composed([Gaussian(1), Laplace(1)]), TINY), AR),
    (SampledWithoutReplacement(Gaussian(1), 1, 10**300), RO),
    (SampledWithoutReplacement(ZCDP(HUGE), 1, 2), RO),
    (Parallel([PureDP(TINY), PureDP(HUGE)]), RO),
    (RandomizedResponse(1, 10**30), None),
    (Grouped(ApproxDP(1, "1e-6"), 10**9), None),
    (Grouped(PoissonSampled(Gaussian(1), "0.1"), 10**9), AR),
]


@pytest.mark.some(33)
@pytest.mark.parametrize(("event", "relation"), EXTREME_EVENTS, ids=[repr(event)[:60] for event, _ in EXTREME_EVENTS])
@pytest.mark.parametrize("times", [1, 10**9])
def test_extremes_are_bounded_or_refused_and_never_get_cheaper(
    event: Event, relation: Relation | None, times: int
) -> None:
    # A billion times a group of a billion is no different from a thousand times, and takes long.
    many = Repeated(event, min(times, 1000) if isinstance(event, Grouped) else times)
    start = time.process_time()
    try:
        upper = epsilon(many, "1e-6", relation=relation)
        lower = epsilon_bounds(many, "1e-6", relation=relation)[0] if times == 1 else 0.0
        spent = delta(many, 1, relation=relation) if times == 1 else 0.0
        divergence = renyi(many, 2, relation=relation)
    except UnsupportedEvent:
        assert isinstance(event, Grouped)
        return
    assert time.process_time() - start < 20
    assert 0 <= lower <= upper
    assert 0 <= spent <= 1
    assert divergence >= 0
    assert not any(map(math.isnan, (lower, upper, spent, divergence)))
    if times > 1:
        assert upper >= epsilon(event, "1e-6", relation=relation) * (1 - 1e-3)
        assert divergence >= renyi(event, 2, relation=relation)


@pytest.mark.parametrize("target", [0, "1e-320", "1e-2000", "1e-100", "0.999999", "0.9999999999999999999999"])
@pytest.mark.parametrize(
    "event",
    [
        PureDP(1),
        Gaussian(1),
        Laplace(1),
        ZCDP(1),
        ApproxDP(1, "1e-6"),
        DiscreteLaplace(2, 3),
        Repeated(Laplace(10), 30),
        Composed([Gaussian(1), Laplace(2)]),
        Composed([Gaussian(1), ZCDP(2)]),
    ],
    ids=repr,
)
def test_every_delta_is_answered(event: Event, target: object) -> None:
    found: Any = target
    lower, upper = epsilon_bounds(event, found)
    assert 0 <= lower <= upper
    assert upper >= epsilon(event, "0.9999999999999999999999")


@pytest.mark.parametrize("level", [0, "1e-320", "1e-2000", 700, 10**6, 1e308, "1e2000"])
@pytest.mark.parametrize(
    "event",
    [
        PureDP(1),
        Gaussian(1),
        ZCDP(1),
        Repeated(Laplace(10), 30),
        Composed([Gaussian(1), Laplace(2)]),
        Composed([Gaussian(1), ZCDP(2)]),
        BoundedRange(3),
    ],
    ids=repr,
)
def test_every_epsilon_is_answered(event: Event, level: object) -> None:
    found: Any = level
    spent = delta(event, found)
    assert 0 <= spent <= delta(event, 0) <= 1
