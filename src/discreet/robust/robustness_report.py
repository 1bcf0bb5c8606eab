"""Privacy and robustness side by side: what bad rows do to a plain, a robust and a private estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import plots
from discreet.adaptive.approximate_recipes import laplace
from discreet.adaptive.noise_recipes import Recipe, best_recipe, polynomial
from discreet.adaptive.order_queries import CentralMeanQuery, WinsorisedMeanQuery
from discreet.adaptive.smooth_mechanisms import computed_beta
from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none, integer, positive
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import Mean as PrivateMean
from discreet.privacy.not_private import NotPrivate
from discreet.privacy.relation import Relation
from discreet.robust.functionals import (
    Functional,
    HodgesLehmann,
    Mean,
    MedianAbsoluteDeviation,
    MLocation,
    TrimmedMean,
    WinsorisedMean,
)
from discreet.robust.influence_functions import as_functional, breakdown_point, influence_function
from discreet.robust.locations import Newton, PrivateLocation
from discreet.robust.loss_functions import Floats, Psi, Quantile
from discreet.robust.m_estimates import read_sample
from discreet.schema.columns import Bounds, pair_of

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "CONFIDENCE",
    "CorruptedSample",
    "Effect",
    "EstimateStanding",
    "Kind",
    "NoisyMean",
    "PrivateVersion",
    "RobustnessReport",
    "SampledVersion",
    "SmoothVersion",
    "estimate",
    "is_monotone",
    "private_version",
    "robustness_report",
    "worst_sample",
]

# --- robustness_report: Privacy and robustness side by side, for the data at hand. ---
#
# A robust estimate hardly moves when one row does, so little noise hides that row; and what hides one row bounds what
# it can do. [DL09] The report is for the custodian: it is made from the data themselves.


_MEDIAN = Quantile()
_PERCENT = (1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50)  # Of bad rows, by default, rounded up.
_SEARCHED = 129  # Points at which an influence that rises and falls is looked at.
_KINDS: tuple[Kind, Kind] = ("corrupted", "mislabelled")


def robustness_report(
    values: Any,
    *,
    bounds: Bounds,
    epsilon: Number,
    delta: Number | None = None,
    estimator: Functional | Psi = _MEDIAN,
    others: Any = None,
    rows: Sequence[int] | None = None,
    step: Number | None = None,
) -> NotPrivate[RobustnessReport]:
    """Compare the mean, a robust estimator (by default the median) and its private version on given data.

    Values are clamped to the bounds. Corrupted rows have any other value within them. Mislabelled rows are missing, as
    they were taken for those of another label; if the values of that label are named as `others`, the two labels
    exchange rows. `rows` are the numbers of bad rows to look at. The private version is that for epsilon (and delta)
    under replace-one.

    For estimates that never fall when a value rises (mean, quantiles, trimmed means, Huber with a fixed scale) the
    effects are exact. For others (Tukey, a scale that comes from the data) they are the worst that a search found.

    Args:
        values: The private values.
        bounds: The public bounds that they are clamped to.
        epsilon: The epsilon of the private version.
        delta: The delta of the private version, where it needs one.
        estimator: The robust estimator: a functional such as `TrimmedMean(0.1)`, or a loss such as `Huber()`.
        others: The private values of the other label.
        rows: The numbers of bad rows to look at.
        step: The grid of the values.

    Returns:
        The report, marked as not private; it prints as a table, and `plot()` draws it.

    Raises:
        InvalidParameter: If there are no values, or a number is out of range.

    Examples:
        >>> ages = [18 + (37 * k) % 61 for k in range(61)]
        >>> report = dp.robust.robustness_report(ages, bounds=(0, 120), epsilon=1, rows=[1, 5])
        >>> report.value.size
        61
    """
    grid = Grid.between(*pair_of(bounds), step=step)
    functional, trouble = as_functional(estimator), _read(values, others, grid)
    budget, chance = positive(epsilon, name="epsilon"), exact_or_none(delta, name="delta")
    private = private_version(functional, grid=grid, epsilon=budget, delta=chance)
    counts = _read_rows(rows, trouble.sample.size)
    report = RobustnessReport(
        size=trouble.sample.size,
        bounds=trouble.bounds,
        budget=f"ε = {float(budget):g}" + ("" if chance is None else f", δ = {float(chance):g}"),
        plain=_standing(Mean(), trouble),
        robust=_standing(functional, trouble),
        private=None if private is None else private.name,
        exchanged=others is not None,
        effects=tuple(_effects(functional, private, trouble, counts)),
    )
    return NotPrivate(report)


def _read(values: Any, others: Any, grid: Grid) -> CorruptedSample:
    bounds = float(grid.low), float(grid.high)
    known = None if others is None else np.sort(read_sample(others).clip(*bounds))
    return CorruptedSample(np.sort(read_sample(values).clip(*bounds)), bounds, known)


def _read_rows(rows: Sequence[int] | None, size: int) -> list[int]:
    if rows is None:
        return sorted({0, 1, *(-(-size * percent // 100) for percent in _PERCENT)})
    named = {integer(count, name="a number of bad rows") for count in rows}
    if not named or min(named) < 0 or max(named) > size:
        raise InvalidParameter("rows must name numbers of bad rows, from 0 to the number of rows")
    return sorted(named | {0})


def _standing(functional: Functional, trouble: CorruptedSample) -> EstimateStanding:
    before = estimate(functional, trouble.sample)
    moved = estimate(functional, worst_sample(functional, trouble, "corrupted", 1))
    return EstimateStanding(
        name=_name(functional),
        estimate=before,
        local_sensitivity=abs(moved - before),
        gross_error_sensitivity=_largest_influence(functional, trouble),
        breakdown=breakdown_point(functional),
        exact=is_monotone(functional),
    )


def _largest_influence(functional: Functional, trouble: CorruptedSample) -> float:
    """Return the largest influence of a point within the bounds; where it rises throughout, that of a bound."""
    points = np.linspace(*trouble.bounds, 2 if is_monotone(functional) else _SEARCHED)
    return float(np.abs(influence_function(functional, points, values=trouble.sample).value).max())


def _effects(
    functional: Functional, private: PrivateVersion | None, trouble: CorruptedSample, counts: list[int]
) -> Iterator[Effect]:
    before, mean = estimate(functional, trouble.sample), float(trouble.sample.mean())
    for kind in _KINDS:
        for count in (count for count in counts if count <= trouble.most(kind)):
            worst = worst_sample(functional, trouble, kind, count)
            yield Effect(
                kind=kind,
                rows=count,
                plain=abs(float(worst_sample(Mean(), trouble, kind, count).mean()) - mean),
                robust=abs(estimate(functional, worst) - before),
                private=None if private is None else _private_error(private, trouble.sample, worst),
            )


def _private_error(private: PrivateVersion, sample: Floats, worst: Floats) -> float:
    return abs(private.centre(worst) - private.centre(sample)) + private.spread(worst)


def _name(functional: Functional) -> str:
    """Name an estimator as people do."""
    match functional:
        case Mean():
            return "mean"
        case TrimmedMean() | WinsorisedMean():
            kind = "trimmed" if isinstance(functional, TrimmedMean) else "Winsorised"
            return f"{float(functional.share):.3g}-{kind} mean"
        case HodgesLehmann():
            return "Hodges–Lehmann"
        case MedianAbsoluteDeviation():
            return "median deviation"
        case MLocation(psi=Quantile() as psi):
            return "median" if psi.q * 2 == 1 else f"{float(psi.q):.3g}-quantile"
        case MLocation():
            return type(functional.psi).__name__
        case _:
            return type(functional).__name__


# --- corruption: What bad rows can do to an estimate: the data sets that are worst for it. All of this is private. ---
#
# Of two samples of one size, sorted, let one be nowhere below the other. An estimate that never falls when a value
# rises is then not lower for the first. So for such an estimate it is worst to move the lowest rows to the upper bound,
# or the highest to the lower one; for others the same ways, and some more, are a search.


Kind: TypeAlias = Literal["corrupted", "mislabelled"]

_POINTS = 25  # To which rows are moved in a search.
_WINDOWS = 5  # Of neighbouring rows, to be moved or to go.


@final
@dataclass(frozen=True, slots=True, eq=False)
class CorruptedSample:
    """A sample and how its rows may go wrong."""

    sample: Floats  # sorted, within the bounds
    bounds: tuple[float, float]
    others: Floats | None  # sorted: the rows of another label, if they are known

    def most(self, kind: Kind) -> int:
        """Return how many rows can go wrong so that something is left."""
        if kind == "corrupted":
            return self.sample.size
        return self.sample.size - 1 if self.others is None else min(self.sample.size, self.others.size)

    def samples(self, kind: Kind, count: int, *, search: bool) -> Iterator[Floats]:
        """Make the samples in which `count` rows went wrong: the two worst ones, or those of a search.

        A corrupted row has another value within the bounds. A mislabelled one is missing, as it was taken for one of
        the others; if these are known, a row of theirs was taken for one of this sample in exchange.
        """
        if not count:
            yield self.sample
        elif kind == "corrupted":
            yield from self._corrupted(count, search)
        else:
            yield from self._mislabelled(count, search)

    def _corrupted(self, count: int, search: bool) -> Iterator[Floats]:
        low, high = self.bounds
        points = np.linspace(low, high, _POINTS) if search else np.array([high, low])
        for start, point in _pairs(self._starts(self.sample, count, search), points, search):
            yield np.sort(np.append(_without(self.sample, start, count), np.full(count, point)))

    def _mislabelled(self, count: int, search: bool) -> Iterator[Floats]:
        leaving = self._starts(self.sample, count, search)
        if self.others is None:
            yield from (_without(self.sample, start, count) for start in leaving)
            return
        entering = self._starts(self.others, count, search)[::-1]
        for start, first in _pairs(leaving, entering, search):
            yield np.sort(np.append(_without(self.sample, start, count), self.others[first : first + count]))

    @staticmethod
    def _starts(rows: Floats, count: int, search: bool) -> NDArray[np.int64]:
        """Return where windows of `count` rows begin: the lowest and the highest, or some between them too."""
        last = rows.size - count
        return np.linspace(0, last, _WINDOWS if search else 2).astype(np.int64)


def _pairs(first: NDArray[Any], second: NDArray[Any], search: bool) -> Iterator[tuple[Any, Any]]:
    """Pair two lists, or all of their entries."""
    if search:
        yield from ((one, other) for one in first.tolist() for other in second.tolist())
    else:
        yield from zip(first.tolist(), second.tolist(), strict=True)


def _without(rows: Floats, start: int, count: int) -> Floats:
    return np.concatenate([rows[:start], rows[start + count :]])


def is_monotone(functional: Functional) -> bool:
    """Tell whether the estimate is known never to fall when a value rises; then two samples of a kind are the worst."""
    if isinstance(functional, MLocation):
        return functional.psi.is_monotone and functional.scale is not None
    return isinstance(functional, (Mean, TrimmedMean, WinsorisedMean, HodgesLehmann))


def estimate(functional: Functional, sample: Floats) -> float:
    """Return the estimate of a sample whose rows count alike."""
    return functional.estimate(sample, np.full(sample.size, 1 / sample.size))


def worst_sample(functional: Functional, trouble: CorruptedSample, kind: Kind, count: int) -> Floats:
    """Return the sample with so many bad rows that moves the estimate farthest, of all or of those of a search."""
    before = estimate(functional, trouble.sample)
    candidates = trouble.samples(kind, count, search=not is_monotone(functional))
    return max(candidates, key=lambda sample: abs(estimate(functional, sample) - before))


# --- robustness ---
# A report on what bad rows can do to a plain, a robust and a private estimate, as text and as a picture.


_MEANING = {
    "corrupted": "rows with any other value within the bounds",
    "mislabelled": "rows taken for those of another label, and missing here",
    "exchanged": "rows exchanged with those of the other label",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateStanding:
    """Where an estimate stands before anything goes wrong."""

    name: str
    estimate: float
    local_sensitivity: float  # how far one row with another value moves it
    gross_error_sensitivity: float  # its largest influence within the bounds, per share of rows
    breakdown: float  # the share of bad rows below which it cannot be carried off, for many rows
    exact: bool  # or else its local sensitivity and the effects on it are the worst that a search found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How far some bad rows can move an estimate."""

    kind: Kind
    rows: int
    plain: float
    robust: float
    private: float | None  # where the robust one is worst: the shift, and what the noise exceeds once in twenty times


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessReport:
    """What bad rows can do to three estimates. It is a fact about the data: for the custodian only."""

    size: int
    bounds: tuple[float, float]
    budget: str
    plain: EstimateStanding
    robust: EstimateStanding
    private: str | None  # how the private estimate works
    exchanged: bool  # whether mislabelled rows came from another label in exchange
    effects: tuple[Effect, ...]

    def effects_of(self, kind: Kind) -> tuple[Effect, ...]:
        """Return the effects of one kind of bad rows."""
        return tuple(effect for effect in self.effects if effect.kind == kind)

    def plot(self, kind: Kind = "corrupted") -> alt.LayerChart:
        """Draw how far each estimate can be off against the number of bad rows."""
        effects = self.effects_of(kind)
        if len(effects) < 2:
            raise InvalidParameter('kind must be "corrupted" or "mislabelled", with two numbers of rows at least')
        rows = [float(effect.rows) for effect in effects]
        curves = {self.plain.name: (rows, [effect.plain for effect in effects])}
        curves.setdefault(self.robust.name, (rows, [effect.robust for effect in effects]))
        private = [effect.private for effect in effects if effect.private is not None]
        if private:
            curves[f"private {self.robust.name}"] = (rows, private)
        return plots.shifts(curves, what=f"{kind} rows", title="NOT PRIVATE: what bad rows can do")

    def __str__(self) -> str:
        return "\n".join([*_standings(self), *_tables(self)])

    __repr__ = __str__


