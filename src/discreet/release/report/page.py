"""The report: one page that opens anywhere, loads nothing and runs nothing."""

from __future__ import annotations

from discreet.release.bundle.claims import StatedGuarantee
from discreet.release.bundle.naming import DUMMY
from discreet.release.published import Published
from discreet.release.report.attacker import attacker_part
from discreet.release.report.budget import budget_part
from discreet.release.report.closing import hidden_part, limits_part, verify_part
from discreet.release.report.marks import words
from discreet.release.report.opening import about_part, head_part
from discreet.release.report.series import series_part
from discreet.release.report.style import POLICY, STYLE
from discreet.release.report.tables import tables_part

__all__ = ["report_page"]


def report_page(published: Published, claim: StatedGuarantee) -> str:
    """Write the whole page."""
    main = (
        about_part(published, claim),
        tables_part(published),
        series_part(published),
        budget_part(published, claim),
        hidden_part(published),
        attacker_part(published, claim),
        limits_part(published, claim),
        verify_part(published),
    )
    body = f"{head_part(published, claim)}<main>{''.join(main)}</main>{_foot(published)}"
    return f"{_head(published)}<body>{body}</body></html>\n"


def _head(published: Published) -> str:
    title = published.plan.title if published.ledger is not None else f"{DUMMY}: {published.plan.title}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{words(title)}</title><style>{STYLE}</style></head>"
    )


def _foot(published: Published) -> str:
    plan = published.plan
    by = " · ".join(part for part in (plan.publisher, plan.contact) if part)
    made = "Made with Discreet. This page loads nothing and runs nothing; it works offline."
    return f"<footer><p>{words(by)}</p><p>{words(made)}</p></footer>"
