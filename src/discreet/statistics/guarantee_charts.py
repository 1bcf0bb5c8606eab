"""Pictures of what events guarantee and of what accuracy they leave, from public facts only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from discreet import plots
from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, up
from discreet.formatting import plain
from discreet.mechanisms.parameters import read_confidence
from discreet.mechanisms.release import NoiseAccuracy
from discreet.noise.laws import Law
from discreet.plots.chart_files import Floats, Read
from discreet.privacy import guarantee
from discreet.privacy.curves import PrivacyCurve, deltas
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation, read_relation_if_any

if TYPE_CHECKING:
    import altair as alt

__all__ = ["plot_accuracy", "plot_neighbours", "plot_profile", "plot_tradeoff"]

# From an epsilon: the law of the noise, an accuracy, or a mechanism that makes one measurement.
Maker: TypeAlias = Callable[[Fraction], Any]

_POINTS = 48  # Of a profile; every one of them is a proven bound, and lines between them are as good as the eye.
_RATES = 101  # Of a trade-off curve.
_SMALLEST_DELTAS = (1e-10, 1e-6, 1e-3, 0.1, 0.5)  # The first that has a finite epsilon ends a profile.
_NEAR_THE_END = (0.99, 0.999, 0.99999)
_DRAWN = Fraction(995, 1000)  # Of the noise of two neighbours; the rest is left and right of the picture.
_ANSWERS = 400  # Points of a law at most.


def plot_profile(
    events: Event | Mapping[str, Event], *, relation: Relation | str | None = None, title: str | None = None
) -> alt.LayerChart:
    """Plot the privacy profile, delta against epsilon, of one or several events; proven upper bounds.

    Args:
        events: An event, or several by name.
        relation: The neighbouring relation, where the meaning of the event depends on it.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        MissingLibrary: If altair is not installed.

    Examples:
        >>> type(dp.plot_profile(dp.privacy.PureDP(1))).__name__
        'OfflineChart'
    """
    relation = read_relation_if_any(relation)
    named = _named(events)
    known = {name: guarantee.curve(event, relation) for name, event in named.items()}
    curves = {name: _profile(curve) for name, curve in known.items()}
    widest = max(float(epsilons[-1]) for epsilons, _ in curves.values())
    return plots.profile({name: _flat_until(widest, *pair) for name, pair in curves.items()}, title=title)


def plot_tradeoff(
    events: Event | Mapping[str, Event], *, relation: Relation | str | None = None, title: str | None = None
) -> alt.LayerChart:
    """Plot the trade-off curve: the least false negative rate of any attacker for each false positive rate.

    Args:
        events: An event, or several by name.
        relation: The neighbouring relation, where the meaning of the event depends on it.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        MissingLibrary: If altair is not installed.

    Examples:
        >>> type(dp.plot_tradeoff({"one": dp.privacy.PureDP(1), "two": dp.privacy.PureDP(2)})).__name__
        'OfflineChart'
    """
    relation = read_relation_if_any(relation)
    curves: Read = {}
    for name, event in _named(events).items():
        curves[name] = _tradeoff(*_profile(guarantee.curve(event, relation)))
    return plots.tradeoff(curves, title=title)


def plot_accuracy(
    makers: Maker | Mapping[str, Maker],
    epsilons: Sequence[Number],
    *,
    confidence: Number = Fraction(95, 100),
    step: Number = 1,
    unit: str = "grid steps",
    title: str | None = None,
) -> alt.LayerChart:
    """Plot the half width of a confidence interval against epsilon, predicted before any data is read.

    A maker takes an epsilon and returns the law of the noise, or a mechanism whose answer is one noisy number a
    cell. One grid step of the answer is worth `step` of `unit`: for a mean over n rows, the grid's step over n.

    Args:
        makers: A function from epsilon to a noise law or a mechanism; or several by name.
        epsilons: The epsilons to draw.
        confidence: The confidence of the intervals.
        step: What one grid step of the answer is worth, in `unit`.
        unit: The name of the unit, for the axis.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        MissingLibrary: If altair is not installed.

    Examples:
        >>> from fractions import Fraction
        >>> chart = dp.plot_accuracy(lambda epsilon: dp.noise.DiscreteLaplaceLaw(1 / Fraction(epsilon)), [0.5, 1, 2])
        >>> type(chart).__name__
        'OfflineChart'
    """
    level, size = read_confidence(confidence), positive(step, name="step")
    spent = [positive(epsilon, name="epsilon") for epsilon in epsilons]
    named = {"±": makers} if callable(makers) else makers
    curves = {
        name: ([up(epsilon) for epsilon in spent], [up(_half_width(make(epsilon), level, size)) for epsilon in spent])
        for name, make in named.items()
    }
    return plots.accuracy(curves, unit=unit, confidence=f"{plain(100 * level)} %", title=title)


def plot_neighbours(
    law: Law | Any,
    *,
    distance: int = 1,
    epsilon: Number | None = None,
    exact_answers: tuple[int, int] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Plot the laws of the answers to two neighbouring data sets: what an attacker must tell apart.

    With `epsilon` a third curve is e^epsilon times the second law: pure privacy says that the first never rises above
    it, and where it does, Gaussian noise spends its delta.

    Args:
        law: The law of the noise, as `release.noise` has it, or a mechanism whose answer is one noisy number a cell.
        distance: How far apart the exact answers are, in grid steps: the sensitivity shows the worst neighbours.
        epsilon: The epsilon of the third curve; without it there is none.
        exact_answers: The two exact answers of made-up data, in grid steps, instead of 0 and `distance`.
        title: The title; none if not said.

    Returns:
        A chart of altair.

    Raises:
        InvalidParameter: If the answers are equal, or the law is none.
        MissingLibrary: If altair is not installed.

    Examples:
        >>> chart = dp.plot_neighbours(dp.noise.DiscreteLaplaceLaw(2), epsilon="0.5", exact_answers=(41, 42))
        >>> type(chart).__name__
        'OfflineChart'
    """
    known = law if isinstance(law, Law) else _noise_of(law)
    first, second = (0, distance) if exact_answers is None else exact_answers
    if not all(type(each) is int for each in (first, second)) or first == second:
        raise InvalidParameter("the two exact answers must be different whole numbers")
    reach = known.half_width(_DRAWN)
    answers = range(min(first, second) - reach, max(first, second) + reach + 1)
    answers = answers[:: 1 + len(answers) // _ANSWERS]
    laws = [[float(known.pmf(answer - centre)) for answer in answers] for centre in (first, second)]
    curves = {f"data with answer {centre}": (answers, law) for centre, law in zip((first, second), laws, strict=True)}
    if epsilon is not None:
        level = positive(epsilon, name="epsilon")
        ratio = math.exp(level)
        curves[f"e^{plain(level)} times the second"] = (answers, [ratio * chance for chance in laws[1]])
    return plots.neighbours(curves, title=title)


def _noise_of(mechanism: Any) -> Law:
    """Return the law of the only noise of a mechanism, in grid steps."""
    law = _only_measurement(mechanism).accuracy(Fraction(1)).noise
    if not isinstance(law, Law):
        raise InvalidParameter("law must be a law of discreet.noise, or a mechanism with one noisy number a cell")
    return law


def _named(events: Event | Mapping[str, Event]) -> Mapping[str, Event]:
    named = {type(events).__name__: events} if isinstance(events, Event) else events
    if not isinstance(named, Mapping) or not all(isinstance(event, Event) for event in named.values()) or not named:
        raise InvalidParameter("events must be an event of discreet.privacy, or a mapping from names to events")
    return named


def _last_epsilon(known: PrivacyCurve) -> float:
    """Return where a profile has fallen far enough to be drawn."""
    for delta in _SMALLEST_DELTAS:
        epsilon = known.upper(Fraction(str(delta)))
        if 0 < epsilon < math.inf:
            return epsilon
    raise InvalidParameter("this event has no finite epsilon at any delta worth drawing")


def _profile(known: PrivacyCurve) -> tuple[Floats, Floats]:
    """Follow a curve to its end, with some points close to it: there a pure profile falls off a cliff."""
    end = _last_epsilon(known)
    epsilons = end * np.sort(np.append(np.linspace(0, 1, _POINTS), _NEAR_THE_END))
    found = deltas(known, [Fraction(float(epsilon)) for epsilon in epsilons])
    return epsilons, np.minimum.accumulate(found)  # A delta holds at every larger epsilon too.


def _flat_until(widest: float, epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats]:
    """Draw what is left of an approximate guarantee to the edge: delta never grows with epsilon."""
    if deltas[-1] <= _SMALLEST_DELTAS[0] or epsilons[-1] == widest:
        return epsilons, deltas
    return np.append(epsilons, widest), np.append(deltas, deltas[-1])


def _tradeoff(epsilons: Floats, deltas: Floats) -> tuple[Floats, Floats]:
    """Take the best of the bounds that each (epsilon, delta) implies; any subset of them is right. [WZ10, KOV15]"""
    fpr = np.linspace(0, 1, _RATES)
    room, ratio = (1 - deltas)[:, None], np.exp(epsilons)[:, None]
    lines = np.concatenate([room - ratio * fpr, (room - fpr) / ratio])
    return fpr, np.clip(lines.max(axis=0), 0, 1)


def _half_width(made: Any, confidence: Fraction, step: Fraction) -> Fraction:
    if isinstance(made, Law):
        return made.half_width(confidence) * step
    accuracy = made if isinstance(made, NoiseAccuracy) else _only_measurement(made).accuracy(step)
    return Fraction(accuracy.interval(Fraction(0), confidence)[1])


def _only_measurement(mechanism: Any) -> Any:
    measurements: tuple[Any, ...] = getattr(mechanism, "measurements", ())
    if len(measurements) != 1:
        raise InvalidParameter(
            "this takes a law of discreet.noise, such as release.noise, or a mechanism whose answer is "
            "one noisy number a cell, or what makes one of an epsilon"
        )
    return measurements[0]
