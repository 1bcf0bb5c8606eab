"""`discreet attack membership`: who was in the data of a model."""

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
    from discreet.lab.attacks.membership import Membership
    from discreet.lab.attacks.success_rates import Attacker
    from discreet.privacy import NotPrivate

__all__ = ["MembershipAnswer", "add_to"]

_EXAMPLE = """\
discreet attack membership stays.parquet --label diagnosis \\
  --columns sex,age_group,district,nights --people 300 --shadows 8"""
_Table = Annotated[Path, typer.Argument(help="A table, one row a person: a Parquet, CSV or DuckDB file.")]
_Label = Annotated[str, typer.Option("--label", help="The column that the model predicts.")]
_Columns = Annotated[list[str], typer.Option("--columns", help="The columns that it predicts from (features).")]
_People = Annotated[int, typer.Option("--people", help="Number of rows to sample from the table.")]
_Shadows = Annotated[
    int, typer.Option("--shadows", help="Number of shadow models that the attacker trains: an even number.")
]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the ROC curves to this file: .png, .svg or .html.")]
_Train = Annotated[
    str | None, typer.Option("--train", help="Your own trainer: my_module:fn, a function of rows and labels.")
]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "membership", example=_EXAMPLE, busy="attacking")(membership)


def membership(
    table: _Table,
    label: _Label,
    columns: _Columns,
    people: _People = 1000,
    shadows: _Shadows = 32,
    train: _Train = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Membership inference: train models on random halves of a table, and guess from their predictions who was in."""
    from discreet.cli.attack.attack_support import draw, listed
    from discreet.cli.options import function_named
    from discreet.lab.attacks import membership_of_table

    own = None if train is None else function_named(train)
    found = membership_of_table(table, label=label, columns=listed(columns), people=people, shadows=shadows, train=own)
    draw(found, plot)
    show(MembershipAnswer.of(found), as_json=as_json)


# --- attack_membership: What came of guessing who was in the data of a model. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAnswer:
    """Who was found, with at most a given rate of false alarms, which is also what guessing finds."""

    rate: float
    members: Share
    alarms: Share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerAnswer:
    """One attacker; the limits of the AUC are at 95 %."""

    name: str
    auc: float
    auc_low: float
    auc_high: float
    found: list[FoundAnswer]

    @classmethod
    def of(cls, attacker: Attacker) -> AttackerAnswer:
        """Read one of the attackers."""
        found = [
            FoundAnswer(rate=one.rate, members=Share.of_success(one.members), alarms=Share.of_success(one.alarms))
            for one in attacker.found
        ]
        low, high = attacker.auc_limits
        return cls(name=attacker.name, auc=attacker.auc, auc_low=low, auc_high=high, found=found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipAnswer:
    """How many people each attacker found."""

    people: int
    targets: int
    shadows: int
    attackers: list[AttackerAnswer]
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Membership]) -> MembershipAnswer:
        """Read what was found."""
        result = found.value
        return cls(
            people=result.people,
            targets=result.targets,
            shadows=result.shadows,
            attackers=[AttackerAnswer.of(one) for one in result.attackers],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
