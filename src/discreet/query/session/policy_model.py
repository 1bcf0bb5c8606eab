"""What a policy file may say, as models: they check its shape, and its JSON Schema is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from discreet.schema.toml_models import ColumnModel, Count, Name, Positive, Strict

__all__ = [
    "POLICY_DEFINITIONS",
    "BudgetModel",
    "CsvModel",
    "InnerUnitModel",
    "PolicyModel",
    "QuotaModel",
    "ResourcesModel",
    "TablePolicyModel",
    "UnitModel",
]


class UnitModel(Strict):
    """Whom to protect."""

    column: Name | Annotated[list[Name], Field(min_length=1)]
    """The column whose values tell people apart, several that do so together, or "row" to protect each row."""
    max_groups: Count = 1
    """In how many groups of an answer one unit is counted at most."""
    max_rows_per_group: Count = 1
    """How many rows of one unit are counted in a group at most."""
    name: Name | None = None
    """What one unit is called in all texts, such as household; left out, as the column is."""
    plural: Name | None = None
    """What several are called, such as households; left out, by the English rule."""
    window: Literal["hour", "day", "week", "month", "quarter", "year"] | None = None
    """The stretch of time that is protected by itself; left out, all times together."""
    time: Name | None = None
    """The date or timestamp of every private table that tells the window of a row."""
    zone: Name | None = None
    """In whose local time windows begin, such as "Europe/Berlin"; left out, in UTC."""
    rows_at_most: Count | None = None
    """The most rows that one unit has in a private table, as is publicly known; totals of all rows can then be told."""
    units: Count | None = None
    """How many units there are, as everybody may know; needed for replace-one, and hidden under add-remove."""
    max_inner: Count | None = None
    """How many of the units that inner describes are counted of one unit at most."""
    inner: InnerUnitModel | None = None
    """Units within this one that are protected too, such as each person of a household, with a budget of their own."""


class InnerUnitModel(Strict):
    """Whom to protect within each unit: a promise of its own, beside that to the whole unit."""

    column: Name | Annotated[list[Name], Field(min_length=1)]
    """All columns of the unit around it and those that tell apart who is within."""
    max_groups: Count = 1
    """In how many groups of an answer one of them is counted at most."""
    max_rows_per_group: Count = 1
    """How many rows of one of them are counted in a group at most."""
    name: Name | None = None
    """What one of them is called in all texts, such as person; left out, as the columns are."""
    plural: Name | None = None
    """What several are called, such as persons; left out, by the English rule."""
    window: Literal["hour", "day", "week", "month", "quarter", "year"] | None = None
    """The stretch of time that is protected by itself; left out, all times together."""
    time: Name | None = None
    """The date or timestamp of every private table that tells the window of a row."""
    budget: BudgetModel
    """What all answers together may spend for one of them."""


class BudgetModel(Strict):
    """What all answers together may spend: epsilon alone (pure), epsilon with delta, or rho."""

    epsilon: Positive | None = None
    """The lifetime epsilon of the data set."""
    delta: Positive | None = None
    """The lifetime delta of the data set."""
    rho: Positive | None = None
    """The lifetime rho of zero-concentrated privacy, instead of epsilon and delta."""
    expect: Literal["gaussian", "pure", "training", "mixed"] | None = None
    """For which charges delta is split, when the ledger is opened; left out, for all of them alike."""


class QuotaModel(Strict):
    """A limit below the budget, for a project, a person or a window of time. A quota is no guarantee."""

    epsilon: Positive | None = None
    """How much epsilon may be spent under this quota."""
    delta: Positive | None = None
    """How much delta may be spent under this quota."""
    rho: Positive | None = None
    """How much rho may be spent under this quota, instead of epsilon and delta."""
    expect: Literal["gaussian", "pure", "training", "mixed"] | None = None
    """For which charges the delta of this quota is split; left out, for all of them alike."""
    principal: Name | None = None
    """Whose quota it is; "*" gives each person one of their own; left out, all share it."""
    project: Name | None = None
    """Of which project; "*" gives each project one of its own; left out, all share it."""
    window: Literal["day", "week", "month", "quarter", "year"] | None = None
    """How often it starts anew; left out, it never does."""


class CsvModel(Strict):
    """How a CSV file is written. Nothing of it is guessed from rows."""

    delimiter: str | None = None
    """What stands between fields, such as ";"; left out, a comma, and a tab in a .tsv file."""
    quote: str = '"'
    """What encloses fields that have a delimiter in them, and is doubled inside; "" if nothing is quoted."""
    encoding: Name = "utf-8"
    """The encoding of texts: "utf-8", "latin-1", "cp1252" or another one with a byte for each character."""
    decimal: str = "."
    """The decimal mark of numbers: "." or ","."""
    thousands: str = ""
    """What groups digits by three, such as "." in 1.234,5; "" if nothing does."""
    dates: str | dict[str, str] = ""
    """The strptime format of dates, of all or by column, such as { Datum = "%d.%m.%Y" }; left out, ISO 8601."""
    line_breaks: bool = True
    """Whether a quoted field may go on in the next line; say false only of a file in which no field has line breaks."""


class PostgresModel(Strict):
    """A table in PostgreSQL. Its address, which may have a password in it, is not in this file."""

    table: Name
    """The table, as schema.table."""
    dsn_env: Name | None = None
    """The environment variable that has the address, such as "CLINIC_DSN"; say this or dsn_file."""
    dsn_file: Name | None = None
    """The file that has the address, relative to the policy file; nobody but its owner should read it."""
    view: bool = False
    """Whether it may be a view or have row security: each row is made of one row of one person."""


class TablePolicyModel(Strict):
    """A table: where it lives, whether it is public, and what is known of its columns."""

    source: Name | None = None
    """A path of a Parquet, CSV or DuckDB file, relative to the policy file; left out if the program hands it over."""
    postgres: PostgresModel | None = None
    """Where it is in PostgreSQL, instead of a file."""
    csv: CsvModel | None = None
    """How the file is written, if it is a CSV file that has no commas, decimal points, UTF-8 or ISO dates."""
    public: bool = False
    """Whether everybody may know every value in it."""
    columns: dict[str, ColumnModel] = Field(default_factory=dict)
    """What is declared of its columns, by name."""


class ResourcesModel(Strict):
    """How much a question may use of the machine."""

    seconds: Positive | None = None
    """How long it may run."""
    memory: Count | None = None
    """How many bytes of memory it may use."""
    threads: Count | None = None
    """On how many threads."""


class PolicyModel(Strict):
    """A policy of Discreet: whom to protect, how much may be spent, and what is publicly known."""

    dataset: Name
    """The name of the data set, under which the ledger keeps its budget."""
    ledger: Name
    """The path of the ledger, relative to the policy file; or its address, postgresql://host/database."""
    anchor: Name | None = None
    """Where the end of the ledger is kept a second time, best on another disk; left out, beside the ledger."""
    version: Name | None = None
    """The version of the data, declared; left out, no answer is ever reused."""
    relation: Literal["add-remove", "replace-one"] = "add-remove"
    """Who counts as a neighbour: add-remove hides whether somebody is in the data, replace-one what their rows say."""
    unit: UnitModel
    budget: BudgetModel
    quotas: list[QuotaModel] = Field(default_factory=list)
    resources: ResourcesModel = Field(default_factory=ResourcesModel)
    tables: dict[str, TablePolicyModel] = Field(min_length=1)


# What they are called in docs/schema/policy.schema.json, which editors and others rely on: these names never change.
POLICY_DEFINITIONS: Mapping[type[Any], str] = {
    PolicyModel: "PolicyModel",
    BudgetModel: "BudgetModel",
    ColumnModel: "ColumnModel",
    CsvModel: "CsvModel",
    PostgresModel: "PostgresModel",
    QuotaModel: "QuotaModel",
    ResourcesModel: "ResourcesModel",
    TablePolicyModel: "TableModel",
    UnitModel: "UnitModel",
    InnerUnitModel: "InnerUnitModel",
}
