"""What is audited from its outputs alone: functions for people in a hurry, robust estimates, whole sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from discreet import robust, statistics
from discreet.audit.own.subject import BlackBox
from discreet.privacy.events import PureDP
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from discreet.query import Session

__all__ = ["of_robust", "of_sessions", "of_statistics"]

_ADD, _REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
_LETTERS = ("a", "b", "c")
_NUMBERS = (((), (4.0,)), ((0.0, 0.0, 4.0), (0.0, 4.0)))
_LISTS = (((), ("a",)), (("a", "a", "b"), ("a", "a")))
_SWAPPED = (((0.0, 0.0, 0.0), (0.0, 0.0, 4.0)), ((0.0, 2.0, 4.0), (0.0, 4.0, 4.0)))
_MANY = 30  # Rows of a table for estimates that make no sense of few.
_SPREAD = tuple(float(value % 5) for value in range(_MANY))
_SQL = {
    "COUNT of groups": "SELECT side, COUNT(*) AS n FROM data GROUP BY side",
    "SUM": "SELECT SUM(x) AS total FROM data",
    "AVG and COUNT": "SELECT AVG(x) AS middle, COUNT(*) AS n FROM data WHERE x > 1",
}


def of_statistics() -> Iterator[BlackBox]:
    """One call of each function, on a few tiny columns."""
    added: dict[str, Any] = {"relation": _ADD, "epsilon": 1}
    bounded: dict[str, Any] = {**added, "bounds": (0, 4), "step": 1}
    yield _statistic("count", lambda data: statistics.count(list(data), **added), _LISTS)
    yield _statistic("sum", lambda data: statistics.sum(list(data), **bounded), _NUMBERS)
    yield _statistic("mean", lambda data: statistics.mean(list(data), **bounded), _NUMBERS)
    yield _statistic("variance", lambda data: statistics.variance(list(data), **bounded), _NUMBERS)
    yield _statistic("median", lambda data: statistics.median(list(data), **bounded), _NUMBERS)
    yield _statistic("quantile", lambda data: statistics.quantile(list(data), "0.9", **bounded), _NUMBERS)
    yield _statistic("histogram", lambda data: statistics.histogram(list(data), bins=_LETTERS, **added), _LISTS)
    yield _statistic("mode", lambda data: statistics.mode(list(data), candidates=_LETTERS, **added), _LISTS)
    yield _statistic("top_k", lambda data: statistics.top_k(list(data), 2, candidates=_LETTERS, **added), _LISTS)
    yield _statistic("proportion", lambda data: statistics.proportion([one > 2 for one in data], **added), _NUMBERS)
    yield from _replaced()


def _replaced() -> Iterator[BlackBox]:
    shared: dict[str, Any] = {"relation": _REPLACE, "epsilon": 1}
    bounded: dict[str, Any] = {**shared, "bounds": (0, 4), "step": 1}
    yield _statistic("mean", lambda data: statistics.mean(list(data), **bounded), _SWAPPED, _REPLACE)
    yield _statistic("median", lambda data: statistics.median(list(data), **bounded), _SWAPPED, _REPLACE)
    answers = ((("a", "b"), ("b", "b")), (("a", "a"), ("a", "c")))
    yield _statistic(
        "randomized_response",
        lambda data: statistics.randomized_response(list(data), categories=_LETTERS, **shared),
        answers,
        _REPLACE,
    )


def of_robust() -> Iterator[BlackBox]:
    """Estimates that need some rows: one of them goes, or becomes extreme."""
    fewer = ((_SPREAD, _SPREAD[1:]),)
    moved = ((_SPREAD, (*_SPREAD[1:], 100.0)),)
    plain: dict[str, Any] = {"bounds": (-100, 100), "rho": 2}
    for relation, pairs in ((_ADD, fewer), (_REPLACE, moved)):
        yield _robust("location", _with(robust.location, relation=relation, **plain), pairs, relation)
        yield _robust(
            "location_and_scale", _with(robust.location_and_scale, relation=relation, **plain), pairs, relation
        )
    rows = _with(robust.coinpress_mean, centre=[0], radius=100, deviation=2, relation=_REPLACE, rho=2)
    yield _robust("coinpress_mean", lambda data: rows([[value] for value in data]), moved, _REPLACE)
    yield _robust("regression", _fitted, moved, _REPLACE)


def of_sessions() -> Iterator[BlackBox]:
    """Whole answers to SQL, from a table in memory to the released numbers."""
    for name, sql in _SQL.items():
        yield BlackBox(
            part="query",
            name=f"Session.sql: {name}",
            run=_asked(sql),
            claim=PureDP(2),
            relation=_ADD,
            pairs=((("a", "b", "b"), ("b", "b")),),
            runs=100,
            large=name == "SUM",  # What it does, AVG does too; a session takes a while.
        )


def _statistic(name: str, run: Callable[[Any], Any], pairs: Any, relation: Relation = _ADD) -> BlackBox:
    claim = run(pairs[0][1]).event
    return BlackBox(
        part="statistics", name=f"dp.{name}", run=run, claim=claim, relation=relation, pairs=pairs, runs=600
    )


def _robust(name: str, run: Callable[[Any], Any], pairs: Any, relation: Relation) -> BlackBox:
    claim = run(pairs[0][0]).event
    return BlackBox(
        part="robust", name=f"robust.{name}", run=run, claim=claim, relation=relation, pairs=pairs, runs=100
    )


def _with(function: Callable[..., Any], **words: Any) -> Callable[[Any], Any]:
    return lambda data: function(list(data), **words)


def _fitted(data: Any) -> Any:
    """Fit the values by their places."""
    places = [[place / len(data)] for place in range(len(data))]
    return statistics.regression(
        places, list(data), relation=_REPLACE, x_bounds=[(0, 1)], y_bounds=(-10, 10), rho=2, population=len(data)
    )


def _asked(sql: str) -> Callable[[Any], Any]:
    def run(data: Any) -> Any:
        with _session(data) as session:
            return session.sql(sql, epsilon=2).release().rows()

    return run


def _session(data: Any) -> Session:
    import pyarrow as pa

    from discreet.ledger import Budget
    from discreet.query import Session, between, categories

    places = {"a": 4, "b": 2}
    table = pa.table({"side": list(data), "x": [places[letter] for letter in data]})
    return Session(
        table,
        unit="row",
        budget=Budget(epsilon=2),
        columns={"side": categories(["a", "b"]), "x": between(0, 4, step=1)},
        ledger="memory",
        dataset="self-audit",
        principal="auditor",
    )
