"""The budget: what each table spends alone, what the release spends, and what the data set may ever spend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.mechanisms.text import significant_up
from discreet.plots import ruler, scale_for, strip
from discreet.release.bundle.claims import Claim
from discreet.release.bundle.telling import lifetime_words
from discreet.release.published import Published
from discreet.release.report.marks import paragraph, section, words

__all__ = ["budget_part"]

_MANY = 30  # Tables of which each gets a bar.


def budget_part(published: Published, claim: Claim) -> str:
    """Write the section of the budget."""
    titles = {table.plan.name: table.plan.title for table in published.tables}
    titles |= {running.plan.name: f"{running.plan.title or running.plan.name} (once)" for running in published.running}
    alone = [(titles[name], level) for name, level in claim.alone if math.isfinite(level)][:_MANY]
    spent = [*alone, ("everything here together", claim.epsilon)]
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


def _lifetime(claim: Claim) -> list[str]:
    whole = claim.budget.epsilon
    if whole is None:
        return []
    rows = [("everything here", claim.epsilon), ("the whole lifetime of the data", float(whole))]
    return [_bars("Everything here, and the lifetime budget, as ε", rows, strong={"everything here"})]


def _bars(caption: str, rows: Sequence[tuple[str, float]], *, strong: set[str]) -> str:
    scale = scale_for(level for _, level in rows)
    drawn = "".join(
        f'<tr><th class="key" scope="row">{words(name)}</th><td class="drawn">'
        f"{strip(scale, level, accent=name in strong)}</td>"
        f'<td class="number">ε = {words(significant_up(Fraction(level)))}</td></tr>'
        for name, level in rows
    )
    last = f'<tr class="ruler" aria-hidden="true"><td></td><td class="drawn">{ruler(scale)}</td></tr>'
    return f'<table class="chart"><caption><b>{words(caption)}</b></caption><tbody>{drawn}{last}</tbody></table>'
