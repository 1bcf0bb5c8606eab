"""Tracing: membership inference from published means or counts.

No count is small and no two are subtracted. But a member's row is in every one of them, a little; over enough
attributes that adds up to a name. [HSR08, SOJH09, DSSUV15]
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.lab.attacks.populations import Floats, Integers, Population, VectorRelease, coins, deviation_of, released
from discreet.lab.attacks.success_rates import Success
from discreet.pages.progress import working
from discreet.privacy import Event, Relation, best_tpr
from discreet.privacy.not_private import NotPrivate

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "Score",
    "Tracing",
    "TracingPower",
    "least_deviation",
    "plot_power",
    "points",
    "score_all",
    "tracing",
    "tracing_power",
]

# --- tracing_power: How well tracing works, by formula: from the number of people, of attributes, and the noise. ---
#
# A released mean is the sum of everybody's rows. The inner product of a member's row with it has that member's own
# square in it, about one n-th of the squared length of a row; a stranger's has not. That is lost in chance if there are
# few attributes for each person, and found if there are many. [HSR08, DSSUV15]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TracingPower:
    """The law of the centred inner product, nearly normal where there are many attributes."""

    members_mean: float
    members_variance: float
    strangers_variance: float  # their mean is 0

    @property
    def auc(self) -> float:
        """The chance that a member scores higher than a stranger."""
        return _phi(self.members_mean / math.sqrt(self.members_variance + self.strangers_variance))

    @property
    def mu(self) -> float:
        """How many deviations of a stranger's score members are ahead: µ of a Gaussian release that tells as much."""
        return self.members_mean / math.sqrt(self.strangers_variance)

    def tpr(self, fpr: float) -> float:
        """The share of members that is found where a share `fpr` of strangers is accused."""
        from scipy.special import ndtri

        if not 0 < fpr < 1:
            raise InvalidParameter("fpr must be above 0 and below 1")
        threshold = -float(ndtri(fpr)) * math.sqrt(self.strangers_variance)
        return _phi((self.members_mean - threshold) / math.sqrt(self.members_variance))


@working("attacking", terminal=False)
def tracing_power(people: int, population: Population, *, deviation: float = 0.0) -> TracingPower:
    """Return the distribution of <x - p, mean - p> for members and strangers.

    Theorem     With v the variance of an attribute and s the deviation of the noise on each count, a stranger's score
                has mean 0 and variance sum v (n v + s^2) / n^2; a member's has mean sum v / n, and of the variance the
                part of their own row is Var (x - p)^2 instead of v^2. [DSSUV15]

    Args:
        people: How many members there are.
        population: How frequent attributes are.
        deviation: The deviation of the noise on each count, not negative.

    Returns:
        The law, with `auc` and with `tpr(rate)`, the share of members found at a rate of false alarms.

    Raises:
        InvalidParameter: If there are no people, or the deviation is negative.

    Examples:
        >>> round(dp.attacks.tracing_power(100, dp.attacks.coins(1000)).auc, 3)
        0.988
    """
    if people < 1 or deviation < 0:
        raise InvalidParameter("people must be at least 1 and the deviation not negative")
    v, one = population.variances, population.variances / population.copies
    # The fourth central moment of a binomial variable of k trials is k w (1 + 3 (k - 2) w), for w = p (1 - p).
    own = v * (1 + 3 * (population.copies - 2) * one) - v**2
    noisy = v * deviation**2
    return TracingPower(
        members_mean=float(v.sum()) / people,
        members_variance=float((own + (people - 1) * v**2 + noisy).sum()) / people**2,
        strangers_variance=float((people * v**2 + noisy).sum()) / people**2,
    )


def least_deviation(people: int, population: Population, *, mu: float) -> float:
    """Return the deviation of noise below which tracing alone refutes a claim of µ-Gaussian privacy.

    Theorem     Members are mu = sum v / sqrt(sum v (n v + s^2)) deviations ahead, so s^2 must be at least
                sum v / mu^2 - n sum v^2 / sum v: for fair coins d / (4 mu^2) - n / 4. Noise on each of d counts cannot
                stay below the order of sqrt(d) / epsilon, which is what the Gaussian mechanism adds. [BUV14]

    Args:
        people: How many members there are.
        population: How frequent attributes are.
        mu: The claim, above 0.

    Returns:
        The deviation of the noise on each count.

    Raises:
        InvalidParameter: If mu is not above 0.

    Examples:
        >>> round(dp.attacks.least_deviation(50, dp.attacks.coins(10_000), mu=0.5))
        100
    """
    if not mu > 0:
        raise InvalidParameter("mu must be positive")
    v = population.variances
    squared = float(v.sum()) / mu**2 - people * float((v**2).sum()) / float(v.sum())
    return math.sqrt(max(0.0, squared))


def plot_power(
    people: int, deviations: Sequence[float] = (0.0,), *, fpr: float = 0.05, most: float = 30.0
) -> alt.LayerChart:
    """Draw the share of members found against the number of attributes for each person, d / n, for some noises.

    Args:
        people: How many members there are.
        deviations: The deviations of the noise on each count, one curve each.
        fpr: The share of strangers that is accused.
        most: Up to how many attributes for each person.

    Returns:
        The chart.

    Raises:
        MissingLibrary: If altair is not installed.

    Examples:
        >>> chart = dp.attacks.plot_power(100, [0.0, 10.0])
        >>> dp.plots.save(chart, "tracing.json")
    """
    from discreet import plots

    ratios = [most * (step / 60) ** 2 for step in range(1, 61)]
    curves = {
        "exact" if deviation == 0 else f"noise ± {deviation:g}": (
            ratios,
            [tracing_power(people, coins(max(1, round(r * people))), deviation=deviation).tpr(fpr) for r in ratios],
        )
        for deviation in deviations
    }
    up = f"members found, of strangers {100 * fpr:g} % accused"
    return plots.lines(curves, across="attributes for each person, d / n", up=up, title="Tracing a mean")


