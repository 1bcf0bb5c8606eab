"""The folder of the demo: its data and its plan are put there, and nothing of somebody else's is overwritten."""

from __future__ import annotations

from pathlib import Path

from discreet import data
from discreet.errors import Refused

__all__ = ["stage"]

_SET = "hospital"


def stage(folder: Path) -> Path:
    """Put the files of the demo into a folder and return its plan; a folder of an earlier run is taken as it is."""
    if folder.exists() and not folder.is_dir():
        raise _taken(folder.name)
    folder.mkdir(parents=True, exist_ok=True)
    with data.folder(_SET) as source:
        for file in sorted(path for path in source.iterdir() if path.is_file()):
            _put(file.read_bytes(), folder / file.name)
    return folder / "plan.toml"


def _put(content: bytes, target: Path) -> None:
    if not target.exists():
        target.write_bytes(content)
    elif not target.is_file() or target.read_bytes() != content:
        raise _taken(target.name)


def _taken(name: str) -> Refused:
    return Refused(
        f"there is a {name} already that is not the demo's",
        reason="the demo overwrites nothing of yours",
        way_out="name another folder, such as: discreet demo somewhere-else",
    )
