"""The chart that every drawing of the house is; this module loads altair, so it is imported when a chart is made."""

from __future__ import annotations

import base64
from typing import Any, final

import altair as alt

from discreet.plots.chart_files import png_of, svg_of

__all__ = ["OfflineChart"]


@final
class OfflineChart(alt.LayerChart):
    """A chart of altair that a notebook shows without a network.

    It comes as SVG, and as PNG where a notebook does not trust SVG. Whoever has enabled another renderer of altair gets
    that one. Everything that altair does with charts works: `chart.properties(width=600)` shows itself as well.
    """

    def _repr_mimebundle_(self, *args: Any, **kwds: Any) -> Any:
        if alt.renderers.active != "default":
            return super()._repr_mimebundle_(*args, **kwds)
        spec = self.to_json(indent=None)
        pixels = base64.b64encode(png_of(spec, 1)).decode()
        return {"image/svg+xml": svg_of(spec), "image/png": pixels, "text/plain": repr(self)}

    def save(self, fp: Any, *args: Any, **kwds: Any) -> None:
        """Write the chart as altair does, but a page carries all it needs."""
        is_page = "html" in (*args[:1], kwds.get("format")) or str(fp).lower().endswith(".html")
        super().save(fp, *args, **({"inline": True, **kwds} if is_page else kwds))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description})"
