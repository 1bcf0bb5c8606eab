"""The scoreboard: re-identification of sparse data by a few facts that are known approximately. [NS08]

Every diary is scored by how well it fits what is known: each item counts the more, the fewer people have it, and the
nearer its value and its day are. The best is named only if it stands out from the second best; so dates may be off by
weeks, values may be wrong, and some of the knowledge may be false.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, up
from discreet.formatting import record
from discreet.lab.attacks.count_tables import Floats
from discreet.lab.attacks.lab_tables import Lab, laboratory
from discreet.lab.attacks.success_rates import Success
from discreet.pages.progress import working
from discreet.privacy import PureDP, Relation, best_tpr
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "Diaries",
    "ItemCounts",
    "Numbers",
    "Rule",
    "Scoreboard",
    "ScoreboardTrial",
    "diaries",
    "item_counts",
    "scoreboard",
]

# --- diaries: Diaries: what people did or liked, when and how much, a few things each out of very many. ---


Numbers: TypeAlias = NDArray[np.int64]
_DAY = 86_400  # Seconds.


@final
@dataclass(frozen=True, slots=True, eq=False)
class Diaries:
    """Entries in the order of their items: whose, how much, on which day."""

    who: Numbers
    item: Numbers
    value: Floats
    day: Floats
    starts: Numbers  # where the entries of each item begin, and the end of all
    of: tuple[Numbers, ...]  # the entries of each person

    @property
    def people(self) -> int:
        """How many people have entries."""
        return len(self.of)

    @property
    def support(self) -> Numbers:
        """How many entries each item has."""
        return np.diff(self.starts)


def diaries(rows: Any, *, person: str, item: str, value: str, when: str) -> Diaries:
    """Read entries. `when` is a date, a time, or seconds since 1970; an entry with something missing is left out."""
    with laboratory({"rows": rows}) as lab:
        found = lab.select(
            f"SELECT dense_rank() OVER (ORDER BY {lab.column('rows', person)}) - 1 AS who, "
            f"dense_rank() OVER (ORDER BY {lab.column('rows', item)}) - 1 AS item, value, day FROM "
            f"(SELECT {lab.column('rows', person)}, {lab.column('rows', item)}, "
            f"TRY_CAST({lab.column('rows', value)} AS DOUBLE) AS value, {_days(lab, when)} AS day "
            f"FROM {lab.relations['rows']}) WHERE {lab.column('rows', person)} IS NOT NULL "
            f"AND {lab.column('rows', item)} IS NOT NULL AND isfinite(value) AND isfinite(day) ORDER BY item"
        )
    columns = {name: found.column(name).to_numpy() for name in ("who", "item", "value", "day")}
    if not len(columns["who"]):
        raise InvalidParameter("no row has a person, an item, a number and a time: check the names of the columns")
    order = np.argsort(columns["who"], kind="stable")
    ends = np.cumsum(np.bincount(columns["who"]))
    starts = np.concatenate(([0], np.cumsum(np.bincount(columns["item"]))))
    return Diaries(**columns, starts=starts, of=tuple(np.split(order, ends[:-1])))


def _days(lab: Lab, when: str) -> str:
    """Write the days since 1970; a column of text is read as a time."""
    column, kind = lab.column("rows", when), lab.columns["rows"][when]
    if kind.startswith(("DATE", "TIMESTAMP", "VARCHAR")):
        return f"epoch(TRY_CAST({column} AS TIMESTAMP)) / {_DAY}"
    return f"TRY_CAST({column} AS DOUBLE) / {_DAY}"


_CELLS = 4_000_000  # Scores at a time, one for each target and person.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When somebody is named. The scales and the eccentricity are those of the attack on film ratings. [NS08]

    `eccentricity` says by how many deviations the best score must be ahead of the second best; `fit`, which part of a
    perfect score it must reach. The second rule is ours: in sparse data the first alone names people who are not there.
    A value that is off by `value_scale`, or a day that is off by `day_scale`, counts 1/e.

    Args:
        eccentricity: By how many deviations the best score must be ahead; not negative.
        fit: Which part of a perfect score it must reach, from 0 to 1.
        value_scale: How far a value may be off; above 0.
        day_scale: How many days a date may be off; above 0.

    Raises:
        InvalidParameter: If a number is out of range.

    Examples:
        >>> dp.attacks.Rule(fit=0.0).eccentricity  # the rule as first published
        1.5
    """

    eccentricity: float = 1.5
    fit: float = 0.75
    value_scale: float = 1.5
    day_scale: float = 30.0

    __repr__ = record

    def __post_init__(self) -> None:
        if not all(np.isfinite([self.eccentricity, self.value_scale, self.day_scale])) or self.eccentricity < 0:
            raise InvalidParameter("eccentricity and scales must be finite, and eccentricity not negative")
        if min(self.value_scale, self.day_scale) <= 0 or not 0 <= self.fit <= 1:
            raise InvalidParameter("scales must be above 0, and fit must lie between 0 and 1")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreboardTrial:
    """What became of some targets, of whom so many things were known and dates were off by up to so many days."""

    known: int
    days: int
    eligible: int  # people with at least so many entries
    right: Success  # targets who were named, and rightly
    wrong: Success  # targets for whom somebody else was named
    absent: Success  # targets whose diary was taken out first, and for whom somebody was named nevertheless

    @property
    def nobody(self) -> Success:
        """The targets for whom nobody stood out."""
        return Success(self.right.of - self.right.hits - self.wrong.hits, self.right.of)

    def __str__(self) -> str:
        low, high = self.right.interval()
        limits = f"{100 * self.right.share:5.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        rest = f"{100 * self.wrong.share:9.1f} % {100 * self.nobody.share:9.1f} % {100 * self.absent.share:13.1f} %"
        return f"{self.known:>7} {self.days:>8} {self.right.of:>9,}   {limits:<22} {rest}"

    __repr__ = __str__


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scoreboard:
    """How many people are found in a table without names by whoever knows a few of their entries."""

    people: int
    items: int
    rule: Rule
    false_facts: int  # of the known things: of items that the target never had
    trials: tuple[ScoreboardTrial, ...]

    @property
    def baseline(self) -> float:
        """The share of right names of whoever picks a diary without looking."""
        return 1 / self.people

    def __str__(self) -> str:
        head = f"{self.people:,} people, {self.items:,} items; a guess is right for {100 * self.baseline:.2g} %"
        names = "  known  ± days   targets   named rightly (95 %)       wrongly      nobody   though absent"
        return "\n".join([head, names, *map(str, self.trials)])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        return json.dumps(asdict(self) | {"baseline": self.baseline}, ensure_ascii=False)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw who was named rightly, wrongly, and for whom nobody stood out."""
        from discreet.plots import shares

        labels = [f"{trial.known} known, ± {trial.days} days" for trial in self.trials]
        parts = {
            "named rightly": [trial.right.share for trial in self.trials],
            "wrongly": [trial.wrong.share for trial in self.trials],
            "nobody": [trial.nobody.share for trial in self.trials],
        }
        return shares(labels, parts, across="targets", title=title)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _AttackerKnowledge:
    """What is known of each target, a row each."""

    item: Numbers
    value: Floats
    day: Floats


@working("attacking", terminal=False)
def scoreboard(
    rows: Any,
    *,
    person: str,
    item: str,
    value: str,
    when: str,
    known: Sequence[int] = (2, 4, 8),
    days: Sequence[int] = (3, 14),
    false_facts: int = 0,
    targets: int = 1000,
    rule: Rule | None = None,
) -> NotPrivate[Scoreboard]:
    """Re-identify people in a table of entries by `known` entries, with dates that are off by up to `days`.

    `targets` people are drawn for each trial. Of what is known, `false_facts` things are about items that the target
    may never have had. `rule` says when somebody is named.

    Args:
        rows: The private table of entries: a file of this machine, a frame or an Arrow table.
        person: The column that tells people apart.
        item: The column of items.
        value: The column of values, such as a rating.
        when: The column of dates.
        known: The numbers of entries that are known, one trial each.
        days: By how many days dates are off at most, one trial each.
        false_facts: How many of the known entries are false.
        targets: How many people are looked for in each trial.
        rule: When somebody is named; `Rule()` if not said.

    Returns:
        How many were found, in every trial, marked as not private.

    Raises:
        InvalidParameter: If a number is out of range, or nobody has so many entries.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> found = dp.attacks.scoreboard(
        ...     "stays.parquet", person="patient", item="diagnosis", value="nights", when="admitted",
        ...     known=[2], days=[3], targets=50,
        ... )
        >>> found.value.trials[0].right.share > 0.5
        True
    """
    _check(known, days, false_facts, targets)
    read = diaries(rows, person=person, item=item, value=value, when=when)
    decided = rule or Rule()
    trials = [_trial(read, count, error, false_facts, targets, decided) for count in known for error in days]
    if not any(trial.right.of for trial in trials):
        raise InvalidParameter(f"nobody has {min(known)} entries or more: let the attacker know fewer")
    return NotPrivate(
        Scoreboard(
            people=read.people,
            items=len(read.support),
            rule=decided,
            false_facts=false_facts,
            trials=tuple(trial for trial in trials if trial.right.of),
        )
    )


def _check(known: Sequence[int], days: Sequence[int], false_facts: int, targets: int) -> None:
    if not known or not days or min(known) < 1 or min(days) < 0 or targets < 1:
        raise InvalidParameter("known and targets must be at least 1, and days at least 0")
    if not 0 <= false_facts < min(known):
        raise InvalidParameter("`false_facts` must be at least 0 and smaller than every number in `known`")


def _trial(
    read: Diaries,
    known: int,
    days: int,
    false_facts: int,
    targets: int,
    rule: Rule,
) -> ScoreboardTrial:
    eligible, picked = _chosen(read, known, targets)
    right = wrong = absent = 0
    at_once = max(1, _CELLS // read.people)
    for start in range(0, len(picked), at_once):
        entries = picked[start : start + at_once]
        owners = read.who[entries[:, 0]]
        knowledge = _knowledge(read, entries, days, false_facts)
        scores = _scores(read, knowledge, rule)
        perfect = _perfect(read, knowledge, false_facts)
        named = _named(scores, perfect, rule)
        right += int((named == owners).sum())
        wrong += int(((named != owners) & (named >= 0)).sum())
        scores[np.arange(len(owners)), owners] = 0.0  # The diary is taken out; the weights hardly notice.
        absent += int((_named(scores, perfect, rule) >= 0).sum())
    of = len(picked)
    return ScoreboardTrial(
        known=known,
        days=days,
        eligible=eligible,
        right=Success(right, of),
        wrong=Success(wrong, of),
        absent=Success(absent, of),
    )


def _chosen(read: Diaries, known: int, targets: int) -> tuple[int, Numbers]:
    """Draw targets among those with enough entries, and what is known of each: how many were eligible, and entries."""
    eligible = [one for one in read.of if len(one) >= known]
    if not eligible:
        return 0, np.empty((0, known), dtype=np.int64)
    drawn = noise.permutation(len(eligible))[:targets]
    known_of = [eligible[place][noise.permutation(len(eligible[place]))[:known]] for place in drawn]
    return len(eligible), np.array(known_of, dtype=np.int64)


def _knowledge(read: Diaries, entries: Numbers, days: int, false_facts: int) -> _AttackerKnowledge:
    """Blur the dates, and put other items in the place of the first few."""
    items = read.item[entries]
    if false_facts:
        items[:, :false_facts] = noise.uniform(len(read.support), (len(items), false_facts))
    errors = noise.uniform(2 * days + 1, entries.shape) - days
    return _AttackerKnowledge(items, read.value[entries], read.day[entries] + errors)


def _scores(read: Diaries, known: _AttackerKnowledge, rule: Rule) -> Floats:
    """Score every person for every target: rows are targets."""
    item = known.item.ravel()
    sizes = read.support[item]
    slot = np.repeat(np.arange(len(item)), sizes)
    entry = np.arange(len(slot)) + np.repeat(read.starts[item] - (np.cumsum(sizes) - sizes), sizes)
    fit = np.exp(-np.abs(known.value.ravel()[slot] - read.value[entry]) / rule.value_scale)
    fit += np.exp(-np.abs(known.day.ravel()[slot] - read.day[entry]) / rule.day_scale)
    place = slot // known.item.shape[1] * read.people + read.who[entry]
    scores = np.bincount(place, _weights(sizes)[slot] * fit, minlength=len(known.item) * read.people)
    return np.asarray(scores, dtype=np.float64).reshape(len(known.item), read.people)


def _weights(support: Numbers) -> Floats:
    """Weigh an item by how few have it. One that a single person has would weigh without bound: as if two had it."""
    weights: Floats = 1 / np.log(np.maximum(support, 2))
    return weights


def _perfect(read: Diaries, known: _AttackerKnowledge, false_facts: int) -> Floats:
    """Return the score of a diary that fits all but as many things as may be false, the heaviest of them."""
    weights = np.sort(_weights(read.support[known.item]), axis=1)
    total: Floats = 2 * weights[:, : weights.shape[1] - false_facts].sum(axis=1)
    return total


def _named(scores: Floats, perfect: Floats, rule: Rule) -> Numbers:
    """Name the best of each row if it fits and stands out; -1 if nobody does."""
    if scores.shape[1] < 2:
        return np.full(len(scores), -1)
    second, best = np.partition(scores, -2, axis=1)[:, -2:].T
    stands_out = (best > second) & (best - second >= rule.eccentricity * _deviations(scores))
    return np.where(stands_out & (best >= rule.fit * perfect), scores.argmax(axis=1), -1)


def _deviations(scores: Floats) -> Floats:
    """Return the deviation of the scores above 0 in each row: in sparse data nearly all others have none at all."""
    count = np.maximum((scores > 0).sum(axis=1), 1)
    mean = scores.sum(axis=1) / count
    spread: Floats = np.sqrt(np.maximum((scores**2).sum(axis=1) / count - mean**2, 0))
    return spread


# --- item_counts ---
# What is left of the scoreboard if only noisy counts of items are published: no diary to find, and presence hidden.
#
# The attacker is given all they could wish for: the exact counts of everybody else, and which things the target has.
# All
# that is left to tell is whether the target is counted, and no test tells more than the guarantee allows.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCounts:
    """How often a target is said to be counted who is, and who is not, and what no attacker exceeds."""

    epsilon: float
    most: int  # items that one person counts for
    known: int
    present: Success  # targets said to be there, who are: the true positives
    absent: Success  # … who are not: the false positives
    ceiling: float  # the share of true positives that no attacker exceeds, at as many false ones

    def __str__(self) -> str:
        told = [
            ("said to be there, and is", self.present),
            ("said to be there, and is not", self.absent),
            ("no attacker exceeds", f"{100 * self.ceiling:.0f} %"),
        ]
        head = (
            f"counts of items at ε = {self.epsilon:g}, at most {self.most} items a person, {self.known} of them known"
        )
        return "\n".join([head, *(f"  {label:<30} {value}" for label, value in told)])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def plot(self, *, title: str | None = None) -> alt.LayerChart:
        """Draw the true and the false positives with their limits, and the ceiling."""
        from discreet.plots import error_bars

        (low, high), (false_low, false_high) = self.present.interval(), self.absent.interval()
        return error_bars(
            ["said to be there, and is", "said to be there, and is not", "no attacker exceeds"],
            [self.present.share, self.absent.share, self.ceiling],
            [low, false_low, self.ceiling],
            [high, false_high, self.ceiling],
            across="share of targets",
            title=title,
        )


def item_counts(
    rows: Any,
    *,
    epsilon: Number,
    person: str,
    item: str,
    value: str,
    when: str,
    known: int = 8,
    most: int = 20,
    targets: int = 1000,
) -> NotPrivate[ItemCounts]:
    """Release counts of items with Laplace noise, each person for at most `most` items, and look for targets in them.

    The arguments are those of `scoreboard`. Noise is drawn anew for every target, with their row and without it.

    Args:
        rows: The private table of entries: a file of this machine, a frame or an Arrow table.
        epsilon: What the release of all counts spends on one person.
        person: The column that tells people apart.
        item: The column of items.
        value: The column of values, such as a rating.
        when: The column of dates.
        known: How many items of a target are known.
        most: For how many items a person is counted at most.
        targets: How many people are looked for.

    Returns:
        How often targets are said to be there, with and without them, and the ceiling, marked as not private.

    Raises:
        InvalidParameter: If a number is out of range, or nobody has so many items.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> found = dp.attacks.item_counts(
        ...     "stays.parquet", epsilon=1, person="patient", item="diagnosis", value="nights", when="admitted",
        ...     known=2, targets=50,
        ... )
        >>> found.value.present.of
        50
    """
    price = exact(epsilon, name="epsilon")
    if price <= 0 or most < 1 or known < 1 or targets < 1:
        raise InvalidParameter("epsilon must be above 0, and most, known and targets at least 1")
    read = diaries(rows, person=person, item=item, value=value, when=when)
    counted = _counted(read, known, most, targets)
    if not len(counted):
        raise InvalidParameter(f"nobody has {known} items or more: let the attacker know fewer")
    present, absent = (_said(part, most / price) for part in (counted, np.zeros_like(counted)))
    ceiling = best_tpr(PureDP(price), Fraction(absent.interval()[1]), relation=Relation.ADD_REMOVE)
    return NotPrivate(
        ItemCounts(epsilon=up(price), most=most, known=known, present=present, absent=absent, ceiling=ceiling)
    )


def _counted(read: Diaries, known: int, most: int, targets: int) -> Numbers:
    """Draw targets and known items of each, a row a target, and tell which of these count: 1, or 0.

    A person with more items than `most` counts for some of them only, drawn at random.
    """
    owned = [np.unique(read.item[entries]) for entries in read.of]
    eligible = [items for items in owned if len(items) >= known]
    if not eligible:
        return np.empty((0, known), dtype=np.int64)
    drawn = [eligible[place] for place in noise.permutation(len(eligible))[:targets]]
    kept = [noise.permutation(len(items))[:most] for items in drawn]
    return np.array(
        [np.isin(noise.permutation(len(items))[:known], mine) for items, mine in zip(drawn, kept, strict=True)],
        dtype=np.int64,
    )


def _said(counted: Numbers, scale: Fraction) -> Success:
    """Say that a target is there if most of their counts are above those of everybody else.

    With Laplace noise the likelihood ratio of one more is the same for all counts above, and its inverse below. So to
    count signs is the best test, if all of the known things count.
    """
    above = counted + noise.discrete_laplace(scale, counted.shape) > 0
    said = 2 * above.sum(axis=1) > counted.shape[1]
    return Success(int(said.sum()), len(said))
