"""`discreet attack attributes`: what a model tells about one person, beyond what it tells about all."""

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
    from discreet.lab.attacks.attribute_inference import Attributes
    from discreet.privacy import NotPrivate

__all__ = ["AttributesAnswer", "add_to"]

_EXAMPLE = """\
discreet attack attributes stays.parquet --secret diagnosis \\
  --known zip,birth_date,sex --rows 60 --people 20"""
_Table = Annotated[Path, typer.Argument(help="A table, one row a person: a Parquet, CSV or DuckDB file.")]
_Secret = Annotated[str, typer.Option("--secret", help="The column to infer.")]
_Known = Annotated[list[str], typer.Option("--known", help="The columns that the attacker knows.")]
_Rows = Annotated[int, typer.Option("--rows", help="Number of rows to sample from the table for training.")]
_People = Annotated[
    int, typer.Option("--people", help="Number of people among them to attack; two models are trained for each.")
]
_Synthesise = Annotated[
    str | None,
    typer.Option("--synthesise", help="Attack a synthetic table instead: my_module:fn, a function of columns."),
]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "attributes", example=_EXAMPLE, busy="attacking")(attributes)


def attributes(
    table: _Table,
    secret: _Secret,
    known: _Known,
    rows: _Rows = 300,
    people: _People = 50,
    synthesise: _Synthesise = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Attribute inference: ask a model without privacy for a secret of people, trained with and without their row."""
    from discreet.cli.attack.attack_support import draw, listed
    from discreet.cli.options import function_named
    from discreet.lab.attacks import attributes_of_table

    own = None if synthesise is None else function_named(synthesise)
    found = attributes_of_table(table, secret=secret, known=listed(known), rows=rows, people=people, synthesise=own)
    draw(found, plot)
    show(AttributesAnswer.of(found), as_json=as_json)


# --- attack_attributes: What came of guessing an attribute. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttributesAnswer:
    """How often the guess was right, and how much of that was learnt from the person's row; limits are at 95 %."""

    secret: str
    right: Share
    without: Share
    commonest: Share
    advantage: float
    advantage_low: float
    advantage_high: float
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Attributes]) -> AttributesAnswer:
        """Read what was found."""
        result = found.value
        low, high = result.advantage_limits()
        return cls(
            secret=result.secret,
            right=Share.of_success(result.right),
            without=Share.of_success(result.without),
            commonest=Share.of_success(result.commonest),
            advantage=result.advantage,
            advantage_low=low,
            advantage_high=high,
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
