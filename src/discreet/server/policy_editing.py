"""Policies that are drafted and changed on a page: what of them can be changed, and how they are written.

Whoever runs the server names one folder, and addresses of PostgreSQL. Tables are files in the one or tables at the
others, policies are written into the folder, and nothing else is read or written: no path, no link. Budgets cannot be
raised or reset: what a ledger stands for (unit, budget, quotas, and which ledger) stays as it is, a new data set gets a
new ledger, and a file that one data set protects cannot become another one, whose budget would be new.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from discreet.errors import DiscreetError, InvalidParameter
from discreet.file_locks import CLOSE_ON_EXEC, NO_FOLLOW, lock_file, refuse_without_locks, unlock_file
from discreet.query.policy import Resources
from discreet.query.session.policy_file import Policy, TablePolicy, policy_of
from discreet.query.session.policy_model import PolicyModel
from discreet.schema.toml_document import Document
from discreet.server.accounts import secret
from discreet.server.problems import Problem

__all__ = ["PolicyFolder", "check_change", "check_new_name", "check_undeclared", "difference", "digest_of"]

_TABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.(?:csv|parquet)", re.ASCII)
_DATASET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.toml", re.ASCII)
_LONGEST = 50_000  # characters of a policy
_OF_PLANS = re.compile(r"^\[+(?:release|output|publish|schedule|running|levels|invariants)\b", re.MULTILINE)
_FROM_DATA = re.compile(r"^from_data = \[\n(.*?)^\]\n", re.MULTILINE | re.DOTALL)
_PARQUET = b"PAR1"


def digest_of(text: str | None) -> str:
    """Return what stands for a text that was shown: what is saved must be a change of it and of no other."""
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


def difference(before: str | None, after: str) -> str:
    """Return what a change takes away and adds, line by line."""
    old = [] if before is None else before.splitlines()
    return "\n".join(difflib.unified_diff(old, after.splitlines(), "as it is", "as it will be", lineterm=""))


@final
class PolicyFolder:
    """The one folder whose tables can be declared on a page."""

    def __init__(self, folder: Path, connections: Iterable[str] = ()) -> None:
        self.connections = frozenset(connections)  # environment variables with addresses of PostgreSQL
        try:
            self.folder = folder.resolve(strict=True)
        except OSError:
            raise InvalidParameter(f"--data-folder {folder.name} is not there") from None
        if not self.folder.is_dir():
            raise InvalidParameter("--data-folder is a folder, with CSV and Parquet files in it")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others from saving here, of this server and of any other: what is checked of all policies stays so."""
        refuse_without_locks("a folder of data")
        number = os.open(self.folder, os.O_RDONLY | CLOSE_ON_EXEC)
        try:
            lock_file(number)
            yield
        finally:
            unlock_file(number)
            os.close(number)

    def tables(self) -> list[str]:
        """Return the names of tables: plain files with a plain name, which begin as their ending says."""
        return sorted(one.name for one in self._entries(_TABLE) if _begins_right(one))

    def policies(self) -> dict[str, Path]:
        """Return the policies by their data set; files that cannot be read, and release plans, are left out."""
        found: dict[str, Path] = {}
        for file in sorted(self._entries(_FILE)):
            try:
                found.setdefault(self.read(file.read_text(encoding="utf-8"), file.name).dataset, file)
            except (DiscreetError, OSError, ValueError):
                continue
        return found

    def _entries(self, names: re.Pattern[str]) -> Iterator[Path]:
        for one in self.folder.iterdir():
            if names.fullmatch(one.name) and stat.S_ISREG(one.lstat().st_mode):
                yield one

    def text(self, dataset: str) -> str | None:
        """Return the policy of a data set as it is written; None if it is not one of this folder."""
        file = self.policies().get(dataset)
        return None if file is None else file.read_text(encoding="utf-8")

    def read(self, text: str, name: str = "policy.toml") -> Policy:
        """Read a policy as if it stood in this folder, or say on which lines it is wrong."""
        if len(text) > _LONGEST:
            raise InvalidParameter(f"a policy has at most {_LONGEST:,} characters here")
        document = Document(self.folder / name, text, PolicyModel, "docs/session.md")
        return policy_of(document, document.checked())

    def draft(self, table: str, dataset: str, unit: str | None, epsilon: str, delta: str | None) -> str:
        """Look at a table exactly, and return what a policy could say of it. Only who holds the data may see it."""
        from discreet.release.draft.plan_draft import draft_plan

        check_new_name(dataset)
        if table not in self.tables():
            raise InvalidParameter("there is no such table in the folder of the server")
        seen = draft_plan(self.folder / table, unit=unit).value
        for field, value in (("dataset", dataset), ("ledger", f"{dataset}.ledger")):
            seen = seen.answered(field, value)
        return _as_policy(seen.confirmed(epsilon=epsilon, delta=delta, **_ever(epsilon, delta), folder=self.folder))

    def write(self, dataset: str, text: str, before: str | None) -> None:
        """Write a policy whole or not at all, unless somebody else changed it meanwhile."""
        if self.text(dataset) != before:
            raise Problem("decided", "somebody else saved this policy meanwhile: look at it again")
        file = self.policies().get(dataset, self.folder / f"{dataset}.toml")
        if before is None and os.path.lexists(file):
            raise Problem("invalid", "there is a file of this name already, which is no policy of this data set")
        made = self.folder / f".{dataset}.{secret(8)}.new"
        number = os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY | CLOSE_ON_EXEC | NO_FOLLOW, 0o600)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as opened:
                opened.write(text)
                opened.flush()
                os.fsync(opened.fileno())
            os.replace(made, file)
        except BaseException:
            made.unlink(missing_ok=True)
            raise


