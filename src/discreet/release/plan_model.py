"""What a plan file may say, as models: a policy file, and what is published on which schedule for which price."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from discreet.exact import exact
from discreet.query.session.policy_model import POLICY_DEFINITIONS, PolicyModel
from discreet.schema.toml_models import Count, Member, Name, Number, Positive, Sql, Strict

__all__ = [
    "PLAN_DEFINITIONS",
    "AllowanceModel",
    "InvariantModel",
    "LevelModel",
    "OutputModel",
    "PlanModel",
    "PublishModel",
    "RunningModel",
    "ScheduleModel",
    "WishModel",
]

_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_TAKEN = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)  # Some systems have no files of these names.


def _file_name(value: str) -> str:
    if not _SAFE.fullmatch(value) or _TAKEN.fullmatch(value):
        raise ValueError(
            "this becomes the name of a file: write a letter, then at most 63 letters, digits, - or _, such as by_sex"
        )
    return value


def _part(value: Any) -> Any:
    if not 0 < exact(value, name="this") <= 1:
        raise ValueError("a share is a part of what one release may spend: above 0 and at most 1")
    return value


def _small(value: Any) -> Any:
    if not 0 < exact(value, name="this") < 1:
        raise ValueError("delta is a chance: above 0 and far below one over the number of people")
    return value


_NUMBER = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[-+0-9.eE/ ]+$"}]}
FileName = Annotated[
    str, AfterValidator(_file_name), WithJsonSchema({"type": "string", "pattern": f"^{_SAFE.pattern}$"})
]
Part = Annotated[Any, AfterValidator(_part), WithJsonSchema(_NUMBER)]
Delta = Annotated[Any, AfterValidator(_small), WithJsonSchema(_NUMBER)]
KeyValue = Annotated[Any, WithJsonSchema({"type": ["string", "integer", "boolean"]})]


class AllowanceModel(Strict):
    """What one release of all tables may spend together: epsilon alone (pure), epsilon with delta, or rho."""

    epsilon: Positive | None = None
    """The epsilon of one release."""
    delta: Delta | None = None
    """The delta of one release; with rho, the delta at which its epsilon is told."""
    rho: Positive | None = None
    """The rho of one release, instead of epsilon."""
    split: Literal["accuracy", "even"] = "accuracy"
    """How it is divided among tables that name neither an error nor a price: so that the worst relative error is
    smallest while each has at least half of an even part, or evenly."""


class ScheduleModel(Strict):
    """When a release is due: once, or for each day, week, month, quarter or year."""

    every: Literal["once", "day", "week", "month", "quarter", "year"]
    """How often."""
    first: date | None = None
    """The first day of the first period, such as 2026-01-01."""
    column: Name | None = None
    """A date or timestamp of every private table: a release is about the rows of its period only."""


class OutputModel(Strict):
    """What is written, and where."""

    folder: Name = "published"
    """The folder of the bundles, relative to the plan file."""
    formats: list[Literal["csv", "parquet"]] = Field(default=["csv", "parquet"], min_length=1)
    """In which formats tables are written."""
    tidy: bool = True
    """Whether tidy values (whole, not negative, adding up) are written beside the raw ones."""
    zip: bool = True
    """Whether the bundle is written as one file too."""
    key: Name | None = None
    """The private key that signs bundles, relative to the plan file; `discreet key new` makes one."""


class LevelModel(Strict):
    """A coarser grouping of a column, or of another level; it can be grouped by like a column."""

    name: Name
    """The name of the level."""
    of: Name
    """The column, or the level, that it groups."""
    members: dict[str, Annotated[list[Member], Field(min_length=1)]] = Field(min_length=1)
    """Which values of that column belong to each value of the level."""


class WishModel(Strict):
    """What a table should cost or reach: at most one of these."""

    share: Part | None = None
    """The part of what one release may spend."""
    epsilon: Positive | None = None
    """The epsilon of this table."""
    rho: Positive | None = None
    """The rho of this table."""
    error: Positive | None = None
    """The largest ±, at 95 %: the cheapest price that reaches it is paid."""
    relative_error: Positive | None = None
    """The largest ± as a part of the expected value."""


class PublishModel(WishModel):
    """A table by its SQL; or, by `from` and groupings, a family of tables that count the same rows and add up."""

    name: FileName
    """The name of the table, and of its files."""
    title: Name | None = None
    """What it shows, for people."""
    sql: Sql | None = None
    """The question, if the table is not made of groupings."""
    source: Name | None = Field(default=None, alias="from")
    """The private table whose rows a family counts."""
    where: Sql | None = None
    """Which rows a family counts, as in SQL."""
    by: list[Name] | None = None
    """The columns and levels of a single grouping."""
    groupings: list[list[Name]] | None = Field(default=None, min_length=1)
    """Several groupings, each a list of columns and levels; [] is the total."""
    measures: dict[str, Sql] = Field(default_factory=dict)
    """What is measured in every group, by the name of its column, such as stays = "COUNT(*)"."""
    expected: dict[str, Positive] = Field(default_factory=dict)
    """What you believe, by column; "*" is how many rows a typical group has. In a family it is said of the grouping
    with the most groups."""
    delta: Delta | None = None
    """For groups that nobody listed: the chance that somebody is named who is alone in a group."""
    keys: dict[str, list[KeyValue]] = Field(default_factory=dict)
    """Public values of keys, by column, that are not declared with the table."""
    max_groups: Count | None = None
    """In how many groups of this table a unit is counted at most, where fewer than the unit allows are enough."""
    max_rows_per_group: Count | None = None
    """With how many rows in each at most, where fewer than the unit allows are enough."""
    kept_share: Part | None = None
    """The part of what one release may spend, such as 0.02, for which a table NAME_kept tells which share of units is
    counted with all their rows; with unit.rows_at_most that of rows and corrected totals too."""
    quantile_intervals: bool = False
    """Whether quantiles have an interval, for three fifths of the ε of each; without it they have none."""
    population: bool = False
    """Whether intervals of means and quantiles are for what the counted rows were drawn from, independently."""
    max_rows: Count | None = None
    """In a family of several tables: how many rows of a unit are counted in all groups of a table together, the same
    in each; max_rows_per_group if nothing is said."""
    aim: Literal["sum", "largest", "apart"] | None = None
    """In a family with Gaussian noise, what the noise that its tables share is best for: the sum of the variances of
    all cells, or the largest of them. If nothing is said, the sum, while no table is less exact than with noise of its
    own; "apart" gives every table noise of its own."""
    weights: list[Positive] | None = None
    """One for each grouping: how much the variances of its cells count in that."""
    max_inner: Count | None = None
    """How many inner units of a unit are counted at most, where fewer than [unit] allows are enough."""


class InvariantModel(Strict):
    """A number that everybody knows: typed in here, never read from the data, and named in the guarantee."""

    table: Name
    """The published table."""
    column: Name
    """Its column."""
    where: dict[str, KeyValue] = Field(default_factory=dict)
    """The row, by all its keys; {} is the row of a table without keys."""
    value: Number
    """The number."""
    reason: Name
    """Why everybody knows it."""


class RunningModel(WishModel):
    """A total so far, day by day, paid for once for all its days."""

    name: FileName
    """The name of the series, and of its files."""
    title: Name | None = None
    """What it shows, for people."""
    source: Name = Field(alias="from")
    """The private table whose rows are counted."""
    where: Sql | None = None
    """Which rows are counted, as in SQL."""
    day: Name
    """The column with the day."""
    first: date
    """The first day of the series."""
    days: Annotated[int, Field(ge=1, le=36_525)]
    """How many days the series has."""
    max_days: Count = 1
    """On how many days of the series one unit is counted at most."""
    person_day: bool = False
    """Whether each day of a unit is protected by itself; the guarantee says so."""


class PlanModel(PolicyModel):
    """A release plan of Discreet: a policy, and what is published on which schedule for which price."""

    name: FileName
    """The name of the series of releases; it is in names of folders and in the ledger."""
    title: Name | None = None
    """What is published, for people."""
    publisher: str = ""
    """Who publishes."""
    contact: str = ""
    """Whom to ask."""
    from_data: list[Name] = Field(default_factory=list)
    """Fields of this plan that were read from the data, such as tables.stays.columns.age: the bundle says that they are
    not protected. Take a field away from the list once it says what is known without the data."""
    release: AllowanceModel
    schedule: ScheduleModel | None = None
    output: OutputModel = Field(default_factory=OutputModel)
    levels: list[LevelModel] = Field(default_factory=list)
    publish: list[PublishModel] = Field(default_factory=list)
    """The tables that are published."""
    invariants: list[InvariantModel] = Field(default_factory=list)
    running: list[RunningModel] = Field(default_factory=list)
    """Totals so far, day by day."""


# What they are called in docs/schema/release-plan.schema.json, which editors and others rely on: they never change.
PLAN_DEFINITIONS: Mapping[type[Any], str] = {
    **POLICY_DEFINITIONS,
    PlanModel: "PlanModel",
    AllowanceModel: "AllowanceModel",
    InvariantModel: "InvariantModel",
    LevelModel: "LevelModel",
    OutputModel: "OutputModel",
    PublishModel: "PublishModel",
    RunningModel: "RunningModel",
    ScheduleModel: "ScheduleModel",
}
