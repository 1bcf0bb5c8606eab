"""What was spent: frozen values that say what happened, never how much that is.

An event is public: it can be printed, stored and sent. Its numbers are exact. Events are append-only: a new
meaning is a new class, and the meaning of a stored name and version never changes.

Every event is a statement about all pairs of neighbours under the relation of the account it is charged to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self, final

from discreet.errors import InvalidParameter
from discreet.exact import (
    Number,
    exact,
    nonnegative,
    positive,
    positive_integer,
    probability,
)
from discreet.formatting import record
from discreet.stored_names import StoredName, stored_names

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "BoundedRange",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Gaussian",
    "Grouped",
    "Laplace",
    "Parallel",
    "PoissonSampled",
    "PureDP",
    "RandomizedResponse",
    "RandomlyStopped",
    "Repeated",
    "SampledWithoutReplacement",
    "event_name",
    "from_json",
]

_DEEPEST = 32  # Nested events; deeper ones come from a mistake or an attack.


class Event:
    """Something that was spent.

    An event is a frozen value: what happened, apart from how much it is charged as. `epsilon`, `delta`, `renyi` and
    `tradeoff` are the accountants.

    Examples:
        >>> event = dp.privacy.PureDP(1)
        >>> dp.privacy.Event.from_json(event.to_json()) == event
        True
    """

    __slots__ = ("_hash",)
    version: ClassVar[int] = 1
    _hash: int
    __match_args__: ClassVar[tuple[str, ...]]  # the names of the fields, from the dataclass

    def __init_subclass__(cls) -> None:
        cls.__hash__ = Event.__hash__  # type: ignore[method-assign]  # A dataclass keeps the one it finds.

    def __hash__(self) -> int:
        """Hash the fields once: accounts count events many times over, and fractions are slow to hash."""
        try:
            return self._hash
        except AttributeError:
            value = hash(tuple(getattr(self, name) for name in self.__match_args__))
            self._set(_hash=value)
            return value

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def to_json(self) -> str:
        """Write the event with its name and version; `from_json` reads it back equal."""
        return json.dumps(_pack(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read an event that `to_json` wrote; one of another class is refused."""
        event = from_json(text)
        if not isinstance(event, cls):
            raise InvalidParameter(f"this is a {event_name(event)}, not a {cls.__name__}")
        return event


def from_json(text: str) -> Event:
    """Read any event that `to_json` wrote.

    Args:
        text: What `Event.to_json` wrote.

    Returns:
        The event, equal to the one that was written.

    Raises:
        InvalidParameter: If the text is no event of a known name and version.

    Examples:
        >>> dp.privacy.from_json(dp.privacy.PureDP(1).to_json())
        PureDP(epsilon=1)
    """
    try:
        packed = json.loads(text)
    except (ValueError, RecursionError, TypeError):
        raise InvalidParameter("an event must be a JSON object") from None
    return _unpack(packed, depth=0)


def event_name(event: Event) -> str:
    """Return the name under which an event is stored."""
    return _name_of(event).tag


def _name_of(event: Event) -> StoredName:
    name = _NAMES.get(type(event))
    if name is None:
        raise InvalidParameter(f"{type(event).__name__} is no event that can be stored")
    return name


def _pack(value: object) -> Any:
    if isinstance(value, Event):
        name = _name_of(value)
        return {"name": name.tag, "version": value.version} | {key: _pack(held) for key, held in name.values(value)}
    if isinstance(value, tuple):
        return [_pack(item) for item in value]
    return str(value) if isinstance(value, Fraction) else value


def _unpack(packed: Any, depth: int) -> Event:
    if not isinstance(packed, dict) or depth > _DEEPEST:
        raise InvalidParameter("an event must be a JSON object, not nested too deeply")
    values = dict(packed)
    key = (values.pop("name", None), values.pop("version", None))
    event = _KINDS.get(key) if all(isinstance(part, (str, int)) for part in key) else None
    if event is None:
        raise InvalidParameter("this event name and version are unknown to this release")
    for name, value in values.items():
        if isinstance(value, dict):
            values[name] = _unpack(value, depth + 1)
        elif isinstance(value, list):
            values[name] = tuple(_unpack(item, depth + 1) for item in value)
    name = _NAMES[event]
    try:
        return event(**{name.parts.get(key, key): value for key, value in values.items()})
    except TypeError:
        raise InvalidParameter(f"the fields of this {name.tag} are not the ones it has") from None