def _begins_right(file: Path) -> bool:
    """Tell whether a file is what its ending says, as far as its first bytes tell: text, or Parquet."""
    with file.open("rb") as opened:
        start = opened.read(4096)
    if file.suffix == ".parquet":
        return start.startswith(_PARQUET)
    return b"\0" not in start and not start.startswith(_PARQUET)


def check_new_name(dataset: str) -> None:
    """Refuse what cannot be the name of a file as well."""
    if not _DATASET.fullmatch(dataset):
        raise InvalidParameter("the name of a data set has letters, digits, - and _ here, at most 64")


def _ever(epsilon: str, delta: str | None) -> dict[str, Any]:
    return {"lifetime_epsilon": epsilon, "lifetime_delta": delta}


def _as_policy(plan: str) -> str:
    """Take what a policy says out of a drafted plan; what was read from the rows stays named, as a comment."""
    cut = _OF_PLANS.search(plan)
    text = plan if cut is None else plan[: cut.start()]
    listed = _FROM_DATA.search(text)
    seen = [] if listed is None else re.findall(r'"(tables[^"\n]*)"', listed.group(1))
    named, rest = _FROM_DATA.sub("", text).split("\n[", 1)
    body = [line for line in named.splitlines() if line and not line.startswith(("#", "name = ", "title = "))]
    head = [
        "# A policy. Everything in it is public once it is saved.",
        "# Read from the rows, so that one person can be visible in it, and no budget counts that: replace it by facts",
        "# that are known without the data where you can, such as official lists.",
        *(f"#   {one}" for one in seen),
    ]
    return "\n".join([*head, "", *body, "", f"[{rest.strip()}", ""])


# --- what can be changed ---


def check_change(folder: PolicyFolder, new: Policy, served: Policy | None, others: Iterable[Policy]) -> None:
    """Refuse a policy that reads outside of the folder, or would give data that are protected another budget."""
    if served is None:
        _check_added(folder, new)
    else:
        _check_kept(new, served)
        written = folder.text(new.dataset)  # Another server may have saved it since this one read it.
        for before in (served, *([] if written is None else [folder.read(written)])):
            _check_rows_stay(new, before)
    _check_resources(folder, new)
    _check_sources(folder, new, served)
    _check_apart(new, others)


def _check_sources(folder: PolicyFolder, new: Policy, served: Policy | None) -> None:
    tables = set(folder.tables())
    known = {} if served is None else dict(served.tables)
    for name, table in new.tables.items():
        before = known.get(name)
        if before is not None and table.public and not before.public:
            raise InvalidParameter(f"table {name} is protected, and cannot become public here")
        unchanged = before is not None and (before.source, before.postgres) == (table.source, table.postgres)
        if not unchanged and not _is_declared(folder, table, tables):
            raise InvalidParameter(
                f"the source of table {name} must be one of the files of the server's folder: {_listed(tables)}; or a "
                f"table, no view, at an address in dsn_env: {_listed(folder.connections)}. Whoever runs the server "
                "names others, with --data-folder, --data-connection and --policy"
            )


