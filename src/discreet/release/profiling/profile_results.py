"""A profile: what was released of every column, with its ±, as text and as JSON. All of it may be published."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.formatting import printable, significant_up, with_article
from discreet.query import Unit
from discreet.release.profiling.cells import Bound, written
from discreet.release.profiling.estimates import CONFIDENCE, Estimate, ProfileQuantile
from discreet.release.profiling.profile_queries import ColumnSearch, Division, ProfiledColumn
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    from discreet.release.profiling.profile_plan import ProfilePlan

__all__ = [
    "CellCount",
    "ColumnProfile",
    "Profile",
    "ProfileCost",
    "beyond_text",
    "counted_text",
    "estimate_text",
    "notes_of",
    "packed",
    "price_text",
    "quantile_text",
    "rule_of",
    "share_text",
    "spent_text",
    "text",
    "whose_text",
]

# --- results ---
# A profile: what was released of every column, with its ±, and what that cost. All of it may be shown to anybody.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellCount:
    """How many rows are in one cell of a column: between two ends, or with one value."""

    label: str
    count: Estimate
    low: Bound | None = None
    high: Bound | None = None
    value: Hashable = None
    rest: bool = False  # everything that is in no other cell


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnProfile:
    """What is known of a column now."""

    name: str
    kind: Kind
    basis: str  # where the cells come from, in words
    missing: Estimate
    present: Estimate
    cells: tuple[CellCount, ...]
    ordered: bool  # whether the cells are ranges of numbers or times
    quantiles: tuple[ProfileQuantile, ...] = ()
    reasons: tuple[str, ...] = ()  # what is not there, and why
    open_ends: tuple[str, ...] = ()  # "below" or "above": beyond these ends of the cells too much lies

    @property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """Between which numbers or times nearly all values lie; None for an end that was not found."""
        if not self.ordered or not self.cells:
            return None, None
        lows = [cell.low for cell in self.cells if cell.low is not None]
        highs = [cell.high for cell in self.cells if cell.high is not None]
        below, above = (end in self.open_ends for end in ("below", "above"))
        return (lows[0] if lows and not below else None), (highs[-1] if highs and not above else None)

    @property
    def top(self) -> tuple[CellCount, ...]:
        """The values with the largest counts first; none for ranges."""
        if self.ordered:
            return ()
        listed = [cell for cell in self.cells if not cell.rest]
        return tuple(sorted(listed, key=lambda cell: (-cell.count.value, cell.label)))

    @property
    def leader(self) -> CellCount | None:
        """The value that is surely the most frequent of those that are named; None if noise could have made it so."""
        top = self.top
        second = top[1].count.high if len(top) > 1 else 0
        return top[0] if top and top[0].count.low > second else None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCost:
    """What a profile cost: at most what was allowed, and by tight accounting the first number."""

    epsilon: float  # at `delta`, rounded up
    delta: Fraction
    allowed: Fraction  # epsilon
    charges: tuple[str, ...]  # the keys of the charges in the ledger


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile:
    """All columns of a table. Everything in it was paid for, or follows from what was."""

    dataset: str
    table: str
    unit: Unit
    units: Estimate
    columns: tuple[ColumnProfile, ...]
    spent: ProfileCost
    rule: tuple[str, ...]  # how the budget was divided, in words
    notes: tuple[str, ...]

    def column(self, name: str) -> ColumnProfile:
        """Return a column by its name."""
        from discreet.errors import InvalidParameter
        from discreet.query.session.catalogue_builder import nearest

        for column in self.columns:
            if column.name == name:
                return column
        raise InvalidParameter(f"there is no column {name!r}. {nearest(name, [one.name for one in self.columns])}")

    def to_json(self) -> str:
        """Write everything as JSON."""
        return packed(self)

    def write(self, path: str | Path) -> Path:
        """Write one HTML file that opens anywhere, without a script and without a network."""
        from discreet.release.profiling.profile_page import page

        file = Path(path)
        file.write_text(page(self), encoding="utf-8")
        return file

    def __str__(self) -> str:
        return text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from discreet.pages import kit

        head, spent = text(self).splitlines()[:2]
        rows = (
            (one.name, one.kind.value, estimate_text(one.present), estimate_text(one.missing), _middle(one))
            for one in self.columns
        )
        middle = f"median{whose_text(self.unit)}, or most frequent value"
        heads = ("column", "type", "values", "missing", middle)
        told = kit.grid(rows, heads, right=(False, False, True, True, False))
        whole = "" if self.unit.is_row else kit.paragraph(f"Not counts of all rows. {counted_text(self.unit)}")
        return f"{kit.paragraph(head)}{whole}{told}<small>{kit.words(spent)}</small>{kit.bullets(self.notes)}"


# --- packing: A profile as JSON: every number as it was released. ---


FORMAT = 1


def packed(profile: Profile) -> str:
    """Write a profile."""
    spent = profile.spent
    document = {
        "format": FORMAT,
        "dataset": profile.dataset,
        "table": profile.table,
        "unit": {
            "column": list(profile.unit.columns) if profile.unit.is_composed else profile.unit.called,
            "max_groups": profile.unit.max_groups,
            "max_rows_per_group": profile.unit.max_rows_per_group,
            **({} if profile.unit.window is None else {"window": profile.unit.window, "time": profile.unit.time}),
            **({} if profile.unit.zone == "UTC" else {"zone": profile.unit.zone}),
            **({} if profile.unit.name is None else {"name": profile.unit.noun, "plural": profile.unit.nouns}),
        },
        "units": _estimate(profile.units),
        "confidence": 0.95,
        "spent": {
            "epsilon": spent.epsilon,
            "delta": float(spent.delta),
            "allowed_epsilon": float(spent.allowed),
            "charges": list(spent.charges),
        },
        "columns": [_column(column) for column in profile.columns],
        "rule": list(profile.rule),
        "notes": list(profile.notes),
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def _column(column: ColumnProfile) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind.value,
        "basis": column.basis,
        "bounds": [_value(end) for end in column.bounds],
        "missing": _estimate(column.missing),
        "present": _estimate(column.present),
        "quantiles": [
            {
                "share": float(one.share),
                "value": _value(one.value),
                **({"beyond": one.beyond} if one.beyond else {}),
                "low": _value(one.low),
                "high": _value(one.high),
            }
            for one in column.quantiles
        ],
        "cells": [_cell(cell, ordered=column.ordered) for cell in column.cells],
        "reasons": list(column.reasons),
    }


def _cell(cell: CellCount, *, ordered: bool) -> dict[str, Any]:
    where = {"from": _value(cell.low), "below": _value(cell.high)} if ordered else {"value": _value(cell.value)}
    return {"label": cell.label, **where, **({"rest": True} if cell.rest else {}), "count": _estimate(cell.count)}


def _estimate(estimate: Estimate) -> dict[str, int]:
    return {"value": estimate.value, "plus_minus": estimate.plus_minus, "low": estimate.low, "high": estimate.high}


def _value(value: Hashable) -> Any:
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


# --- text: A profile, and its price, as plain text. ---


_TOP = 5
_CELLS = 20
_LESS = 0.99  # Above this part of what was allowed the tight number is not worth a word.
_BAR = 24
_NAMES = {"find": "find bounds and values", "narrow": "narrow the bounds", "count": "count"}


def estimate_text(estimate: Estimate) -> str:
    """Write a count with its ±."""
    return f"{estimate.tidy:,} ± {estimate.plus_minus:,}"


def share_text(part: Estimate, whole: Estimate) -> str:
    """Write about which part of all rows a count is."""
    total = part.tidy + whole.tidy
    return f"{100 * part.tidy / total:.1f} %" if total else "–"


def quantile_text(quantile: ProfileQuantile) -> str:
    """Write a quantile with its interval."""
    value = beyond_text(quantile) or ("?" if quantile.value is None else written(quantile.value))
    return f"{value} ({_end(quantile.low, 'less')} … {_end(quantile.high, 'more')})"


def _middle(column: ColumnProfile) -> str:
    if column.quantiles:
        return quantile_text(column.quantiles[len(column.quantiles) // 2])
    return "–" if column.leader is None else printable(column.leader.label)


def beyond_text(quantile: ProfileQuantile) -> str:
    """Write a quantile that lies beyond the outermost cut, of which no more is known; empty for any other."""
    if not quantile.beyond or quantile.value is None:
        return ""
    end = written(quantile.value)
    return f"{end} or more" if quantile.beyond == "above" else f"less than {end}"


def _end(end: Bound | None, otherwise: str) -> str:
    return otherwise if end is None else written(end)


def spent_text(allowed: Fraction, epsilon: float, delta: Fraction, *, tight: bool = True) -> str:
    """Write what is spent, and what it is by tight accounting."""
    from discreet.exact import exact
    from discreet.ledger.budget import readable

    said = f"ε = {readable(allowed)}" + (f", δ = {readable(delta)}" if delta else "")
    if not tight or epsilon > _LESS * allowed:
        return said
    return f"{said} (by tight accounting ε = {significant_up(exact(epsilon, name='epsilon'), 3)})"


def price_text(plan: ProfilePlan) -> str:
    """Say what a profile will ask and cost, round by round."""
    lines = [
        f"Profile of {plan.table.name}: {len(plan.subjects)} columns",
        f"price: {spent_text(plan.allowed, plan.epsilon, plan.delta)}, for all of it",
        *(_round_text(plan, place, at) for place, at in enumerate(plan.rounds, 1)),
        f"expected: counts ± {_expected(plan):,} at 95 %",
        *plan.hidden,
        *rule_of(plan.subjects, plan.division),
        *notes_of(plan.session.unit)[:1],
        *([plan.read_as_text] if plan.read_as_text else []),
        f"left of the budget before: {plan.session.left}",
    ]
    return "\n".join(lines)


def _round_text(plan: ProfilePlan, place: int, at: str) -> str:
    """Say what a round costs; with Gaussian noise rho, of which the epsilon of the whole is made."""
    amount = significant_up(plan.amount_of(at), 3)
    delta = plan.division.delta_of_searches if at == "find" else None
    chance = "" if delta is None else f" and δ = {significant_up(delta, 3)}"
    paid = "" if at in plan.unpaid else "; paid already"
    return f"round {place}, {_NAMES[at]}: {'ρ' if plan.division.gaussian else 'ε'} = {amount}{chance}{paid}"


def _expected(plan: ProfilePlan) -> int:
    """Return the widest ± of the counts of about twenty cells."""
    from discreet.release.profiling.profile_queries import share_of

    share = min(share for subject in plan.subjects if (share := share_of(subject, "count")) is not None)
    return plan.division.law(share, _CELLS).half_width(CONFIDENCE)


def text(profile: Profile) -> str:
    """Write all columns, one after the other."""
    spent, unit = profile.spent, profile.unit
    head = [
        f"Profile of {profile.table}: {len(profile.columns)} columns, {estimate_text(profile.units)} {unit.nouns}",
        f"spent: {spent_text(spent.allowed, spent.epsilon, spent.delta)}",
        *([] if unit.is_row else [f"NOT COUNTS OF ALL ROWS: {counted_text(unit)}"]),
        "",
    ]
    body = [line for column in profile.columns for line in (*_text_column(column, whose_text(unit)), "")]
    return "\n".join([*head, *body, *(f"· {note}" for note in (*profile.notes, *profile.rule))])


def _text_column(column: ColumnProfile, whose: str) -> list[str]:
    missing = f"{estimate_text(column.missing)} ({share_text(column.missing, column.present)})"
    lines = [
        f"{printable(column.name)}  {column.kind.value}",
        f"  values {estimate_text(column.present)}, missing {missing}",
    ]
    if column.quantiles:
        told = (f"{int(100 * one.share)} %: {quantile_text(one)}" for one in column.quantiles)
        lines.append(f"  quantiles{whose} {';  '.join(told)}")
    rest = [cell for cell in column.cells if cell.rest and column.top]
    shown = column.cells if column.ordered else (*column.top[:_TOP], *rest)
    lines += _bars([(cell.label, cell.count) for cell in shown])
    more = len(column.top) - _TOP
    lines += [f"  … {more} more named values"] if more > 0 else []
    return [*lines, *(f"  {reason}" for reason in column.reasons)]


def _bars(cells: list[tuple[str, Estimate]]) -> list[str]:
    width = max((len(printable(label)) for label, _ in cells), default=0)
    most = max((count.tidy for _, count in cells), default=0)
    return [
        f"  {printable(label).ljust(width)}  {estimate_text(count):>20}  {_bar(count.tidy, most)}".rstrip()
        for label, count in cells
    ]


def _bar(count: int, most: int) -> str:
    return "█" * round(_BAR * count / most) if most else ""


# --- telling: What a profile says in words: how the budget was divided, and what its numbers mean. ---


def rule_of(subjects: tuple[ProfiledColumn, ...], division: Division) -> tuple[str, ...]:
    """Say how the budget is divided. It follows from the schema and from what is declared, never from rows."""
    searches = {subject.search for subject in subjects}
    told = [
        f"The budget is divided into {division.parts} equal parts: one for each of {len(subjects)} columns, and one "
        f"for how many {_whom(division.unit)}."
    ]
    if searches & {ColumnSearch.NUMBERS, ColumnSearch.TIMES}:
        told.append(
            "A column without declared bounds spends a sixth of its part on a ladder of ranges that is the same for "
            "every column, a sixth on narrowing it, and two thirds on counting."
        )
    if ColumnSearch.VALUES in searches:
        told.append(
            "A column of texts without declared categories spends a third of its part on finding values that many "
            "share, and two thirds on counting them. A fifth of δ is for these, in equal parts."
        )
    return (*told, f"Noise is {'Gaussian' if division.gaussian else 'Laplace'}: here its ± is the smaller one.")


def notes_of(unit: Unit) -> tuple[str, ...]:
    """Say what every number of a profile means."""
    counted = (
        "Each row is protected by itself and counted once."
        if unit.is_row
        else f"{_together(unit)} {counted_text(unit)} Rows without {with_article(unit.missing)} are left out. Counts "
        "and quantiles are of what is counted so (contribution bounding), not of all rows."
    )
    return (
        counted,
        "± is for one number at a time, at 95 %. Values outside of declared bounds are counted at the bound.",
        "The largest of many noisy counts is likely one with much noise: the order of values that are close is chance.",
    )


def _together(unit: Unit) -> str:
    if unit.name is None:
        return f"Everybody who shares {with_article(unit.identity)} is protected together."
    if unit.window is not None:
        return f"Each {unit.noun} is protected: all rows that share {unit.shared}."
    return f"Each {unit.name} is protected: everybody who shares {with_article(unit.identity)}, together."


def counted_text(unit: Unit) -> str:
    """Say what is counted of a unit that may have several rows: first groups are drawn, and rows in these."""
    groups, rows = unit.max_groups, unit.max_rows_per_group
    skewed = "values that few of its rows have count for more than in the table."
    if groups == rows == 1:
        return f"Each {unit.noun} is counted in one of its values or ranges of a column, taken at random: {skewed}"
    each = f"{rows} row{'s' * (rows > 1)}"
    spread = "one of its values or ranges" if groups == 1 else f"each of {groups} of its values or ranges"
    return f"Each {unit.noun} is counted with at most {each} in {spread} of a column, taken at random: {skewed}"


def whose_text(unit: Unit) -> str:
    """Say of what quantiles are, with a space before; empty where they are of rows."""
    if unit.is_row:
        return ""
    one = unit.max_groups == unit.max_rows_per_group == 1
    return f" of {'one value' if one else 'the counted values'} of each {unit.noun}"


def _whom(unit: Unit) -> str:
    if unit.name is not None:
        return f"{unit.nouns} there are"
    return "rows there are" if unit.is_row else f"different values {unit.identity} has"
