"""The sizes of tests: what `--quick` takes, what is said of skipped tests, and when they fail a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.mark.parametrize("case", range(5))
def test_cases(case): pass

@pytest.mark.parametrize("case", [pytest.param(0, marks=pytest.mark.long), 1, 2])
def test_whose_first_case_is_long(case): pass

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.skipif(True, reason="A PART IS MISSING")
def test_of_a_part(): pass
"""
MARKS = (
    f"[pytest]\npythonpath = {Path(__file__).parent}\nmarkers =\n    long: x\n    slow: x\n    soak: x\n    some: x\n"
)


OF_SPARK = """
import pytest

@pytest.mark.parametrize("case", range(9))
def test_spark_cases(case): pass

@pytest.mark.parametrize("case", range(9))
def test_other_cases(case): pass
"""


OF_SOME = """
import pytest

@pytest.mark.some(3)
@pytest.mark.parametrize("case", range(10))
def test_many(case): pass

@pytest.mark.some(3)
@pytest.mark.parametrize("case", range(2))
def test_few(case): pass
"""


def run(folder: Path, *words: str, tests: str = TESTS) -> tuple[int, str]:
    """Run the tests above under the configuration of all tests."""
    (folder / "test_some.py").write_text(tests)
    (folder / "pytest.ini").write_text(MARKS)
    (folder / "conftest.py").write_text(Path(__file__).with_name("conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout


@pytest.mark.long
@pytest.mark.parametrize(("cases", "taken"), [(1, 3), (2, 5)])
def test_quick_takes_the_first_cases_that_are_not_long(cases: int, taken: int, tmp_path: Path) -> None:
    code, said = run(tmp_path, "--quick", str(cases))
    assert code == 0
    assert said.count("PASSED") + said.count("SKIPPED") == taken
    assert "test_whose_first_case_is_long[1]" in said
    assert "test_slow" not in said


@pytest.mark.long
def test_what_is_skipped_is_named_and_fails_where_nothing_may_be(tmp_path: Path) -> None:
    code, said = run(tmp_path)
    assert code == 0
    assert "1 skipped: A PART IS MISSING" in said
    assert run(tmp_path, "--nothing-skipped")[0] == 1
    assert run(tmp_path, "--nothing-skipped", "-n", "2")[0] == 1
    assert run(tmp_path, "--nothing-skipped", "--deselect", "test_some.py::test_of_a_part")[0] == 0


@pytest.mark.long
def test_all_tests_of_spark_run_in_one_process(tmp_path: Path) -> None:
    code, said = run(tmp_path, "-n", "2", tests=OF_SPARK)
    assert code == 0
    ended = [line.split()[0] for line in said.splitlines() if "PASSED" in line and "test_spark_cases" in line]
    assert len(ended) == 9
    assert len(set(ended)) == 1


@pytest.mark.long
def test_some_cases_are_not_slow_and_all_are_run_in_full(tmp_path: Path) -> None:
    code, said = run(tmp_path, "-m", "not slow", tests=OF_SOME)
    taken = [line.split()[0] for line in said.splitlines() if "PASSED" in line]
    assert code == 0
    assert taken == [
        *(f"test_some.py::test_many[{n}]" for n in (0, 3, 6)),
        *(f"test_some.py::test_few[{n}]" for n in (0, 1)),
    ]
    assert run(tmp_path, tests=OF_SOME)[1].count("PASSED") == 12
