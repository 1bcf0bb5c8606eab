"""Print how well tracing and reconstruction do, from exact counts to very private ones, δ = 1e-6.

    python scripts/attack_counts.py

Everybody in it is made up, but for the block of patients, who are those of the bundled county.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from discreet import data
from discreet.lab import attacks
from discreet.lab.attacks.marginal_reconstruction import block_of
from discreet.lab.attacks.populations import VectorRelease
from discreet.privacy import Relation

LEVELS = ("10", "1", "0.1")
WHERE = "zip = '37247' AND admitted < DATE '2025-02-01'"


def main() -> None:
    """Print one table for each attack."""
    print("| counts | members found | … not in it | no attacker exceeds |\n|---|---|---|---|")
    print(*traced(), sep="\n")
    print("\n| counts | secrets right | no attacker exceeds | seconds |\n|---|---|---|---|")
    print(*secrets(), sep="\n")
    print("\n| tables | rows rebuilt | … without their row | no attacker exceeds |\n|---|---|---|---|")
    print(*rows(), sep="\n")


def traced(people: int = 50, attributes: int = 500, fpr: float = 0.05) -> Iterator[str]:
    """Trace made-up people by coins, accusing one stranger in twenty."""
    population = attacks.coins(attributes)
    members, strangers = population.draw(people), population.draw(400)
    for level in (None, *LEVELS):
        found = attacks.tracing(
            members,
            strangers,
            population=population,
            mechanism=private(attributes, attributes, level, Relation.REPLACE_ONE),
            trials=people if level is None else 1000,
        ).value
        shares = (found.found(fpr).share, found.accused(fpr).share, found.ceiling(fpr))
        yield line(level, found.deviation, shares)


def secrets(people: int = 1000, queries: int = 20_000) -> Iterator[str]:
    """Rebuild a thousand secrets from twenty thousand counts."""
    coins = attacks.coins(people).draw(1)[0]
    for level in (None, *LEVELS):
        begun = time.perf_counter()
        mechanism = private(queries, queries, level, Relation.REPLACE_ONE)
        found = attacks.reconstruction(coins, queries=queries, mechanism=mechanism).value
        told = line(level, found.deviation, (found.right.share, found.ceiling))
        yield f"{told} {time.perf_counter() - begun:.1f} |"


def rows() -> Iterator[str]:
    """Rebuild a block of patients from all tables of up to three columns."""
    with data.folder("hospital") as folder:
        columns = ["sex", "age_group", "diagnosis"]
        block = block_of(folder / "stays.parquet", columns, ways=3, where=WHERE)
    plan = block.marginals
    for level in (None, *LEVELS):
        mechanism = private(plan.cells, len(plan.tables), level, Relation.ADD_REMOVE)
        trials = None if level is None else 200
        found = attacks.marginal_reconstruction(block, columns, mechanism=mechanism, trials=trials).value
        yield line(level, found.deviation, (found.fresh.share, found.without.share, found.ceiling))


def private(cells: int, change: int, level: str | None, relation: Relation) -> VectorRelease | None:
    """Return the Gaussian mechanism for all counts together."""
    if level is None:
        return None
    return attacks.gaussian_counts(cells, squared_sensitivity=change, epsilon=level, delta="1e-6", relation=relation)


def line(level: str | None, deviation: float, shares: tuple[float | None, ...]) -> str:
    """Write one row of a table."""
    name = "exact" if level is None else f"ε = {level}, ± {deviation:,.3g}"
    return f"| {name} | " + " | ".join("" if share is None else f"{100 * share:.1f} %" for share in shares) + " |"


if __name__ == "__main__":
    main()
