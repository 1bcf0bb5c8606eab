"""Pass: measurements and their sensitivities, on a grid. What is shared is paid once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from typing import TypeVar, final

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import with_article
from discreet.mechanisms.grid import Grid
from discreet.query.ast import Expression, Measure, Operator, Statistic
from discreet.query.engine import StageColumn, Wants
from discreet.query.functions.constants import literal
from discreet.query.functions.expressions import apply, when
from discreet.query.plan.contribution_limits import groups_of_a_unit, has_everybody
from discreet.query.plan.draft import (
    Added,
    Averaged,
    CountTerm,
    LimitedDraft,
    MeasuredDraft,
    ModePick,
    Number,
    PairTerm,
    Pick,
    Picked,
    QuantilePick,
    QuantilesPick,
    Recipe,
    SensitivityDraft,
    SpreadTerm,
    TallySpec,
    known_as,
)
from discreet.schema.columns import ExpressionFacts, Kind, time_at

__all__ = ["bound_changes", "change", "choose_measurements", "exchange", "grid_of", "plain_value", "reach_of"]

# --- measurements: Pass: what is measured. Statistics that need the same number share it, and it is paid once. ---


_ABOUT_A_COUNT = (Statistic.COUNT, Statistic.MEAN, Statistic.VARIANCE, Statistic.DEVIATION)
_MOST_CANDIDATES = 100_000
T = TypeVar("T")


def choose_measurements(draft: LimitedDraft) -> MeasuredDraft:
    """Find the numbers and choices behind all measures, each of them once."""
    for measure in draft.question.measures:
        _check_not_known(draft, measure)
    work = _MeasurementLists(draft)
    recipes = tuple(work.recipe(measure) for measure in draft.question.measures)
    if not (work.numbers or work.picks or draft.groups is None):
        raise Refused("nothing is measured: ask for at least one aggregate such as COUNT(*)")
    _check_lists(draft, work.columns)
    _check_intervals(draft, work.picks)
    return MeasuredDraft(
        **known_as(LimitedDraft, draft),
        columns=tuple(work.columns),
        numbers=tuple(work.numbers),
        weights=tuple(work.weights),
        picks=tuple(work.picks),
        recipes=recipes,
    )


def _check_intervals(draft: LimitedDraft, picks: list[Pick]) -> None:
    """Refuse to pay for intervals of quantiles where there are none, or where they are days."""
    if draft.spend.population:
        _check_population(draft)
    if not draft.spend.quantile_intervals:
        return
    if all(isinstance(asked, ModePick) for asked in picks):
        raise Refused(
            "quantile_intervals asks for the ± of quantiles, and none is asked for here",
            way_out="leave it out: counts, sums and means have their ± anyway",
        )
    chosen = [m.argument for m in draft.question.measures if m.statistic is Statistic.QUANTILE]
    if any(argument is not None and argument.facts.kind.is_time for argument in chosen):
        raise Refused(
            "quantiles of dates and times have no ±",
            reason="an answer has the ends of its intervals as numbers",
            way_out="leave quantile_intervals out, or ask for the quantile of a number, such as days since a date",
        )


_MOST_DRAWN = 50_000


def _check_population(draft: LimitedDraft) -> None:
    """Refuse intervals for a population of which rows are surely no independent draws: those of one person."""
    means = sum(measure.statistic is Statistic.MEAN for measure in draft.question.measures)
    if not draft.spend.quantile_intervals and not means:
        raise Refused(
            "population asks for the ± of means, or of quantiles with quantile_intervals, and none is asked for here",
            way_out="leave it out: the ± of counts and sums is of the counted rows",
        )
    if means * (draft.groups or 0) > _MOST_DRAWN:
        raise Refused(
            f"means of a population have a ± in {_MOST_DRAWN:,} groups at most, and here are {draft.groups:,}",
            reason="each ± takes about a hundredth of a second, after the answer is paid for",
            way_out="group by fewer keys or coarser ones, or leave population out, for the ± of the counted rows",
        )
    unit = draft.catalogue.unit
    told = {
        "limits": draft.max_rows > 1,
        "window": unit.window is not None,
        "chain": draft.nesting is not None,
    }
    if any(told.values()):
        several = f"{draft.max_rows} rows of {with_article(unit.noun)} are counted in a group, and they"
        whose = "units that belong together" if told["chain"] else "windows of time of the same person"
        raise Refused(
            "population says that the counted values were drawn independently of each other, and here they were not",
            reason=f"{several if told['limits'] else whose} are alike, so that the ± would be too narrow",
            way_out="count one row: max_rows_per_group = 1; or leave population out, for the ± of the counted rows"
            if told["limits"]
            else "leave population out, for the ± of the counted rows",
        )


def _check_lists(draft: LimitedDraft, columns: list[StageColumn]) -> None:
    """Refuse what needs a scan of its own, in a family: its tables are counted in one, of the same rows."""
    for column in columns:
        if draft.family is not None and column.wants.distinct and column.grid is None and column.members is None:
            raise Refused(
                "distinct values of a column without a list are counted by a scan of their own, and tables of a "
                "family share theirs, in which the same rows of a unit are counted",
                way_out="declare the column with its categories or bounds, or publish this measure by its SQL",
            )


def _check_not_known(draft: LimitedDraft, measure: Measure) -> None:
    """Refuse to count the units of a whole table where their number is declared: everybody knows it."""
    unit = draft.catalogue.unit
    if unit.units is None or draft.question.keys or not has_everybody(draft.question.source):
        return
    rows = measure.statistic is Statistic.ROWS
    if measure.statistic is Statistic.COUNT:
        rows = measure.argument is not None and not measure.argument.facts.nullable
    if measure.statistic is Statistic.UNITS or (rows and draft.max_rows == 1):
        more = "" if unit.is_row or not rows else ", or count rows, with max_rows_per_group above 1"
        raise Refused(
            f"how many {unit.nouns} there are is public under replace-one: {unit.units:,}, as declared",
            reason="noise would be paid for what everybody knows",
            way_out=f"leave it out, or count a part of them, with WHERE or by the keys of groups{more}",
        )


def _has_two_values(facts: ExpressionFacts) -> bool:
    """Tell whether only the two bounds are possible, as of zeros and ones: then the variance follows from the mean."""
    whole = facts.kind in (Kind.INTEGER, Kind.BOOLEAN) and facts.low is not None and facts.high is not None
    return whole and facts.low % 1 == 0 and facts.high - facts.low == 1  # type: ignore[operator]


def _fold(grid: Grid) -> int:
    """Return what is taken off every square, so that what a row adds is half as far from zero."""
    return reach_of(grid, grid.middle) ** 2 // 2


@final
@dataclass(slots=True)
class _MeasurementLists:
    """Lists that grow while the measures are gone through; it does not outlive the pass."""

    draft: LimitedDraft
    columns: list[StageColumn] = field(default_factory=list)
    numbers: list[Number] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    weight: int = 1  # of the measure that is looked at
    picks: list[Pick] = field(default_factory=list)

    def recipe(self, measure: Measure) -> Recipe:
        self.weight = measure.weight or 1
        match measure.statistic:
            case Statistic.ROWS:
                return self._rows()
            case Statistic.UNITS:
                return CountTerm(self._units())
            case Statistic.COUNT:
                return CountTerm(self._count(_argument(measure)))
            case Statistic.DISTINCT:
                return CountTerm(self._number(Number(TallySpec.DISTINCT, self._distinct(_argument(measure)))))
            case Statistic.SUM:
                return self._sum(measure)
            case Statistic.MEAN:
                return self._mean(measure)
            case Statistic.VARIANCE | Statistic.DEVIATION:
                return self._spread(measure)
            case Statistic.COVARIANCE | Statistic.CORRELATION:
                return self._pair(measure)
            case Statistic.QUANTILE:
                return self._quantile(measure)
            case Statistic.MODE:
                return self._mode(measure)

    def _rows(self) -> Recipe:
        """Count rows; beside a count of values, as values and NULLs.

        A row is one or the other, so that both are paid like one, where rows and values would be paid twice.
        """
        argument = self._counted_beside_rows()
        if argument is None:
            return CountTerm(self._number(Number(TallySpec.ROWS)))
        count = self._count(argument)
        return CountTerm(count, self._number(Number(TallySpec.NULLS, self.numbers[count].column)))

    def _counted_beside_rows(self) -> Expression | None:
        """Find values that are counted, may be NULL, and so are not the rows; None if rows are needed by themselves."""
        counted = [m.argument for m in self.draft.question.measures if m.statistic in _ABOUT_A_COUNT]
        units = any(m.statistic is Statistic.UNITS for m in self.draft.question.measures)
        if any(e is not None and not e.facts.nullable for e in counted) or (units and self.draft.max_rows == 1):
            return None
        return next((e for e in counted if e is not None), None)

    def _units(self) -> int:
        # With one row a group at most, rows are units.
        return self._number(Number(TallySpec.ROWS if self.draft.max_rows == 1 else TallySpec.UNITS))

    def _count(self, argument: Expression) -> int:
        if not argument.facts.nullable:
            return self._number(Number(TallySpec.ROWS))
        for place, column in enumerate(self.columns):
            if column.expression == argument and column.members is None:
                return self._number(Number(TallySpec.COUNT, place))
        return self._number(Number(TallySpec.COUNT, self._column(argument, Wants())))

    def _distinct(self, argument: Expression) -> int:
        """Find the column whose distinct values are counted; in a family by public numbers of the values."""
        facts, wants = argument.facts, Wants(distinct=True)
        if self.draft.family is None:
            return self._column(argument, wants)
        if facts.kind is Kind.TEXT:
            return self._column(argument, wants, members=facts.members)
        whole = facts.kind is not Kind.REAL and facts.low is not None and facts.high is not None
        grid = grid_of(facts, centred=False, called="COUNT(DISTINCT …)") if whole else None
        # A grid that is coarser than the values would take two of them for one.
        return self._column(argument, wants, grid=grid if grid is not None and grid.step <= 1 else None)

    def _sum(self, measure: Measure) -> Recipe:
        """Add up about the centre if a count is paid anyway, else about zero.

        With reach A about the centre c, and noise of equal shares, the squared errors are as c^2 + A^2 to (|c| + A)^2
        where the count is there, and as (|c|^(2/3) + A^(2/3))^3 to (|c| + A)^2 where it would have to be paid.
        """
        argument = _argument(measure)
        if not self._is_counted(argument):
            grid = grid_of(argument.facts, centred=False, called=_called(measure))
            return Added(self._total(argument, grid, 0), None, grid, 0)
        grid = grid_of(argument.facts, centred=True, called=_called(measure))
        total = self._total(argument, grid, grid.middle)
        count = self._count(argument) if grid.middle else None
        return Added(total, count, grid, grid.middle)

    def _mean(self, measure: Measure) -> Recipe:
        argument = _argument(measure)
        grid = grid_of(argument.facts, centred=True, called=_called(measure))
        total = self._total(argument, grid, grid.middle)
        squares = None
        if self.draft.spend.population and not _has_two_values(argument.facts):
            squares = self._squares(argument, grid)
        return Averaged(total, self._count(argument), grid, grid.middle, squares, _fold(grid))

    def _squares(self, argument: Expression, grid: Grid) -> int:
        column = self._column(argument, Wants(squares=True), grid=grid, centre=grid.middle)
        return self._number(Number(TallySpec.SQUARES, column, _fold(grid)))

    def _spread(self, measure: Measure) -> Recipe:
        argument = _argument(measure)
        grid = grid_of(argument.facts, centred=True, called=_called(measure))
        total = self._total(argument, grid, grid.middle)
        squares, root = self._squares(argument, grid), measure.statistic is Statistic.DEVIATION
        count = self._count(argument)
        return SpreadTerm(squares, total, count, grid, grid.middle, _fold(grid), measure.sample, root)

    def _pair(self, measure: Measure) -> Recipe:
        """Add up the products of two columns about their centres, of the rows in which both have a value.

        A product is an expression of a row like any other: every engine computes it, and places it on a grid. It is
        one of values as they are, so a declared step is left out of account: sums of values that were rounded to it
        would be sums of other values, and the covariance that of neither.
        """
        one, other = _argument(measure), measure.other
        assert other is not None
        first, second = (_unrounded_grid(each.facts, measure) for each in (one, other))
        products = self._products((one, first), (other, second))
        stepped = any(each.facts.step is not None for each in (one, other))
        place = _unrounded_grid if stepped else _centred_grid
        grid = place(products.facts, measure)
        sides = (_where_there(one, other), first), (_where_there(other, one), second)
        squares = None
        if measure.statistic is Statistic.CORRELATION:
            squares = self._squares(*sides[0]), self._squares(*sides[1])
        return PairTerm(
            products=self._total(products, grid, grid.middle),
            totals=(self._total(*sides[0], first.middle), self._total(*sides[1], second.middle)),
            count=self._count(products),
            squares=squares,
            grids=(first, second),
            folds=(_fold(first), _fold(second)),
            of_products=grid,
            centre=grid.middle,
            sample=measure.sample,
        )

    def _products(self, one: tuple[Expression, Grid], other: tuple[Expression, Grid]) -> Expression:
        """Return the product of distances from the centres, in whichever order it is added up already."""
        near, far = (_from_centre(*side) for side in (one, other))
        turned = apply(Operator.MULTIPLY, far, near)
        if any(column.expression == turned for column in self.columns):
            return turned
        return apply(Operator.MULTIPLY, near, far)

    def _quantile(self, measure: Measure) -> Recipe:
        if measure.quantile is None or not 0 <= measure.quantile <= 1:
            raise InvalidParameter("a quantile must lie between 0 and 1")
        argument = _argument(measure)
        grid = grid_of(argument.facts, centred=False, called=_called(measure), picked=True)
        column = self._column(argument, Wants(values=True), grid=grid)
        if measure.among is None:
            return Picked(self._pick(QuantilePick(column, measure.quantile, grid)))
        if measure.quantile not in measure.among:
            raise InvalidParameter("a quantile of a list must be one of them")
        pick = self._pick(QuantilesPick(column, measure.among, grid))
        return Picked(pick, measure.among.index(measure.quantile))

    def _mode(self, measure: Measure) -> Recipe:
        argument = _argument(measure)
        facts = argument.facts
        if facts.kind is Kind.TEXT:
            if facts.members is None:
                raise Refused("MODE chooses among public values: declare the column with dp.categories([...])")
            _check_candidates(facts.members)
            column = self._column(argument, Wants(values=True), members=facts.members)
            return Picked(self._pick(ModePick(column, facts.members, tuple(range(len(facts.members))))))
        grid = grid_of(facts, centred=False, called=_called(measure), picked=True)
        places = _candidate_places(grid, facts.members)
        _check_candidates(places)
        column = self._column(argument, Wants(values=True), grid=grid)
        values: tuple[Hashable, ...] = tuple(plain_value(place * grid.step, facts.kind) for place in places)
        return Picked(self._pick(ModePick(column, values, places)))

    def _total(self, argument: Expression, grid: Grid, centre: int) -> int:
        column = self._column(argument, Wants(total=True), grid=grid, centre=centre)
        return self._number(Number(TallySpec.TOTAL, column))

    def _is_counted(self, argument: Expression) -> bool:
        """Whether some measure pays for a count of these values."""
        measures = self.draft.question.measures
        if any(other.statistic in _ABOUT_A_COUNT and other.argument == argument for other in measures):
            return True
        rows = any(other.statistic is Statistic.ROWS for other in measures)
        return rows and not argument.facts.nullable

    def _number(self, number: Number) -> int:
        """Find or add a number; it has the weight of the measure that needs it most."""
        place = _place(self.numbers, number)
        self.weights[place:] = [max([self.weight, *self.weights[place : place + 1]]), *self.weights[place + 1 :]]
        return place

    def _pick(self, pick: Pick) -> int:
        return _place(self.picks, pick)

    def _column(
        self,
        expression: Expression,
        wants: Wants,
        *,
        grid: Grid | None = None,
        centre: int = 0,
        members: tuple[Hashable, ...] | None = None,
    ) -> int:
        """Find or add a column of the stage; one that is placed the same way wants a little more."""
        for place, column in enumerate(self.columns):
            if (column.expression, column.grid, column.centre, column.members) == (expression, grid, centre, members):
                self.columns[place] = replace(column, wants=_both(column.wants, wants))
                return place
            if grid is not None and column == StageColumn(expression=expression, wants=Wants()):
                # It was only counted, and is counted as well once it is on a grid.
                self.columns[place] = replace(column, wants=wants, grid=grid, centre=centre)
                return place
        self.columns.append(StageColumn(expression=expression, wants=wants, grid=grid, centre=centre, members=members))
        return len(self.columns) - 1


def _place(items: list[T], item: T) -> int:
    if item not in items:
        items.append(item)
    return items.index(item)


def _both(one: Wants, other: Wants) -> Wants:
    return Wants(
        total=one.total or other.total,
        squares=one.squares or other.squares,
        distinct=one.distinct or other.distinct,
        values=one.values or other.values,
    )


def _argument(measure: Measure) -> Expression:
    if measure.argument is None:
        raise InvalidParameter(f"{measure.statistic.value} needs an argument")
    return measure.argument


def _called(measure: Measure) -> str:
    return measure.called or measure.statistic.name


def _centred_grid(facts: ExpressionFacts, measure: Measure) -> Grid:
    return grid_of(facts, centred=True, called=_called(measure))


def _unrounded_grid(facts: ExpressionFacts, measure: Measure) -> Grid:
    """Return a grid so fine that values are on it as they are, far below noise, whatever step was declared."""
    return _centred_grid(replace(facts, step=None), measure)


def _where_there(argument: Expression, other: Expression) -> Expression:
    """Return a value where the other one is not NULL either."""
    if not other.facts.nullable or other == argument:
        return argument
    return when([(apply(Operator.NOT, apply(Operator.IS_NULL, other)), argument)])


def _from_centre(argument: Expression, grid: Grid) -> Expression:
    return apply(Operator.SUBTRACT, argument, literal(grid.middle * grid.step)) if grid.middle else argument


def _check_candidates(candidates: tuple[Hashable, ...]) -> None:
    if not candidates:
        raise Refused(
            "MODE has nothing to choose among: by its declaration this is NULL for every row",
            reason="it would be paid for, and nothing could be told",
            way_out="name a column, or a condition that declared values can meet",
        )


def _candidate_places(grid: Grid, members: tuple[Hashable, ...] | None) -> tuple[int, ...]:
    """List the grid points that a mode is chosen among."""
    if members is not None:
        return tuple(sorted({grid.index(member) for member in members}))
    if grid.width >= _MOST_CANDIDATES:
        raise Refused(
            f"MODE would choose among {grid.width + 1:,} values, more than {_MOST_CANDIDATES:,}: declare "
            "dp.categories([...]), tighter bounds or a coarser step, or bucket the values"
        )
    return tuple(range(grid.first, grid.last + 1))


def plain_value(value: Fraction, kind: Kind) -> Hashable:
    """Return a number as people know values of this kind."""
    match kind:
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.INTEGER:
            return int(value) if value.denominator == 1 else value
        case Kind.DATE | Kind.TIMESTAMP:
            return time_at(kind, round(value))
        case Kind.REAL | Kind.TEXT | Kind.UNDECLARED | Kind.IDENTITY:
            return value


# --- grids: The grid on which the argument of a measure is counted: from its facts alone. ---


_FINE = 1 << 40  # Steps from bound to bound of what is added up, at least: even 10^9 rows round far below noise.
_PICKED = 10**6  # Steps of what is picked, at least: a pick's error grows with the logarithm of their number.
_LARGEST = 1 << 50  # Of an index, up or down; a grid takes four times as many.
_WIDEST = 1 << 40  # Steps from bound to bound of whole numbers.
_FEW = 64  # Steps; with so few, half a step beside the middle would be noise that can be spared.


def grid_of(facts: ExpressionFacts, *, centred: bool, called: str, picked: bool = False) -> Grid:
    """Return the grid of a bounded expression; bounds that are no multiples of the step are moved outwards.

    With an odd number of steps no grid point is in the middle. Where it is centred and steps are few, half steps are
    counted, which halves the reach of a truth value. Reals that are `picked` from have a coarser default.
    """
    low, high = _bounds(facts, called)
    step = _step(facts, low, high, _PICKED if picked else _FINE)
    first, last = _ends(low, high, step)
    if centred and (first + last) % 2 and last - first <= _FEW:
        step, first, last = step / 2, 2 * first, 2 * last
    return Grid(low=first * step, high=last * step, step=step, default=first * step)


def _bounds(facts: ExpressionFacts, called: str) -> tuple[Fraction, Fraction]:
    if facts.kind is Kind.BOOLEAN:
        return Fraction(0), Fraction(1)
    if facts.kind is Kind.TEXT:
        raise Refused(f"{called} of text is not defined: ask it of numbers")
    if facts.low is None or facts.high is None:
        raise Refused(
            f"{called} needs bounds, or one person could change it by any amount: declare the column with "
            "dp.between(low, high), or clamp it with LEAST and GREATEST"
        )
    return facts.low, facts.high


def _ends(low: Fraction, high: Fraction, step: Fraction) -> tuple[int, int]:
    first, last = floor(low / step), ceil(high / step)
    if first < last:
        return first, last
    # A constant: from zero to it, so that what one row adds is not overrated.
    first, last = min(first, 0), max(last, 0)
    return first, max(last, first + 1)


def _step(facts: ExpressionFacts, low: Fraction, high: Fraction, fine: int) -> Fraction:
    width = high - low
    if facts.step is not None:
        step = facts.step
    elif facts.kind is Kind.TIMESTAMP:
        step = Fraction(next((size for size in (10**6, 1000) if size * _PICKED <= width), 1))
    elif facts.kind is Kind.REAL:
        step = _power_below(width / fine) if width else Fraction(1, _PICKED)
    else:
        step = 10 * _power_below(width / _WIDEST) if width > _WIDEST else Fraction(1)
    while max(abs(low), abs(high)) > _LARGEST * step:
        step *= 10
    return step


def _power_below(size: Fraction) -> Fraction:
    """Return the largest power of ten that is not above a positive number."""
    guess = Fraction(10) ** (len(str(size.numerator)) - len(str(size.denominator)))
    return guess if guess <= size else guess / 10


def reach_of(grid: Grid, centre: int) -> int:
    """Return how far a value is from the centre at most, in steps."""
    return max(grid.last - centre, centre - grid.first)


# --- sensitivities ---
# Pass: how much one unit changes each number in one group, in grid steps. One rule for each way of adding up.
#
# A unit is in at most L groups of an answer, with at most M rows in each. A number that one unit changes by at most s
# in a group has the l1 sensitivity L s and the squared l2 sensitivity L s^2 over all groups; so s is all that is kept
# here. Under replace-one a unit leaves groups and comes into others, and in those that it was and is in its rows are
# exchanged: that is kept beside it, and `Footprint` adds both up.


def bound_changes(draft: MeasuredDraft) -> SensitivityDraft:
    """Bound what one unit changes."""
    changes = tuple(change(draft, number) for number in draft.numbers)
    exchanges = tuple(exchange(draft, number) for number in draft.numbers)
    spreads = tuple(_spread(draft, number) for number in draft.numbers)
    return SensitivityDraft(**known_as(MeasuredDraft, draft), changes=changes, exchanges=exchanges, spreads=spreads)


def _spread(draft: MeasuredDraft, number: Number) -> int | None:
    """Return over how many groups a unit changes a number by what `change` says, where that is not `max_groups`.

    Theorem     In a table of a family a unit has R rows in all groups together. What is added up row by row by at most
                s each moves by c_g s in group g, with c_g >= 0 and the sum of c_g at most R: its l1 norm is at most
                R s, and so is its l2 norm, as the sum of squares is at most the square of the sum. All rows in one
                group reach both: that is one group of R rows. A count of units moves by 1 in each group with a row
                of the unit, of which there are at most min(R, groups that a unit can be in).
    """
    if draft.family is None or number.tallying is not TallySpec.UNITS:
        return None
    groups = groups_of_a_unit(draft.question.source, draft.question.keys, draft.catalogue)
    assert groups is not None
    return min(draft.max_rows, groups)


def change(draft: MeasuredDraft, number: Number) -> int:
    """Return the most that one unit's rows of one group add to a number, up or down; bounding picks them beforehand.

    Theorem     What is kept of a unit depends on its own rows and fresh randomness only, so with one unit less the
                others' rows stay as they are, and the difference is a sum over at most M rows. Each adds at most 1 to
                a count, |x - c| to a total about c, and |(x - c)^2 - f| to a sum of squares less f each. Distinct
                values lose at most one for each row that goes; units lose one. [DMNS06, WZLDSG20]
                In a chain whoever changes most changes `factor` times as much: see `Nesting`.
    """
    return draft.factor * _of_one(draft, number)


def _of_one(draft: MeasuredDraft, number: Number) -> int:
    match number.tallying:
        case TallySpec.UNITS:
            return 1
        case TallySpec.ROWS | TallySpec.COUNT | TallySpec.NULLS | TallySpec.DISTINCT:
            return draft.max_rows
        case TallySpec.TOTAL:
            return draft.max_rows * _reach(draft, number)
        case TallySpec.SQUARES:
            # Squares lie between 0 and the square of the reach.
            return draft.max_rows * max(number.fold, _reach(draft, number) ** 2 - number.fold)


def exchange(draft: MeasuredDraft, number: Number) -> int:
    """Return the most by which a number moves when a unit's rows of one group are exchanged for others, or for none.

    Theorem     With none and up to M rows on either side, what a unit adds lies between M times the least and M times
                the most that one row adds, zero included; the distance of the two is what an exchange moves. Of
                distinct values as many can be lost as there are rows that go, and won as there are rows that come.
    """
    match number.tallying:
        case TallySpec.UNITS | TallySpec.ROWS | TallySpec.COUNT | TallySpec.NULLS | TallySpec.DISTINCT:
            return change(draft, number)
        case TallySpec.TOTAL:
            grid, centre = _grid_of(draft, number)
            return draft.max_rows * (max(grid.last, centre) - min(grid.first, centre))
        case TallySpec.SQUARES:
            return draft.max_rows * max(number.fold, _reach(draft, number) ** 2)


def _reach(draft: MeasuredDraft, number: Number) -> int:
    return reach_of(*_grid_of(draft, number))


def _grid_of(draft: MeasuredDraft, number: Number) -> tuple[Grid, int]:
    assert number.column is not None
    column = draft.columns[number.column]
    assert column.grid is not None
    return column.grid, column.centre
