"""Dominating pairs: at least as distinguishable as any two neighbouring outputs, for every basic event."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from itertools import pairwise
from typing import TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

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

__all__ = [
    "DominatingPair",
    "Floats",
    "RaggedRows",
    "Ticks",
    "as_float",
    "discrete_gaussian",
    "discrete_laplace",
    "dominating_pair",
    "few",
    "gaussian",
    "inverse",
    "laplace_pairs",
    "require_pair",
    "whole_shift",
]

# --- rows ---
# Many short arrays as one long one, so that a thousand small laws cost a few calls of NumPy and not thousands.


Entry = TypeVar("Entry", bound=np.generic)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RaggedRows:
    """Where each row begins in the long array, and how long it is: at least one entry."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, sizes: Sequence[int] | NDArray[np.int64]) -> RaggedRows:
        """Lay rows of these sizes end to end."""
        lengths = np.asarray(sizes, dtype=np.int64)
        return cls(np.cumsum(lengths) - lengths, lengths)

    def spread(self, values: NDArray[Entry]) -> NDArray[Entry]:
        """Repeat the value of each row for each of its entries."""
        return values if len(values) == 1 else np.repeat(values, self.sizes)

    def sum(self, entries: NDArray[Entry]) -> NDArray[Entry]:
        """Add up each row."""
        return np.asarray(np.add.reduceat(entries, self.starts))

    def largest(self, entries: NDArray[Entry]) -> NDArray[Entry]:
        """Return the largest entry of each row."""
        return np.asarray(np.maximum.reduceat(entries, self.starts))

    def smallest(self, entries: NDArray[Entry]) -> NDArray[Entry]:
        """Return the smallest entry of each row."""
        return np.asarray(np.minimum.reduceat(entries, self.starts))

    def split(self, entries: NDArray[Entry]) -> list[NDArray[Entry]]:
        """Return each row."""
        ends = [*self.starts.tolist(), len(entries)]
        return [entries[start:end] for start, end in pairwise(ends)]


# --- pair: A dominating pair: at least as distinguishable as any two neighbouring outputs. ---
#
# (P, Q) dominates an event when no two neighbours have outputs with a larger hockey-stick divergence at any order.
# Domination survives adaptive composition, so it is enough to compose the pairs [ZDW22]. Only the likelihood
# ratio matters; a pair is a list of atoms, each with its loss log(P / Q).


Floats: TypeAlias = NDArray[np.float64]
# Asks for the losses strictly between two ends at which the caller would like the atoms.
Ticks: TypeAlias = Callable[[float, float], Floats]

_SMALLEST, _LARGEST = 1e-100, 1e15
_FRACTIONS = np.arange(1, 33) / 33


def as_float(value: Fraction, name: str) -> float:
    """Return the nearest float, or refuse where doubles cannot carry the losses that follow from it."""
    return _in_range(value, name, _SMALLEST, _LARGEST) if value else 0.0


def inverse(value: Fraction, name: str) -> float:
    """Return 1 / value, or refuse where doubles cannot carry the losses that follow from it."""
    return 1 / _in_range(value, name, 1 / _LARGEST, 1 / _SMALLEST)


def _in_range(value: Fraction, name: str, low: float, high: float) -> float:
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if not low <= nearest <= high:
        raise UnsupportedEvent(f"{name} is out of the range of numerical accounting: {low:g} to {high:g}")
    return nearest


def few(low: float, high: float) -> Floats:
    """Ask for 32 losses, enough for a first look."""
    return low + (high - low) * _FRACTIONS


@final
@dataclass(frozen=True, slots=True, eq=False)
class DominatingPair:
    """Atoms of a dominating pair, rounded: each mass up to `error`, each loss up to `slip` and 16 ulp of the largest.

    Where a continuous law was cut into cells, the mass of a cell sits on its two ends such that its mass under P
    and under Q is kept. That dominates the law: the law is a post-processing of the atoms. [DGKKM22]
    """

    loss: Floats  # log(P / Q), in nats
    p: Floats
    q: Floats
    top: float  # the largest loss the law can have; infinity if it is unbounded
    infinite: float = 0.0  # mass under P where Q has none
    vanishing: float = 0.0  # mass under Q where P has none
    lost: float = 0.0  # a bound on the mass, under P or under Q, that was cut off as too unlikely
    cut: bool = False  # whether the atoms are ends of cells, all ticks among them
    width: float = 0.0  # cells that do not end at ticks move a loss at random, like an interval of this length
    error: float = 1e-12  # relative, of each mass
    slip: float = 0.0  # absolute, of each loss


