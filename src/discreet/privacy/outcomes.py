"""The law of a release: every outcome with an enclosure of its probability, and a bound on all the rest.

These functions work at the precision of the caller (`balls.precision`), so that a verifier can ask again with
more bits. The law of a release is a fact about the data it was made from: it is for small worlds and tests,
and is never released itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, final

from discreet.balls import ball, bounds
from discreet.errors import InvalidParameter
from discreet.exact import Number, probability
from discreet.formatting import record
from discreet.privacy.events import Event
from discreet.privacy.relation import Relation

if TYPE_CHECKING:
    from flint import arb

__all__ = [
    "CUTOFF",
    "IntegerLaw",
    "Outcomes",
    "Verifiable",
    "from_law",
    "map",
    "mixture",
    "negligible",
    "point",
    "product",
    "prune",
]

CUTOFF = Fraction(1, 2**96)  # What a listing may leave out at the usual precision of 128 bits.
_SHORT = 1 << 12  # Outcomes; a shorter listing is left whole.
_LONGEST = 1 << 20  # Outcomes in one listing; more do not fit a verification of small worlds.


@final
@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes with enclosures of their probabilities; all others together have `tail` at most.

    Args:
        masses: A ball that encloses the probability of each outcome, by hashable outcome.
        tail: A bound on the probability of all other outcomes together.

    Examples:
        >>> law = dp.noise.DiscreteLaplaceLaw(1)
        >>> listed = dp.privacy.outcomes.from_law(law, 3)
        >>> isinstance(listed, dp.verify.Outcomes)
        True
        >>> float(listed.tail) < 1e-9
        True
    """

    masses: Mapping[Any, arb] = field(repr=False)  # by hashable outcome
    tail: Fraction = Fraction(0)

    __repr__ = record

    def __post_init__(self) -> None:
        object.__setattr__(self, "tail", probability(self.tail, name="tail"))


class IntegerLaw(Protocol):
    """A law on the integers, as in `discreet.noise.laws`: a frozen value."""

    def __hash__(self) -> int: ...

    def pmf(self, k: int, /) -> arb: ...

    def cdf(self, k: int, /) -> arb: ...

    def survival(self, k: int, /) -> arb: ...

    def half_width(self, confidence: Fraction, /) -> int: ...


class Verifiable(Protocol):
    """A mechanism that can be verified: its law on given data, and what it claims to spend."""

    @property
    def event(self) -> Event: ...

    @property
    def relation(self) -> Relation | None: ...

    def distribution(self, data: Any, /) -> Outcomes:
        """List the outcomes of `release(data)` at the working precision of `balls`."""


def point(value: Hashable) -> Outcomes:
    """Return the law of a constant."""
    return Outcomes({value: ball(1)})


