"""The training plan: one frozen value that couples sampling, clip, noise, divisor, steps and what they spend."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Self, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive, positive_integer, up
from discreet.formatting import plain, record, significant_up
from discreet.learn.training.clip_rules import AdaptiveClip, Automatic, Clip, Flat, PerLayer, read_clip
from discreet.mechanisms.parameters import settle, small_delta
from discreet.noise.limits import check_noise_variance
from discreet.privacy import Event, Gaussian, PoissonSampled, PureDP, Relation, Repeated, calibrate, epsilon
from discreet.stored_names import stored_names

__all__ = [
    "ROWS",
    "TrainingPlan",
    "grid_for",
    "pack",
    "plan_training",
    "read_object",
    "read_slack",
    "read_unit",
    "record_words",
    "root_up",
    "rounding_up",
    "sensitivity_up",
    "unpack_clip",
]

# --- grids: The public grid of a clipped sum, and how far one record can move the sum on it. ---


_LARGEST_SLACK = Fraction(
    1, 2000
)  # Of float errors, as a multiple of the bound: half of the thousandth that is allowed.
_SHARE = Fraction(1, 2000)  # The other half is for rounding to the grid.


@lru_cache(256)
def grid_for(bound: Fraction, parameters: int) -> Fraction:
    """Return the largest power of two on which rounding costs at most bound / 2000 of sensitivity.

    It depends on public numbers only, and is a power of two so that dividing a float by it is exact.
    """
    room = bound * _SHARE / rounding_up(Fraction(1), parameters)
    power = room.numerator.bit_length() - room.denominator.bit_length()
    return Fraction(2) ** (power if Fraction(2) ** power <= room else power - 1)


def rounding_up(grid: Fraction, parameters: int) -> Fraction:
    """Bound what rounding adds: 2 grid sqrt(P).

    One record changes two blocks. Each of the two is rounded before and after, and each of the four roundings moves
    every one of P coordinates by at most half a grid step.
    """
    return 2 * grid * root_up(parameters)


@lru_cache(256)
def sensitivity_up(bound: Fraction, slack: Fraction, grid: Fraction, parameters: int) -> Fraction:
    """Bound the l2 norm by which one record more or less changes the rounded sum: clip, float errors, rounding."""
    return bound * (1 + slack) + rounding_up(grid, parameters)


def root_up(value: int) -> Fraction:
    """Return a fraction at or just above the square root of a whole number."""
    fine = 1 << 32
    root = isqrt(value * fine**2)
    return Fraction(root if root**2 == value * fine**2 else root + 1, fine)


def read_slack(value: Number) -> Fraction:
    """Read a proven float error, as a multiple of the bound; too large a one is refused."""
    slack = nonnegative(value, name="slack")
    if slack > _LARGEST_SLACK:
        raise InvalidParameter(
            f"the float error of these sums may reach {significant_up(slack)} of the clip, and 1/2000 is the most "
            "that is allowed: use smaller blocks of rows"
        )
    return slack


# --- writing: Write the parts of a training plan as JSON and read them back. ---


# Stored in plans of training, in checkpoints and in the heads of weights: these names never change.
_RULES = stored_names(
    {
        Flat: "Flat: clip",
        Automatic: "Automatic: clip gamma",
        PerLayer: "PerLayer: clip",
        AdaptiveClip: "AdaptiveClip: initial quantile rate count_noise",
    }
)


def pack(value: object) -> Any:
    """Return what JSON can hold: fractions as text, a clipping rule by its name."""
    name = _RULES.get(type(value))
    if name is not None:
        return {"rule": name.tag} | {part: pack(held) for part, held in name.values(value)}
    return str(value) if isinstance(value, Fraction) else value


def unpack_clip(packed: Any) -> Clip:
    """Read a clipping rule that `pack` wrote."""
    values = dict(packed) if isinstance(packed, dict) else {}
    tag = values.pop("rule", "")
    for rule, name in _RULES.items():
        arguments = name.arguments(values) if name.tag == tag else None
        if arguments is not None:
            made: Clip = rule(**arguments)
            return made
    raise InvalidParameter("this is not a clipping rule that this release can read")


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError, TypeError):
        raise InvalidParameter("a training plan must be a JSON object") from None
    if not isinstance(values, dict):
        raise InvalidParameter("a training plan must be a JSON object")
    return values


_FORMAT = 1

# --- units: Who a record is: a row, or a person with at most so many rows in a step. ---


ROWS: dict[str, Any] = {"unit": None, "max_rows": None}  # as plans of rows are stored: without both


def read_unit(unit: str | None, max_rows: int | None) -> tuple[str | None, int | None]:
    """Read who is protected: both are said, of people, or neither, of rows."""
    if (unit is None) != (max_rows is None):
        raise InvalidParameter("say unit and max_rows together: who is protected, and with how many rows in a step")
    if max_rows is None:
        return None, None
    if not isinstance(unit, str) or not unit.strip() or unit == "row":
        raise InvalidParameter('unit must be what one of those is called who are protected, such as "patient"')
    return unit, int(positive_integer(max_rows, name="max_rows"))


def record_words(unit: str | None, max_rows: int | None) -> tuple[str, str]:
    """Say who takes part in a step, and who is added or removed."""
    if max_rows is None:
        return "record", "record"
    rows = "one row" if max_rows == 1 else f"{max_rows:,} rows"
    return f"{unit}, with at most {rows} chosen afresh,", f"{unit} with all their rows"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """Noisy gradient descent: every record joins a step with probability q, is clipped, and the sum gets noise.

    Guarantee   `event`: `steps` Gaussian releases of this noise multiplier on Poisson samples, under add-remove.
    Theorem     With the records of a sample in random order, one record moves the rounded sum of clipped gradients by
                at most `sensitivity`; the noise is the exact rounding of a normal variable whose deviation is
                noise_multiplier times that. See docs/learn/guarantee.md. [ACGMMTZ16, MTZ19]
    Utility     a gradient coordinate has the noise `noise_multiplier * sensitivity / divisor`, the same in all steps.

    All numbers are public. None may be computed from the data: not even from how many records there are.

    Args:
        sampling_probability: The chance q with which a record joins a step.
        steps: How many steps there are.
        clip: How one record's gradient is kept small: `Flat`, `PerLayer`, `Automatic` or `AdaptiveClip`.
        noise_multiplier: The deviation of the noise over the sensitivity.
        divisor: What the noisy sum is divided by: the expected batch by the public number of rows.
        delta: The delta at which the plan is described.
        parameters: How many coordinates the gradient has.
        physical_batch: How many rows one forward pass takes, always.
        slack: The proven float error of the sum, as a multiple of the clip's bound.
        unit: What one of those is called who are protected, where a record is a person and not a row.
        max_rows: With how many rows a person takes part in a step at most.

    Raises:
        InvalidParameter: If a number is out of range.

    Examples:
        >>> plan = dp.learn.training.plan_training(
        ...     noise_multiplier=1, delta=1e-5, public_rows=10_000, batch_size=100, epochs=2, clip=1, parameters=1000,
        ...     physical_batch=50,
        ... )
        >>> plan.steps
        200
        >>> dp.learn.training.TrainingPlan.from_json(plan.to_json()) == plan
        True
    """

    sampling_probability: Fraction
    steps: int
    clip: Clip
    noise_multiplier: Fraction  # deviation / sensitivity, of gradient and count together where the clip adapts
    divisor: Fraction  # what the noisy sum is divided by: the expected batch by the public size
    delta: Fraction  # at which the plan is described
    parameters: int  # how many coordinates the gradient has
    physical_batch: int  # records that one forward pass takes, always this many
    slack: Fraction  # proven float error of the sum, as a multiple of the clip's bound
    unit: str | None = None  # what a record is called, if it is a person; None for rows
    max_rows: int | None = None  # of a person in a step

    __repr__ = record

    def __post_init__(self) -> None:
        unit, max_rows = read_unit(self.unit, self.max_rows)
        settle(
            self,
            unit=unit,
            max_rows=max_rows,
            sampling_probability=_read_rate(self.sampling_probability),
            steps=positive_integer(self.steps, name="steps"),
            clip=read_clip(self.clip),
            noise_multiplier=positive(self.noise_multiplier, name="noise_multiplier"),
            divisor=positive(self.divisor, name="divisor"),
            delta=small_delta(self.delta, public_rows=None),
            parameters=positive_integer(self.parameters, name="parameters"),
            physical_batch=positive_integer(self.physical_batch, name="physical_batch"),
            slack=read_slack(self.slack),
        )
        check_noise_variance(self.variance)
        if isinstance(self.clip, AdaptiveClip):
            check_noise_variance(self.count_variance)

    @property
    def grid(self) -> Fraction:
        """The step of the public grid on which block sums, noise and released sums lie: a power of two."""
        return grid_for(self.clip.bound, self.parameters)

    @property
    def sensitivity(self) -> Fraction:
        """The l2 norm by which one record more or less can move the sum; at most 1.001 times the clip's bound."""
        return sensitivity_up(self.clip.bound, self.slack, self.grid, self.parameters)

    @property
    def most_records(self) -> int:
        """How many records a data set may have so that sums of grid steps are exact in doubles, whoever is drawn."""
        return math.floor((1 << 53) / (self.sensitivity / self.grid))

    @property
    def count_variance(self) -> Fraction:
        """The variance of the noise on the count of +1 and -1 that an adaptive clip follows; one record moves it by 1.

        `count_noise` is the deviation on a sum of +-1/2, hence the factor 2.
        """
        if not isinstance(self.clip, AdaptiveClip):
            raise InvalidParameter("only an adaptive clip has a count")
        chosen = self.clip.count_noise
        return (2 * (self.divisor / 20 if chosen is None else chosen)) ** 2

    @property
    def variance(self) -> Fraction:
        """The variance of the noise on every coordinate of the sum, in squared grid steps.

        Two independent Gaussian releases with multipliers a and b are one with 1/z^2 = 1/a^2 + 1/b^2, because
        coordinates scaled to unit noise form one vector whose squared shifts add. So where a count is released as
        well, with 1/b^2 = 1 / count_variance, the gradient gets what is left: 1/a^2 = 1/z^2 - 1/b^2.
        """
        left = 1 / self.noise_multiplier**2
        if isinstance(self.clip, AdaptiveClip):
            left -= 1 / self.count_variance
        if left <= 0:
            raise InvalidParameter(
                "count_noise must exceed half of the noise multiplier: otherwise the count alone spends more than the "
                "plan has. Use a larger count_noise, a larger batch or a clip that does not adapt"
            )
        return (self.sensitivity / self.grid) ** 2 / left

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on every coordinate of the sum, in grid steps, for display."""
        return math.sqrt(self.variance)

    @property
    def step_event(self) -> Gaussian:
        """What one step spends on whoever is in it, from the noise as it is drawn."""
        spent = (self.sensitivity / self.grid) ** 2 / self.variance
        if isinstance(self.clip, AdaptiveClip):
            spent += 1 / self.count_variance
        return Gaussian(variance=1 / spent, squared_sensitivity=1)

    @property
    def event(self) -> Event:
        """What the whole run spends."""
        return self.after(self.steps)

    def after(self, steps: int) -> Event:
        """Return what the first `steps` steps spend; nothing for none."""
        if steps == 0:
            return PureDP(0)
        return Repeated(PoissonSampled(self.step_event, self.sampling_probability), steps)

    def epsilon(self, delta: Number) -> float:
        """Return the epsilon of the whole run at delta, rounded up."""
        return _epsilon(self.event, small_delta(delta, public_rows=None))

    def describe(self) -> str:
        """Say what will be done and what it spends, in words that may be published."""
        rate, spent = plain(self.sampling_probability), significant_up(self.epsilon(self.delta))
        who, whom = record_words(self.unit, self.max_rows)
        return (
            f"{self.steps:,} steps, in each of which every {who} takes part with probability {rate}\n"
            f"  its gradient is clipped: {_words(self.clip)}\n"
            f"  every one of {self.parameters:,} coordinates of the sum gets normal noise of "
            f"{significant_up(self.noise_multiplier)} times what one {self.unit or 'record'} can change\n"
            f"  the noisy sum is divided by {plain(self.divisor)}, a public number\n"
            f"  spends ε = {spent} at δ = {_small(self.delta)}, for adding or removing one {whom}"
        )

    def to_json(self) -> str:
        """Write the plan; `from_json` reads it back equal. Nothing in it is private."""
        packed = {name: pack(value) for name, value in _STORED.values(self)}
        return json.dumps({"format": _FORMAT} | packed, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a plan that `to_json` wrote, with all its checks."""
        values = read_object(text)
        version, arguments = values.pop("format", None), _STORED.arguments(ROWS | values)
        if version != _FORMAT or arguments is None:
            raise InvalidParameter("this is not a training plan that this release can read")
        return cls(**{**arguments, "clip": unpack_clip(arguments["clip"])})


