"""What attacks find out of one question, tried on made-up people: for whoever has to say yes to a release.

Rows are made up from the declared columns; nothing of the data is read. A few made-up people are attacked by somebody
who knows every other row, in two ways that are as old as tables are:

- *Membership*: is this person in the data? A coin is right half of the time.
- *Differencing*: the answer without a person is known (it was last month's), and is subtracted from the answer with
  them. Which of a few people is it, that is: whose row is it?

Both are tried on exact answers, as they would be without noise, and on private ones, drawn anew each time at the price
that is asked for. Beside them stands what no attacker exceeds, by the proof behind the price. What an attack finds on
made-up rows is an example and not a bound; the ceiling is the bound, and holds for the real rows as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import DiscreetError, UnsupportedEvent
from discreet.formatting import chance_up, percent
from discreet.lab.attacks.success_rates import Success
from discreet.privacy.events import Event
from discreet.privacy.meaning import best_guess
from discreet.privacy.relation import Relation
from discreet.privacy.tradeoffs import best_tpr
from discreet.query.catalogue import Catalogue, CatalogueTable
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.engines.made_up_rows import made_up_tables
from discreet.query.plan.draft import MOST_EPSILON, Spend
from discreet.query.plan.planner import PricedQuery
from discreet.query.plan.planner import plan as plan_question
from discreet.query.policy import PublicTable
from discreet.query.release_table import ReleaseTable
from discreet.query.session.plans import Plan

__all__ = ["AttackTried", "QuestionAttacks", "made_up_attacks"]

_MADE_UP, _PEOPLE = 8, 4  # people who are made up, and those of them who are attacked, one after the other
_ROWS = 400  # of each made-up table; of them, one of each unit is kept
_MOST_CELLS = 400  # of an answer: with more, noise alone takes longer than anybody waits
_LEAST_ROUNDS, _ROUNDS = 4, 40  # each draws an answer with every person who is attacked, and one without them
_COUNTING, _SECONDS = 0.7, 1.5  # seconds until no more people are counted, and until no more answers are drawn
_READING = 10.0  # seconds for made-up rows to be counted, which takes milliseconds
_MOST_DELTA = Fraction(1, 10**6)
_WIDER = 1.4826  # the deviation of a normal law over the median of its absolute values

Floats: TypeAlias = NDArray[np.float64]
_Place: TypeAlias = tuple[tuple[str, ...], str]  # a group and a column


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackTried:
    """One attack: how often it was right on exact answers and on private ones, and what no attacker exceeds.

    Args:
        name: What it is called, such as "membership".
        goal: What the attacker wants to know, as a sentence.
        exact: Right guesses from exact answers.
        private: Right guesses from private answers.
        by_guessing: The share of right guesses of whoever sees no answer.
        ceiling: The share of right guesses that no attacker exceeds, rounded up; None where no bound is proven.
    """

    name: str
    goal: str
    exact: Success
    private: Success
    by_guessing: float
    ceiling: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAttacks:
    """What attacks find out of one question on made-up rows.

    Args:
        whom: What one protected unit is called, such as "patient".
        made_up: How many units were made up.
        counted: How many of them change the exact answer at all; the others are left out by the question.
        attacks: What was tried.
        sentences: The same in plain words.
    """

    whom: str
    made_up: int
    counted: int
    attacks: tuple[AttackTried, ...]
    sentences: tuple[str, ...]


def made_up_attacks(plan: Plan) -> QuestionAttacks | None:
    """Attack a question on made-up rows of its tables; None if it is too large to be tried, or cannot be.

    Args:
        plan: The question with its price, as `Session.sql` returns it. Nothing is charged, and no row is read.

    Returns:
        How often attackers are right, with and without noise, and what no attacker exceeds.
    """
    if plan.cells is not None and plan.cells > _MOST_CELLS:
        return None
    begun = time.monotonic()
    try:
        trial = _trial(plan.priced, begun + _COUNTING)
    except DiscreetError:  # Made-up rows do not fit every question: a key that refers to another table, say.
        return None
    return None if trial is None else _attacked(plan, trial, begun + _SECONDS)


# --- worlds: the same made-up rows without the people who are attacked, and with each of them ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class _QuestionTrial:
    """The worlds of an attack, counted: the first is without the person, each of the others has one person more."""

    private: PricedQuery
    counts: tuple[ExactCounts, ...]
    places: tuple[_Place, ...]  # of the numbers of an answer
    exact: Floats  # one row for each world, one column for each place
    made_up: int  # people in all
    counted: int  # those of them who change the exact answer


def _trial(priced: PricedQuery, until: float) -> _QuestionTrial | None:
    noiseless, exact = _noiseless(priced), []
    counts: list[ExactCounts] = []
    for tables in _worlds(priced.draft.catalogue, priced.relation):
        if len(counts) > _PEOPLE and time.monotonic() > until:
            break
        engine = DuckDBEngine(tables)
        try:
            counts.append(engine.run(priced.stage, deadline=Deadline.after(_READING)))
            answer = noiseless.draw(engine.run(noiseless.stage, deadline=Deadline.after(_READING)))
        finally:
            engine.close()
        if len(answer) * len(answer.columns) > _MOST_CELLS:
            return None
        exact.append(_cells(answer))
    places = tuple(sorted({place for cells in exact for place in cells}))
    return _chosen(priced, counts, places, np.nan_to_num([_vector(cells, places) for cells in exact]))


def _noiseless(priced: PricedQuery) -> PricedQuery:
    """Return the same question at a price so high that its noise rounds to nothing: as it would be answered exactly."""
    draft = priced.draft
    delta = None if draft.spend.delta is None else _MOST_DELTA
    spend = Spend(epsilon=MOST_EPSILON, delta=delta)
    return plan_question(draft.question, draft.catalogue, spend, limits=draft.tighter, pure=False)


def _worlds(catalogue: Catalogue, relation: Relation) -> Iterator[dict[str, Any]]:
    """Yield made-up tables without those who are attacked, then with each of them alone.

    Where neighbours exchange one unit for another, somebody else stands in for the person in the first world.
    """
    made = made_up_tables(catalogue, rows=_ROWS)
    made = {name: _once_each(catalogue.tables[name], table) for name, table in made.items()}
    apart = {name: _whose(catalogue.tables[name], made[name]) for name in made}
    stand_in = [0] if relation is Relation.REPLACE_ONE else []
    for present in (stand_in, *([number] for number in range(1, _MADE_UP + 1))):
        yield {name: _with(made[name], apart[name], present) for name in made}


def _once_each(table: CatalogueTable, made: Any) -> Any:
    """Keep one row of every unit: of several, some are taken at random to be counted, which would look like noise."""
    if isinstance(made, PublicTable) or table.unit is None or table.unit not in made.column_names:
        return made
    seen = {unit: row for row, unit in reversed(list(enumerate(made.column(table.unit).to_pylist())))}
    return made.take(sorted(seen.values()))


def _whose(table: CatalogueTable, made: Any) -> NDArray[np.int64] | None:
    """Say which rows are those of the people who are made up: their number, or one more for everybody else's.

    A unit that is made of several columns, or found through other tables, is attacked by one row of it: it is no more
    than the unit, so that the ceiling holds.
    """
    if isinstance(made, PublicTable):
        return None
    if table.unit is None or table.unit not in made.column_names:
        return np.minimum(np.arange(made.num_rows), _MADE_UP + 1)
    units = made.column(table.unit).to_pylist()
    numbers = {unit: number for number, unit in enumerate(sorted(set(units), key=str)[: _MADE_UP + 1])}
    return np.array([numbers.get(unit, _MADE_UP + 1) for unit in units], dtype=np.int64)


def _with(made: Any, whose: NDArray[np.int64] | None, present: Sequence[int]) -> Any:
    return made if whose is None else made.filter((whose > _MADE_UP) | np.isin(whose, present))


def _chosen(
    priced: PricedQuery, counts: Sequence[ExactCounts], places: tuple[_Place, ...], exact: Floats
) -> _QuestionTrial:
    """Attack those whom exact answers give away, first of all those who differ from each other."""
    differ = (exact[1:] != exact[:1]).any(axis=1)
    first = {exact[number].tobytes(): number for number in range(len(exact) - 1, 0, -1)}
    order = sorted(range(1, len(exact)), key=lambda one: (not differ[one - 1], one not in first.values(), one))
    kept = [0, *order[:_PEOPLE]]
    return _QuestionTrial(
        priced, tuple(counts[one] for one in kept), places, exact[kept], len(differ), int(differ.sum())
    )


# --- guesses ---


@final
@dataclass(frozen=True, slots=True, eq=False)
class _SeenAnswer:
    """One answer that an attacker of one person sees."""

    person: int  # from 1
    inside: bool
    numbers: Floats


def _cells(table: ReleaseTable) -> dict[_Place, float]:
    """Return the numbers of an answer by their group and column."""
    keys = [column for column in table.columns if not column.measured]
    found: dict[_Place, float] = {}
    for row in range(len(table)):
        group = tuple(str(key[row].value) for key in keys)
        found |= {(group, one.name): _number(one[row].value) for one in table.columns if one.measured}
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _vector(cells: Mapping[_Place, float], places: Sequence[_Place]) -> Floats:
    return np.array([cells.get(place, float("nan")) for place in places])


def _exactly(trial: _QuestionTrial) -> list[_SeenAnswer]:
    """Return what is seen where answers are exact."""
    people = range(1, len(trial.exact))
    return [_SeenAnswer(one, inside, trial.exact[one if inside else 0]) for one in people for inside in (True, False)]


def _privately(trial: _QuestionTrial, until: float) -> list[_SeenAnswer]:
    """Draw private answers anew: for each person, as many with them as without, for as long as there is time."""
    seen: list[_SeenAnswer] = []
    for done in range(_ROUNDS):
        if done >= _LEAST_ROUNDS and time.monotonic() > until:
            break
        for one in _exactly(trial):
            answer = trial.private.draw(trial.counts[one.person if one.inside else 0])
            seen.append(_SeenAnswer(one.person, one.inside, _vector(_cells(answer), trial.places)))
    return seen


def _spread(seen: Sequence[_SeenAnswer]) -> Floats:
    """Return how far each number usually is from its middle: what an attacker learns from trials of their own."""
    known = np.nan_to_num([one.numbers for one in seen])
    spread: Floats = np.maximum(_WIDER * np.median(np.abs(known - np.median(known, axis=0)), axis=0), 1e-9)
    return spread


def _nearest(numbers: Floats, exact: Floats, spread: Floats) -> int:
    """Return which exact answer is nearest, by the likelihood of normal noise; what is hidden says nothing."""
    away = np.clip(np.nan_to_num((numbers - exact) / spread), -1e6, 1e6)
    return int(np.argmin(np.square(away).sum(axis=1)))


def _members(trial: _QuestionTrial, seen: Sequence[_SeenAnswer], spread: Floats) -> Success:
    """Ask of every answer whether it is nearer to the one with the person or to the one without."""
    guesses = [_nearest(one.numbers, trial.exact[[0, one.person]], spread) == one.inside for one in seen]
    return Success(sum(guesses), len(guesses))


def _differences(trial: _QuestionTrial, seen: Sequence[_SeenAnswer], spread: Floats) -> Success:
    """Subtract the answer without the person, and ask whose row the difference looks like."""
    rows = trial.exact[1:] - trial.exact[:1]
    tried = [one for one in seen if one.inside]
    guesses = [_nearest(one.numbers - trial.exact[0], rows, spread) == one.person - 1 for one in tried]
    return Success(sum(guesses), len(guesses))


def _attacked(plan: Plan, trial: _QuestionTrial, until: float) -> QuestionAttacks:
    exact, private, sharp = _exactly(trial), _privately(trial, until), np.ones(len(trial.places))
    spread, noun = _spread(private), plan.priced.draft.catalogue.unit.noun
    tried = (
        AttackTried(
            name="membership",
            goal=f"Is this {noun} in the data?",
            exact=_members(trial, exact, sharp),
            private=_members(trial, private, spread),
            by_guessing=0.5,
            ceiling=_membership_ceiling(plan.event, plan.priced.relation),
        ),
        AttackTried(
            name="differencing",
            goal=f"Whose row is it, of {_PEOPLE} that it could be?",
            exact=_differences(trial, exact, sharp),
            private=_differences(trial, private, spread),
            by_guessing=1 / _PEOPLE,
            ceiling=_differencing_ceiling(plan.event, plan.priced.relation),
        ),
    )
    return QuestionAttacks(
        whom=noun,
        made_up=trial.made_up,
        counted=trial.counted,
        attacks=tried,
        sentences=_sentences(noun, trial, tried),
    )


def _membership_ceiling(event: Event, relation: Relation) -> float | None:
    try:
        return best_guess(event, relation=relation)
    except UnsupportedEvent:
        return None


def _differencing_ceiling(event: Event, relation: Relation) -> float | None:
    """Bound the share of right guesses of one of k people who are equally likely.

    Theorem     Let P_i be the law of answers with person i, and P_0 that without any of them (or with somebody else in
                their place). P_i(guess is i) <= T(P_0(guess is i)) for the best true positive rate T, which is concave;
                the chances P_0(guess is i) add up to 1 at most. So the mean over i is at most T(1 / k). [DRS22]
    """
    try:
        return best_tpr(event, Fraction(1, _PEOPLE), relation=relation)
    except UnsupportedEvent:
        return None


# --- words ---


def _sentences(noun: str, trial: _QuestionTrial, tried: Sequence[AttackTried]) -> tuple[str, ...]:
    membership, differencing = tried
    return (
        f"No real row was read for this. Of {trial.made_up} people who were made up from the declared columns, "
        f"{trial.counted} change the exact answer. {_PEOPLE} were attacked, those who change it first, by somebody who "
        "knows all other rows.",
        f"Is one {noun} in the data? {_compared(membership, 'tossing a coin')}",
        f"Whose row is it, of {_PEOPLE}? {_compared(differencing, 'guessing')}",
        "The ceiling is a proof and holds for the real data too, whoever attacks and whatever they know. What was "
        "found is an example: another attacker may do better, up to the ceiling, and few tries are moved by chance.",
    )


def _compared(one: AttackTried, chance: str) -> str:
    ceiling = "no ceiling is proven" if one.ceiling is None else f"no attacker exceeds {chance_up(one.ceiling)}"
    low, high = one.private.interval()
    return (
        f"From exact answers the attacker is right in {percent(one.exact.share)} of cases; from private ones, at this "
        f"price, in {percent(one.private.share)} ({one.private.of} tries: somewhere from {percent(low)} to "
        f"{percent(high)}); {chance} is right in {percent(one.by_guessing)}, and {ceiling}."
    )
