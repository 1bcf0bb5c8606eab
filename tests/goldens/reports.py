"""Pages and pictures: reports as HTML, charts as Vega-Lite, small drawings as SVG."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

import discreet as dp
from discreet.pages import svg

from .flow import Flow, Said
from .made_up import AGES, VISITS
from .synthesis import DOMAIN

__all__ = ["flows"]

_P = dp.plots


def flows() -> Iterator[Flow]:
    """Charts, then the evaluation of synthetic rows."""
    for name, make in (*_charts(), *_drawings()):
        yield Flow(name, lambda make=make: Said("", make()), rounded=True)
    yield Flow("evaluate", lambda: _evaluated(), rounded=True)
    yield Flow("evaluate publicly", lambda: _publicly(), rounded=True)
    yield Flow("evaluate for a price", lambda: _priced(), rounded=True)
    yield Flow("html of a release", lambda: Said("", _html(dp.count(AGES, epsilon=1, relation=dp.Relation.ADD_REMOVE))))


def _events() -> dict[str, dp.privacy.Event]:
    return {"Laplace": dp.privacy.Laplace(1), "Gaussian": dp.privacy.Gaussian(4)}


def _charts() -> Iterator[tuple[str, Any]]:
    bars = (["Harbour", "Market"], [412, 388], [398, 374], [426, 402])
    charts = {
        "profile": lambda: dp.plot_profile(_events()),
        "tradeoff": lambda: dp.plot_tradeoff(_events()),
        "accuracy": lambda: dp.plot_accuracy({"Laplace": _count}, ["0.1", 1, 3], unit="people"),
        "error bars": lambda: _P.error_bars(*bars, across="patients"),
        "shares": lambda: _P.shares(["a", "b"], {"alone": [0.2, 0.5], "crowd": [0.8, 0.5]}, across="patients"),
        "lines": lambda: _P.lines({"mine": ([10, 1000], [30, 3])}, across="rows", up="error", log_x=True),
        "meaning": lambda: dp.privacy.explain_epsilon(1, delta="1e-6").plot(),
        "robustness": lambda: dp.robust.robustness_report(AGES[:200], bounds=(0, 120), epsilon=1).value.plot(),
        "power": lambda: dp.attacks.plot_power(100, (0.0, 2.0)),
    }
    return ((f"chart {name}", lambda make=make: _vega(make())) for name, make in charts.items())


def _vega(chart: Any) -> Any:
    """Read the specification, with floats as numbers, so that they can be rounded."""
    return _unnamed(json.loads(chart.to_json()))


def _unnamed(spec: Any) -> Any:
    """Leave out names that Altair numbers by how many charts there were."""
    spec.pop("$schema", None)
    for number, held in enumerate(sorted(spec.get("datasets", {}))):
        spec = json.loads(json.dumps(spec).replace(held, f"data-{number}"))
    return spec


def _count(epsilon: Any) -> Any:
    noise = dp.mechanisms.LaplaceNoise(epsilon=epsilon)
    return dp.mechanisms.Count(relation=dp.Relation.ADD_REMOVE, noise=noise)


def _drawings() -> Iterator[tuple[str, Any]]:
    scale = _P.scale_for([412, 385, 439])
    days = ["2026-01-01", "2026-01-02", "2026-01-03"]
    made = {
        "strip": lambda: _P.strip(scale, 412, low=385, high=439, mark=410),
        "ruler": lambda: _P.ruler(scale),
        "hundred": lambda: _P.hundred(63, name="guesses"),
        "heatmap": lambda: svg.heatmap([[0.1, None], [0.5, 1.0]], ["a", "b"], name="x", told="y"),
        "caught": lambda: _P.caught([0.0, 0.1, 1.0], [0.0, 0.4, 1.0], name="x"),
        "course": lambda: _P.course(days, [1, 2, 4], [0, 1, 3], [2, 3, 5], name="x"),
        "steps": lambda: svg.overlaid_steps([1, 2, 3], [1, 3, 2]),
        "bars": lambda: svg.overlaid_bars(0.3, 0.4, 1.0),
    }
    return ((f"drawing {name}", make) for name, make in made.items())


def _html(release: Any) -> str:
    return release._repr_html_()


def _halves() -> tuple[pd.DataFrame, pd.DataFrame, Any]:
    rows = pd.read_csv(VISITS)[["age", "clinic", "satisfied"]]
    real, held = rows.iloc[:700], rows.iloc[700:1100]
    model = dp.synthesize(real, "mst", domain=DOMAIN, epsilon=1, delta="1e-6", progress=False)
    return real, held, model


def _evaluated() -> Said:
    real, held, model = _halves()
    return _page(dp.evaluation.evaluate(model, real, holdout=held, secret="satisfied", label="satisfied").value)


def _publicly() -> Said:
    _, held, model = _halves()
    return _page(dp.evaluation.evaluate_publicly(model, held))


def _priced() -> Said:
    real, _, model = _halves()
    budget = dp.ledger.Budget("1", "1e-5")
    account = dp.ledger.Account("visits", "row", dp.Relation.ADD_REMOVE, budget)
    with dp.ledger.Ledger.open("memory", account) as ledger:
        how: dict[str, Any] = {"session": ledger, "epsilon": "0.5", "delta": "1e-6"}
        return _page(dp.evaluation.evaluate_for_a_price(model, real, **how))


def _page(found: Any) -> Said:
    return Said(found.alarming, [[verdict.text for verdict in found.verdicts], found.html()])