# Stored in checkpoints and in the heads of weights: these names never change.
_STORED = stored_names(
    {
        TrainingPlan: "TrainingPlan: sampling_probability steps clip noise_multiplier divisor delta parameters "
        "physical_batch slack unit? max_rows?"
    }
)[TrainingPlan]


def plan_training(
    *,
    epsilon: Number | None = None,
    noise_multiplier: Number | None = None,
    delta: Number,
    public_rows: int,
    batch_size: int,
    epochs: Number | None = None,
    steps: int | None = None,
    clip: Clip | Number,
    parameters: int,
    physical_batch: int,
    slack: Number = 0,
    unit: str | None = None,
    max_rows: int | None = None,
) -> TrainingPlan:
    """Make the plan of a DP-SGD run from public numbers: the least noise that keeps epsilon, or a given noise.

    `public_rows` is how many records there are about, as everybody may know; the true number is private and is not
    used. `batch_size` records are expected in a step, out of `public_rows`.

    Args:
        epsilon: What the run spends; say this or `noise_multiplier`.
        noise_multiplier: The deviation of the noise over the sensitivity.
        delta: The delta that goes with epsilon.
        public_rows: The public number of records, or a guess of it.
        batch_size: How many records are expected in a step.
        epochs: How often a record is expected to join; say this or `steps`.
        steps: How many steps there are.
        clip: How one record's gradient is kept small, or the norm of a `Flat` clip.
        parameters: How many coordinates the gradient has.
        physical_batch: How many rows one forward pass takes, always.
        slack: The proven float error of the sum, as a multiple of the clip's bound.
        unit: What one of those is called who are protected, where a record is a person and not a row.
        max_rows: With how many rows a person takes part in a step at most.

    Returns:
        The plan; `describe()` says what it does and what it spends.

    Raises:
        InvalidParameter: If not one of epsilon and noise_multiplier is said, or a number is out of range.

    Examples:
        >>> plan = dp.learn.training.plan_training(
        ...     epsilon=1, delta=1e-5, public_rows=10_000, batch_size=100, epochs=5, clip=1, parameters=1000,
        ...     physical_batch=50,
        ... )
        >>> plan.epsilon("1e-5") <= 1
        True
    """
    if (epsilon is None) == (noise_multiplier is None):
        raise InvalidParameter("say either epsilon or noise_multiplier")
    said = "public_rows" if unit is None else "public_units"
    size, batch = positive_integer(public_rows, name=said), positive_integer(batch_size, name="batch_size")
    if batch > size:
        raise InvalidParameter(f"batch_size must not exceed {said}")
    rate, chance = Fraction(batch, size), small_delta(delta, public_rows=size, said=said)
    count = _read_steps(epochs, steps, rate)
    if noise_multiplier is None:
        assert epsilon is not None
        noise_multiplier = _calibrated(positive(epsilon, name="epsilon"), chance, rate, count)
    return TrainingPlan(
        sampling_probability=rate,
        steps=count,
        clip=read_clip(clip),
        noise_multiplier=positive(noise_multiplier, name="noise_multiplier"),
        divisor=Fraction(batch),
        delta=chance,
        parameters=parameters,
        physical_batch=physical_batch,
        slack=nonnegative(slack, name="slack"),
        unit=unit,
        max_rows=max_rows,
    )


