"""A release plan as a TOML file: a policy file, and what is published; every error names its line and a way out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter
from discreet.exact import Number, exact, exact_or_none
from discreet.formatting import significant_up
from discreet.ledger import Budget
from discreet.query import Policy
from discreet.query.plan.draft import MOST_EPSILON, MOST_RHO
from discreet.query.policy import FamilyChoice, UnitLimits
from discreet.query.session.catalogue_builder import nearest
from discreet.query.session.policy_file import chain_of, policy_of, unit_of
from discreet.release.levels_and_families import GroupingColumns, GroupingFamily, check_piece
from discreet.release.plan import (
    Allowance,
    Every,
    Invariant,
    Level,
    Output,
    ReleasePlan,
    RunningPlan,
    Schedule,
    SeenFact,
    TablePlan,
    Wish,
)
from discreet.schema.toml_document import Document, Place
from discreet.stored_names import stored_definitions

if TYPE_CHECKING:
    from discreet.release.plan_model import (
        AllowanceModel,
        InvariantModel,
        LevelModel,
        PlanModel,
        PublishModel,
        RunningModel,
        WishModel,
    )

__all__ = [
    "allowance_of",
    "family_of",
    "invariant_of",
    "level_of",
    "read_plan_text",
    "read_release_plan",
    "release_plan_schema",
    "running_of",
    "table_of",
    "title_of",
    "wish_of",
]

_MOST_TABLES = 1000
_MOST_UNLIKE = 1_000_000
_LONGEST_SHOWN = 300


def release_plan_schema() -> dict[str, Any]:
    """Return the JSON Schema of plan files.

    Returns:
        The schema, for editors and pipelines.

    Examples:
        >>> "publish" in dp.release.release_plan_schema()["properties"]
        True
    """
    from discreet.release.plan_model import PLAN_DEFINITIONS, PlanModel

    schema = stored_definitions(PlanModel.model_json_schema(), PLAN_DEFINITIONS)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Discreet release plan"} | schema


def read_release_plan(path: str | Path) -> ReleasePlan:
    """Read a plan file, or raise an error that names the line, what is wrong, and what to write instead.

    SQL is not read here: `check` does, and everything else that needs no data.

    Args:
        path: The TOML file. Paths in it are meant from its folder.

    Returns:
        The plan. Everything in it is public.

    Raises:
        InvalidParameter: If something in the file is wrong; as much as can be found at once, each with its line.

    Examples:
        >>> from pathlib import Path
        >>> files = dp.data.copy("hospital", Path())
        >>> plan = dp.release.read_release_plan("plan.toml")
        >>> [level.name for level in plan.levels]
        ['region']
    """
    from discreet.release.plan_model import PlanModel

    document = Document.open(path, PlanModel, manual="docs/release-plan.md")
    return _PlanReader(document, document.checked()).plan()


def read_plan_text(text: str, policy: Policy) -> ReleasePlan:
    """Read a plan that somebody sent, for a data set whose policy is at hand; no file or address in it is looked at.

    Sources, ledger and key that it names are not its own to choose: those of the policy hold, and no bundle is signed.
    What it declares of the data must be what the policy declares, since it is published with the bundle.
    """
    from discreet.release.plan_model import PlanModel

    document = Document(Path("plan.toml"), text, PlanModel, "docs/release-plan.md")
    model = document.checked()
    _check_same_declarations(document, model, policy)
    plan = _PlanReader(document, model, policy).plan()
    return replace(plan, output=replace(plan.output, key=None))


def _check_same_declarations(document: Document[PlanModel], model: PlanModel, policy: Policy) -> None:
    """Refuse a plan that declares the data otherwise than the policy: whom to protect, budgets, tables or columns."""
    from discreet.schema.toml_models import declared_in

    chain, inner = chain_of(document, model)
    said: dict[str, tuple[Any, Any]] = {
        "dataset": (model.dataset, policy.dataset),
        "version": (model.version, policy.version),
        "unit": (unit_of(document, model) if chain is None else chain, policy.chain or policy.unit),
        "budget": (Budget(**model.budget.model_dump(exclude_none=True)), policy.budget),
        "unit.inner.budget": (inner, policy.inner_budget),
        "tables": (set(model.tables), set(policy.tables)),
    }
    for name, table in model.tables.items():
        known = policy.tables.get(name)
        columns = {column: declared_in(one).facts for column, one in table.columns.items()}
        if known is not None:
            declared = {column: one.facts for column, one in known.columns.items()}
            said[f"tables.{name}"] = ((table.public, columns), (known.public, declared))
    for place, (ours, theirs) in said.items():
        if ours != theirs:
            raise document.wrong(
                tuple(place.split(".", 1))[:1],
                f"{place} is not what the policy of the data set declares: write it as it is there",
            )


@final
@dataclass(frozen=True, slots=True)
class _PlanReader:
    """A plan file whose shape is right, while its parts are made."""

    document: Document[PlanModel]
    model: PlanModel
    policy: Policy | None = None  # what holds instead of what the file says of the data

    def plan(self) -> ReleasePlan:
        policy = policy_of(self.document, self.model) if self.policy is None else self.policy
        levels, schedule = dict(self._levels()), self._schedule()
        tables = list(self._tables(policy, levels, schedule))
        running = list(self._running(policy))
        self._check_families(tables)
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
        values = {field: _value_at(said, field) for field in self.model.from_data}
        stale = [field for field, value in values.items() if value is None]
        if stale:
            named = "; ".join(f"{field}{self._line_of(field)}" for field in stale)
            raise self.document.wrong(
                ("from_data", self.model.from_data.index(stale[0])),
                f"this plan has no {named}: take {'it' if len(stale) == 1 else 'them'} off the list, or write the "
                "place as the plan has it, such as unit.max_groups or tables.stays.columns.age",
            )
        yield from (SeenFact(field=field, value=_shown(values[field])) for field in self.model.from_data)

    def _line_of(self, field: str) -> str:
        """Say in which line of a list a text stands, where it has a line of its own."""
        lines = self.document.written.splitlines()
        found = [
            number for number, line in enumerate(lines, 1) if line.strip().strip(",") in (f'"{field}"', f"'{field}'")
        ]
        return f" (line {found[0]})" if found else ""

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
                tables = (self.document.at(place, table_of, said),)
            else:
                family = self.document.at(place, family_of, said, policy, levels, schedule)
                tables = self.document.at(place, family.tables)
            share = exact_or_none(said.kept_share, name="kept_share")
            # All tables of a family count the same rows, so that one of them tells what is left out of all.
            kept = () if share is None else (tables[0].kept(share),)
            yield from ((place, table) for table in (*tables, *kept))

    def _running(self, policy: Policy) -> Iterator[tuple[Place, RunningPlan]]:
        for index, said in enumerate(self.model.running):
            place: Place = ("running", index)
            yield place, self.document.at(place, running_of, said, policy)

    def _check_families(self, tables: list[tuple[Place, TablePlan]]) -> None:
        """Tables of one family add up, so what is published under one name is said in one place."""
        seen: dict[str, Place] = {}
        for place, table in tables:
            if table.family is not None and seen.setdefault(table.family.casefold(), place) != place:
                raise self.document.wrong(
                    (*place, "name"), f"two families would be called {table.family!r}: rename one of them"
                )

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
    from discreet.release.draft.plan_draft import toml_value

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


# --- parts: Each part of a plan file, once its shape is right, as the noun that it stands for. ---


_WISHES = ("share", "epsilon", "rho", "error", "relative_error")
_LEAST_EPSILON, _LEAST_RHO = Fraction(1, 10**6), Fraction(1, 10**12)  # Of what one release may spend.
_OF_FAMILIES = ("source", "where", "by", "groupings", "measures", "max_rows")


def title_of(name: str) -> str:
    """Make a title of a name."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def allowance_of(said: AllowanceModel) -> Allowance:
    """Read what one release may spend."""
    if (said.epsilon is None) == (said.rho is None):
        raise InvalidParameter("say either epsilon (with delta for Gaussian noise, without it pure) or rho")
    if said.rho is not None and said.delta is None:
        raise InvalidParameter("rho needs a delta: the one at which the epsilon of a release is told")
    _check_size("epsilon", said.epsilon, _LEAST_EPSILON, MOST_EPSILON)
    _check_size("rho", said.rho, _LEAST_RHO, MOST_RHO)
    return Allowance(
        epsilon=exact_or_none(said.epsilon, name="epsilon"),
        delta=exact_or_none(said.delta, name="delta"),
        rho=exact_or_none(said.rho, name="rho"),
        split=said.split,
    )


