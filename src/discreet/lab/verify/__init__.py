"""Verification on small worlds: rigorous divergences over all pairs of neighbours, compared with the claim.

A verification can refute a claim; it cannot prove one. It says "no violation in this world".
"""

from __future__ import annotations

from discreet.lab.verify.checking import check, check_renyi
from discreet.lab.verify.small_worlds import l1, sensitivity, squared_l2, worlds
from discreet.privacy.outcomes import Outcomes

__all__ = [
    "Outcomes",
    "check",
    "check_renyi",
    "l1",
    "sensitivity",
    "squared_l2",
    "worlds",
]