@lru_cache(256)
def _calibrated(target: Fraction, delta: Fraction, rate: Fraction, steps: int) -> Fraction:
    return calibrate(
        lambda multiplier: Repeated(PoissonSampled(Gaussian(multiplier), rate), steps),
        epsilon=target,
        delta=delta,
        relation=Relation.ADD_REMOVE,
    )


@lru_cache(1024)
def _epsilon(event: Event, delta: Fraction) -> float:
    return epsilon(event, delta, relation=Relation.ADD_REMOVE)


def _read_steps(epochs: Number | None, steps: int | None, rate: Fraction) -> int:
    if (epochs is None) == (steps is None):
        raise InvalidParameter("say either epochs or steps")
    if steps is not None:
        return positive_integer(steps, name="steps")
    assert epochs is not None
    return math.ceil(positive(epochs, name="epochs") / rate)


def _read_rate(value: Number) -> Fraction:
    rate = positive(value, name="sampling_probability")
    if rate > 1:
        raise InvalidParameter("sampling_probability must be at most 1")
    return rate


def _words(clip: Clip) -> str:
    match clip:
        case Flat():
            return f"norm at most {plain(clip.clip)}"
        case Automatic():
            return f"brought near the norm {plain(clip.clip)}"
        case PerLayer():
            return f"layer by layer, together at most {plain(clip.clip)}"
        case AdaptiveClip():
            return f"at a norm that follows the {plain(clip.quantile)} quantile, from {plain(clip.initial)} on"


def _small(delta: Fraction) -> str:
    return f"{up(delta):.3g}"
