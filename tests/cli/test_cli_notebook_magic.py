"""`%%discreet` in a real IPython: the price comes first, nothing is spent without a yes, and nothing shown is code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from injected_texts import INJECTED
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import discreet as dp
from discreet.query import ReleaseTable
from discreet.query.plan.explain import Explanation

BY_CLINIC = "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic"


@pytest.fixture
def shell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell of IPython with the magic, in a folder with a table and a policy; it remembers nothing."""
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    made.run_line_magic("load_ext", "discreet")
    yield made
    made.magics_manager.magics["cell"]["discreet"].opened.close()
    InteractiveShell.clear_instance()


def cell(shell: InteractiveShell, line: str, query: str = BY_CLINIC) -> Any:
    """Run a cell as a person does, and return what it shows or raises."""
    done = shell.run_cell(f"%%discreet --policy policy.toml {line}\n{query}", store_history=True)
    return done.error_in_exec if done.error_in_exec is not None else done.result


def spent(shell: InteractiveShell) -> Fraction | None:
    (session, *_) = shell.magics_manager.magics["cell"]["discreet"].sessions.values()
    return session.spent.epsilon


def test_a_cell_shows_its_price_for_free(shell):
    shown = cell(shell, "--epsilon 0.1")
    assert isinstance(shown, Explanation)
    assert dict(shown.facts)["price"] == "ε = 0.1"
    assert isinstance(cell(shell, "--epsilon 0.1 --dummy"), ReleaseTable)
    assert spent(shell) == 0


@pytest.mark.parametrize("agreed", ["", "--max-epsilon 0.05", "--max-epsilon 0", "--max-epsilon NaN"])
def test_nothing_is_released_without_agreement(shell, capsys, agreed):
    refused = cell(shell, f"--epsilon 0.1 --release {agreed}")
    assert isinstance(refused, (dp.InvalidParameter, dp.Refused))
    assert spent(shell) == 0
    shown = capsys.readouterr().out
    assert shown.index("ε = 0.1") < shown.index("max-epsilon")  # The price, and then why not.


def test_an_agreed_release_is_shown_kept_and_paid_once_under_its_key(shell):
    line = "--epsilon 0.1 --release --max-epsilon 0.1 --idempotency-key clinics --into answer"
    shown = cell(shell, line)
    assert isinstance(shown, ReleaseTable)
    assert shell.user_ns["answer"] is shown
    assert cell(shell, line).to_json() == shown.to_json()
    assert spent(shell) == Fraction(1, 10)


def test_the_line_without_a_cell_tells_what_may_be_asked_and_what_is_left(shell, monkeypatch):
    monkeypatch.setenv("DISCREET_POLICY", "policy.toml")
    told = shell.run_line_magic("discreet", "")
    assert "clinic" in told
    assert "ε = 4" in told


def test_help_lists_every_option_and_runs_nothing(shell, capsys):
    assert shell.run_line_magic("discreet", "--help") is None
    shown = capsys.readouterr().out
    for option in ("--policy", "--session", "--dummy", "--release", "--max-epsilon", "--into", "--idempotency-key"):
        assert option in shown


def test_a_session_of_the_notebook_is_asked_by_its_name(shell):
    table = pa.table({"city": ["A", "B"] * 50})
    with dp.Session(
        table, unit="row", budget=dp.Budget(epsilon=1), ledger="memory", dataset="people", principal="ana"
    ) as session:
        shell.user_ns["mine"] = session
        line = "--session mine --epsilon 0.5 --release --max-epsilon 0.5"
        shown = shell.run_cell_magic("discreet", line, "SELECT COUNT(*) AS n FROM people")
        assert shown.single().plus_minus > 0
        assert session.spent.epsilon == Fraction(1, 2)


def test_a_policy_that_changed_is_opened_anew(shell, folder):
    cell(shell, "--epsilon 0.1")
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("high = 120", "high = 100"))
    shown = cell(shell, "--epsilon 0.1", "SELECT SUM(age) AS s FROM visits")
    assert any("0 … 100" in note for note in shown.notes)


