"""What an attack has learnt: success rates, how sure they are, and beside them what no attacker exceeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.privacy import Event, Relation, best_tpr

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Attacker", "FoundRate", "Success", "judge", "success_bars"]

# --- results ---
# What an attack has learnt: about how many, how sure, and compared with what an attacker would know anyway.


@final
@dataclass(frozen=True, slots=True)
class Success:
    """How many of some independent guesses were right."""

    hits: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.of:
            raise InvalidParameter("`hits` must lie between 0 and `of`")

    @property
    def share(self) -> float:
        """The part that was right; 0 if nothing was guessed."""
        return self.hits / self.of if self.of else 0.0

    def interval(self, false_alarm: float = 0.05) -> tuple[float, float]:
        """Enclose the chance of a hit; each end is wrong with at most half of the chance of a false alarm. [CP34]

        Guesses of different chances only make the number of hits less variable than a binomial one. [Hoe56]
        """
        from scipy.special import betainccinv, betaincinv

        tail, misses = false_alarm / 2, self.of - self.hits
        low = float(betaincinv(self.hits, misses + 1, tail)) if self.hits else 0.0
        high = float(betainccinv(self.hits + 1, misses, tail)) if misses else 1.0
        return low, high

    def __str__(self) -> str:
        return f"{self.hits:,} of {self.of:,} ({100 * self.share:.0f} %)"

    __repr__ = __str__


# --- rates ---
# How well a score tells who was in the data: people found for every rate of false alarms, and the limits of that.


Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
RATES = (
    0.001,
    0.01,
)  # An attack that is sure about few people is worse for them than one that is a little sure of all.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRate:
    """Who was found with at most a given rate of false alarms.

    Whoever was not in the data and scores above the threshold is a false alarm; the threshold is the score of one of
    them, so the rate behind it follows a beta law, whose upper end is the one of [CP34].
    """

    rate: float  # of false alarms that was allowed
    members: Success  # people of the data who were found
    alarms: Success  # others who were taken for such people
    ceiling: float | None  # what no attacker exceeds at the upper limit of the rate of alarms

    def refutes(self, event: Event, *, error: float) -> bool:
        """Whether more people were found than training of this event allows, but for a chance of `error`."""
        return self.members.interval(error)[0] > _ceiling(event, self.alarms, error)


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Attacker:
    """One way to score people, and what became of it."""

    name: str
    auc: float  # the chance that somebody of the data scores higher than somebody else
    auc_limits: tuple[float, float]  # at 95 %
    found: tuple[FoundRate, ...]
    alarms: Floats  # the whole curve: rates of false alarms …
    hits: Floats  # … and the share of people found

    def at(self, rate: float) -> FoundRate:
        """Return who was found at one of the rates of `found`."""
        for one in self.found:
            if one.rate == rate:
                return one
        raise InvalidParameter(f"rate must be one of {', '.join(str(one.rate) for one in self.found)}")


def judge(
    scores: Sequence[float] | Floats,
    inside: Sequence[bool] | Flags,
    *,
    name: str = "attacker",
    rates: Sequence[float] = RATES,
    event: Event | None = None,
) -> Attacker:
    """Hold scores, which are high for people believed to be in the data, against the truth.

    `event` is what the training claims to spend on one person more or less: it gives the ceiling.
    """
    marks, truth = _read(scores, inside)
    members, others = np.sort(marks[truth]), np.sort(marks[~truth])
    alarms, hits = _curve(members, others)
    auc = _auc(members, others)
    return Attacker(
        name=name,
        auc=auc,
        auc_limits=_auc_limits(auc, min(len(members), len(others))),
        found=tuple(_found(members, others, rate, event) for rate in rates),
        alarms=alarms,
        hits=hits,
    )


def _read(scores: Any, inside: Any) -> tuple[Floats, Flags]:
    marks, truth = np.asarray(scores, np.float64).ravel(), np.asarray(inside, bool).ravel()
    if len(marks) != len(truth) or np.isnan(marks).any():
        raise InvalidParameter("there must be a score for everybody, and none of them NaN")
    if not truth.any() or truth.all():
        raise InvalidParameter("there must be people who were in the data, and people who were not")
    return marks, truth


def _found(members: Floats, others: Floats, rate: float, event: Event | None) -> FoundRate:
    """Take the highest threshold that is the score of somebody who was not in, with few enough of them above it."""
    if not 0 < rate < 1:
        raise InvalidParameter("a false positive rate must lie between 0 and 1")
    allowed = int(Fraction(str(rate)) * len(others))
    threshold = others[len(others) - 1 - allowed]
    alarms = Success(int(np.count_nonzero(others > threshold)), len(others))
    ceiling = None if event is None else _ceiling(event, alarms, 0.05)
    hits = Success(int(np.count_nonzero(members > threshold)), len(members))
    return FoundRate(rate=rate, members=hits, alarms=alarms, ceiling=ceiling)


def _ceiling(event: Event, alarms: Success, error: float) -> float:
    return best_tpr(event, Fraction(alarms.interval(error)[1]), relation=Relation.ADD_REMOVE)


def _curve(members: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return both rates for every threshold, from the highest down; equal scores are told apart by nobody."""
    cuts = np.unique(np.concatenate([members, others]))[::-1]
    alarms = 1 - np.searchsorted(others, cuts, "left") / len(others)
    hits = 1 - np.searchsorted(members, cuts, "left") / len(members)
    return np.concatenate([[0.0], alarms]), np.concatenate([[0.0], hits])


def _auc(members: Floats, others: Floats) -> float:
    below = np.searchsorted(others, members, "left") + np.searchsorted(others, members, "right")
    return float(below.mean()) / (2 * len(others))


def _auc_limits(auc: float, pairs: int) -> tuple[float, float]:
    """Enclose it at 95 %: a mean over all pairs strays no further than one over disjoint pairs. [Hoe63]"""
    away = math.sqrt(math.log(2 / 0.05) / (2 * pairs))
    return max(0.0, auc - away), min(1.0, auc + away)


# --- drawing: Successes of an attack beside each other, with their limits and what no attacker exceeds. ---


def success_bars(
    shares: Mapping[str, Success], *, ceiling: float | None, across: str, title: str | None = None
) -> alt.LayerChart:
    """Draw a row for each success, and one for the ceiling if there is one."""
    from discreet import plots

    rows = [(name, success.share, *success.interval()) for name, success in shares.items()]
    if ceiling is not None:
        rows.append(("no attacker exceeds", ceiling, ceiling, ceiling))
    names, values, lows, highs = (list(column) for column in zip(*rows, strict=True))
    return plots.error_bars(names, values, lows, highs, across=across, title=title)
