"""The whole page."""

from __future__ import annotations

from html import escape

from discreet.release.bundle.claims import Claim
from discreet.release.published import Published

__all__ = ["report_page"]


def report_page(published: Published, claim: Claim) -> str:
    """Write the report."""
    warning = "DUMMY" if published.ledger is None else ""
    return f"<!doctype html><title>{escape(published.plan.title)}</title>{warning}"
