"""The package as others get it: whole, the same from both archives, and at work where this repository is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_dist  # noqa: E402

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dist")
    check_dist.built(ROOT, made, "sdist", "wheel")
    return made


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(folder: Path) -> None:
    [wheel] = folder.glob("*.whl")
    assert check_dist.missing(wheel) == []
    kinds = {Path(name).suffix for name in check_dist.contents(wheel)}
    assert kinds >= {".html", ".js", ".css", ".csv"}  # Pages of the server and bundled data are there.


def test_a_wheel_that_lacks_a_file_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [wheel] = folder.glob("*.whl")
    whole = check_dist.contents(wheel)
    monkeypatch.setattr(check_dist, "contents", lambda _: {name: whole[name] for name in whole if ".html" not in name})
    assert any(name.endswith(".html") for name in check_dist.missing(wheel))


def test_a_tag_of_another_version_is_refused(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"the tag v9\.9\.9 is not the version of discreet-"):
        check_dist.check(folder, "v9.9.9")


@pytest.mark.slow
def test_both_archives_answer_without_the_repository(folder: Path) -> None:
    check_dist.check(folder)


@pytest.mark.slow
def test_an_answer_from_the_repository_itself_is_noticed(tmp_path: Path) -> None:
    """The planted mistake: an interpreter that finds the package here and not in its own environment."""
    with pytest.raises(SystemExit, match="AssertionError"):
        check_dist._run([sys.executable, "-I", "-c", check_dist.FIRST_ANSWERS], tmp_path)
