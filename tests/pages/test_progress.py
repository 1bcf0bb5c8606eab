"""Progress in a notebook: text that is changed in place, without widgets; the time alone where rows are private."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from notebook_cell import NotebookCell, notebook_cell

import discreet as dp
from discreet.lab.audit.self_audit import audit_run
from discreet.pages import progress
from discreet.pages.progress import working
from discreet.query import Resources
from discreet.query.session.executor import Executor


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> NotebookCell:
    return notebook_cell(monkeypatch)


def test_steps_are_a_bar_in_one_place_and_their_count_stays(cell: NotebookCell) -> None:
    with working("training <b>", total=4, done=1) as current:
        cell.await_text("1 of 4")
        current.step("ε 0.5 of 1")
        cell.await_text("2 of 4")
    (shown,) = cell.shown.values()
    assert re.fullmatch(r"training <b> · 1 of 4 · \d+ s elapsed", shown[0]["text/plain"])
    left = r"training <b> · 2 of 4 · \d+ s elapsed, about \d+ s left · ε 0.5 of 1"
    assert re.fullmatch(left, shown[-2]["text/plain"])
    assert '<progress value="2" max="4"></progress> training &lt;b&gt; · 2 of 4' in shown[-2]["text/html"]
    assert shown[-1]["text/plain"] == "training <b> · 2 of 4 · ε 0.5 of 1"
    assert not any("<b>" in data["text/html"] for data in shown)


def test_where_rows_are_private_it_is_the_time_and_nothing_stays(cell: NotebookCell) -> None:
    with working("answering", terminal=False) as current:
        current.limit(600)
        cell.await_text("answering")
    (shown,) = cell.shown.values()
    told = [data["text/plain"] for data in shown[:-1]]
    assert all(re.fullmatch(r"answering · \d+ s elapsed · \(limit 600 s\)", text) for text in told)
    assert shown[-1] == {"text/plain": "", "text/html": ""}


def test_what_is_within_another_shows_nothing(cell: NotebookCell) -> None:
    with working("outer"), working("inner", terminal=False):
        cell.await_text("outer")
    assert {text.split(" ")[0] for shown in cell.texts for text in shown} == {"outer", ""}


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["no shell", "a shell on a terminal"])
def test_without_a_kernel_nothing_is_displayed(monkeypatch: pytest.MonkeyPatch, shell: Any) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert progress._screen("answering", None, terminal=False) is None


def test_a_display_that_fails_does_not_fail_the_work(cell: NotebookCell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NotebookCell, "publish", lambda *_, **__: 1 / 0)
    with working("answering"):
        time.sleep(0.2)


def _ask(monkeypatch: pytest.MonkeyPatch, seen: Callable[[], None], **resources: Any) -> None:
    computed = Executor._compute

    def slow(*asked: Any) -> str:
        seen()
        return computed(*asked)

    monkeypatch.setattr(Executor, "_compute", slow)
    rows = pa.table({"n": [1, 2, 3]})
    told = {"dataset": "rows", "ledger": "memory", "principal": "ana", "budget": dp.Budget(epsilon=1)}
    with dp.Session(rows, unit="row", resources=Resources(**resources), **told) as session:
        session.sql("SELECT COUNT(*) AS n FROM rows", epsilon=1).release()


def test_a_question_shows_its_time_in_a_notebook(cell: NotebookCell, monkeypatch: pytest.MonkeyPatch) -> None:
    _ask(monkeypatch, lambda: cell.await_text("limit 60 s"), seconds=60)
    (shown,) = cell.texts
    assert re.fullmatch(r"answering · \d+ s elapsed · \(limit 60 s\)", shown[0])
    assert shown[-1] == ""


def test_a_question_whose_time_is_told_otherwise_shows_nothing(
    cell: NotebookCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ask(monkeypatch, lambda: time.sleep(0.2), on_progress=lambda gone, allowed: None)
    assert cell.shown == {}


def test_training_and_fits_need_no_widgets(cell: NotebookCell) -> None:
    from discreet.learn.torch.progress import StepDone, progress_line
    from discreet.synth import method

    with progress_line(0, 2, lambda step: step / 2, 1.0) as tell:
        tell(StepDone(step=1, steps=2, learning_rate=1.0, clip=1.0, public_loss=0.25))
        cell.await_text("1 of 2")
    with method.progress_line("mst", 3, shown=True) as say:
        say("measuring")
        cell.await_text("1 of 3")
    with method.progress_line("mst", 3, shown=False) as say:
        time.sleep(0.2)
    assert [shown[-1] for shown in cell.texts] == [
        "training · 1 of 2 · ε 0.5 of 1  public loss 0.2500",
        "mst · 1 of 3 · measuring",
    ]


def test_an_audit_from_python_is_counted(cell: NotebookCell, monkeypatch: pytest.MonkeyPatch) -> None:
    subjects = [one for one in audit_run.catalogue() if "RandomizedResponse" in one.name]
    monkeypatch.setattr(progress, "_SILENT", 0.0)
    found = audit_run.self_audit(subjects=subjects)
    assert cell.texts[-1][-1].startswith(f"auditing · {len(found.rows)} of {len(found.rows)} · ")
