"""Synthetic tables: how far their marginals are from the real ones, and what they take, against peers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any, Final

import numpy as np

from benchmarks.environments import OURS, Environment
from benchmarks.marginal_distances import CELLS, mean_distances
from benchmarks.results import Gathering, Goal, Results, gather
from benchmarks.synth_cells import FOLDER, LIMITS, METHODS, Cell, measured
from benchmarks.synth_duels import DUEL_RUNS, DUEL_SETS, duel_cells, duel_goal, duel_table, has_met
from benchmarks.synth_jobs import DELTA, EPSILONS
from benchmarks.synth_sets import SYNTH_SETS, Coded, keep
from benchmarks.table import MISSING, Table, number, ratio

__all__ = ["goals", "measure", "tables"]

NAMES: Final = {OURS: "ours", "opendp-mbi": "OpenDP", "smartnoise-synth": "SmartNoise"}
PEERS: Final = tuple(name for name in NAMES if name != OURS)
SHOWN: Final = {"independent": "independent", "mst": "MST", "aim": "AIM"}
PAIRED: Final = ("mst", "aim")  # what peers have too
FLOORS: Final = {"resample": "rows of the table drawn again", "exact": "exact columns, each by itself"}
DISTANCES: Final = ("tvd1", "tvd2", "tvd3")
RUNS: Final = 1  # of ours; a peer takes too long for more than one
FIRST: Final = "1"  # the epsilon at which peers are asked
# Peers take too many minutes for these.
LEFT_OUT: Final = (
    ("opendp-mbi", "PUMS", "aim"),
    ("smartnoise-synth", "nltcs", "aim"),
    ("smartnoise-synth", "PUMS", "mst"),
    ("smartnoise-synth", "PUMS", "aim"),
    ("smartnoise-synth", "Adult", "aim"),
)
ALIKE: Final = 1.05  # Errors of single runs are not told apart within this.
FASTER: Final = 2.0
_GENERATOR: Final = np.random.default_rng(585)


def measure(*, quick: bool, data: Path | None, runs: int | None = None) -> Results:
    """Make every table, one process at a time; without a folder there is nothing to make them from.

    `runs` are those of the eight tables on which AIM meets the AIM of peers.
    """
    gathering = gather(quick=quick)
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with the real data sets by --data"
        return gathering.results("synth_tables")
    for name, load in SYNTH_SETS.items():
        table = load(data)
        keep(table, FOLDER / f"{name}.npz")
        gathering.rows.extend(_floors(name, table))
    for subject in (*PEERS, OURS):  # What takes long is kept, and comes first.
        if (environment := gathering.environment(subject)) is not None:
            for cell in _cells(subject, quick=quick):
                _measure(gathering, cell, environment)
    if not quick:
        _meet(gathering, data, DUEL_RUNS if runs is None else runs)
    return gathering.results("synth_tables")


def _meet(gathering: Gathering, data: Path, runs: int) -> None:
    """Make the eight tables on which AIM meets the AIM of peers."""
    for name, load in DUEL_SETS.items():
        keep(load(data), FOLDER / f"{name}.npz")
    for subject in (*PEERS, OURS):
        if (environment := gathering.environment(subject)) is not None:
            for cell in duel_cells(subject, runs):
                _measure(gathering, cell, environment)


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge MST and AIM by the published figures, and every cell against the peers that finished it."""
    mst, aim = (_ours(results, "Adult", method, "1") for method in ("mst", "aim"))
    published = mst["tvd2"] <= 0.052 and mst["tvd3"] <= 0.106 if mst else None
    below = mst is not None and aim is not None and all(aim[name] < mst[name] for name in ("tvd2", "tvd3"))
    error = [reached for place in _places() if (reached := _is_as_good(results, *place)) is not None]
    speed = [reached for place in _places() if (reached := _is_faster(results, *place)) is not None]
    return (
        Goal("MST on Adult at ε = 1 within 0.052 / 0.106 for two and three columns", published),
        Goal("AIM below MST there", below if mst and aim else None),
        Goal(f"no error above {ALIKE} of the best peer's", all(error) if error else None),
        Goal(f"at least {FASTER:g}× faster than every peer", all(speed) if speed else None),
        *((duel_goal(results),) if has_met(results) else ()),
    )


def tables(results: Results) -> tuple[Table, ...]:
    """Show the errors, what they would be without privacy, and what they took."""
    shown = _errors(results), _without_privacy(results), _costs(results)
    return (*shown, duel_table(results)) if has_met(results) else shown


