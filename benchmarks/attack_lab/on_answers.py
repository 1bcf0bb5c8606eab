"""Attacks on answers: averaging, tracing, reconstruction from subsets, noise exploitation, floating point."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa

import discreet as dp
from benchmarks.attack_lab import worlds
from benchmarks.attack_lab.contests import DELTA, Attack, Outcome, Setting, added
from discreet import noise
from discreet.lab import attacks
from discreet.lab.attacks import textbook_noise
from discreet.lab.attacks.averaging import averaging as asked_again
from discreet.lab.attacks.sticky_noise import Sticky
from discreet.lab.attacks.success_rates import Success
from discreet.lab.attacks.tracing import Tracing
from discreet.mechanisms import VectorGaussian
from discreet.privacy import DiscreteLaplace, PureDP, Relation

__all__ = ["averaging", "exploiting", "floating_point", "reconstruction", "tracing"]

_REPLACE = Relation.REPLACE_ONE
_RATE = 0.05  # Of strangers who are accused.
_MEMBERS, _ATTRIBUTES = 100, 1000
_SECRETS, _QUERIES = 20, 1000
_STEPS = 1024  # Of the grid, to one unit.
_ASKED, _CROWD, _PLANETS = 100, 100, 40


def averaging(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Ask the same question again and again; a session gives the answer again that it has stored."""
    trials = setting.times(150)
    if epsilon is None:
        found = asked_again(_renewed, times=_ASKED, trials=trials)
        return Outcome(data=f"a made-up count, asked {_ASKED} times", success=found.right, without=None)
    found = asked_again(_session(epsilon), times=2, trials=trials, middle=_CROWD + 0.5)
    event = DiscreteLaplace(scale=1 / epsilon, sensitivity=1)
    return Outcome(data="a made-up count", success=found.right, without=None, event=event, relation=Relation.ADD_REMOVE)


def _renewed(secret: int) -> Callable[[], float]:
    return lambda: secret + float(noise.discrete_laplace(1))


def _session(epsilon: Fraction) -> Callable[[int], Callable[[], float]]:
    def interface(secret: int) -> Callable[[], float]:
        rows = pa.table({"id": [str(i) for i in range(_CROWD + secret)]})
        session = dp.Session(
            rows, unit="row", budget=dp.Budget(epsilon=epsilon), columns={}, ledger="memory", dataset="lab",
            principal="lab", version="1",
        )  # fmt: skip
        question = "SELECT COUNT(*) AS n FROM lab"
        return lambda: float(session.sql(question, epsilon=epsilon).release().to_arrow().column("n")[0].as_py())

    return interface


def tracing(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Find members by the counts of many attributes, while one in twenty strangers is accused."""
    mechanism = None if epsilon is None else _gaussian(_ATTRIBUTES, _ATTRIBUTES, epsilon)
    found = [_traced(mechanism) for _ in range(setting.times(8))]
    return Outcome(
        data=f"made up: {_MEMBERS} people, {_ATTRIBUTES:,} attributes",
        success=added([one.found(_RATE) for one in found]),
        without=added([one.accused(_RATE) for one in found]),
        event=None if mechanism is None else mechanism.event,
        relation=_REPLACE,
    )


def _traced(mechanism: VectorGaussian | None) -> Tracing:
    """Attack every member of a crowd once."""
    people, score = attacks.coins(_ATTRIBUTES), attacks.Score.LIKELIHOOD_RATIO
    members, strangers = people.draw(_MEMBERS), people.draw(4 * _MEMBERS)
    return attacks.tracing(members, strangers, mechanism=mechanism, score=score, population=people).value


def reconstruction(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Rebuild secrets from counts of random subsets; of each world one person counts, so guesses are independent."""
    price = Fraction(1) if epsilon is None else epsilon
    mechanism = _gaussian(_QUERIES, 1 if epsilon is None else _QUERIES, price)
    hits = [_rebuilt(mechanism) for _ in range(setting.times(800))]
    return Outcome(
        data=f"made up: {_SECRETS} secrets, {_QUERIES:,} subsets",
        success=Success(sum(hits), len(hits)),
        without=None,
        event=None if epsilon is None else mechanism.event,
        relation=_REPLACE,
    )


def _rebuilt(mechanism: VectorGaussian) -> bool:
    secrets = noise.bernoulli("1/2", _SECRETS)
    how = attacks.Decoder.LEAST_SQUARES
    found = attacks.reconstruction(secrets, queries=_QUERIES, mechanism=mechanism, decoder=how).value
    return bool(found.guesses[0] == secrets[0])


def _gaussian(counts: int, changed: int, epsilon: Fraction) -> VectorGaussian:
    """Publish counts of which one person changes so many by one, for (epsilon, delta) together."""
    return attacks.gaussian_counts(counts, squared_sensitivity=changed, epsilon=epsilon, delta=DELTA, relation=_REPLACE)


def exploiting(method: str) -> Attack:
    """Attack people behind sticky noise, or behind private answers, by one of the ways of the attack."""

    def attack(epsilon: Fraction | None, setting: Setting) -> Outcome:
        guessed = [one for found in _stuck(epsilon, setting) for one in found.guessed if one.method == method]
        right = added([one.right for one in guessed])
        event = None if epsilon is None else PureDP(epsilon)
        return Outcome(data="made up: unique people in crowds", success=right, without=None, event=event)

    return attack


@cache
def _stuck(epsilon: Fraction | None, setting: Setting) -> list[Sticky]:
    """Attack everybody who is unique in several worlds, by all ways at once."""
    options: dict[str, Any] = {"known": worlds.KNOWN, "secret": "ill", "value": "yes", "victims": _PLANETS}
    rows = worlds.planets(_PLANETS)
    return [attacks.sticky(rows, epsilon=epsilon, by_session=False, **options).value for _ in range(setting.times(10))]


def floating_point(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Tell two inputs apart by the last digits of the output."""
    price = Fraction(1) if epsilon is None else epsilon
    law = textbook_noise.laplace if epsilon is None else _on_grid(epsilon)
    found = attacks.floating_point(law, epsilon=price, samples=max(2_000, setting.times(200_000)))
    seldom, often = sorted(found.seen, key=lambda one: one.share)
    event = None if epsilon is None else DiscreteLaplace(scale=_STEPS / epsilon, sensitivity=_STEPS)
    return Outcome(data="inputs 0 and 1", success=often, without=seldom, event=event, relation=Relation.ADD_REMOVE)


def _on_grid(epsilon: Fraction) -> Callable[..., Any]:
    def law(value: float, size: int) -> Any:
        return (round(value * _STEPS) + noise.discrete_laplace(_STEPS / epsilon, size)) / _STEPS

    return law
