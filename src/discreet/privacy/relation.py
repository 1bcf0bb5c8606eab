"""Who counts as a neighbour."""

from __future__ import annotations

from enum import Enum

__all__ = ["Relation"]


class Relation(Enum):
    """Which two data sets must be hard to tell apart. Two relations are never mixed in one account."""

    ADD_REMOVE = "add-remove"  # One unit more or one unit less; the number of units is private.
    REPLACE_ONE = "replace-one"  # One unit's data changed; the number of units is public.
