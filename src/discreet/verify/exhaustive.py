"""Sensitivity by exhaustion: the largest change of a query over all pairs of neighbours in a small world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.privacy.relation import Relation
from discreet.verify.small_worlds import World, Worlds, as_worlds, neighbours

__all__ = ["ExhaustiveSensitivity", "l1", "sensitivity", "squared_l2"]


class ExhaustiveSensitivity(NamedTuple):
    """The largest change, and the neighbours between which it happens."""

    value: Fraction
    worst_pair: tuple[World, World]


def l1(one: Any, other: Any) -> Fraction:
    """Return the l1 distance of two numbers or of two vectors."""
    return sum((abs(a - b) for a, b in _coordinates(one, other)), Fraction(0))


def squared_l2(one: Any, other: Any) -> Fraction:
    """Return the squared l2 distance of two numbers or of two vectors."""
    return sum(((a - b) ** 2 for a, b in _coordinates(one, other)), Fraction(0))


def sensitivity(
    query: Callable[[World], Any],
    worlds: Worlds | Iterable[Sequence[Any]],
    *,
    relation: Relation,
    distance: Callable[[Any, Any], Fraction] = l1,
) -> ExhaustiveSensitivity:
    """Return the largest distance of the query's answers to neighbours, as an exact number.

    A lower bound on the sensitivity; equal to it if the small world holds a worst case.
    """
    if not isinstance(relation, Relation):
        raise InvalidParameter("say relation=Relation.ADD_REMOVE or Relation.REPLACE_ONE")
    found = as_worlds(worlds, symmetric=getattr(query, "symmetric", None))
    answers = [query(world) for world in found]
    changes = [(distance(answers[i], answers[j]), (i, j)) for i, j in neighbours(found, relation) if i < j]
    value, (one, other) = max(changes, key=lambda change: change[0])
    return ExhaustiveSensitivity(value, (found.data_sets[one], found.data_sets[other]))


def _coordinates(one: Any, other: Any) -> list[tuple[Fraction, Fraction]]:
    try:
        pairs = list(zip(one, other, strict=True))
    except TypeError:
        pairs = [(one, other)]
    except ValueError:
        raise InvalidParameter("a query must answer with vectors of one length") from None
    return [(exact(a, name="an answer"), exact(b, name="an answer")) for a, b in pairs]
