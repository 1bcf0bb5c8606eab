"""Tracing: telling from published means or counts who is among the people that were counted.

No count is small and no two are subtracted. But a member's row is in every one of them, a little; over enough
attributes that adds up to a name. [HSR08, SOJH09, DSSUV15]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.attacks.populations import Population
from discreet.attacks.results import Success
from discreet.attacks.tracing_power import TracingPower, tracing_power
from discreet.attacks.tracing_scores import Score, points, score_all
from discreet.attacks.vectors import Floats, Integers, VectorRelease, deviation_of, released
from discreet.errors import InvalidParameter
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Tracing", "tracing"]

_SHOWN = (0.01, 0.05, 0.2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    """How many people are found in a release that they are in, and in one that they are not in.

    For each trial: the share of strangers who look at least as much like a member as the target does. An attacker
    who accuses a share a of strangers calls the target a member if that share is at most a.
    """

    score: Score
    people: int
    attributes: int
    deviation: float  # of the declared noise on each count
    inside: tuple[float, ...]  # the target is among those counted
    without: tuple[float, ...]  # a stranger was counted in the target's place
    power: TracingPower  # what the formula for independent attributes says of the inner product
    event: Event | None  # what the release claims to spend
    relation: Relation | None

    def found(self, fpr: float) -> Success:
        """Members who are called members."""
        return Success(sum(place <= fpr for place in self.inside), len(self.inside))

    def accused(self, fpr: float) -> Success:
        """The same people called members of a release that they are not in: the baseline."""
        return Success(sum(place <= fpr for place in self.without), len(self.without))

    @property
    def auc(self) -> float:
        """The chance that somebody looks more like a member when they are one."""
        absent = np.sort(self.without)
        higher = len(absent) - np.searchsorted(absent, self.inside, side="right")
        ties = np.searchsorted(absent, self.inside, side="right") - np.searchsorted(absent, self.inside)
        return float((higher + ties / 2).mean() / len(absent))

    def ceiling(self, fpr: float, false_alarm: float = 0.05) -> float | None:
        """The share of members that no attacker finds more of who accuses as many as were accused here.

        It is the trade-off curve of the claim at the upper limit of the share that was accused; the two releases of a
        trial are neighbours. None if nothing is claimed.
        """
        if self.event is None:
            return None
        accused = Fraction(self.accused(fpr).interval(false_alarm)[1])
        return best_tpr(self.event, accused, relation=self.relation)

    def plot(self) -> alt.LayerChart:
        """Draw both error rates of this attack, and those of the best attacker against the claim."""
        from discreet import plots

        rates = sorted({0.0, 1.0, *self.inside, *self.without})[:: max(1, len(self.inside) // 200)]
        mine = [(self.accused(rate).share, 1 - self.found(rate).share) for rate in (0.0, *rates, 1.0)]
        curves = {self.score.value: ([x for x, _ in mine], [y for _, y in mine])}
        if self.event is not None:
            grid = [Fraction(step, 50) for step in range(51)]
            best = [1 - best_tpr(self.event, rate, relation=self.relation) for rate in grid]
            curves["best attacker"] = ([float(rate) for rate in grid], [max(0.0, fnr) for fnr in best])
        return plots.tradeoff(curves, title=f"Tracing {self.people:,} people by {self.attributes:,} attributes")

    def to_json(self) -> str:
        """Write the figures, without anybody's."""
        return json.dumps(self._document(), ensure_ascii=False)

    def _document(self) -> dict[str, Any]:
        return {
            "attack": "tracing",
            "score": self.score.value,
            "people": self.people,
            "attributes": self.attributes,
            "deviation": self.deviation,
            "auc": self.auc,
            "rates": [
                {
                    "false_alarms": fpr,
                    "found": [self.found(fpr).hits, self.found(fpr).of],
                    "accused": [self.accused(fpr).hits, self.accused(fpr).of],
                    "expected": self.power.tpr(fpr),
                    "ceiling": self.ceiling(fpr),
                }
                for fpr in _SHOWN
            ],
        }

    def __str__(self) -> str:
        noisy = f" with noise ± {self.deviation:.3g}" if self.deviation else ", exact"
        return "\n".join(
            [
                f"traced by {self.attributes:,} counts of {self.people:,} people{noisy} ({self.score.value})",
                *(line for fpr in _SHOWN for line in self._lines(fpr)),
                f"  a member looks more like one than a stranger with chance {self.auc:.3f}",
            ]
        )

    def _lines(self, fpr: float) -> Iterator[str]:
        found, accused = self.found(fpr), self.accused(fpr)
        low, high = found.interval()
        ceiling = self.ceiling(fpr)
        bound = "" if ceiling is None else f"; no attacker exceeds {100 * ceiling:.0f} %"
        yield f"  of strangers {100 * fpr:g} % accused: members found {found}"
        yield f"    between {100 * low:.0f} and {100 * high:.0f} %; of people who are not in it {accused}{bound}"


