"""A notebook for tests: a kernel that keeps what is displayed in a cell."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from discreet.pages import progress


class NotebookCell:
    """The output of a notebook's cell, as a kernel keeps it."""

    def __init__(self) -> None:
        self.shown: dict[str, list[dict[str, str]]] = {}

    def publish(self, data: dict[str, str], metadata: Any, *, transient: Any, update: bool) -> None:
        assert update == (transient["display_id"] in self.shown)
        self.shown.setdefault(transient["display_id"], []).append(data)

    def await_text(self, part: str) -> None:
        """Wait until something with this in it is shown: a busy machine may take its time."""
        ends = time.monotonic() + 60
        while not any(part in text for shown in self.texts for text in shown):
            assert time.monotonic() < ends, f"{part!r} was never shown"
            time.sleep(0.01)

    @property
    def texts(self) -> list[list[str]]:
        return [[data["text/plain"] for data in each] for each in list(self.shown.values())]


def notebook_cell(monkeypatch: pytest.MonkeyPatch, *, silent: float = 0.05) -> NotebookCell:
    """Make this process a notebook's, in which whatever takes longer than `silent` seconds shows how far it is."""
    made = NotebookCell()
    shell = SimpleNamespace(kernel=object(), display_pub=made)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(progress, "_SILENT", silent)
    monkeypatch.setattr(progress._Notebook, "beat", 0.02)
    return made
