"""Training: milliseconds of a step and megabytes, plain torch, ours, Opacus and `torch.func` compiled."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number, ratio

__all__ = ["goals", "measure", "table"]

OURS: Final = "discreet-torch"
# Rows that go through the network at once: all of them where layers are wide, few where rows are (caches are small).
SLOTS: Final = {"mlp": 1024, "cnn": 256, "transformer": 128}
BATCHES: Final = (256, 1024)
THREADS: Final = (1, 2)
ROWS: Final = tuple((model, batch, threads) for model in SLOTS for batch in BATCHES for threads in THREADS)
PARAMETERS: Final = {"mlp": 203_530, "cnn": 26_010, "transformer": 52_746}
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
CLIPPED: Final = {("mlp", 256): 1.9, ("mlp", 1024): 1.1}  # times plain, without noise
NOISY: Final = {"cnn": 1.3, "transformer": 1.5}  # times plain, with it


def measure(*, quick: bool) -> Results:
    """Run every subject on every row in a process of its own, one at a time."""
    gathering = gather(quick=quick)
    for model, batch, threads in ROWS:
        for name, (subject, script, mode) in SUBJECTS.items():
            if mode == "compiled" and model == NOT_COMPILED:
                continue
            if (environment := gathering.environment(subject)) is None:
                continue
            way = str(SLOTS[model]) if mode == "slots" else mode
            facts: dict[str, Any] = {"who": name, "model": model, "batch": batch, "threads": threads}
            gathering.run(environment, script, model, str(batch), str(threads), way, **facts)
    return gathering.results("training_speed")


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
    limits = [(f"≤ {CLIPPED[model, batch]}× plain", clipped / plain <= CLIPPED[model, batch])] if model == "mlp" else []
    if model in NOISY:
        limits.append((f"≤ {NOISY[model]}× plain with noise", noisy / plain <= NOISY[model]))
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


def _faster(results: Results, row: Any, ours: float, peers: tuple[str, ...] = PEERS[:2]) -> bool | None:
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
        columns=(*columns, "noise, ns a parameter", *PEERS, "MB plain / ours", "MB of the peers", "goals"),
        rows=tuple(_row(results, row) for row in ROWS),
        remarks=(
            "CPU time with one thread, the wall clock with two. Each cell of a peer is without / with noise. All "
            f"processes keep freed memory, which helps every subject. Ours takes {SLOTS['mlp']} rows at once in the "
            f"perceptron, {SLOTS['cnn']} in the network of convolutions and {SLOTS['transformer']} in the transformer.",
            "The jobs differ: our sums have a proven float error and our noise is exact and secure, drawn ahead by a "
            "thread whose CPU time is counted; the peers add insecure floats to sums without such a bound.",
            f"torch.func is not compiled for the {NOT_COMPILED}: that takes minutes of the C++ compiler for every row.",
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
        number(extra, 2),
        *(f"{number(cost(results, p, row, 'clipped'))} / {number(cost(results, p, row, 'noisy'))}" for p in PEERS),
        f"{_peak(results, 'plain torch', row, 'not private')} / {_peak(results, 'Discreet', row, 'noisy')}",
        " / ".join(_peak(results, peer, row, "noisy") for peer in PEERS),
        ", ".join(map(str, goals(results, row))),
    )


def _peak(results: Results, name: str, row: tuple[str, int, int], way: str) -> str:
    return number(cost(results, name, row, way, "peak_mb"))
