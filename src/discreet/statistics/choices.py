"""The most frequent of public candidates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact
from discreet.mechanisms.fields import small_delta
from discreet.mechanisms.histogram import bin_counts, read_bins
from discreet.mechanisms.permute_and_flip import PermuteAndFlip
from discreet.mechanisms.release import Release
from discreet.mechanisms.scores import Scores
from discreet.mechanisms.top_k import TopK
from discreet.privacy.payer import Payer
from discreet.privacy.relation import Relation
from discreet.statistics.choosing import AUTO
from discreet.statistics.mode_choice import mode_facts, mode_method
from discreet.statistics.mode_methods import TestedMode
from discreet.statistics.paying import answer, pay, public_size

__all__ = ["mode", "select", "top_k"]

C = TypeVar("C")


def mode(
    column: Any,
    *,
    relation: Relation,
    candidates: Iterable[Hashable] | None = None,
    epsilon: Number,
    delta: Number | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    method: str = AUTO,
    expected: Mapping[Any, Number] | Sequence[Number] | None = None,
    expected_size: int | None = None,
    session: Payer | None = None,
) -> Release[Any]:
    """Name the most frequent value of a column, or one that is about as frequent. `method` is one of

    - "permute-and-flip": one of the public candidates;
    - "stable": the most frequent value itself, of the candidates or of all, if it leads clearly; otherwise no answer
      (needs a delta);
    - "auto": the one that is predicted to fail least often if the most frequent values have the `expected` shares;
      without these the first, or the second if there are no candidates.
    """
    size = public_size(column, relation)
    people = size or None if population is None else population
    if delta is not None:
        small_delta(delta, population=people, allow_large_delta=allow_large_delta)
    rows = expected_size if relation is Relation.ADD_REMOVE else size
    facts = mode_facts(candidates, relation, epsilon, delta, rows, expected)
    chosen = mode_method(method, facts)
    if isinstance(chosen, TestedMode):
        found: Release[Any] = answer(chosen.make(facts), column, session=session, purpose="mode")
        return replace(found, method=chosen.name)
    names = facts.candidates or ()
    prepare = partial(bin_counts, bins=names)
    found = answer(chosen.make(facts), column, session=session, purpose="mode", prepare=prepare)
    return replace(_named(found, names[found.value]), method=chosen.name)


def top_k(
    column: Any,
    k: int,
    *,
    relation: Relation,
    candidates: Iterable[Hashable],
    epsilon: Number,
    session: Payer | None = None,
) -> Release[tuple[Any, ...]]:
    """Name k of the public candidates that are about as frequent in the column as any others, best first."""
    names = read_bins(candidates)
    mechanism = TopK(
        epsilon=exact(epsilon, name="epsilon"),
        sensitivity=exact(1),
        candidates=len(names),
        count=k,
        relation=relation,
        monotone=relation is Relation.ADD_REMOVE,
    )
    chosen = answer(mechanism, column, session=session, purpose="top k", prepare=partial(bin_counts, bins=names))
    return _named(chosen, tuple(names[place] for place in chosen.value))


def select(
    candidates: Iterable[C],
    scores: Scores,
    *,
    sensitivity: Number,
    relation: Relation,
    epsilon: Number,
    monotone: bool = False,
    session: Payer | None = None,
) -> Release[C]:
    """Name a public candidate with about the best private score.

    `sensitivity` is how far one unit can move any score. Scores are monotone if one unit moves them all the same way.
    """
    names = tuple(candidates)
    mechanism = PermuteAndFlip(
        epsilon=exact(epsilon, name="epsilon"),
        sensitivity=exact(sensitivity, name="sensitivity"),
        candidates=len(names),
        relation=relation,
        monotone=monotone,
    )
    if len(scores) != len(names):
        raise InvalidParameter("there must be one score for each of the public candidates")
    pay(mechanism.event, relation=relation, session=session, purpose="select")
    chosen = mechanism.release(scores)
    return _named(chosen, names[chosen.value])


def _named(chosen: Release[Any], value: Any) -> Release[Any]:
    return replace(chosen, value=value)