def _check_size(name: str, value: Number | None, least: Fraction, most: Fraction) -> None:
    if value is not None and not least <= exact(value, name=name) <= most:
        raise InvalidParameter(
            f"{name} must be at most {most}, beyond which nobody is protected, and at least {significant_up(least)}, "
            "below which answers are noise alone"
        )


def wish_of(said: WishModel) -> Wish:
    """Read what a table should cost or reach."""
    given = [name for name in _WISHES if getattr(said, name) is not None]
    if len(given) > 1:
        raise InvalidParameter(f"say one of {' and '.join(given)}, not both: one follows from the other")
    return Wish(**{name: exact(getattr(said, name), name=name) for name in given})


def level_of(said: LevelModel) -> Level:
    """Read a level."""
    return Level(name=said.name, of=said.of, members={value: tuple(part) for value, part in said.members.items()})


def invariant_of(said: InvariantModel) -> Invariant:
    """Read an invariant."""
    return Invariant(
        table=said.table,
        column=said.column,
        value=exact(said.value, name="value"),
        where=dict(said.where),
        reason=said.reason,
    )


def table_of(said: PublishModel) -> TablePlan:
    """Read a table that is published by its SQL."""
    assert said.sql is not None
    also = [name for name in _OF_FAMILIES if getattr(said, name)]
    if also:
        named = ", ".join("from" if name == "source" else name for name in also)
        raise InvalidParameter(f"a table is made by sql or by groupings: leave out sql, or else {named}")
    return TablePlan(
        name=said.name,
        title=said.title or title_of(said.name),
        sql=said.sql,
        wish=wish_of(said),
        expected=_expected(said),
        delta=exact_or_none(said.delta, name="delta"),
        keys={name: tuple(values) for name, values in said.keys.items()},
        limits=_limits(said),
        quantile_intervals=said.quantile_intervals,
        population=said.population,
    )


