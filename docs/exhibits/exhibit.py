"""One exhibit of the gallery: a picture, and the figures that the page quotes beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet.statistics.comparison import Comparison, FitComparison

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Exhibit", "usual_errors"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A picture and its figures."""

    chart: alt.LayerChart
    figures: Mapping[str, float]


def usual_errors(compared: object) -> dict[str, float]:
    """Return the error of each method that is exceeded half of the time, as `dp.compare` predicts it."""
    assert isinstance(compared, (Comparison, FitComparison))
    return {name: errors.typical for name, errors in compared.predictions.items()}
