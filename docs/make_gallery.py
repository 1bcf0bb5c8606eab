"""Draw the gallery and write its page: `python -m docs.make_gallery`, from the root of the project.

The text is in exhibits/gallery.txt; names in braces are those of figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from discreet import plots
from docs.exhibits import blocks, graphs, labels, means, quantiles, regressions, robustness
from docs.exhibits.exhibit import Exhibit

HERE = Path(__file__).parent
PAGE, PICTURES, TEXT = HERE / "gallery.md", HERE / "gallery", HERE / "exhibits" / "gallery.txt"
FIGURES = PICTURES / "figures.json"

EXHIBITS: dict[str, Callable[[], Exhibit]] = {
    "exponential": quantiles.exponential,
    "candidates": quantiles.candidates,
    "smooth": quantiles.smooth,
    "proposed": quantiles.proposed,
    "bounded": quantiles.bounded,
    "means": means.means,
    "mode": labels.mode,
    "partitions": labels.partitions,
    "blocks": blocks.blocks,
    "triangles": graphs.triangles,
    "outliers": robustness.outliers,
    "regression": regressions.regression,
}


def page(figures: Mapping[str, Mapping[str, float]]) -> str:
    """Return the page that quotes these figures."""
    said = {name: {key: short(value) for key, value in known.items()} for name, known in figures.items()}
    return TEXT.read_text().format(**said)


def short(value: float) -> str:
    """Write a figure with three digits at most."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    """Draw everything and write the figures and the page."""
    PICTURES.mkdir(exist_ok=True)
    found: dict[str, dict[str, float]] = {}
    for name, make in EXHIBITS.items():
        exhibit = make()
        plots.save(exhibit.chart, PICTURES / f"{name}.svg")
        found[name] = {key: float(value) for key, value in exhibit.figures.items()}
    FIGURES.write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
