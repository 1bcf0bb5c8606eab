"""`discreet data`: the bundled data sets, and what deleting rows of a data set touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.options import AsJson, PolicyFile, command, group
from discreet.cli.output import Block, TextTable, show

if TYPE_CHECKING:
    from discreet.data.sets import Bundled
    from discreet.query import Policy
    from discreet.query.session.policy_file import TablePolicy
    from discreet.release.plan import ReleasePlan

__all__ = ["Copied", "ErasureAnswer", "ErasurePlace", "SetFacts", "SetFile", "Sets", "add_to"]

data = group("Bundled made-up data sets, to try things on; and what deleting somebody's rows touches.")


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the group."""
    app.add_typer(data, name="data", rich_help_panel=panel)


@command(data, "list", example="discreet data list")
def list_sets(as_json: AsJson = False) -> None:
    """List the bundled data sets. Everybody in them is made up."""
    from discreet.data import bundled

    show(Sets.of(bundled()), as_json=as_json)


@command(data, "copy", example="discreet data copy hospital .")
def copy_set(
    name: Annotated[str, typer.Argument(help="The name of the data set; see data list.")],
    folder: Annotated[Path, typer.Argument(help="The folder to copy to; no file is overwritten.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Copy the files of a set into a folder."""
    from discreet.data import copy

    show(Copied.of(copy(name, folder)), as_json=as_json)


@command(data, "erase", example="discreet data erase --policy plan.toml", busy="reading the ledger")
def tell_erasure(policy: PolicyFile, as_json: AsJson = False) -> None:
    """Say file by file what deleting somebody's rows touches, and what it does not. It erases nothing itself.

    No row is read, no file is changed and nothing is charged. See docs/erasure.md.
    """
    show(ErasureAnswer.of(policy), as_json=as_json)


# --- sets: What is told of bundled data sets. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SetFile:
    """A file of a set. One that is no table has no rows."""

    name: str
    what: str
    rows: int
    columns: list[str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SetFacts:
    """Files that belong together."""

    name: str
    title: str
    files: list[SetFile]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """All sets that come along."""

    sets: list[SetFacts]

    @classmethod
    def of(cls, sets: Iterable[Bundled]) -> Sets:
        """Read the list of sets."""
        return cls(sets=[SetFacts(name=one.name, title=one.title, files=list(_files(one))) for one in sets])

    def blocks(self) -> Iterator[Block]:
        for one in self.sets:
            yield f"{one.name}: {one.title}"
            rows = [(file.name, f"{file.rows:,}" if file.rows else "", file.what) for file in one.files]
            yield TextTable(head=("file", "rows", "what it is"), rows=rows, right=frozenset({1}))
            yield ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Files that were copied."""

    files: list[str]

    @classmethod
    def of(cls, files: Iterable[Path]) -> Copied:
        """Name the files."""
        return cls(files=[str(file) for file in files])

    def blocks(self) -> Iterator[Block]:
        yield from self.files


def _files(one: Bundled) -> Iterator[SetFile]:
    for file in one.files:
        yield SetFile(name=file.name, what=file.what, rows=file.rows, columns=list(file.columns))


# --- erasure: What a policy or a plan names, and what becomes of it when somebody's rows are deleted. ---
#
# Names and declarations only: no table is opened, and of the ledger nothing but how many entries of a kind it has.

_STAYS = "stays"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePlace:
    """A file or a table, what it holds, and what becomes of it. `is_there` is None where that was not looked at."""

    place: str
    is_there: bool | None
    holds_rows: bool
    holds: str
    after: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureAnswer:
    """What there is of a data set, by its policy; what the policy cannot know; and what to do."""

    dataset: str
    unit: str
    erased: bool  # Always false: for programs that take this command for more than it is.
    places: list[ErasurePlace]
    elsewhere: list[str]
    steps: list[str]

    @classmethod
    def of(cls, file: Path) -> ErasureAnswer:
        """Read the policy or the plan, and count what is in its ledger."""
        from discreet.cli.policies import is_plan, named_ledger, read_any_policy
        from discreet.errors import InvalidParameter
        from discreet.release import read_release_plan

        if named_ledger(file) is not None:
            raise InvalidParameter("name a policy file or a release plan: a ledger does not know where its tables are")
        plan = read_release_plan(file) if is_plan(file) else None
        policy = read_any_policy(file) if plan is None else plan.policy
        places = [*_tables(policy), *_ledger_files(policy), *([] if plan is None else _plan_files(plan))]
        return cls(
            dataset=policy.dataset,
            unit=policy.account.unit,
            erased=False,
            places=places,
            elsewhere=list(_ELSEWHERE),
            steps=_steps(policy),
        )

    def blocks(self) -> Iterator[Block]:
        yield f"{self.dataset}: nothing was erased. If the rows of one {self.unit} are deleted:"
        yield ""
        rows = [(one.place, _FOUND[one.is_there], one.holds, one.after) for one in self.places]
        yield TextTable(head=("what", "there", "holds", "then"), rows=rows)
        for title, lines in (("What this file does not name:", self.elsewhere), ("What to do:", self.steps)):
            yield ""
            yield title
            yield from (f"- {line}" for line in lines)


_FOUND = {True: "yes", False: "no", None: "not looked at"}
_ELSEWHERE = (
    "copies, exports, backups and replicas of the tables; tables in the memory of open sessions: delete, or close",
    "results marked NOT PRIVATE: exact looks, drafts, debug output: delete",
    "models, checkpoints, synthetic rows, profiles: noisy numbers, which stay as they are",
    "the state of a server: requests with their SQL, and answers as they were released; it stays",
    "running totals and bundles of other plans on the same ledger",
)


def _tables(policy: Policy) -> Iterator[ErasurePlace]:
    for name, table in policy.tables.items():
        place, found = _source(name, table)
        if table.public:
            yield ErasurePlace(
                place=place, is_there=found, holds_rows=False, holds="declared public: protects nobody", after=_STAYS
            )
        else:
            yield ErasurePlace(
                place=place, is_there=found, holds_rows=True, holds="rows", after="you delete them, here and in backups"
            )


def _source(name: str, table: TablePolicy) -> tuple[str, bool | None]:
    if table.postgres is not None:
        return f"{name}: table {table.postgres.table} in PostgreSQL", None
    if table.source is None:
        return f"{name}: handed over in Python", None
    return str(table.source), table.source.exists()


def _ledger_files(policy: Policy) -> Iterator[ErasurePlace]:
    from discreet.ledger import look

    place, found = policy.ledger, policy.ledger.exists()
    kinds = [one.kind for one in look(place, anchor=policy.anchor).entries(policy.dataset)] if found else []
    yield ErasurePlace(
        place=str(place) if isinstance(place, Path) else "the ledger on a server",
        is_there=found,
        holds_rows=False,
        holds=f"{_counted(kinds)} of this data set: questions, prices, noisy values; no rows",
        after=_STAYS + "; no budget returns",
    )
    if isinstance(place, Path):
        yield _anchor_file(policy.anchor or place.with_name(f"{place.name}.anchor"))


def _anchor_file(anchor: Path) -> ErasurePlace:
    after = _STAYS + ": without it a rollback is not seen"
    holds = "the end of the ledger"
    return ErasurePlace(place=str(anchor), is_there=anchor.exists(), holds_rows=False, holds=holds, after=after)


def _counted(kinds: list[str]) -> str:
    """Tell how many charges and answers there are; those of a series, and claims of training steps, are parts."""
    numbers = {kind: kinds.count(kind) for kind in ("charge", "answer", "part")}
    told = [f"{n:,} {kind}{'' if n == 1 else 's'}" for kind, n in numbers.items() if n or kind != "part"]
    return ", ".join(told)


def _plan_files(plan: ReleasePlan) -> Iterator[ErasurePlace]:
    from discreet.release.cumulative.advance import state_of

    for series in plan.running:
        state = state_of(plan, series)
        yield ErasurePlace(
            place=str(state),
            is_there=state.exists(),
            holds_rows=True,
            holds="exact counts, and ids where units are people",
            after=_STAYS + "; delete it after the last day",
        )
    exact = bool(plan.invariants or plan.from_data)
    holds = "noisy values; exact ones that the plan names" if exact else "noisy values"
    for bundle in _bundles(plan.output.folder, f"{plan.name}-"):
        yield ErasurePlace(place=str(bundle), is_there=True, holds_rows=False, holds=holds, after=_STAYS)


def _bundles(folder: Path, begin: str) -> list[Path]:
    """Return the bundles of a plan, folders and archives; a dummy is of made-up rows, and none of them."""
    found = [one for one in folder.iterdir() if one.name.startswith(begin)] if folder.is_dir() else []
    real = [one for one in found if "DUMMY" not in one.name]
    return sorted(one for one in real if one.suffix == ".zip" or (one / "manifest.json").is_file())


def _steps(policy: Policy) -> list[str]:
    said = "the policy declares none: no stored answer is given again but under its own key"
    version = said if policy.version is None else f"now it is {policy.version!r}, and stored answers are given again"
    return [
        f"delete all rows of that {policy.account.unit}, in every table above, and in backups",
        f"name a new version of the data ({version})",
        "close open sessions; stop training runs, which go on from their folders with the rows as they are then",
        "leave ledger, anchor, answers and bundles as they are: what was released is within what was charged",
    ]