def _standings(report: RobustnessReport) -> Iterator[str]:
    low, high = report.bounds
    plain, robust = report.plain, report.robust
    yield f"{report.size:,} values between {low:g} and {high:g}"
    yield _row("", plain.name, robust.name)
    yield _row("estimate", plain.estimate, robust.estimate)
    yield _row("local sensitivity", plain.local_sensitivity, robust.local_sensitivity)
    yield _row("gross error sensitivity", plain.gross_error_sensitivity, robust.gross_error_sensitivity)
    yield _row("breakdown point", plain.breakdown, robust.breakdown)


def _tables(report: RobustnessReport) -> Iterator[str]:
    for kind in ("corrupted", "mislabelled"):
        effects = report.effects_of("corrupted" if kind == "corrupted" else "mislabelled")
        yield ""
        yield f"{kind}: {_MEANING['exchanged' if report.exchanged and kind == 'mislabelled' else kind]}"
        yield _row("rows", report.plain.name, report.robust.name, *(["private"] if report.private else []))
        for effect in effects:
            told = [] if effect.private is None else [effect.private]
            yield _row(f"{effect.rows:,} ({effect.rows / report.size:.1%})", effect.plain, effect.robust, *told)
    yield ""
    yield from _notes(report)


def _notes(report: RobustnessReport) -> Iterator[str]:
    if report.robust.exact:
        yield "No choice of so many rows does more to the two estimates without noise."
    else:
        yield f"What rows do to {report.robust.name} is the worst that a search found; there may be worse."
    if report.private:
        yield f"private: {report.private}, {report.budget}, replace-one; the shift and 95 % of the noise."


