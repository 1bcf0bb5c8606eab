"""Mechanisms as their wrong authors run them, each beside the right one: the auditor sees outputs only."""

from __future__ import annotations

from planted_choices import CHOICES
from planted_counts import COUNTS
from planted_steps import STEPS

PLANTED = [*COUNTS, *CHOICES, *STEPS]