def _limits(said: PublishModel) -> UnitLimits:
    return UnitLimits(max_groups=said.max_groups, max_rows_per_group=said.max_rows_per_group, max_inner=said.max_inner)


def family_of(said: PublishModel, policy: Policy, levels: Mapping[str, Level], schedule: Schedule) -> GroupingFamily:
    """Read a family of tables."""
    if said.source is None:
        raise InvalidParameter('say how the table is made: sql = "SELECT …", or from, by (or groupings) and measures')
    if (said.by is None) == (said.groupings is None):
        raise InvalidParameter("say what to group by: by = [columns] for one table, or groupings = [[], [columns], …]")
    if said.delta is not None:
        raise InvalidParameter("all groups of a family are public, so it needs no delta: leave it out")
    source = private_source(policy, said.source)
    groupings = [tuple(by) for by in ([said.by] if said.by is not None else said.groupings or [])]
    _check_keys(said, groupings, levels)
    if said.max_rows is not None and len(groupings) == 1:
        raise InvalidParameter(
            "max_rows is for a family of several tables, which count the same rows: leave it out, and say max_groups "
            "and max_rows_per_group of a single one"
        )
    return GroupingFamily(
        name=said.name,
        title=said.title or title_of(said.name),
        source=source,
        where=None if said.where is None else check_piece(said.where),
        groupings=groupings,
        measures={name: check_piece(measure) for name, measure in said.measures.items()},
        axes=GroupingColumns(
            table=source,
            columns=policy.tables[source].columns,
            levels=levels,
            keys={name: tuple(values) for name, values in said.keys.items()},
            schedule=schedule,
        ),
        wish=wish_of(said),
        expected=_expected(said),
        limits=_family_limits(said, groupings),
        aim=said.aim,
        weights=_weights(said, groupings),
        quantile_intervals=said.quantile_intervals,
        population=said.population,
    )


def _weights(said: PublishModel, groupings: list[tuple[str, ...]]) -> tuple[Fraction, ...]:
    """Read how much each grouping counts where noise is shared."""
    if (said.aim is not None or said.weights is not None) and len(groupings) == 1:
        raise InvalidParameter("aim and weights are for a family of several tables, which share their noise")
    if said.weights is None:
        return (Fraction(1),) * len(groupings)
    if said.aim == "apart":
        raise InvalidParameter('weights counts where noise is shared: leave it out with aim = "apart"')
    if len(said.weights) != len(groupings):
        raise InvalidParameter(
            f"weights has one number for each grouping: say {len(groupings)} of them, not {len(said.weights)}"
        )
    weights = [exact(weight, name="a weight") for weight in said.weights]
    if max(weights) > _MOST_UNLIKE * min(weights):
        raise InvalidParameter(
            f"weights may differ by a factor of {_MOST_UNLIKE:,} at most: leave out a table that hardly counts"
        )
    return tuple(weight / max(weights) for weight in weights)  # Only their ratios count.


def _family_limits(said: PublishModel, groupings: list[tuple[str, ...]]) -> UnitLimits:
    """Several tables of the same rows have one choice of them; one table by itself is a table like any other."""
    several = len(groupings) > 1
    return replace(_limits(said), family=FamilyChoice(name=said.name, max_rows=said.max_rows) if several else None)


def running_of(said: RunningModel, policy: Policy) -> RunningPlan:
    """Read a series of totals so far."""
    return RunningPlan(
        name=said.name,
        title=said.title or title_of(said.name),
        source=private_source(policy, said.source),
        day=said.day,
        first=said.first.isoformat(),
        days=said.days,
        where=None if said.where is None else check_piece(said.where),
        max_days=said.max_days,
        person_day=said.person_day,
        wish=wish_of(said),
    )


def private_source(policy: Policy, name: str) -> str:
    """Return the name of a private table as the policy writes it."""
    private = [table for table, said in policy.tables.items() if not said.public]
    found = next((table for table in private if table.casefold() == name.casefold()), None)
    if found is None:
        raise InvalidParameter(f"there is no private table {name!r}. {nearest(name, private)}")
    return found


def _check_keys(said: PublishModel, groupings: list[tuple[str, ...]], levels: Mapping[str, Level]) -> None:
    used = {name for by in groupings for name in by}
    bases = used | {level.of for level in levels.values()}
    for name, values in said.keys.items():
        if name not in bases:
            raise InvalidParameter(f"keys are listed for {name!r}, which no grouping uses: leave them out")
        if not values or len(set(values)) != len(values):
            raise InvalidParameter(f"the keys of {name!r} must be at least one, and distinct")


def _expected(said: PublishModel) -> dict[str, Fraction]:
    return {name: exact(size, name="an expected value") for name, size in said.expected.items()}
