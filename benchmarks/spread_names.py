"""What is asked of real data to compare predicted errors with real ones; the standard library only."""

from __future__ import annotations

from typing import Final

__all__ = ["ASKED", "CONFIDENCE", "DELTA", "EPSILON", "LIMITS", "Z"]

EPSILON: Final = 1
DELTA: Final = 1e-6
CONFIDENCE: Final = 0.95
Z: Final = 3.2905  # Normal limits that hold with 99.9 %.
LIMITS: Final = {"retail": (3, 10), "hospital": (2, 2), "flights": (3, 10), "adult": (1, 1)}  # groups, rows
ASKED: Final = {
    "retail": ("retail/revenue", "retail/hours", "retail/continents", "retail/mean-price", "retail/countries"),
    "hospital": ("hospital/readmissions", "hospital/days-by-age", "hospital/work-done", "hospital/outcomes"),
    "flights": ("flights/airlines", "flights/seats-flown", "flights/time-zones", "flights/flights-by-engine"),
    "adult": ("adult/people-by-sex", "adult/capital", "adult/hours-by-education", "adult/age-histogram"),
}