def _event(value: object, name: str) -> Event:
    if not isinstance(value, Event):
        raise InvalidParameter(f"{name} must be an event of discreet.privacy, not {type(value).__name__}")
    if _depth(value) > _DEEPEST:
        raise InvalidParameter(f"{name} is nested too deeply")
    return value


def _depth(event: Event) -> int:
    match event:
        case PoissonSampled() | SampledWithoutReplacement() | Repeated() | Grouped():
            return 1 + _depth(event.event)
        case Composed() | Parallel() | RandomlyStopped():
            return 1 + max(map(_depth, event.events))
        case _:
            return 1


def _events(values: Iterable[Event], name: str) -> tuple[Event, ...]:
    try:
        events = tuple(values)
    except TypeError:
        raise InvalidParameter(f"{name} must be a sequence of events") from None
    if not events:
        raise InvalidParameter(f"{name} must name at least one event")
    return tuple(_event(event, name) for event in events)


def _one_of(root: Number | None, square: Number | None, *, name: str, squared_name: str) -> Fraction:
    """Return the square, given either the positive root or the positive square, but not both."""
    if (root is None) == (square is None):
        raise InvalidParameter(f"say either {name} or {squared_name}")
    if square is not None:
        return positive(square, name=squared_name)
    return positive(root, name=name) ** 2  # type: ignore[arg-type]


@final
@dataclass(frozen=True, slots=True)
class PureDP(Event):
    """epsilon-differential privacy, nothing else known. [DMNS06]

    Args:
        epsilon: The bound on the privacy loss, at least 0.

    Examples:
        >>> dp.privacy.epsilon(dp.privacy.PureDP(1), 0)
        1.0
    """

    epsilon: Fraction

    __repr__ = record

    def __init__(self, epsilon: Number) -> None:
        self._set(epsilon=nonnegative(epsilon, name="epsilon"))


@final
@dataclass(frozen=True, slots=True)
class ApproxDP(Event):
    """(epsilon, delta)-differential privacy, nothing else known. [DKMMN06]

    Args:
        epsilon: The bound on the privacy loss, at least 0.
        delta: The chance that the bound does not hold, at least 0 and at most 1.

    Examples:
        >>> dp.privacy.ApproxDP(1, 1e-6).delta
        Fraction(1, 1000000)
    """

    epsilon: Fraction
    delta: Fraction

    __repr__ = record

    def __init__(self, epsilon: Number, delta: Number) -> None:
        self._set(epsilon=nonnegative(epsilon, name="epsilon"), delta=probability(delta, name="delta"))


@final
@dataclass(frozen=True, slots=True)
class ZCDP(Event):
    """rho-zero-concentrated DP: every Renyi divergence of order a is at most a * rho. [BS16]

    Args:
        rho: The parameter rho, at least 0.

    Examples:
        >>> round(dp.privacy.epsilon(dp.privacy.ZCDP(0.1), 1e-6), 3)
        2.142
    """

    rho: Fraction

    __repr__ = record

    def __init__(self, rho: Number) -> None:
        self._set(rho=nonnegative(rho, name="rho"))


@final
@dataclass(frozen=True, slots=True)
class GDP(Event):
    """mu-Gaussian DP: as hard as telling N(0, 1) from N(mu, 1). [DRS22]

    Args:
        mu: The parameter mu, at least 0; say this or `mu_squared`.
        mu_squared: Its square, of which the root need not be rational.

    Examples:
        >>> round(dp.privacy.epsilon(dp.privacy.GDP(1), 1e-5), 3)
        4.377
    """

    mu_squared: Fraction

    __repr__ = record

    def __init__(self, mu: Number | None = None, *, mu_squared: Number | None = None) -> None:
        self._set(mu_squared=_one_of(mu, mu_squared, name="mu", squared_name="mu_squared"))


