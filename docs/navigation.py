"""Fill in the navigation of the site: the version beside its name, and after a list of pages the pages that it links.

So the page of a mechanism is named once, in the list that people read. `mkdocs.yml` names this file as a hook.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

__all__ = ["linked", "on_config", "version"]

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


def _lists(nav: list[Any]) -> list[list[Any]]:
    inside = [found for entry in nav if isinstance(entry, dict) for found in entry.values() if isinstance(found, list)]
    return [nav, *(deeper for found in inside for deeper in _lists(found))]
