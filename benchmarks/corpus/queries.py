"""Read the corpus: `*.sql` files beside this one, each query below the lines that name it and say what to expect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["FILES", "Query", "queries", "spelling"]

FOLDER: Final = Path(__file__).parent
FILES: Final = ("tpch", "census", "retail", "flights", "hospital")


@dataclass(frozen=True, slots=True)
class Query:
    """One question. `expected` is "answered", or "refused: …" with the reason an analyst would accept."""

    id: str
    sql: str
    expected: str
    unknown_keys: bool = False  # some group keys are in no public list, so that a delta is needed

    @property
    def dataset(self) -> str:
        """Name the data set that is asked."""
        return self.id.partition("/")[0]

    @property
    def answerable(self) -> bool:
        """Whether a good system answers it."""
        return self.expected == "answered"


@cache
def queries() -> tuple[Query, ...]:
    """Return the whole corpus in the order of its files."""
    found = [_query(lines, sql) for name in FILES for lines, sql in _sections(FOLDER / f"{name}.sql")]
    if len({query.id for query in found}) != len(found):
        raise ValueError("two queries have one id")
    return tuple(found)


@cache
def _spellings() -> dict[tuple[str, str], str]:
    parts = _sections(FOLDER / "spellings.sql")
    return {(lines["id"], subject.strip()): sql for lines, sql in parts for subject in lines["for"].split(",")}


def spelling(query: Query, subject: str) -> str:
    """Return the query in a subject's own words where they differ."""
    return _spellings().get((query.id, subject), query.sql)


def _query(lines: dict[str, str], sql: str) -> Query:
    expected = lines["expect"]
    if expected != "answered" and not expected.startswith("refused: "):
        raise ValueError(f"{lines['id']} must expect an answer, or a refusal with its reason")
    return Query(lines["id"], sql, expected, lines.get("keys") == "unknown")


def _sections(path: Path) -> list[tuple[dict[str, str], str]]:
    """Split a file at the queries' last semicolons; keep `-- name: value` lines apart from the text."""
    parts = path.read_text(encoding="utf-8").split(";\n")
    return [_section(part) for part in parts if "-- id:" in part]


def _section(text: str) -> tuple[dict[str, str], str]:
    start = text.index("-- id:")
    lines = text[start:].splitlines()
    heads = [line[3:].partition(":") for line in lines if line.startswith("-- ")]
    body = "\n".join(line for line in lines if not line.startswith("-- "))
    return {name: value.strip() for name, _, value in heads}, body.strip()
