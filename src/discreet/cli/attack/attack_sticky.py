"""`discreet attack sticky`: noise that sticks to who is counted tells who is counted."""

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
    from discreet.lab.attacks.sticky_noise import Sticky, StickyResult
    from discreet.privacy import NotPrivate

__all__ = ["MethodAnswer", "StickyAnswer", "add_to"]

_EXAMPLE = """\
discreet attack sticky stays.parquet --known district,sex,birth_date,nights \\
  --secret diagnosis --victims 20"""
_Table = Annotated[Path, typer.Argument(help="A table, one row for each person: a Parquet, CSV or DuckDB file.")]
_Known = Annotated[list[str], typer.Option("--known", help="Columns that the attacker knows, such as zip,sex.")]
_Secret = Annotated[str, typer.Option("--secret", help="The column to infer.")]
_Value = Annotated[
    str | None, typer.Option("--value", help="The value of it to test for; by default the most common one.")
]
_Victims = Annotated[int, typer.Option("--victims", help="Number of people to attack.", min=1)]
_Epsilon = Annotated[str | None, typer.Option("--epsilon", help="Attack a private session with this ε instead.")]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "sticky", example=_EXAMPLE, busy="attacking")(sticky)


def sticky(
    table: _Table,
    known: _Known,
    secret: _Secret,
    value: _Value = None,
    victims: _Victims = 100,
    epsilon: _Epsilon = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Sticky noise: put a table behind a model of query-dependent noise, and infer secrets from the noise."""
    from discreet.cli.attack.attack_support import draw, listed
    from discreet.lab.attacks import sticky

    found = sticky(table, known=listed(known), secret=secret, value=value, victims=victims, epsilon=epsilon)
    draw(found, plot)
    show(StickyAnswer.of(found), as_json=as_json)


# --- attack_sticky: What came of an attack on sticky noise. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MethodAnswer:
    """One way of attacking."""

    method: str
    right: Share
    questions: float  # for each victim, on average
    refused: float  # the share of questions that were not answered

    @classmethod
    def of(cls, one: StickyResult) -> MethodAnswer:
        """Read what was found."""
        right = Share.of_success(one.right)
        return cls(method=one.method, right=right, questions=one.questions, refused=one.refused)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StickyAnswer:
    """How often secrets, which were tossed, were guessed right."""

    system: str
    known: list[str]
    secret: str
    unique: Share
    exposed: Share
    baseline: float
    ceiling: float | None  # null if nothing is promised
    guessed: list[MethodAnswer]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Sticky]) -> StickyAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            system=result.system,
            known=list(result.known),
            secret=result.secret,
            unique=Share.of_success(result.unique),
            exposed=Share.of_success(result.exposed),
            baseline=result.baseline,
            ceiling=result.ceiling,
            guessed=[MethodAnswer.of(one) for one in result.guessed],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