def tracing(
    members: Integers,
    strangers: Integers,
    *,
    mechanism: VectorRelease | None = None,
    score: Score = Score.INNER_PRODUCT,
    population: Population | None = None,
    trials: int | None = None,
) -> NotPrivate[Tracing]:
    """Publish the counts of all attributes of `members`, and find out who is among them.

    Rows are people and columns attributes: 0 or 1, or up to 2 with a population of two copies. Half of the `strangers`
    are what the attacker compares with, and tells how frequent attributes are unless `population` does; the other half
    take the place of a member for the baseline. Without a `mechanism` counts are exact. Every trial has a release of
    its own; there is one for each member unless `trials` says otherwise.
    """
    inside, outside = _rows(members), _rows(strangers)
    if inside.shape[1] != outside.shape[1] or len(inside) < 2 or len(outside) < 4:
        raise InvalidParameter("there must be two members and four strangers at least, all with the same attributes")
    known, instead = outside[::2], outside[1::2]
    people = _estimated(known) if population is None else population
    _check(inside, outside, people)
    attack = _TracingAttack(
        inside, known, instead, people, score, mechanism, deviation_of(mechanism, inside.shape[1]), inside.sum(axis=0)
    )
    places = [attack.trial(number) for number in range(len(inside) if trials is None else trials)]
    return NotPrivate(
        Tracing(
            score=score,
            people=len(inside),
            attributes=inside.shape[1],
            deviation=attack.deviation,
            inside=tuple(place for place, _ in places),
            without=tuple(place for _, place in places),
            power=tracing_power(len(inside), people, deviation=attack.deviation),
            event=None if mechanism is None else mechanism.event,
            relation=None if mechanism is None else _replacing(mechanism.relation),
        )
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _TracingAttack:
    """What stays the same from trial to trial."""

    members: Integers
    known: Integers
    instead: Integers
    population: Population
    score: Score
    mechanism: VectorRelease | None
    deviation: float
    counts: Integers

    def trial(self, number: int) -> tuple[float, float]:
        """Look for one member in a fresh release, and in one where a stranger took their place."""
        target = self.members[number % len(self.members)]
        stranger = self.instead[number % len(self.instead)]
        return self._place(target, self.counts), self._place(target, self.counts - target + stranger)

    def _place(self, target: Integers, counts: Integers) -> float:
        """Return the share of strangers, the target among them, who score as high: at most a with chance a if alike."""
        seen: Floats = released(self.mechanism, counts)
        table = points(self.score, seen, len(self.members), self.population, self.deviation)
        mine = score_all(target[None, :], table)[0]
        return (1 + int(np.count_nonzero(score_all(self.known, table) >= mine))) / (1 + len(self.known))


def _rows(rows: Integers) -> Integers:
    found = np.asarray(rows)
    if found.ndim != 2 or found.dtype.kind not in "biu" or not found.size:
        raise InvalidParameter("people are rows of whole numbers, one column for each attribute")
    return found.astype(np.int64)


def _estimated(known: Integers) -> Population:
    """Estimate how frequent attributes are, never as 0 or 1: what nobody here has, others may have."""
    return Population((known.sum(axis=0) + 0.5) / (len(known) + 1))


def _check(inside: Integers, outside: Integers, population: Population) -> None:
    if inside.shape[1] != len(population.frequencies):
        raise InvalidParameter("the population must have a frequency for each attribute")
    if min(inside.min(), outside.min()) < 0 or max(inside.max(), outside.max()) > population.copies:
        raise InvalidParameter("attributes must be 0 or 1, or at most 2 with two copies: pass the population then")


def _replacing(relation: Relation) -> Relation:
    if relation is not Relation.REPLACE_ONE:
        raise InvalidParameter("the mechanism must be calibrated for REPLACE_ONE: how many people there are is known")
    return relation
