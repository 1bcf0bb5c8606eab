"""A profile, and its price, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.mechanisms.text import significant_up
from discreet.release.profiling.estimates import CONFIDENCE
from discreet.release.profiling.partition import Bound, written
from discreet.release.profiling.quantiles import ProfileQuantile
from discreet.release.profiling.telling import notes_of, rule_of

if TYPE_CHECKING:
    from fractions import Fraction

    from discreet.release.profiling.estimates import Estimate
    from discreet.release.profiling.plan import ProfilePlan
    from discreet.release.profiling.results import ColumnProfile, Profile

__all__ = ["estimate_text", "price_text", "quantile_text", "share_text", "spent_text", "text"]

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
    value = "?" if quantile.value is None else written(quantile.value)
    return f"{value} ({_end(quantile.low, 'less')} … {_end(quantile.high, 'more')})"


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
        f"left of the budget before: {plan.session.left}",
    ]
    return "\n".join(lines)


def _round_text(plan: ProfilePlan, place: int, at: str) -> str:
    """Say what a round costs; with Gaussian noise rho, of which the epsilon of the whole is made."""
    amount = significant_up(plan.amount_of(at), 3)
    delta = plan.division.delta if at == "find" and plan.division.delta_each is not None else None
    chance = "" if delta is None else f" and δ = {significant_up(delta / 2, 3)}"
    paid = "" if at in plan.unpaid else "; paid already"
    return f"round {place}, {_NAMES[at]}: {'ρ' if plan.division.gaussian else 'ε'} = {amount}{chance}{paid}"


def _expected(plan: ProfilePlan) -> int:
    """Return the widest ± of the counts of about twenty cells."""
    from discreet.release.profiling.dividing import share_of

    share = min(share for subject in plan.subjects if (share := share_of(subject, "count")) is not None)
    return plan.division.law(share, _CELLS).half_width(CONFIDENCE)


def text(profile: Profile) -> str:
    """Write all columns, one after the other."""
    whom = "rows" if profile.unit.is_row else profile.unit.column
    spent = profile.spent
    head = [
        f"Profile of {profile.table}: {len(profile.columns)} columns, {whom}: {estimate_text(profile.units)}",
        f"spent: {spent_text(spent.allowed, spent.epsilon, spent.delta)}",
        "",
    ]
    body = [line for column in profile.columns for line in (*_column(column), "")]
    return "\n".join([*head, *body, *(f"· {note}" for note in (*profile.notes, *profile.rule))])


def _column(column: ColumnProfile) -> list[str]:
    missing = f"{estimate_text(column.missing)} ({share_text(column.missing, column.present)})"
    lines = [
        f"{_printable(column.name)}  {column.kind.value}",
        f"  values {estimate_text(column.present)}, missing {missing}",
    ]
    if column.quantiles:
        told = (f"{int(100 * one.share)} %: {quantile_text(one)}" for one in column.quantiles)
        lines.append(f"  quantiles {';  '.join(told)}")
    rest = [cell for cell in column.cells if cell.rest and column.top]
    shown = column.cells if column.ordered else (*column.top[:_TOP], *rest)
    lines += _bars([(cell.label, cell.count) for cell in shown])
    more = len(column.top) - _TOP
    lines += [f"  … {more} more named values"] if more > 0 else []
    return [*lines, *(f"  {reason}" for reason in column.reasons)]


def _bars(cells: list[tuple[str, Estimate]]) -> list[str]:
    width = max((len(_printable(label)) for label, _ in cells), default=0)
    most = max((count.tidy for _, count in cells), default=0)
    return [
        f"  {_printable(label).ljust(width)}  {estimate_text(count):>20}  {_bar(count.tidy, most)}".rstrip()
        for label, count in cells
    ]


def _bar(count: int, most: int) -> str:
    return "█" * round(_BAR * count / most) if most else ""


def _printable(word: str) -> str:
    """Replace what would break a line or steer a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in word)
