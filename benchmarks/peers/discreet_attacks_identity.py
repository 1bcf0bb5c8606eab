"""Discreet: who is alone, who is named by a list, and who is found by what is known roughly; and how long it takes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.peers.protocol import emit, is_quick
from benchmarks.timing import once
from discreet.lab import attacks

ROWS, SIZE = 10_000_000, 4
MADE = """
SELECT CAST(1000 * random() * random() AS INTEGER) AS zip,
DATE '1930-01-01' + CAST(27000 * random() AS INTEGER) AS born,
random() < 0.5 AS sex, CAST(6 * random() * random() AS INTEGER) AS origin, CAST(16 * random() AS INTEGER) AS school,
CAST(2000 * random() * random() * random() AS INTEGER) AS income, CAST(500 * random() * random() AS INTEGER) AS job,
CAST(5 * random() AS INTEGER) AS marital, CAST(8 * random() * random() * random() AS INTEGER) AS children,
CAST(60 * (random() + random() + random()) / 3 AS INTEGER) AS height FROM range({rows})
"""
# What an attacker knows of voters, from little to much; a list of one town has few ZIP codes, as these have districts.
KNOWN = {
    ("birth_date",): "birth date alone",
    ("birth_date", "sex"): "birth date and sex",
    ("birth_date", "district"): "birth date and the first three digits of the ZIP code",
    ("birth_date", "zip"): "birth date and ZIP code",
    ("birth_date", "sex", "zip"): "birth date, sex and ZIP code",
}


def voters(folder: Path) -> None:
    """Count who is alone on the list of voters."""
    columns = {"birth_date": "birth_date", "sex": "sex", "district": "left(zip, 3)", "zip": "zip"}
    found = attacks.uniqueness(folder / "voters.parquet", columns, size=3).value
    for known, words in KNOWN.items():
        one = found.of(*known).unique
        emit(job="uniqueness", known=words, hits=one.hits, of=one.of)


def visits(folder: Path) -> None:
    """Name visits by the list of voters; the truth tells how many names are right."""
    table, names = folder / "discharge.parquet", folder / "voters.parquet"
    found = attacks.linkage(table, names, on=["zip", "birth_date", "sex"], name="name").value
    joined = (
        f"SELECT visit_id, any_value(v.voter_id) AS named, count(*) AS fits FROM '{table}' "
        f"JOIN '{names}' v USING (zip, birth_date, sex) GROUP BY visit_id HAVING count(*) = 1"
    )
    truth = f"SELECT count(*) FROM ({joined}) JOIN '{folder / 'truth.parquet'}' USING (visit_id) WHERE named = voter_id"
    ((right,),) = duckdb.execute(truth).fetchall()
    emit(job="linkage", hits=found.named.hits, of=found.named.of, right=right, estimated=found.right)


def films(file: Path) -> None:
    """Find people by a few ratings, and look for them in private counts of films."""
    names: dict[str, Any] = {"person": "user_id", "item": "imdb_id", "value": "rating", "when": "timestamp"}
    targets = 200 if is_quick() else 2000
    for false_facts, known in ((0, (2, 4, 8)), (2, (8,))):
        found = attacks.scoreboard(file, **names, known=known, targets=targets, false_facts=false_facts).value
        for trial in found.trials:
            low, high = trial.right.interval()
            labels = {"known": trial.known, "days": trial.days, "false_facts": false_facts, "of": trial.right.of}
            shares = {"right": trial.right.share, "wrong": trial.wrong.share, "absent": trial.absent.share}
            emit(job="scoreboard", eligible=trial.eligible, low=low, high=high, **labels, **shares)
    for epsilon in ("0.1", "1", "10"):
        counts = attacks.item_counts(file, epsilon=epsilon, **names, targets=targets).value
        emit(
            job="item counts", epsilon=epsilon, present=counts.present.share, absent=counts.absent.share,
            of=counts.present.of, ceiling=counts.ceiling,
        )  # fmt: skip


def large() -> None:
    """Time all combinations of up to four of ten columns; and one of them in DuckDB, for comparison."""
    rows = ROWS // 100 if is_quick() else ROWS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        duckdb.execute(f"COPY ({MADE.format(rows=rows)}) TO '{file}' (FORMAT parquet)")
        load = os.getloadavg()[0]
        counted: list[int] = []
        timing = once(lambda: counted.append(len(attacks.uniqueness(file, size=SIZE).value.combinations)))
        query = f"SELECT sum(n) FILTER (n = 1) FROM (SELECT count(*) AS n FROM '{file}' GROUP BY born, zip, marital)"
        one = once(lambda: duckdb.execute(query).fetchall())
    emit(
        job="time", rows=rows, combinations=counted[0], cpu=timing.cpu, wall=timing.wall, load=round(load, 1),
        cpu_of_one_group_by=one.cpu, wall_of_one_group_by=one.wall,
    )  # fmt: skip


def main() -> None:
    """Report on the data sets in the folder that the command line names, and the time on rows made here."""
    data = Path(sys.argv[1])
    if data != Path("-"):
        voters(data / "sweeney_synthetic")
        visits(data / "sweeney_synthetic")
        films(data / "movietweetings" / "ratings_100k.parquet")
    large()


if __name__ == "__main__":
    main()
