"""What is told of bundled data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from discreet.cli.output import Block, TextTable

if TYPE_CHECKING:
    from discreet.data import Bundled

__all__ = ["Copied", "SetFacts", "SetFile", "Sets"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SetFile:
    """A file of a set. One that is no table has no rows."""

    name: str
    what: str
    rows: int
    columns: list[str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SetFacts:
    """Files that belong together."""

    name: str
    title: str
    files: list[SetFile]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """All sets that come along."""

    sets: list[SetFacts]

    @classmethod
    def of(cls, sets: Iterable[Bundled]) -> Sets:
        """Read the list of sets."""
        return cls(sets=[SetFacts(name=one.name, title=one.title, files=list(_files(one))) for one in sets])

    def blocks(self) -> Iterator[Block]:
        for one in self.sets:
            yield f"{one.name}: {one.title}"
            rows = [(file.name, f"{file.rows:,}" if file.rows else "", file.what) for file in one.files]
            yield TextTable(head=("file", "rows", "what it is"), rows=rows, right=frozenset({1}))
            yield ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Files that were copied."""

    files: list[str]

    @classmethod
    def of(cls, files: Iterable[Path]) -> Copied:
        """Name the files."""
        return cls(files=[str(file) for file in files])

    def blocks(self) -> Iterator[Block]:
        yield from self.files


def _files(one: Bundled) -> Iterator[SetFile]:
    for file in one.files:
        yield SetFile(name=file.name, what=file.what, rows=file.rows, columns=list(file.columns))
