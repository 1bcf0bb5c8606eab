"""What comes out: an answer with its error, its guarantee and its cost. Everything in it may be published."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast, final, overload

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, estimate_of, exact, number_of
from discreet.formatting import decimal, decimal_up, places_for, plain, significant_up
from discreet.mechanisms.parameters import read_confidence
from discreet.names import escaped
from discreet.noise.laws import Law
from discreet.privacy.event_tree import leaves
from discreet.privacy.events import (
    GDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    PureDP,
    RandomizedResponse,
    event_name,
)
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.relation import Relation

__all__ = [
    "Accuracy",
    "EachCell",
    "FoundInterval",
    "Interval",
    "MappedInterval",
    "NoInterval",
    "NoiseAccuracy",
    "Release",
    "cost_text",
    "pure_epsilon",
    "zcdp_rho",
]

# --- accuracy: How far an answer may be from the exact one, from public facts only. ---
#
# "Exact" means the answer of the bounded data: clamped, on the grid, missing values at their default. What clamping
# changed is a fact about the data and is never told.


Interval: TypeAlias = tuple[Fraction, Fraction]


class Accuracy(Protocol):
    """Something that encloses the exact answer with at least the asked probability."""

    @property
    def noise(self) -> Law | None:
        """The law of the noise in grid steps, where one law says it all."""

    def interval(self, value: Any, confidence: Fraction) -> Any:
        """Return (low, high), or one such pair for each cell."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseAccuracy:
    """The answer is `value` minus `step` times noise, up to `slack` from rounding."""

    noise: Law
    step: Fraction
    slack: Fraction = Fraction(0)

    def interval(self, value: Fraction | int, confidence: Fraction) -> Interval:
        reach = _half_width(self.noise, confidence) * self.step + self.slack
        return value - reach, value + reach


@lru_cache(1024)
def _half_width(law: Law, confidence: Fraction) -> int:
    """Remember what a law says: a table asks the same for each of its cells."""
    return law.half_width(confidence)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EachCell:
    """Every cell by itself: each interval has the asked confidence, all of them together less."""

    cells: tuple[Accuracy, ...]  # one for all, or one for each

    @property
    def noise(self) -> Law | None:
        return self.cells[0].noise if len(self.cells) == 1 else None

    def interval(self, value: Sequence[Fraction | int], confidence: Fraction) -> tuple[Interval, ...]:
        cells = self.cells * len(value) if len(self.cells) == 1 else self.cells
        return tuple(cell.interval(part, confidence) for cell, part in zip(cells, value, strict=True))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoInterval:
    """No interval follows from public facts; the reason says what does."""

    reason: str

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: object, confidence: Fraction) -> Interval:
        raise Refused(self.reason)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundInterval:
    """An interval that was paid for and released beside the value, at one confidence."""

    low: Fraction
    high: Fraction
    confidence: Fraction

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: object, confidence: Fraction) -> Interval:
        if confidence > self.confidence:
            raise Refused(
                f"this interval was released for a confidence of {plain(100 * self.confidence)} %, and says nothing "
                "about a higher one: ask with a higher confidence=…, which is another release"
            )
        return self.low, self.high


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MappedInterval:
    """The interval of a value before a monotone function, with the function at both ends."""

    before: Release[Any]
    function: Callable[[Any], Any]

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: object, confidence: Fraction) -> Interval:
        one, other = (Fraction(_exact_part(self.function(end))) for end in self.before.interval(confidence))
        return min(one, other), max(one, other)


