"""The report of a release: one page for everybody, that opens anywhere."""

from __future__ import annotations

from discreet.release.report.release_report import report_page

__all__ = ["report_page"]
