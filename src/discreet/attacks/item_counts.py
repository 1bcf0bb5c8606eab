"""What is left of the scoreboard if only noisy counts of items are published: no diary to find, and presence hidden.

The attacker is given all they could wish for: the exact counts of everybody else, and which things the target has. All
that is left to tell is whether the target is counted, and no test tells more than the guarantee allows.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet import noise
from discreet.attacks.diaries import Diaries, Numbers, diaries
from discreet.attacks.results import Success
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, up
from discreet.privacy import PureDP, Relation, best_tpr
from discreet.privacy.notprivate import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = ["ItemCounts", "item_counts"]


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
    """
    price = exact(epsilon, name="epsilon")
    if price <= 0 or most < 1 or known < 1 or targets < 1:
        raise InvalidParameter("epsilon is above 0, and most, known and targets are at least 1")
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