def _phi(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


# --- tracing_scores: How an attacker scores a person against published counts: the higher, the more like a member. ---
#
# A score is a sum over attributes of points for the person's own value, so a release is turned into a table of points
# once, and anybody is looked up in it.


_IMPOSSIBLE = -1e6  # Points for a value that no member can have: finite, so that sums stay numbers.


@final
class Score(Enum):
    """Which test is made of the counts.

    Examples:
        >>> population = dp.attacks.coins(500)
        >>> found = dp.attacks.tracing(
        ...     population.draw(20), population.draw(40), score=dp.attacks.Score.LIKELIHOOD_RATIO, population=population
        ... )
        >>> found.value.people
        20
    """

    INNER_PRODUCT = "inner-product"  # <x - p, mean - p> [DSSUV15]
    LIKELIHOOD_RATIO = "likelihood-ratio"  # the best test if attributes are independent [SOJH09]
    DISTANCE = "distance"  # how much nearer to the mean than to the population [HSR08]


def points(score: Score, counts: Floats, people: int, population: Population, deviation: float) -> Floats:
    """Return the points for each number of copies (rows) of each attribute (columns)."""
    values = np.arange(population.copies + 1)[:, None]
    match score:
        case Score.INNER_PRODUCT:
            table = (values - population.means) * (counts / people - population.means)
        case Score.DISTANCE:
            own, mean = values / population.copies, counts / (people * population.copies)
            table = np.abs(own - population.frequencies) - np.abs(own - mean)
        case Score.LIKELIHOOD_RATIO if deviation == 0:
            table = _exact_ratio(values, counts, people, population)
        case Score.LIKELIHOOD_RATIO:
            table = _noisy_ratio(values, counts, people, population, deviation)
    return np.asarray(np.maximum(table, _IMPOSSIBLE), dtype=np.float64)


def score_all(rows: Integers, table: Floats) -> Floats:
    """Add up the points of many people."""
    total = np.full(len(rows), float(table[0].sum()))
    for value in range(1, len(table)):
        total += (rows == value) @ (table[value] - table[0])
    return total


def _exact_ratio(values: Integers, counts: Floats, people: int, population: Population) -> Floats:
    """Return log P(count | the person is a member) / P(count | a stranger), exactly.

    Of N = k n copies c are of the attribute. If x of a member's k are, c - x of the other N - k must be: the ratio is
    Bin(c - x; N - k, p) / Bin(c; N, p) = C(N - k, c - x) / C(N, c) / (p^x (1 - p)^(k - x)).
    """
    from scipy.special import gammaln

    copies, shares = population.copies, population.frequencies
    total, others = people * copies, copies - values
    with np.errstate(invalid="ignore"):
        chosen = gammaln(counts + 1) - gammaln(counts - values + 1)
        left = gammaln(total - counts + 1) - gammaln(total - counts - others + 1)
        ways = chosen + left - gammaln(total + 1) + gammaln(total - copies + 1)
    ratio: Floats = ways - values * np.log(shares) - others * np.log1p(-shares)
    return ratio


def _noisy_ratio(values: Integers, counts: Floats, people: int, population: Population, deviation: float) -> Floats:
    """Return the same for a noisy count, as if sums and noise were normal."""
    with_them = (people - 1) * population.variances + deviation**2
    without = people * population.variances + deviation**2
    near = (counts - values - (people - 1) * population.means) ** 2 / with_them
    far = (counts - people * population.means) ** 2 / without
    ratio: Floats = (far - near + np.log(without / with_them)) / 2
    return ratio


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

    __repr__ = __str__

    def _lines(self, fpr: float) -> Iterator[str]:
        found, accused = self.found(fpr), self.accused(fpr)
        low, high = found.interval()
        ceiling = self.ceiling(fpr)
        bound = "" if ceiling is None else f"; no attacker exceeds {100 * ceiling:.0f} %"
        yield f"  of strangers {100 * fpr:g} % accused: members found {found}"
        yield f"    between {100 * low:.0f} and {100 * high:.0f} %; of people who are not in it {accused}{bound}"


@working("attacking", terminal=False)
def tracing(
    members: Integers,
    strangers: Integers,
    *,
    mechanism: VectorRelease | None = None,
    score: Score = Score.INNER_PRODUCT,
    population: Population | None = None,
    trials: int | None = None,
) -> NotPrivate[Tracing]:
    """Tracing: publish the counts of all attributes of `members`, and infer who is among them.

    Rows are people and columns attributes: 0 or 1, or up to 2 with a population of two copies. Half of the `strangers`
    are what the attacker compares with, and tells how frequent attributes are unless `population` does; the other half
    take the place of a member for the baseline. Without a `mechanism` counts are exact. Every trial has a release of
    its own; there is one for each member unless `trials` says otherwise.

    Args:
        members: The private rows that are counted: people by attributes.
        strangers: Rows of people who are not counted, at least four.
        mechanism: What publishes the counts; None publishes them exactly.
        score: Which test is made.
        population: How frequent attributes are, if it is known.
        trials: How many targets are looked for.

    Returns:
        The scores of targets that were in and that were not, marked as not private.

    Raises:
        InvalidParameter: If there are too few people, or they differ in attributes.

    Examples:
        >>> members, strangers = dp.attacks.halves(dp.attacks.coins(1000).draw(80))
        >>> found = dp.attacks.tracing(members, strangers).value
        >>> found.found(0.05).share > 0.3
        True
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