def negligible() -> Fraction:
    """Return what a listing may leave out at the working precision: `CUTOFF` at 128 bits, less with more.

    So a verifier that asks again with more bits also sees further into the tails.
    """
    from flint import ctx

    return Fraction(1, 2 ** (3 * ctx.prec // 4))


def from_law(law: IntegerLaw, centre: int = 0, *, cutoff: Number | None = None) -> Outcomes:
    """List `centre` plus noise, in a window that misses `cutoff`, or what is negligible, of probability."""
    from flint import ctx

    rest = negligible() if cutoff is None else probability(cutoff, name="cutoff")
    if not 0 < rest < 1:
        raise InvalidParameter("cutoff must lie strictly between 0 and 1")
    noise, tail = _window(law, rest, ctx.prec)
    return Outcomes({centre + k: mass for k, mass in noise.items()}, tail)


@lru_cache(maxsize=32)
def _window(law: IntegerLaw, rest: Fraction, bits: int) -> tuple[Mapping[int, arb], Fraction]:
    """List the noise itself once for all centres; `bits` is the working precision, part of the question."""
    reach = law.half_width(1 - rest)
    _check_length(2 * reach + 1)
    listed = ((k, law.pmf(k)) for k in range(-reach, reach + 1))
    tail = _upper(law.cdf(-reach - 1) + law.survival(reach))
    return {k: mass for k, mass in listed if not mass.is_zero()}, tail


def product(*parts: Outcomes) -> Outcomes:
    """List the tuples of independent outcomes; what is missed is missed in some coordinate.

    Rows of a long listing that together weigh next to nothing are left out as well.
    """
    rows: dict[tuple[Any, ...], arb] = {(): ball(1)}
    tail = Fraction(0)
    for part in parts:
        rows, lost = _times(rows, part)
        tail += part.tail + lost
    return Outcomes(rows, _capped(tail))


def _times(rows: Mapping[tuple[Any, ...], arb], part: Outcomes) -> tuple[dict[tuple[Any, ...], arb], Fraction]:
    """Multiply a listing by one more coordinate; also tell how much it lost at most."""
    length = len(rows) * len(part.masses)
    _check_length(length)
    share = negligible() / length if length > _SHORT else Fraction(0)
    least = ball(share)
    longer = (((*row, value), one * other) for row, one in rows.items() for value, other in part.masses.items())
    kept = {row: mass for row, mass in longer if not mass < least}
    return kept, (length - len(kept)) * share


def mixture(parts: Iterable[tuple[arb | Fraction | int, Outcomes]], *, rest: Number = 0) -> Outcomes:
    """List what comes out of one part, taken with its weight; parts not named weigh `rest` at most.

    What one part lists may be in the tail of another, and the rest may be anything: the enclosures allow for it.
    """
    masses: dict[Hashable, arb] = {}
    listed: Counter[Hashable] = Counter()  # By how many of the parts that leave something out.
    least, tail, leaky = probability(rest, name="rest"), probability(rest, name="rest"), 0
    for weight, part in parts:
        factor = ball(weight) if isinstance(weight, (int, Fraction)) else weight
        tail += _upper(factor) * part.tail
        if part.tail:
            leaky += 1
            listed.update(part.masses.keys())
        for value, mass in part.masses.items():
            masses[value] = masses[value] + factor * mass if value in masses else factor * mass
    if tail:
        # What every part lists is missed by the rest alone.
        masses = {value: _raised(mass, least if listed[value] == leaky else tail) for value, mass in masses.items()}
    return Outcomes(masses, _capped(tail))


def _raised(mass: arb, most: Fraction) -> arb:
    """Enclose a mass to which up to `most` may have to be added."""
    return mass.union(mass + ball(most)) if most > 0 else mass


def map(outcomes: Outcomes, function: Callable[[Any], Hashable]) -> Outcomes:
    """List the outcomes of a function of the release; those it does not tell apart are added up.

    Outcomes that are not listed may be mapped to one that is, so every mass may be larger by up to the tail. Nobody
    knows by how much: with enclosures that left it out, equal ratios would differ, and a right claim look violated.
    """
    masses: dict[Hashable, arb] = {}
    for value, mass in outcomes.masses.items():
        image = function(value)
        masses[image] = masses[image] + mass if image in masses else mass
    return Outcomes({image: _raised(mass, outcomes.tail) for image, mass in masses.items()}, outcomes.tail)


def prune(outcomes: Outcomes, *, cutoff: Number) -> Outcomes:
    """Move the least likely outcomes into the tail, `cutoff` of probability at most; keeps products small."""
    left = probability(cutoff, name="cutoff")
    ranked = sorted(((_upper(mass), value) for value, mass in outcomes.masses.items()), key=lambda pair: pair[0])
    dropped: set[Hashable] = set()
    for mass, value in ranked:
        if mass > left:
            break
        left -= mass
        dropped.add(value)
    moved = probability(cutoff, name="cutoff") - left
    kept = {value: mass for value, mass in outcomes.masses.items() if value not in dropped}
    return Outcomes(kept, _capped(outcomes.tail + moved))


def _upper(mass: arb) -> Fraction:
    """Return an upper end of a probability; a ball that says nothing still means at most one."""
    return max(Fraction(0), min(Fraction(1), bounds(mass)[1])) if mass.is_finite() else Fraction(1)


def _capped(tail: Fraction) -> Fraction:
    return min(tail, Fraction(1))


def _check_length(length: int) -> None:
    if length > _LONGEST:
        raise InvalidParameter(
            f"a listing of {length} outcomes is too long: verify with a smaller scale or fewer coordinates"
        )
