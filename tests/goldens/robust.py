"""Estimators that a few bad rows cannot move, private and not."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import discreet as dp
from discreet.robust.regression_design import RegressionColumns

from .flow import Flow, Said
from .made_up import AGES, RELATIONS, WAITS, matrix

__all__ = ["flows"]

_R = dp.robust
_GRID = dp.mechanisms.Grid.between(0, 240, step="0.1")
_BUDGETS: dict[str, dict[str, Any]] = {
    "ε and δ": {"epsilon": 1, "delta": "1e-6"},
    "ρ": {"rho": "0.2"},
    "μ": {"mu": "0.5"},
}
_VALUES = [*WAITS, *WAITS[::2], *[9999.0] * 20]


def flows() -> Iterator[Flow]:
    """Every part of the robust floor; all of them add floats somewhere."""
    for word, relation in RELATIONS.items():
        for offer, budget in _BUDGETS.items():
            yield from _rounded(_estimates(f"{word}, {offer}", {"relation": relation, **budget}))
        yield from _rounded(_mechanisms(word, relation))
    yield from _rounded(_exact())


def _rounded(flows: Iterator[tuple[str, Any]]) -> Iterator[Flow]:
    return (Flow(name, make, rounded=True) for name, make in flows)


def _estimates(word: str, how: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield f"location, {word}", lambda: _R.location(_VALUES, bounds=(0, 240), **how)
    yield f"location Tukey, {word}", lambda: _R.location(_VALUES, bounds=(0, 240), psi=_R.Tukey(), scale=60, **how)
    yield f"location and scale, {word}", lambda: _R.location_and_scale(_VALUES, bounds=(0, 240), **how)
    yield f"coinpress, {word}", lambda: _R.coinpress_mean(_rows(), centre=[0, 0], radius=3, deviation=1, **how)
    yield f"regression, {word}", lambda: _regressed(how)


def _rows() -> Any:
    return matrix(2000, 2)


def _line() -> tuple[Any, Any]:
    rows = _rows()
    return rows, rows @ [1.0, -2.0] + 0.5


def _regressed(how: dict[str, Any]) -> Any:
    rows, y = _line()
    where: dict[str, Any] = {"x_bounds": (-1, 1), "x_units": [1, 1], "leverage": 2, "y_bounds": (-5, 5)}
    return _R.regression(rows, y, **where, **how)


def _mechanisms(word: str, relation: dp.Relation) -> Iterator[tuple[str, Any]]:
    noise = dp.mechanisms.GaussianNoise.for_epsilon(2, "1e-6")
    unit = (Fraction(-1), Fraction(1))
    design = _R.Design(features=(unit, unit), response=(Fraction(-4), Fraction(4)))
    sized = {} if relation is dp.Relation.ADD_REMOVE else {"public_rows": 2000}
    both: dict[str, Any] = {"design": design, "relation": relation, "noise": noise, **sized}
    yield f"AdaSSP, {word}", lambda: _fitted(_R.AdaSSP(**both))
    yield f"NoisyStatistics, {word}", lambda: _fitted(_R.NoisyStatistics(**both))
    yield f"RefinedRegression, {word}", lambda: _fitted(_R.RefinedRegression(**both))
    tukey = {"design": design, "relation": relation, "epsilon": Fraction(2), "delta": Fraction(1, 10**5)}
    yield f"TukeyRegression, {word}", lambda: _fitted(_R.TukeyRegression(blocks=200, **tukey))
    query = {"grid": _GRID, "scale": 30, "relation": relation}
    yield f"smooth Huber, {word}", lambda: _smooth(_R.huber_query(**query))
    tested = {**query, "bound": 5, "epsilon": 1, "delta": "1e-6"}
    yield f"propose Huber, {word}", lambda: _R.propose_huber(**tested).release(_VALUES)


def _fitted(mechanism: Any) -> Any:
    rows, y = _line()
    return mechanism.release(RegressionColumns([*rows.T, y]))


def _smooth(query: Any) -> Any:
    recipe = dp.adaptive.polynomial(1, beta="0.1")
    return dp.adaptive.SmoothSensitivityMechanism(query=query, recipe=recipe).release(_VALUES)


def _exact() -> Iterator[tuple[str, Any]]:
    rows, y = _line()
    functionals = {
        "mean": _R.Mean(),
        "median": _R.Quantile(),
        "quartile": _R.Quantile("0.25"),
        "trimmed": _R.TrimmedMean("0.1"),
        "winsorised": _R.WinsorisedMean("0.1"),
        "hodges-lehmann": _R.HodgesLehmann(),
        "mad": _R.MedianAbsoluteDeviation(),
        "huber": _R.Huber(),
        "tukey": _R.Tukey(),
        "logistic": _R.Logistic(),
        "m-location": _R.MLocation(_R.Huber()),
    }
    for name, functional in functionals.items():
        yield f"influence of {name}", lambda f=functional: _influence(f)
    yield "location fit", lambda: _R.location_fit(_VALUES)
    yield "proposal 2", lambda: _R.proposal_2(_VALUES)
    yield "regression fit", lambda: _R.regression_fit(rows, y)
    yield "mad", lambda: _R.median_absolute_deviation_of(_VALUES)
    yield "predict", lambda: _R.predict([1, "0.5", -2], rows[:9])
    yield "asymptotic noise", lambda: _R.asymptotic_noise(_VALUES, epsilon=1, delta="1e-6")
    yield "chaudhuri hsu", lambda: _R.chaudhuri_hsu(size=500, eta="0.1", beta="0.1", influence=2, diameter=240)
    yield "robustness report", lambda: _reported()


def _influence(functional: Any) -> list[Any]:
    points = [0, 20.5, 50, 119.0]
    found = [_R.breakdown_point(functional)]
    values = AGES[:60]
    found.append(_tried(lambda: _R.influence_function(functional, points)))
    found.append(_tried(lambda: _R.influence_function(functional, points, values=values)))
    found.append(_tried(lambda: _R.gross_error_sensitivity(functional)))
    found.append(_tried(lambda: _R.gross_error_sensitivity(functional, values=values, bounds=(0, 120))))
    return found


def _tried(make: Any) -> Any:
    try:
        return make()
    except dp.DiscreetError as error:
        return f"refused: {type(error).__name__}"


def _reported() -> Said:
    report = _R.robustness_report(AGES, bounds=(0, 120), epsilon=1)
    return Said(report.value.size, [str(report), str(report.value)])
