"""Help readers of the site to find pages: fill in its navigation, name the version, and let a site on a disk search.

After a list of pages, such as mechanisms, come the pages that it links: each is named once, in the list that people
read. `mkdocs.yml` names this file as a hook.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

__all__ = ["linked", "on_config", "on_post_build", "version"]

LISTS = ("mechanisms/index.md", "benchmarks/index.md")
_ROW = re.compile(r"^\| \[([^]]+)\]\(([\w-]+\.md)\) +\|", re.MULTILINE)


def linked(docs: Path, listing: str) -> list[dict[str, str]]:
    """Return the pages that the rows of the tables on a page begin with, in order, with their titles."""
    folder = Path(listing).parent.as_posix()
    return [{title: f"{folder}/{page}"} for title, page in _ROW.findall((docs / listing).read_text(encoding="utf-8"))]


def version(docs: Path) -> str:
    """Return the version of the package that these pages are about."""
    return str(tomllib.loads((docs.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def on_config(config: Any) -> Any:
    """Do so when the site generator has read its settings."""
    config["site_name"] += f" {version(Path(config['docs_dir']))}"
    for part in _lists(config["nav"]):
        for listing in (entry for entry in part[:] if entry in LISTS):
            place = part.index(listing) + 1
            part[place:place] = linked(Path(config["docs_dir"]), listing)
    return config


def on_post_build(config: Any) -> None:
    """Write the index of the search as a script as well: a page that is opened from a disk may not read other files."""
    folder = Path(config["site_dir"], "search")
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")


def _lists(nav: list[Any]) -> list[list[Any]]:
    inside = [found for entry in nav if isinstance(entry, dict) for found in entry.values() if isinstance(found, list)]
    return [nav, *(deeper for found in inside for deeper in _lists(found))]
