"""Every citation has an entry, and the printed list is the bibliography."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent
BIB = (ROOT / "docs" / "references.bib").read_text()
_BRACKETS = re.compile(r"\[([^][\n]*)\]")
_KEY = re.compile(r"v?[A-Z][A-Za-z+]+\d\d[a-z]?|vN\d\d")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_references", ROOT / "docs" / "make_references.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ENTRIES = generator().entries(BIB)


def cited(text: str) -> set[str]:
    """Find the keys in brackets, one or several, that look like a citation."""
    parts = [part.strip() for inside in _BRACKETS.findall(text) for part in inside.split(",")]
    return {part for part in parts if _KEY.fullmatch(part)}


def sources() -> list[Path]:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "references.md"]
    return sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *pages, ROOT / "README.md"])


CITED = {path.relative_to(ROOT).as_posix(): cited(path.read_text()) for path in sources()}


def test_citations_are_found_where_they_are():
    text = "a law [GRS12], two more [vN51, Dev86], a [method: inversion, Mir17]; not [a list], x[0] nor the check [C17]"
    assert cited(text) == {"GRS12", "vN51", "Dev86", "Mir17"}
    assert CITED["src/discreet/privacy/events.py"] >= {"DMNS06", "CKS20"}


def test_every_key_that_is_cited_is_in_the_bibliography():
    assert {path: keys - set(ENTRIES) for path, keys in CITED.items() if keys - set(ENTRIES)} == {}


def test_every_entry_says_who_what_where_and_when():
    for key, fields in ENTRIES.items():
        assert fields["author"], key
        assert fields["title"], key
        assert re.fullmatch(r"(19|20)\d\d", fields["year"]), key
        assert fields["year"][2:] == re.search(r"(\d\d)[a-z]?$", key)[1]
        assert fields.keys() & {"journal", "booktitle", "publisher", "note"}, key


def test_no_key_is_there_twice():
    keys = re.findall(r"^@\w+\{(\w+),", BIB, re.MULTILINE)
    assert len(keys) == len(set(keys)) == len(ENTRIES)


def test_the_printed_list_is_the_bibliography():
    assert (ROOT / "docs" / "references.md").read_text() == generator().page(BIB)