def _cells(subject: str, *, quick: bool) -> Iterator[Cell]:
    """List what a subject is asked for: ours everything several times, a peer what takes it minutes, once."""
    for dataset in ("nltcs",) if quick else reversed(SYNTH_SETS):
        for method in METHODS[subject]:
            asked = EPSILONS if subject == OURS else () if (subject, dataset, method) in LEFT_OUT else (FIRST,)
            for epsilon in (FIRST,) if quick else asked:
                for run in range(RUNS if subject == OURS and not quick else 1):
                    yield Cell(subject, dataset, method, epsilon, run)


def _measure(gathering: Gathering, cell: Cell, environment: Environment) -> None:
    """Make one table, and note it if that broke."""
    words = f"{cell.subject} {cell.dataset} {cell.method} {cell.epsilon}"
    gathering.say(f"{words}, run {cell.run}")
    row = measured(cell, environment)
    gathering.rows.append(row)
    if row.get("failed"):
        gathering.failures[words] = f"failed: {row['failed']}"


def _floors(name: str, table: Coded) -> list[dict[str, Any]]:
    """Return how far tables are that know everything, or every column by itself."""
    codes = table.codes
    drawn = codes[_GENERATOR.integers(len(codes), size=len(codes))]
    apart = np.column_stack([_GENERATOR.permutation(column) for column in codes.T])
    found = {"resample": drawn, "exact": apart}
    return [
        {"subject": "floor", "dataset": name, "method": method, **mean_distances(codes, sample, table.sizes)}
        for method, sample in found.items()
    ]


def _places(methods: Iterable[str] = PAIRED) -> list[tuple[str, str, str]]:
    return [(dataset, method, epsilon) for dataset in SYNTH_SETS for method in methods for epsilon in EPSILONS]


def _rows(results: Results, subject: str, dataset: str, method: str, epsilon: str) -> list[dict[str, Any]]:
    wanted = {"subject": subject, "dataset": dataset, "method": method, "epsilon": epsilon}
    return [row for row in results.rows if wanted.items() <= row.items()]


def _found(results: Results, subject: str, dataset: str, method: str, epsilon: str) -> dict[str, Any] | None:
    """Return the mean errors of all runs, and the least they took; None where none ended."""
    rows = [row for row in _rows(results, subject, dataset, method, epsilon) if "tvd1" in row]
    if not rows:
        return None
    errors = {name: mean(row[name] for row in rows) for name in DISTANCES}
    return errors | {name: min(row[name] for row in rows) for name in ("cpu", "wall", "peak_mb")}


def _ours(results: Results, dataset: str, method: str, epsilon: str) -> dict[str, Any] | None:
    return _found(results, OURS, dataset, method, epsilon)


def _stopped(results: Results, subject: str, dataset: str, method: str, epsilon: str) -> str:
    """Say which limit was passed, if one was."""
    rows = _rows(results, subject, dataset, method, epsilon)
    limits = {"time": f"> {LIMITS.seconds / 60:g} min", "memory": f"> {LIMITS.gigabytes:g} GB"}
    return limits.get(rows[0].get("stopped", ""), "") if rows else ""


def _best(results: Results, dataset: str, method: str, epsilon: str) -> dict[str, float] | None:
    """Return the least error of any peer, for each number of columns."""
    found = [row for peer in PEERS if (row := _found(results, peer, dataset, method, epsilon)) is not None]
    return {name: min(row[name] for row in found) for name in DISTANCES} if found else None


def _is_as_good(results: Results, dataset: str, method: str, epsilon: str) -> bool | None:
    ours, best = _ours(results, dataset, method, epsilon), _best(results, dataset, method, epsilon)
    return None if ours is None or best is None else all(ours[name] <= ALIKE * best[name] for name in DISTANCES[1:])


def _is_faster(results: Results, dataset: str, method: str, epsilon: str) -> bool | None:
    """Whether every peer takes at least twice as long; one that passed the limit took at least the limit."""
    ours = _ours(results, dataset, method, epsilon)
    times = [took for peer in PEERS if (took := _seconds(results, peer, dataset, method, epsilon)) is not None]
    return None if ours is None or not times else all(took >= FASTER * ours["cpu"] for took in times)


def _seconds(results: Results, subject: str, dataset: str, method: str, epsilon: str) -> float | None:
    found = _found(results, subject, dataset, method, epsilon)
    if found is not None:
        return float(found["cpu"])
    rows = _rows(results, subject, dataset, method, epsilon)
    return LIMITS.seconds if rows and rows[0].get("stopped") == "time" else None


