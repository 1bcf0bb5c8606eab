"""What a reader of an answer should know, as parameters: never how many rows or groups they touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from discreet.mechanisms.text import plain, significant_up
from discreet.query.expressions import Field
from discreet.query.facts import Kind
from discreet.query.planning.draft import Picked, PlanDraft
from discreet.query.planning.measurements import plain_value
from discreet.query.planning.picking import counted_beside, counts_its_values
from discreet.query.question import Measure, Statistic
from discreet.query.sources import column_names
from discreet.query.stage import StageColumn

__all__ = ["notes"]

_MANY = 10**9  # Rows of a group, where nobody says how many to expect.
_IN_SQL = {Statistic.MEAN: "AVG", Statistic.DISTINCT: "COUNT(DISTINCT)", Statistic.DEVIATION: "STDDEV"}


def notes(draft: PlanDraft) -> tuple[str, ...]:
    """Write all notes of a plan."""
    written = (*_limits(draft), *_threshold(draft), *_clamps(draft), *_statistics(draft), *_after(draft))
    return tuple(dict.fromkeys(written))


def _limits(draft: PlanDraft) -> Iterator[str]:
    unit = draft.catalogue.unit
    if unit.is_row:
        return
    groups = (
        f"in at most {draft.max_groups} group{'s' if draft.max_groups > 1 else ''}, " if draft.question.keys else ""
    )
    rows = f"{draft.max_rows} row{'s' if draft.max_rows > 1 else ''}"
    where = " in each" if groups else ""
    yield (
        f"each {unit.column} is counted {groups}with at most {rows}{where}, taken at random if there are more; rows "
        f"without {unit.column} are left out"
    )


def _threshold(draft: PlanDraft) -> Iterator[str]:
    selection = None if draft.noising is None else draft.noising.selection
    if selection is None:
        if draft.question.keys:
            yield "all public groups are listed, empty ones too; rows of other groups are left out"
        return
    usually = selection.reliable_count()
    yield (
        f"groups are shown if their number of units plus noise exceeds {selection.threshold}: those of fewer than "
        f"about {usually} units are usually hidden. The noise of that choice is drawn apart from the noise of the "
        "values, so intervals of shown groups hold as they are"
    )


def _clamps(draft: PlanDraft) -> Iterator[str]:
    for column in draft.columns:
        if column.grid is not None and (column.wants.total or column.wants.squares or column.wants.values):
            yield _clamp(column, column_names(draft.question.source), draft.spend.expected or _MANY)


def _clamp(column: StageColumn, names: Mapping[str, str], rows: int) -> str:
    grid, kind = column.grid, column.expression.facts.kind
    assert grid is not None
    name = names.get(column.expression.name) if isinstance(column.expression, Field) else None
    name = name or "a computed value"
    if kind.is_time:
        low, high = plain_value(grid.low, kind), plain_value(grid.high, kind)
        return f"{name} is clamped to {low} … {high}; NULL is left out"
    step = "" if grid.step == 1 and kind is not Kind.REAL else f" and counted in steps of {significant_up(grid.step)}"
    clamped = f"{name} is clamped to {plain(grid.low)} … {plain(grid.high)}{step}"
    return f"{clamped}{_rounding(column, rows)}; NULL is left out"


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


def _statistics(draft: PlanDraft) -> Iterator[str]:
    for measure, recipe in zip(draft.question.measures, draft.recipes, strict=True):
        if measure.statistic is Statistic.MEAN and draft.max_rows > 1:
            yield (
                f"{_called(measure)} is the mean of rows, of which a unit has up to {draft.max_rows} in a group; for "
                "the mean of each unit's mean, average a sub-query that groups by the unit"
            )
        if isinstance(recipe, Picked):
            yield from _picked(draft, measure, recipe)
        if measure.statistic is Statistic.DISTINCT:
            yield f"{_called(measure)} counts the distinct values among the rows that were kept"


def _picked(draft: PlanDraft, measure: Measure, recipe: Picked) -> Iterator[str]:
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


def _called(measure: Measure) -> str:
    return measure.called or _IN_SQL.get(measure.statistic, measure.statistic.name)


def _after(draft: PlanDraft) -> Iterator[str]:
    if draft.question.having is not None or draft.question.limit is not None:
        yield (
            "rows were picked by HAVING or LIMIT on released values: the intervals do not account for that, and the "
            "picked ones are off more often than the confidence says"
        )
