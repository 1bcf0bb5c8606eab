"""Differencing: published counts are subtracted from each other until one person is left, whose secret is read off.

Each table may hide small groups and look harmless by itself; the difference of two of them may be one person. [DDS79]
On exact tables the secret is read off. On noisy ones the same attacker guesses, and the guess is held against what an
attacker reaches who sees the same release made without that person's row.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.attacks.axes import ALL, AxisLevel, GroupingAxis
from discreet.attacks.counts import CountNoise, CountTable, Floats
from discreet.attacks.cube import Cube, axes_of, fill
from discreet.attacks.drawing import success_bars
from discreet.attacks.guessing import Readings, best, readings, trusted
from discreet.attacks.isolating import People, Target, isolated, people_of
from discreet.attacks.results import Success
from discreet.errors import InvalidParameter
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Differencing", "Isolation", "differencing"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """One person whom differences of published counts single out."""

    who: str
    facts: Mapping[str, Hashable]  # what one must know about the person to single them out
    guess: Hashable
    truth: Hashable
    chain: tuple[tuple[int, str, tuple[Hashable, ...], float], ...]  # how often, table, group, its count

    def __str__(self) -> str:
        known = ", ".join(
            f"not {name}" if value is False else f"{name} = {value}" for name, value in self.facts.items()
        )
        return f"{self.who} ({known}): {self.guess}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Differencing:
    """How many people differences single out, and how often their attribute is guessed right."""

    attribute: str
    people: int
    named: Success  # of the people singled out: whose attribute is guessed right from the published tables
    without: Success  # the same guesses from the same tables made without the person's row
    commonest: Success  # guesses of whoever knows only what is most common among the others
    fresh: Success | None  # guesses from releases drawn anew, with the person's row …
    fresh_without: Success | None  # … and without it; None if there is no noise to draw
    ceiling: float | None  # the share of right guesses that no attacker exceeds, by the proven guarantee
    examples: tuple[Isolation, ...]

    def __str__(self) -> str:
        told: list[tuple[str, object]] = [
            (f"{self.attribute} guessed right", self.named),
            ("… without the person's row", self.without),
            ("… by what is most common", self.commonest),
        ]
        if self.fresh is not None:
            told += [("releases drawn anew", self.fresh), ("… without the person's row", self.fresh_without)]
        if self.ceiling is not None:
            told.append(("no attacker exceeds", f"{100 * self.ceiling:.0f} %"))
        width = max(len(label) for label, _ in told)
        lines = [f"{self.named.of:,} of {self.people:,} people are alone in a difference of published counts"]
        lines += [f"  {label:<{width}}  {value}" for label, value in told]
        return "\n".join(lines + [f"  {example}" for example in self.examples])

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False, default=str)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw how often the attribute is guessed right, with limits, against the baselines and the ceiling."""
        told = {"guessed right": self.named, "without the row": self.without, "by what is most common": self.commonest}
        if self.fresh is not None and self.fresh_without is not None:
            told |= {"releases drawn anew": self.fresh, "… without the row": self.fresh_without}
        across = f"share of right guesses: {self.attribute}"
        return success_bars(told, ceiling=self.ceiling, across=across, title=title)


def differencing(
    rows: Any,
    published: Sequence[CountTable],
    *,
    attribute: str,
    person: str | None = None,
    levels: Sequence[AxisLevel] = (),
    isolating: Sequence[CountTable] | None = None,
    event: Event | None = None,
    draws: int = 40,
    examples: int = 5,
) -> NotPrivate[Differencing]:
    """Single out people by differences of published counts of `rows`, and guess their attribute.

    `isolating` are the exact tables that tell who is alone, if the published ones are noisy: the attacker is given that
    knowledge. Only people with one row are attacked; `person` is the column that tells them apart. `event` is what the
    release claims to spend on one person more or less: it gives the ceiling. Noise is drawn anew `draws` times
    for every person attacked.
    """
    if draws < 1:
        raise InvalidParameter("draws must be at least 1")
    alone = published if isolating is None else isolating
    axes = axes_of([*published, *alone], attribute, levels)
    people = people_of(rows, axes, person)
    targets = isolated(fill(axes, alone), people)
    cube = fill(axes, published)
    trials = [_trial(cube, target, people, draws) for target in targets]
    return NotPrivate(_summed(attribute, people, targets, trials, event, examples))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _AttackTrial:
    """What became of the attack on one person."""

    guess: int
    without: int
    commonest: int
    fresh: tuple[int, int] | None  # right guesses with and without the row, of `draws`
    draws: int
    isolation: Isolation


