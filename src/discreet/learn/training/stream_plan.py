"""The plan of DP-FTRL: fixed-order participation, with banded noise that is negatively correlated."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive, positive_integer
from discreet.formatting import plain, record, significant_up
from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Clip, Flat, PerLayer, read_clip
from discreet.learn.training.training_plan import (
    ROWS,
    grid_for,
    pack,
    read_object,
    read_slack,
    read_unit,
    record_words,
    sensitivity_up,
    unpack_clip,
)
from discreet.mechanisms.parameters import settle, small_delta
from discreet.noise.limits import check_noise_variance
from discreet.privacy import Event, Gaussian, PureDP, Relation, calibrate, epsilon
from discreet.stored_names import stored_names

__all__ = [
    "UNIT",
    "StreamPlan",
    "Unbanding",
    "growth",
    "plan_stream",
    "whole_weights",
]

# --- bands ---
# Noise that is correlated from step to step: a banded Toeplitz factor, and its inverse applied as numbers come.


Integers: TypeAlias = NDArray[np.int64]
UNIT = 1 << 10  # What the first weight is: weights are whole numbers of 1/1024.


def whole_weights(band: int) -> tuple[int, ...]:
    """Return the first `band` coefficients of (1 - x)^(-1/2), in units of 1/1024, the first being 1024.

    They are the best Toeplitz factor of running sums, cut to a band. [DMRST22, FHU23, CGMMRTX23] Rounding them changes
    the factor a little, and the privacy not at all: everything is computed from the rounded ones. None is rounded to 0.
    """
    weights, exact = [UNIT], Fraction(1)
    for k in range(1, band):
        exact = exact * (2 * k - 1) / (2 * k)
        weights.append(max(1, round(exact * UNIT)))
    return tuple(weights)


def growth(weights: tuple[int, ...], steps: int) -> float:
    """Return the deviation of the last of `steps` numbers after the inverse, for unit noise before it."""
    inverse = [1 / weights[0]]
    for t in range(1, steps):
        recent = zip(weights[1:], reversed(inverse[-len(weights) + 1 :] if len(weights) > 1 else []), strict=False)
        inverse.append(-sum(weight * value for weight, value in recent) / weights[0])
        if abs(inverse[-1]) < 1e-9 and t > len(weights):
            break
    return sqrt(sum(value**2 for value in inverse))


@final
class Unbanding:
    """Combine vectors with those of the steps before, and take the combination off noisy ones again.

    `combined` looks at private vectors and stays inside; `undone` is computed from what was released alone, so that its
    floats are post-processing.
    """

    def __init__(self, weights: tuple[int, ...]) -> None:
        self._weights = weights
        self._private: deque[Integers] = deque(maxlen=len(weights))
        self._public: deque[NDArray[np.float64]] = deque(maxlen=len(weights))

    def combined(self, vector: Integers) -> Integers:
        """Return the sum over j of weight_j times the vector of j steps ago, exactly; this one is j = 0."""
        self._private.appendleft(vector)
        total = np.zeros_like(vector)
        for weight, earlier in zip(self._weights, self._private, strict=False):
            total += weight * earlier
        return total

    def undone(self, noisy: Integers) -> NDArray[np.float64]:
        """Return the number of this step: (noisy - sum over j >= 1 of weight_j undone_(t-j)) / weight_0."""
        value = noisy.astype(np.float64)
        for weight, earlier in zip(self._weights[1:], self._public, strict=False):
            value -= weight * earlier
        value /= self._weights[0]
        self._public.appendleft(value)
        return value.copy()


_FORMAT = 1
_USUAL_BAND = 16  # Steps; twice as many take a tenth off the noise of running sums, and twice the memory.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """Noisy gradient descent in which every record has its turn once in `period` steps, with noise in a band.

    Guarantee   `event`: one Gaussian release of this noise multiplier for the whole run, under add-remove. Whose turn
                it is need not be secret: no sampling helps the guarantee.
    Theorem     Let c be the weights of the band and x_t the clipped sum of step t. The combined sums
                w_t = c_0 x_t + c_1 x_(t-1) + … get independent noise. A record takes part at most
                k = ceil(steps / period) times, at least `band` steps apart, and moves x_t by at most the sensitivity S.
                So it moves w in k runs of `band` steps that do not overlap, each by at most |c| S in the l2 norm. Given
                all that was released before, each run is a Gaussian release of shift |c| S, and k of them compose to
                one of shift sqrt(k) |c| S. What is released is a function of the noisy w. [DMRST22, CGMMRTX23]
    Utility     With band 1 it is plain noise, without the help of sampling. A longer band adds |c| to the noise of each
                w_t, and most of the noise of running sums, on which training depends, cancels. [KMSTTX21]
    """

    steps: int
    period: int  # steps between two turns of a record
    band: int  # at most the period
    clip: Flat | Automatic | PerLayer
    noise_multiplier: Fraction  # of the whole run
    divisor: Fraction  # expected records of a turn, by the public size
    delta: Fraction  # at which the plan is described
    parameters: int
    physical_batch: int
    slack: Fraction
    unit: str | None = None  # what a record is called, if it is a person; None for rows
    max_rows: int | None = None  # of a person in a step

    __repr__ = record

    def __post_init__(self) -> None:
        unit, max_rows = read_unit(self.unit, self.max_rows)
        settle(
            self,
            unit=unit,
            max_rows=max_rows,
            steps=positive_integer(self.steps, name="steps"),
            period=positive_integer(self.period, name="period"),
            band=positive_integer(self.band, name="band"),
            clip=_read_clip(self.clip),
            noise_multiplier=positive(self.noise_multiplier, name="noise_multiplier"),
            divisor=positive(self.divisor, name="divisor"),
            delta=small_delta(self.delta, public_rows=None),
            parameters=positive_integer(self.parameters, name="parameters"),
            physical_batch=positive_integer(self.physical_batch, name="physical_batch"),
            slack=read_slack(self.slack),
        )
        if self.band > self.period:
            raise InvalidParameter(
                "band must not exceed period: the bands of two participations of one record would overlap"
            )
        check_noise_variance(self.variance)

    @property
    def weights(self) -> tuple[int, ...]:
        """The weights of the band, in units of 1/1024."""
        return whole_weights(self.band)

    @property
    def participations(self) -> int:
        """How often a record takes part at most."""
        return -(-self.steps // self.period)

    @property
    def grid(self) -> Fraction:
        """The step of the public grid on which sums lie: a power of two."""
        return grid_for(self.clip.bound, self.parameters)

    @property
    def sensitivity(self) -> Fraction:
        """The l2 norm by which one record can move the sum of one step."""
        return sensitivity_up(self.clip.bound, self.slack, self.grid, self.parameters)

    @property
    def squared_shift(self) -> Fraction:
        """The squared l2 norm by which one turn of a record moves all combined sums, in 1/1024 of grid steps."""
        return sum(weight**2 for weight in self.weights) * (self.sensitivity / self.grid) ** 2

    @property
    def variance(self) -> Fraction:
        """The variance of the noise on every coordinate of a combined sum, in squared 1/1024 of grid steps."""
        return self.noise_multiplier**2 * self.participations * self.squared_shift

    @property
    def deviation(self) -> float:
        """The deviation of the noise on a coordinate of one released sum late in the run, in grid steps."""
        return math.sqrt(self.variance) * growth(self.weights, self.steps)

    @property
    def most_records(self) -> int:
        """How many records may take part in a step so that whole numbers of 64 bits hold all sums."""
        return math.floor((1 << 61) / (sum(self.weights) * self.sensitivity / self.grid))

    @property
    def event(self) -> Event:
        """What the whole run spends."""
        return self.after(self.steps)

    def after(self, steps: int) -> Event:
        """Return what the first `steps` steps spend; nothing for none."""
        if steps == 0:
            return PureDP(0)
        turns = -(-positive_integer(steps, name="steps") // self.period)
        return Gaussian(variance=self.variance / (turns * self.squared_shift), squared_sensitivity=1)

    def epsilon(self, delta: Number) -> float:
        """Return the epsilon of the whole run at delta, rounded up."""
        return epsilon(self.event, delta, relation=Relation.ADD_REMOVE)

    def describe(self) -> str:
        """Say what will be done and what it spends, in words that may be published."""
        spent = significant_up(self.epsilon(self.delta))
        who, whom = record_words(self.unit, self.max_rows)
        return (
            f"{self.steps:,} steps; every {who} has its turn once in {self.period:,}, so at most "
            f"{self.participations:,} times\n"
            f"  the noise of a step takes back part of that of the {self.band - 1:,} steps before\n"
            f"  the noisy sum is divided by {plain(self.divisor)}, a public number\n"
            f"  spends ε = {spent} at δ = {float(self.delta):.3g}, for adding or removing one {whom}"
        )

    def to_json(self) -> str:
        """Write the plan; `from_json` reads it back equal. Nothing in it is private."""
        return json.dumps({"stream": _FORMAT} | {name: pack(value) for name, value in _STORED.values(self)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a plan that `to_json` wrote, with all its checks."""
        values = read_object(text)
        version, arguments = values.pop("stream", None), _STORED.arguments(ROWS | values)
        if version != _FORMAT or arguments is None:
            raise InvalidParameter("this is not a plan of a stream that this release can read")
        return cls(**{**arguments, "clip": unpack_clip(arguments["clip"])})


