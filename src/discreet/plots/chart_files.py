"""The theme of every chart, and charts written to files. Nothing is fetched from a network."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "COLOURS",
    "CONFIG",
    "DARK",
    "DASHES",
    "HEIGHT",
    "INKS",
    "MOST",
    "QUIET",
    "SHARES",
    "SQUARE",
    "WIDTH",
    "Curves",
    "Floats",
    "Read",
    "png_of",
    "read_curves",
    "save",
    "svg_of",
]

# --- curves: Named curves, read and checked before anything is drawn. ---


Floats: TypeAlias = NDArray[np.float64]
Curves: TypeAlias = "Mapping[str, tuple[Sequence[float] | Floats, Sequence[float] | Floats]]"  # name: (x, y)
Read: TypeAlias = dict[str, tuple[Floats, Floats]]

MOST = 7  # Curves in one chart: as many as there are colours that everybody can tell apart.
_LONGEST = 10_000  # Points of a curve; a chart has a few hundred pixels.


def read_curves(curves: Curves, *, horizontal: str, vertical: str, signed: bool = False) -> Read:
    """Read curves, each sorted by x; refuse what cannot be drawn. `signed` says that x may be negative."""
    if not isinstance(curves, Mapping) or not all(isinstance(name, str) and name for name in curves):
        raise InvalidParameter("curves must map a name to a pair of sequences, x and y")
    if not 1 <= len(curves) <= MOST:
        raise InvalidParameter(f"a chart takes one to {MOST} curves; split it into several charts")
    return {name: _read_pair(pair, horizontal, vertical, signed) for name, pair in curves.items()}


def _read_pair(pair: Any, horizontal: str, vertical: str, signed: bool) -> tuple[Floats, Floats]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InvalidParameter("a curve must be a pair of sequences, x and y")
    x, y = _numbers(pair[0], horizontal, signed), _numbers(pair[1], vertical)
    if x.size != y.size or not 2 <= x.size <= _LONGEST:
        raise InvalidParameter(f"a curve must have 2 to {_LONGEST} points, as many x as y")
    order = np.argsort(x, kind="stable")
    return x[order], y[order]


def _numbers(values: Any, name: str, signed: bool = False) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(f"{name} must be a sequence of numbers") from None
    if numbers.ndim != 1 or not np.isfinite(numbers).all() or (not signed and (numbers < 0).any()):
        least = "" if signed else ", none of them negative"
        raise InvalidParameter(f"{name} must be a flat sequence of finite numbers{least}")
    return numbers


# --- files: Write a chart to a file. Nothing is fetched from a network: pages carry all they need. ---


_SCALE = 2.0  # Pixels of a PNG to one of the chart: sharp on paper and on a phone.


def save(chart: alt.TopLevelMixin, path: str | Path, *, heading: str | None = None) -> None:
    """Write `chart` as .png, .svg, .html (complete, works offline) or .json (Vega-Lite), by the suffix of `path`.

    A `heading` stands above all of it, and above its own title.

    Args:
        chart: A chart of altair.
        path: The file; its suffix says the format.
        heading: A text above the chart; none if not said.

    Raises:
        InvalidParameter: If the suffix is not known.

    Examples:
        >>> from pathlib import Path
        >>> dp.plots.save(dp.plot_profile(dp.privacy.PureDP(1)), "profile.json")
        >>> Path("profile.json").exists()
        True
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


