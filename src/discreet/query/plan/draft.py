"""A plan in the making: what is offered, what is measured, and the noise that is chosen for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import Number as ExactNumber
from discreet.exact import positive, positive_integer
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.parameters import read_confidence, read_flag, settle, small_delta
from discreet.mechanisms.quotient_intervals import half_width
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.privacy.events import ApproxDP, BoundedRange, Composed, DiscreteLaplace, Event, Gaussian, PureDP, Repeated
from discreet.privacy.relation import Relation
from discreet.query.ast import Query
from discreet.query.catalogue import Catalogue
from discreet.query.engine import StageColumn
from discreet.query.plan.residuals import SharedNoise
from discreet.query.policy import FamilyChoice

if TYPE_CHECKING:
    from discreet.adaptive.truncated_histogram import TruncatedHistogram

__all__ = [
    "MOST_EPSILON",
    "MOST_RHO",
    "Added",
    "Averaged",
    "Bundle",
    "BundledDraft",
    "Chooser",
    "CountTerm",
    "FinalDraft",
    "Footprint",
    "LimitedDraft",
    "MeasuredDraft",
    "ModePick",
    "Nesting",
    "Noising",
    "Number",
    "NumberNoise",
    "Pick",
    "Picked",
    "PlanRequest",
    "QuantilePick",
    "QuantilesPick",
    "Recipe",
    "SensitivityDraft",
    "Spend",
    "SpreadTerm",
    "TallySpec",
    "Tighter",
    "choices_spent",
    "known_as",
    "together",
]

# --- spend: What an analyst offers for an answer: a budget, or an error from which the budget follows. ---


# Above these an answer protects nobody: the chance of anything may change by a factor of e^100 with one person.
MOST_EPSILON = Fraction(100)
MOST_RHO = Fraction(50)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Exactly one of `epsilon`, `rho` and `error`. There is no default: how much to spend is the analyst's word.

    `delta` is for what needs one: groups whose keys are not public, and Gaussian noise by (epsilon, delta). `error` is
    the largest ± that is wanted, or, if `relative`, the largest ± as a part of the expected value; it is reached by the
    least epsilon, or, if `concentrated`, by the least rho. With `quantile_intervals` quantiles pay for a ± of theirs.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    error: Fraction | None = None
    relative: bool = False
    concentrated: bool = False
    expected: int | None = None  # rows of a typical group, as the analyst believes; never read from data
    sizes: Mapping[str, Fraction] = field(default_factory=dict)  # expected values by column, as an earlier answer has
    confidence: Fraction = Fraction(95, 100)
    quantile_intervals: bool = False
    population: bool = False  # of means and quantiles: whether the ± is for what the rows were drawn from

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.epsilon, self.rho, self.error)) != 1:
            raise InvalidParameter("say exactly one of epsilon, rho and error: there is no default")
        settle(
            self,
            epsilon=_read(self.epsilon, "epsilon", MOST_EPSILON),
            rho=_read(self.rho, "rho", MOST_RHO),
            error=None if self.error is None else positive(self.error, name="error"),
            delta=None if self.delta is None else small_delta(self.delta, public_rows=None),
            relative=read_flag(self.relative, name="relative"),
            concentrated=read_flag(self.concentrated, name="concentrated"),
            expected=None if self.expected is None else positive_integer(self.expected, name="expected"),
            sizes={name: positive(size, name="an expected size") for name, size in dict(self.sizes).items()},
            confidence=read_confidence(self.confidence),
            quantile_intervals=read_flag(self.quantile_intervals, name="quantile_intervals"),
            population=read_flag(self.population, name="population"),
        )
        if (self.relative or self.concentrated) and self.error is None:
            raise InvalidParameter("relative and concentrated say what error means: give an error")

    def __hash__(self) -> int:
        return hash((self.epsilon, self.delta, self.rho, self.error, self.relative, self.expected, self.confidence))


def _read(value: ExactNumber | None, name: str, most: Fraction) -> Fraction | None:
    if value is None:
        return None
    spent = positive(value, name=name)
    if spent > most:
        raise InvalidParameter(
            f"{name} must be at most {most}: beyond it nobody is protected, and noise would still be drawn; for exact "
            "numbers ask whoever holds the data"
        )
    return spent


# --- noise_plan: The noise of a plan: of every number, of the choice of groups, and of choices within groups. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NumberNoise:
    """The noise of one number in every group.

    A number whose noise is very wide is first rounded to a multiple of a public `unit`, half up; then the most that one
    unit of privacy changes is rounded up. Samplers have a limit, and 2^38 units to the noise lose nothing.
    """

    law: DiscreteLaplaceLaw | RoundedGaussianLaw  # in units
    change: int  # by one unit of privacy that comes into one group or leaves it, in units
    unit: int = 1  # in grid steps
    spread: int | None = None  # over how many groups one unit changes it so, where these are not `max_groups`
    exchange: int | None = None  # the same, by one whose rows of the group are exchanged; None under add-remove

    def reach(self, confidence: Fraction) -> Fraction:
        """Return the least half width, in grid steps, that encloses the exact number with this probability."""
        return self.unit * half_width(self.law, confidence) + self.slack

    @property
    def slack(self) -> Fraction:
        """How far rounding to the unit moves a number, in grid steps."""
        return Fraction(self.unit, 2) if self.unit > 1 else Fraction(0)

    def rounded(self, exact: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count exact numbers in units."""
        return exact if self.unit == 1 else (2 * exact + self.unit) // (2 * self.unit)

    def spread_as(self, variance: Fraction) -> NumberNoise:
        """Return noise with another variance, for what is told of it."""
        return replace(self, law=RoundedGaussianLaw(variance))

    def draw(self, groups: int) -> NDArray[np.int64]:
        """Draw fresh noise for every group, in units."""
        if isinstance(self.law, DiscreteLaplaceLaw):
            return noise.discrete_laplace(self.law.scale, groups)
        return noise.rounded_gaussian(size=groups, variance=self.law.variance)


