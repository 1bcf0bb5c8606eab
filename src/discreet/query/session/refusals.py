"""Sentences that refuse, where several places say the same."""

from __future__ import annotations

__all__ = ["ONLY_ADD_REMOVE"]

ONLY_ADD_REMOVE = (
    "a session hides whether somebody is in the data at all (add-remove of units): which rows a question keeps, and "
    "how many, depends on who is there, so replace-one would promise less for the same noise and take the number of "
    "units as public. Leave relation out"
)
