"""Output laws as arrays: float enclosures to sort out what is clear, balls for what is not."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.balls import ball, bounds, precision
from discreet.errors import InvalidParameter
from discreet.exact import up
from discreet.privacy.outcomes import Outcomes

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "Aligned",
    "Enclosure",
    "Lawful",
    "OutputLaw",
    "Real",
    "above",
    "align",
    "below",
    "compiled",
    "laws",
    "log_above",
    "log_below",
    "total",
    "worst",
]

_RELATIVE = 2.0**-50  # A float made from a ball is off by half an ulp; this covers it and the next few steps.
_LEAST = 2.0**-1060  # Covers what a float cannot hold near zero.


class Lawful(Protocol):
    """Whatever can list the outcomes of its release."""

    def distribution(self, data: Any, /) -> Outcomes: ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class OutputLaw:
    """One output law: outcome numbers, their probabilities as balls and as enclosing floats, the rest."""

    numbers: NDArray[np.int64]  # ascending
    masses: tuple[arb, ...]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    outcomes: Outcomes

    @property
    def tail(self) -> float:
        """A float not below the probability of all that is not listed."""
        return up(self.outcomes.tail)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Two laws side by side: for each outcome of the first, where the second lists it and as how likely."""

    first: OutputLaw
    second: OutputLaw
    shared: NDArray[np.bool_]
    place: NDArray[np.int64]  # in the second law, where shared
    lower: NDArray[np.float64]  # of the second law; 0 where not shared
    upper: NDArray[np.float64]  # of the second law; 0 where not shared

    def of_first(self, chosen: NDArray[np.bool_]) -> Iterable[arb]:
        """The chosen probabilities in the first law."""
        return compress(self.first.masses, chosen.tolist())

    def of_second(self, chosen: NDArray[np.bool_]) -> Iterable[arb]:
        """The chosen probabilities, all shared, in the second law."""
        masses = self.second.masses
        return (masses[place] for place in self.place[chosen].tolist())


def laws(mechanism: Lawful, inputs: Sequence[Any], *, bits: int) -> list[OutputLaw]:
    """Return the law of the release on each input; equal laws are one object."""
    numbers: dict[Hashable, int] = {}
    by_input: dict[Hashable, OutputLaw] = {}
    distinct: dict[bytes, list[OutputLaw]] = {}
    found = []
    with precision(bits):
        for index, value in enumerate(inputs):
            key = _key(value, index)
            if key not in by_input:
                law = compiled(mechanism.distribution(value), numbers)
                by_input[key] = _representative(law, distinct)
            found.append(by_input[key])
    return found


def _key(value: Any, index: int) -> Hashable:
    """Return what tells this input from others; one that cannot be hashed is its own kind."""
    try:
        hash(value)
    except TypeError:
        return ("input", index)
    return (type(value), value)


def compiled(outcomes: Outcomes, numbers: dict[Hashable, int]) -> OutputLaw:
    """Turn a listing into arrays; `numbers` numbers the outcomes and is shared by all laws to be compared."""
    _check(outcomes)
    listed = sorted(
        (numbers.setdefault(value, len(numbers)), position)
        for position, (value, mass) in enumerate(outcomes.masses.items())
        if not mass.is_zero()
    )
    given = list(outcomes.masses.values())
    masses = tuple(given[position] for _, position in listed)
    lower, upper = _floats(masses)
    return OutputLaw(np.array([number for number, _ in listed], dtype=np.int64), masses, lower, upper, outcomes)


def _check(outcomes: Outcomes) -> None:
    """Refuse masses that cannot be probabilities: a verification of them would mean nothing."""
    if not isinstance(outcomes, Outcomes):
        raise InvalidParameter(f"distribution must return Outcomes, not {type(outcomes).__name__}")
    total = ball(0)
    for mass in outcomes.masses.values():
        if not mass.is_finite() or mass < 0:
            raise InvalidParameter("the masses of a distribution must be finite and not negative")
        total += mass
    if total > 1 or total + ball(outcomes.tail) < 1:
        raise InvalidParameter("the masses of a distribution and its tail cannot sum to 1")


def _floats(masses: Iterable[arb]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = [(float(mass), float(mass.rad())) for mass in masses]
    centre, radius = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    away = np.abs(centre) * _RELATIVE + radius * (1 + _RELATIVE) + _LEAST
    return np.maximum(centre - away, 0.0), centre + away


def _representative(law: OutputLaw, distinct: dict[bytes, list[OutputLaw]]) -> OutputLaw:
    """Return an equal law that is already known, so that equal pairs are examined once."""
    known = distinct.setdefault(law.numbers.tobytes() + law.lower.tobytes(), [])
    for other in known:
        if other.outcomes.tail == law.outcomes.tail and all(map(_same, law.masses, other.masses)):
            return other
    known.append(law)
    return law


def _same(one: arb, other: arb) -> bool:
    return bool(one.mid() == other.mid() and one.rad() == other.rad())


def align(first: OutputLaw, second: OutputLaw) -> Aligned:
    """Find the outcomes of the first law in the second."""
    place = np.searchsorted(second.numbers, first.numbers)
    shared = place < len(second.numbers)
    shared[shared] = second.numbers[place[shared]] == first.numbers[shared]
    lower, upper = np.zeros(len(place)), np.zeros(len(place))
    lower[shared] = second.lower[place[shared]]
    upper[shared] = second.upper[place[shared]]
    return Aligned(first, second, shared, place, lower, upper)


# --- enclosure: What an examination of all pairs returns: two ends of the worst divergence, and its pair. ---


Real: TypeAlias = Fraction | float  # A float only if infinite, or if rounded outwards already.


class Enclosure(NamedTuple):
    """A divergence lies between `lower` and `upper`; `pair` is the position of the pair meant."""

    lower: Real
    upper: Real
    pair: int = 0


def worst(found: Iterable[Enclosure]) -> Enclosure:
    """Enclose the largest of many; the pair is the one that reaches furthest for sure."""
    known = list(found)
    top = max(known, key=lambda one: (one.lower, one.upper))
    return Enclosure(top.lower, max(one.upper for one in known), top.pair)


def below(value: arb) -> Real:
    """Return the lower end of a ball; minus infinity if it has none."""
    return bounds(value)[0] if value.is_finite() else -math.inf


def above(value: arb) -> Real:
    """Return the upper end of a ball; infinity if it has none."""
    return bounds(value)[1] if value.is_finite() else math.inf


def log_below(ratio: Real) -> Real:
    """Return a lower bound on the logarithm of a ratio, not below 0."""
    if ratio <= 1:
        return Fraction(0)
    return math.inf if math.isinf(ratio) else max(Fraction(0), below(ball(Fraction(ratio)).log()))


def log_above(ratio: Real) -> Real:
    """Return an upper bound on the logarithm of a ratio, not below 0."""
    if ratio <= 1:
        return Fraction(0)
    return math.inf if math.isinf(ratio) else above(ball(Fraction(ratio)).log())


def total(masses: Iterable[arb]) -> arb:
    """Add up balls."""
    return sum(masses, ball(0))
