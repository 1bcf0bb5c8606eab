"""Write references.md from references.bib: `python docs/make_references.py`."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
_ENTRY = re.compile(r"^@(\w+)\{(\w+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)
_HEAD = """# References

A citation such as `[DMNS06]` in the code or in these pages is a key of this list, which is written from
`references.bib`.

| key | work |
|---|---|
"""


def entries(text: str) -> dict[str, dict[str, str]]:
    """Read the entries by key, each with its fields."""
    return {key: dict(_FIELD.findall(body)) for _, key, body in _ENTRY.findall(text)}


def page(text: str) -> str:
    """Return the page for a bibliography."""
    read = entries(text)
    return _HEAD + "".join(f"| <a id='{key}'></a>{key} | {_line(read[key])} |\n" for key in sorted(read, key=str.lower))


def _line(fields: dict[str, str]) -> str:
    parts = [f"{_people(fields['author'])}. *{fields['title']}*"]
    if "edition" in fields:
        parts.append(f"{fields['edition']} edition")
    parts += [home for home in (_home(fields),) if home]
    parts.append(fields["year"])
    if "note" in fields:
        parts.append(fields["note"])
    return _dashes(", ".join(parts)) + "."


def _home(fields: dict[str, str]) -> str:
    """Return where the work appeared, with volume and pages."""
    place = fields.get("journal") or fields.get("booktitle") or fields.get("publisher", "")
    volume = fields.get("volume", "") + (f"({fields['number']})" if "number" in fields else "")
    pages = f"pages {fields['pages']}" if "pages" in fields else ""
    return ", ".join(part for part in (f"{place} {volume}".strip(), pages) if part)


def _people(field: str) -> str:
    names = field.split(" and ")
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _dashes(text: str) -> str:
    return text.replace("--", "–")


if __name__ == "__main__":
    (HERE / "references.md").write_text(page((HERE / "references.bib").read_text()))
