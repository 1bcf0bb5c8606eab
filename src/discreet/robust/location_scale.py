"""The mean and the spread of a column of which neither is known, not even roughly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.exact import Number, positive_integer
from discreet.mechanisms.accuracy import NoInterval
from discreet.mechanisms.budget import GaussianNoise
from discreet.mechanisms.column import Data
from discreet.mechanisms.fields import read_relation, settle
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import Mean, check_size
from discreet.mechanisms.release import Release
from discreet.mechanisms.variance import Variance
from discreet.privacy import events
from discreet.privacy.relation import Relation
from discreet.robust.tails import Tails

__all__ = ["LocationAndScale"]

Floats: TypeAlias = NDArray[np.float64]

_BINS = 64
_EDGES = tuple(np.linspace(-1.0, 1.0, _BINS + 1).tolist())
_REACHES = tuple((2.0 ** np.arange(-8.0, 6.01)).tolist())  # In half widths of the last window.
_ZOOMS, _TAILS, _MEAN, _SPREAD = Fraction(3, 10), Fraction(1, 20), Fraction(45, 100), Fraction(2, 10)
_COUNT_SHARE = Fraction(1, 10)  # Of what the mean gets, under add-remove.
_FINENESS = 1 << 20  # Steps in half of the last window.
_REASON = NoInterval(
    reason="mean and deviation are those of values clamped to bounds which earlier rounds found; what clamping changed "
    "depends on the data"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocationAndScale:
    """Release the mean and the standard deviation of a column within bounds that may be a million times too wide.

    Rounds of noisy histograms of 64 bins close in on the middle half of the values; then noisy counts tell how far
    from there values reach, and mean and variance are measured within bounds that few values exceed.

    Guarantee   Gaussian privacy with the mu of `noise`, for everything together.
    Theorem     Every round counts or adds up values within bounds that follow from public numbers and from earlier
                rounds; the squares of their mu add up. [BDKU20, DRS22]
    Utility     an error of a few deviations / (mu n) in both, if a quarter of the values is far above the noise on a
                count. Values far out are pulled in.
    """

    grid: Grid  # of the declared bounds; as fine as a deviation at least
    relation: Relation
    noise: GaussianNoise
    size: int | None = None  # the public number of values, under replace-one
    rounds: int = 5  # each narrows the window to a sixteenth at best

    def __post_init__(self) -> None:
        read_relation(self.relation)
        settle(
            self,
            size=check_size(self.relation, self.size, least=2),
            rounds=positive_integer(self.rounds, name="rounds"),
        )
        if self.rounds > 64:
            raise InvalidParameter("rounds must be at most 64")
        _ = self.zooms, self.tails, self.measured(_Window(self.grid.middle, self.grid.width // 2 + 1))

    @classmethod
    def between(
        cls, bounds: tuple[Number, Number], *, relation: Relation, noise: GaussianNoise, size: int | None = None
    ) -> LocationAndScale:
        """Make a grid that is fine enough to find a spread of a millionth of the bounds."""
        low, high = bounds
        coarse = Grid.between(low, high)
        fine = Grid.between(low, high, step=coarse.step / 10**6)
        return cls(grid=fine, relation=relation, noise=noise, size=size)

    @property
    def zooms(self) -> Tails:
        """The histogram of a round."""
        return self._tails((_EDGES,), _ZOOMS / self.rounds)

    @property
    def tails(self) -> Tails:
        """How far values reach."""
        return self._tails((_REACHES,), _TAILS)

    @property
    def event(self) -> events.GDP:
        return events.GDP(mu_squared=(_ZOOMS + _TAILS + _MEAN + _SPREAD) / self.noise.squared_multiplier)

    def measured(self, window: _Window) -> tuple[Mean, Variance]:
        """What is measured in the end, in steps of the grid."""
        unit = max(1, window.half // _FINENESS)
        reach = -(-window.half // unit)
        first, last = self.grid.first // unit, -(-self.grid.last // unit)
        place = min(max(round(window.centre / unit), first), last)
        grid = Grid(
            low=Fraction(max(place - reach, first) * unit),  # Nothing lies outside of the declared bounds.
            high=Fraction(min(place + reach, last) * unit),
            step=Fraction(unit),
            default=Fraction(place * unit),
        )
        mean = Mean(
            grid=grid, relation=self.relation, noise=self.noise.part(_MEAN), size=self.size, count_share=_COUNT_SHARE
        )
        return mean, Variance(grid=grid, relation=self.relation, noise=self.noise.part(_SPREAD), size=self.size)

    def release(self, data: Data) -> Release[tuple[Fraction, ...]]:
        """Release the mean and the deviation."""
        values = self.grid.indices(data)
        if self.size is not None and len(values) != self.size:
            raise InvalidParameter("the data do not have the declared number of rows")
        mean, variance = self.measured(self._window(values))
        average, squares = mean.release(values).value, variance.release(values).value
        step = self.grid.step
        return Release(
            value=(average * step, Fraction(math.sqrt(max(squares, Fraction(0)))) * step),
            event=self.event,
            relation=self.relation,
            accuracy=_REASON,
            labels=("mean", "deviation"),
            delta=self.noise.delta,
        )

    def _tails(self, levels: tuple[tuple[float, ...], ...], share: Fraction) -> Tails:
        spent = share / self.noise.squared_multiplier
        return Tails(levels=levels, relation=self.relation, mu_squared=spent, sure=3.0)

    def _window(self, values: NDArray[np.int64]) -> _Window:
        """Find bounds that few values exceed."""
        window = _Window(self.grid.middle, self.grid.width // 2 + 1)
        for _ in range(self.rounds):
            (counts,) = self.zooms.noisy([np.clip(window.inside(values), -1.0, 1.0)])
            window = window.narrowed(counts)
        beyond = math.sqrt(self.noise.squared_multiplier / _MEAN)
        (reach,) = self.tails.chosen([np.abs(window.inside(values))], beyond)
        widest = self.grid.width  # Wider bounds hold nothing more.
        return _Window(window.centre, min(math.ceil(window.half * reach), widest))


@final
@dataclass(frozen=True, slots=True)
class _Window:
    """Where to look, in steps of the grid. It is public: the bounds, or what noisy counts told."""

    centre: int
    half: int  # of its width

    def inside(self, values: NDArray[np.int64]) -> Floats:
        """Return where values lie, the ends being -1 and 1: each by itself, differences being exact."""
        places: Floats = (values - self.centre) / self.half
        return places

    def narrowed(self, counts: NDArray[np.int64]) -> _Window:
        """Return the window of the middle half of the values, and a bin on each side of it."""
        reached = np.cumsum(counts)
        if reached[-1] <= 0:
            return self
        first, last = (int(np.argmax(reached >= share * reached[-1])) for share in (0.25, 0.75))
        last = max(first, last)
        middle = (first + last + 1) / _BINS - 1.0
        half = (last - first + 3) / _BINS
        return _Window(self.centre + round(middle * self.half), max(1, math.ceil(half * self.half)))
