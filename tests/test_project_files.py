"""What surrounds the code says the same as the code: versions, floors, workflows, templates, the citation."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


def name_of(path: Path) -> str:
    return path.name


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def pins(name: str) -> dict[str, str]:
    """The versions that a file of constraints names, by the name of the package in small letters."""
    lines = (ROOT / name).read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {package.lower(): version for package, version in pairs}


def floors() -> dict[str, str]:
    """The lowest versions that are declared, with the extras."""
    extras = PROJECT["optional-dependencies"]
    users = [wanted for name, wanted in extras.items() if name not in ("dev", "docs")]
    asked = PROJECT["dependencies"] + [each for wanted in users for each in wanted]
    assert all(">=" in each for each in asked)
    return {each.split(">=")[0]: each.split(">=")[1] for each in asked}


def release(version: str) -> tuple[int, ...]:
    """Compare `2.0` and `2.0.0` as equal."""
    parts = [int(part) for part in version.split(".") if part.isdigit()]
    return (*parts, *[0] * (4 - len(parts)))


class TestFloors:
    def test_the_oldest_versions_are_the_declared_floors(self):
        oldest = pins("constraints-oldest.txt")
        assert {name: release(oldest[name]) for name in floors()} == {
            name: release(floor) for name, floor in floors().items()
        }

    def test_no_floor_is_above_what_is_pinned(self):
        pinned = pins("constraints.txt")
        assert [name for name, floor in floors().items() if release(floor) > release(pinned[name])] == []

    def test_whatever_is_no_dependency_is_as_pinned(self):
        pinned, oldest = pins("constraints.txt"), pins("constraints-oldest.txt")
        tools = {name: version for name, version in oldest.items() if name not in {*floors(), "polars"}}
        assert tools == {name: pinned[name] for name in tools}

    def test_the_tools_of_the_tests_are_pinned_too(self):
        oldest, extras = pins("constraints-oldest.txt"), PROJECT["optional-dependencies"]
        assert [name for name in extras["dev"] + extras["docs"] if name not in oldest] == []


class TestWorkflows:
    def test_there_are_some(self):
        assert [path.stem for path in WORKFLOWS] == ["docs", "full", "release", "test"]

    @pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
    def test_they_may_read_and_know_no_secret(self, path):
        assert read(path)["permissions"] == {"contents": "read"}
        assert "secrets" not in path.read_text()

    @pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
    def test_actions_are_named_with_their_version(self, path):
        used = [step["uses"] for job in read(path)["jobs"].values() for step in job["steps"] if "uses" in step]
        assert used
        published = {"pypa/gh-action-pypi-publish@release/v1"} if path.stem == "release" else set()
        assert [each for each in used if not re.fullmatch(r"actions/[\w-]+@v\d+", each) and each not in published] == []

    @pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
    def test_they_run_what_everybody_runs(self, path):
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        run = [step["run"] for job in read(path)["jobs"].values() for step in job["steps"] if "run" in step]
        assert run
        for command in run:
            if command != ".ci/run":
                make, target, *_ = command.split()
                assert make == "make"
                assert target in targets

    def test_only_what_was_built_and_tried_is_published_and_only_that_job_may(self):
        workflow = read(ROOT / ".github" / "workflows" / "release.yml")
        jobs = workflow["jobs"]
        assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads the word "on" so.
        assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
        assert jobs["publish"]["permissions"] == {"id-token": "write"}
        assert jobs["publish"]["needs"] == "build"
        built = [step["run"].split()[1] for step in jobs["build"]["steps"] if "run" in step]
        assert built == ["check", "test", "dist"]

    def test_every_supported_python_is_tested(self):
        tested = read(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
        named = [found[1] for each in PROJECT["classifiers"] if (found := re.search(r":: (3\.\d+)$", each))]
        page = (ROOT / "docs" / "versions.md").read_text()
        assert tested == named
        assert PROJECT["requires-python"] == f">={tested[0]}"
        assert f"CPython {', '.join(tested[:-1])} and {tested[-1]}." in page


class TestTemplates:
    @pytest.mark.parametrize("path", FORMS, ids=name_of)
    def test_a_form_has_what_a_form_needs(self, path):
        form = read(path)
        assert form["name"]
        assert form["description"]
        parts = [part for part in form["body"] if part["type"] != "markdown"]
        assert len({part["id"] for part in parts}) == len(parts) > 0
        assert all(part["attributes"]["label"] for part in parts)

    def test_whoever_found_a_leak_is_sent_elsewhere(self):
        for name in ("bug.yml", "privacy_claim.yml"):
            assert "SECURITY.md" in (ROOT / ".github" / "ISSUE_TEMPLATE" / name).read_text()
        assert "SECURITY.md" in (ROOT / ".github" / "pull_request_template.md").read_text()


def test_hooks_download_nothing():
    repositories = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    assert {hook["language"] for hook in repositories[0]["hooks"]} == {"system"}


def test_the_citation_is_of_this_version():
    citation = read(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation.keys() >= {"message", "title", "authors"}  # What the format asks for.
    assert all(author.keys() & {"name", "family-names"} for author in citation["authors"])
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]
