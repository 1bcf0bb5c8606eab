"""Random bytes repeat in no process, thread or fork, and no key gives more than its share."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from drawing import draws
from recorded import Recorded, replayed

from discreet import noise
from discreet.balls import precision
from discreet.errors import Refused
from discreet.noise import source
from discreet.noise.inversion import FEW, Inversion, laplace
from discreet.noise.source import Keystream, _replaced, hold

CHILDREN, THREADS, DRAWS, SIZE = 8, 32, 1000, 16
PATIENCE = 60.0  # Seconds, for a machine that has other things to do.


def in_child(work: Callable[[], bytes], fork: Callable[[], int] = os.fork) -> bytes:
    """Run `work` in a forked child and return what it returns; fail if it does not come back."""
    inlet, outlet = os.pipe()
    child = fork()
    if child == 0:
        try:
            with os.fdopen(outlet, "wb") as pipe:
                pipe.write(work())
        finally:
            os._exit(0)
    os.close(outlet)
    try:
        return received(inlet)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def received(inlet: int) -> bytes:
    parts, deadline = [b""], time.monotonic() + PATIENCE
    with os.fdopen(inlet, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = pipe.read(1 << 16)
            if not part:
                return b"".join(parts)
            parts.append(part)
    raise AssertionError("the child hangs")


def distinct(drawn: list[bytes], expected: int) -> None:
    assert len(drawn) == expected
    assert len(set(drawn)) == expected


def test_forked_children_repeat_neither_the_parent_nor_each_other() -> None:
    before = draws(1)
    joined = b"".join(in_child(lambda: b"".join(draws(DRAWS, SIZE))) for _ in range(CHILDREN))
    drawn = [joined[i : i + SIZE] for i in range(0, len(joined), SIZE)]
    distinct(before + drawn + draws(DRAWS), 1 + CHILDREN * DRAWS + DRAWS)


def test_a_child_made_behind_the_interpreters_back_draws_under_its_own_key() -> None:
    before = draws(1)
    # PyDLL keeps the interpreter's lock, so that the child has it too; no hook runs.
    child = in_child(lambda: b"".join(draws(DRAWS)), ctypes.PyDLL(None).fork)
    drawn = [child[i : i + SIZE] for i in range(0, len(child), SIZE)]
    distinct(before + drawn + draws(DRAWS), 1 + 2 * DRAWS)


def test_a_child_that_does_not_notice_the_fork_would_repeat_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: without the check of the process number the child goes on where the parent was."""
    draws(1)
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent)
    child = in_child(lambda: b"".join(draws(10)), ctypes.PyDLL(None).fork)
    assert child == b"".join(draws(10))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_worker_processes_repeat_neither_the_parent_nor_each_other(method: str) -> None:
    before, workers = draws(1), CHILDREN if method == "fork" else 2
    with multiprocessing.get_context(method).Pool(workers) as pool:
        drawn = [one for some in pool.map(draws, [DRAWS] * CHILDREN, chunksize=1) for one in some]
    distinct(before + drawn + draws(DRAWS), 1 + CHILDREN * DRAWS + DRAWS)


def test_threads_repeat_neither_each_other_nor_themselves() -> None:
    barrier = threading.Barrier(THREADS)

    def work() -> list[bytes]:
        barrier.wait()
        return draws(DRAWS)

    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(work) for _ in range(THREADS)]
        drawn = [one for future in futures for one in future.result()]
    distinct(drawn + draws(DRAWS), (THREADS + 1) * DRAWS)


def test_every_thread_has_a_stream_of_its_own() -> None:
    def stream() -> Keystream | None:
        source.read(1)
        return source._local.stream

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(stream).result()
    assert stream() is stream()
    assert other is not None
    assert other is not stream()


class Keys:
    """Stands in for the operating system and counts what it is asked for."""

    def __init__(self, *given: bytes) -> None:
        self.given = list(given)
        self.asked: list[int] = []

    def __call__(self, count: int) -> bytes:
        self.asked.append(count)
        return self.given.pop(0) if self.given else Recorded(f"key {len(self.asked)}").read(count)