def _errors(results: Results) -> Table:
    return Table(
        title=f"Synthetic tables: mean total-variation distance of marginals of one / two / three columns, δ = {DELTA}",
        columns=("data", "method", "ε", *NAMES.values(), "best peer ÷ ours"),
        rows=tuple(_error_row(results, *place) for place in _places(SHOWN)),
        remarks=(
            ", ".join(map(str, goals(results))) + ".",
            f"All marginals with up to {CELLS:,} cells; one row more or less; samples as large as the table. Means of "
            f"{RUNS} run of ours, single runs of peers. Adult has 48,842 rows and 14 columns, PUMS (Fulton County, "
            "ages as they are, incomes in steps of 5,000) 25,766 and 16, nltcs 21,574 and 16 of two values each. The "
            "same cells are declared to everybody.",
            _sampling(results),
            *results.missing(),
        ),
    )


def _without_privacy(results: Results) -> Table:
    rows = []
    for dataset in SYNTH_SETS:
        found = (results.find(subject="floor", dataset=dataset, method=method) for method in FLOORS)
        rows.append((dataset, *map(_written, found)))
    return Table(
        title="Without privacy, the same distances",
        columns=("data", *FLOORS.values()),
        rows=tuple(rows),
        remarks=(
            "The first is about as near as rows drawn from the truth come; the second knows every column exactly, and "
            "no link between columns.",
        ),
    )


def _error_row(results: Results, dataset: str, method: str, epsilon: str) -> tuple[str, ...]:
    ours, best = _ours(results, dataset, method, epsilon), _best(results, dataset, method, epsilon)
    told = [
        _written(_found(results, subject, dataset, method, epsilon))
        if not (passed := _stopped(results, subject, dataset, method, epsilon))
        else passed
        for subject in NAMES
    ]
    times = " / ".join(ratio(best[name], ours[name]) for name in DISTANCES) if ours and best else MISSING
    return dataset, SHOWN[method], epsilon, *told, times


def _written(row: dict[str, Any] | None) -> str:
    return MISSING if row is None else " / ".join(f"{row[name]:.4f}" for name in DISTANCES)


def _sampling(results: Results) -> str:
    """Say how the peers draw rows, and what the other way would have given."""
    row = results.find(subject="smartnoise-synth", dataset="Adult", method="mst", epsilon="1") or {}
    ways = row.get("ways", {})
    figures = ", ".join(f"{way} {_written(found)}" for way, found in ways.items())
    return (
        "Both peers draw rows by mbi 1.1, whose default puts rows with equal parents in order, which ties columns "
        "together that are not; its other way draws independent rows. Each cell shows the way with the lower error "
        f"for three columns. SmartNoise's MST on Adult at ε = 1: {figures or MISSING}."
    )


def _costs(results: Results) -> Table:
    columns = [f"{name}, CPU s" for name in NAMES.values()] + [f"{name}, MB" for name in NAMES.values()]
    return Table(
        title="Synthetic tables: time of a fit with a sample, and peak memory of its process",
        columns=("data", "method", "ε", *columns),
        rows=tuple(_cost_row(results, *place) for place in _places()),
        remarks=(
            f"In brackets: how many times as long as ours. A process that takes more than {LIMITS.seconds / 60:g} CPU "
            f"minutes or {LIMITS.gigabytes:g} GB is stopped. Peers are asked at ε = {FIRST}, and not for "
            "cells that would take them very long. Imports are not in the time, but in the memory. Wall clocks are in "
            "the JSON.",
        ),
    )


def _cost_row(results: Results, dataset: str, method: str, epsilon: str) -> tuple[str, ...]:
    ours = _ours(results, dataset, method, epsilon)
    found = {subject: _found(results, subject, dataset, method, epsilon) for subject in NAMES}
    times = [number(ours["cpu"]) if ours else MISSING]
    for peer in PEERS:
        took, passed = (
            _seconds(results, peer, dataset, method, epsilon),
            _stopped(results, peer, dataset, method, epsilon),
        )
        more = "> " if passed else ""
        brackets = f" ({more}{ratio(took, ours['cpu'])})" if took is not None and ours else ""
        times.append((passed or (number(took) if took is not None else MISSING)) + brackets)
    memory = [number(row["peak_mb"]) if row else MISSING for row in found.values()]
    return dataset, SHOWN[method], epsilon, *times, *memory
