"""Verification on small worlds: rigorous divergences over all pairs of neighbours, compared with the claim.

A verification can refute a claim; it cannot prove one. It says "no violation in this world".
"""

from __future__ import annotations

from discreet.lab.verify.checking import SLACK, check, check_renyi
from discreet.lab.verify.claim import Claim, DivergenceMeasure, Finding, Verification
from discreet.lab.verify.small_worlds import ExhaustiveSensitivity, Worlds, l1, sensitivity, squared_l2, worlds
from discreet.privacy.outcomes import Outcomes

__all__ = [
    "SLACK",
    "Claim",
    "DivergenceMeasure",
    "ExhaustiveSensitivity",
    "Finding",
    "Outcomes",
    "Verification",
    "Worlds",
    "check",
    "check_renyi",
    "l1",
    "sensitivity",
    "squared_l2",
    "worlds",
]
