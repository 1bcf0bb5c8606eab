"""Tumult Analytics on Spark 3.5, beside plain Spark of that version: `tumult_engines SECONDS`."""

from __future__ import annotations

import sys
from typing import Any

from tmlt.analytics import (  # type: ignore[import-not-found]
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

from benchmarks.crowd_names import CITIES, EPSILON, HIGH
from benchmarks.engine_names import COUNTED, JOB, SUMMED
from benchmarks.peers.peer_engines import compare


def ask(frame: Any, job: str) -> None:
    """Ask for the count, and for the sum if it is wanted: the mean is their quotient."""
    budget = PureDPBudget(float(EPSILON))
    session = Session.from_dataframe(
        PureDPBudget(float("inf")), "crowd", frame, protected_change=AddRowsWithID("user_id")
    )
    bounded = (
        QueryBuilder("crowd")
        .enforce(MaxGroupsPerID("city", JOB.max_groups))
        .enforce(MaxRowsPerGroupPerID("city", JOB.max_rows))
        .groupby(KeySet.from_dict({"city": list(range(CITIES))}))
    )
    asked = {COUNTED: [bounded.count()], SUMMED: [bounded.count(), bounded.sum("income", 0.0, float(HIGH))]}
    for query in asked[job]:
        session.evaluate(query, budget).collect()


if __name__ == "__main__":
    compare(ask, seconds=float(sys.argv[1]))
