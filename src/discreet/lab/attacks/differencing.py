"""Differencing: published counts are subtracted from each other until one person is left, whose secret is read off.

Each table may hide small groups and look harmless by itself; the difference of two of them may be one person. [DDS79]
On exact tables the secret is read off. On noisy ones the same attacker guesses, and the guess is held against what an
attacker reaches who sees the same release made without that person's row.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.lab.attacks.count_tables import (
    ALL,
    AxisLevel,
    CountNoise,
    CountTable,
    Cube,
    Floats,
    GroupingAxis,
    axes_of,
    fill,
)
from discreet.lab.attacks.lab_tables import Lab, laboratory, text_of
from discreet.lab.attacks.success_rates import Success, success_bars
from discreet.pages.progress import working
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt
    import pyarrow as pa

__all__ = [
    "Differencing",
    "Isolation",
    "People",
    "Readings",
    "Target",
    "best",
    "differencing",
    "isolated",
    "people_of",
    "readings",
    "trusted",
]


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

    __repr__ = __str__


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

    __repr__ = __str__

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


@working("attacking", terminal=False)
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
    for every person attacked, for every cell by itself: where tables of a family share their noise, sums of their cells
    are drawn with other errors than they were published with.

    Args:
        rows: The private table: a file of this machine, a frame or an Arrow table.
        published: The published tables of its counts, as `tabulate` and `published_counts` return them.
        attribute: The column that is guessed, one that tables are grouped by.
        person: The column that tells people apart; every row is a person if not said.
        levels: Coarser groupings of columns that tables are grouped by.
        isolating: Exact tables that tell who is alone; the published ones if not said.
        event: What the release claims to spend; without it there is no ceiling.
        draws: How often noise is drawn anew for a person.
        examples: How many examples are told.

    Returns:
        Who was singled out, and how many guesses were right, marked as not private.

    Raises:
        InvalidParameter: If the tables do not fit together, or `draws` is below 1.

    Examples:
        >>> import pyarrow as pa
        >>> rows = pa.table({"clinic": ["A"] * 9 + ["B"] * 9, "age": [30] * 17 + [99], "ill": ["yes", "no"] * 9})
        >>> published = [dp.attacks.tabulate(rows, ["clinic", "ill"], where=where, name=name).value
        ...     for name, where in {"all": "", "young": "age < 95"}.items()]
        >>> print(dp.attacks.differencing(rows, published, attribute="ill").value.named)
        1 of 1 (100 %)
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


# --- guessing ---
# Guessing an attribute from counts: read off if they are exact, weighed against what is common if they are not.


_SHARPEST = 1e-3  # A deviation for exact counts: nothing outweighs them.
# The deviation of a normal law over the root mean square of its inner nine tenths, |z| < 1.645.
_INNER, _WIDER = 0.9, 1.267


@final
@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Some counts of a cube as sums of published cells: how they are made, and how far off they usually are."""

    counts: Floats  # NaN where unknown
    weights: Floats  # one row for each count, one column for each cell
    cells: tuple[tuple[int, int], ...]  # the table and the number of each cell
    tables: tuple[CountTable, ...]

    @property
    def deviations(self) -> Floats:
        """The deviation of each count by the declared noise, which is independent from cell to cell."""
        each = np.array([self.tables[table].deviation for table, _ in self.cells])
        variances: Floats = (self.weights**2 * each**2).sum(axis=1)
        return np.sqrt(variances)

    def fresh(self, draws: int) -> Floats:
        """Draw the noise of these counts anew, one row for each draw."""
        drawn = np.zeros((draws, len(self.cells)))
        for number, table in enumerate(self.tables):
            mine = [place for place, (other, _) in enumerate(self.cells) if other == number]
            drawn[:, mine] = table.draw(draws * len(mine)).reshape(draws, len(mine))
        return drawn @ self.weights.T


def readings(cube: Cube, places: Sequence[int]) -> Readings:
    """Take some counts of a cube apart into published cells. What is unknown has none."""
    made = [{} if np.isnan(cube.counts[place]) else cube.made_of(place) for place in places]
    cells = tuple(dict.fromkeys(cell for parts in made for cell in parts))
    column = {cell: number for number, cell in enumerate(cells)}
    weights = np.zeros((len(places), len(cells)))
    for row, parts in enumerate(made):
        for cell, times in parts.items():
            weights[row, column[cell]] = times
    return Readings(cube.counts[list(places)], weights, cells, cube.tables)


def best(counts: Floats, deviations: Floats, common: Floats) -> int:
    """Return the likeliest attribute of the one person in a group.

    If the person has attribute a, its count is 1 and the others are 0, each with normal noise; so the log-likelihood
    of a is, up to a constant, (2 x_a - 1) / (2 sd^2), and 0 if the count of a is not known. To that comes the logarithm
    of how common a is in the whole table: the posterior of Bayes.
    """
    sharp = np.maximum(deviations, _SHARPEST)
    evidence = np.where(np.isnan(counts), 0.0, (2 * np.nan_to_num(counts) - 1) / (2 * sharp**2))
    return int(np.argmax(evidence + np.log(np.maximum(common, 0.5))))


def trusted(cube: Cube, target: Target, declared: Floats) -> Floats:
    """Return deviations that an attacker believes in: no larger than the counts of such groups suggest.

    Most groups like the target's are empty. If their counts are hardly off 0, there is less noise than declared.
    """
    nodes = [_alike(axis_number, node, cube) for axis_number, node in enumerate(target.group)]
    attributes = list(range(ALL + 1, cube.shape[-1]))
    alike = cube.counts.reshape(cube.shape)[np.ix_(*nodes, attributes)]
    seen = np.sort(np.abs(alike[~np.isnan(alike)]))[: int(_INNER * np.count_nonzero(~np.isnan(alike)))]
    return np.minimum(declared, _WIDER * float(np.sqrt(np.mean(seen**2)))) if len(seen) else declared