@final
@dataclass(frozen=True, slots=True)
class Laplace(Event):
    """Continuous Laplace noise of scale `noise_multiplier` times the l1 sensitivity. [DMNS06]

    Args:
        noise_multiplier: The scale of the noise over the l1 sensitivity: 1 / epsilon.

    Examples:
        >>> dp.privacy.epsilon(dp.privacy.Laplace(2), 0)
        0.5
    """

    noise_multiplier: Fraction

    __repr__ = record

    def __init__(self, noise_multiplier: Number) -> None:
        self._set(noise_multiplier=positive(noise_multiplier, name="noise_multiplier"))


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Event):
    """Noise with P[k] ~ exp(-|k| / scale) on integers whose l1 distance is at most `sensitivity`. [GRS12]

    A separate event: at epsilon 0.5 and order 2 its Renyi divergence is 0.2273, the continuous one 0.2003.

    Args:
        scale: The scale of the noise, in grid steps.
        sensitivity: The l1 sensitivity, in grid steps, a whole number.

    Examples:
        >>> dp.privacy.epsilon(dp.privacy.DiscreteLaplace(scale=4, sensitivity=2), 0)
        0.5
    """

    scale: Fraction  # in grid steps
    sensitivity: int  # l1, in grid steps

    __repr__ = record

    def __init__(self, scale: Number, sensitivity: int) -> None:
        self._set(scale=positive(scale, name="scale"), sensitivity=positive_integer(sensitivity, name="sensitivity"))


