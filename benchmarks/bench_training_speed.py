"""Training: milliseconds of a step and megabytes, plain torch, ours, Opacus and `torch.func` compiled."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.results import Gathering, Goal, Results, gather
from benchmarks.table import Table, number, ratio

__all__ = ["goals", "measure", "table"]

OURS: Final = "discreet-torch"
# Rows that go through the network at once: all of them where layers are wide, few where rows are (caches are small).
SLOTS: Final = {"mlp": 1024, "wide": 1024, "cnn": 256, "transformer": 128}
BATCHES: Final = (256, 1024)
THREADS: Final = (1, 2)
ROWS: Final = tuple((model, batch, threads) for model in SLOTS for batch in BATCHES for threads in THREADS)
PARAMETERS: Final = {"mlp": 203_530, "wide": 1_863_690, "cnn": 26_010, "transformer": 52_746}
# A subject of the table: its environment, script and mode.
SUBJECTS: Final = {
    "plain torch": (OURS, "torch_training", "plain"),
    "Discreet": (OURS, "discreet_training", "slots"),
    "Opacus hooks": ("opacus", "opacus_training", "hooks"),
    "Opacus ghost": ("opacus", "opacus_training", "ghost"),
    "torch.func compiled": (OURS, "torch_training", "compiled"),
}
PEERS: Final = ("Opacus hooks", "Opacus ghost", "torch.func compiled")
# Compiling the gradients of single rows takes the C++ compiler more than four minutes here, for each row of the table.
NOT_COMPILED: Final = "transformer"
TOO_LARGE: Final = "wide"  # The gradients of all rows at once need more than seven gigabytes.
# The whole loop, with rows that are drawn from 60,000: a process of its own, since these rows need memory.
LOOPS: Final = {"plain torch": (OURS, "torch_training", "loop"), "Discreet": (OURS, "discreet_training", "fit")}
LOOP_ROWS: Final = (("mlp", 256, 1), ("wide", 256, 1))
LOOP_GOAL: Final = 2.0  # times a plain loop, for the small network
CLIPPED: Final = {("mlp", 256): 1.9, ("mlp", 1024): 1.1, ("wide", 256): 1.25, ("wide", 1024): 1.2}  # times plain
NOISY: Final = {  # times plain, with noise
    **{("cnn", batch): 1.3 for batch in BATCHES},
    **{("transformer", batch): 1.3 for batch in BATCHES},
    ("wide", 256): 2.0,
    ("wide", 1024): 1.4,
}


def measure(*, quick: bool) -> Results:
    """Run every subject on every row in a process of its own, one at a time."""
    gathering = gather(quick=quick)
    for model, batch, threads in ROWS:
        for name, (subject, script, mode) in SUBJECTS.items():
            if (mode == "compiled" and model == NOT_COMPILED) or (mode in ("hooks", "compiled") and model == TOO_LARGE):
                continue
            way = str(SLOTS[model]) if mode == "slots" else mode
            _run(gathering, name, (subject, script, way), (model, batch, threads))
    for row in LOOP_ROWS:
        for name, subject_and_mode in LOOPS.items():
            _run(gathering, name, subject_and_mode, row)
    return gathering.results("training_speed")


def _run(gathering: Gathering, name: str, how: tuple[str, str, str], row: tuple[str, int, int]) -> None:
    (subject, script, mode), (model, batch, threads) = how, row
    if (environment := gathering.environment(subject)) is not None:
        facts: dict[str, Any] = {"who": name, "model": model, "batch": batch, "threads": threads}
        gathering.run(environment, script, model, str(batch), str(threads), mode, **facts)


def cost(results: Results, name: str, row: tuple[str, int, int], way: str, figure: str = "cpu_ms") -> float | None:
    """Return one figure of a subject on a row; two threads are judged by the wall clock."""
    model, batch, threads = row
    clock = "wall_ms" if figure == "cpu_ms" and threads > 1 else figure
    return results.figure(clock, who=name, model=model, batch=batch, threads=threads, way=way)


def goals(results: Results, row: tuple[str, int, int]) -> tuple[Goal, ...]:
    """Judge one row."""
    model, batch, _ = row
    plain, clipped, noisy = _ours(results, row)
    if plain is None or clipped is None or noisy is None:
        return (Goal("ours", None),)
    limits: list[tuple[str, bool | None]] = []
    if (limit := CLIPPED.get((model, batch))) is not None:
        limits.append((f"≤ {limit}× plain", clipped / plain <= limit))
    if (limit := NOISY.get((model, batch))) is not None:
        limits.append((f"≤ {limit}× plain with noise", noisy / plain <= limit))
    if row == LOOP_ROWS[0]:
        whole, ordinary = _loops(results, row)
        reached = None if whole is None or ordinary is None else whole / ordinary <= LOOP_GOAL
        limits.append((f"≤ {LOOP_GOAL}× a plain loop", reached))
    extra = (noisy - clipped) * 1e6 / PARAMETERS[model]
    return (
        *(Goal(*limit) for limit in limits),
        Goal("noise ≤ 25 ns a parameter", extra <= 25),
        Goal("faster than Opacus", _faster(results, row, noisy)),
        *((Goal("≥ 10× hooks", _faster(results, row, 10 * noisy, ("Opacus hooks",))),) if model == "mlp" else ()),
        Goal("memory ≤ 1.3× plain", _small(results, row)),
    )


def _ours(results: Results, row: tuple[str, int, int]) -> tuple[float | None, float | None, float | None]:
    plain = cost(results, "plain torch", row, "not private")
    return plain, cost(results, "Discreet", row, "clipped"), cost(results, "Discreet", row, "noisy")


def _loops(results: Results, row: tuple[str, int, int]) -> tuple[float | None, float | None]:
    """Return what a step of the whole loop takes, ours and plain, where it was measured."""
    return cost(results, "Discreet", row, "loop"), cost(results, "plain torch", row, "loop")


def _faster(results: Results, row: Any, ours: float, peers: tuple[str, ...] = PEERS[:2]) -> bool | None:
    peers = tuple(peer for peer in peers if row[0] != TOO_LARGE or peer == "Opacus ghost")
    theirs = [cost(results, peer, row, "noisy") for peer in peers]
    return None if None in theirs else all(ours <= each for each in theirs if each is not None)


def _small(results: Results, row: Any) -> bool | None:
    plain = cost(results, "plain torch", row, "not private", "peak_mb")
    ours = cost(results, "Discreet", row, "noisy", "peak_mb")
    return None if plain is None or ours is None else ours <= 1.3 * plain


def table(results: Results) -> Table:
    """Put the subjects side by side."""
    columns = ("network", "batch", "threads", "plain torch", "ours", "ours, noisy", "ours / plain", "noisy / plain")
    return Table(
        title="One training step: milliseconds, without and with noise; peak megabytes of the process",
        columns=(
            *columns,
            "whole loop / plain loop",
            "noise, ns a parameter",
            *PEERS,
            "MB plain / ours",
            "MB of the peers",
            "goals",
        ),
        rows=tuple(_row(results, row) for row in ROWS),
        remarks=(
            "CPU time with one thread, the wall clock with two. Each cell of a peer is without / with noise. All "
            f"processes keep freed memory, which helps every subject. Ours takes {SLOTS['mlp']} rows at once in the "
            f"perceptrons, {SLOTS['cnn']} in the network of convolutions, {SLOTS['transformer']} in the transformer.",
            "The jobs differ: our sums have a proven float error and our noise is exact and secure, drawn ahead by a "
            "thread whose CPU time is counted; the peers add insecure floats to sums without such a bound.",
            f"torch.func is not compiled for the {NOT_COMPILED}: that takes minutes of the C++ compiler for every row. "
            f"Gradients of all rows at once are not formed for the {TOO_LARGE} perceptron (784-1024-1024-10).",
            "The whole loop draws its batches from 60,000 rows: ours is `fit` with the physical batch that it chooses, "
            "coins, order and checks included; the plain one gathers rows by chance.",
            *results.missing(),
        ),
    )


def _row(results: Results, row: tuple[str, int, int]) -> tuple[str, ...]:
    model, batch, threads = row
    plain, clipped, noisy = _ours(results, row)
    extra = None if noisy is None or clipped is None else (noisy - clipped) * 1e6 / PARAMETERS[model]
    return (
        model,
        f"{batch:,}",
        str(threads),
        *(number(each) for each in (plain, clipped, noisy)),
        ratio(clipped, plain),
        ratio(noisy, plain),
        ratio(*_loops(results, row)),
        number(extra, 2),
        *(f"{number(cost(results, p, row, 'clipped'))} / {number(cost(results, p, row, 'noisy'))}" for p in PEERS),
        f"{_peak(results, 'plain torch', row, 'not private')} / {_peak(results, 'Discreet', row, 'noisy')}",
        " / ".join(_peak(results, peer, row, "noisy") for peer in PEERS),
        ", ".join(map(str, goals(results, row))),
    )


def _peak(results: Results, name: str, row: tuple[str, int, int], way: str) -> str:
    return number(cost(results, name, row, way, "peak_mb"))