# Stored in checkpoints and in the heads of weights: these names never change.
_STORED = stored_names(
    {
        StreamPlan: "StreamPlan: steps period band clip noise_multiplier divisor delta parameters physical_batch slack "
        "unit? max_rows?"
    }
)[StreamPlan]


def plan_stream(
    *,
    epsilon: Number | None = None,
    noise_multiplier: Number | None = None,
    delta: Number,
    public_rows: int,
    batch_size: int,
    epochs: int,
    band: int | None = None,
    clip: Clip | Number,
    parameters: int,
    physical_batch: int,
    slack: Number = 0,
    unit: str | None = None,
    max_rows: int | None = None,
) -> StreamPlan:
    """Make the plan of a DP-FTRL run over a stream, or over several epochs, from public numbers.

    A record has its turn once in public_rows / batch_size steps, and `epochs` times in all. `band` is as long as that
    allows, but for 16 steps at most, unless it is said: a run keeps two vectors for each.

    Args:
        epsilon: What the run spends; say this or `noise_multiplier`.
        noise_multiplier: The deviation of the noise over the sensitivity.
        delta: The delta that goes with epsilon.
        public_rows: The public number of records, or a guess of it.
        batch_size: How many records a step takes.
        epochs: How often every record has its turn.
        band: Over how many steps noise is correlated.
        clip: How one record's gradient is kept small, or the norm of a `Flat` clip.
        parameters: How many coordinates the gradient has.
        physical_batch: How many rows one forward pass takes, always.
        slack: The proven float error of the sum, as a multiple of the clip's bound.
        unit: What one of those is called who are protected, where a record is a person and not a row.
        max_rows: With how many rows a person has its turn at most.

    Returns:
        The plan; `describe()` says what it does.

    Raises:
        InvalidParameter: If not one of epsilon and noise_multiplier is said, or a number is out of range.

    Examples:
        >>> plan = dp.learn.training.plan_stream(
        ...     epsilon=1, delta=1e-5, public_rows=10_000, batch_size=100, epochs=5, clip=1, parameters=1000,
        ...     physical_batch=50,
        ... )
        >>> plan.steps, plan.band
        (500, 16)
    """
    if (epsilon is None) == (noise_multiplier is None):
        raise InvalidParameter("say either epsilon or noise_multiplier")
    said = "public_rows" if unit is None else "public_units"
    size, batch = positive_integer(public_rows, name=said), positive_integer(batch_size, name="batch_size")
    if batch > size:
        raise InvalidParameter(f"batch_size must not exceed {said}")
    period = size // batch
    chance = small_delta(delta, public_rows=size, said=said)
    if noise_multiplier is None:
        assert epsilon is not None
        noise_multiplier = _calibrated(positive(epsilon, name="epsilon"), chance)
    return StreamPlan(
        steps=period * positive_integer(epochs, name="epochs"),
        period=period,
        band=min(period, _USUAL_BAND) if band is None else band,
        clip=_read_clip(read_clip(clip)),
        noise_multiplier=positive(noise_multiplier, name="noise_multiplier"),
        divisor=Fraction(size, period),
        delta=chance,
        parameters=parameters,
        physical_batch=physical_batch,
        slack=nonnegative(slack, name="slack"),
        unit=unit,
        max_rows=max_rows,
    )


@lru_cache(256)
def _calibrated(target: Fraction, delta: Fraction) -> Fraction:
    return calibrate(Gaussian, epsilon=target, delta=delta, relation=Relation.ADD_REMOVE)


def _read_clip(clip: Clip) -> Flat | Automatic | PerLayer:
    if isinstance(clip, AdaptiveClip):
        raise InvalidParameter("a stream cannot have an adaptive clip: its counts would need correlated noise as well")
    return clip
