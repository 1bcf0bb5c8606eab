"""The same attackers on tables that are made anew from random halves of the rows, so that the truth is a coin's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.attacks import lira_scores
from discreet.audit.one_run import epsilon_from_guesses, guess
from discreet.errors import InvalidParameter
from discreet.evaluation.caps import PEOPLE
from discreet.evaluation.cliques import chosen_cliques
from discreet.evaluation.densities import density_scores
from discreet.evaluation.membership import CLOSEST, DENSITY, MembershipSearch, closer_first, judged
from discreet.evaluation.nearest import closest
from discreet.evaluation.reading import synthetic_rows
from discreet.evaluation.rows import ColumnLayout, EvaluatedRows, read_rows
from discreet.mechanisms.column import Column
from discreet.privacy import Relation
from discreet.synth.domain.tables import table_of
from discreet.synth.promise import Promise

__all__ = ["Halves", "Refit", "check_refits", "halves", "search_halves"]

Refit: TypeAlias = Callable[[Any], Any]  # from a table to a synthetic table
Flags: TypeAlias = NDArray[np.bool_]
_COMPARED = "closest row, compared"
_GUESSED = 10  # One in so many people is guessed to be in, and as many to be out.


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Halves:
    """Synthetic tables of random halves, in pairs: whoever is in one of a pair is not in the other."""

    people: EvaluatedRows  # of whom it is asked
    inside: Flags  # tables by people
    tables: tuple[EvaluatedRows, ...]

    def others(self, table: int) -> list[int]:
        """Return the tables of other pairs: they tell nothing about who is in this one."""
        return [other for other in range(len(self.tables)) if other // 2 != table // 2]


def check_refits(refits: int) -> None:
    """Refuse a number of tables that cannot be compared."""
    if refits < 4 or refits % 2:
        raise InvalidParameter("refits must be 4, 6, 8, …: tables come in pairs, and one pair is compared with another")


def halves(
    layout: ColumnLayout, table: Any, refit: Refit, *, refits: int, coins: bool, say: Callable[[str], None]
) -> Halves:
    """Make synthetic tables of random halves: of independent coins, or of a fixed number of rows."""
    check_refits(refits)
    read = table_of(table).columns(layout.names, numbers=layout.domain.numbers)
    everybody = read_rows(layout, read)
    chosen = noise.permutation(len(everybody))[: 2 * PEOPLE]
    inside, tables = [], []
    for pair in range(refits // 2):
        half = _half(len(everybody), coins)
        for side, flags in enumerate((half, ~half)):
            say(f"making table {2 * pair + side + 1} of {refits} from a random half of the rows")
            tables.append(synthetic_rows(layout, refit(_part(read, flags))))
            inside.append(flags[chosen])
    return Halves(people=everybody.take(chosen), inside=np.array(inside), tables=tuple(tables))


def search_halves(layout: ColumnLayout, made: Halves, promise: Promise | None, *, error: float) -> MembershipSearch:
    """Look for people in all these tables, each compared with tables of other pairs."""
    scores = _scores(layout, made)
    truth = made.inside.ravel()
    each = {name: np.concatenate(list(parts)) for name, parts in scores.items()}
    return MembershipSearch(
        people=int(truth.sum()),
        others=int((~truth).sum()),
        tables=len(made.tables),
        refitted=True,
        attackers=judged(each, truth),
        promise=promise,
        level=_level(scores, made, promise, error),
    )


def _scores(layout: ColumnLayout, made: Halves) -> dict[str, list[NDArray[np.float64]]]:
    near = np.stack([-closest(layout, made.people, table) for table in made.tables]).astype(np.float64)
    cliques = chosen_cliques(layout.sizes, min(2, len(layout.sizes)))
    found: dict[str, list[NDArray[np.float64]]] = {CLOSEST: [], _COMPARED: [], DENSITY: []}
    for number, table in enumerate(made.tables):
        others = made.others(number)
        found[_COMPARED].append(lira_scores(near[number], near[others], made.inside[others]))
        elsewhere = np.concatenate([made.tables[other].codes for other in others])
        common = density_scores(made.people.codes, table.codes, elsewhere, layout.sizes, cliques)
        found[DENSITY].append(common)
        found[CLOSEST].append(closer_first(near[number], common))
    return found


def _level(
    scores: dict[str, list[NDArray[np.float64]]], made: Halves, promise: Promise | None, error: float
) -> float | None:
    """Return an ε that some table shows by itself: everybody was in it by a coin of their own. [SNJ23]"""
    if promise is None or promise.relation is not Relation.ADD_REMOVE:
        return None
    count = made.inside.shape[1] // _GUESSED
    each = error / (len(scores) * len(made.tables))
    levels = [
        epsilon_from_guesses(
            guess(one.tolist(), flags.tolist(), high=count, low=count), delta=float(promise.delta), error=each
        )
        for parts in scores.values()
        for one, flags in zip(parts, made.inside, strict=True)
    ]
    return max(levels)


def _half(rows: int, coins: bool) -> Flags:
    if coins:
        return np.asarray(noise.uniform(2, rows) == 1)
    flags = np.zeros(rows, bool)
    flags[noise.permutation(rows)[: rows // 2]] = True
    return flags


def _part(columns: Mapping[str, Column], flags: Flags) -> dict[str, Column]:
    """Take some rows, as a table that every synthesiser reads."""
    return {name: Column(_taken(column.values, flags), _mask(column, flags)) for name, column in columns.items()}


def _taken(values: Any, flags: Flags) -> Any:
    return values[flags] if isinstance(values, np.ndarray) else [values[at] for at in np.flatnonzero(flags)]


def _mask(column: Column, flags: Flags) -> Flags | None:
    return None if column.missing is None else column.missing[flags]
