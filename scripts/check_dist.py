"""Check what is published: `python scripts/check_dist.py dist [tag]`, which `make dist` runs.

The wheel holds every file of the package, a wheel that is built from the source distribution is the same, and both the
first answer and the demo run from it in an environment of its own, where this repository is not to be seen.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

__all__ = ["built", "check", "contents", "installed", "main", "missing"]

ROOT = Path(__file__).resolve().parents[1]
# What somebody tries first: one statistic, bundled data, a private query with its ledger.
FIRST_ANSWERS = """
import discreet as dp
from pathlib import Path

assert Path(dp.__file__).is_relative_to(Path(__import__("sys").prefix)), dp.__file__
assert 0 <= dp.mean([1, 2, 3] * 50, bounds=(0, 5), epsilon=1, relation="add-remove").value <= 5
dp.data.copy("visits", Path())
draft = dp.release.draft_plan("visits.csv", unit="patient").value
Path("plan.toml").write_text(draft.confirmed(epsilon=1))
assert dp.release.publish(dp.release.read_release_plan("plan.toml"), principal="ana").is_dir()
"""


def built(source: Path, folder: Path, *targets: str) -> None:
    """Build the named targets of a source tree, `wheel` or `sdist`, into a folder."""
    words = [word for target in targets for word in ("--target", target)]
    _run([sys.executable, "-m", "hatchling", "build", "--directory", str(folder), *words], source)


def contents(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel by name, but for the list of them."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


def missing(wheel: Path) -> list[str]:
    """Name what the package has in this repository and not in the wheel, and the other way round."""
    named = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/discreet"]
    listed = subprocess.run(named, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    here = {name.removeprefix("src/") for name in listed if (ROOT / name).exists()}
    there = {name for name in contents(wheel) if name.startswith("discreet/")}
    return sorted(here ^ there)


def installed(archive: Path, folder: Path) -> Path:
    """Install an archive with the pinned dependencies into a new environment, and return its interpreter."""
    _run([sys.executable, "-m", "venv", str(folder)], folder.parent)
    python = folder / "bin" / "python"
    pinned = ["--constraint", str(ROOT / "constraints.txt")]
    _run([str(python), "-m", "pip", "install", "--quiet", "--no-compile", *pinned, str(archive)], folder)
    return python


def check(folder: Path, tag: str | None = None) -> None:
    """Stop with what is wrong with the wheel and the source distribution of a folder, or with the tag of a release."""
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    if tag is not None and source.name != f"discreet-{tag.removeprefix('v')}.tar.gz":
        raise SystemExit(f"the tag {tag} is not the version of {source.name}: change pyproject.toml, or tag again")
    if lost := missing(wheel):
        raise SystemExit(f"{wheel.name} and src/discreet differ in: {', '.join(lost)}")
    with tempfile.TemporaryDirectory() as made:
        _compare(wheel, source, Path(made))
        python = installed(wheel, Path(made) / "environment")
        work = Path(made) / "work"
        work.mkdir()
        _run([str(python), "-I", "-c", FIRST_ANSWERS], work)
        _run([str(python.with_name("discreet")), "--help"], work)
        _run([str(python), "-I", "-m", "discreet.lab.demo", str(work / "demo")], work)
    print(f"{wheel.name} and {source.name}: whole, and they answer without the repository")


def _compare(wheel: Path, source: Path, folder: Path) -> None:
    """Stop unless a wheel that is built from the source distribution is the same."""
    _run([sys.executable, "-m", "tarfile", "--extract", str(source), str(folder)], folder)
    [tree] = folder.glob("discreet-*")
    built(tree, folder / "again", "wheel")
    [again] = (folder / "again").glob("*.whl")
    if contents(again) != contents(wheel):
        raise SystemExit(f"a wheel that is built from {source.name} differs from {wheel.name}")


def _run(words: list[str], folder: Path) -> None:
    # What PYTHONPATH names would count as installed, and be gone where it is not looked at.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(words, cwd=folder, env=plain, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words[:6])} … failed:\n{done.stdout}{done.stderr}")


def main() -> None:
    """Check the folder and the tag that the command line names."""
    folder, *tags = sys.argv[1:]
    check(Path(folder).resolve(), *tags)


if __name__ == "__main__":
    main()
