"""Sessions: several questions in one charge, answers that are given again, quotas, and what is told of a budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import discreet as dp

from .flow import Flow, Said, tabled
from .made_up import AGES
from .queries import opened

__all__ = ["flows"]

_BUDGETS: dict[str, dict[str, Any]] = {
    "ε": {"epsilon": 10},
    "ε and δ": {"epsilon": 10, "delta": "1e-5"},
    "ρ": {"rho": 2},
}
_CITIES = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
_SUMS = "SELECT COUNT(*) AS n, SUM(age) AS ages FROM people"


def flows() -> Iterator[Flow]:
    """Walk through a session for each kind of budget."""
    for word, budget in _BUDGETS.items():
        offer = {"rho": "0.02"} if "rho" in budget else {"epsilon": "0.5"}
        with closing(opened("row", budget, version="1", quotas=[_quota(budget)])) as session:
            yield from _walk(word, session, offer)
    yield from _limits()


def _quota(budget: dict[str, Any]) -> dp.Quota:
    return dp.Quota(dp.Budget(**{name: str(value) for name, value in budget.items()}), principal="*", window="day")


def _walk(word: str, session: dp.Session, offer: dict[str, Any]) -> Iterator[Flow]:
    yield Flow(f"{word}: together", lambda: _together(session, offer))
    yield Flow(f"{word}: together again", lambda: _together(session, offer))
    yield Flow(f"{word}: together changed", lambda: _changed(session, offer))
    yield Flow(f"{word}: asked", lambda: session.sql(_CITIES, **offer).release())
    yield Flow(f"{word}: asked again", lambda: session.sql(_CITIES, **offer).release())
    yield Flow(f"{word}: with a key", lambda: session.sql(_SUMS, idempotency_key="mine", **offer).release())
    yield Flow(f"{word}: with a key again", lambda: session.sql(_SUMS, idempotency_key="mine", **offer).release())
    yield Flow(
        f"{word}: another question under the key",
        lambda: session.sql(_CITIES, idempotency_key="mine", **offer).release(),
    )
    yield Flow(f"{word}: a function pays", lambda: _count(session, offer))
    yield Flow(f"{word}: joint explained", lambda: Said("", _joint(session, offer, "later").explain()))
    yield Flow(f"{word}: joint dummy", lambda: _tables(_joint(session, offer, "later").dummy()))
    yield Flow(f"{word}: too dear", lambda: session.sql(_CITIES, **dict.fromkeys(offer, 50)).release())
    yield Flow(f"{word}: told", lambda: _told(session))
    yield Flow(f"{word}: history", lambda: [entry.event for entry in session.history()])
    yield Flow(f"{word}: raised", lambda: _raised(session, offer))


def _joint(session: dp.Session, offer: dict[str, Any], key: str) -> Any:
    plans = {"cities": session.sql(_CITIES, **offer), "sums": session.sql(_SUMS, **offer)}
    return session.batch(plans, idempotency_key=key, purpose="tables")


def _together(session: dp.Session, offer: dict[str, Any]) -> Said:
    joint = _joint(session, offer, "month/1")
    said = _tables(joint.release().tables)
    return Said([said.numbers, joint.event, joint.fingerprint], [said.texts, joint.cost])


def _tables(tables: Any) -> Said:
    parts = {name: tabled(table) for name, table in tables.items()}
    numbers = {name: part.numbers for name, part in parts.items()}
    return Said(numbers, {name: part.texts for name, part in parts.items()})


def _changed(session: dp.Session, offer: dict[str, Any]) -> Any:
    plans = {"cities": session.sql(_SUMS, **offer)}
    return session.batch(plans, idempotency_key="month/1", purpose="tables").release()


def _count(session: dp.Session, offer: dict[str, Any]) -> Any:
    return dp.count(AGES, relation=dp.Relation.ADD_REMOVE, session=session, **offer)


def _told(session: dp.Session) -> Said:
    left, spent = session.left, session.spent
    numbers = [left.epsilon, left.delta, left.rho, spent.epsilon, spent.delta, spent.rho, session.questions_left()]
    return Said(numbers, [str(left), str(spent), str(session.describe())])


def _raised(session: dp.Session, offer: dict[str, Any]) -> Said:
    raised = dp.Budget(rho=5) if "rho" in offer else dp.Budget(epsilon=20, delta=_delta(session))
    session.raise_budget(raised, reason="one more year")
    return _told(session)


def _delta(session: dp.Session) -> Any:
    return session.left.budget.delta


def _limits() -> Iterator[Flow]:
    """A quota below the budget, which ends first."""
    quota = dp.Quota(dp.Budget(epsilon=1), principal="ana", window="day")
    with closing(opened("row", {"epsilon": 10}, quotas=[quota])) as session:
        yield Flow("quota: first", lambda: session.sql(_CITIES, epsilon="0.7").release())
        yield Flow("quota: second", lambda: session.sql(_SUMS, epsilon="0.7").release())
        yield Flow("quota: told", lambda: _told(session))
    with closing(opened(dp.Unit("uid"), {"epsilon": 10})) as session:
        yield Flow("unit: a function may not pay", lambda: _count(session, {"epsilon": 1}))
