"""Attacks: how often each is right about raw and about private releases, and what no attacker exceeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.attack_lab.listed import ERROR
from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table

__all__ = ["goals", "measure", "table", "tables"]

RAW: Final = "raw"
LEVELS: Final = ("0.1", "1", "10")


def measure(*, quick: bool, data: Path | None) -> Results:
    """Run all attacks: on bundled and made-up people, and on real data where a folder has them."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        folder = () if data is None else (str(data.resolve()),)
        gathering.run(environment, "discreet_attacks", *folder)
        for path in folder:
            gathering.failures = {name.replace(path, "DATA"): why for name, why in gathering.failures.items()}
    return gathering.results("attacks")


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge all ceilings together, and that every raw release falls."""
    private = [row for row in results.rows if row["release"] != RAW]
    return (
        Goal(f"all {len(private)} ceilings are kept", all(row["kept"] for row in private) if private else None),
        Goal("nothing costs more than its ε", all(map(_paid, private)) if private else None),
    )


def _paid(row: dict[str, Any]) -> bool:
    return bool(row["spent"] <= float(row["release"]))


def tables(results: Results) -> tuple[Table, ...]:
    """Show the one table, and then what was attacked."""
    return table(results), _releases(results)


def table(results: Results) -> Table:
    """Show every attack in a row."""
    return Table(
        title="Share of right guesses: raw or naive release, and ours at ε = 0.1, 1, 10",
        columns=(
            "attack", "right is", "raw or naive", *(f"ours, ε = {level}" for level in LEVELS),
            "no attacker exceeds, ε = 0.1, 1, 10", "kept",
        ),
        rows=tuple(_row(results, name) for name in _names(results)),
        remarks=(
            ", ".join(map(str, goals(results))) + ".",
            "In brackets: limits at 95 % by Clopper and Pearson. Guesses about ours are independent: each is about "
            "noise of its own. Those about a raw release are not quite: there limits only tell how many they are. "
            "“Without” is the same attacker on a release without the person, or made of somebody else; where nothing "
            "is said, the secret is a fair coin, and a coin is right in 50 %.",
            "What no attacker exceeds is read off the trade-off curve of the event that was charged, at the upper "
            "limit of what is right without the person at the same ε; for coins it is the best guess at even odds. "
            "“Kept” says that the lower limit of the share is not above it; in each cell it is denied wrongly with a "
            f"chance of {ERROR:g} at most (twice that for floating point, where the more telling input is taken).",
            "Linkage has no private counterpart: ours releases tables, not rows, so there is no row to join. "
            "Uniqueness and scoreboard are another question there: whether somebody is in a cell, or counted, at all.",
            *results.missing(),
        ),
    )  # fmt: skip


def _names(results: Results) -> list[str]:
    return list(dict.fromkeys(row["name"] for row in results.rows))


def _row(results: Results, name: str) -> tuple[str, ...]:
    raw = results.find(name=name, release=RAW) or {}
    ours = [results.find(name=name, release=level) for level in LEVELS]
    if not any(ours):
        return name, raw["right"], _cell(raw), *["no rows to join"] * len(LEVELS), MISSING, MISSING
    ceilings = ", ".join(MISSING if row is None else _percent(row["ceiling"]) for row in ours)
    kept = "yes" if all(row is not None and row["kept"] for row in ours) else "NO"
    return name, raw["right"], _cell(raw), *map(_cell, ours), ceilings, kept


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return MISSING
    found = row["success"]
    without = f", without {_percent(row['baseline'])}" if row["without"] else ""
    return f"{_percent(found['share'])} ({100 * found['low']:.1f} to {100 * found['high']:.1f}){without}"


def _percent(share: float) -> str:
    """Write a share in percent; what is not all does not become it by rounding."""
    text = f"{100 * share:.1f}"
    return "> 99.9 %" if text == "100.0" and share < 1 else f"{text} %"


def _releases(results: Results) -> Table:
    return Table(
        title="What was attacked",
        columns=("attack", "data", "raw or naive release", "ours", "baseline", "guesses: raw, ours", "CPU seconds"),
        rows=tuple(_release(results, name) for name in _names(results)),
        remarks=(
            "δ = 10⁻⁶ wherever noise is Gaussian, and 0 wherever it is Laplace. Data that are made up are drawn anew "
            "in each run; attacks and releases draw from the secure source, so a run differs from the next by chance.",
        ),
    )


def _release(results: Results, name: str) -> tuple[str, ...]:
    rows = [row for row in results.rows if row["name"] == name]
    raw = rows[0]
    guesses = ", ".join(f"{row['success']['of']:,}" for row in rows[:2])
    seconds = f"{sum(row['cpu'] for row in rows):.0f}"
    return name, raw["data"], raw["raw"], raw["ours"], raw["without_is"], guesses, seconds
