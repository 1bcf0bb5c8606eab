"""`discreet attack uniqueness` and `singling-out`: who is alone with their values, and how little it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import Block, show

if TYPE_CHECKING:
    from discreet.lab.attacks.uniqueness_search import SingledOut, Uniqueness
    from discreet.privacy import NotPrivate

__all__ = ["CombinationAnswer", "SingledOutAnswer", "UniquenessAnswer", "add_to"]

_Table = Annotated[Path, typer.Argument(help="A Parquet, CSV or DuckDB file.")]
_Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        help="The columns that an attacker may know (quasi-identifiers), such as zip,birth_date,sex; by default all.",
    ),
]
_As = Annotated[
    list[str] | None, typer.Option("--as", help='One more column, computed in SQL: "year=year(birth_date)".')
]
_Size = Annotated[int, typer.Option("--size", help="Largest number of columns in a combination.", min=1)]
_Person = Annotated[
    str | None, typer.Option("--person", help="The column that identifies people (the id of each row's person).")
]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]
_Facts = Annotated[list[str], typer.Option("--fact", help="A known fact about one person: birth_date=1929-10-15.")]


def add_to(attack: typer.Typer) -> None:
    """Add both commands."""
    example = "discreet attack uniqueness stays.parquet --columns zip,birth_date,sex --person patient"
    command(attack, "uniqueness", example=example, busy="attacking")(uniqueness)
    example = (
        "discreet attack singling-out stays.parquet --fact zip=37360 --fact birth_date=1929-10-15 \\\n"
        "  --fact sex=f --person patient"
    )
    command(attack, "singling-out", example=example, busy="attacking")(singling_out)


def uniqueness(
    table: _Table,
    columns: _Columns = None,
    calculated: _As = None,
    size: _Size = 3,
    person: _Person = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Count the people who are unique under every combination of columns; the worst come first."""
    from discreet.cli.attack.attack_support import draw
    from discreet.cli.attack.identity_attacks import calculations
    from discreet.lab.attacks import uniqueness

    found = uniqueness(table, calculations(columns, calculated), size=size, person=person)
    draw(found, plot)
    show(UniquenessAnswer.of(found), as_json=as_json)


def singling_out(
    table: _Table, facts: _Facts, size: _Size = 4, person: _Person = None, as_json: AsJson = False
) -> None:
    """Singling out: find the fewest facts about one person that fit nobody else."""
    from discreet.cli.attack.identity_attacks import pairs
    from discreet.lab.attacks import singling_out

    found = singling_out(table, pairs(facts, "--fact"), size=size, person=person)
    show(SingledOutAnswer.of(found), as_json=as_json)


# --- attack_uniqueness: What is told of people who are alone with their values. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CombinationAnswer:
    """Some columns, the share of people who are alone, and people by the size of their crowd."""

    columns: list[str]
    unique: float
    crowds: dict[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UniquenessAnswer:
    """Every combination, the worst first."""

    columns: list[str]
    size: int
    rows: int
    people: int
    combinations: list[CombinationAnswer]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Uniqueness]) -> UniquenessAnswer:
        """Read what was found."""
        from discreet.lab.attacks.uniqueness_search import CROWDS

        result = found.value
        combinations = [
            CombinationAnswer(
                columns=list(one.columns),
                unique=one.unique.share,
                crowds=dict(zip(CROWDS, one.profile, strict=True)),
            )
            for one in result.combinations
        ]
        return cls(
            columns=list(result.columns),
            size=result.size,
            rows=result.rows,
            people=result.people,
            combinations=combinations,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SingledOutAnswer:
    """How many fit one record, by each fact and by all, and the fewest facts that fit one person only."""

    columns: list[str]
    size: int
    people: int
    fits: int
    combinations: list[list[str]]
    crowds: dict[str, int]
    text: str

    @classmethod
    def of(cls, found: NotPrivate[SingledOut]) -> SingledOutAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            columns=list(result.columns),
            size=result.size,
            people=result.people,
            fits=result.fits,
            combinations=[list(columns) for columns in result.combinations],
            crowds=dict(result.crowds),
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
