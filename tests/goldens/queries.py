"""Private SQL: every query in worlds with other units and other budgets, and what is refused in which words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date
from typing import Any

import pyarrow as pa

import discreet as dp

from .flow import Flow, Said, tabled
from .made_up import people, stays
from .sql_asked import BY_PERSON, BY_ROW, REFUSED

__all__ = ["flows", "opened"]

COLUMNS = {
    "people": {
        "age": dp.between(0, 100, whole=True),
        "income": dp.between(0, 25_000, step="0.25"),
        "city": dp.categories(["Bern", "Basel", "Chur"]),
        "member": dp.boolean(),
        "born": dp.between(date(1990, 1, 1), date(2019, 12, 31)),
        "name": dp.text(),
        "country": dp.text(),
    },
    "stays": {
        "day": dp.between(date(2025, 1, 1), date(2025, 12, 31)),
        "ward": dp.text(),
        "nights": dp.between(0, 20, whole=True),
        "cost": dp.between(0, 4000, step="0.01"),
    },
}
_COUNTRIES = {"code": ["CH", "DE", "FR"], "region": ["middle", "north", "west"], "weight": [1, 2, 3]}
_ONE = dp.Unit("uid")
_FOUR = dp.Unit("uid", max_groups=2, max_rows_per_group=3)
_BOTH = {"epsilon": 1000, "delta": "1e-3"}
_OF_THE_MACHINE = ("SQRT(", "LN(", "EXP(", "POWER(")  # Its mathematical library rounds them.
_Offer = dict[str, Any]


def flows() -> Iterator[Flow]:
    """Every query in every world where it is of interest."""
    yield from _asked("one row a person", _ONE, _BOTH, BY_PERSON, {"epsilon": 1, "delta": "1e-7"})
    yield from _asked("six rows a person", _FOUR, _BOTH, BY_PERSON[-16:], {"epsilon": 1, "delta": "1e-7"})
    yield from _asked("rows", "row", {"epsilon": 1000}, BY_ROW[::2], {"epsilon": "0.5"})
    yield from _asked("rows with ρ", "row", {"rho": 50}, BY_ROW[1::3], {"rho": "0.01", "delta": "1e-7"})
    yield from _asked("person with ρ", _FOUR, {"rho": 50}, BY_PERSON[::5], {"rho": "0.05"})
    yield from _asked("a share", _ONE, {"epsilon": 100}, BY_ROW[::9], {"share": "0.01"})
    yield from _asked("an error", _ONE, _BOTH, BY_ROW[3:5], {"error": 20})
    relative = {"relative_error": "0.1", "expected": {"*": 200, "age": 45, "income": 12_000, "a": 45}}
    yield from _asked("a relative error", _ONE, _BOTH, BY_ROW[3:4] + BY_ROW[15:17], relative)
    yield from _asked("refused", _ONE, _BOTH, REFUSED, {"epsilon": 1})
    yield from _asked("refused without a budget", _ONE, {"epsilon": "0.1"}, BY_ROW[:2], {"epsilon": 1})
    yield from _asked("refused without δ", _ONE, {"epsilon": 10}, BY_ROW[-4:], {"epsilon": 1})
    yield from _told()


def opened(unit: dp.Unit | str, budget: dict[str, Any], **more: Any) -> dp.Session:
    """Open a session over the made-up tables."""
    made = {"people": pa.table(people()), "stays": pa.table(stays())}
    tables = {**made, "countries": dp.public(pa.table(_COUNTRIES))}
    how: dict[str, Any] = {"ledger": "memory", "dataset": "golden", "principal": "ana", "columns": COLUMNS, **more}
    return dp.Session(tables, unit=unit, budget=dp.Budget(**budget), resources=dp.query.Resources(threads=1), **how)


def _asked(world: str, unit: Any, budget: _Offer, queries: tuple[str, ...], offer: _Offer) -> Iterator[Flow]:
    """Ask each query once; a session that never pays explains all of them."""
    with closing(opened(unit, budget)) as paying, closing(opened(unit, budget)) as asking:
        for query in queries:
            floats = any(word in query for word in _OF_THE_MACHINE)
            yield Flow(f"{world}: {query}", lambda query=query: _answered(paying, asking, query, offer), rounded=floats)


def _answered(paying: dp.Session, asking: dp.Session, query: str, offer: _Offer) -> Said:
    plan = asking.sql(query, **offer)
    table = tabled(paying.sql(query, **offer).release())
    prices = [plan.event, plan.deviations, plan.variances, plan.fingerprint]
    return Said([table.numbers, prices], [table.texts, plan.cost, plan.notes, plan.explain(), plan.text])


def _told() -> Iterator[Flow]:
    with closing(opened(_FOUR, _BOTH)) as session:
        yield Flow("describe", lambda: Said("", str(session.describe())))
        yield Flow(
            "bounds", lambda: _found(dp.private_bounds(session, "cost", within=(0, 9999), epsilon=2, table="stays"))
        )
        yield Flow("keys", lambda: _found(dp.private_keys(session, "country", epsilon=2, delta="1e-7", table="people")))
        yield Flow("limit", lambda: _found(dp.private_limit(session, most=10, epsilon=2, table="stays")))
        yield Flow(
            "dummy", lambda: session.sql("SELECT city, COUNT(*) AS n FROM people GROUP BY city", epsilon=1).dummy()
        )
        yield Flow("listed keys", lambda: _listed(session))
        yield Flow("in Python", lambda: _worded(session))


def _found(found: Any) -> Said:
    table = tabled(found.release)
    return Said(table.numbers, [table.texts, str(found)])


def _listed(session: dp.Session) -> dp.ReleaseTable:
    query = "SELECT country, COUNT(*) AS n FROM people GROUP BY country"
    return session.sql(query, epsilon=1, keys={"country": ["CH", "IT", "US"]}).release()


def _worded(session: dp.Session) -> dp.ReleaseTable:
    q = dp.query
    rows = session.table("people").where(q.col("age") >= 65).group_by("city")
    measures = {"n": q.count(), "a": q.mean("age"), "m": q.median("income"), "s": q.sum(q.col("income") * 2)}
    return rows.agg(**measures).plan(epsilon=2).release()
