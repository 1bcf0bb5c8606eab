"""Check the built documentation: `python scripts/check_site.py site`, which `make docs` runs.

Every link, picture, script and style of every page leads to a file of the site, every fragment to an element of that
page, and nothing is loaded from another host: the site can be read without a network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["dead_links", "main"]

_ASSETS = {"img", "script", "iframe", "source", "video", "audio", "embed", "object", "input", "image", "use"}
_ADDRESSES = ("href", "src", "data", "poster", "xlink:href")
_LOADED = re.compile(r"""(?:@import\s+|url\(\s*)['"]?([^'")\s;]+)""")


@dataclass
class Page(HTMLParser):
    """What a page links, what it loads, and the fragments that can be linked in it."""

    links: list[str] = field(default_factory=list)
    assets: list[str] = field(default_factory=list)
    fragments: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what one element has."""
        known = {name: value or "" for name, value in attrs}
        self.fragments |= {known[name] for name in ("id", "name") if name in known}
        loads = tag in _ASSETS or (tag == "link" and known.get("rel") not in ("prev", "next", "canonical"))
        (self.assets if loads else self.links).extend(known[name] for name in _ADDRESSES if name in known)


@cache
def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def dead_links(site: Path) -> list[str]:
    """Return what leads nowhere, and what is loaded from elsewhere, one sentence each."""
    site = site.resolve()
    _read.cache_clear()
    found = [fault for path in sorted(site.rglob("*.html")) for fault in _page_faults(site, path)]
    return found + [fault for path in sorted(site.rglob("*.css")) for fault in _style_faults(site, path)]


def _page_faults(site: Path, path: Path) -> Iterator[str]:
    here, page = path.relative_to(site).as_posix(), _read(path)
    for address in page.assets:
        if urlsplit(address).netloc:
            yield f"{here}: {address} is loaded from another host"
    for address in (*page.links, *page.assets):
        if not urlsplit(address).netloc and not _leads_somewhere(site, path, address):
            yield f"{here}: {address} leads nowhere"


def _style_faults(site: Path, path: Path) -> Iterator[str]:
    for address in _LOADED.findall(path.read_text(encoding="utf-8")):
        if urlsplit(address).netloc or not _leads_somewhere(site, path, address):
            yield f"{path.relative_to(site).as_posix()}: {address} is not in the site"


def _leads_somewhere(site: Path, path: Path, address: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme in ("mailto", "data", "javascript"):
        return True
    # The page for what is not found has addresses from the root, for it is shown in place of any page.
    start = site if parts.path.startswith("/") else path.parent
    there = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file() or not there.is_relative_to(site):
        return False
    return not parts.fragment or there.suffix != ".html" or unquote(parts.fragment) in _read(there).fragments


def main() -> None:
    """Print what is wrong and fail, or say nothing."""
    found = dead_links(Path(sys.argv[1]))
    if found:
        sys.exit("\n".join([*found, f"{len(found)} links of the built site are dead"]))


if __name__ == "__main__":
    main()
