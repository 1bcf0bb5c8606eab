"""How a question will be answered, before anything is spent: for people, and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import final

from discreet.mechanisms.text import plain, significant_up
from discreet.query.expressions import Field
from discreet.query.planning.draft import Draft, Number, Picked, Tallying
from discreet.query.planning.noises import NumberNoise
from discreet.query.planning.picking import reason
from discreet.query.planning.posts import measures_in
from discreet.query.planning.predicted import needs_rows, predicted
from discreet.query.question import Answer, Output
from discreet.query.sources import column_names

__all__ = ["Explanation", "explain"]

_TYPICAL = 1000  # Rows of a group in a statement that depends on them.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Facts by name, in the order in which people want them. All of it is public."""

    facts: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...]  # by column
    notes: tuple[str, ...]

    def __str__(self) -> str:
        pairs = (*self.facts, *((f"± of {name}", text) for name, text in self.errors))
        width = max(len(name) for name, _ in pairs)
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in pairs), *(f"· {note}" for note in self.notes)])

    __repr__ = __str__

    def to_json(self) -> str:
        """Write everything as one JSON object."""
        document = {"facts": dict(self.facts), "errors": dict(self.errors), "notes": list(self.notes)}
        return json.dumps(document, ensure_ascii=False)

    def _repr_html_(self) -> str:
        pairs = (*self.facts, *((f"± of {name}", text) for name, text in self.errors))
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in pairs)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<table>{rows}</table><ul>{notes}</ul>"


def explain(draft: Draft, *, cost: str, notes: tuple[str, ...], left: str | None) -> Explanation:
    """Say everything."""
    facts = [
        ("price", cost),
        ("protects", _protects(draft)),
        ("noise", _noise(draft)),
        *((f"noise of {_named(draft, number)}", _scale(draft, number, one)) for number, one in _numbers(draft)),
        *_groups(draft),
    ]
    if left is not None:
        facts.append(("budget left", left))
    errors = tuple((output.name, _error(draft, output)) for output in draft.question.outputs if _is_measured(output))
    return Explanation(facts=tuple(facts), errors=errors, notes=notes)


def _numbers(draft: Draft) -> list[tuple[Number, NumberNoise]]:
    assert draft.noising is not None
    return list(zip(draft.numbers, draft.noising.numbers, strict=True))


def _protects(draft: Draft) -> str:
    unit = draft.catalogue.unit
    return (
        "each row, there or not there" if unit.is_row else f"each {unit.column} with all its rows, there or not there"
    )


def _noise(draft: Draft) -> str:
    assert draft.noising is not None
    kinds = []
    if draft.noising.numbers:
        kinds.append("Gaussian, rounded to the grid" if draft.noising.gaussian else "discrete Laplace")
    if draft.picks:
        flips = any(chooser.flips for chooser in draft.choosers)
        kinds.append("choices by the exponential mechanism" + (" or permute-and-flip" if flips else ""))
    return "; ".join(kinds) or "on the number of units of each group only"


def _named(draft: Draft, number: Number) -> str:
    """Call a number by what it counts and, where it has a name, by its column."""
    if number.column is None:
        return number.tallying.value
    expression = draft.columns[number.column].expression
    names = column_names(draft.question.source)
    name = names.get(expression.name) if isinstance(expression, Field) else None
    return f"{number.tallying.value} of {name or f'value {number.column + 1}'}"


def _scale(draft: Draft, number: Number, one: NumberNoise) -> str:
    """Tell the noise as people count, not in grid steps."""
    step = one.unit * _step(draft, number)
    sd, change = significant_up(Fraction(one.law.standard_deviation) * step), significant_up(one.change * step)
    return f"standard deviation {sd}, for a change of {change} by one unit in one group"


def _step(draft: Draft, number: Number) -> Fraction:
    grid = None if number.column is None else draft.columns[number.column].grid
    if grid is None or number.tallying not in (Tallying.TOTAL, Tallying.SQUARES):
        return Fraction(1)
    return grid.step if number.tallying is Tallying.TOTAL else grid.step**2


def _groups(draft: Draft) -> list[tuple[str, str]]:
    assert draft.noising is not None
    selection = draft.noising.selection
    if selection is None:
        return [("groups", f"{draft.groups:,}, all of them public")] if draft.question.keys else []
    least = selection.reliable_count()
    return [("groups", f"hidden unless units + noise > {selection.threshold}; {least} units are shown with 95 %")]


def _is_measured(output: Output) -> bool:
    return any(True for _ in measures_in(output.value))


def _error(draft: Draft, output: Output) -> str:
    if not isinstance(output.value, Answer):
        return "follows from the released values it is computed from"
    recipe, rows = draft.recipes[output.value.measure], draft.spend.expected
    if isinstance(recipe, Picked):
        return f"none: {reason(draft, recipe.pick)}"
    off = predicted(draft, output, rows or _TYPICAL)
    assert off is not None
    written = f"± {significant_up(off)}"
    if not needs_rows(draft, output):
        return f"{written} with {plain(draft.spend.confidence * 100)} % confidence"
    return f"up to {written} if a group has {rows or _TYPICAL:,} rows"
