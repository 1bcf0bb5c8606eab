"""`discreet data`: the bundled data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.options import AsJson, command, group
from discreet.cli.output import Block, TextTable, show

if TYPE_CHECKING:
    from discreet.data.sets import Bundled

__all__ = ["Copied", "SetFacts", "SetFile", "Sets", "add_to"]

data = group("Bundled made-up data sets, to try things on.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(data, name="data", rich_help_panel=panel)


@command(data, "list", example="discreet data list")
def list_sets(as_json: AsJson = False) -> None:
    """List the bundled data sets. Everybody in them is made up."""
    from discreet.data import bundled

    show(Sets.of(bundled()), as_json=as_json)


@command(data, "copy", example="discreet data copy hospital .")
def copy_set(
    name: Annotated[str, typer.Argument(help="The name of the data set; see data list.")],
    folder: Annotated[Path, typer.Argument(help="The folder to copy to; no file is overwritten.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Copy the files of a set into a folder."""
    from discreet.data import copy

    show(Copied.of(copy(name, folder)), as_json=as_json)


# --- sets: What is told of bundled data sets. ---


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