# --- basic: Dominating pairs in closed form: randomized response in its disguises, and Laplace noise. ---


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


# --- lattice: Dominating pairs of noise on the integers: discrete Laplace and discrete Gaussian. ---


_MOST_ATOMS = 4_000_000  # of a discrete Gaussian; more would take hundreds of megabytes
_MOST_SHIFT = 2**52  # Integers and halves up to it, and a little beyond, are floats.


def discrete_laplace(event: DiscreteLaplace, ticks: Ticks) -> DominatingPair:
    """Shift one integer by the whole l1 sensitivity.

    Theorem     That is the worst case of a vector too. For log-concave noise the best tests are thresholds, so
                the trade-off of a shift s + t is the one of t after the one of s, with equality. A vector walks
                from one neighbour to the other coordinate by coordinate, which cannot be easier to tell. [DRS22]
    """
    shift = event.sensitivity
    if shift > _MOST_SHIFT:
        raise UnsupportedEvent("numerical accounting takes integer sensitivities up to 2^52: use a coarser grid")
    rate = inverse(event.scale, "scale")
    nodes, width = _nodes(rate, shift, ticks)
    mass = _geometric_masses(rate, nodes)
    return DominatingPair(
        loss=(shift - 2 * nodes) * rate,
        p=np.exp(-rate * nodes) * mass,
        q=np.exp(-rate * (shift - nodes)) * mass,
        top=shift * rate,
        width=width,
    )


def _nodes(rate: float, shift: int, ticks: Ticks) -> tuple[Floats, float]:
    """Return the outputs, from 0 to `shift`, that keep an atom of their own, and the longest cell between them."""
    wanted = ticks(-shift * rate, shift * rate)
    if shift <= 2 * len(wanted) + 64:
        return np.arange(shift + 1, dtype=np.float64), 0.0
    near = np.clip(np.rint((shift - wanted / rate) / 2), 0, shift)
    # The mirror images keep the pair its own mirror image.
    nodes = np.unique(np.concatenate(([0.0, shift], near, shift - near)))
    return nodes, 2 * rate * float(np.diff(nodes).max())


def _geometric_masses(rate: float, nodes: Floats) -> Floats:
    """Return P's mass of each node divided by exp(-rate * node), with the outputs in between split onto them.

    Between two nodes that are n apart lie n - 1 outputs with a geometric law of ratio r = exp(-rate). Splitting
    each such that its mass under P and Q is kept, and summing, gives both nodes the same multiple
    r (1 - r^(n-1)) / ((1 + r) (1 + r^n)) of their own r^node.
    """
    gap = np.diff(nodes)
    ratio = math.exp(-rate)
    between = -np.expm1(-rate * (gap - 1)) * ratio / ((1 + ratio) * (1 + np.exp(-rate * gap)))
    mass = np.full(len(nodes), math.tanh(rate / 2))
    mass[[0, -1]] = 1 / (1 + ratio)
    mass[1:] += between
    mass[:-1] += between
    return mass


def discrete_gaussian(event: DiscreteGaussian, ticks: Ticks, tail: float) -> DominatingPair:
    """Enumerate one integer, shifted by the sensitivity. Q is centred at 0, P at the shift.

    Outputs further than `reach` from both centres are lost: the law is sub-Gaussian with its sigma, so that
    P[|X| >= m] <= 2 exp(-m^2 / (2 sigma^2)). [CKS20]
    """
    shift = whole_shift(event)
    variance = as_float(event.variance, "variance")
    if ticks is few and variance > 2500 and shift**2 < 10**4 * variance:
        # For a first look, enumerate nothing: a wide discrete Gaussian is all but continuous.
        return gaussian(shift / math.sqrt(variance), ticks, tail)
    reach = math.ceil(math.sqrt(2 * variance * math.log(2 / min(tail, 1e-15)))) + 1
    outputs = _outputs(reach, shift)
    around = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * variance))
    return DominatingPair(
        loss=(outputs - shift / 2) * (shift / variance),
        p=np.exp(-((outputs - shift) ** 2) / (2 * variance)) / around.sum(),
        q=np.exp(-(outputs**2) / (2 * variance)) / around.sum(),
        top=math.inf,
        lost=tail,
    )


