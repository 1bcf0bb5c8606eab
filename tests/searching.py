"""Seeds of tests that try inputs or moments: the same ones in every run, and others in every round of `make soak`."""

from __future__ import annotations

import os


def searched(seed: int) -> int:
    """Return the seed, or one of its own for the round that DISCREET_SEARCH numbers."""
    return seed + 10_000 * int(os.environ.get("DISCREET_SEARCH", "0"))
