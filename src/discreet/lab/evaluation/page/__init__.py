"""The report as one page: verdicts first, then what is promised, what attackers found, and what it is good for."""

from __future__ import annotations

from discreet.lab.evaluation.page.evaluation_page import page

__all__ = ["page"]
