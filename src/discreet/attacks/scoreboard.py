"""The scoreboard: a diary without a name is found by a few things that somebody knows roughly about its owner. [NS08]

Every diary is scored by how well it fits what is known: each item counts the more, the fewer people have it, and the
nearer its value and its day are. The best is named only if it stands out from the second best; so dates may be off by
weeks, values may be wrong, and some of the knowledge may be false.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet import noise
from discreet.attacks.counts import Floats
from discreet.attacks.diaries import Diaries, Numbers, diaries
from discreet.attacks.results import Success
from discreet.errors import InvalidParameter
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Rule", "Scoreboard", "ScoreboardTrial", "scoreboard"]

_CELLS = 4_000_000  # Scores at a time, one for each target and person.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When somebody is named. The scales and the eccentricity are those of the attack on film ratings. [NS08]

    `eccentricity` says by how many deviations the best score must be ahead of the second best; `fit`, which part of a
    perfect score it must reach. The second rule is ours: in sparse data the first alone names people who are not there.
    A value that is off by `value_scale`, or a day that is off by `day_scale`, counts 1/e.
    """

    eccentricity: float = 1.5
    fit: float = 0.75
    value_scale: float = 1.5
    day_scale: float = 30.0

    def __post_init__(self) -> None:
        if not all(np.isfinite([self.eccentricity, self.value_scale, self.day_scale])) or self.eccentricity < 0:
            raise InvalidParameter("eccentricity and scales are finite, and eccentricity is not negative")
        if min(self.value_scale, self.day_scale) <= 0 or not 0 <= self.fit <= 1:
            raise InvalidParameter("scales are above 0, and fit is a part of a whole: from 0 to 1")


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
class _Knowledge:
    """What is known of each target, a row each."""

    item: Numbers
    value: Floats
    day: Floats


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
    """Find people in a table of entries, of whom `known` entries are known with dates that are off by up to `days`.

    `targets` people are drawn for each trial. Of what is known, `false_facts` things are about items that the target
    may never have had. `rule` says when somebody is named.
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
        raise InvalidParameter("known and targets are at least 1, and days at least 0")
    if not 0 <= false_facts < min(known):
        raise InvalidParameter("fewer facts are false than are known")


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


def _knowledge(read: Diaries, entries: Numbers, days: int, false_facts: int) -> _Knowledge:
    """Blur the dates, and put other items in the place of the first few."""
    items = read.item[entries]
    if false_facts:
        items[:, :false_facts] = noise.uniform(len(read.support), (len(items), false_facts))
    errors = noise.uniform(2 * days + 1, entries.shape) - days
    return _Knowledge(items, read.value[entries], read.day[entries] + errors)


def _scores(read: Diaries, known: _Knowledge, rule: Rule) -> Floats:
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


def _perfect(read: Diaries, known: _Knowledge, false_facts: int) -> Floats:
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
