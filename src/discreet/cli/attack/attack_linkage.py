"""`discreet attack linkage`: a table without names, joined with a list that has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.attack.attack_support import Share
from discreet.cli.options import AsJson, command
from discreet.cli.output import Block, show

if TYPE_CHECKING:
    from discreet.lab.attacks.linkage import Linkage
    from discreet.privacy import NotPrivate

__all__ = ["LinkageAnswer", "add_to"]

_EXAMPLE = """\
discreet attack linkage stays.parquet voters.parquet --on zip,birth_date,sex \\
  --name name --tell diagnosis --person patient"""
_Table = Annotated[Path, typer.Argument(help="A table without names: a Parquet, CSV or DuckDB file.")]
_Names = Annotated[Path, typer.Argument(help="A list with names.")]
_On = Annotated[
    list[str], typer.Option("--on", help="The columns to join on (quasi-identifiers), such as zip,birth_date,sex.")
]
_Name = Annotated[str, typer.Option("--name", help="The column of the list that has the names.")]
_Tell = Annotated[
    list[str] | None, typer.Option("--tell", help="Columns to show for a few people who were re-identified.")
]
_Person = Annotated[
    str | None, typer.Option("--person", help="The column that identifies people (the id of each record's person).")
]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "linkage", example=_EXAMPLE, busy="attacking")(linkage)


def linkage(
    table: _Table,
    names: _Names,
    on: _On,
    name: _Name,
    tell: _Tell = None,
    person: _Person = None,
    as_json: AsJson = False,
) -> None:
    """Linkage: re-identify the records of a table by joining it with a list that has names."""
    from discreet.cli.attack.attack_support import listed
    from discreet.lab.attacks import linkage

    found = linkage(table, names, on=listed(on), name=name, tell=listed(tell), person=person)
    show(LinkageAnswer.of(found), as_json=as_json)


# --- attack_linkage: What came of linking a table with a list of names. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkageAnswer:
    """Who was named. The text and the sample are about real people."""

    on: list[str]
    named: Share
    people: Share | None  # null if no column tells whose records are whose
    unique: Share
    listed: Share
    ambiguous: int
    by_chance: int
    right: float
    sample: list[dict[str, str | None]]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Linkage]) -> LinkageAnswer:
        """Read what was found."""
        linked = found.value
        return cls(
            on=list(linked.on),
            named=Share.of_success(linked.named),
            people=None if linked.people is None else Share.of_success(linked.people),
            unique=Share.of_success(linked.unique),
            listed=Share.of_success(linked.listed),
            ambiguous=linked.ambiguous,
            by_chance=linked.by_chance,
            right=linked.right,
            sample=[{name: None if cell is None else str(cell) for name, cell in row.items()} for row in linked.sample],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
