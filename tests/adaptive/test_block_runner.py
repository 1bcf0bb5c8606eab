"""A function that is out to leak: whatever it does with one block changes no other block, and tells nobody else.

Each attack is also tried on a runner that lacks one wall, and must succeed there.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import block_functions
import numpy as np
import pytest
from threshold_worlds import ADD_REMOVE, Unreadable

from discreet import seccomp_rules
from discreet.adaptive import BlockLimits, BlockMode, SubsampleAndAggregate, block_runner
from discreet.adaptive.block_runner import FAILED, BlockRows, Program, excerpt, probe, run_blocks, undefined
from discreet.adaptive.subsample_aggregate import _answer_here, rows_of
from discreet.balls import precision
from discreet.errors import DiscreetError, InvalidParameter, Refused

TEXT = Path(block_functions.__file__).read_text()
QUICK = BlockLimits(cpu_seconds=Fraction("0.5"), wall_seconds=Fraction(60), padded=False)
TEMPTED, QUIET = ("a", "victim", "b"), ("a", "nobody", "b")
OTHER = ("c", "d")
ALLOW_ALL = struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000)


def program(name: str, place: Path | None = None) -> Program:
    return Program(name=name, source=TEXT.replace('"/nowhere"', repr(str(place))) if place else TEXT)


def rows(*records: Any) -> BlockRows:
    return rows_of(list(records), range(len(records)))


def answers(attack: Program, *blocks: Sequence[Any], limits: BlockLimits = QUICK) -> list[Any]:
    return run_blocks(attack, [rows(*block) for block in blocks], limits)


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel filter that lets everything pass."""
    monkeypatch.setattr(block_runner, "kernel_filter", lambda: ALLOW_ALL)


def test_honest_functions_answer() -> None:
    assert answers(program("honest"), TEMPTED, OTHER, ()) == [3, 2, 0]


def test_a_global_is_gone_with_its_block() -> None:
    attack = program("writes_to_a_global")
    assert answers(attack, TEMPTED, OTHER) == [2, 0]


def test_a_global_is_seen_where_blocks_share_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_functions, "NOTES", [])
    monkeypatch.setattr("builtins.seen", False, raising=False)
    shared = [_answer_here(block_functions.writes_to_a_global, rows(*block)) for block in (TEMPTED, OTHER)]
    assert shared[1] != 0


