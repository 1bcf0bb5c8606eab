"""How a query will be answered, before anything is spent, and the notes that go with an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from discreet.formatting import enumerated, plain, significant_up, with_article
from discreet.query.ast import (
    Expression,
    Field,
    Filter,
    Join,
    JoinKind,
    Key,
    Measure,
    OutputColumn,
    PerUnit,
    Project,
    ReleasedMeasure,
    Source,
    Statistic,
    Table,
    UnionAll,
    WithinUnit,
    column_names,
    columns_read,
    fields_of,
)
from discreet.query.catalogue import Catalogue
from discreet.query.engine import StageColumn
from discreet.query.plan.answers import needs_rows, predicted, typical_correlation, widest
from discreet.query.plan.choices import counted_beside, counts_its_values, reason
from discreet.query.plan.contribution_limits import groups_of_a_unit, one_row_per_group, one_row_per_unit
from discreet.query.plan.draft import (
    Added,
    Averaged,
    CountTerm,
    FinalDraft,
    LimitedDraft,
    Number,
    PairTerm,
    Picked,
    Recipe,
    SpreadTerm,
    TallySpec,
)
from discreet.query.plan.measurements import plain_value
from discreet.query.plan.output_columns import measures_in
from discreet.query.policy import counted_rows
from discreet.schema.columns import Kind, number_marks

__all__ = ["Explanation", "cuts_groups", "cuts_rows", "explain", "notes", "only_units"]

# --- explain: How a question will be answered, before anything is spent: for people, and as JSON. ---


_TYPICAL = 1000  # Rows of a group in a statement that depends on them.
_WORDS = {
    TallySpec.ROWS: "rows",
    TallySpec.UNITS: "units",
    TallySpec.COUNT: "values",
    TallySpec.NULLS: "NULLs",
    TallySpec.TOTAL: "sum",
    TallySpec.SQUARES: "sum of squares",
    TallySpec.DISTINCT: "distinct values",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """Facts by name, in the order in which people want them. All of it is public."""

    facts: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...]  # by column
    notes: tuple[str, ...]

    def __str__(self) -> str:
        pairs = (*self.facts, *self.errors)
        width = max(len(name) for name, _ in pairs)
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in pairs), *(f"· {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return str(self)

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        document = {"facts": dict(self.facts), "errors": dict(self.errors), "notes": list(self.notes)}
        return json.dumps(document, ensure_ascii=False)

    def _repr_html_(self) -> str:
        from discreet.pages import kit

        pairs = (*self.facts, *self.errors)
        return kit.grid(pairs, named=True) + kit.bullets(self.notes)


def explain(draft: FinalDraft, *, cost: str, notes: tuple[str, ...], left: str | None) -> Explanation:
    """Say what it costs, whom it protects, and how far off every column will be."""
    facts = [("price", cost), ("protects", _protects(draft)), *_groups(draft)]
    if left is not None:
        facts.append(("budget left", left))
    measured = [output for output in draft.question.outputs if any(True for _ in measures_in(output.value))]
    errors = tuple((output.name, _error(draft, output)) for output in measured)
    return Explanation(facts=tuple(facts), errors=errors, notes=notes)


def _protects(draft: FinalDraft) -> str:
    unit, chain = draft.catalogue.unit, draft.catalogue.chain
    outer = "" if chain is None else f", and each {chain.outer.noun} with all rows in it"
    whom = "each row" if unit.is_row else f"each {unit.noun} with all its rows{outer}"
    return f"{whom}, exchanged for any others or for none (replace-one)" if unit.is_exchanged else whom


def _groups(draft: FinalDraft) -> list[tuple[str, str]]:
    selection = draft.noising.selection
    if selection is None:
        return [("groups", f"{draft.groups:,}, all of them public")] if draft.question.keys else []
    least, units = selection.reliable_count(), _units(draft)
    return [("groups", f"hidden unless {units} + noise > {selection.threshold}; {least} {units} are shown with 95 %")]


def _units(draft: FinalDraft) -> str:
    """Name what hidden groups are told by."""
    unit = draft.catalogue.unit
    return "units" if unit.name is None else unit.nouns


def _error(draft: FinalDraft, output: OutputColumn) -> str:
    """Say how far off a column will be, and by which noise."""
    if not isinstance(output.value, ReleasedMeasure):
        return "± follows from the released values it is computed from"
    recipe, rows = draft.recipes[output.value.measure], draft.spend.expected or _TYPICAL
    if isinstance(recipe, Picked):
        has_interval = bool(draft.choosers[recipe.pick].interval)
        said = "± is found in the data, and paid for" if has_interval else "no ±"
        return f"{said}: {reason(draft, recipe.pick)}; {_choice(draft, recipe)}"
    if isinstance(recipe, PairTerm) and recipe.correlates:
        about = significant_up(typical_correlation(draft, recipe, rows))
        return f"about ± {about} if a group has {rows:,} rows that fill the bounds evenly; {_noise(draft, recipe)}"
    off = predicted(draft, output, rows)
    assert off is not None
    most = widest(draft, output)
    if most is not None and off >= most:
        return f"no information if a group has {rows:,} rows: ± all that the bounds allow; {_noise(draft, recipe)}"
    written = f"± {significant_up(off)}"
    how_far = (
        f"up to {written} if a group has {rows:,} rows" if needs_rows(draft, output) else f"{written} {_sure(draft)}"
    )
    return f"{how_far}; {_noise(draft, recipe)}"


def _sure(draft: FinalDraft) -> str:
    return f"with {plain(draft.spend.confidence * 100)} % confidence"


def _choice(draft: FinalDraft, recipe: Picked) -> str:
    chooser = draft.choosers[recipe.pick]
    return "permute-and-flip" if chooser.flips and not chooser.at_once else "exponential mechanism"


def _noise(draft: FinalDraft, recipe: Recipe) -> str:
    """Name the noise of the numbers behind an answer, with standard deviations as people count."""
    law = "rounded Gaussian noise" if draft.noising.gaussian else "discrete Laplace noise"
    numbers = [f"{_WORDS[draft.numbers[place].tallying]} (sd {_deviation(draft, place)})" for place in _places(recipe)]
    return f"{law} on {enumerated(numbers)}"


def _places(recipe: Recipe) -> list[int]:
    match recipe:
        case CountTerm():
            places = [recipe.number, recipe.also]
        case Added():
            places = [recipe.total, recipe.count]
        case Averaged() | SpreadTerm():
            places = [recipe.squares, recipe.total, recipe.count]
        case PairTerm():
            places = list(recipe.places)
        case Picked():
            places = []
    return [place for place in places if place is not None]


def _deviation(draft: FinalDraft, place: int) -> str:
    one = draft.noising.on(place)
    return significant_up(one.law.standard_deviation * one.unit * _step(draft, draft.numbers[place]))


def _step(draft: FinalDraft, number: Number) -> Fraction:
    grid = None if number.column is None else draft.columns[number.column].grid
    if grid is None or number.tallying not in (TallySpec.TOTAL, TallySpec.SQUARES):
        return Fraction(1)
    return grid.step if number.tallying is TallySpec.TOTAL else grid.step**2


# --- notes: What a reader of an answer should know, as parameters: never how many rows or groups they touched. ---


_MANY = 10**9  # Rows of a group, where nobody says how many to expect.
_ADDED = (Statistic.ROWS, Statistic.UNITS, Statistic.COUNT, Statistic.DISTINCT, Statistic.SUM)  # Totals.
_IN_SQL = {
    Statistic.MEAN: "AVG",
    Statistic.DISTINCT: "COUNT(DISTINCT)",
    Statistic.DEVIATION: "STDDEV",
    Statistic.COVARIANCE: "COVAR",
    Statistic.CORRELATION: "CORR",
}


def notes(draft: FinalDraft) -> tuple[str, ...]:
    """Write all notes of a plan."""
    written = (
        *_exchanged(draft),
        *_limits(draft),
        *_shared(draft),
        *_threshold(draft),
        *_spellings(draft),
        *_clamps(draft),
        *_statistics(draft),
        *_after(draft),
    )
    return tuple(dict.fromkeys(written))


def _exchanged(draft: FinalDraft) -> Iterator[str]:
    unit = draft.catalogue.unit
    if unit.is_exchanged:
        whose = "a row says" if unit.is_row else f"the rows of {with_article(unit.noun)} say, or that there are none"
        yield f"replace-one: hides what {whose}, and not who took part; that there are {unit.known}, is public"


def _shared(draft: FinalDraft) -> Iterator[str]:
    shared = draft.noising.shared
    if shared is not None:
        yield (
            f"noise is drawn once for all tables of {shared.family!r}, from what each column adds to the others "
            "(residuals): their errors are correlated, and tables agree up to rounding, so that averaging them gains "
            "nothing; each ± holds by itself"
        )


def _limits(draft: FinalDraft) -> Iterator[str]:
    unit = draft.catalogue.unit
    if unit.is_row:
        return
    if draft.family is not None:
        yield from _family_limits(draft)
        return
    several = "s" if draft.max_groups > 1 else ""
    parts = [f"in at most {draft.max_groups} group{several}"] if draft.question.keys else []
    if not only_units(draft):
        rows = f"{draft.max_rows} row{'s' if draft.max_rows > 1 else ''}"
        parts.append(f"with at most {rows}{' in each' if parts else ''}")
    drawn = ", taken at random if there are more" if cuts_groups(draft) or cuts_rows(draft) else ""
    yield (f"each {unit.noun} is counted {', '.join(parts) or 'once'}{drawn}; rows without {unit.missing} are left out")
    if draft.groups is not None and 1 < draft.groups <= draft.max_groups:
        yield f"max_groups covers all {draft.groups} groups: no {unit.noun} is left out of one"
    if unit.max_groups > 1 and draft.question.keys and groups_of_a_unit(*_asked(draft)) == 1:
        yield f"the group is one for each {unit.noun}: none is in a second one, so max_groups is 1 here"
    if draft.nesting is not None and draft.catalogue.chain is not None:
        most, outer = draft.nesting.most, draft.catalogue.chain.outer
        within = "of these units" if unit.name is None or unit.window is not None else unit.nouns
        yield (
            f"each {outer.noun} is counted with at most {most} {within} (max_inner), taken at random if there "
            "are more: totals leave the others out"
        )
    yield from _cut(draft)


def _asked(draft: LimitedDraft) -> tuple[Source, tuple[Key, ...], Catalogue]:
    return draft.question.source, draft.question.keys, draft.catalogue


def _family_limits(draft: FinalDraft) -> Iterator[str]:
    """Say what is counted of a unit in a table whose rows were chosen for its whole family."""
    unit = draft.catalogue.unit
    rows = "row" if draft.max_rows == 1 else "rows"
    yield (
        f"each {unit.noun} is counted with at most {draft.max_rows} {rows} in all groups together, taken at random if "
        f"there are more: the same in every table of {draft.family!r}, so that they add up; rows without "
        f"{unit.missing} are left out"
    )
    yield from _cut(draft)


def only_units(draft: LimitedDraft) -> bool:
    """Whether all that is asked is how many units there are: then it does not matter how many rows one has."""
    return all(one.statistic is Statistic.UNITS for one in draft.question.measures)


def cuts_groups(draft: LimitedDraft) -> bool:
    """Whether a unit may be in more groups than it is counted in."""
    if draft.family is not None:
        return False  # Its rows are counted wherever they are.
    most = groups_of_a_unit(*_asked(draft))
    covered = most is not None and draft.max_groups >= most
    return not covered and not one_row_per_unit(draft.question.source, draft.catalogue)


def cuts_rows(draft: LimitedDraft) -> bool:
    """Whether a unit may have more rows in a group than are counted, where these matter."""
    source, keys = draft.question.source, draft.question.keys
    if draft.family is not None:
        return not one_row_per_unit(source, draft.catalogue)
    return not (only_units(draft) or one_row_per_unit(source, draft.catalogue) or one_row_per_group(source, keys))


def _cut(draft: FinalDraft) -> Iterator[str]:
    """Say of which rows an answer is, where contribution bounding can leave some out."""
    unit, groups, rows = draft.catalogue.unit, cuts_groups(draft), cuts_rows(draft)
    if not groups and not rows:
        return
    of = f"values and ± are of {counted_rows(unit)} (contribution bounding)"
    yield of if only_units(draft) else f"{of}: totals leave the others out"
    if groups:
        yield (
            f"{with_article(unit.noun)} in several groups is counted in max_groups = {draft.max_groups} of them only, "
            "so groups come out too small; declare a larger max_groups with the unit for more of them "
            "(dp.private_limit with groups= finds how many are enough)"
        )
    if any(one.statistic not in _ADDED for one in draft.question.measures) or _divides(draft):
        yield (
            "which rows are counted is drawn at random, which moves means, shares and quantiles too: their ± does not "
            f"include that, and {with_article(unit.noun)} with many rows counts for less than in plain SQL"
        )


def _divides(draft: FinalDraft) -> bool:
    """Whether a column is computed of several measures, as shares are."""
    return any(len(set(measures_in(one.value))) > 1 for one in draft.question.outputs)


def _threshold(draft: FinalDraft) -> Iterator[str]:
    selection = draft.noising.selection
    if selection is None:
        if draft.question.keys:
            yield "all public groups are listed, empty ones too; rows of other groups are left out"
        return
    usually, units = selection.reliable_count(), _units(draft)
    yield (
        f"groups are shown if their number of {units} plus noise exceeds {selection.threshold}: those of fewer than "
        f"about {usually} {units} are usually hidden. The noise of that choice is drawn apart from the noise of the "
        f"values, so it does not bend the intervals of shown groups, which are of {counted_rows(draft.catalogue.unit)}"
    )


def _spellings(draft: FinalDraft) -> Iterator[str]:
    """Say how texts are read as times and numbers where there are other ways to write them."""
    for table, one in columns_read(draft.question.source):
        known = draft.catalogue.tables[table].columns.get(one.column)
        if known is None or known.stored is not Kind.TEXT:
            continue
        if one.format is not None and known.facts.kind is Kind.INTEGER and not number_marks(one.format)[0]:
            continue  # A decimal mark alone says nothing of whole numbers.
        if one.format is not None:
            how = f"as it is declared to be written ({one.format})"
        elif known.facts.kind.is_time:
            how = "by ISO 8601 alone (such as 2026-01-31)"
        else:
            continue
        yield f"{one.column} is read {how}; other spellings are missing values"


def _clamps(draft: FinalDraft) -> Iterator[str]:
    for column in draft.columns:
        if column.grid is not None and (column.wants.total or column.wants.squares or column.wants.values):
            clamped = _clamp(column, column_names(draft.question.source), draft.spend.expected or _MANY)
            yield f"{clamped}; {_nulls(draft.question.source, column.expression)}"


def _nulls(source: Source, expression: Expression) -> str:
    """Say what becomes of missing values."""
    fills = _fills(source, expression) or {None}
    kind = expression.facts.kind
    told = [str(plain_value(one, kind)) if kind.is_time else plain(one) for one in fills if one is not None]
    if not told:
        return "NULL is left out"
    others = " where that is declared; other NULLs are left out" if None in fills else ""
    return f"missing values count as {enumerated(sorted(told))}{others}"


def _fills(source: Source, expression: Expression) -> set[Fraction | None]:
    """Follow a field down: what takes the place of its missing values, None where they stay; nothing if not there."""
    if not isinstance(expression, Field):
        return {None}
    match source:
        case Table():
            return {one.missing for one in source.columns if one.field.name == expression.name}
        case Filter():
            return _fills(source.source, expression)
        case Project() | PerUnit():
            entries = source.columns if isinstance(source, Project) else source.keys
            found = [one.expression for one in entries if one.field.name == expression.name]
            return _fills(source.source, found[0]) or {None} if found else set()
        case WithinUnit():
            computed = any(one.total.field.name == expression.name for one in source.columns)
            return {None} if computed else _fills(source.source, expression)
        case Join():
            right = _fills(source.right, expression)
            unmatched: set[Fraction | None] = {None} if right and source.kind is JoinKind.LEFT else set()
            return _fills(source.left, expression) | right | unmatched
        case UnionAll():
            places = [at for at, one in enumerate(source.columns) if one.name == expression.name]
            each = (_fills(part, fields_of(part)[at]) or {None} for at in places for part in source.sources)
            return set().union(*each)


def _clamp(column: StageColumn, names: Mapping[str, str], rows: int) -> str:
    grid, kind = column.grid, column.expression.facts.kind
    assert grid is not None
    name = names.get(column.expression.name) if isinstance(column.expression, Field) else None
    name = name or "a computed value"
    if kind.is_time:
        low, high = plain_value(grid.low, kind), plain_value(grid.high, kind)
        return f"{name} is clamped to {low} … {high}"
    step = "" if grid.step == 1 and kind is not Kind.REAL else f" and counted in steps of {significant_up(grid.step)}"
    clamped = f"{name} is clamped to {plain(grid.low)} … {plain(grid.high)}{step}"
    return f"{clamped}{_rounding(column, rows)}"


def _rounding(column: StageColumn, rows: int) -> str:
    """Say what rounding to the grid does, where values need not lie on it: half a step a value, n halves for n rows."""
    grid, kind = column.grid, column.expression.facts.kind
    assert grid is not None
    if kind is not Kind.REAL and grid.step <= 1:
        return ""
    half = grid.step / 2
    if not (column.wants.total or column.wants.squares):
        return f", which moves a value by at most {significant_up(half)}"
    many = f"{rows:,}" if rows < _MANY else "10^9"
    return f", which moves a sum of {many} rows by at most {significant_up(half * rows)}"


def _statistics(draft: FinalDraft) -> Iterator[str]:
    unit = draft.catalogue.unit
    noun, column = ("unit", "the unit") if unit.name is None else (unit.name, unit.identity)
    for measure, recipe in zip(draft.question.measures, draft.recipes, strict=True):
        if measure.statistic is Statistic.MEAN and not unit.is_row and cuts_rows(draft):
            within = " in a group" if draft.question.keys and draft.family is None else ""
            yield (
                f"{_called(measure)} is the mean of rows, of which {with_article(noun)} has up to {draft.max_rows}"
                f"{within}; for the mean of each {noun}'s mean, of which no rows are drawn, average a sub-query "
                f"that groups by {column}: SELECT AVG(m) FROM (SELECT {unit.called}, AVG(x) AS m FROM … GROUP BY "
                f"{unit.called}) AS s"
            )
        if isinstance(recipe, PairTerm):
            yield f"{_called(measure)} is of rows in which both have a value"
        if isinstance(recipe, (Averaged, SpreadTerm, PairTerm)):
            few = "" if isinstance(recipe, Averaged) else ", or where the released count does not rule that out"
            if draft.spend.population and isinstance(recipe, Averaged):
                paid = "" if recipe.squares is None else "; a noisy sum of squares pays for it"
                yield f"the ± of {_called(measure)} holds the mean of {_of(draft)}{paid}"
            yield f"{_called(measure)} is NULL where its ± is all that the bounds allow, as in an empty group{few}"
        if isinstance(recipe, Picked):
            yield from _picked(draft, measure, recipe)
        if measure.statistic is Statistic.DISTINCT:
            yield f"{_called(measure)} counts the distinct values among the rows that were kept"


def _picked(draft: FinalDraft, measure: Measure, recipe: Picked) -> Iterator[str]:
    if measure.among is not None:
        yield from _picked_together(draft, measure, measure.among)
    if draft.choosers[recipe.pick].interval and measure.quantile is not None:
        which = "each quantile" if measure.among is not None else f"the quantile {plain(measure.quantile)}"
        yield f"the ± of {_called(measure)} holds {which} of {_of(draft)}; three fifths of its ε paid for it"
    if measure.quantile in (0, 1) or measure.called in ("MIN", "MAX"):
        yield (
            f"{_called(measure)} is chosen near the extreme by noisy ranks: an exact extreme is one person's own value"
        )
    if counted_beside(draft, recipe.pick) is None:
        yield f"{_called(measure)} of a group without values is an arbitrary value: ask for a COUNT beside it"
    else:
        yield f"{_called(measure)} is NULL where the released count does not rule out that a group is empty"
        if not counts_its_values(draft, recipe.pick):
            yield f"{_called(measure)} of rows whose values are all NULL is arbitrary: COUNT the same values beside it"


def _picked_together(draft: FinalDraft, measure: Measure, among: tuple[Fraction, ...]) -> Iterator[str]:
    listed = enumerated([plain(one) for one in among])
    inside = ": a minimum and a maximum are one person's own values" if measure.called == "FIVE_NUMBERS" else ""
    yield (
        f"{_called(measure)} chooses the quantiles {listed} together, as one measurement, none below the one before "
        f"it{inside}"
    )


def _of(draft: FinalDraft) -> str:
    """Say of what the interval of a quantile or a mean is."""
    if not draft.spend.population:
        return "the rows that were counted"
    return "what the counted rows were drawn from, if they were drawn independently of each other"


def _called(measure: Measure) -> str:
    return measure.called or _IN_SQL.get(measure.statistic, measure.statistic.name)


def _after(draft: FinalDraft) -> Iterator[str]:
    if draft.question.having is not None or draft.question.limit is not None:
        yield (
            "rows were picked by HAVING or LIMIT on released values: the intervals do not account for that, and the "
            "picked ones are off more often than the confidence says"
        )