T = TypeVar("T", covariant=True)
U = TypeVar("U")
Limits = tuple[Fraction | None, Fraction | None]
_SHOWN = 8  # Cells in a line of text; the rest is counted.
_CONFIDENCE = Fraction(95, 100)


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Generic[T]):
    """A private answer.

    `interval(confidence)` encloses the exact answer of the bounded data with at least that probability over the
    noise. It comes from public facts only, and so says nothing about sampling error or about clamped values.

    Args:
        value: The answer, exactly: an int, a Fraction, a public label, or a tuple of these.
        event: What was spent.
        relation: The neighbouring relation.
        accuracy: How far the value may be from the exact one, from public facts.
        limits: Where the exact answer surely lies; `tidy` moves the value there.
        labels: The public names of the cells of a tuple.
        delta: The delta at which the cost is quoted.
        method: How the value was found, where there were several ways.
        unit: Whom the price protects, such as "row": all that is known of one person, only if that is one row.
        max_rows: How many rows of each unit are counted at most, where units have several; the value is of these.

    Examples:
        >>> release = dp.count([1] * 1000, relation=dp.Relation.ADD_REMOVE, epsilon=1)
        >>> low, high = release.interval(0.95)
        >>> low <= release.value <= high, release.plus_minus(0.95)
        (True, Fraction(3, 1))
        >>> release.cost
        'ε = 1'
    """

    value: T  # exact: int, Fraction, a public label, or a tuple of these
    event: Event
    relation: Relation
    accuracy: Accuracy
    limits: Limits = (None, None)  # where the exact answer surely lies
    labels: tuple[str, ...] | None = None  # public names of the cells of a tuple
    delta: Fraction | None = None  # at which the cost is quoted; it changes nothing else
    method: str | None = None  # how it was found, where there were several ways
    unit: str | None = None  # whom the price is for, where that is known
    max_rows: int | None = None  # of each unit that count, where units have several

    def __post_init__(self) -> None:
        cells = self.value if isinstance(self.value, tuple) else (self.value,)
        if any(isinstance(cell, NotPrivate) for cell in cells):
            raise Refused("an exact diagnostic of private data cannot be released")

    @property
    def estimate(self) -> Any:
        """The released estimate in plain numbers, one or one for each cell; `value` is the same, exact."""
        return estimate_of(self.value)

    def __float__(self) -> float:
        return float(number_of(self.value))

    def __int__(self) -> int:
        return int(number_of(self.value))

    def __format__(self, spec: str) -> str:
        return format(self.estimate, spec) if spec else repr(self)

    @property
    def cost(self) -> str:
        """What was spent, in a few words."""
        return cost_text(self.event, relation=self.relation, delta=self.delta)

    @property
    def noise(self) -> Law | None:
        """The law of the noise in grid steps, where it is one law with public scale."""
        return self.accuracy.noise

    @property
    def tidy(self) -> T:
        """The value moved to where the exact answer surely lies: no negative counts. Free, but biased."""
        if isinstance(self.value, tuple):
            return cast(T, tuple(self._inside(part) for part in self.value))
        return cast(T, self._inside(self.value))

    @overload
    def interval(
        self: Release[tuple[int, ...]] | Release[tuple[Fraction, ...]], confidence: Number = ...
    ) -> tuple[Interval, ...]: ...

    @overload
    def interval(self: Release[int] | Release[Fraction], confidence: Number = ...) -> Interval: ...

    @overload
    def interval(self, confidence: Number = ...) -> Any: ...

    def interval(self, confidence: Number = _CONFIDENCE) -> Any:
        """Enclose the exact answer, or each cell of it by itself; refuse where nothing honest can be said."""
        found = self.accuracy.interval(self.value, read_confidence(confidence))
        if isinstance(self.value, tuple):
            return tuple(self._within(low, high) for low, high in found)
        return self._within(found[0], found[1])

    def plus_minus(self, confidence: Number = _CONFIDENCE) -> Any:
        """Return the larger distance from the value to the ends of the interval, or one for each cell."""
        found = self.interval(confidence)
        if isinstance(self.value, tuple):
            return tuple(_reach(part, ends) for part, ends in zip(self.value, found, strict=True))
        return _reach(self.value, found)

    def map(self, function: Callable[[T], U], *, monotone: bool = False) -> Release[U]:
        """Return what a function makes of the value, for the same price: post-processing is free.

        Theorem     If a release is private, so is every function of it that does not read the data again. [DR14]

        The function gets the exact `value` and nothing else. Whoever writes one that looks at the rows releases them.

        Args:
            function: Takes the value and returns an int, a float, a Fraction, a text, or a tuple of these.
            monotone: Whether the function of one number never falls, or never rises: then the interval follows from
                its ends, at the same confidence. Otherwise the new release has none.

        Returns:
            A release of what the function returned, with event, relation and unit of this one.

        Raises:
            InvalidParameter: If the function returns something else, or `monotone` is said of several numbers.

        Examples:
            >>> people = dp.count([1] * 1000, relation=dp.Relation.ADD_REMOVE, epsilon=1)
            >>> thousands = people.map(lambda count: Fraction(count, 1000), monotone=True)
            >>> thousands.cost, thousands.plus_minus(0.95)
            ('ε = 1', Fraction(3, 1000))
        """
        found = function(self.value)
        value: Any = tuple(map(_exact_part, found)) if isinstance(found, tuple) else _exact_part(found)
        if monotone and not all(isinstance(each, (int, Fraction)) for each in (self.value, value)):
            raise InvalidParameter("monotone=True is for functions from one number to one number")
        accuracy: Accuracy = _NOT_MONOTONE
        if monotone:
            unknown = isinstance(self.accuracy, NoInterval)
            accuracy = self.accuracy if unknown else MappedInterval(before=self, function=function)
        whole = cast("Release[Any]", self)
        return replace(whole, value=value, accuracy=accuracy, limits=(None, None), labels=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the cells by their public names."""
        if self.labels is None or not isinstance(self.value, tuple):
            raise InvalidParameter("this release has no named cells")
        return dict(zip(self.labels, self.value, strict=True))

    def to_json(self) -> str:
        """Write everything, numbers as exact text."""
        packed = {
            "value": _packed(self.value),
            "interval": self._packed_interval(),
            "labels": self.labels,
            "event": json.loads(self.event.to_json()),
            "relation": self.relation.value,
            "cost": self.cost,
            "method": self.method,
        }
        return json.dumps(packed, ensure_ascii=False)

    def __repr__(self) -> str:
        return f"{self._line()}, {self._price()}"

    def _repr_html_(self) -> str:
        from discreet.pages.kit import grid, words

        footer = f"<small>{words(self._price())}, {words(self.relation.value)}</small>"
        if self.labels is None or not isinstance(self.value, tuple):
            return f"<span>{words(self._line())}</span> {footer}"
        rows = ((label, self._cell(part)) for label, part in zip(self.labels, self._cells(), strict=True))
        return grid(rows, named=True, right=(False, True)) + footer

    def _price(self) -> str:
        if self.unit is None:
            return self.cost
        limit = "" if self.max_rows is None else f", of whom at most {self.max_rows} rows count"
        return f"{self.cost} for one {escaped(self.unit)}{limit.replace('1 rows count', '1 row counts')}"

    def _within(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Move both ends to where the answer surely is; all of that if they miss it: one point would look certain."""
        first, last = self._inside(low), self._inside(high)
        least, most = self.limits
        if first != last or low == high or least is None or most is None:
            return first, last
        return (least, most) if isinstance(first, Fraction) else (int(least), int(most))

    def _inside(self, number: Any) -> Any:
        low, high = self.limits
        if low is not None and number < low:
            return low if isinstance(number, Fraction) else int(low)
        if high is not None and number > high:
            return high if isinstance(number, Fraction) else int(high)
        return number

    def _line(self) -> str:
        if not isinstance(self.value, tuple):
            tail = "" if self._error_of_all() is None else f" ({plain(100 * self._shown_confidence)} %)"
            return self._cell((self.value, self._error_of_all())) + tail
        cells = self._cells()
        names = [f"{escaped(label)}: " for label in self.labels] if self.labels is not None else [""] * len(cells)
        shown = ", ".join(name + self._cell(cell) for name, cell in zip(names, cells[:_SHOWN], strict=False))
        more = f", … {len(cells) - _SHOWN} more" if len(cells) > _SHOWN else ""
        known = cells and cells[0][1] is not None
        return f"({shown}{more})" + (" (95 % each)" if known else "")

    def _cells(self) -> list[tuple[Any, Fraction | None]]:
        assert isinstance(self.value, tuple)
        errors = self._error_of_all()
        return list(zip(self.value, errors or [None] * len(self.value), strict=True))

    @property
    def _shown_confidence(self) -> Fraction:
        if isinstance(self.accuracy, MappedInterval):
            return self.accuracy.before._shown_confidence
        return self.accuracy.confidence if isinstance(self.accuracy, FoundInterval) else _CONFIDENCE

    def _error_of_all(self) -> Any:
        return None if isinstance(self.accuracy, NoInterval) else self.plus_minus(self._shown_confidence)

    @staticmethod
    def _cell(cell: tuple[Any, Fraction | None]) -> str:
        value, error = cell
        if not isinstance(value, (int, Fraction)):
            return escaped(str(value))
        if error is None:
            return plain(value)
        places = places_for(error, Fraction(value))
        return f"{decimal(value, places)} ± {decimal_up(error, places)}"

    def _packed_interval(self) -> Any:
        if isinstance(self.accuracy, NoInterval):
            return {"refused": self.accuracy.reason}
        confidence = self._shown_confidence
        return {"confidence": str(confidence), "ends": _packed(self.interval(confidence))}


_NOT_MONOTONE = NoInterval(
    reason="no interval follows for a function of a release: say map(…, monotone=True) if it never falls or never rises"
)


def _exact_part(part: Any) -> Any:
    """Return what a function returned as releases hold it, or refuse it."""
    if isinstance(part, str) or (isinstance(part, int) and not isinstance(part, bool)):
        return part
    return exact(part, name="what the function of a release returned")


def _reach(value: Any, ends: Interval) -> Fraction:
    return Fraction(max(ends[1] - value, value - ends[0]))


def _packed(value: Any) -> Any:
    return [_packed(part) for part in value] if isinstance(value, tuple) else str(value)


# --- cost: What an event costs, in one short line. ---


def pure_epsilon(event: Event) -> Fraction | None:
    """Return the exact pure epsilon of a basic event, None where it has none."""
    match event:
        case PureDP() | BoundedRange() | RandomizedResponse():
            return event.epsilon
        case DiscreteLaplace():
            return event.sensitivity / event.scale
        case _:
            return None


def zcdp_rho(event: Event) -> Fraction | None:
    """Return the exact rho of a basic event of Gaussian kind, None for the others."""
    match event:
        case ZCDP() | DiscreteGaussian():
            return event.rho
        case Gaussian() | GDP():
            return event.mu_squared / 2
        case _:
            return None


def cost_text(event: Event, *, relation: Relation, delta: Fraction | None) -> str:
    """Write the cost: pure epsilon exactly, otherwise at the given delta, otherwise as rho."""
    counted = leaves(event, relation=relation)
    epsilons = [(pure_epsilon(leaf), times) for leaf, times in counted.items()]
    if all(epsilon is not None for epsilon, _ in epsilons):
        return _pure_cost(event, _total(epsilons), relation, delta)
    if delta is None and isinstance(event, ApproxDP):
        delta = event.delta  # It has no other.
    if isinstance(event, ApproxDP) and delta == event.delta:
        return f"ε = {significant_up(event.epsilon)}, δ = {significant_up(delta)}"  # Not through a float, rounded up.
    if delta is not None:
        from discreet.privacy import epsilon as epsilon_at

        bound = epsilon_at(event, delta, relation=relation)
        written = "∞" if math.isinf(bound) else significant_up(bound)
        return f"ε = {written}, δ = {significant_up(delta)}"
    rhos = [(zcdp_rho(leaf), times) for leaf, times in counted.items() if pure_epsilon(leaf) is None]
    if any(rho is None for rho, _ in rhos):
        return event_name(event)
    parts = [f"ρ = {significant_up(_total(rhos))}"]
    if any(epsilon is not None for epsilon, _ in epsilons):
        parts.append(f"ε = {significant_up(_total(epsilons))}")
    return " and ".join(parts)


def _pure_cost(event: Event, total: Fraction, relation: Relation, delta: Fraction | None) -> str:
    """Write the sum of pure epsilons, or what composition at a delta makes of it where that is less."""
    if delta is not None:
        from discreet.privacy import epsilon as epsilon_at

        bound = epsilon_at(event, delta, relation=relation)
        if bound < total:
            return f"ε = {significant_up(bound)}, δ = {significant_up(delta)}"
    return f"ε = {significant_up(total)}"


def _total(counted: list[tuple[Fraction | None, int]]) -> Fraction:
    return sum((value * times for value, times in counted if value is not None), Fraction(0))