def _row(head: str, *cells: str | float) -> str:
    written = (cell if isinstance(cell, str) else f"{cell:.4g}" for cell in cells)
    return f"{head:<24}" + "".join(f"{cell:>18}" for cell in written)


# --- private_versions ---
# Private versions of estimates, as a report looks at them: where they are centred and how far their noise spreads.
#
# The spread of noise that follows the data is private; it is for `NotPrivate` reports only.


CONFIDENCE = Fraction(95, 100)
_DRAWS = 60  # Releases by which a spread is measured.


class PrivateVersion(Protocol):
    """A private estimate under replace-one. What its methods return is private."""

    @property
    def name(self) -> str:
        """How it works, in a few words."""

    def centre(self, sample: Floats, /) -> float:
        """Return what it releases before noise."""

    def spread(self, sample: Floats, /) -> float:
        """Return what its noise exceeds in one of twenty releases."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMean:
    """The mean with noise for its global sensitivity."""

    grid: Grid
    epsilon: Fraction

    @property
    def name(self) -> str:
        return "the mean with Laplace noise"

    def centre(self, sample: Floats) -> float:
        return float(sample.mean())

    def spread(self, sample: Floats) -> float:
        noise, size = LaplaceNoise(epsilon=self.epsilon), len(sample)
        mechanism = PrivateMean(grid=self.grid, relation=Relation.REPLACE_ONE, noise=noise, public_rows=size)
        (measurement,) = mechanism.measurements
        _, high = measurement.accuracy(self.grid.step / size).interval(Fraction(0), CONFIDENCE)
        return float(high)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothVersion:
    """An order statistic or a mean of the middle, with noise for its smooth sensitivity."""

    functional: Quantile | TrimmedMean | WinsorisedMean
    grid: Grid
    recipe: Recipe

    @property
    def name(self) -> str:
        return "smooth sensitivity"

    def centre(self, sample: Floats) -> float:
        return float(self._query(len(sample)).value(sample) * self.grid.step)

    def spread(self, sample: Floats) -> float:
        query = self._query(len(sample))
        beta = computed_beta(query, self.recipe)
        bound = query.smooth_bound(sample, beta).approximate(float(beta))
        return float(self.grid.step) * (bound * self.recipe.half_width(CONFIDENCE) + 0.5)

    def _query(self, size: int) -> CentralMeanQuery | WinsorisedMeanQuery:
        if isinstance(self.functional, WinsorisedMean):
            return WinsorisedMeanQuery(grid=self.grid, public_rows=size, moved=_ends(self.functional.share, size))
        if isinstance(self.functional, TrimmedMean):
            ends = _ends(self.functional.share, size)
            return CentralMeanQuery(grid=self.grid, public_rows=size, lower=ends + 1, upper=size - ends)
        # Where q n is whole, the quantile is the middle of two values.
        rank = exact(self.functional.q) * size
        return CentralMeanQuery(grid=self.grid, public_rows=size, lower=math.ceil(rank), upper=math.floor(rank) + 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SampledVersion:
    """An M-estimate found by noisy steps. Its spread is measured: some releases of it are made, and thrown away."""

    functional: MLocation
    grid: Grid
    noise: Noise

    @property
    def name(self) -> str:
        return "noisy Newton steps"

    def centre(self, sample: Floats) -> float:
        return self.functional.estimate(sample, np.full(sample.size, 1 / sample.size))

    def spread(self, sample: Floats) -> float:
        middle, mechanism = self.centre(sample), self._mechanism
        errors = sorted(abs(float(mechanism.release(sample).value) - middle) for _ in range(_DRAWS))
        return errors[math.ceil(_DRAWS * CONFIDENCE) - 1]

    @property
    def _mechanism(self) -> PrivateLocation:
        return PrivateLocation(
            psi=self.functional.psi,
            grid=self.grid,
            relation=Relation.REPLACE_ONE,
            noise=self.noise,
            schedule=Newton(inference=False),
            scale=None if self.functional.scale is None else exact(self.functional.scale),
        )


def _ends(share: Number, size: int) -> int:
    return math.floor(exact(share) * size)


def private_version(
    functional: Functional, *, grid: Grid, epsilon: Fraction, delta: Fraction | None
) -> PrivateVersion | None:
    """Return the private version of an estimator at a budget, if there is one here."""
    if isinstance(functional, Mean):
        return NoisyMean(grid=grid, epsilon=epsilon)
    if isinstance(functional, (TrimmedMean, WinsorisedMean)):
        return SmoothVersion(functional=functional, grid=grid, recipe=_recipe(epsilon, delta))
    if isinstance(functional, MLocation):
        if isinstance(functional.psi, Quantile):
            return SmoothVersion(functional=functional.psi, grid=grid, recipe=_recipe(epsilon, delta))
        noise: Noise = LaplaceNoise(epsilon=epsilon)
        if delta is not None:
            noise = GaussianNoise.for_epsilon(epsilon, delta)
        return SampledVersion(functional=functional, grid=grid, noise=noise)
    return None


def _recipe(epsilon: Fraction, delta: Fraction | None) -> Recipe:
    if delta is None:
        return best_recipe(lambda beta: polynomial(epsilon, beta=beta))
    return best_recipe(lambda beta: laplace(epsilon, delta, beta=beta))
