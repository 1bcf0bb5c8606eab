"""How a question will be answered, before anything is spent: for people, and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import final

from discreet.mechanisms.text import plain, significant_up
from discreet.query.planning.draft import (
    Added,
    Averaged,
    CountTerm,
    Number,
    Picked,
    PlanDraft,
    QuantilePick,
    Recipe,
    SpreadTerm,
    TallySpec,
)
from discreet.query.planning.picking import reason
from discreet.query.planning.posts import measures_in
from discreet.query.planning.predicted import needs_rows, predicted
from discreet.query.question import OutputColumn, ReleasedMeasure

__all__ = ["Explanation", "explain"]

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
        pairs = (*self.facts, *self.errors)
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in pairs)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<table>{rows}</table><ul>{notes}</ul>"


def explain(draft: PlanDraft, *, cost: str, notes: tuple[str, ...], left: str | None) -> Explanation:
    """Say what it costs, whom it protects, and how far off every column will be."""
    facts = [("price", cost), ("protects", _protects(draft)), *_groups(draft)]
    if left is not None:
        facts.append(("budget left", left))
    measured = [output for output in draft.question.outputs if any(True for _ in measures_in(output.value))]
    errors = tuple((output.name, _error(draft, output)) for output in measured)
    return Explanation(facts=tuple(facts), errors=errors, notes=notes)


def _protects(draft: PlanDraft) -> str:
    unit = draft.catalogue.unit
    return "each row" if unit.is_row else f"each {unit.column} with all its rows"


def _groups(draft: PlanDraft) -> list[tuple[str, str]]:
    assert draft.noising is not None
    selection = draft.noising.selection
    if selection is None:
        return [("groups", f"{draft.groups:,}, all of them public")] if draft.question.keys else []
    least = selection.reliable_count()
    return [("groups", f"hidden unless units + noise > {selection.threshold}; {least} units are shown with 95 %")]


def _error(draft: PlanDraft, output: OutputColumn) -> str:
    """Say how far off a column will be, and by which noise."""
    if not isinstance(output.value, ReleasedMeasure):
        return "± follows from the released values it is computed from"
    recipe, rows = draft.recipes[output.value.measure], draft.spend.expected or _TYPICAL
    if isinstance(recipe, Picked):
        return f"no ±: {reason(draft, recipe.pick)}; {_choice(draft, recipe)}"
    off = predicted(draft, output, rows)
    assert off is not None
    written = f"± {significant_up(off)}"
    how_far = (
        f"up to {written} if a group has {rows:,} rows" if needs_rows(draft, output) else f"{written} {_sure(draft)}"
    )
    return f"{how_far}; {_noise(draft, recipe)}"


def _sure(draft: PlanDraft) -> str:
    return f"with {plain(draft.spend.confidence * 100)} % confidence"


def _choice(draft: PlanDraft, recipe: Picked) -> str:
    if isinstance(draft.picks[recipe.pick], QuantilePick) or not draft.choosers[recipe.pick].flips:
        return "exponential mechanism"
    return "permute-and-flip"


def _noise(draft: PlanDraft, recipe: Recipe) -> str:
    """Name the noise of the numbers behind an answer, with standard deviations as people count."""
    assert draft.noising is not None
    law = "rounded Gaussian noise" if draft.noising.gaussian else "discrete Laplace noise"
    numbers = [f"{_WORDS[draft.numbers[place].tallying]} (sd {_deviation(draft, place)})" for place in _places(recipe)]
    return f"{law} on {' and '.join([', '.join(numbers[:-1]), numbers[-1]] if numbers[1:] else numbers)}"


def _places(recipe: Recipe) -> list[int]:
    match recipe:
        case CountTerm():
            places = [recipe.number, recipe.also]
        case Added() | Averaged():
            places = [recipe.total, recipe.count]
        case SpreadTerm():
            places = [recipe.squares, recipe.total, recipe.count]
        case Picked():
            places = []
    return [place for place in places if place is not None]


def _deviation(draft: PlanDraft, place: int) -> str:
    assert draft.noising is not None
    one = draft.noising.numbers[place]
    return significant_up(Fraction(one.law.standard_deviation) * one.unit * _step(draft, draft.numbers[place]))


def _step(draft: PlanDraft, number: Number) -> Fraction:
    grid = None if number.column is None else draft.columns[number.column].grid
    if grid is None or number.tallying not in (TallySpec.TOTAL, TallySpec.SQUARES):
        return Fraction(1)
    return grid.step if number.tallying is TallySpec.TOTAL else grid.step**2