@final
@dataclass(frozen=True, slots=True)
class Footprint:
    """In which groups of an answer the rows of one unit differ between neighbours.

    Theorem     Add-remove: it comes into at most L groups, or leaves them. Replace-one: it leaves at most L groups and
                comes into at most L, of which it has rows in c before and after; c is anything from `common` to L, and
                with G groups in all at least 2 L - G. What is lost adds up over groups, and is largest at one of the
                two ends, since it is linear in c.
    """

    groups: int  # L
    common: int | None = None  # the least c; None under add-remove

    def most(self, change: Fraction | int, exchange: Fraction | int) -> Fraction:
        """Return the most that is lost in all groups together, by what is lost in one of either kind."""
        if self.common is None:
            return Fraction(self.groups * change)
        ends = (self.common, self.groups)
        return Fraction(max(c * exchange + 2 * (self.groups - c) * change for c in ends))


@final
@dataclass(frozen=True, slots=True)
class Bundle:
    """Numbers of which each row moves one at most: together they are paid like the dearest of them.

    Where a unit's rows are exchanged, those that go may be of one number and those that come of another: then a bundle
    of several is paid like the two dearest. What is lost is convex in how the rows are spread, so nothing else is more.
    """

    noises: tuple[NumberNoise, ...]

    def pure(self, footprint: Footprint) -> Event:
        """Return what Laplace noise spends.

        With one scale for all, the numbers are one vector whose l1 sensitivity is that of the dearest.
        """
        scales = {one.law.scale for one in self.noises if isinstance(one.law, DiscreteLaplaceLaw)}
        if len(scales) == 1:
            most = self._most(footprint, lambda one, change: Fraction(change))
            return DiscreteLaplace(scale=next(iter(scales)), sensitivity=int(most))
        return PureDP(self._most(footprint, lambda one, change: change / one.law.scale))  # type: ignore[union-attr]

    def mu_squared(self, footprint: Footprint) -> Fraction:
        """Return what Gaussian noise spends."""
        return self._most(footprint, lambda one, change: change**2 / one.law.variance)  # type: ignore[union-attr]

    def _most(self, footprint: Footprint, lost: Callable[[NumberNoise, int], Fraction]) -> Fraction:
        """Return the most that is lost, by what a number loses that changes by so much in one group."""
        if footprint.common is None:
            return max((one.spread or footprint.groups) * lost(one, one.change) for one in self.noises)
        alone = sorted((lost(one, one.change) for one in self.noises), reverse=True)
        exchanged = [lost(one, one.change if one.exchange is None else one.exchange) for one in self.noises]
        return footprint.most(alone[0], max(*exchanged, sum(alone[:2], Fraction(0)) if len(alone) > 1 else Fraction(0)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """How a value is chosen in every group: exponentially, or by permute-and-flip where only epsilon counts.

    Several values that are chosen together take several steps, each of them with a part of epsilon, or a single one
    for all at once: that one is exponential, and of bounded range, also where others are by permute-and-flip.
    """

    epsilon: Fraction  # in one group, for one unit
    flips: bool = False
    single: Fraction = Fraction(1)  # the part of it that is spent where a unit comes or goes, its rows not exchanged
    interval: Fraction = Fraction(0)  # the part of it for how wide an interval around the value must be; 0 without one
    steps: tuple[Fraction, ...] = (Fraction(1),)  # of what the values take
    widths: tuple[Fraction, ...] = (Fraction(1),)  # of what the intervals take, one for each value

    def scaled(self, part: int, whole: int) -> Chooser:
        """Return what is spent for whoever moves scores by a part of what it was fitted to."""
        return replace(self, epsilon=self.epsilon * part / whole)

    def event(self, footprint: Footprint) -> Event:
        """Return what is spent in all groups of a unit."""
        times = choices_spent(footprint, self.single, flips=self.flips)
        return together(
            [
                _choices(self.epsilon * share * part, many, flips=self.flips and not (self.at_once and place == 0))
                for place, share in enumerate(self.shares)
                for part, many in times
            ]
        )

    @property
    def at_once(self) -> bool:
        """Whether several values are chosen in one step."""
        return len(self.steps) == 1 < len(self.widths)

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """The parts of epsilon that are spent one after the other: for the values, and for their intervals."""
        values = tuple((1 - self.interval) * step for step in self.steps)
        return (*values, *(self.interval * width for width in self.widths)) if self.interval else values


def choices_spent(footprint: Footprint, single: Fraction, *, flips: bool) -> list[tuple[Fraction, int]]:
    """Return what a unit's choices spend, each as a part of one whose rows are exchanged, and how many spend that.

    Theorem     Two that spend e are within one that spends 2 e, pure or of bounded range, and 2 `single` is 1 at least.
                So with c groups before and after, L pairs of groups pay for all: `common` of them once, the others 2
                `single`. Where squares add up, as many choices that spend the whole may be less.
    """
    if footprint.common is None:
        return [(Fraction(1), footprint.groups)]
    pairs = footprint.groups - footprint.common
    if not flips and 4 * single**2 > 2:
        return [(Fraction(1), 2 * pairs + footprint.common)]
    return [(part, many) for part, many in ((2 * single, pairs), (Fraction(1), footprint.common)) if many]


def _choices(epsilon: Fraction, times: int, *, flips: bool) -> Event:
    spent = PureDP(epsilon) if flips else BoundedRange(epsilon)
    return spent if times == 1 else Repeated(spent, times)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Noising:
    """All noise that is added, and what it spends."""

    gaussian: bool
    numbers: tuple[NumberNoise, ...]
    bundles: tuple[Bundle, ...]
    selection: TruncatedHistogram | None  # what shows groups whose keys are not public
    max_groups: int
    common: int | None = None  # of the footprint; None under add-remove
    shared: SharedNoise | None = None  # what is drawn instead for a whole family of tables, and spends no more

    @property
    def footprint(self) -> Footprint:
        return Footprint(self.max_groups, self.common)

    def on(self, place: int) -> NumberNoise:
        """Return the noise that falls on a number: drawn for it alone as it is priced, or its part of a family's."""
        variance = None if self.shared is None else self.shared.variances[place]
        return self.numbers[place] if variance is None else self.numbers[place].spread_as(variance)

    def scaled(self, part: int, whole: int) -> Noising:
        """Return the same noise, for whoever changes numbers by a part of what it was fitted to."""

        def one(noise: NumberNoise) -> NumberNoise:
            each, rest = divmod(noise.change, whole)
            if rest:
                raise RuntimeError("noise was fitted to something else than whole units of a chain")
            return replace(noise, change=each * part)

        if self.selection is not None:
            raise RuntimeError("groups of a chain are public")
        bundles = tuple(Bundle(tuple(map(one, bundle.noises))) for bundle in self.bundles)
        return replace(self, numbers=tuple(map(one, self.numbers)), bundles=bundles)

    @property
    def events(self) -> list[Event]:
        """What is spent, one event for all Gaussian noise: it is one vector, scaled coordinate by coordinate."""
        shown = [] if self.selection is None else [ApproxDP(0, self.selection.delta)]
        if not self.gaussian:
            chosen = [] if self.selection is None else [self.selection.event.events[0]]
            return [*chosen, *shown, *(bundle.pure(self.footprint) for bundle in self.bundles)]
        total = sum((bundle.mu_squared(self.footprint) for bundle in self.bundles), Fraction(0))
        if self.selection is not None:
            first = self.selection.event.events[0]
            assert isinstance(first, Gaussian)
            total += first.mu_squared
        return [*([Gaussian(variance=1, squared_sensitivity=total)] if total else []), *shown]


def together(events: list[Event]) -> Event:
    """Return one event for all."""
    return events[0] if len(events) == 1 else Composed(events)


# --- draft: A plan while it is being made: every pass adds what it has decided, from public facts only. ---


class Tighter(Protocol):
    """Limits that an analyst sets below those of the policy."""

    @property
    def max_groups(self) -> int | None: ...

    @property
    def max_rows_per_group(self) -> int | None: ...

    @property
    def max_inner(self) -> int | None: ...

    @property
    def family(self) -> FamilyChoice | None: ...


@final
class TallySpec(Enum):
    """What is added up in a group."""

    ROWS = "rows"
    UNITS = "units"
    COUNT = "count"  # values that are not NULL
    NULLS = "nulls"  # rows whose value is NULL
    TOTAL = "total"
    SQUARES = "squares"
    DISTINCT = "distinct"


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A whole number of every group that is released with noise. Equal ones are one: they are paid once."""

    tallying: TallySpec
    column: int | None = None  # of the stage
    fold: int = 0  # of SQUARES: taken off every square, so that squares lie about zero


@final
@dataclass(frozen=True, slots=True)
class QuantilePick:
    """A grid point that is chosen in every group."""

    column: int
    quantile: Fraction
    grid: Grid


@final
@dataclass(frozen=True, slots=True)
class QuantilesPick:
    """Grid points that are chosen together in every group, none below the one before it."""

    column: int
    quantiles: tuple[Fraction, ...]  # in order
    grid: Grid


@final
@dataclass(frozen=True, slots=True)
class ModePick:
    """A value that is chosen in every group, among public ones."""

    column: int
    candidates: tuple[Hashable, ...]
    places: tuple[int, ...]  # of the candidates, as the stage numbers them


Pick: TypeAlias = QuantilePick | QuantilesPick | ModePick

# How an answer follows from noisy numbers; all of it is post-processing.


@final
@dataclass(frozen=True, slots=True)
class CountTerm:
    """A noisy number itself, or the sum of two."""

    number: int
    also: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Added:
    """A sum: the total about the centre and, where that is not zero, the centre for each value counted."""

    total: int
    count: int | None
    grid: Grid
    centre: int


@final
@dataclass(frozen=True, slots=True)
class Averaged:
    """The centre and the total about it over the count; with squares where the interval is for a population."""

    total: int
    count: int
    grid: Grid
    centre: int
    squares: int | None = None
    fold: int = 0


@final
@dataclass(frozen=True, slots=True)
class SpreadTerm:
    """A variance, or its root."""

    squares: int
    total: int
    count: int
    grid: Grid
    centre: int
    fold: int
    sample: bool
    root: bool


@final
@dataclass(frozen=True, slots=True)
class PairTerm:
    """A covariance, or with sums of squares a correlation, of two columns about their centres.

    The products are whole numbers of steps of their own, about a centre of their own.
    """

    products: int
    totals: tuple[int, int]
    count: int
    squares: tuple[int, int] | None
    grids: tuple[Grid, Grid]
    folds: tuple[int, int]  # of the squares
    of_products: Grid
    centre: int  # of the products, in their steps
    sample: bool

    @property
    def correlates(self) -> bool:
        return self.squares is not None

    @property
    def places(self) -> tuple[int, ...]:
        return (self.products, *(self.squares or ()), *self.totals, self.count)

    @property
    def scale(self) -> Fraction:
        """A step of the products, in products of steps of the columns."""
        return self.of_products.step / (self.grids[0].step * self.grids[1].step)


@final
@dataclass(frozen=True, slots=True)
class Picked:
    """What was chosen; of several values that were chosen together, one."""

    pick: int
    place: int = 0


Recipe: TypeAlias = CountTerm | Added | Averaged | SpreadTerm | PairTerm | Picked


# The stages of a plan. Each pass takes one stage and returns the next, which knows all that the former knew; so what
# takes a stage takes every later one as well, and nobody asks whether something has been decided yet.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is asked, and what is offered for it. Nothing in this or a later stage comes from private data."""

    question: Query
    catalogue: Catalogue
    spend: Spend
    tighter: Tighter | None
    pure: bool


@final
@dataclass(frozen=True, slots=True)
class Nesting:
    """Of a chain: by how many times what one inner unit adds an answer changes, with an outer unit or an inner one.

    Theorem     Given the tags, an outer unit that leaves takes along at most K inner units, all the same way. An inner
                unit that leaves takes itself along and lets in at most one other, the one with the next tag. So where
                one inner unit adds v, with norm s, an outer one adds up to K such vectors and an inner one changes by
                v' - v: norms K s and 2 s, in any norm. Choices that lose ε, or span η, with one inner unit lose
                K ε and 2 ε, by going from one data set to the other in K steps, or two.
    """

    most: int  # K: inner units of an outer one that are counted

    @property
    def outer(self) -> int:
        return self.most

    @property
    def inner(self) -> int:
        return 2

    @property
    def largest(self) -> int:
        """What noise is fitted to."""
        return max(self.outer, self.inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedDraft(PlanRequest):
    """By `bound_contributions`: in how many groups a unit is counted, and with how many rows in each.

    In a table of a `family` a unit has `max_rows` rows in all groups together, in any of them: what is added up row by
    row moves by no more than if they were all in one, so that `max_groups` is 1.
    """

    max_groups: int
    max_rows: int
    groups: int | None  # how many there are; None if data must tell
    family: str | None = None
    nesting: Nesting | None = None  # of a chain, whose inner unit the limits are of

    @property
    def factor(self) -> int:
        """By how many times the rows of one unit an answer changes with whoever changes it most."""
        return 1 if self.nesting is None else self.nesting.largest

    @property
    def relation(self) -> Relation:
        return self.catalogue.unit.relation

    @property
    def footprint(self) -> Footprint:
        """In which groups the rows of one unit differ between neighbours."""
        if self.relation is Relation.ADD_REMOVE:
            return Footprint(self.max_groups)
        return Footprint(self.max_groups, 0 if self.groups is None else max(0, 2 * self.max_groups - self.groups))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredDraft(LimitedDraft):
    """By `choose_measurements`: what is measured, and how the answer follows from it."""

    columns: tuple[StageColumn, ...]
    numbers: tuple[Number, ...]
    weights: tuple[int, ...]  # one for each number: the parts of the price that it asks for
    picks: tuple[Pick, ...]
    recipes: tuple[Recipe, ...]  # one for each measure of the question


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityDraft(MeasuredDraft):
    """By `bound_changes`: how far one unit moves each number."""

    changes: tuple[int, ...]  # in one group, when it comes or goes
    exchanges: tuple[int, ...]  # in one group, when its rows there are exchanged
    spreads: tuple[int | None, ...]  # over how many groups, where these are not `max_groups`


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledDraft(SensitivityDraft):
    """By `bundle_numbers`: which numbers are paid together."""

    bundles: tuple[tuple[int, ...], ...]  # numbers of which one row moves one at most


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FinalDraft(BundledDraft):
    """By `choose_noise`: all decisions are made."""

    noising: Noising
    choosers: tuple[Chooser, ...]  # one for each pick


def known_as(stage: type[PlanRequest], draft: PlanRequest) -> dict[str, Any]:
    """Return the fields of one stage, to go on from; a later stage is taken back to it."""
    return {one.name: getattr(draft, one.name) for one in fields(stage)}
