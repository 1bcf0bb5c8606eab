"""What all tests share: how many of them are run, what is said of those that are not, and one thread for each process.

`--quick CASES` takes so many cases of every test and none that is marked long, slow or soak. Of a test that is marked
`some(CASES)` so many are not slow, at even distances. Whatever is skipped is named at the end; with
`--nothing-skipped`, as in continuous integration, it fails the run.
"""

from __future__ import annotations

import gc
import os
import traceback
from collections import Counter, defaultdict
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings
from postgres_cluster import postgres_cluster, postgres_database  # noqa: F401
from spark_session import spark, spark_sessions  # noqa: F401

# Two processes share two cores. Matrix libraries that start a thread for each core would wait for each other; they read
# this when they are loaded, and so do processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No example of a property is too slow on a busy machine: time is printed, it never fails a test. Examples are the same
# in every run, so that none refuses a change by chance; `make soak` searches for others.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, database=None, print_blob=True)
settings.load_profile("search" if "DISCREET_SEARCH" in os.environ else "same examples")

NOT_QUICK = ("long", "slow", "soak")
LONG = 2.0  # Seconds; a test that takes more is named after a quick run, so that somebody marks it.


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("discreet")
    group.addoption("--quick", type=int, metavar="CASES", help="so many cases of every test, and none that is long")
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_most_cases_slow(items)
    cases = config.getoption("quick")
    if cases is None:
        return
    seen, kept, left = Counter[str](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        test = item.nodeid.partition("[")[0]
        quick = not any(item.get_closest_marker(mark) for mark in NOT_QUICK)
        seen[test] += quick
        (kept if quick and seen[test] <= cases else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def mark_most_cases_slow(items: list[pytest.Item]) -> None:
    """Leave so many cases of a test as its mark `some` says, the first among them; the others are slow."""
    tests = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("some") is not None:
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        (most,) = cases[0].get_closest_marker("some").args
        kept = {place * len(cases) // most for place in range(most)}
        for place, case in enumerate(cases):
            if place not in kept:
                case.add_marker("slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give every file to one process, so that what its tests share is made once, and all tests of Spark to one.

    Marks of groups do not reach the scheduler under pytest 9.2 (pytest-xdist issue 1386); names of tests do.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if "spark" in nodeid.lower() else nodeid.partition("::")[0]

    return Scheduling(config, log) if config.getoption("dist") in {"load", "loadgroup"} else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is loaded and collected stays to the end: the collector of cycles need not walk through it each time."""
    gc.disable()
    collected = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    return collected


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    stats = terminalreporter.stats
    skipped = Counter(reason(report) for report in stats.get("skipped", []))
    if skipped:
        terminalreporter.section("NOT RUN", sep="!", red=True)
    for why, tests in sorted(skipped.items()):
        terminalreporter.line(f"{tests} skipped: {why}", red=True)
    if config.getoption("quick") is not None:
        for report in stats.get("passed", []):
            if report.when == "call" and report.duration > LONG:
                terminalreporter.line(f"{report.duration:.1f} s, perhaps to be marked long: {report.nodeid}")


def reason(report: Any) -> str:
    """Return why a test, or a whole file, was skipped."""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    return str(why).removeprefix("Skipped: ")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("nothing_skipped") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
