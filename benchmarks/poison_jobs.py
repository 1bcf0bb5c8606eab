"""The poisoned digits, written once."""

from __future__ import annotations

__all__ = ["BATCH", "CLIP", "EPSILON", "MARK", "ROWS", "SHARES", "STEPS", "TARGET", "TESTED"]

ROWS = 10_000
TESTED = 2_000
EPSILON = 1
SHARES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
MARK = 3  # pixels of a side of the white square
TARGET = 0  # the digit that the attacker wants
BATCH = 1024
STEPS = 100
CLIP = "0.1"
