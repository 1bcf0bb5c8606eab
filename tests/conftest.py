"""What all tests share: no deadlines, one thread for each process that runs tests, and a word on what was skipped.

Whatever is skipped is named at the end; with `--nothing-skipped`, as in continuous integration, it fails the run.
"""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

# Two processes share two cores. Matrix libraries that start a thread for each core would wait for each other; they read
# this when they are loaded, and so do processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No example of a property is too slow on a busy machine: time is printed, it never fails a test. Examples are the same
# in every run, so that none refuses a change by chance; where DISCREET_SEARCH is set, they are others each time.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("search" if "DISCREET_SEARCH" in os.environ else "same examples")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("discreet")
    group.addoption("--nothing-skipped", action="store_true", help="fail if a test was skipped")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """End a copy that a test forked and an error brought here: it would go on with the tests, and be waited for."""
    process = os.getpid()
    try:
        return (yield)
    finally:
        if os.getpid() != process:
            traceback.print_exc()
            os._exit(99)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = Counter(reason(report) for report in terminalreporter.stats.get("skipped", []))
    if skipped:
        terminalreporter.section("NOT RUN", sep="!", red=True)
    for why, tests in sorted(skipped.items()):
        terminalreporter.line(f"{tests} skipped: {why}", red=True)


def reason(report: Any) -> str:
    """Return why a test, or a whole file, was skipped."""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    return str(why).removeprefix("Skipped: ")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("nothing_skipped") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
