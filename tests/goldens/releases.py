"""Release plans: prices, dummies, bundles, running series, profiles and first drafts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import discreet as dp

from .canonical import wordless
from .flow import Flow, Said
from .folders import PLAN, bundle, folder, masked

__all__ = ["flows"]

_R = dp.release
_SERIES = """
name = "hospital"
title = "Hospital stays"
dataset = "hospital"
ledger = "hospital.ledger"
[unit]
column = "patient"
[budget]
epsilon = 6
delta = 1e-6
[tables.stays]
source = "stays.csv"
[tables.stays.columns]
admitted = { low = 2020-01-01, high = 2030-12-31 }
[release]
epsilon = 1
delta = 1e-7
[schedule]
every = "month"
first = 2026-01-01
column = "admitted"
[output]
folder = "published"
[[publish]]
name = "stays"
sql = "SELECT COUNT(*) AS stays FROM stays"
expected = { "*" = 3000 }
[[running]]
name = "stays_so_far"
from = "stays"
day = "admitted"
first = 2026-01-01
days = 120
epsilon = 1
"""
_TODAY = date(2026, 5, 10)


def flows() -> Iterator[Flow]:
    """Plans of both kinds, then what comes before a plan."""
    with folder():
        yield from _once()
    with folder():
        yield from _mistakes()
    with folder():
        yield from _monthly()
    with folder():
        yield from _first()


def _plan(path: str = "plan.toml") -> Any:
    return _R.read_release_plan(path)


def _once() -> Iterator[Flow]:
    yield Flow("check", lambda: Said("", str(_R.check(_plan()))))
    yield Flow("price", lambda: _priced(_plan()))
    yield Flow("price of ρ", lambda: _priced(_changed("epsilon = 1\ndelta = 1e-7", "rho = 0.05\ndelta = 1e-7")))
    yield Flow("price split evenly", lambda: _priced(_changed("delta = 1e-7", 'delta = 1e-7\nsplit = "even"')))
    yield Flow("to reach", lambda: Said("", _R.to_reach(_R.price(_plan()), "patients_by_clinic", 5)))
    yield Flow("dummy", lambda: bundle(_R.dummy(_plan(), "try")))
    yield Flow("publish", lambda: bundle(_R.publish(_plan(), principal="ana")))
    yield Flow("publish again", lambda: bundle(_R.publish(_plan(), principal="ana")))
    yield Flow("verify", lambda: _verified(None))
    yield Flow("verify by the ledger", lambda: _verified("visits.ledger"))
    yield Flow("tables", lambda: _tables("published/visits-once/tables"))
    yield Flow("schema", lambda: Said("", _R.release_plan_schema()))


def _priced(plan: Any) -> Said:
    priced = _R.price(plan)
    return Said(
        [priced.event, priced.epsilon, priced.delta, priced.total, priced.lifetime], [str(priced), priced.to_json()]
    )


def _changed(old: str, new: str) -> Any:
    assert old in PLAN
    Path("changed.toml").write_text(PLAN.replace(old, new), "utf-8")
    return _plan("changed.toml")


def _verified(ledger: str | None) -> Said:
    found = _R.verify_bundle("published/visits-once", ledger=ledger)
    return Said(found.outcome, masked(str(found)))


def _tables(path: str) -> dict[str, str]:
    return {file.name: file.read_text("utf-8") for file in sorted(Path(path).glob("*.csv"))}


def _mistakes() -> Iterator[Flow]:
    wrong = {
        "an unknown table": ('from = "visits"', 'from = "visitors"'),
        "an unknown column": ("AVG(wait_minutes)", "AVG(wait)"),
        "a budget that is too small": ("epsilon = 8", "epsilon = 0.5"),
        "an unknown word": ("publisher =", "editor ="),
        "no expectation": ('expected = { "*" = 150 }', "error = 1"),
        "a level of nothing": ('of = "clinic"', 'of = "ward"'),
        "not TOML": ("[unit]", "[unit"),
    }
    for name, (old, new) in wrong.items():
        yield Flow(f"mistake: {name}", lambda old=old, new=new: _priced(_changed(old, new)))


def _monthly() -> Iterator[Flow]:
    rows = [f"{unit},{date(2026, 1, 1) + timedelta(days=unit % 90)}" for unit in range(3000)]
    Path("stays.csv").write_text("patient,admitted\n" + "\n".join(rows) + "\n")
    Path("plan.toml").write_text(_SERIES)
    yield Flow("series: price", lambda: _priced(_plan()))
    yield Flow("series: running", lambda: _running(_plan()))
    yield Flow("series: dummy", lambda: bundle(_R.dummy(_plan(), "try", _plan().schedule.period(0))))
    for month in (0, 1):
        yield Flow(f"series: month {month}", lambda month=month: _month(month))
    yield Flow("series: standing", lambda: _standing())


def _running(plan: Any) -> Said:
    return Said("", str(_R.price_running(plan, plan.running[0])))


def _month(number: int) -> Said:
    plan = _plan()
    made = _R.publish(plan, principal="ana", period=plan.schedule.period(number), today=_TODAY)
    said = bundle(made)
    return Said([said.numbers, _tables(str(made / "tables"))], said.texts)


def _standing() -> Said:
    plan = _plan()
    return Said("", str(_R.series(plan, today=_TODAY, event=_R.price(plan).event)))


def _first() -> Iterator[Flow]:
    yield Flow("profile: plan", lambda: _profiled(only_plan=True))
    yield Flow("profile", lambda: _profiled(only_plan=False))
    yield Flow("draft", lambda: _drafted())


def _profiled(*, only_plan: bool) -> Said:
    budget = dp.Budget(epsilon=4, delta="1e-5")
    how: dict[str, Any] = {"ledger": "memory", "dataset": "visits", "principal": "ana"}
    with dp.Session("visits.csv", unit=dp.Unit("patient"), budget=budget, **how) as session:
        plan = _R.plan_profile(
            session, epsilon=1, delta="1e-6", numbers=["age", "wait_minutes"], idempotency_key="autumn"
        )
        if only_plan:
            return Said([plan.event, plan.epsilon, plan.delta], str(plan))
        found = plan.release()
    found.write("profile.html")
    return Said(wordless(found.to_json()), [found.to_json(), str(found), Path("profile.html").read_text("utf-8")])


def _drafted() -> Said:
    draft = _R.draft_plan("visits.csv").value
    answered = draft.answered("columns.age", {"low": 0, "high": 120})
    facts = [[one.field, one.value, one.why, one.choices] for one in draft.proposals]
    return Said("", [facts, answered.confirmed(epsilon=1)])
