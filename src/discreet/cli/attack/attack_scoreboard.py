"""`discreet attack scoreboard`: people found in diaries without names by a few things known roughly."""

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
    from discreet.lab.attacks.scoreboard import ItemCounts, Scoreboard, ScoreboardTrial
    from discreet.privacy import NotPrivate

__all__ = ["ItemCountsAnswer", "ScoreboardAnswer", "TrialAnswer", "add_to"]

_EXAMPLE = """\
discreet attack scoreboard stays.parquet --person patient --item diagnosis --value nights \\
  --when admitted --known 2 --days 3,14 --epsilon 1"""
_Table = Annotated[Path, typer.Argument(help="Entries without names: a Parquet, CSV or DuckDB file.")]
_Person = Annotated[
    str, typer.Option("--person", help="The column that identifies people (the id of each entry's person).")
]
_Item = Annotated[str, typer.Option("--item", help="The column of items: a film, a shop, a diagnosis.")]
_Value = Annotated[str, typer.Option("--value", help="A numeric column of each entry: a rating, an amount.")]
_When = Annotated[str, typer.Option("--when", help="The column of times: a date, a timestamp, or seconds since 1970.")]
_Known = Annotated[str, typer.Option("--known", help="Numbers of entries of a person that are known, such as 2,4,8.")]
_Days = Annotated[str, typer.Option("--days", help="Largest error of the known dates, in days.")]
_False = Annotated[int, typer.Option("--false-facts", help="Number of known facts that are false.", min=0)]
_Targets = Annotated[int, typer.Option("--targets", help="Number of people to look for in each trial.", min=1)]
_Epsilon = Annotated[
    str | None, typer.Option("--epsilon", help="Also look for them in private counts of items, at this ε.")
]
_Plot = Annotated[Path | None, typer.Option("--plot", help="Plot the result to this file: .png, .svg or .html.")]


def add_to(attack: typer.Typer) -> None:
    """Add the command."""
    command(attack, "scoreboard", example=_EXAMPLE, busy="attacking")(scoreboard)


def scoreboard(
    table: _Table,
    person: _Person,
    item: _Item,
    value: _Value,
    when: _When,
    known: _Known = "2,4,8",
    days: _Days = "3,14",
    false_facts: _False = 0,
    targets: _Targets = 1000,
    epsilon: _Epsilon = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Scoreboard: re-identify people in a table of entries by a few that are known, with dates that are days off."""
    from discreet.cli.attack.attack_support import draw
    from discreet.cli.attack.identity_attacks import Diary, numbers, scored

    diary = Diary(table, person=person, item=item, value=value, when=when)
    counts, errors = numbers(known, "--known"), numbers(days, "--days")
    found, private = scored(diary, counts, errors, false_facts=false_facts, targets=targets, epsilon=epsilon)
    draw(found, plot)
    show(ScoreboardAnswer.of(found, private), as_json=as_json)


# --- attack_scoreboard: What is told of people who were looked for in diaries. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAnswer:
    """So many things known, dates off by up to so many days: who was named, rightly or wrongly, and though absent."""

    known: int
    days: int
    eligible: int
    right: Share
    wrong: Share
    nobody: Share
    absent: Share

    @classmethod
    def of(cls, trial: ScoreboardTrial) -> TrialAnswer:
        """Read one trial."""
        parts = {name: Share.of_success(getattr(trial, name)) for name in ("right", "wrong", "nobody", "absent")}
        return cls(known=trial.known, days=trial.days, eligible=trial.eligible, **parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCountsAnswer:
    """The same people looked for in private counts of items: said to be there, who are and who are not."""

    epsilon: float
    most: int
    known: int
    present: Share
    absent: Share
    ceiling: float

    @classmethod
    def of(cls, counts: ItemCounts) -> ItemCountsAnswer:
        """Read what was found."""
        parts = {name: Share.of_success(getattr(counts, name)) for name in ("present", "absent")}
        return cls(epsilon=counts.epsilon, most=counts.most, known=counts.known, ceiling=counts.ceiling, **parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreboardAnswer:
    """How many were found by how much."""

    people: int
    items: int
    baseline: float
    trials: list[TrialAnswer]
    private: ItemCountsAnswer | None  # null unless --epsilon is said
    text: str  # under a heading that says that it is not private

    @classmethod
    def of(cls, found: NotPrivate[Scoreboard], private: NotPrivate[ItemCounts] | None) -> ScoreboardAnswer:
        """Read what was found."""
        result = found.value
        told = str(found) if private is None else f"{found}\n{private.value}"
        return cls(
            people=result.people,
            items=result.items,
            baseline=result.baseline,
            trials=[TrialAnswer.of(trial) for trial in result.trials],
            private=None if private is None else ItemCountsAnswer.of(private.value),
            text=told,
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
