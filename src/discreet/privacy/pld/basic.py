"""Dominating pairs in closed form: randomized response in its disguises, and Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

import numpy as np

from discreet.errors import UnsupportedEvent
from discreet.exact import up
from discreet.privacy.events import (
    ApproxDP,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Laplace,
    PureDP,
    RandomizedResponse,
)
from discreet.privacy.pld.lattice import discrete_gaussian, discrete_laplace, whole_shift
from discreet.privacy.pld.pair import DominatingPair, Floats, Ticks, as_float, few, inverse
from discreet.privacy.pld.rows import RaggedRows

__all__ = ["dominating_pair", "laplace_pairs", "require_pair"]


@singledispatch
def dominating_pair(event: Event, ticks: Ticks, tail: float) -> DominatingPair:
    """Return a pair that dominates `event`, cut into cells at `ticks`, losing at most the mass `tail`."""
    raise UnsupportedEvent(f"no dominating pair is known for {type(event).__name__}: account for it by Renyi")


def require_pair(event: Event) -> None:
    """Refuse an event without a known dominating pair before anything is computed."""
    if dominating_pair.dispatch(type(event)) is dominating_pair.dispatch(Event):
        dominating_pair(event, few, 1.0)
    if isinstance(event, DiscreteGaussian):
        whole_shift(event)


@dominating_pair.register
def _(event: PureDP, ticks: Ticks, tail: float) -> DominatingPair:
    """Binary randomized response dominates every epsilon-private mechanism. [KOV15]"""
    return _answers(as_float(event.epsilon, "epsilon"), others=0)


@dominating_pair.register
def _(event: BoundedRange, ticks: Ticks, tail: float) -> DominatingPair:
    """Bounded range implies pure privacy; the pair is not attained by one mechanism."""
    return _answers(as_float(event.epsilon, "epsilon"), others=0)


@dominating_pair.register
def _(event: ApproxDP, ticks: Ticks, tail: float) -> DominatingPair:
    """With probability delta everything is told, else randomized response answers. [KOV15]"""
    pair = _answers(as_float(event.epsilon, "epsilon"), others=0)
    silent, told = as_float(1 - event.delta, "1 - delta"), up(event.delta)
    return replace(pair, p=silent * pair.p, q=silent * pair.q, infinite=told, vanishing=told)


@dominating_pair.register
def _(event: RandomizedResponse, ticks: Ticks, tail: float) -> DominatingPair:
    """Two answers are the true one of either neighbour; the others carry no loss. [KBR16]"""
    if event.categories > 10**15:
        raise UnsupportedEvent("numerical accounting takes at most 1e15 categories")
    return _answers(as_float(event.epsilon, "epsilon"), others=event.categories - 2)


def _answers(epsilon: float, *, others: int) -> DominatingPair:
    odds = math.exp(-epsilon)
    truth = 1 / (1 + (1 + others) * odds)
    p = np.array([truth, others * truth * odds, truth * odds])
    return DominatingPair(loss=np.array([epsilon, 0.0, -epsilon]), p=p, q=p[::-1], top=epsilon)


@dominating_pair.register
def _(event: Laplace, ticks: Ticks, tail: float) -> DominatingPair:
    """One number shifted by the whole sensitivity is the worst case, as for `DiscreteLaplace`."""
    return laplace_pairs([event], ticks)[0]


def laplace_pairs(events: Sequence[Laplace], ticks: Ticks) -> list[DominatingPair]:
    """Return the pair of each event. P is centred at 0, Q at E, the inverse of the noise multiplier.

    Half of P has the loss E, a density falls to -E: at the loss l it is exp((l - E) / 2) / 4. Splitting a cell of
    length w onto its ends gives each of them exp((l - E) / 2) tanh(w / 4) / 2, where l is that end.
    """
    reaches = [inverse(event.noise_multiplier, "noise_multiplier") for event in events]
    pieces = [piece for reach in reaches for piece in ([-reach], _inside(ticks(-reach, reach), reach), [reach])]
    rows = RaggedRows.of([2 + len(piece) for piece in pieces[1::3]])
    loss, reach = np.concatenate(pieces), rows.spread(np.array(reaches))
    half = np.tanh(np.diff(loss) / 4) / 2
    half[rows.starts[1:] - 1] = 0.5  # There is no cell between two pairs, but half of a law on each end.
    mass = np.concatenate(([0.5], half)) + np.concatenate((half, [0.5]))
    p, q = np.exp((loss - reach) / 2) * mass, np.exp(-(loss + reach) / 2) * mass
    parts = zip(*map(rows.split, (loss, p, q)), reaches, strict=True)
    return [DominatingPair(loss=loss, p=p, q=q, top=reach, cut=True) for loss, p, q, reach in parts]


def _inside(inner: Floats, reach: float) -> Floats:
    """Drop the ticks that rounding put on an end or beyond it."""
    return inner[inner.searchsorted(-reach, "right") : inner.searchsorted(reach, "left")]


@dominating_pair.register
def _(event: DiscreteLaplace, ticks: Ticks, tail: float) -> DominatingPair:
    return discrete_laplace(event, ticks)


@dominating_pair.register
def _(event: DiscreteGaussian, ticks: Ticks, tail: float) -> DominatingPair:
    return discrete_gaussian(event, ticks, tail)
