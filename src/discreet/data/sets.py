"""What comes with the package: which files, what is in them, and how to get at them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import final

from discreet.errors import InvalidParameter

__all__ = ["Bundled", "BundledFile", "bundled", "copy", "folder"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BundledFile:
    """One file of a set; a file that is no table has neither rows nor columns.

    Args:
        name: The name of the file.
        what: What is in it.
        rows: How many rows, of a table.
        columns: The names of the columns, of a table.
    """

    name: str
    what: str
    rows: int = 0
    columns: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """A set of files that belong together.

    Args:
        name: The name of the set.
        title: What it is.
        files: Its files.

    Examples:
        >>> all(found.files for found in dp.data.bundled())
        True
    """

    name: str
    title: str
    files: tuple[BundledFile, ...]


_STAYS = (
    "patient", "zip", "birth_date", "sex", "district", "region", "age_group", "admitted", "nights", "diagnosis", "cost",
)  # fmt: skip
_SETS = (
    Bundled(
        name="hospital",
        title="A county that does not exist: hospital stays without names, and a list of voters with names",
        files=(
            BundledFile(
                name="stays.parquet", what="hospital stays of a year, without names", rows=19200, columns=_STAYS
            ),
            BundledFile(
                name="voters.parquet",
                what="voters, with names",
                rows=19822,
                columns=("name", "address", "zip", "birth_date", "sex"),
            ),
            BundledFile(name="plan.toml", what="what is published about the stays, and for which price"),
        ),
    ),
    Bundled(
        name="visits",
        title="Visits to five clinics, one row a patient",
        files=(
            BundledFile(
                name="visits.csv",
                what="patients, their age, clinic and waiting time",
                rows=2000,
                columns=("patient", "age", "clinic", "visits", "wait_minutes", "satisfied"),
            ),
        ),
    ),
)
_PLACES = {"hospital": ("hospital",), "visits": ()}  # below this package


def bundled() -> tuple[Bundled, ...]:
    """List the sets that come with the package.

    Returns:
        The sets, each with its files.

    Examples:
        >>> "visits" in [found.name for found in dp.data.bundled()]
        True
    """
    return _SETS


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """Give the folder of a set, to be read only, for as long as the context lasts.

    Args:
        name: The name of a set, as `bundled` lists it.

    Yields:
        The folder, in which the files of the set are.

    Raises:
        InvalidParameter: If there is no such set.

    Examples:
        >>> name = dp.data.bundled()[0].name
        >>> with dp.data.folder(name) as place:
        ...     place.is_dir()
        True
    """
    with as_file(files(__package__).joinpath(*_PLACES[_find(name).name])) as path:
        yield path


def copy(name: str, target: Path) -> tuple[Path, ...]:
    """Copy the files of a set into a folder, and return where they are. No file is overwritten.

    Args:
        name: The name of a set.
        target: The folder to copy to.

    Returns:
        Where the files are now.

    Raises:
        InvalidParameter: If there is no such set, or a file of that name is there already.

    Examples:
        >>> from pathlib import Path
        >>> dp.data.copy("visits", Path())[0].suffix
        '.csv'
    """
    chosen = _find(name)
    goals = tuple(target / file.name for file in chosen.files)
    taken = [goal.name for goal in goals if goal.exists()]
    if taken:
        raise InvalidParameter(f"there is a file {taken[0]} in this folder already: choose another folder, or move it")
    target.mkdir(parents=True, exist_ok=True)
    with folder(name) as source:
        for goal in goals:
            shutil.copyfile(source / goal.name, goal)
    return goals


def _find(name: str) -> Bundled:
    for one in _SETS:
        if one.name == name:
            return one
    raise InvalidParameter(f"there is no bundled set of this name; there are {', '.join(one.name for one in _SETS)}")
