"""Read back what a chart would draw."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["layers", "lines", "points", "spec"]


def spec(chart: Any) -> dict[str, Any]:
    """The chart as a Vega-Lite specification."""
    read: dict[str, Any] = json.loads(chart.to_json())
    return read


def layers(chart: Any) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each layer with its rows."""
    read = spec(chart)
    return [(layer, read["datasets"][layer["data"]["name"]]) for layer in read["layer"]]


def lines(chart: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The layer of the curves, with its rows."""
    return next((layer, rows) for layer, rows in layers(chart) if "strokeDash" in layer["encoding"])


def points(chart: Any, name: str) -> list[tuple[float, float]]:
    """The points of one curve."""
    return [(row["x"], row["y"]) for row in lines(chart)[1] if row["curve"] == name]
