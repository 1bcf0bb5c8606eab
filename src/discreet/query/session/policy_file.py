"""A policy as a TOML file: the same words as the constructor of a Session; every error names its line and a way out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter
from discreet.formatting import record
from discreet.ledger.budget import Budget, Quota
from discreet.ledger.charge_record import Account
from discreet.ledger.server_address import LedgerAddress, LedgerPlace, as_place
from discreet.query.policy import Chain, Resources, Unit, public
from discreet.query.session.catalogue_builder import nearest, written_in
from discreet.query.session.requests import account_of
from discreet.schema.columns import Declared
from discreet.schema.csv_file import CsvFile, csv
from discreet.schema.toml_document import Document
from discreet.stored_names import stored_definitions

if TYPE_CHECKING:
    from discreet.query.session.policy_model import PolicyModel, PostgresModel, QuotaModel, TablePolicyModel

__all__ = [
    "Policy",
    "PostgresPlace",
    "TablePolicy",
    "chain_of",
    "policy_of",
    "policy_schema",
    "read_policy",
    "unit_of",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPlace:
    """A table in PostgreSQL, and where its address is found once it is read."""

    table: str
    variable: str | None
    file: Path | None
    view: bool

    def source(self) -> Any:
        """Return the table at the address that the variable or the file has at this moment."""
        from discreet.query.sources.postgres import postgres

        return postgres(self._dsn(), self.table, view=self.view)

    def _dsn(self) -> str:
        if self.variable is not None:
            found = os.environ.get(self.variable, "")
        else:
            assert self.file is not None
            try:
                found = self.file.read_text(encoding="utf-8").strip()
            except (OSError, ValueError):
                found = ""
        if not found:
            where = self.file if self.variable is None else f"the environment variable {self.variable}"
            raise InvalidParameter(f"the address of a PostgreSQL table is missing: {where} is empty or cannot be read")
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePolicy:
    """What a policy says of one table."""

    source: Path | None
    public: bool
    columns: Mapping[str, Declared]
    csv: CsvFile | None = None  # how the source is written, where that is said
    postgres: PostgresPlace | None = None  # where it is, if that is a database

    def handed(self, given: Any) -> Any:
        """Return what is read for it: what is handed over, or the source, as it is said to be written."""
        if given is None and self.postgres is not None:
            return self.postgres.source()
        found = self.source if given is None else given
        is_written = self.csv is not None and isinstance(found, (str, Path))
        return replace(self.csv, path=str(found)) if is_written and self.csv is not None else found

    __repr__ = record


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Whom to protect, how much may be spent, and what is publicly known.

    Args:
        dataset: The public name of the data set.
        ledger: The file of the ledger, or its address on a PostgreSQL server.
        anchor: The file that holds the end of its record, if it is elsewhere.
        version: The declared state of the data.
        unit: Whom to protect; of a chain, the outer unit.
        budget: What all questions together may spend, for one such unit.
        quotas: Budgets for projects, users and windows of time.
        tables: What is declared of each table.
        resources: How much time, memory and threads a question may use.
        chain: Both units, where two are protected, one within the other.
        inner_budget: What all questions together may spend for one inner unit of a chain.

    Examples:
        >>> "budget" in dp.query.policy_schema()["properties"]
        True
    """

    dataset: str
    ledger: LedgerPlace
    anchor: Path | None
    version: str | None
    unit: Unit
    budget: Budget
    quotas: tuple[Quota, ...]
    tables: Mapping[str, TablePolicy]
    resources: Resources = field(default_factory=Resources)
    chain: Chain | None = None
    inner_budget: Budget | None = None

    __repr__ = record

    @property
    def counted(self) -> Unit:
        """Whose rows contribution limits are of: the unit, or the inner one of a chain."""
        return self.unit if self.chain is None else self.chain.inner

    @property
    def account(self) -> Account:
        """What the ledger of the data set is opened with."""
        if self.chain is None or self.inner_budget is None:
            return account_of(self.dataset, self.unit, self.budget)
        return account_of(self.dataset, self.chain, (self.budget, self.inner_budget))

    def sources(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables: those that are handed over, and the others from where the policy says they are."""
        for name in given:
            if name not in self.tables:
                raise InvalidParameter(f"the policy has no table {name!r}. {nearest(name, self.tables)}")
        found = {name: table.handed(given.get(name)) for name, table in self.tables.items()}
        for name, source in found.items():
            if source is None:
                raise InvalidParameter(f"table {name!r} has no source in the policy: hand it over in tables=")
        return {name: public(source) if self.tables[name].public else source for name, source in found.items()}


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of policy files.

    Returns:
        The schema, for editors that complete and check policies.

    Examples:
        >>> dp.query.policy_schema()["type"]
        'object'
    """
    from discreet.query.session.policy_model import POLICY_DEFINITIONS, PolicyModel

    schema = stored_definitions(PolicyModel.model_json_schema(), POLICY_DEFINITIONS)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Discreet policy"} | schema


def read_policy(path: str | Path) -> Policy:
    """Read a policy file, or raise an error that names the line, what is wrong, and what to write instead.

    Args:
        path: The TOML file.

    Returns:
        The policy.

    Raises:
        InvalidParameter: If something in the file is wrong or not known.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("policy.toml").write_text('''
        ... dataset = "visits"
        ... ledger = "visits.ledger"
        ... [unit]
        ... column = "patient"
        ... [budget]
        ... epsilon = 1
        ... [tables.visits]
        ... source = "visits.csv"
        ... ''')
        >>> dp.query.read_policy("policy.toml").unit.column
        'patient'
    """
    from discreet.query.session.policy_model import PolicyModel

    document = Document.open(path, PolicyModel, manual="docs/session.md")
    return policy_of(document, document.checked())


def _ledger(document: Document[Any], said: str) -> LedgerPlace:
    """Read where the ledger is: beside the file, or on a server."""
    place = as_place(said)
    return place if isinstance(place, LedgerAddress) else document.beside(said)


def policy_of(document: Document[Any], model: PolicyModel) -> Policy:
    """Make a policy of what a file says: a policy file, or one that says more."""
    chain, inner_budget = chain_of(document, model)
    return Policy(
        dataset=model.dataset,
        ledger=document.at(("ledger",), _ledger, document, model.ledger),
        anchor=None if model.anchor is None else document.beside(model.anchor),
        version=model.version,
        unit=unit_of(document, model) if chain is None else chain.outer,
        budget=document.at(("budget",), Budget, **model.budget.model_dump(exclude_none=True)),
        quotas=tuple(document.at(("quotas", index), _quota, quota) for index, quota in enumerate(model.quotas)),
        tables={
            name: TablePolicy(
                source=None if table.source is None else document.beside(table.source),
                public=table.public,
                columns=dict(_columns(document, name, table)),
                csv=_csv(document, name, table),
                postgres=_postgres(document, name, table),
            )
            for name, table in model.tables.items()
        },
        resources=document.at(("resources",), Resources, **model.resources.model_dump(exclude_none=True)),
        chain=chain,
        inner_budget=inner_budget,
    )


def unit_of(document: Document[Any], model: PolicyModel) -> Unit:
    """Read the unit; of a chain, the outer one."""
    said = model.unit.model_dump(exclude_none=True, exclude={"inner", "max_inner"})
    unit: Unit = document.at(("unit",), Unit, relation=model.relation, **said)
    return unit


def chain_of(document: Document[Any], model: PolicyModel) -> tuple[Chain | None, Budget | None]:
    """Read both units of a chain, and the budget of the inner one."""
    said = model.unit
    if (said.inner is None) != (said.max_inner is None):
        raise InvalidParameter(
            "[unit.inner] and max_inner in [unit] go together: the first says who is within each unit, the second how "
            "many of them are counted at most"
        )
    if said.inner is None:
        return None, None
    within = said.inner.model_dump(exclude_none=True, exclude={"budget"})
    inner = document.at(("unit", "inner"), Unit, **within)
    chain = document.at(("unit", "inner"), Chain, unit_of(document, model), inner, max_inner=said.max_inner)
    spent = said.inner.budget.model_dump(exclude_none=True)
    return chain, document.at(("unit", "inner", "budget"), Budget, **spent)


def _columns(document: Document[Any], name: str, table: TablePolicyModel) -> Iterator[tuple[str, Declared]]:
    from discreet.schema.toml_models import declared_in

    file = _csv(document, name, table)
    for column, model in table.columns.items():
        declared = document.at(("tables", name, "columns", column), declared_in, model)
        yield column, declared if file is None else written_in(file, column, declared) or declared


def _postgres(document: Document[Any], name: str, table: TablePolicyModel) -> PostgresPlace | None:
    said = table.postgres
    if said is None:
        return None
    place: PostgresPlace = document.at(("tables", name, "postgres"), _place, said, document, table.source)
    return place


def _place(said: PostgresModel, document: Document[Any], source: str | None) -> PostgresPlace:
    from discreet.query.sources.postgres import postgres

    if source is not None:
        raise InvalidParameter("a table is in a file or in PostgreSQL: say source or postgres, not both")
    if (said.dsn_env is None) == (said.dsn_file is None):
        raise InvalidParameter("say where the address is: dsn_env names an environment variable, dsn_file a file")
    postgres("postgresql://localhost/", said.table)  # The name can be read.
    file = None if said.dsn_file is None else document.beside(said.dsn_file)
    return PostgresPlace(table=said.table, variable=said.dsn_env, file=file, view=said.view)


def _csv(document: Document[Any], name: str, table: TablePolicyModel) -> CsvFile | None:
    if table.csv is None:
        return None
    path = table.source or f"{name}.csv"
    file: CsvFile = document.at(("tables", name, "csv"), csv, path, **table.csv.model_dump())
    return file


def _quota(quota: QuotaModel) -> Quota:
    budget = Budget(epsilon=quota.epsilon, delta=quota.delta, rho=quota.rho, expect=quota.expect)
    return Quota(budget, project=quota.project, principal=quota.principal, window=quota.window)
