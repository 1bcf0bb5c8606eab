"""Whether tidy tables can be made of what a plan publishes: known from public facts, before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from discreet.errors import InvalidParameter
from discreet.query.answer_columns import AnswerColumn
from discreet.query.ast import ReleasedMeasure
from discreet.query.plan.answers import ReleasedNumbers, answer
from discreet.query.plan.planner import PricedQuery
from discreet.release.plan import ReleasePlan, TablePlan
from discreet.release.tidy.cell_layout import CellLayout, known_cells, whole_totals
from discreet.release.tidy.tidying import NEVER_POSITIVE, adds_up, families, known_of, layout_of

__all__ = ["check_tidy"]


def check_tidy(plan: ReleasePlan, priced: Mapping[str, PricedQuery]) -> None:
    """Refuse families that cannot be made to add up, and invariants that contradict each other. Free.

    `priced` has the plan of every table of a family by its name.
    """
    _check_invariants(plan)
    if not plan.output.tidy:
        return
    for name, tables in families(plan.tables).items():
        try:
            _check_family(plan, tables, priced)
        except InvalidParameter as problem:
            raise InvalidParameter(f"the tables of {name!r} cannot be made to add up: {problem}") from None


def _check_invariants(plan: ReleasePlan) -> None:
    named = {table.name: table for table in plan.tables}
    for invariant in plan.invariants:
        table = named.get(invariant.table)
        if table is None:
            raise InvalidParameter(
                f"an invariant is about {invariant.table!r}, and no such table is published; there are {_some(named)}"
            )
        if table.family is not None and not adds_up(table.measures.get(invariant.column, "")):
            raise InvalidParameter(
                f"an invariant is about {invariant.column!r}, which is no count or sum of {invariant.table!r}"
            )


def _some(named: Mapping[str, TablePlan]) -> str:
    listed = sorted(named)
    return ", ".join(listed[:12]) + (" and more" if len(listed) > 12 else "")


def _check_family(plan: ReleasePlan, tables: Sequence[TablePlan], priced: Mapping[str, PricedQuery]) -> None:
    keys = {table.name: tuple(key.domain or () for key in priced[table.name].question.keys) for table in tables}
    layout = layout_of(tables, plan.levels, keys)
    for column, measure in tables[0].measures.items():
        if adds_up(measure):
            _check_column(plan, tables, layout, _public_facts(priced[tables[0].name], column))


def _check_column(plan: ReleasePlan, tables: Sequence[TablePlan], layout: CellLayout, column: AnswerColumn) -> None:
    grain = column.grain or Fraction(1)
    grain = -grain if column.limits == NEVER_POSITIVE else grain
    known = known_of(plan.invariants, tables, layout, column.name, grain)
    if not known:
        return
    numbers = {table.name: number for number, table in enumerate(tables)}
    spots = [layout.spots[table.name] for table in tables]
    cells = known_cells({(numbers[table], cell): value for (table, cell), value in known.items()}, spots, layout.atoms)
    whole_totals(cells, np.zeros(cells.count), not_negative=grain < 0 or column.limits[0] == 0)


def _public_facts(priced: PricedQuery, name: str) -> AnswerColumn:
    """Return a column as it will be published, with its grain and limits, and without any values."""
    draft = priced.draft
    shown = next(output for output in draft.question.outputs if output.name == name)
    if not isinstance(shown.value, ReleasedMeasure):
        raise InvalidParameter(f"{name} is computed from released values and so does not add up")
    nothing = ReleasedNumbers(tuple(np.zeros(0, np.int64) for _ in draft.numbers), (), (), 0)
    made = answer(draft, shown.value.measure, nothing, draft.spend.confidence)
    return AnswerColumn(name=name, kind=made.kind, values=(), limits=made.limits, grain=made.grain)