@final
@dataclass(frozen=True, slots=True)
class Gaussian(Event):
    """Continuous Gaussian noise, or its exact rounding to the grid on which the answer lies. [BW18]

    Only the ratio of variance and squared l2 sensitivity matters; it need not have a rational root.

    Args:
        noise_multiplier: Standard deviation over l2 sensitivity; say this or `variance`.
        variance: The variance of the noise.
        squared_sensitivity: The square of the l2 sensitivity, in the unit of `variance`.

    Examples:
        >>> round(dp.privacy.epsilon(dp.privacy.Gaussian(4), 1e-5), 3)
        0.926
    """

    variance: Fraction
    squared_sensitivity: Fraction  # l2, squared

    __repr__ = record

    def __init__(
        self,
        noise_multiplier: Number | None = None,
        *,
        variance: Number | None = None,
        squared_sensitivity: Number = 1,
    ) -> None:
        self._set(
            variance=_one_of(noise_multiplier, variance, name="noise_multiplier", squared_name="variance"),
            squared_sensitivity=positive(squared_sensitivity, name="squared_sensitivity"),
        )

    @property
    def mu_squared(self) -> Fraction:
        """The square of the equivalent mu of Gaussian privacy."""
        return self.squared_sensitivity / self.variance


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Event):
    """Noise with P[k] ~ exp(-k^2 / (2 variance)) on integer vectors. [CKS20]

    It is *not* the rounded Gaussian and does not have its privacy profile: it is charged as
    rho = squared_sensitivity / (2 variance), or, in one dimension, by its own loss distribution.

    Args:
        sigma: The parameter sigma, in grid steps; say this or `variance`.
        sensitivity: The l2 sensitivity, in grid steps; say this or `squared_sensitivity`.
        variance: The parameter sigma^2.
        squared_sensitivity: The square of the l2 sensitivity.
        dimension: How many numbers get noise.

    Examples:
        >>> dp.privacy.DiscreteGaussian(10, 1).rho
        Fraction(1, 200)
    """

    variance: Fraction  # the parameter sigma^2, in squared grid steps
    squared_sensitivity: Fraction  # l2, squared, in squared grid steps
    dimension: int

    __repr__ = record

    def __init__(
        self,
        sigma: Number | None = None,
        sensitivity: Number | None = None,
        *,
        variance: Number | None = None,
        squared_sensitivity: Number | None = None,
        dimension: int = 1,
    ) -> None:
        self._set(
            variance=_one_of(sigma, variance, name="sigma", squared_name="variance"),
            squared_sensitivity=_one_of(
                sensitivity, squared_sensitivity, name="sensitivity", squared_name="squared_sensitivity"
            ),
            dimension=positive_integer(dimension, name="dimension"),
        )

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter."""
        return self.squared_sensitivity / (2 * self.variance)


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponse(Event):
    """One person's answer among `categories`, kept with odds e^epsilon against each other one. [War65, KBR16]

    It tells that an answer was given, so it holds when an answer is replaced, not when it is added.

    Args:
        epsilon: The logarithm of the odds of the true answer against each other one.
        categories: How many answers are possible, at least 2.

    Examples:
        >>> answer = dp.privacy.RandomizedResponse(1, categories=4)
        >>> dp.privacy.epsilon(answer, 0, relation=dp.Relation.REPLACE_ONE)
        1.0
    """

    epsilon: Fraction
    categories: int

    __repr__ = record

    def __init__(self, epsilon: Number, categories: int = 2) -> None:
        count = positive_integer(categories, name="categories")
        if count < 2:
            raise InvalidParameter("categories must be at least 2")
        self._set(epsilon=nonnegative(epsilon, name="epsilon"), categories=count)


@final
@dataclass(frozen=True, slots=True)
class BoundedRange(Event):
    """The exponential mechanism: losses of one pair of neighbours span at most epsilon. [DR19, DDR20]

    It implies epsilon-differential privacy and epsilon^2 / 8 zCDP. Noisy max with Laplace noise and
    permute-and-flip do *not* have it.

    Args:
        epsilon: The range of the privacy losses, at least 0.

    Examples:
        >>> from fractions import Fraction
        >>> dp.privacy.convert.bounded_range_to_zcdp(1)
        Fraction(1, 8)
        >>> dp.privacy.epsilon(dp.privacy.BoundedRange(1), 0)
        1.0
    """

    epsilon: Fraction

    __repr__ = record

    def __init__(self, epsilon: Number) -> None:
        self._set(epsilon=nonnegative(epsilon, name="epsilon"))


@final
@dataclass(frozen=True, slots=True)
class PoissonSampled(Event):
    """`event` on a secret sample that each unit joins independently; for add-remove. [BBG18]

    Args:
        event: What is spent on the sample.
        probability: The chance of each unit to be in the sample.

    Examples:
        >>> step = dp.privacy.PoissonSampled(dp.privacy.Gaussian(1), 0.01)
        >>> steps = dp.privacy.Repeated(step, 1000)
        >>> round(dp.privacy.epsilon(steps, 1e-5, relation=dp.Relation.ADD_REMOVE), 2)
        1.83
    """

    event: Event
    probability: Fraction

    __repr__ = record

    def __init__(self, event: Event, probability: Number) -> None:
        chance = exact(probability, name="probability")
        if not 0 < chance <= 1:
            raise InvalidParameter("probability must be above 0 and at most 1")
        self._set(event=_event(event, "event"), probability=chance)


@final
@dataclass(frozen=True, slots=True)
class SampledWithoutReplacement(Event):
    """`event` on a secret uniform sample of fixed size out of a public population; for replace-one. [BBG18]

    Args:
        event: What is spent on the sample.
        sample_size: How many units are in the sample.
        population: How many there are to draw from, a public number.

    Examples:
        >>> sampled = dp.privacy.SampledWithoutReplacement(dp.privacy.PureDP(1), 10, 1000)
        >>> sampled.probability
        Fraction(1, 100)
        >>> round(dp.privacy.epsilon(sampled, 0, relation=dp.Relation.REPLACE_ONE), 4)
        0.017
    """

    event: Event
    sample_size: int
    population: int

    __repr__ = record

    def __init__(self, event: Event, sample_size: int, population: int) -> None:
        size = positive_integer(sample_size, name="sample_size")
        total = positive_integer(population, name="population")
        if size > total:
            raise InvalidParameter("sample_size must not exceed population")
        self._set(event=_event(event, "event"), sample_size=size, population=total)

    @property
    def probability(self) -> Fraction:
        """The chance of one unit to be in the sample."""
        return Fraction(self.sample_size, self.population)


@final
@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """`event`, `times` times, each with fresh randomness, adaptively.

    Args:
        event: What is spent each time.
        times: How often.

    Examples:
        >>> dp.privacy.epsilon(dp.privacy.Repeated(dp.privacy.PureDP(0.25), 4), 0)
        1.0
    """

    event: Event
    times: int

    __repr__ = record

    def __init__(self, event: Event, times: int) -> None:
        self._set(event=_event(event, "event"), times=positive_integer(times, name="times"))


@final
@dataclass(frozen=True, slots=True)
class Composed(Event):
    """Composition: all of `events`, fixed in advance, on the same data.

    Args:
        events: The events, in any order. At least one.

    Examples:
        >>> both = dp.privacy.Composed([dp.privacy.PureDP(1), dp.privacy.PureDP(0.5)])
        >>> dp.privacy.epsilon(both, 0)
        1.5
    """

    events: tuple[Event, ...]

    __repr__ = record

    def __init__(self, events: Iterable[Event]) -> None:
        self._set(events=_events(events, "events"))


@final
@dataclass(frozen=True, slots=True)
class Parallel(Event):
    """Parallel composition: each of `events` on its own cell of a partition by each unit's own value.

    Each event must hold in its cell when one unit is added, removed or replaced there. Under add-remove one unit
    touches one cell; under replace-one it may leave one cell and enter another.

    Args:
        events: What was spent on each cell of the partition.

    Examples:
        >>> cells = dp.privacy.Parallel([dp.privacy.PureDP(1), dp.privacy.PureDP(0.5)])
        >>> dp.privacy.epsilon(cells, 0, relation=dp.Relation.ADD_REMOVE)
        1.0
        >>> dp.privacy.epsilon(cells, 0, relation=dp.Relation.REPLACE_ONE)
        1.5
    """

    events: tuple[Event, ...]

    __repr__ = record

    def __init__(self, events: Iterable[Event]) -> None:
        self._set(events=_events(events, "events"))


@final
@dataclass(frozen=True, slots=True)
class RandomlyStopped(Event):
    """The best of a secret number of runs, each of which spends one of `events` on a unit. [PS22]

    Only the best outcome is told, by a public order of outcomes: no other one, and not how many there were. That number
    is k >= 1 with a chance in proportion to (1 - stopping)^k times shape (shape + 1) … (shape + k - 1) / k!.

    Args:
        events: What a run may spend; the worst of them counts.
        shape: Above -1 and at most 1: 1 is a geometric number of runs, 0 a logarithmic one (the limit of the formula).
        stopping: Between 0 and 1; the smaller, the more runs.

    Examples:
        >>> best = dp.privacy.RandomlyStopped([dp.privacy.PureDP(0.25)], shape=1, stopping=0.02)
        >>> dp.privacy.epsilon(best, 0)
        0.75
    """

    events: tuple[Event, ...]
    shape: Fraction
    stopping: Fraction

    __repr__ = record

    def __init__(self, events: Iterable[Event], shape: Number, stopping: Number) -> None:
        given, chance = exact(shape, name="shape"), exact(stopping, name="stopping")
        if not (-1 < given <= 1 and 0 < chance < 1):
            raise InvalidParameter("shape must be above -1 and at most 1, and stopping between 0 and 1")
        self._set(events=_events(events, "events"), shape=given, stopping=chance)


@final
@dataclass(frozen=True, slots=True)
class Grouped(Event):
    """Group privacy: `event` as seen by `size` people who are protected together.

    Args:
        event: What was spent, as seen by one unit.
        size: How many units are protected together (group privacy).

    Examples:
        >>> family = dp.privacy.Grouped(dp.privacy.PureDP(0.5), 4)
        >>> dp.privacy.epsilon(family, 0)
        2.0
    """

    event: Event
    size: int

    __repr__ = record

    def __init__(self, event: Event, size: int) -> None:
        self._set(event=_event(event, "event"), size=positive_integer(size, name="size"))


# Stored in ledgers, bundles, answers and models, and hashed into their chains: these names never change. A new meaning
# is a new class under a new name, or the same name under a higher version.
_NAMES = stored_names(
    {
        PureDP: "PureDP: epsilon",
        ApproxDP: "ApproxDP: epsilon delta",
        ZCDP: "ZCDP: rho",
        GDP: "GDP: mu_squared",
        Laplace: "Laplace: noise_multiplier",
        DiscreteLaplace: "DiscreteLaplace: scale sensitivity",
        Gaussian: "Gaussian: variance squared_sensitivity",
        DiscreteGaussian: "DiscreteGaussian: variance squared_sensitivity dimension",
        RandomizedResponse: "RandomizedResponse: epsilon categories",
        BoundedRange: "BoundedRange: epsilon",
        PoissonSampled: "PoissonSampled: event probability",
        SampledWithoutReplacement: "SampledWithoutReplacement: event sample_size population",
        Repeated: "Repeated: event times",
        Composed: "Composed: events",
        Parallel: "Parallel: events",
        Grouped: "Grouped: event size",
        RandomlyStopped: "RandomlyStopped: events shape stopping",
    }
)
_KINDS: Mapping[tuple[Any, Any], type[Event]] = {(name.tag, kind.version): kind for kind, name in _NAMES.items()}
