"""The clipped mean: bounds are found privately, for a part of the budget, and then the mean within them."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast, final

import numpy as np

from discreet.errors import InvalidParameter
from discreet.exact import Number, nonnegative, positive, probability
from discreet.formatting import record
from discreet.frames.column import Data, column_of
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise
from discreet.mechanisms.exponential import exponential_outcomes, selection_factor
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import Mean, check_length, check_size
from discreet.mechanisms.measurement import joint_distribution
from discreet.mechanisms.parameters import read_flag, read_share, settle
from discreet.mechanisms.quantile import Quantile
from discreet.mechanisms.release import Accuracy, Interval, Release
from discreet.noise import categorical
from discreet.privacy import outcomes
from discreet.privacy.events import BoundedRange, Composed, Event, Gaussian, PureDP
from discreet.privacy.outcomes import Outcomes
from discreet.privacy.payer import Payer, paid
from discreet.privacy.relation import Relation, read_relation

__all__ = ["ClippedMean"]

_NEGLIGIBLE = 0.01  # A prediction leaves out bounds that are found less often.
_FINENESS = 4  # Radii to a doubling.
_NEAR = 2 * _FINENESS  # So many radii below the likely one are preferred to it, each one more than the next.
_UNLIKELY = 2  # Nats for any radius beyond it, and
_RESERVE = Fraction(1, 8)  # for each step more: little, so that rows that nobody expects are seldom lost.
_NARROW = 4  # Bounds so many times narrower than the grid are worth a check.
_AGREE = Fraction(95, 100)  # A mean agrees with another that lies in its interval of this confidence.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedMean:
    """Find a centre, then a radius that leaves out few rows, and average what is clamped between them.

    The centre is a private median. Radii are public: from one grid step to all of the grid, four to a doubling.
    The score of a radius is minus the number of rows farther from the centre, and a public preference for smaller
    radii: the same for each step, or strong up to a `likely_radius` and weak beyond it.

    Guarantee   epsilon, pure; with a delta, (epsilon, delta).
    Theorem     A row that comes or goes moves the number of rows beyond each radius by 0 or 1, all one way; and so does
                one that changes, by 1 between its two distances and by 0 elsewhere. The scaled scores of neighbours
                differ by amounts that span the radius' epsilon, without the factor 2 of scores that move both ways:
                the exponential mechanism with a public prior. [MT07, DR19] Centre and radius are released, so the
                bounds made from them are public to the mean that follows, and the three costs add up. [DMNS06]
                With a check two means share the budget of one, and to choose by what both released is free.
    Utility     noise in proportion to the radius instead of to the declared bounds. More than `most_beyond(b)` rows are
                left out with probability b at most; they pull the answer towards the centre: the interval is for the
                mean within `limits`, which the release tells.
                A check keeps what is found in narrow bounds within a 95 % interval of a noisy mean of all the grid,
                however many rows are left out.

    Args:
        grid: The public bounds and step of the answers.
        relation: The neighbouring relation.
        epsilon: What a release spends.
        delta: The delta of the noise of the mean, if it is to be Gaussian.
        public_rows: The public number of rows, under replace-one.
        likely_radius: How far from the centre nearly all rows are expected, from public knowledge.
        preference: By how much each radius outweighs the next one, in nats; below the likely radius if there is one.
        centre_share: The part of epsilon that finds the centre.
        radius_share: The part of epsilon that finds the radius.
        check_share: The part of the mean's budget for another mean, within the whole grid: where found bounds are less
            than a fourth as wide, and the mean within them is not in the 95 % interval of the other, that one is
            released. None if 0.
        allow_large_delta: Whether a delta of 1 / (number of rows) or more is accepted.

    Raises:
        InvalidParameter: If nothing is left for the mean.

    Examples:
        >>> mechanism = dp.adaptive.ClippedMean(
        ...     grid=dp.mechanisms.Grid.between(0, 10**6, step=1), relation=dp.Relation.REPLACE_ONE,
        ...     epsilon=1, public_rows=1000,
        ... )
        >>> mechanism.release([40] * 1000).value < 10**6
        True
    """

    grid: Grid
    relation: Relation
    epsilon: Fraction
    delta: Fraction | None = None  # of the noise of the mean, if it is to be Gaussian
    public_rows: int | None = None  # the public number of rows, under replace-one
    likely_radius: Fraction | None = None  # public, in units of the data
    preference: Fraction = Fraction(1, 2)  # e^-preference is the weight of a radius over that of the one before
    centre_share: Fraction = Fraction(1, 20)  # of epsilon
    radius_share: Fraction = Fraction(1, 10)
    check_share: Fraction = Fraction(0)  # of the budget of the mean
    allow_large_delta: bool = False  # of 1 / size or more

    __repr__ = record

    def __post_init__(self) -> None:
        settle(self, relation=read_relation(self.relation))
        settle(
            self,
            epsilon=positive(self.epsilon, name="epsilon"),
            public_rows=check_size(self.relation, self.public_rows),
            delta=None if self.delta is None else probability(self.delta, name="delta"),
            centre_share=read_share(self.centre_share, name="centre_share"),
            radius_share=read_share(self.radius_share, name="radius_share"),
            check_share=nonnegative(self.check_share, name="check_share"),
            allow_large_delta=read_flag(self.allow_large_delta, name="allow_large_delta"),
        )
        if self.centre_share + self.radius_share >= 1:
            raise InvalidParameter(
                "centre_share and radius_share must add up to less than 1: the rest of the budget is for the mean"
            )
        if self.check_share:
            read_share(self.check_share, name="check_share")
        likely = None if self.likely_radius is None else positive(self.likely_radius, name="likely_radius")
        settle(self, likely_radius=likely, preference=nonnegative(self.preference, name="preference"))
        _ = [self._means(self._within(self.grid.middle, radius)) for radius in self.radii]  # Refuses unfit noise.

    @property
    def centre(self) -> Quantile:
        """What finds the centre."""
        return Quantile(
            quantile=Fraction(1, 2), epsilon=self.epsilon * self.centre_share, grid=self.grid, relation=self.relation
        )

    @property
    def radii(self) -> tuple[int, ...]:
        """The radii to choose from, in grid steps."""
        last = _FINENESS * self.grid.width.bit_length()
        return tuple(sorted({math.floor(2 ** (power / _FINENESS)) for power in range(last + 1)}))

    @property
    def event(self) -> Event:
        return Composed([self.centre.event, BoundedRange(self.epsilon * self.radius_share), self._mean_event])

    @property
    def _mean_event(self) -> Event:
        """What any of the means spends: for each of the bounds the noise is in proportion to them."""
        if isinstance(self.noise, GaussianNoise):
            return Gaussian(variance=self.noise.squared_multiplier, squared_sensitivity=1)
        return PureDP(self._rest)

    @property
    def _rest(self) -> Fraction:
        return self.epsilon * (1 - self.centre_share - self.radius_share)

    @property
    def noise(self) -> LaplaceNoise | GaussianNoise:
        """The noise of the mean."""
        if self.delta is None:
            return LaplaceNoise(epsilon=self._rest)
        return _gaussian(self._rest, self.delta, None if self.allow_large_delta else self.public_rows)

    @property
    def _factor(self) -> Fraction:
        """What scores are multiplied by: one row moves all of them the same way, by 1 at most."""
        return selection_factor(epsilon=self.epsilon * self.radius_share, sensitivity=1, monotone=True)

    @property
    def _nats(self) -> list[Fraction]:
        """The public preference against each radius, in nats."""
        if self.likely_radius is None:
            return [place * self.preference for place in range(len(self.radii))]
        likely = bisect_left(self.radii, self.likely_radius / self.grid.step)
        below = [-min(likely - place, _NEAR) * self.preference for place in range(likely + 1)]
        beyond = [_UNLIKELY + place * _RESERVE for place in range(1, len(self.radii) - likely)]
        return (below + beyond)[: len(self.radii)]

    def most_beyond(self, chance: Number) -> float:
        """Return a number of rows such that more are left out with this probability at most, whatever the data.

        The largest radius leaves out nothing, so one that leaves out k rows is at most e^-(k epsilon_2) times its share
        of the prior over that of the largest as likely. Add this up over all radii.

        Args:
            chance: How often more rows may be left out.

        Returns:
            The number of rows.

        Raises:
            InvalidParameter: If `chance` is not between 0 and 1.

        Examples:
            >>> grid = dp.mechanisms.Grid.between(0, 10**6, step=1)
            >>> shares = {"centre_share": "1/40", "radius_share": "1/10", "likely_radius": 50_000}
            >>> mechanism = dp.adaptive.ClippedMean(
            ...     grid=grid, relation=dp.Relation.ADD_REMOVE, epsilon=1, **shares
            ... )
            >>> round(mechanism.most_beyond("0.01"))
            167
        """
        nats = [float(nat) for nat in self._nats]
        odds = math.fsum(math.exp(nats[-1] - nat) for nat in nats) / float(read_share(chance, name="chance"))
        return math.log(odds) / float(self._factor)

    def release(self, data: Data, *, session: Payer | None = None) -> Release[Fraction]:
        """Charge, find the bounds, average within them."""
        with paid(session, self, purpose="mean within bounds found in the data"):
            column = column_of(data)
            if self.public_rows is not None:
                check_length(column, self.public_rows)
            middle = int(self.centre.release(column).value / self.grid.step)
            chosen = categorical(self._scores(column, middle), factor=self._factor)
            found = [mean.release(column) for mean in self._means(self._within(middle, self.radii[chosen]))]
            return replace(_agreed(*found), event=self.event, delta=self.delta)

    def likely_bounds(self, column: Data, middle: int, *, rows: float = 1) -> list[tuple[Grid, float]]:
        """Return bounds around a centre, and how likely each is; a value of a public column stands for `rows` rows."""
        scores = np.array([float(score) for score in self._scores(column, middle, weight=Fraction(rows))])
        chances = np.exp(float(self._factor) * (scores - scores.max()))
        chances /= chances.sum()
        return [
            (self._within(middle, self.radii[place]), float(chances[place]))
            for place in np.flatnonzero(chances > _NEGLIGIBLE).tolist()
        ]

    def distribution(self, data: Data) -> Outcomes:
        """List the law of the centre, the radius and what the mean lists, all in grid steps."""
        column = column_of(data)
        centres = self.centre.distribution(column).masses
        return outcomes.mixture([(mass, self._given(middle, column)) for middle, mass in centres.items()])

    def _given(self, middle: Any, column: Data) -> Outcomes:
        radii = exponential_outcomes(
            dict(zip(self.radii, self._scores(column, middle), strict=True)), factor=self._factor
        )
        return outcomes.mixture(
            [(mass, self._listed(middle, cast(int, radius), column)) for radius, mass in radii.masses.items()]
        )

    def _listed(self, middle: int, radius: int, column: Data) -> Outcomes:
        means = self._means(self._within(middle, radius))
        listed = joint_distribution([part for mean in means for part in mean.measurements], column)
        return outcomes.map(listed, lambda sums: (middle, radius, sums))

    def _scores(self, column: Data, middle: int, *, weight: Fraction = Fraction(1)) -> list[Fraction]:
        distances = np.sort(np.abs(self.grid.indices(column) - middle))
        beyond = distances.size - np.searchsorted(distances, self.radii, side="right")
        return [-rows * weight - nat / self._factor for rows, nat in zip(beyond.tolist(), self._nats, strict=True)]

    def _within(self, middle: int, radius: int) -> Grid:
        """Return the part of the grid that is not farther away from the centre."""
        low, high = max(self.grid.first, middle - radius), min(self.grid.last, middle + radius)
        step, default = self.grid.step, self.grid.default
        return Grid(low=low * step, high=high * step, step=step, default=min(max(default, low * step), high * step))

    def noises_within(self, within: Grid) -> tuple[LaplaceNoise | GaussianNoise, ...]:
        """Return the noise of the mean within found bounds, and of the one that checks it where there is one."""
        if not self.check_share or within.width * _NARROW > self.grid.width:
            return (self.noise,)
        return self.noise.part(1 - self.check_share), self.noise.part(self.check_share)

    def _means(self, within: Grid) -> list[Mean]:
        """Return the mean within found bounds, and the one that checks it, within the whole grid."""
        return [
            Mean(grid=grid, relation=self.relation, noise=noise, public_rows=self.public_rows)
            for grid, noise in zip((within, self.grid), self.noises_within(within), strict=False)
        ]


@final
@dataclass(frozen=True, slots=True)
class _OfEither:
    """The interval of one of two answers, chosen by their values: both intervals hold as often as is asked."""

    chosen: Accuracy

    @property
    def noise(self) -> None:
        return None

    def interval(self, value: Fraction, confidence: Fraction) -> Interval:
        found: Interval = self.chosen.interval(value, 1 - (1 - confidence) / 2)
        return found


def _agreed(answer: Release[Fraction], check: Release[Fraction] | None = None) -> Release[Fraction]:
    """Return the first answer, or the one that it is checked by if the two do not agree."""
    if check is None:
        return answer
    low, high = check.accuracy.interval(check.value, _AGREE)
    taken = answer if low <= answer.value <= high else check
    return replace(taken, accuracy=_OfEither(taken.accuracy))


@lru_cache(64)
def _gaussian(epsilon: Fraction, delta: Fraction, public_rows: int | None) -> GaussianNoise:
    return GaussianNoise.for_epsilon(epsilon, delta, public_rows=public_rows)
