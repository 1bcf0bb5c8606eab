"""Choose how the most frequent value is found, from public facts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive, probability
from discreet.mechanisms.fields import read_relation
from discreet.mechanisms.histogram import read_bins
from discreet.privacy.relation import Relation
from discreet.statistics.choosing import AUTO, applicable, named
from discreet.statistics.expected import Expected
from discreet.statistics.mode_methods import ModeFacts, PermuteAndFlipMode, TestedMode, read_shares

__all__ = ["best_mode", "mode_facts", "mode_method", "mode_methods"]

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