FILES = ["writes_a_file", "leaves_a_child"]


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_left_behind_for_later_blocks(name: str, tmp_path: Path) -> None:
    tempted = answers(program(name, tmp_path), TEMPTED, OTHER)
    quiet = answers(program(name, tmp_path), QUIET, OTHER)
    assert tempted[1] == quiet[1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("unlocked")
def test_something_is_left_behind_without_the_lock(name: str, tmp_path: Path) -> None:
    quiet = answers(program(name, tmp_path), QUIET, OTHER)
    tempted = answers(program(name, tmp_path), TEMPTED, OTHER)
    assert tempted[1] != quiet[1]


@pytest.mark.usefixtures("unlocked")
def test_every_block_has_an_empty_folder_of_its_own_even_without_the_lock() -> None:
    assert answers(program("writes_into_its_folder"), TEMPTED, OTHER)[1] == []


def test_the_table_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("everything")
    assert answers(program("reads_the_table", tmp_path), OTHER) == [FAILED]


@pytest.mark.usefixtures("unlocked")
def test_the_table_can_be_read_without_the_lock(tmp_path: Path) -> None:
    (tmp_path / "table").write_text("everything")
    assert answers(program("reads_the_table", tmp_path), OTHER) == ["everything"]


def test_nothing_else_is_possible_either(tmp_path: Path) -> None:
    assert answers(program("attempts", tmp_path), OTHER) == [[]]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unlocked")
def test_almost_everything_is_possible_without_the_lock(tmp_path: Path) -> None:
    (done,) = answers(program("attempts", tmp_path), OTHER)
    assert len(done) > 0.75 * len(block_functions.ATTEMPTS)


def test_no_clock_can_be_read() -> None:
    (said,) = answers(program("reads_clocks"), OTHER)
    assert all(abs(moment) < 1e-6 for moment in said)  # Some say 0, and some a negative number that never changes.


@pytest.mark.usefixtures("unlocked")
def test_clocks_can_be_read_without_the_lock() -> None:
    (said,) = answers(program("reads_clocks"), OTHER)
    assert said[0] > 1e9
    assert sum(moment > 0 for moment in said) > 3


def test_the_counter_of_the_processor_cannot_be_read() -> None:
    assert answers(program("reads_the_counter"), OTHER) == [FAILED]
    assert block_functions.reads_the_counter(()) > 0


def test_the_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    attack = program("reads_the_environment")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        assert answers(attack, OTHER) == [FAILED]  # It may not even ask where it is.
        monkeypatch.setattr(block_runner, "kernel_filter", lambda: ALLOW_ALL)
        assert answers(attack, OTHER) == [False]
        monkeypatch.setattr(block_runner, "_ENVIRONMENT", dict(os.environ))
        assert answers(attack, OTHER) == [True]
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("name", ["raises", "prints"])
def test_no_record_appears_anywhere(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert answers(program(name), TEMPTED, OTHER) == ([FAILED, FAILED] if name == "raises" else [3, 2])
    assert capfd.readouterr() == ("", "")


def test_a_record_appears_where_errors_are_inherited(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_runner.subprocess, "DEVNULL", None)
    answers(program("raises"), TEMPTED)
    assert "victim" in capfd.readouterr().err


SHORT = BlockLimits(cpu_seconds=Fraction("0.2"), wall_seconds=Fraction(60), memory=1 << 28, padded=False)
FAILING = [
    "exits",
    "exits_at_once",
    "aborts",
    "hangs",
    "hangs_on_a_lock",
    "sleeps",
    "spins",
    "spins_deaf",
    "hoards",
    "talks_on",
    "floods",
    "nests",
    "nests_less",
    "writes_nonsense",
    "returns_itself",
]


@pytest.mark.parametrize("name", FAILING)
def test_a_block_that_fails_in_any_way_is_a_block_that_failed(name: str) -> None:
    start = time.monotonic()
    assert answers(program(name), OTHER, limits=SHORT) == [FAILED]
    assert time.monotonic() - start < 55  # None of them had to be stopped by the clock on the wall.


def test_memory_within_the_limit_may_be_used() -> None:
    assert answers(program("hoards"), OTHER) == [1 << 29]


def test_the_clock_on_the_wall_stops_what_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_runner, "kernel_filter", lambda: ALLOW_ALL)
    limits = BlockLimits(cpu_seconds=Fraction("0.1"), wall_seconds=Fraction(2), padded=False)
    start = time.monotonic()
    assert answers(program("sleeps"), OTHER, limits=limits) == [FAILED]
    assert time.monotonic() - start < 25


@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 2])
def test_a_block_that_spins_changes_no_other(processes: int) -> None:
    limits = BlockLimits(cpu_seconds=Fraction("0.5"), wall_seconds=Fraction(60), processes=processes, padded=False)
    attack = program("spins_on_victims")
    tempted, quiet = (answers(attack, block, OTHER, OTHER, limits=limits) for block in (TEMPTED, QUIET))
    assert tempted == [FAILED, *quiet[1:]]
    assert quiet[0] == quiet[1] == quiet[2] != FAILED


def test_answers_that_are_no_numbers_come_through_as_they_are() -> None:
    (answer,) = answers(program("returns_nan"), OTHER)
    assert answer != answer


