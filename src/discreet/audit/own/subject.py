"""What can be audited: a mechanism whose law is listed, or anything that gives an output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from discreet.privacy.events import Event
from discreet.privacy.relation import Relation
from discreet.verify import Worlds, worlds

__all__ = ["BlackBox", "ListedSubject", "Subject", "sizes", "small"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSubject:
    """A mechanism that lists its law, and a small world: its claim is compared with all neighbours exactly."""

    part: str
    name: str
    mechanism: Any
    worlds: Worlds
    query: Callable[[Any], Any] | None = None  # from a data set to what `release` takes
    large: bool = False  # for the full size only

    def given(self, data: Any) -> Any:
        """Return what `release` takes for a data set of the world."""
        return list(data) if self.query is None else self.query(data)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBox:
    """Anything that takes a data set and gives an output: it is run, and its outputs are looked at."""

    part: str
    name: str
    run: Callable[[Any], Any]
    claim: Event
    relation: Relation
    pairs: tuple[tuple[Any, Any], ...]
    runs: int  # at the small size; the full one takes ten times as many
    large: bool = False


Subject: TypeAlias = ListedSubject | BlackBox


def sizes(relation: Relation, most: int) -> tuple[int, ...]:
    """Data sets of all sizes up to `most`, or of that size only where the size is public."""
    return tuple(range(most + 1)) if relation is Relation.ADD_REMOVE else (most,)


def small(values: Any, relation: Relation, most: int) -> Worlds:
    """All small data sets over some values."""
    return worlds(values, sizes(relation, most))
