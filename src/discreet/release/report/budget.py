"""The budget: what each table spends alone, what the release spends, and what the data set may ever spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.mechanisms.text import significant_up
from discreet.plots import ruler, scale_for, strip
from discreet.release.bundle.claims import StatedGuarantee
from discreet.release.bundle.telling import lifetime_words
from discreet.release.published import Published
from discreet.release.report.marks import paragraph, prose, section, words

__all__ = ["budget_part"]

_MANY = 30  # Tables of which each gets a bar.


def budget_part(published: Published, claim: StatedGuarantee) -> str:
    """Write the section of the budget."""
    titles = {table.plan.name: table.plan.title for table in published.tables}
    titles |= {running.plan.name: f"{running.plan.title or running.plan.name} (once)" for running in published.running}
    alone = [(titles[name], level) for name, level in claim.alone if math.isfinite(level)][:_MANY]
    spent = [(name, level, _level(level)) for name, level in [*alone, (_together(claim), claim.epsilon)]]
    parts = [
        paragraph(
            "Privacy is spent like money: every table that is published tells a little about everybody in it. ε "
            "(epsilon) measures how much; smaller is safer. A ledger writes every expense down before the data are "
            "read."
        ),
        _bars("What is spent, as ε", spent, strong={spent[-1][0]}),
        paragraph(
            "Each table is shown as if it were alone, at the same δ. What they spend together is worked out as a "
            "whole.",
            kind="note",
        )
        if len(alone) > 1
        else "",
        *_lifetime(claim),
        paragraph(lifetime_words(claim)),
    ]
    return section("budget", "The budget", parts)


def _lifetime(claim: StatedGuarantee) -> list[str]:
    """Draw what is left of the budget as the ledger counts it, or else this release beside the whole of it."""
    if claim.left is not None and claim.budget.kind != "unlimited":
        left = math.floor(1000 * claim.left.share) / 10
        rows = [("used so far", 100 - left, f"{100 - left:.1f} %"), ("left", left, f"{left:.1f} %")]
        return [
            _bars("The lifetime budget after this release, in per cent", rows, strong={"used so far"}),
            *_rule(claim),
        ]
    whole = claim.budget.epsilon
    if whole is None:
        return []
    levels = [("everything here", claim.epsilon), ("the whole lifetime of the data", float(whole))]
    rows = [(name, level, _level(level)) for name, level in levels]
    return [_bars("Everything here, and the lifetime budget, as ε", rows, strong={"everything here"})]


def _rule(claim: StatedGuarantee) -> list[str]:
    """Say why the share of the budget that is used is not the share of its ε."""
    told = (
        "Shares are counted by the rule of the ledger, under which many small expenses add up more slowly than their ε."
    )
    return [paragraph(told, kind="note")] if claim.budget.kind == "approximate" else []


def _level(level: float) -> str:
    return f"ε = {significant_up(Fraction(level))}"


def _together(claim: StatedGuarantee) -> str:
    """Name the whole; a series that protects single days is beside it."""
    return f"everything here together{', without ' + ' and '.join(claim.apart) if claim.apart else ''}"


def _bars(caption: str, rows: Sequence[tuple[str, float, str]], *, strong: set[str]) -> str:
    scale = scale_for(length for _, length, _ in rows)
    drawn = "".join(
        f'<tr><th class="key" scope="row">{words(name)}</th><td class="drawn">'
        f"{strip(scale, length, accent=name in strong)}</td>"
        f'<td class="number">{prose(told)}</td></tr>'
        for name, length, told in rows
    )
    last = f'<tr class="ruler" aria-hidden="true"><td></td><td class="drawn">{ruler(scale)}</td></tr>'
    return f'<table class="chart wide"><caption><b>{words(caption)}</b></caption><tbody>{drawn}{last}</tbody></table>'
