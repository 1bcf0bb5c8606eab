"""Membership and attribute inference against a synthetic table, and against tables made of halves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.frames.column import Column
from discreet.lab.attacks.membership import lira_scores
from discreet.lab.attacks.success_rates import Attacker, FoundRate, Success, judge
from discreet.lab.audit.training_audit import epsilon_from_guesses, guess
from discreet.lab.evaluation.closest_records import closest, secrets_of_closest
from discreet.lab.evaluation.promised_limits import ceiling
from discreet.lab.evaluation.table_rows import (
    GUESSED,
    PEOPLE,
    ColumnLayout,
    EvaluatedRows,
    chosen_cliques,
    read_rows,
    synthetic_rows,
)
from discreet.privacy import Relation
from discreet.synth.domain.source_tables import table_of
from discreet.synth.promise import Promise
from discreet.synth.tables.table_shape import Clique, cells, marginal

__all__ = [
    "CLOSEST",
    "DENSITY",
    "RATES",
    "Halves",
    "MembershipSearch",
    "Refit",
    "SecretGuesses",
    "check_refits",
    "closer_first",
    "density_scores",
    "guess_halves",
    "guess_secrets",
    "halves",
    "judged",
    "search",
    "search_halves",
]

# --- membership ---
# Membership: who was in the data of a synthetic table? Guessed by attackers who see it, and held against the truth.


Flags: TypeAlias = NDArray[np.bool_]
RATES = (0.01, 0.1, 0.3)  # Of false alarms: sure about few people, or fairly sure about more.
CLOSEST, DENSITY = "closest row", "commoner than elsewhere"
_LEAST = 1e-9  # Less than any two distances differ by.
_ENDS = 1e-3  # At which the drawn limits may be wrong.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSearch:
    """Whom each attacker finds, and what the promise leaves for any attacker."""

    people: int  # in the data, of whom it was asked
    others: int
    tables: int  # synthetic tables that were attacked
    refitted: bool  # made for this purpose from random halves; or the one that is to be published
    attackers: tuple[Attacker, ...]
    promise: Promise | None  # None if none was made, or if it is about others than single rows
    level: float | None = None  # an ε that was shown by one table, but for a chance of `error`; only if refitted

    @property
    def swapped(self) -> bool:
        """Whether those who are not in the data are so because others are in their place."""
        return not self.refitted

    @property
    def best(self) -> tuple[Attacker, FoundRate]:
        """The attacker who finds most people, at few false alarms if that tells more than at many."""
        found = [(one, at) for one in self.attackers for at in one.found]
        return max(found, key=lambda pair: (pair[1].members.share - pair[1].alarms.share, pair[0].auc))

    def ceiling(self, found: FoundRate, error: float = _ENDS) -> float | None:
        """Return the share of people that no attacker exceeds, at the upper limit of the rate of alarms."""
        rate = found.alarms.interval(error)[1]
        return None if self.promise is None else ceiling(self.promise, rate, swapped=self.swapped)

    def refutes(self, error: float) -> bool:
        """Whether more people were found than the promise allows, but for a chance of `error`."""
        if self.promise is None:
            return False
        if self.level is not None and self.level > self.promise.epsilon:
            return True
        tried = [found for one in self.attackers for found in one.found]
        each = error / len(tried)
        return any(found.members.interval(each)[0] > (self.ceiling(found, each) or 0.0) for found in tried)

    def finds(self, error: float) -> bool:
        """Whether an attacker does better than guessing, but for a chance of `error`."""
        return any(_above_guessing(one, error / len(self.attackers)) for one in self.attackers)


def search(
    layout: ColumnLayout, synthetic: EvaluatedRows, real: EvaluatedRows, holdout: EvaluatedRows, promise: Promise | None
) -> MembershipSearch:
    """Look for people of the real table in one synthetic table, beside people who were held out."""
    outside, reference = holdout.split(min(PEOPLE, (len(holdout) + 1) // 2))
    inside = real.some(PEOPLE)
    asked = _joined(inside, outside)
    truth = np.arange(len(asked)) < len(inside)
    cliques = chosen_cliques(layout.sizes, min(2, len(layout.sizes)))
    common = density_scores(asked.codes, synthetic.codes, reference.codes, layout.sizes, cliques)
    scores = {CLOSEST: closer_first(-closest(layout, asked, synthetic), common), DENSITY: common}
    return MembershipSearch(
        people=len(inside),
        others=len(outside),
        tables=1,
        refitted=False,
        attackers=judged(scores, truth),
        promise=promise,
    )


def judged(scores: Mapping[str, NDArray[Any]], truth: Flags | Sequence[bool]) -> tuple[Attacker, ...]:
    """Hold the scores of all attackers against the truth."""
    return tuple(judge(np.asarray(each, np.float64), truth, name=name, rates=RATES) for name, each in scores.items())


def closer_first(near: NDArray[Any], common: NDArray[np.float64]) -> NDArray[np.float64]:
    """Order people by the closest row, and those who are equally close by how common they are in the table."""
    return near.astype(np.float64) + _LEAST * np.tanh(common)


def _joined(one: EvaluatedRows, other: EvaluatedRows) -> EvaluatedRows:
    return EvaluatedRows(
        np.concatenate([one.codes, other.codes]),
        np.concatenate([one.places, other.places]),
        np.concatenate([one.undeclared, other.undeclared]),
    )


def _above_guessing(attacker: Attacker, error: float) -> bool:
    """Compare the AUC with one half, by Hoeffding's bound for means over all pairs, and the people found. [Hoe63]"""
    pairs = min(attacker.found[0].members.of, attacker.found[0].alarms.of)
    shares = error / (1 + len(attacker.found))
    if attacker.auc - math.sqrt(math.log(1 / shares) / (2 * pairs)) > 0.5:
        return True
    return any(one.members.interval(shares)[0] > one.alarms.interval(shares)[1] for one in attacker.found)


