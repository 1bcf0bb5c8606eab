"""Write a chart to a file. Nothing is fetched from a network: pages carry all they need."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import altair as alt

__all__ = ["save"]

_SCALE = 2.0  # Pixels of a PNG to one of the chart: sharp on paper and on a phone.


def save(chart: alt.TopLevelMixin, path: str | Path, *, heading: str | None = None) -> None:
    """Write `chart` as .png, .svg, .html (complete, works offline) or .json (Vega-Lite), by the suffix of `path`.

    A `heading` stands above all of it, and above its own title.
    """
    target = Path(path)
    render = _RENDERERS.get(target.suffix.lower())
    if render is None:
        raise InvalidParameter(f"a chart is written as {', '.join(_RENDERERS)}: give the file one of these suffixes")
    spec = chart.to_json(indent=None)
    target.write_bytes(render(spec if heading is None else _headed(spec, heading)))


def _headed(spec: str, heading: str) -> str:
    document = json.loads(spec)
    own = document.get("title")
    below = {"subtitle": own} if isinstance(own, str) else {}
    return json.dumps(document | {"title": {"text": heading, "subtitleFontSize": 14, **below}})


def _png(spec: str) -> bytes:
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(spec, scale=_SCALE, allowed_base_urls=[]))


def _svg(spec: str) -> bytes:
    import vl_convert

    return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])).encode()


def _html(spec: str) -> bytes:
    import vl_convert

    return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()


def _json(spec: str) -> bytes:
    return (json.dumps(json.loads(spec), indent=1, ensure_ascii=False) + "\n").encode()


_RENDERERS: dict[str, Callable[[str], bytes]] = {".png": _png, ".svg": _svg, ".html": _html, ".json": _json}