def whole_shift(event: DiscreteGaussian) -> int:
    """Return the sensitivity in whole grid steps, or refuse."""
    square = event.squared_sensitivity
    root = math.isqrt(square.numerator) if square.denominator == 1 else 0
    if event.dimension > 1 or root**2 != square or root > _MOST_SHIFT:
        raise UnsupportedEvent(
            "a dominating pair of DiscreteGaussian is known in one dimension with an integer sensitivity: "
            "account for it by its rho"
        )
    return root


def _outputs(reach: int, shift: int) -> Floats:
    """Return the integers within `reach` of 0 or of `shift`."""
    if 2 * reach + min(shift, 2 * reach) > _MOST_ATOMS:
        raise UnsupportedEvent("this discrete Gaussian is too wide to enumerate: account for it by its rho")
    if shift <= 2 * reach:
        return np.arange(-reach, shift + reach + 1, dtype=np.float64)
    around = np.arange(-reach, reach + 1, dtype=np.float64)
    return np.concatenate((around, around + shift))


# --- normal: The dominating pair of Gaussian noise, integrated cell by cell to full relative accuracy. ---


_LARGEST_MU = 1000.0
_CHUNK = 8192  # cells at a time, for the sake of caches and memory

# Gauss-Legendre with six points on [0, 1]. Its relative error on a cell of length w is below 1e-14 where
# w (|y| + mu + 4) <= 1: the twelfth derivative of the integrand is at most about (|y| + mu + 2.2)^12 times the
# integrand, and the constant of the rule is 2e-16.
_POINTS, _WEIGHTS = (array[:, None] for array in np.polynomial.legendre.leggauss(6))
_POINTS, _WEIGHTS = (_POINTS + 1) / 2, _WEIGHTS / 2


def gaussian(mu: float, ticks: Ticks, tail: float) -> DominatingPair:
    """Return N(mu, 1) against N(0, 1): the loss of y + mu is mu (y + mu / 2). [DRS22]

    Each side of loss 0 is integrated under the law that is larger there; the other one is exp(-|loss|) times it.
    A mass of at most exp(-reach^2 / 2) lies further than `reach` from a centre.
    """
    if mu > _LARGEST_MU:
        raise UnsupportedEvent("noise this small has no useful loss distribution: account for it by its mu")
    reach = math.sqrt(2 * math.log(1 / tail))
    low, high = mu * max(0.0, mu / 2 - reach), mu * (mu / 2 + reach)
    size = math.ceil((high - low) / mu * (reach + mu + 4)) + 1
    plain = np.linspace(low, high, size)
    above = _merge(plain, ticks(low, high))
    below = _merge(plain, -ticks(-high, -low)[::-1])
    p, q = _masses(above, mu), _masses(below, mu)
    return DominatingPair(
        loss=np.concatenate((-below[::-1], above)),
        p=np.concatenate(((q * np.exp(-below))[::-1], p)),
        q=np.concatenate((q[::-1], p * np.exp(-above))),
        top=math.inf,
        lost=tail,
        cut=True,
    )


def _merge(plain: Floats, wanted: Floats) -> Floats:
    nodes = np.sort(np.concatenate((plain, wanted)), kind="stable")
    return nodes[np.concatenate(([True], np.diff(nodes) > 0))]


def _masses(loss: Floats, mu: float) -> Floats:
    """Return the mass under the larger law at each of the increasing, nonnegative losses."""
    y = loss / mu - mu / 2
    mass = np.zeros_like(y)
    for start in range(0, len(y) - 1, _CHUNK):
        cells = y[start : start + _CHUNK + 1]
        lower, upper = _split(cells[:-1], np.diff(cells), mu)
        mass[start : start + len(lower)] += lower
        mass[start + 1 : start + len(upper) + 1] += upper
    return mass


def _split(start: Floats, length: Floats, mu: float) -> tuple[Floats, Floats]:
    """Return what each cell puts on its lower and on its upper end.

    An output at the fraction t of a cell of w nats puts (1 - e^(-wt)) / (1 - e^(-w)) of itself on the upper end.
    """
    density = np.exp(-((start + length * _POINTS) ** 2) / 2) * (_WEIGHTS * length / math.sqrt(2 * math.pi))
    width = np.maximum(mu * length, 1e-300)
    share = np.expm1(-width * _POINTS) / np.expm1(-width)
    return (density * (1 - share)).sum(axis=0), (density * share).sum(axis=0)
