"""What events and their compositions cost: every float as exact text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import discreet as dp
from discreet.privacy.meaning import Meaning

from .flow import Flow, Said
from .made_up import RELATIONS

__all__ = ["flows"]

_P = dp.privacy
_LONG = ("discrete gaussian in 4",)  # A sample of it takes ten seconds.


def _leaves() -> dict[str, dp.privacy.Event]:
    return {
        "pure 1": _P.PureDP(1),
        "pure 1/10": _P.PureDP("0.1"),
        "approximate": _P.ApproxDP("0.5", "1e-6"),
        "zcdp": _P.ZCDP("0.1"),
        "zcdp 2": _P.ZCDP(2),
        "gdp": _P.GDP(1),
        "gdp squared": _P.GDP(mu_squared="1/3"),
        "laplace 1": _P.Laplace(1),
        "laplace 12": _P.Laplace(12),
        "gaussian 1": _P.Gaussian(1),
        "gaussian 30": _P.Gaussian(30),
        "gaussian by variance": _P.Gaussian(variance=50, squared_sensitivity=3),
        "discrete laplace": _P.DiscreteLaplace(2, 1),
        "discrete laplace 20": _P.DiscreteLaplace("20.5", 3),
        "discrete gaussian": _P.DiscreteGaussian(3, 1),
        "discrete gaussian in 4": _P.DiscreteGaussian(variance=40, squared_sensitivity=4, dimension=4),
        "bounded range": _P.BoundedRange("0.3"),
        "randomized response": _P.RandomizedResponse(1),
        "randomized response of 5": _P.RandomizedResponse("1/2", 5),
    }


def _built(leaves: dict[str, dp.privacy.Event]) -> dict[str, dp.privacy.Event]:
    found: dict[str, dp.privacy.Event] = {}
    for name, event in leaves.items():
        found[f"{name} x 10"] = _P.Repeated(event, 10)
        found[f"{name} of 3"] = _P.Grouped(event, 3)
        if name not in _LONG:
            found[f"{name} @ 1/100"] = _P.PoissonSampled(event, "0.01")
            found[f"{name} without replacement"] = _P.SampledWithoutReplacement(event, 10, 1000)
        found[f"{name} with pure"] = _P.Composed([event, _P.PureDP("0.2")])
        found[f"{name} beside pure"] = _P.Parallel([event, _P.PureDP("0.2")])
    for name in ("pure 1", "laplace 1", "gaussian 1", "discrete gaussian"):
        found[f"{name} @ 1/100 x 50"] = _P.Repeated(_P.PoissonSampled(leaves[name], "0.01"), 50)
    mixed = [leaves["gaussian 30"], leaves["discrete laplace 20"], _P.Repeated(leaves["bounded range"], 4)]
    found["mixed"] = _P.Composed(mixed)
    found["mixed x 7"] = _P.Repeated(_P.Composed(mixed), 7)
    found["training"] = _P.Repeated(_P.PoissonSampled(_P.Gaussian("1.1"), "1/128"), 2000)
    return found


def flows() -> Iterator[Flow]:
    """All measures of all events, and the functions that turn one into another."""
    leaves = _leaves()
    for name, event in (leaves | _built(leaves)).items():
        yield Flow(f"json of {name}", lambda event=event: Said([event, _P.from_json(event.to_json()) == event]))
        for word, relation in RELATIONS.items():
            yield Flow(f"{name}, {word}", lambda event=event, relation=relation: _measures(event, relation))
    yield from _converted()
    yield from _calibrated()
    yield from _meant(leaves)


def _measures(event: dp.privacy.Event, relation: dp.Relation) -> Said:
    at = {"relation": relation}
    asked = {
        "ε at 1e-6": lambda: _P.epsilon(event, "1e-6", **at),
        "ε at 0": lambda: _P.epsilon(event, 0, **at),
        "bounds": lambda: _P.epsilon_bounds(event, "1e-5", **at),
        "δ at 1": lambda: _P.delta(event, 1, **at),
        "δ at 0": lambda: _P.delta(event, 0, **at),
        "rényi 2": lambda: _P.renyi(event, 2, **at),
        "rényi 17/2": lambda: _P.renyi(event, "8.5", **at),
        "μ": lambda: _P.gdp_mu(event, **at),
        "tradeoff": lambda: _P.tradeoff(event, "0.05", **at),
        "tpr": lambda: _P.best_tpr(event, "0.05", **at),
        "guess": lambda: _P.best_guess(event, **at),
    }
    answers = {name: _answer(ask) for name, ask in asked.items()}
    refusals = {name: answer[1] for name, answer in answers.items() if answer[1]}
    return Said({name: answer[0] for name, answer in answers.items()}, refusals or None)


def _answer(ask: Callable[[], Any]) -> tuple[Any, str]:
    try:
        return ask(), ""
    except dp.DiscreetError as error:
        return f"refused: {type(error).__name__}", str(error)


def _public(part: Any) -> list[str]:
    return sorted(name for name in getattr(part, "__all__", dir(part)) if not name.startswith("_"))


def _converted() -> Iterator[Flow]:
    for part in ("compose", "convert", "group", "subsample"):
        yield Flow(f"names of {part}", lambda part=part: _public(getattr(_P, part)))
    compose = _P.compose
    yield Flow("compose.optimal", lambda: compose.optimal("0.1", 0, times=100, target_delta="1e-6"))
    yield Flow("compose.optimal with δ", lambda: compose.optimal("0.2", "1e-8", times=30, target_delta="1e-6"))
    yield Flow("compose.advanced", lambda: compose.advanced("0.1", "1e-9", times=100, slack="1e-6"))
    yield Flow("compose.basic", lambda: compose.basic([_P.PureDP("0.1"), _P.ApproxDP(1, "1e-7")] * 5))


def _calibrated() -> Iterator[Flow]:
    for epsilon in ("0.01", "0.5", 1, 8):
        for delta in ("1e-9", "1e-5"):
            yield Flow(f"sigma {epsilon} {delta}", lambda e=epsilon, d=delta: _P.gaussian_sigma(e, d, 3))
    yield Flow("steps", lambda: _whole(lambda n: _P.Repeated(_P.Gaussian(20), n)))
    yield Flow("multiplier", lambda: _P.calibrate(_sampled, epsilon=2, delta="1e-5", relation=dp.Relation.ADD_REMOVE))


def _whole(make: Callable[[Any], dp.privacy.Event]) -> Any:
    return _P.calibrate(make, epsilon=1, delta="1e-6", increasing=True, whole=True)


def _sampled(multiplier: Any) -> dp.privacy.Event:
    return _P.Repeated(_P.PoissonSampled(_P.Gaussian(multiplier), "0.01"), 100)


def _meant(leaves: dict[str, dp.privacy.Event]) -> Iterator[Flow]:
    for epsilon in ("0.1", 1, 3, 10):
        yield Flow(f"meaning of ε {epsilon}", lambda e=epsilon: _told(_P.explain_epsilon(e, delta="1e-6")))
    yield Flow("meaning of ρ", lambda: _told(_P.explain_epsilon(rho="0.1", delta="1e-6")))
    yield Flow("meaning of μ", lambda: _told(_P.explain_epsilon(mu=1, delta="1e-6")))
    for name, event in leaves.items():
        yield Flow(f"meaning of {name}", lambda event=event: _told(_P.explain(event, delta="1e-6")))


def _told(meaning: Meaning) -> Said:
    return Said([meaning.epsilon, meaning.delta, meaning.success, meaning.found, meaning.beliefs], str(meaning))
