"""Attacks on identity: who is alone in a table, who is named by a list, who is found by what is known roughly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import Table, number

__all__ = ["measure", "tables"]

MOST_SECONDS: Final = 300
# The voters of Cambridge, Massachusetts, in 1997: 54,805 people of one town. [Swe02]
CAMBRIDGE: Final = {
    "birth date alone": "12 %",
    "birth date and sex": "29 %",
    "birth date and the first three digits of the ZIP code": "69 % (5-digit ZIP code, of which a town has few)",
    "birth date and ZIP code": "97 % (full postal code)",
    "birth date, sex and ZIP code": "",
}


def measure(*, quick: bool, data: Path | None) -> Results:
    """Attack real data, and made-up rows for the time; without a folder, only these."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        folder = "-" if data is None else str(data.resolve())
        gathering.run(environment, "discreet_attacks_identity", folder)
        gathering.failures = {name.replace(folder, "DATA"): why for name, why in gathering.failures.items()}
    if data is None:
        gathering.failures["real data"] = "not measured: name a folder with the real data sets by --data"
    return gathering.results("attacks_identity")


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge the time: of all processes of the machine together this one needed so much."""
    cpu = results.figure("cpu", job="time")
    return (
        Goal(f"at most {MOST_SECONDS} s of CPU for all combinations", None if cpu is None else cpu <= MOST_SECONDS),
    )


def tables(results: Results) -> tuple[Table, ...]:
    """Show one table for each question."""
    return (_alone(results), _found(results), _hidden(results), _time(results))


def _of(results: Results, job: str) -> list[dict[str, Any]]:
    return [row for row in results.rows if row["job"] == job]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _alone(results: Results) -> Table:
    rows = [
        (row["known"], f"{row['hits']:,} of {row['of']:,}", _share(row["hits"] / row["of"]), CAMBRIDGE[row["known"]])
        for row in _of(results, "uniqueness")
    ]
    named = [
        f"a list of visits without names, joined with the voters on ZIP code, birth date and sex: {row['hits']:,} of "
        f"{row['of']:,} visits fit exactly one name, and {row['right']:,} of these names are right "
        f"(estimated without the truth: {_share(row['estimated'])})"
        for row in _of(results, "linkage")
    ]
    return Table(
        title="Voters who are alone with what is known of them (sweeney_synthetic)",
        columns=("known", "alone", "share", "Cambridge, 1997"),
        rows=tuple(rows),
        remarks=(*named, *results.missing()),
    )


def _found(results: Results) -> Table:
    return Table(
        title="People found in 100,000 film ratings without names (movietweetings)",
        columns=(
            "ratings known",
            "of these false",
            "dates off by",
            "targets",
            "found",
            "at 95 %",
            "wrong",
            "though absent",
        ),
        rows=tuple(
            (
                str(row["known"]),
                str(row["false_facts"]),
                f"up to {row['days']} days",
                f"{row['of']:,} of {row['eligible']:,}",
                _share(row["right"]),
                f"{_share(row['low'])} to {_share(row['high'])}",
                _share(row["wrong"]),
                _share(row["absent"]),
            )
            for row in _of(results, "scoreboard")
        ),
        remarks=("though absent: somebody was named after the target's ratings had been taken out",),
    )


def _hidden(results: Results) -> Table:
    return Table(
        title="The same people in private counts of films, eight ratings known and everybody else's counts exactly",
        columns=("ε", "said to be there, and are", "said to be there, and are not", "no attacker exceeds"),
        rows=tuple(
            (row["epsilon"], _share(row["present"]), _share(row["absent"]), _share(row["ceiling"]))
            for row in _of(results, "item counts")
        ),
        remarks=("at most 20 films count for one person; there is no record to be found, only presence to be guessed",),
    )


def _time(results: Results) -> Table:
    return Table(
        title="All combinations of up to four of ten columns",
        columns=("rows", "combinations", "seconds of CPU", "seconds", "load", "one GROUP BY of DuckDB, seconds of CPU"),
        rows=tuple(
            (
                f"{row['rows']:,}",
                str(row["combinations"]),
                number(row["cpu"]),
                number(row["wall"]),
                number(row["load"], 2),
                number(row["cpu_of_one_group_by"]),
            )
            for row in _of(results, "time")
        ),
        remarks=tuple(map(str, goals(results))),
    )
