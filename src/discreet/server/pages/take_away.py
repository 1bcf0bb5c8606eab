"""What is taken away from the page: a question as a plan file, and as a notebook. Both say public facts only.

The plan has what is declared of the data set, and neither where the data are nor where the ledger is: whoever holds
them fills that in. The notebook talks to this server, under a token of whoever runs it. Texts of others are written as
texts of TOML and of Python, whatever they contain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet.formatting import printable, significant_up
from discreet.ledger.budget import Budget
from discreet.privacy.relation import Relation
from discreet.query.catalogue import Catalogue
from discreet.query.policy import Chain, Unit
from discreet.query.session.plans import Plan
from discreet.query.session.policy_file import Policy
from discreet.release.draft.plan_draft import toml_value
from discreet.schema.columns import Declared, Kind, time_at
from discreet.server.datasets import AskedQuestion

__all__ = ["notebook", "plan_file"]


# --- the plan ---


def plan_file(policy: Policy, question: AskedQuestion, plan: Plan, title: str) -> str:
    """Write a question as a release plan, which `discreet plan check` takes as it is.

    Args:
        policy: What is declared of the data set.
        question: What is asked and offered.
        plan: The same, priced.
        title: What it shows, for people.
    """
    chain = policy.chain
    head = {"name": "built", "title": title, "dataset": policy.dataset, "ledger": "ledger.db"}
    relation = {} if policy.unit.relation is Relation.ADD_REMOVE else {"relation": policy.unit.relation.value}
    parts = [
        _HEAD + _lines(head | relation),
        _section("[unit]", _unit(policy.unit) if chain is None else _both(chain, policy.inner_budget)),
        _section("[budget]", _budget(policy.budget)),
        *_tables(policy, plan.priced.draft.catalogue),
        _section("[release]", _allowance(plan)),
        _section("[[publish]]", _published(question, plan, title)),
    ]
    return "\n".join(parts)


_HEAD = """\
# A question of the server's page as a release plan. Everything in it is public.
# Whoever holds the data says where they are (source) and which ledger counts (ledger), and then runs:
#   discreet plan check plan.toml
#   discreet release plan.toml
"""


def _lines(entries: Mapping[str, Any]) -> str:
    return "".join(f"{toml_value(name)} = {toml_value(value)}\n" for name, value in entries.items())


def _section(head: str, entries: Mapping[str, Any]) -> str:
    return f"{head}\n{_lines(entries)}"


def _unit(unit: Unit) -> dict[str, Any]:
    zone = None if unit.zone == "UTC" else unit.zone
    column = unit.column if isinstance(unit.column, str) else list(unit.column)
    said: dict[str, Any] = {"column": column}
    if not unit.is_row:
        said |= {"max_groups": unit.max_groups, "max_rows_per_group": unit.max_rows_per_group}
    said |= {"name": unit.name, "plural": unit.plural, "window": unit.window, "time": unit.time, "zone": zone}
    said |= {"rows_at_most": unit.rows_at_most, "units": unit.units}
    return {name: value for name, value in said.items() if value is not None}


def _both(chain: Chain, budget: Budget | None) -> dict[str, Any]:
    """Write a unit and those within it: limits are of the inner one, and so is a budget of its own."""
    limits, others = ("max_groups", "max_rows_per_group"), ("zone", "rows_at_most", "units")
    outer = {name: value for name, value in _unit(chain.outer).items() if name not in limits}
    inner = {name: value for name, value in _unit(chain.inner).items() if name not in others}
    own = {} if budget is None else {"budget": _budget(budget)}
    return outer | {"max_inner": chain.max_inner, "inner": inner | own}


def _budget(budget: Budget) -> dict[str, Any]:
    said = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho, "expect": budget.expect}
    return {name: value for name, value in said.items() if value is not None}


def _tables(policy: Policy, catalogue: Catalogue) -> list[str]:
    parts = []
    for number, (name, table) in enumerate(policy.tables.items(), 1):
        key = toml_value(name)
        said: dict[str, Any] = {"source": f"table_{number}.parquet"} | ({"public": True} if table.public else {})
        declared = {column: _column(one) for column, one in table.columns.items()}
        parts += [_section(f"[tables.{key}]", said), _section(f"[tables.{key}.columns]", declared)]
    return parts


def _column(declared: Declared) -> dict[str, Any]:
    facts = declared.facts
    own = {"of_unit": True} if declared.of_unit else {}
    if facts.kind is Kind.BOOLEAN:
        return {"kind": "boolean"} | own
    if facts.members is not None:
        labels = {str(value): label for value, label in declared.labels}
        return {"categories": list(facts.members)} | ({"labels": labels} if labels else {}) | own
    if facts.low is None or facts.high is None:
        return {"kind": "text"} | own
    ends = {"low": facts.low, "high": facts.high}
    said: dict[str, Any] = {name: time_at(facts.kind, end) if facts.kind.is_time else end for name, end in ends.items()}
    more = {"step": facts.step, "whole": declared.whole, "missing": declared.missing, "format": declared.format}
    return said | {name: value for name, value in more.items() if value is not None} | own


_TOLD_AT = Fraction(1, 10**6)  # the delta at which the epsilon of a rho is told


def _allowance(plan: Plan) -> dict[str, Any]:
    """Say what one release may spend: the price, rounded up to three digits."""
    spend = plan.priced.spend
    way = "rho" if spend.epsilon is None else "epsilon"
    amount = spend.rho if spend.epsilon is None else spend.epsilon
    assert amount is not None
    told = spend.delta if spend.delta is not None else _TOLD_AT if way == "rho" else None
    delta = {} if told is None else {"delta": told}
    return {way: Fraction(significant_up(amount, 3))} | delta


def _published(question: AskedQuestion, plan: Plan, title: str) -> dict[str, Any]:
    spend = plan.priced.spend
    said: dict[str, Any] = {"name": "answer", "title": title, "sql": question.sql}
    if "error" in question.offer:
        said["error"] = Fraction(str(question.offer["error"]))
    elif spend.epsilon is not None:
        said["epsilon"] = spend.epsilon
    else:
        said["rho"] = spend.rho
    if "expected" in question.offer:
        said["expected"] = {"*": question.offer["expected"]}
    return said | ({"quantile_intervals": True} if spend.quantile_intervals else {})


# --- the notebook ---


def notebook(address: str, dataset: str, question: AskedQuestion, title: str, *, release: str | None = None) -> str:
    """Write a question as a notebook (nbformat 4.5), whose cells ask this server and pay only where somebody says so.

    Args:
        address: Where the server is, as the reader's browser calls it.
        dataset: The name of the data set.
        question: What is asked and offered.
        title: What it shows, for people.
        release: The release that was paid for already, if there is one: its answer is fetched, and nothing is paid.
    """
    offer = ", ".join(f"{name}={value!r}" for name, value in question.offer.items())
    paid = _PAID.format(release=release) if release is not None else _PAYS
    cells = [
        _markdown(f"# {printable(title)}\n\n{_INTRODUCTION}"),
        _code(_CONNECT.format(address=address, dataset=dataset)),
        _code(f"plan = data.sql({question.sql!r}, {offer})\nplan.explain()"),
        _markdown("The same question on made-up rows: nothing is read, and nothing is paid."),
        _code("plan.dummy()"),
        _markdown(_PAID_WORDS if release is not None else _PAYS_WORDS),
        _code(paid),
    ]
    written = {
        "cells": [{**cell, "id": _cell_id(place, cell)} for place, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(written, ensure_ascii=False, indent=1) + "\n"


_INTRODUCTION = """\
It needs `pip install 'discreet[client]'` and a token, which you make on the page of your account. Keep it out of the
notebook: set `DISCREET_TOKEN` before you start it. Without one, a code is shown here: allow it in the browser."""
_CONNECT = """\
from discreet import client

server = client.connect({address!r})  # with the token of DISCREET_TOKEN
data = server.dataset({dataset!r})
data"""
_PAYS_WORDS = "A release is charged for good, once for this notebook. Say `PAY = True` to pay."
_PAYS = """\
PAY = False
answer = plan.release() if PAY else plan.dummy()
answer"""
_PAID_WORDS = "This was released already: the answer is fetched, and nothing is paid."
_PAID = """\
answer = server.release({release!r}).wait()
answer"""


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code(text: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}


def _cell_id(place: int, cell: Mapping[str, Any]) -> str:
    return sha256(f"{place} {cell['source']}".encode()).hexdigest()[:12]
