"""A policy as a TOML file: the same words as the constructor of a Session; every error names its line and a way out."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter
from discreet.ledger.budget import Budget
from discreet.ledger.quota import Quota
from discreet.query.policy import Declared, Unit, between, boolean, categories, public, text
from discreet.query.session.catalogue_building import nearest
from discreet.query.session.resources import Resources
from discreet.query.session.toml_lines import Place, line_of, parse

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from discreet.query.session.policy_model import ColumnModel, PolicyModel, QuotaModel

__all__ = ["Policy", "TablePolicy", "policy_schema", "read_policy"]

_LARGEST = 1_000_000  # Characters; a policy is written by people.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePolicy:
    """What a policy says of one table."""

    source: Path | None
    public: bool
    columns: Mapping[str, Declared]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Whom to protect, how much may be spent, and what is publicly known."""

    dataset: str
    ledger: Path
    anchor: Path | None
    version: str | None
    unit: Unit
    budget: Budget
    quotas: tuple[Quota, ...]
    tables: Mapping[str, TablePolicy]
    resources: Resources = field(default_factory=Resources)

    def sources(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tables: those that are handed over, and the others from where the policy says they are."""
        for name in given:
            if name not in self.tables:
                raise InvalidParameter(f"the policy has no table {name!r}. {nearest(name, self.tables)}")
        found = {name: given.get(name, table.source) for name, table in self.tables.items()}
        for name, source in found.items():
            if source is None:
                raise InvalidParameter(f"table {name!r} has no source in the policy: hand it over in tables=")
        return {name: public(source) if self.tables[name].public else source for name, source in found.items()}


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of policy files."""
    from discreet.query.session.policy_model import PolicyModel

    schema = PolicyModel.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Discreet policy"} | schema


def read_policy(path: str | Path) -> Policy:
    """Read a policy file, or raise an error that names the line, what is wrong, and what to write instead."""
    file = Path(path)
    try:
        written = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{file.name} cannot be read as a text file: check the path") from None
    return _Reader(file, written).policy()


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """One file while it is read: it knows where everything is said."""

    file: Path
    written: str

    def policy(self) -> Policy:
        model = self._checked(self._document())
        return Policy(
            dataset=model.dataset,
            ledger=self.file.parent / model.ledger,
            anchor=None if model.anchor is None else self.file.parent / model.anchor,
            version=model.version,
            unit=self._at(("unit",), Unit, **model.unit.model_dump()),
            budget=self._at(("budget",), Budget, **model.budget.model_dump(exclude_none=True)),
            quotas=tuple(self._at(("quotas", index), _quota, quota) for index, quota in enumerate(model.quotas)),
            tables={
                name: TablePolicy(
                    source=None if table.source is None else self.file.parent / table.source,
                    public=table.public,
                    columns=dict(self._columns(name, table.columns)),
                )
                for name, table in model.tables.items()
            },
            resources=self._at(("resources",), Resources, **model.resources.model_dump(exclude_none=True)),
        )

    def _document(self) -> dict[str, Any]:
        if len(self.written) > _LARGEST:
            raise InvalidParameter(f"{self.file.name} is longer than a policy can be: a million characters")
        try:
            return parse(self.written)
        except tomllib.TOMLDecodeError as error:
            raise InvalidParameter(f"{self.file.name} is not TOML: {error}. See docs/session.md for a policy") from None

    def _checked(self, document: dict[str, Any]) -> PolicyModel:
        from pydantic import ValidationError

        from discreet.query.session.policy_model import PolicyModel

        try:
            return PolicyModel.model_validate(document)
        except ValidationError as error:
            raise self._refusal(error, document) from None

    def _refusal(self, error: ValidationError, document: dict[str, Any]) -> InvalidParameter:
        return InvalidParameter(
            "\n".join(self._says(found["loc"], _advice(found, document)) for found in error.errors())
        )

    def _says(self, place: Place, advice: str) -> str:
        where = ".".join(map(str, place)) or "the file"
        return f"{self.file.name}, line {line_of(self.written, place)}, {where}: {advice}"

    def _at(self, place: Place, make: Any, *values: Any, **named: Any) -> Any:
        """Make a part of the policy, and tell the place if it cannot be."""
        try:
            return make(*values, **named)
        except InvalidParameter as error:
            raise InvalidParameter(self._says(place, str(error))) from None

    def _columns(self, table: str, columns: Mapping[str, ColumnModel]) -> Iterator[tuple[str, Declared]]:
        for name, column in columns.items():
            yield name, self._at(("tables", table, "columns", name), _declared, column)


def _quota(quota: QuotaModel) -> Quota:
    budget = Budget(epsilon=quota.epsilon, delta=quota.delta, rho=quota.rho)
    return Quota(budget, project=quota.project, principal=quota.principal, window=quota.window)


def _declared(column: ColumnModel) -> Declared:
    """Turn a column of the file into the declaration that the constructor would get."""
    said = column.model_dump(exclude_none=True)
    match sorted(said):
        case ["kind"]:
            return boolean() if column.kind == "boolean" else text()
        case ["categories"]:
            return categories(column.categories or ())
        case ["high", "low", *_] if "kind" not in said and "categories" not in said:
            return between(said["low"], said["high"], step=column.step, missing=column.missing)
    raise InvalidParameter(
        'say one of: low and high (with step and missing, if you like), categories, or kind = "boolean" or "text"'
    )


def _advice(found: ErrorDetails, document: dict[str, Any]) -> str:
    """Say what is wrong at a place, and what to write instead."""
    from discreet.query.session.policy_model import PolicyModel

    place, kind = found["loc"], found["type"]
    if kind == "extra_forbidden":
        return _unknown(str(place[-1]), sorted(_fields_at(PolicyModel, place[:-1])))
    if kind == "missing":
        return f"this is missing: {_described(PolicyModel, place)}"
    if kind in ("model_type", "dict_type"):
        return f"this should be a table. What can stand in it: {', '.join(sorted(_fields_at(PolicyModel, place)))}"
    if kind == "value_error":
        return str(found["ctx"]["error"])
    said = found["msg"].removeprefix("Input ").removeprefix("should ").removeprefix("be ")
    return f"this should be {said}. {_described(PolicyModel, place)}".strip()


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"unknown here. {f'Did you mean {near[0]}? ' if near else ''}What can stand here: {', '.join(known)}"


def _fields_at(model: type[BaseModel], place: Place) -> Mapping[str, Any]:
    """Return the fields that can stand at a place."""
    for step in place:
        if isinstance(step, str) and step in model.model_fields:
            model = _model_in(model.model_fields[step].annotation) or model
    return model.model_fields


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds: itself, or the items of its list or table."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in getattr(annotation, "__args__", ()) if (model := _model_in(part))), None)


def _described(model: type[BaseModel], place: Place) -> str:
    """Return what the model says of the field at a place."""
    name = next((step for step in reversed(place) if isinstance(step, str)), "")
    field = _fields_at(model, place[:-1]).get(name)
    described = "" if field is None else field.description or getattr(_model_in(field.annotation), "__doc__", "") or ""
    return described.strip()