class Clock:
    """A clock that only moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def schedule(monkeypatch: pytest.MonkeyPatch, durations: Sequence[float], *, padded: bool) -> list[float]:
    """When blocks start that take so long, and when all is over."""
    clock, starts = Clock(), []

    def run(program: Any, block: Any, limits: Any) -> Any:
        starts.append(clock.now)
        clock.sleep(durations[len(starts) - 1])

    monkeypatch.setattr(block_runner, "time", clock)
    monkeypatch.setattr(block_runner, "_run", run)
    limits = BlockLimits(cpu_seconds=Fraction(1), wall_seconds=Fraction(3), padded=padded)
    run_blocks(program("honest"), [rows()] * len(durations), limits)
    return [*starts, clock.now]


def test_starts_and_end_do_not_depend_on_how_long_blocks_take(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet, tempted = ([0.1, 0.1, 0.1], [2.9, 0.1, 1])
    assert schedule(monkeypatch, quiet, padded=True) == schedule(monkeypatch, tempted, padded=True)
    assert schedule(monkeypatch, quiet, padded=False) != schedule(monkeypatch, tempted, padded=False)


def test_padded_blocks_really_run_in_their_slots() -> None:
    limits = BlockLimits(cpu_seconds=Fraction("0.5"), wall_seconds=Fraction(2), padded=True)
    start = time.monotonic()
    assert answers(program("honest"), TEMPTED, limits=limits) in ([3], [FAILED])  # The latter on a very busy machine.
    assert time.monotonic() - start >= 2


def estimate(rows: Any) -> float:
    return float(np.median(rows))


def needs_a_neighbour(rows: Any) -> Any:
    """A function that cannot be run elsewhere: it needs what is not installed."""
    return ADD_REMOVE


def test_arrays_and_libraries_arrive() -> None:
    source = "import numpy as np\ndef middle(table):\n    return [float(np.median(table[:, 0])), len(table)]\n"
    table = np.arange(12.0).reshape(6, 2)
    wide = BlockLimits(cpu_seconds=Fraction(2), wall_seconds=Fraction(60), padded=False)
    block = rows_of(table, [0, 2, 4])
    assert run_blocks(Program(name="middle", source=source), [block], wide) == [[4.0, 3]]


def test_a_function_that_cannot_run_alone_is_refused_before_anything_is_paid_or_read() -> None:
    mode = BlockMode(blocks=3, domain=("a", "b"), epsilon=Fraction(1), delta=Fraction("0.1"))
    mechanism = SubsampleAndAggregate(function=needs_a_neighbour, aggregator=mode, relation=ADD_REMOVE)

    class NoPurse:
        def charge(self, *_: Any, **__: Any) -> None:
            raise AssertionError("charged for what cannot be run")

    with pytest.raises(Refused, match="needs_a_neighbour"):
        mechanism.release(Unreadable(), session=NoPurse())


def test_the_whole_mechanism_runs_in_processes() -> None:
    from statistics import mode as most_common

    mode = BlockMode(blocks=6, domain=("a", "b"), epsilon=Fraction(30), delta=Fraction("0.01"))
    mechanism = SubsampleAndAggregate(function=most_common, aggregator=mode, relation=ADD_REMOVE, limits=QUICK)
    seen: list[tuple[int, int]] = []
    release = mechanism.release(["b"] * 40, progress=lambda done, of: seen.append((done, of)))
    assert release.value == "b"
    assert seen == [(k, 6) for k in range(1, 7)]
    assert mechanism.rehearse(["a", "a", "b"]) == "a"
    with pytest.raises(Refused):
        mechanism.rehearse([])


def test_the_law_of_a_release_can_be_listed_in_processes_too() -> None:
    from statistics import mode as most_common

    mode = BlockMode(blocks=2, domain=("a", "b"), epsilon=Fraction(1), delta=Fraction("0.1"))
    parts = {"aggregator": mode, "relation": ADD_REMOVE, "limits": replace(QUICK, padded=True)}
    confined = SubsampleAndAggregate(function=most_common, **parts)  # type: ignore[arg-type]
    trusted = SubsampleAndAggregate(function=most_common, trusted=True, **parts)  # type: ignore[arg-type]
    with precision(64):
        one, other = (made.distribution(["a", "b"]).masses for made in (confined, trusted))
    assert {name: str(mass) for name, mass in one.items()} == {name: str(mass) for name, mass in other.items()}


def test_programs_are_found_or_refused() -> None:
    import statistics

    assert Program.of(statistics.median) == Program(name="median", module="statistics")
    assert Program.of(len) == Program(name="len", module="builtins")
    found = Program.of(block_functions.honest)
    assert found.source is not None
    assert "def honest" in found.source
    assert "def raises" not in found.source
    assert found.libraries == ("__future__", "__future__.annotations")
    assert "numpy.ma" in Program.of(estimate).libraries
    assert "numpy" not in repr(Program.of(estimate))

    def inside(rows: Any) -> Any:
        return rows

    for bad in (inside, lambda rows: rows, 5, np.ufunc):
        if bad is not np.ufunc:
            with pytest.raises(InvalidParameter):
                Program.of(bad)  # type: ignore[arg-type]
    for fields in ({"name": "f"}, {"name": "f", "module": "a", "source": "b"}, {"name": "1", "module": "a"}):
        with pytest.raises(InvalidParameter):
            Program(**fields)
    with pytest.raises(InvalidParameter, match="Python"):
        Program(name="f", source="def f(:")
    with pytest.raises(InvalidParameter, match="np, table"):
        Program(name="f", source="def f(rows):\n    return np.mean(table)\n")
    with pytest.raises(Refused):
        probe(Program(name="g", source="def f(rows): return 1"), QUICK)
    with pytest.raises(Refused):
        probe(Program(name="f", source="import time\ntime.sleep(1)\ndef f(rows): return 1"), QUICK)


SCRIPT = """
from __future__ import annotations
import json
import sys
import numpy as np
from math import *
try:
    import numpy.linalg as algebra
except ImportError:
    algebra = None
from discreet import Relation, adaptive

POWER = 2
scale = {}
scale["factor"] = POWER + 1
table = json.load(open(sys.argv[1]))

def helper(rows):
    return scale["factor"] * sqrt(len(rows))

class Settings:
    rate = POWER

def estimate(rows):
    return helper(rows) + Settings.rate + float(algebra.norm(np.array(rows)))