# --- densities ---
# How much more common a row is in a synthetic table than elsewhere, by the counts of its pairs of values.
#
# The synthesisers of tables learn such counts, so whoever was counted stands out a little. [BSQ23]


Floats: TypeAlias = NDArray[np.float64]
_PRIOR = 0.5  # A row in each cell before anything is counted, so that no cell has none.


def density_scores(
    asked: Codes, synthetic: Codes, reference: Codes, sizes: Sequence[int], cliques: Sequence[Clique]
) -> Floats:
    """Return the mean logarithm of how much likelier each row's values are in one table than in the other."""
    total = np.zeros(len(asked))
    for clique in cliques:
        here = _logarithms(synthetic, sizes, clique) - _logarithms(reference, sizes, clique)
        total += here[_cell(asked, sizes, clique)]
    return total / max(1, len(cliques))


def _logarithms(codes: Codes, sizes: Sequence[int], clique: Clique) -> Floats:
    count = marginal(codes, sizes, clique) + _PRIOR
    found: Floats = np.log(count / (len(codes) + _PRIOR * cells(sizes, clique)))
    return found


def _cell(codes: Codes, sizes: Sequence[int], clique: Clique) -> NDArray[np.int64]:
    where = np.zeros(len(codes), np.int64)
    for column in clique:
        where = where * sizes[column] + codes[:, column]
    return where


# --- refitting ---
# The same attackers on tables that are made anew from random halves of the rows, so that the truth is a coin's.


Refit: TypeAlias = Callable[[Any], Any]  # from a table to a synthetic table
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


# --- guessing ---
# Attributes: what a synthetic table tells about somebody's secret, with and without their row in the data.


Codes: TypeAlias = NDArray[np.int32]
_GUESSING_ENDS = 1e-3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SecretGuesses:
    """How often a secret is guessed right of people in the data, and of people who are not."""

    secret: str
    inside: Success
    outside: Success
    commonest: Success  # of those outside, whoever names what is most common in the synthetic table
    promise: Promise | None
    refitted: bool

    def ceiling(self, error: float = _GUESSING_ENDS) -> float | None:
        """Return the share of right guesses about people in the data that no attacker exceeds.

        To guess right is a test of "in the data"; its rate of false alarms is that of right guesses about others.
        """
        rate = self.outside.interval(error)[1]
        return None if self.promise is None else ceiling(self.promise, rate, swapped=not self.refitted)

    def refutes(self, error: float) -> bool:
        """Whether more was guessed right than the promise allows, but for a chance of `error`."""
        ceiling = self.ceiling(error / 2)
        return ceiling is not None and self.inside.interval(error / 2)[0] > ceiling

    def gains(self, error: float) -> bool:
        """Whether to be in the data makes a secret easier to guess, but for a chance of `error`."""
        return self.inside.interval(error / 2)[0] > self.outside.interval(error / 2)[1]


def guess_secrets(
    layout: ColumnLayout,
    synthetic: EvaluatedRows,
    real: EvaluatedRows,
    holdout: EvaluatedRows,
    *,
    secret: str,
    promise: Promise | None,
) -> SecretGuesses:
    """Guess the secret of people of the real table and of people who were held out, from all their other columns."""
    place = layout.place(secret, what="secret")
    inside, outside = (_right(layout, rows.some(GUESSED), synthetic, place) for rows in (real, holdout))
    named = holdout.codes[:, place] == np.bincount(synthetic.codes[:, place]).argmax()
    return SecretGuesses(
        secret=secret,
        inside=_success(inside),
        outside=_success(outside),
        commonest=_success(named),
        promise=promise,
        refitted=False,
    )


def guess_halves(layout: ColumnLayout, made: Halves, *, secret: str, promise: Promise | None) -> SecretGuesses:
    """Guess the secret of the same people from tables of random halves, some with them and some without."""
    place = layout.place(secret, what="secret")
    people = made.people.take(slice(GUESSED))
    right = np.stack([_right(layout, people, table, place) for table in made.tables])
    inside = made.inside[:, : len(people)]
    common = np.stack([people.codes[:, place] == np.bincount(t.codes[:, place]).argmax() for t in made.tables])
    return SecretGuesses(
        secret=secret,
        inside=_success(right[inside]),
        outside=_success(right[~inside]),
        commonest=_success(common[~inside]),
        promise=promise,
        refitted=True,
    )


def _right(layout: ColumnLayout, people: EvaluatedRows, synthetic: EvaluatedRows, secret: int) -> NDArray[np.bool_]:
    right: NDArray[np.bool_] = secrets_of_closest(layout, people, synthetic, secret) == people.codes[:, secret]
    return right


def _success(right: NDArray[np.bool_]) -> Success:
    return Success(int(right.sum()), right.size)