def _trial(cube: Cube, target: Target, people: People, draws: int) -> _AttackTrial:
    attributes = range(ALL + 1, cube.shape[-1])
    own = readings(cube, [target.place(cube.shape, a) for a in attributes])
    everybody = Target(target.who, (ALL,) * len(target.group), target.attribute)
    whole = readings(cube, [everybody.place(cube.shape, a) for a in attributes])
    deviations = trusted(cube, target, own.deviations)
    mine = _one(target.attribute, len(attributes))
    guess = best(own.counts, deviations, _common(whole.counts)) + 1
    others = np.bincount(people.nodes[:, -1], minlength=cube.shape[-1])[1:] - mine
    return _AttackTrial(
        guess=guess,
        without=best(own.counts - mine, deviations, _common(whole.counts - mine)) + 1,
        commonest=int(np.argmax(others)) + 1,
        fresh=_fresh(own, whole, others, mine, draws) if _noisy(own) else None,
        draws=draws,
        isolation=_isolation(cube, target, guess),
    )


def _fresh(own: Readings, whole: Readings, others: Floats, mine: Floats, draws: int) -> tuple[int, int]:
    """Draw releases anew, with the row of the person and without it, and count right guesses of each."""
    both = Readings(np.concatenate([own.counts, whole.counts]), *_side_by_side(own, whole), own.tables)
    truth, size, hits = int(np.argmax(mine)), len(mine), [0, 0]
    unknown = np.where(np.isnan(both.counts), np.nan, 0.0)
    for number, row in enumerate((mine, np.zeros(size))):
        exact = np.concatenate([row, others + row]) + unknown
        for noise in both.fresh(draws):
            seen = exact + noise
            hits[number] += best(seen[:size], own.deviations, _common(seen[size:])) == truth
    return hits[0], hits[1]


def _side_by_side(first: Readings, second: Readings) -> tuple[Floats, tuple[tuple[int, int], ...]]:
    """Write the weights of two readings over all cells of both: a cell that both use has one noise."""
    cells = tuple(dict.fromkeys([*first.cells, *second.cells]))
    column = {cell: number for number, cell in enumerate(cells)}
    blocks = []
    for part in (first, second):
        block = np.zeros((len(part.counts), len(cells)))
        block[:, [column[cell] for cell in part.cells]] = part.weights
        blocks.append(block)
    return np.vstack(blocks), cells


def _noisy(own: Readings) -> bool:
    return any(own.tables[table].noise is not CountNoise.NONE for table, _ in own.cells)


def _one(attribute: int, size: int) -> Floats:
    one = np.zeros(size)
    one[attribute - 1] = 1
    return one


def _common(counts: Floats) -> Floats:
    """Return how common attributes are; all the same if a count is not known."""
    return np.ones(len(counts)) if np.isnan(counts).any() else counts


def _isolation(cube: Cube, target: Target, guess: int) -> Isolation:
    *axes, attribute = cube.axes
    facts = {name: value for axis, node in zip(axes, target.group, strict=True) for name, value in _fact(axis, node)}
    place = target.place(cube.shape, guess)
    made = {} if np.isnan(cube.counts[place]) else cube.made_of(place)
    chain = [
        (times, cube.tables[t].name, cube.tables[t].keys[c], float(cube.tables[t].counts[c]))
        for (t, c), times in sorted(made.items(), key=lambda part: -part[1])
    ]
    values = {node: value for (_, value), node in attribute.nodes.items()}
    return Isolation(
        who=target.who, facts=facts, guess=values[guess], truth=values[target.attribute], chain=tuple(chain)
    )


def _fact(axis: GroupingAxis, node: int) -> list[tuple[str, Hashable]]:
    return [(name, value) for (name, value), one in axis.nodes.items() if one == node]


def _summed(
    attribute: str,
    people: People,
    targets: Sequence[Target],
    trials: Sequence[_AttackTrial],
    event: Event | None,
    examples: int,
) -> Differencing:
    truths = [target.attribute for target in targets]
    noisy = bool(trials) and all(trial.fresh is not None for trial in trials)
    drawn = [_drawn(trials, side) for side in (0, 1)] if noisy else [None, None]
    return Differencing(
        attribute=attribute,
        people=len(people),
        named=_hits([trial.guess for trial in trials], truths),
        without=_hits([trial.without for trial in trials], truths),
        commonest=_hits([trial.commonest for trial in trials], truths),
        fresh=drawn[0],
        fresh_without=drawn[1],
        ceiling=None if event is None or drawn[1] is None else _ceiling(event, drawn[1]),
        examples=tuple(trial.isolation for trial in trials[:examples]),
    )


def _hits(guesses: Sequence[int], truths: Sequence[int]) -> Success:
    return Success(sum(guess == truth for guess, truth in zip(guesses, truths, strict=True)), len(truths))


def _drawn(trials: Sequence[_AttackTrial], side: int) -> Success:
    return Success(sum(t.fresh[side] for t in trials if t.fresh is not None), sum(t.draws for t in trials))


def _ceiling(event: Event, without: Success) -> float:
    """Bound the share of right guesses of any attacker who without the row is right as often as measured, or less.

    To guess right is a test of "with the row" against "without": whoever is right with chance p without it is right
    with it at most as often as the trade-off curve allows at false positive rate p. The curve is concave in p, so the
    bound of the mean chance holds for the mean over people.
    """
    return best_tpr(event, Fraction(without.interval()[1]), relation=Relation.ADD_REMOVE)
