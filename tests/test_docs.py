"""The documentation is true: its examples run, its links lead somewhere, and nothing public is left out."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from reader_server import reader_server

import discreet as dp

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
PAGES = [ROOT / name for name in TOP] + sorted(DOCS.rglob("*.md"))

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMISE = re.compile(r"\s# → (.*)$")
_FIGURE = re.compile(r"(?<=\| )[\d,.]+(?= \|)")
_LINK = re.compile(r"!?\[[^]\n]*\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[str]:
    """The Python examples of a page, each on the lines where it stands."""
    text = page.read_text()
    return ["\n" * text.count("\n", 0, found.start(1)) + found[1] for found in _BLOCK.finditer(text)]


WITH_EXAMPLES = [page for page in PAGES if blocks(page)]


def run(block: str, namespace: dict[str, Any], page: str) -> int:
    """Run an example; where a line ends in `# → x`, its value must print as x. Return how many did."""
    lines, kept = block.splitlines(), 0
    for statement in ast.parse(block, page).body:
        promise = _PROMISE.search(lines[(statement.end_lineno or 0) - 1])
        if not isinstance(statement, ast.Expr):
            assert promise is None, f"line {statement.lineno}: only an expression can promise a value"
            exec(compile(ast.Module([statement], []), page, "exec"), namespace)
            continue
        value = eval(compile(ast.Expression(statement.value), page, "eval"), namespace)
        if promise is not None:
            assert str(value) == promise[1], f"{page}, line {statement.lineno}"
            kept += 1
    return kept


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_every_example_runs_and_prints_what_it_says(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    # A reader has a table of their own, or takes the bundled one.
    Path("visits.csv").write_bytes((Path(dp.__file__).parent / "data" / "visits.csv").read_bytes())
    namespace: dict[str, Any] = {}
    promised = sum(len(_PROMISE.findall(line)) for block in blocks(page) for line in block.splitlines())
    with ExitStack() as opened:
        if any("client.connect()" in block for block in blocks(page)):  # Or was given a server, and a token for it.
            address, token = opened.enter_context(reader_server(tmp_path))
            monkeypatch.setenv("DISCREET_SERVER", address)
            monkeypatch.setenv("DISCREET_TOKEN", token)
        assert sum(run(block, namespace, name_of(page)) for block in blocks(page)) == promised


def test_the_pages_people_start_from_have_examples():
    names = {name_of(page) for page in WITH_EXAMPLES}
    assert names >= {"README.md", "docs/quickstart.md", "docs/accounting.md", "docs/verify.md", "docs/plots.md"}


def test_a_wrong_promise_is_noticed():
    with pytest.raises(AssertionError):
        run("1 + 1  # → 3", {}, "nowhere")


def test_the_measured_figures_are_those_of_the_last_run():
    """Runs differ a little; if this fails, `python docs/make_measured.py` renews the table."""
    text = (ROOT / "README.md").read_text()
    written, measured = figures(text), figures(script("make_measured").renewed(text))
    assert len(written) == len(measured) > 20
    assert all(a / 2 <= b <= 2 * a for a, b in zip(written, measured, strict=True))


def figures(text: str) -> list[float]:
    """The cells of tables that are numbers."""
    return [float(figure.replace(",", "")) for figure in _FIGURE.findall(text)]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_that_is_named_exists(page):
    for path, law in _TEST.findall(page.read_text()):
        assert (ROOT / path).exists(), f"{path} is not there"
        assert not law or re.search(rf"^ *(def|class) {law}\b", (ROOT / path).read_text(), re.MULTILINE), law


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a page have, as the site generator makes them."""
    from markdown import Markdown

    converter = Markdown(extensions=["toc", "tables", "fenced_code", "attr_list"])
    html = converter.convert(page.read_text())
    return set(re.findall(r"id=[\"']([^\"']+)[\"']", html))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_inside_the_project_leads_somewhere(page):
    for target in _LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} leads nowhere"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{target} has no such heading"


MECHANISMS = {
    name: found
    for name in dp.mechanisms.__all__
    if inspect.isclass(found := getattr(dp.mechanisms, name)) and hasattr(found, "release")
}


def test_mechanisms_are_found():
    assert {"Laplace", "Mean", "TopK"} <= set(MECHANISMS)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_has_a_page_with_its_theorem(name):
    pages = [page for page in (DOCS / "mechanisms").glob("*.md") if f"`mechanisms.{name}`" in head(page)]
    assert len(pages) == 1, "one page names it at its head"
    text = pages[0].read_text()
    for heading in ("## Guarantee", "## Theorem", "## Utility", "## Relation", "## Example"):
        assert heading in text
    assert blocks(pages[0])


def head(page: Path) -> str:
    """What stands above the first section of a page."""
    return page.read_text().partition("\n## ")[0]


def test_the_list_of_mechanisms_links_every_page():
    listed = (DOCS / "mechanisms" / "index.md").read_text()
    pages = {page.name for page in (DOCS / "mechanisms").glob("*.md")} - {"index.md"}
    assert {name for name in pages if f"({name})" in listed} == pages


@pytest.mark.parametrize("name", dp.statistics.__all__)
def test_every_statistic_is_mentioned(name):
    text = "\n".join(page.read_text() for page in PAGES)
    assert re.search(rf"\b(dp|statistics)\.{name}\b|`{name}`", text)


def test_every_page_is_in_the_navigation():
    filled_in = script("navigation")
    linked = [entry for listing in filled_in.LISTS for entry in filled_in.linked(DOCS, listing)]
    listed = (ROOT / "mkdocs.yml").read_text() + str(linked)
    assert [name for page in DOCS.rglob("*.md") if (name := page.relative_to(DOCS).as_posix()) not in listed] == []


def test_a_page_that_is_linked_by_a_list_is_in_the_navigation_once():
    filled_in = script("navigation")
    nav = ["index.md", {"Use": [{"Mechanisms": ["mechanisms/index.md"]}]}]
    config = {"site_name": "Discreet", "nav": nav, "docs_dir": str(DOCS)}
    _, use = filled_in.on_config(config)["nav"]
    first, *rest = use["Use"][0]["Mechanisms"]
    assert first == "mechanisms/index.md"
    assert {"Proportion": "mechanisms/proportion.md"} in rest
    assert len({page for entry in rest for page in entry.values()}) == len(rest) > 20


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_has_a_path_of_one_machine(page):
    assert not re.search(r"(?<![\w.])/(home|tmp|work|root|Users)/", page.read_text())


def named_tests(text: str) -> set[tuple[str, str]]:
    """Find tests that a text names: the file, and the class or function in it that is named last."""
    found = re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)*)`", text)
    return {(file, names.rpartition("::")[2]) for file, names in found}


def missing_tests(text: str) -> list[str]:
    """Return those that are not there."""

    def is_there(file: str, name: str) -> bool:
        path = ROOT / file
        return path.is_file() and (not name or re.search(rf"(def|class) {name}\b", path.read_text()) is not None)

    return [f"{file}::{name}" for file, name in sorted(named_tests(text)) if not is_there(file, name)]


def test_every_test_that_the_threat_model_names_is_there() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    assert len(named_tests(text)) > 50
    assert missing_tests(text) == []
    assert missing_tests("`tests/test_docs.py::test_of_nothing` `tests/no.py`") == [
        "tests/no.py::",
        "tests/test_docs.py::test_of_nothing",
    ]
