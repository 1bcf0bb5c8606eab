"""`discreet attack differencing`: tables are subtracted until one person is left."""

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
    from discreet.lab.attacks.differencing import Differencing
    from discreet.privacy import NotPrivate

__all__ = ["DifferencingAnswer", "add_to"]

_EXAMPLE = """\
discreet attack differencing stays.parquet --by district,sex,diagnosis \\
  --attribute diagnosis --person patient --hide-below 5 \\
  --where "nights < 28" --where "age_group <> '95+'" --epsilon 1 --delta 1e-6"""
_Table = Annotated[Path, typer.Argument(help="The rows that the tables count: a Parquet, CSV or DuckDB file.")]
_By = Annotated[
    list[str], typer.Option("--by", help="The columns that the tables are grouped by, such as district,sex,diagnosis.")
]
_Attribute = Annotated[
    str, typer.Option("--attribute", help="The sensitive attribute that the attacker wants to know; one of --by.")
]
_Where = Annotated[
    list[str] | None, typer.Option("--where", help="One more table, of the rows that satisfy this SQL condition.")
]
_Person = Annotated[
    str | None, typer.Option("--person", help="The column that identifies people (the id of each row's person).")
]
_Hide = Annotated[
    int,
    typer.Option("--hide-below", help="Small-cell suppression: counts from 1 to one less than this are hidden.", min=0),
]
_Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help="Attack private tables instead: the ε of all of them together.")
]
_Delta = Annotated[str, typer.Option("--delta", help="Their δ.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "differencing", example=_EXAMPLE, busy="attacking")(differencing)


def differencing(
    table: _Table,
    by: _By,
    attribute: _Attribute,
    where: _Where = None,
    person: _Person = None,
    hide_below: _Hide = 0,
    epsilon: _Epsilon = None,
    delta: _Delta = "1e-6",
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Differencing: subtract tables of counts, of all rows and of each --where, until one person is left."""
    from discreet.cli.attack.attack_support import draw, listed
    from discreet.cli.attack.identity_attacks import differenced

    conditions = ["", *(where or [])]
    found = differenced(table, listed(by), conditions, attribute, person, hide_below, epsilon, delta)
    draw(found, plot)
    show(DifferencingAnswer.of(found), as_json=as_json)


# --- attack_differencing: What is told of people whom differences of tables single out. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DifferencingAnswer:
    """How often the attribute was guessed right, with the row and without it. Null where there is no noise."""

    attribute: str
    people: int
    named: Share
    without: Share
    commonest: Share
    fresh: Share | None
    fresh_without: Share | None
    ceiling: float | None
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Differencing]) -> DifferencingAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            attribute=result.attribute,
            people=result.people,
            named=Share.of_success(result.named),
            without=Share.of_success(result.without),
            commonest=Share.of_success(result.commonest),
            fresh=None if result.fresh is None else Share.of_success(result.fresh),
            fresh_without=None if result.fresh_without is None else Share.of_success(result.fresh_without),
            ceiling=result.ceiling,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
