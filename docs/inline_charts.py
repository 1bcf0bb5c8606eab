"""Put the charts of a page into the page itself, so that they follow its light and its dark colours.

A browser shows an SVG behind `<img>` in the colours of the file, whatever the reader has chosen; one that stands in the
page takes the colours of `theme/site.css`, where each of them has a variable. The files stay as they are drawn.
`mkdocs.yml` names this file as a hook; it runs after the search index is written: labels of axes are no search results.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

__all__ = ["COLOUR", "inlined", "on_post_page", "variable"]

COLOUR = re.compile(r'\b(fill|stroke)="(#[0-9A-Fa-f]{6}|white|black)"')
_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^":]+\.svg)"\s*/?>')
_NAMED = re.compile(r'\b(id="|url\(#)')


def variable(colour: str) -> str:
    """Return the name of the variable that stands for a colour of a chart."""
    return f"--chart-{colour.lstrip('#').lower()}"


def inlined(drawing: str, words: str, name: str) -> str:
    """Return the drawing as a part of a page: told in words, in colours that the page may change, with its own ids."""
    themed = COLOUR.sub(lambda found: f'{found[1]}="var({variable(found[2])}, {found[2]})"', drawing)
    unique = _NAMED.sub(lambda found: f"{found[1]}{name}-", themed)
    bare = re.sub(r' (?:role|class)="[^"]*"', "", unique.partition(">")[0])
    head = bare.replace("<svg", f'<svg class="chart" role="img" aria-label={quoteattr(unescape(words))}', 1)
    return f"{head}>{unique.partition('>')[2]}".strip()


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Do so when the site generator has made a page."""
    folder = Path(config["docs_dir"], page.file.src_uri).parent

    def drawn(found: re.Match[str]) -> str:
        picture = folder / found[2]
        return inlined(picture.read_text(encoding="utf-8"), found[1], picture.stem)

    return _IMAGE.sub(drawn, output)