def _is_declared(folder: PolicyFolder, table: TablePolicy, tables: set[str]) -> bool:
    """Tell whether whoever runs the server said that this can be read."""
    place = table.postgres
    if place is not None:  # Of a view it is not known whose rows it shows.
        return place.file is None and place.variable in folder.connections and not place.view
    return (
        table.source is not None and table.source == folder.folder / table.source.name and _name(table.source) in tables
    )


def _name(path: Path | None) -> str:
    return "" if path is None else path.name


def _listed(tables: Iterable[str]) -> str:
    return ", ".join(sorted(tables)) or "there are none"


def _check_added(folder: PolicyFolder, new: Policy) -> None:
    check_new_name(new.dataset)
    ledger = folder.folder / f"{new.dataset}.ledger"
    if new.ledger != ledger or os.path.lexists(ledger):
        raise InvalidParameter(f'a new data set has a new ledger: write ledger = "{new.dataset}.ledger"')
    if new.anchor is not None or new.quotas:
        raise InvalidParameter("anchor and quotas are declared by whoever runs the server, with --policy")


def _check_kept(new: Policy, served: Policy) -> None:
    """What the ledger stands for stays: whoever could change it could begin another budget."""
    for what in ("dataset", "ledger", "anchor", "unit", "chain", "budget", "inner_budget", "quotas"):
        if getattr(new, what) != getattr(served, what):
            raise InvalidParameter(
                f"{what.replace('_', ' ')} of {served.dataset} cannot be changed here. A budget is raised on the "
                f"command line, with a reason: discreet budget raise; the rest is another data set"
            )


def _check_rows_stay(new: Policy, served: Policy) -> None:
    """Refuse to let rows go: what a data set protects no longer could be declared as another one, with a new budget."""
    if not set(_places(served)) <= set(_places(new)):
        raise InvalidParameter(
            f"what {served.dataset} protects stays protected by it: a table can be added or renamed here, and not be "
            "taken away, made public or read from elsewhere. Whoever runs the server does that, with --policy"
        )


def _check_resources(folder: PolicyFolder, new: Policy) -> None:
    """What a question may use is for whoever runs the machine to say."""
    text = folder.text(new.dataset)
    if new.resources != (Resources() if text is None else folder.read(text).resources):
        raise InvalidParameter("resources are declared by whoever runs the server: leave them as they are")


def _check_apart(new: Policy, others: Iterable[Policy]) -> None:
    """Refuse a file that another data set protects: the same people would have two budgets."""
    taken = {place for other in others for place in _places(other)}
    if not taken.isdisjoint(_places(new, public=True)):
        raise InvalidParameter(_TAKEN)


def check_undeclared(folder: PolicyFolder, table: str, others: Iterable[Policy]) -> None:
    """Refuse a look at a file that a data set protects: who sees the folder need not see that data set."""
    if table in folder.tables() and _file_place(folder.folder / table) in {
        place for other in others for place in _places(other)
    }:
        raise InvalidParameter(_TAKEN)


# It names no data set: who reads it need not know of that one.
_TAKEN = (
    "another data set protects the rows of one of these files already: they have one budget. Ask there, or declare the "
    "table in its policy"
)


def _places(policy: Policy, *, public: bool = False) -> Iterator[tuple[Any, ...]]:
    """Name the files and tables that a policy protects, however they are called."""
    for table in policy.tables.values():
        if table.public and not public:
            continue
        if table.postgres is not None:
            # However it is written: with its schema or without, in quotes or not.
            yield "postgres", table.postgres.table.rpartition(".")[2].strip('"').casefold()
        elif table.source is not None:
            yield _file_place(table.source)


def _file_place(file: Path) -> tuple[Any, ...]:
    try:
        found = file.stat()
    except OSError:
        return "missing", str(file)
    return found.st_dev, found.st_ino
