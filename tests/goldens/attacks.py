"""Attacks on made-up people: what they find under recorded bytes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import discreet as dp
from discreet.lab.attacks.count_tables import noised
from discreet.lab.attacks.marginal_reconstruction import block_of
from discreet.lab.attacks.membership import logit_scores, loss_scores, softmax_regression
from discreet.lab.attacks.subset_reconstruction import guessing_ceiling
from discreet.lab.attacks.success_rates import judge

from .canonical import plain
from .flow import Flow, Said
from .made_up import labels, matrix, people, stays

__all__ = ["flows"]

_A = dp.attacks
_REPLACE = dp.Relation.REPLACE_ONE
_STAYS = {"person": "uid", "item": "ward", "value": "nights", "when": "day"}


def flows() -> Iterator[Flow]:
    """Every attack; rates and powers are rounded."""
    for name, make in (*_on_tables(), *_on_counts(), *_on_noise(), *_on_models()):
        yield Flow(name, lambda make=make: _told(make()), rounded=True)


def _told(found: Any) -> Said:
    """Keep the words: what was found is in them, rounded as people read it."""
    value = found.value if isinstance(found, dp.NotPrivate) else found
    return Said(_numbers(value), str(found))


def _numbers(value: Any) -> Any:
    """Keep every field that has a text of its own."""
    try:
        return plain(value, rounded=True)
    except TypeError:
        return str(value)


def _people() -> pa.Table:
    return pa.table(people())


def _stays() -> pa.Table:
    return pa.table(stays())


_Case = tuple[str, Any]


def _on_tables() -> Iterator[_Case]:
    known = ["age", "city", "born"]
    yield "uniqueness", lambda: _A.uniqueness(_people(), known, size=3)
    yield "uniqueness of people", lambda: _A.uniqueness(_stays(), ["day", "ward"], person="uid")
    yield "singling out", lambda: _A.singling_out(_people(), {"age": 55, "city": "Bern", "country": "CH"})
    yield "lone cells", lambda: _A.lone_cells(_people(), known, epsilon=1)
    yield "linkage", lambda: _A.linkage(_people(), _named(), on=["born", "city"], name="called", tell=["income"])
    yield "scoreboard", lambda: _A.scoreboard(_stays(), **_STAYS, known=[2], days=[3], targets=50)
    yield "item counts", lambda: _A.item_counts(_stays(), epsilon=1, **_STAYS, known=2, targets=50)
    yield "differencing", lambda: _differenced()
    yield "noised", lambda: [[table.counts for table in noised(_tabulated(), epsilon=1, delta="1e-6")[0]]]
    yield "marginals", lambda: _A.marginal_reconstruction(_people(), ["city", "member", "country"], where="age < 20")
    yield "block", lambda: block_of(_people(), ["city", "member"], ways=2, where="age < 22")


def _named() -> pa.Table:
    rows = people(300)
    return pa.table({"called": [f"n{uid}" for uid in rows["uid"]], "born": rows["born"], "city": rows["city"]})


def _tabulated() -> list[Any]:
    conditions = {"all": "", "young": "age < 60", "rich": "income > 500"}
    return [
        _A.tabulate(_people(), ["city", "country"], where=where, name=name, hide_below=3).value
        for name, where in conditions.items()
    ]


def _differenced() -> Any:
    return _A.differencing(_people(), _tabulated(), attribute="country", person="uid")


def _on_counts() -> Iterator[_Case]:
    coin = dp.mechanisms.RandomizedResponse.for_epsilon(1)
    yield "averaging curve", lambda: _A.averaging_curve(coin, [1, 3, 10, 30])
    yield "averaging", lambda: _A.averaging(_remembering(coin), times=20, trials=50, mechanism=coin)
    for size in (10, 1000):
        yield f"tracing power {size}", lambda size=size: _A.tracing_power(100, _A.coins(size), deviation=1.5)
    yield "least deviation", lambda: _A.least_deviation(50, _A.coins(1000), mu=1.0)
    for score in _A.Score:
        yield f"tracing {score.value}", lambda score=score: _traced(score)
    yield "reconstruction", lambda: _A.reconstruction(_A.coins(60).draw(1)[0], queries=300)
    yield "reconstruction of noisy counts", lambda: _rebuilt()
    event = dp.privacy.PureDP(1)
    yield "ceiling", lambda: guessing_ceiling(event, Fraction(1, 2), relation=dp.Relation.REPLACE_ONE)
    yield "halves", lambda: _A.halves(np.arange(20))


def _remembering(coin: Any) -> Any:
    def answers(secret: int) -> Any:
        respondent = dp.mechanisms.Respondent(coin)
        return lambda: respondent.answer("did you ever …", secret)

    return answers


def _traced(score: Any) -> Any:
    population = _A.genome(200)
    return _A.tracing(population.draw(30), population.draw(60), population=population, score=score)


def _rebuilt() -> Any:
    how: dict[str, Any] = {"squared_sensitivity": 1, "epsilon": 1, "delta": "1e-6", "relation": _REPLACE}
    return _A.reconstruction(_A.coins(60).draw(1)[0], queries=300, mechanism=_A.gaussian_counts(300, **how))


def _on_noise() -> Iterator[_Case]:
    from discreet.lab.attacks import textbook_noise

    yield "floating point", lambda: _A.floating_point(textbook_noise.grid_laplace, epsilon=1, samples=3000)
    yield "sticky", lambda: _A.sticky(_people(), known=["age", "city"], secret="country", victims=5, clones=3)


def _on_models() -> Iterator[_Case]:
    rows = matrix(160, 3)
    classes = labels(rows)
    yield "membership", lambda: _A.membership(softmax_regression, rows, classes, shadows=4, targets=2)
    yield "membership by scores", lambda: _A.membership_by_scores(rows[:, 0], classes)
    yield (
        "attributes",
        lambda: _A.attributes_of_table(_people(), secret="country", known=["age", "city"], rows=40, people=8),
    )
    yield "judge", lambda: judge(rows[:, 0], classes.astype(bool), event=dp.privacy.PureDP(1))
    yield "loss scores", lambda: loss_scores(_chances(), classes[:50])
    yield "logit scores", lambda: logit_scores(_chances(), classes[:50])


def _chances() -> Any:
    first = (matrix(50, 1)[:, 0] + 1.1) / 2.2
    return np.column_stack([first, 1 - first])