def _alike(axis: int, node: int, cube: Cube) -> list[int]:
    """Return the nodes of an axis that are as deep as one; of a condition, only that one."""
    mine = cube.axes[axis]
    if mine.condition or node == ALL:
        return [node]
    depth = len(mine.above(node))
    return [one for one in range(mine.size) if len(mine.above(one)) == depth]


# --- isolating ---
# Who is alone in a group: people whom published counts single out, once they are added and subtracted.


Places: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class People:
    """The rows of a table as nodes of axes, and whose they are. Only rows whose values are all listed are here."""

    nodes: Places  # one row for each row, one column for each axis
    once: NDArray[np.bool_]  # whether a row is the only one of its person
    whose: Places  # the number of the person of each row
    names: pa.Array  # of persons, by number

    def __len__(self) -> int:
        return len(self.nodes)

    def name(self, row: int) -> str:
        """Return whose row it is."""
        return str(self.names[int(self.whose[row])].as_py())


@final
@dataclass(frozen=True, slots=True)
class Target:
    """Somebody who is alone in a group: the person, the place of the group in a cube, and the attribute."""

    who: str
    group: tuple[int, ...]  # a node of each axis but the attribute's
    attribute: int  # the node of the true attribute

    def place(self, shape: Sequence[int], attribute: int) -> int:
        """Return where the group's count of an attribute is."""
        place = 0
        for node, size in zip((*self.group, attribute), shape, strict=True):
            place = place * size + node
        return place


def people_of(rows: Any, axes: Sequence[GroupingAxis], person: str | None) -> People:
    """Read rows as nodes of axes; without a column that tells people apart, each row is a person."""
    with laboratory({"rows": rows}) as lab:
        columns = [_column(lab, axis) for axis in axes]
        who = "row_number() OVER ()" if person is None else lab.column("rows", person)
        listed = ", ".join(f"{column} AS axis_{i}" for i, column in enumerate(columns))
        found = lab.select(f"SELECT {text_of(who)} AS who, {listed} FROM {lab.relations['rows']}")
    nodes = np.column_stack([_nodes(found.column(f"axis_{i}"), axis) for i, axis in enumerate(axes)])
    persons = found.column("who").combine_chunks().dictionary_encode()
    whose = persons.indices.fill_null(-1).to_numpy().astype(np.int64)
    kept = (nodes >= 0).all(axis=1) & (whose >= 0)
    times = np.bincount(whose[whose >= 0], minlength=1)
    return People(nodes[kept], times[whose[kept]] == 1, whose[kept], persons.dictionary)


def _column(lab: Lab, axis: GroupingAxis) -> str:
    return lab.condition("rows", axis.name) if axis.condition else lab.column("rows", axis.name)


def _nodes(column: pa.ChunkedArray, axis: GroupingAxis) -> Places:
    """Return the node of each value; -1 for missing ones and for those that no table lists."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
    places = [axis.leaf(value) for value in encoded.dictionary.to_pylist()]
    nodes: Places = np.array([*places, -1], dtype=np.int64)[codes]
    return nodes


def isolated(cube: Cube, people: People) -> tuple[Target, ...]:
    """Find everybody who is alone in a group of known count, by the group that takes the fewest published numbers."""
    alone = np.isclose(cube.counts, 1.0, atol=0.25)
    found: dict[int, list[tuple[int, ...]]] = {}
    for choice in _choices(cube.axes[:-1]):
        nodes = _lifted(people.nodes[:, :-1], cube.axes[:-1], choice)
        for row in _truly_alone(_places(nodes, cube.shape), alone):
            if people.once[row]:
                found.setdefault(int(row), []).append(tuple(int(node) for node in nodes[row]))
    return tuple(_target(cube, people, row, groups) for row, groups in found.items())


def _truly_alone(places: Places, alone: NDArray[np.bool_]) -> Places:
    """Return rows that are the only one of a group of count 1: published numbers may be about other data, or wrong."""
    rows = np.nonzero(alone[places])[0]
    _, first, times = np.unique(places[rows], return_index=True, return_counts=True)
    single: Places = rows[first[times == 1]]
    return single


def _target(cube: Cube, people: People, row: int, groups: Sequence[tuple[int, ...]]) -> Target:
    attribute = int(people.nodes[row, -1])
    targets = [Target(people.name(row), group, attribute) for group in groups]
    return min(targets, key=lambda target: len(cube.made_of(target.place(cube.shape, ALL))))


def _choices(axes: Sequence[GroupingAxis]) -> Iterator[tuple[int, ...]]:
    """List how many steps up from its leaf each axis may go, all the way to ALL first."""
    return product(*(range(len(axis.above(1)) - 1, -1, -1) for axis in axes))


def _lifted(nodes: Places, axes: Sequence[GroupingAxis], up: Sequence[int]) -> Places:
    """Replace each node by the one that is some steps above it."""
    lifted = np.empty_like(nodes)
    for place, (axis, steps) in enumerate(zip(axes, up, strict=True)):
        table = np.array([_step(axis, node, steps) for node in range(axis.size)], dtype=np.int64)
        lifted[:, place] = table[nodes[:, place]]
    return lifted


def _step(axis: GroupingAxis, node: int, steps: int) -> int:
    above = axis.above(node)
    return above[max(0, len(above) - 1 - steps)]


def _places(nodes: Places, shape: Sequence[int]) -> Places:
    """Return where the count of each row's group is, whatever the attribute."""
    place = np.zeros(len(nodes), dtype=np.int64)
    for column, size in zip(nodes.T, shape[:-1], strict=True):
        place = place * size + column
    return place * shape[-1] + ALL
