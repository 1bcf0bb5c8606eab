"""Verifying small worlds exactly, and auditing by experiment."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import discreet as dp

from .flow import Flow, Said
from .made_up import RELATIONS

__all__ = ["flows"]

_V, _A, _M = dp.verify, dp.audit, dp.mechanisms
_SMALL = _M.Grid.between(0, 3, step=1)
_NOISES = {"laplace": _M.LaplaceNoise(epsilon=Fraction(1, 2)), "gaussian": _M.GaussianNoise.for_epsilon(1, "1e-3")}


def flows() -> Iterator[Flow]:
    """Exact checks, lower bounds, and audits."""
    for word, relation in RELATIONS.items():
        for name, make, values in _mechanisms(relation):
            yield Flow(f"check {name}, {word}", lambda make=make, values=values: _checked(make(), values), rounded=True)
        yield Flow(f"sensitivity, {word}", lambda relation=relation: _sensitive(relation))
    yield from _bounds()
    yield from _audits()


def _mechanisms(relation: dp.Relation) -> Iterator[tuple[str, Any, Any]]:
    for word, noise in _NOISES.items():
        both: dict[str, Any] = {"relation": relation, "noise": noise}
        yield f"Count {word}", lambda both=both: _M.Count(**both), [False, True]
        yield f"Sum {word}", lambda both=both: _M.Sum(grid=_SMALL, **both), [0, 3]
        yield f"Histogram {word}", lambda both=both: _M.Histogram(bins=("a", "b"), **both), "ab"
    one: dict[str, Any] = {"epsilon": Fraction(1, 2), "relation": relation}
    yield "Quantile", lambda: _M.Quantile(quantile=Fraction(1, 2), grid=_SMALL, **one), [0, 3]


def _checked(mechanism: Any, values: Any) -> Said:
    most = 1 if isinstance(mechanism, _M.Histogram) else 2
    sizes = [most] if mechanism.relation is dp.Relation.REPLACE_ONE else range(most + 1)
    report = _V.check(mechanism, _V.worlds(values, sizes=sizes))
    facts = [report.holds, report.violated, float(report.lower), float(report.upper), report.pairs]
    return Said(facts, str(report))


def _sensitive(relation: dp.Relation) -> list[Any]:
    found = _V.sensitivity(_width, _V.worlds([0, 1, 5], sizes=range(4)), relation=relation)
    return [found.value, found.worst_pair]


def _width(data: Any) -> int:
    return max(data) - min(data) if data else 0


def _bounds() -> Iterator[Flow]:
    guesses = _A.Guesses(canaries=1000, made=100, right=95)
    errors = _A.Errors(false_alarms=10, misses=30, without=400, with_it=400)
    one, other = [0] * 300 + [1] * 100, [0] * 100 + [1] * 300
    made = {
        "guesses": lambda: _A.epsilon_from_guesses(guesses, delta=0, error=0.05),
        "guesses with δ": lambda: _A.epsilon_from_guesses(guesses, delta=1e-5, error=0.05),
        "guesses of a Gaussian": lambda: _A.epsilon_from_guesses_gdp(guesses, delta=1e-5, error=0.05),
        "errors": lambda: _A.epsilon_from_errors(errors, delta=1e-5, error=0.05),
        "μ of errors": lambda: _A.mu_from_errors(errors, error=0.05),
        "μ of guesses": lambda: _A.mu_from_guesses(guesses, error=0.05),
        "hockey stick": lambda: _A.hockey_stick_at_least(one, other, epsilon=0.5, error=0.05),
        "rényi": lambda: _A.renyi_at_least(one, other, order=2, error=0.05),
        "errors of": lambda: _A.errors_of([0.0, 1.0, 0.5, 0.1], [2.0, 1.5, 0.2, 0.7]),
    }
    return (Flow(name, make, rounded=True) for name, make in made.items())


def _audits() -> Iterator[Flow]:
    pairs = [((), (1,)), ((1,), (1, 1))]
    for name, scale in {"honest": "2", "careless": "1/2"}.items():
        yield Flow(
            f"audit {name}",
            lambda scale=scale: _audited(
                _A.audit(lambda data: len(data) + dp.noise.discrete_laplace(scale), pairs, claim=1, runs=2000)
            ),
            rounded=True,
        )
    step = dp.privacy.Gaussian(variance=1, squared_sensitivity=1)
    how: dict[str, Any] = {"step": step, "steps": 50, "sampling_rate": "0.1", "delta": "1e-5", "error": 0.05}
    yield Flow("audit of steps", lambda: _told(_A.audit_steps([0.0] * 400, [1.0] * 400, **how)), rounded=True)
    yield Flow("audit of one run", lambda: _told(_one_run()), rounded=True)


def _audited(found: Any) -> Said:
    """Keep all but the time that it took."""
    facts = [found.refuted, found.epsilon_at_least, found.stated, found.pairs_searched, found.findings]
    return Said(facts, [found.claim, found.headline])


def _one_run() -> Any:
    scores = [(place * 7919 % 1000) / 1000 for place in range(400)]
    included = [place % 2 == 0 for place in range(400)]
    return _A.audit_one_run(scores, included, claim=dp.privacy.GDP(1), high=50, low=50, delta="1e-5", error=0.05)


def _told(found: Any) -> Said:
    return Said([found.refuted, found], str(found))