@pytest.mark.parametrize(
    "line",
    ["--epsilon", "--epsilom 0.1", "--release --dummy", "--into 1x --epsilon 0.1", '--policy "', "--epsilon x",
     "--session nobody", "--policy nowhere.toml --epsilon 1", "--epsilon 0.1 stray"],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_refused_with_a_way_out(shell, line):
    refused = cell(shell, line)
    assert isinstance(refused, dp.DiscreetError), refused
    assert shell.run_cell("1 + 1").result == 2  # The kernel goes on.


def test_without_a_policy_it_says_what_to_name(shell):
    with pytest.raises(dp.InvalidParameter, match="DISCREET_POLICY"):
        shell.run_cell_magic("discreet", "--epsilon 1", BY_CLINIC)


@pytest.mark.slow
def test_a_notebook_runs_from_top_to_bottom_in_a_kernel(folder, monkeypatch):
    """A real kernel: first the price, then the answer with error bars, and a refusal without a traceback."""
    import nbformat
    from nbclient import NotebookClient

    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(folder / "jupyter"))
    asked = f"%%discreet --epsilon 0.1 --release --into answer --max-epsilon {{}}\n{BY_CLINIC}"
    cells = ["%load_ext discreet\n%env DISCREET_POLICY=policy.toml", asked.format("0.1"), "len(answer)"]
    cells += [asked.format("0.01"), "%discreet"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    client = NotebookClient(book, timeout=120, allow_errors=True, resources={"metadata": {"path": str(folder)}})
    client.execute()
    outputs = [each["outputs"] for each in book.cells]
    shown = [one.get("data", {}).get("text/html") for one in outputs[1]]  # How the time goes ends as an empty text.
    price, answer = filter(None, shown)
    assert "ε = 0.1" in price
    assert "Old Mill" in answer
    assert "<svg" in answer
    assert outputs[2][0]["data"]["text/plain"] == "5"
    (refused,) = (one for one in outputs[3] if one["output_type"] == "error")
    assert refused["ename"] == "Refused"
    assert len(refused["traceback"]) < 5
    assert "spent" in outputs[4][0]["data"]["text/html"]


# --- nothing that is shown is code ---


class _Elements(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = tuple(f"{name}={value}" if name.startswith("on") else name for name, value in attrs)
        self.found.append((tag, told))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", (data,)))


def elements(page: str) -> list[tuple[str, tuple[str, ...]]]:
    """The elements of a page in order; of one with a chart each kind once: how many ticks it has is up to the noise."""
    parser = _Elements()
    parser.feed(page)
    has_chart = any(tag == "svg" for tag, _ in parser.found)
    return sorted(set(parser.found)) if has_chart else parser.found


def shown_by(text: str) -> list[str]:
    """All that a session shows in a notebook, with a text wherever a name, a key, a label or a title may stand."""
    name = "".join(filter(str.isprintable, text))[:200]  # Declared ones with other letters are refused.
    rows = pa.table({name: [name, "b"] * 400, "said": [text, "b"] * 400, "code": [1, 2] * 400})
    with dp.Session(
        {"people": rows},
        unit="row",
        budget=dp.Budget(epsilon=9, delta=1e-4),
        columns={name: dp.categories([name, "b"]), "code": dp.categories([1, 2], labels={1: name, 2: "two"})},
        ledger="memory",
        dataset=name,
        principal=name,
    ) as session:
        quoted = name.replace('"', '""')
        plans = [
            session.sql("SELECT said, COUNT(*) AS n FROM people GROUP BY said", epsilon=1, delta=1e-6),
            session.sql(f'SELECT "{quoted}" AS k, COUNT(*) AS "{quoted}" FROM people GROUP BY "{quoted}"', epsilon=1),
            session.sql("SELECT code, COUNT(*) AS n FROM people GROUP BY code", epsilon=1),
        ]
        answers = [*(plan.release() for plan in plans), plans[1].dummy()]
        joint = session.batch({name: plans[-1]}, idempotency_key=None, purpose=name)
        shown = [*answers, *plans, *(plan.explain() for plan in plans), joint, joint.release(), session]
        shown += [session.describe(), session.spent, session.left, session.history(), session.ledger.describe()]
        return [str(one._repr_html_()) for one in shown]


@pytest.mark.parametrize(
    "texts", [pytest.param(INJECTED[12:18], marks=pytest.mark.long), pytest.param(INJECTED, marks=pytest.mark.slow)]
)
def test_no_name_key_label_or_title_is_code_wherever_it_is_shown(texts):
    """Pages have the very elements and handlers that they have with a harmless text; the text is on them, as text."""
    harmless = list(map(elements, shown_by("plain")))
    assert any(tag == "svg" for tag, _ in harmless[0])
    for text in texts:
        shown = shown_by(text)
        assert list(map(elements, shown)) == harmless, text
        assert not any(re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page) for page in shown)


def test_a_page_that_does_not_escape_would_be_found():
    assert elements("<td>&lt;b&gt;</td>") == elements("<td>plain</td>")
    markup = [text for text in INJECTED if re.search(r"<\w|<!--", text)]
    assert len(markup) > 12
    for text in markup:
        assert elements(f"<td>{text}</td>") != elements("<td>plain</td>"), text
    quoted = [text for text in INJECTED if '"' in text and "=" in text]
    assert any(elements(f'<td title="{text}">') != elements('<td title="plain">') for text in quoted)
