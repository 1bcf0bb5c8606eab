"""What a domain file may say, as models: they check its shape and describe it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from discreet.schema.toml_models import Bound, Count, Name, Strict

__all__ = ["DomainColumnModel", "DomainModel"]


class DomainColumnModel(Strict):
    """One column: `values` of a category, or `low` and `high` of numbers."""

    values: Annotated[list[str | int | bool], Field(min_length=1)] | None = None
    """Every value of a category that is publicly known: texts, whole numbers, or true and false."""
    unlisted: Count | None = None
    """How many values may be found privately, which is paid for, where nobody can list them."""
    other: bool = False
    """Whether values that are not listed have a cell of their own, shown as "other"."""
    low: Bound | None = None
    """The lowest number, or the first day; what lies below is moved up to it."""
    high: Bound | None = None
    """The highest number, or the last day; what lies above is moved down to it."""
    whole: bool = False
    """Whether the numbers are whole."""
    bins: Count | Literal["quantiles"] | None = None
    """How many bins of equal width; or "quantiles" to find bins privately, which is paid for."""
    edges: list[Bound] | None = None
    """The inner edges between bins, instead of `bins`."""
    null: bool = False
    """Whether missing values have a cell of their own."""


class DomainModel(Strict):
    """What is publicly known of a table. Nothing in it may have been looked up in the data."""

    columns: Annotated[dict[Name, DomainColumnModel], Field(min_length=1)]
    """The columns of the synthetic table, in this order."""
    impossible: list[dict[Name, Any]] = Field(default_factory=list)
    """Combinations that cannot be, such as { age = [0, 15], married = "yes" }."""
