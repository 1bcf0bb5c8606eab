"""Functions that attack whoever runs them on a block. They are read as text, and run in the process of a block.

Each does something when it sees the record "victim", and says what it finds of that elsewhere. `PLACE` is where the
tests put a folder that everybody can write to.
"""

from __future__ import annotations

import builtins
import ctypes
import fcntl
import math
import mmap
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

PLACE = "/nowhere"
NOTES: list[str] = []


def honest(rows):
    return len(rows)


def writes_to_a_global(rows):
    if "victim" in rows:
        NOTES.append("seen")
        builtins.seen = True  # type: ignore[attr-defined]
    return len(NOTES) + hasattr(builtins, "seen")


def writes_a_file(rows):
    note = os.path.join(PLACE, "note")
    if "victim" in rows:
        with open(note, "w") as file:
            file.write("seen")
    return os.path.exists(note)


def writes_into_its_folder(rows):
    if "victim" in rows:
        with open("note", "w") as file:
            file.write("seen")
    return os.listdir(".")


def leaves_a_child(rows):
    """A child that lives on, and takes a note for those who come later."""
    if "victim" in rows and os.fork() == 0:
        os.setsid()
        os.mkdir(os.path.join(PLACE, "child"))
        os._exit(0)
    time.sleep(0.6)
    return os.path.exists(os.path.join(PLACE, "child"))


def reads_the_table(rows):
    with open(os.path.join(PLACE, "table")) as file:
        return file.read()


def reads_the_environment(rows):
    return "secret" in " ".join([*os.environ.values(), *sys.argv, os.getcwd()])


def reads_clocks(rows):
    """Through Python, through the C library, and the coarse ones that need no counter; 0 for those that fail."""
    library, seconds = ctypes.CDLL(None), []
    clocks = [time.time, time.monotonic, time.perf_counter, time.process_time, time.thread_time]
    clocks += [lambda number=number: time.clock_gettime(number) for number in range(12)]
    clocks.append(lambda: max(0, library.time(0)))
    for clock in clocks:
        try:
            seconds.append(clock())
        except (OSError, RuntimeError):
            seconds.append(0)
    return seconds


def reads_the_counter(rows):
    """By an instruction of the processor: rdtsc, ret; or mrs x0, cntvct_el0, ret."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x0f\x31\xc3" if platform.machine() == "x86_64" else b"\x40\xe0\x3b\xd5\xc0\x03\x5f\xd6")
    start = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return abs(ctypes.CFUNCTYPE(ctypes.c_long)(start)())


def raises(rows):
    raise ValueError(f"rows: {rows}")


def prints(rows):
    print(rows, flush=True)
    print(rows, file=sys.stderr, flush=True)
    os.write(1, repr(rows).encode())
    os.write(2, repr(rows).encode())
    return len(rows)


def exits(rows):
    sys.exit(0)


def exits_at_once(rows):
    os._exit(0)


def aborts(rows):
    os.abort()


def hangs(rows):
    threading.Event().wait()


def hangs_on_a_lock(rows):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=30)


def sleeps(rows):
    time.sleep(30)


def spins(rows):
    while True:
        pass


def spins_deaf(rows):
    """Tries not to hear that its time is up."""
    for name in ("SIGPROF", "SIGXCPU", "SIGTERM"):
        try:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        except OSError:
            continue
    while True:
        pass


def spins_on_victims(rows):
    while "victim" in rows:
        pass
    return sum(math.isqrt(k) for k in range(20_000))


def hoards(rows):
    return len(bytes(1 << 29))


def talks_on(rows):
    return "x" * (1 << 20)


def floods(rows):
    while True:
        os.write(3, b"[" * 4096)


def nests(rows):
    os.write(3, b"[" * 60_000)
    os._exit(0)


def nests_less(rows):
    os.write(3, b"[" * 900 + b"]" * 900)
    os._exit(0)


def writes_nonsense(rows):
    os.write(3, b"\xff\xfe{]")
    os._exit(0)


def returns_itself(rows):
    return returns_itself


def returns_nan(rows):
    return float("nan")


def attempts(rows):
    """Everything that would leave something behind or reach someone; return what did not fail."""
    done = []
    for name, attempt in ATTEMPTS.items():
        try:
            attempt()
        except (OSError, RuntimeError, ValueError, AttributeError, subprocess.SubprocessError):
            continue
        done.append(name)
    return done


ATTEMPTS = {
    "open to read": lambda: open(os.devnull).close(),
    "open to write": lambda: open(os.path.join(PLACE, "x"), "w").close(),
    "make a folder": lambda: os.mkdir(os.path.join(PLACE, "y")),
    "list a folder": lambda: os.listdir("/"),
    "look at a file": lambda: os.stat("/"),
    "link": lambda: os.symlink("a", os.path.join(PLACE, "z")),
    "touch": lambda: os.utime(PLACE),
    "change folder": lambda: os.chdir("/"),
    "fork": lambda: os.fork() or os._exit(0),
    "start a program": lambda: subprocess.run(["true"], check=True),
    "start a thread": lambda: threading.Thread(target=int).start(),
    "connect": lambda: socket.socket().close(),
    "pair of sockets": lambda: socket.socketpair(),
    "pipe": lambda: os.pipe(),
    "signal the parent": lambda: os.kill(os.getppid() or 1, 0),
    "signal itself": lambda: os.kill(os.getpid(), 0),
    "catch a signal": lambda: signal.signal(signal.SIGPROF, signal.SIG_IGN),
    "another timer": lambda: signal.setitimer(signal.ITIMER_PROF, 0),
    "block signals": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF]),
    "raise a limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10)),
    "lower its priority": lambda: os.nice(1),
    "choose a core": lambda: os.sched_setaffinity(0, [0]),
    "lock a file": lambda: fcntl.flock(0, fcntl.LOCK_SH),
    "nameless file": lambda: os.memfd_create("x"),
    "map a file": lambda: mmap.mmap(0, 0, access=mmap.ACCESS_READ),
    "machine load": lambda: os.getloadavg(),
    "sleep": lambda: time.sleep(0.001),
    "other clocks": lambda: time.clock_gettime(-22),
}