def png_of(spec: str, scale: float = _SCALE) -> bytes:
    """Draw a Vega-Lite specification as pixels; nothing is fetched."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(spec, scale=scale, allowed_base_urls=[]))


def svg_of(spec: str) -> str:
    """Draw a Vega-Lite specification as SVG that is dark in the dark; nothing is fetched, and nothing runs.

    Several may stand in one page: their names for clipped parts differ, and their style touches nobody else.
    """
    import vl_convert

    drawn = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    own = "chart-" + hashlib.sha256(spec.encode()).hexdigest()[:8]
    clipped = list(dict.fromkeys(re.findall(r'id="(clip\d+)"', drawn)))  # Numbered by how many were drawn before.
    for number, name in enumerate(clipped):
        drawn = drawn.replace(f'"{name}"', f'"{own}-{number}"').replace(f"(#{name})", f"(#{own}-{number})")
    return drawn.replace('class="marks"', f'class="marks {own}"', 1).replace("><", f">{_dark_style(drawn, own)}<", 1)


def _dark_style(drawn: str, own: str) -> str:
    """Write the colours of the dark, paper and ink alike: what shows the chart may itself be light or dark."""
    used = [(f'{what}="{light}"', f"{what}:{dark}") for light, dark in DARK.items() for what in ("fill", "stroke")]
    rules = "".join(f".{own} [{light}]{{{dark}}}" for light, dark in used if light in drawn)
    return f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"


def _html(spec: str) -> bytes:
    import vl_convert

    return str(vl_convert.vegalite_to_html(spec, bundle=True)).encode()


def _json(spec: str) -> bytes:
    return (json.dumps(json.loads(spec), indent=1, ensure_ascii=False) + "\n").encode()


_RENDERERS: dict[str, Callable[[str], bytes]] = {
    ".png": png_of,
    ".svg": lambda spec: svg_of(spec).encode(),
    ".html": _html,
    ".json": _json,
}


# --- theme: How every chart of the house looks: for paper, for a phone, and for eyes that do not see every colour. ---


WIDTH, HEIGHT, SQUARE = 460, 320, 360  # Pixels; a phone shows them without scrolling sideways.

# The palette of Okabe and Ito, without its yellow, which white paper swallows; the dashes tell the same story in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
DASHES = ((1, 0), (8, 3), (3, 3), (10, 3, 2, 3), (5, 5), (2, 2), (12, 4))
# Letters are thinner than lines and need more contrast: the same hues, a quarter darker.
INKS = tuple("#" + "".join(f"{int(c[i : i + 2], 16) * 3 // 4:02X}" for i in (1, 3, 5)) for c in COLOURS)
if not len(COLOURS) == len(DASHES) == MOST:
    raise RuntimeError("every line of a chart needs a colour and a dash of its own")

# Parts of a whole, from what stands out to what fades: a reader looks for the first.
SHARES = ("#D55E00", "#0072B2", "#4C9CCB", "#7FBADB", "#AAD2E8", "#CCE3F0", "#E3EFF6")

_FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
_INK = "#222222"
QUIET = "#6B6B6B"
_GRID = "#E3E3E3"

CONFIG: dict[str, Any] = {
    "font": _FONT,
    "background": "white",
    "padding": 12,
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 13,
        "titleFontSize": 14,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "labelColor": _INK,
        "titleColor": _INK,
        "gridColor": _GRID,
        "domainColor": _INK,
        "tickColor": _INK,
        "labelOverlap": True,
    },
    "title": {"fontSize": 16, "fontWeight": "bold", "anchor": "start", "color": _INK, "offset": 12},
    "line": {"strokeWidth": 2.5, "strokeCap": "butt"},
    "text": {"fontSize": 13},
    "legend": {
        "labelFontSize": 13,
        "labelColor": _INK,
        "labelLimit": 320,
        "symbolSize": 500,
        "symbolStrokeWidth": 2.5,
        "symbolType": "stroke",
        "offset": 0,
    },
}

# The same in the dark, on the paper of our pages: lines and letters share a colour, and what fades gets darker.
_BRIGHT = ("#5AAEE6", "#FF8C42", "#2CC79B", "#E5A3C6", "#F2EFEA", "#A9DCFF", "#FFC34D")
_FADING = ("#3F83B0", "#33698C", "#2A526D", "#243F52", "#20323F")
DARK = {
    **dict(zip(COLOURS, _BRIGHT, strict=True)),
    **dict(zip(INKS, _BRIGHT, strict=True)),
    **dict(zip(SHARES[2:], _FADING, strict=True)),
    **dict.fromkeys(("black", "#000", _INK), "#E9E6E0"),
    "white": "#15181B",
    QUIET: "#A7AFB7",
    _GRID: "#363D44",
}
