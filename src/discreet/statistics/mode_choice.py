"""How the most frequent value is found: the mechanisms, what each is predicted to be worth, and the choice."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

from discreet.adaptive.stability import StableMode, mode_distance
from discreet.balls import precision
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, nonnegative, positive, probability
from discreet.mechanisms.histogram import read_bins
from discreet.mechanisms.noisy_max import PermuteAndFlip
from discreet.privacy.relation import Relation, read_relation
from discreet.statistics.expected import Expected
from discreet.statistics.method_choice import AUTO, applicable, named

__all__ = [
    "ModeFacts",
    "ModeOutlook",
    "PermuteAndFlipMode",
    "TestedMode",
    "best_mode",
    "mode_facts",
    "mode_method",
    "mode_methods",
    "read_shares",
]

# --- mode_methods ---
# The mechanisms for the most frequent value: how each is made, and how often it is predicted to fail.


_MANY = 64  # Candidates; the rest, of which nothing is expected, is counted as if it were with the last of them.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModeFacts:
    """What is publicly known about who might be the most frequent value."""

    candidates: tuple[Hashable, ...] | None
    relation: Relation
    epsilon: Fraction
    delta: Fraction | None = None
    rows: int | None = None
    shares: tuple[Fraction, ...] = ()  # expected, of the most frequent values, largest first

    @property
    def counts(self) -> list[int]:
        """The expected number of rows of each candidate."""
        missing = max(2, len(self.candidates or ())) - len(self.shares)
        return [round(share * (self.rows or 0)) for share in self.shares] + [0] * max(0, missing)

    @property
    def can_predict(self) -> bool:
        return bool(self.shares and self.rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModeOutlook:
    """How often another value is named, and how often none."""

    wrong: float
    declines: float = 0.0

    @property
    def fails(self) -> float:
        return self.wrong + self.declines


@dataclass(frozen=True)
class PermuteAndFlipMode:
    """One of the public candidates that is about as frequent as any other."""

    name: ClassVar[str] = "permute-and-flip"
    declines: ClassVar[bool] = False

    def refusal(self, facts: ModeFacts) -> str | None:
        return "it chooses among public candidates=…" if facts.candidates is None else None

    def make(self, facts: ModeFacts) -> PermuteAndFlip:
        return self._among(facts, len(facts.candidates or ()))

    def predict(self, facts: ModeFacts) -> ModeOutlook:
        counts = facts.counts[:_MANY]
        with precision(64):
            masses = self._among(facts, len(counts)).distribution(counts).masses
            return ModeOutlook(wrong=max(0.0, 1 - float(masses[counts.index(max(counts))])))

    def _among(self, facts: ModeFacts, candidates: int) -> PermuteAndFlip:
        return PermuteAndFlip(
            epsilon=facts.epsilon,
            sensitivity=exact(1),
            candidates=candidates,
            relation=facts.relation,
            monotone=facts.relation is Relation.ADD_REMOVE,
        )


@dataclass(frozen=True)
class TestedMode:
    """The most frequent value itself, if it leads clearly; otherwise no answer. It needs no list of candidates."""

    name: ClassVar[str] = "stable"
    declines: ClassVar[bool] = True

    def refusal(self, facts: ModeFacts) -> str | None:
        return "its test needs a delta" if facts.delta is None else None

    def make(self, facts: ModeFacts) -> StableMode:
        return StableMode(
            domain=facts.candidates,
            epsilon=facts.epsilon,
            delta=facts.delta or Fraction(0),
            relation=facts.relation,
        )

    def predict(self, facts: ModeFacts) -> ModeOutlook:
        with precision(64):
            passed = self.make(facts).test.chance(mode_distance(facts.counts, facts.relation))
            return ModeOutlook(wrong=0.0, declines=max(0.0, 1 - float(passed)))


def read_shares(shares: Mapping[Any, Any] | Sequence[Any] | None) -> tuple[Fraction, ...]:
    """Read the expected shares of the most frequent values, by name or in any order."""
    if shares is None:
        return ()
    listed = shares.values() if isinstance(shares, Mapping) else shares
    read = tuple(sorted((nonnegative(share, name="expected share") for share in listed), reverse=True))
    if not read or sum(read) > 1:
        raise InvalidParameter("expected shares must not be empty and must not add up to more than 1")
    return read


# --- mode_choice: Choose how the most frequent value is found, from public facts. ---


AnyMode = PermuteAndFlipMode | TestedMode


def mode_facts(
    candidates: Iterable[Hashable] | None,
    relation: Relation,
    epsilon: Number,
    delta: Number | None,
    rows: int | None,
    expected: Expected | Mapping[Any, Number] | Sequence[Number] | None,
) -> ModeFacts:
    """Read what is public about a mode."""
    if isinstance(expected, Expected):
        raise InvalidParameter(
            "for a mode, expected must be the shares of the most frequent values, such as [0.3, 0.2]"
        )
    return ModeFacts(
        candidates=None if candidates is None else read_bins(candidates),
        relation=read_relation(relation),
        epsilon=positive(epsilon, name="epsilon"),
        delta=None if delta is None else probability(delta, name="delta"),
        rows=rows,
        shares=read_shares(expected),
    )


def mode_methods() -> tuple[AnyMode, ...]:
    """List the methods for a mode; without any expectation the first that can be used is taken."""
    return PermuteAndFlipMode(), TestedMode()


def mode_method(name: str, facts: ModeFacts) -> AnyMode:
    """Return the method of a name; for "auto" the one that is predicted to fail least often."""
    return best_mode(facts) if name == AUTO else named(name, mode_methods(), facts)


def best_mode(facts: ModeFacts) -> AnyMode:
    usable = applicable(mode_methods(), facts)
    if not usable:
        raise InvalidParameter(
            "say which candidates=… there are, or a delta, with which the most frequent of all is told"
        )
    if not facts.can_predict:
        return usable[0]
    return min(usable, key=lambda method: method.predict(facts).fails)
