"""A release plan as a TOML file: a policy file, and what is published; every error names its line and a way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.query import Policy
from discreet.query.session.policy_file import policy_of
from discreet.query.session.toml_document import Document
from discreet.query.session.toml_lines import Place
from discreet.release.period import Every, Schedule
from discreet.release.plan import Level, Output, ReleasePlan, RunningPlan, SeenFact, TablePlan
from discreet.release.reading.parts import (
    allowance_of,
    family_of,
    invariant_of,
    level_of,
    running_of,
    table_of,
    title_of,
)
from discreet.stored_names import stored_definitions

if TYPE_CHECKING:
    from discreet.release.reading.plan_model import LevelModel, PlanModel

__all__ = ["read_release_plan", "release_plan_schema"]

_MOST_TABLES = 500
_LONGEST_SHOWN = 300


def release_plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of plan files."""
    from discreet.release.reading.plan_model import PLAN_DEFINITIONS, PlanModel

    schema = stored_definitions(PlanModel.model_json_schema(), PLAN_DEFINITIONS)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Discreet release plan"} | schema


def read_release_plan(path: str | Path) -> ReleasePlan:
    """Read a plan file, or raise an error that names the line, what is wrong, and what to write instead.

    SQL is not read here: `check` does, and everything else that needs no data.
    """
    from discreet.release.reading.plan_model import PlanModel

    document = Document.open(path, PlanModel, manual="docs/release-plan.md")
    return _Reader(document, document.checked()).plan()


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """A plan file whose shape is right, while its parts are made."""

    document: Document[PlanModel]
    model: PlanModel

    def plan(self) -> ReleasePlan:
        policy = policy_of(self.document, self.model)
        levels, schedule = dict(self._levels()), self._schedule()
        tables = list(self._tables(policy, levels, schedule))
        running = list(self._running(policy))
        self._check_names([(place, table.name) for place, table in tables] + [(at, one.name) for at, one in running])
        return ReleasePlan(
            name=self.model.name,
            title=self.model.title or title_of(self.model.name),
            policy=policy,
            allowance=self.document.at(("release",), allowance_of, self.model.release),
            tables=tuple(table for _, table in tables),
            schedule=schedule,
            output=self._output(),
            publisher=self.model.publisher,
            contact=self.model.contact,
            running=tuple(series for _, series in running),
            levels=tuple(levels.values()),
            invariants=tuple(map(invariant_of, self.model.invariants)),
            from_data=tuple(self._seen()),
            written=self.document.written,
            file=self.document.file.name,
        )

    def _seen(self) -> Iterator[SeenFact]:
        """Find what was read from the data; a mark that marks nothing is a mistake."""
        said = self.model.model_dump(by_alias=True, exclude_unset=True)
        for index, field in enumerate(self.model.from_data):
            value = _value_at(said, field)
            if value is None:
                raise self.document.wrong(
                    ("from_data", index),
                    f"this plan has no {field}: take it off the list, or write the place as the plan has it, such as "
                    "unit.max_groups or tables.stays.columns.age",
                )
            yield SeenFact(field=field, value=_shown(value))

    def _schedule(self) -> Schedule:
        said = self.model.schedule
        if said is None:
            return Schedule()
        made: Schedule = self.document.at(
            ("schedule",), Schedule, every=Every(said.every), first=said.first, column=said.column
        )
        return made

    def _output(self) -> Output:
        said = self.model.output
        folder = self.document.beside(said.folder)
        return Output(
            folder=folder,
            formats=tuple(dict.fromkeys(said.formats)),
            tidy=said.tidy,
            zip=said.zip,
            key=None if said.key is None else self.document.beside(said.key),
        )

    def _levels(self) -> Iterator[tuple[str, Level]]:
        above = {level.name: level for level in self.model.levels}
        for index, level in enumerate(self.model.levels):
            if above[level.name] is not level:
                raise self.document.wrong(("levels", index, "name"), "two levels have this name: rename one of them")
            if _goes_round(level, above):
                raise self.document.wrong(
                    ("levels", index, "of"), "these levels go round in a circle: the lowest is of a column"
                )
            yield level.name, level_of(level)

    def _tables(
        self, policy: Policy, levels: Mapping[str, Level], schedule: Schedule
    ) -> Iterator[tuple[Place, TablePlan]]:
        for index, said in enumerate(self.model.publish):
            place: Place = ("publish", index)
            if said.sql is not None:
                yield place, self.document.at(place, table_of, said)
                continue
            family = self.document.at(place, family_of, said, policy, levels, schedule)
            for table in self.document.at(place, family.tables):
                yield place, table

    def _running(self, policy: Policy) -> Iterator[tuple[Place, RunningPlan]]:
        for index, said in enumerate(self.model.running):
            place: Place = ("running", index)
            yield place, self.document.at(place, running_of, said, policy)

    def _check_names(self, named: list[tuple[Place, str]]) -> None:
        """Every table has files of its own, also where upper and lower case are the same."""
        if not named:
            raise self.document.wrong((), "nothing is published: write [[publish]] or [[running]]")
        if len(named) > _MOST_TABLES:
            raise self.document.wrong((), f"{len(named)} tables are published: {_MOST_TABLES} are the most")
        seen: set[str] = set()
        for place, name in named:
            if name.casefold() in seen:
                raise self.document.wrong((*place, "name"), f"two tables would be called {name!r}: rename one of them")
            seen.add(name.casefold())


def _value_at(said: Any, field: str) -> Any:
    """Return what a plan says at a place whose steps are joined by dots; a column may have dots in its own name."""
    if not isinstance(said, dict):
        return None
    for name, inside in said.items():
        if name == field:
            return inside
        if field.startswith(f"{name}."):
            rest = field.removeprefix(f"{name}.")
            parts = inside if isinstance(inside, list) else [inside]
            found = [value for part in parts if (value := _value_at(part, rest)) is not None]
            if found:
                return found[0] if len(found) == 1 else found
    return None


def _shown(value: Any) -> str:
    """Write a value on one line; a long one is in the plan in full."""
    from discreet.release.drafting.writing import toml_value

    is_list = isinstance(value, dict) and all(isinstance(part, dict) for part in value.values())
    text = toml_value(sorted(value) if is_list else value)  # Of many columns, which ones there are.
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]} …"


def _goes_round(level: LevelModel, above: Mapping[str, LevelModel]) -> bool:
    """Whether a level is, over others, a level of itself."""
    seen, at = {level.name}, level.of
    while at in above:
        if at in seen:
            return True
        seen.add(at)
        at = above[at].of
    return False