def unrelated(rows):
    return table

def main():
    mode = adaptive.BlockMode(blocks=2, domain=None, epsilon=9, delta="0.1")
    limits = adaptive.BlockLimits(padded=False, wall_seconds=60)
    made = adaptive.SubsampleAndAggregate(
        function=estimate, aggregator=mode, relation=Relation.ADD_REMOVE, limits=limits
    )
    print(made.rehearse(table), made.function.source)

if __name__ == "__main__":
    main()
"""


def test_a_function_of_a_script_is_cut_out_of_what_reads_the_data(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "table.json").write_text("[3, 0, 4, 0]")
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "table.json")]
    answer, text = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(maxsplit=1)
    assert answer == "13.0"  # 3 * 2 + 2 + 5
    assert "table" not in text
    assert "main" not in text
    assert "discreet" not in text


def test_an_excerpt_holds_what_is_needed_in_its_order() -> None:
    text = "a = 1\nb = a\nc = 2\nif c:\n    d = b\nelse:\n    d = 5\ndef f(x):\n    return d\na = 7\n"
    assert excerpt(text, "f").splitlines()[0] == "a = 1"
    assert "def f" in excerpt(text, "f")
    assert excerpt(text, "c") == "c = 2\n"
    every_kind = (
        "def f(a, *b, c=1, **d):\n    try:\n        e = [g for g in b]\n    except ValueError as h:\n        h\n"
    )
    every_kind += "    match e:\n        case [i, *j]:\n            return i, j, len(e)\n        case {1: k, **l}:\n"
    every_kind += "            return (m := k), m, l, a, c, d, __name__\n"
    assert undefined(every_kind) == set()
    assert undefined("x = y + len(z)") == {"y", "z"}
    assert excerpt(text, "b") == "a = 1\nb = a\na = 7\n"


@pytest.mark.parametrize("name", ["cpu_seconds", "wall_seconds", "memory", "processes"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "x", None, True])
def test_limits_that_are_none_are_refused(name: str, value: Any) -> None:
    with pytest.raises(DiscreetError):
        BlockLimits(**{name: value})


def test_a_wall_limit_that_others_could_use_up_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="slow another"):
        BlockLimits(cpu_seconds=Fraction(1), wall_seconds=Fraction(3), processes=2)
    with pytest.raises(InvalidParameter):
        BlockLimits(padded=1)  # type: ignore[arg-type]


NUMBERS = json.loads((Path(__file__).parents[1] / "vectors" / "system_calls.json").read_text())
ALLOWED = {
    "read", "write", "close", "fstat", "lseek", "mmap", "mprotect", "munmap", "brk", "mremap", "madvise",
    "rt_sigreturn", "sched_yield", "getpid", "gettid", "getrandom", "exit", "exit_group",
}  # fmt: skip


def judged(rules: bytes, architecture: int, number: int, second: int = 0) -> int:
    """Follow a filter as the kernel does."""
    seen = {0: number, 4: architecture, 24: second}
    value, place = 0, 0
    while True:
        code, yes, no, constant = struct.unpack_from("=HBBI", rules, 8 * place)
        place += 1
        if code == 0x20:
            value = seen[constant]
        elif code == 0x54:
            value &= constant
        elif code == 0x06:
            return int(constant)
        else:
            assert code == 0x15
            place += yes if value == constant else no


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_what_is_listed_and_nothing_else(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp_rules, "platform", SimpleNamespace(machine=lambda: machine))
    rules, known = block_runner.kernel_filter(), NUMBERS[machine]
    architecture, calls = known["architecture"], known["calls"]
    named = {number: name for name, number in calls.items()}
    assert len(named) == len(calls) > 250
    for number in range(-8, 1 << 10):
        allowed = judged(rules, architecture, number & 0xFFFFFFFF) == 0x7FFF0000
        assert allowed == (named.get(number) in ALLOWED), named.get(number, number)
    assert judged(rules, architecture, 0x40000000) != 0x7FFF0000  # The other numbers of x86-64.
    assert judged(rules, architecture ^ 1, calls["read"]) == 0x80000000
    assert judged(rules, architecture, calls["futex"], second=129) == 0x7FFF0000
    assert judged(rules, architecture, calls["futex"], second=128) != 0x7FFF0000


@pytest.mark.parametrize(("machine", "system"), [("riscv64", "linux"), ("x86_64", "darwin")])
def test_machines_without_a_lock_are_refused(machine: str, system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp_rules, "platform", SimpleNamespace(machine=lambda: machine))
    monkeypatch.setattr(seccomp_rules, "sys", SimpleNamespace(platform=system))
    with pytest.raises(Refused, match="trusted=True"):
        block_runner.kernel_filter()