def test_the_keystream_is_that_of_the_published_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """NIST SP 800-38A, F.5.5, CTR-AES256: the output blocks of the first four counters."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    keys = Keys(key, bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"))
    monkeypatch.setattr(os, "urandom", keys)
    stream = Keystream()
    expected = (
        "0bdf7df1591716335e9a8b15c860c5025a6e699d536119065433863c8f657b94"
        "1bc12c9c01610d5d0d8bd6a3378eca622956e1c8693536b1bee99c73a31576b6"
    )
    # Read in odd pieces: nothing is dropped, kept or read twice.
    assert b"".join(stream.read(count) for count in (1, 0, 14, 2, 30, 17)).hex() == expected
    assert keys.asked == [32, 16]


def test_long_reads_are_the_same_stream_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    block = len(source._BLOCK)
    sizes = (block - 1, 2, block, 3 * block + 5)
    monkeypatch.setattr(os, "urandom", Keys())
    apart = b"".join(map(Keystream().read, sizes))
    monkeypatch.setattr(os, "urandom", Keys())
    assert Keystream().read(sum(sizes)) == apart
    assert len(apart) == sum(sizes)


def test_a_key_is_replaced_once_it_has_given_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_BYTES_PER_KEY", 100)
    keys = Keys()
    monkeypatch.setattr(os, "urandom", keys)
    stream = Keystream()
    drawn = [stream.read(30) for _ in range(10)]  # Three to a key; what is left of it is dropped.
    assert keys.asked == [32, 16] * 4
    distinct(drawn, 10)
    stream.read(100)
    stream.read(0)
    assert keys.asked == [32, 16] * 5
    assert len(stream.read(1000)) == 1000  # More than a key's share in one read: a key for itself alone.
    stream.read(1)
    assert keys.asked == [32, 16] * 7


def test_nothing_that_was_drawn_is_kept() -> None:
    stream = Keystream()
    stream.read(1000)
    kept = [getattr(stream, name) for name in Keystream.__slots__]
    assert not any(isinstance(value, bytes | bytearray | memoryview) for value in kept)


def test_recordings_and_durable_things_exclude_each_other() -> None:
    with hold(), hold(), pytest.raises(Refused), _replaced(Recorded("x")):
        pass
    with replayed("x"):
        with pytest.raises(Refused), hold():
            pass
        with pytest.raises(Refused), _replaced(Recorded("y")):
            pass
        assert source.read(4) == Recorded("x").read(4)
    with hold():
        pass


def test_an_error_inside_leaves_neither_a_recording_nor_a_hold_behind() -> None:
    with pytest.raises(ZeroDivisionError), hold():
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), replayed("x"):
        raise ZeroDivisionError
    with replayed("x"):
        pass
    assert source.read(16) != Recorded("x").read(16)


def busy(work: Callable[[threading.Event, threading.Event], None]) -> tuple[threading.Thread, threading.Event]:
    """Start a thread that is in the middle of something until it is told to go on."""
    inside, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=work, args=(inside, go_on))
    thread.start()
    assert inside.wait(PATIENCE)
    return thread, go_on


def holds_the_precision(inside: threading.Event, go_on: threading.Event) -> None:
    with precision(77):
        inside.set()
        go_on.wait(PATIENCE)


def holds_the_guard(inside: threading.Event, go_on: threading.Event) -> None:
    with source._guard:
        inside.set()
        go_on.wait(PATIENCE)


def makes_a_table(inside: threading.Event, go_on: threading.Event) -> None:
    def slowly(outcome: int) -> bool:
        inside.set()
        return not go_on.wait(PATIENCE)

    Inversion(laplace(Fraction(3), 0), unsure=slowly).array(FEW)


def draws_of_many_kinds() -> bytes:
    with hold():
        drawn: list[Any] = [noise.discrete_laplace("7/3"), *noise.discrete_laplace("7/3", FEW).tolist()]
        drawn += [noise.rounded_gaussian("1234.5"), *noise.rounded_gaussian("1234.5", FEW).tolist()]
    return str(len(drawn)).encode()


@pytest.mark.parametrize("work", [holds_the_precision, holds_the_guard, makes_a_table])
def test_a_child_of_a_busy_process_can_draw(work: Callable[[threading.Event, threading.Event], None]) -> None:
    """A forked child has one thread only; no lock that another one held may stop it."""
    thread, go_on = busy(work)
    try:
        assert in_child(draws_of_many_kinds) == str(2 * FEW + 2).encode()
    finally:
        go_on.set()
        thread.join(PATIENCE)


def test_many_threads_compute_at_their_own_precision() -> None:
    """The library underneath has one global precision; a thread that sees another's would be caught here."""

    def digits(bits: int) -> set[int]:
        from flint import ctx

        found = set()
        for _ in range(200):
            with precision(bits):
                found.add(ctx.prec)
        return found

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(digits, range(60, 68))) == [{bits} for bits in range(60, 68)]


def test_threads_that_make_one_sampler_at_once_draw_from_one_law() -> None:
    barrier = threading.Barrier(8)

    def work() -> int:
        barrier.wait()
        return int(abs(noise.discrete_gaussian("33.7", FEW)).max())

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(work) for _ in range(8)]
        assert all(33 < future.result() < 33.7 * 10 for future in futures)
