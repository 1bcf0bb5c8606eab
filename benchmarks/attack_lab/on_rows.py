"""Attacks on rows and on tables of the same rows: uniqueness, linkage, scoreboard, differencing, marginals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.attack_lab import worlds
from benchmarks.attack_lab.contests import DELTA, Outcome, Setting, added
from discreet import data
from discreet.lab import attacks
from discreet.lab.attacks.count_tables import noised
from discreet.lab.attacks.success_rates import Success
from discreet.privacy import PureDP, Relation

__all__ = ["differencing", "linkage", "marginals", "scoreboard", "uniqueness"]

_KEY = ("zip", "birth_date", "sex")
_CELLS = {"zip": "zip", "born": "year(birth_date)", "sex": "sex"}
_CONDITIONS = {
    "all": "",
    "young": "age_group <> '95+'",
    "short": "nights < 28",
    "early": "admitted < DATE '2025-12-31'",
}
_DIARIES: dict[str, Any] = {"person": "user_id", "item": "imdb_id", "value": "rating", "when": "timestamp"}
_SHAPE, _PEOPLE = (2, 10, 4, 2), 24


def uniqueness(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Count who is alone with ZIP code, birth date and sex; in noisy counts, look for who is alone in a cell."""
    if setting.data is not None:
        return _alone(_real(setting.data, "voters.parquet"), "sweeney_synthetic, voters", epsilon)
    with data.folder("hospital") as folder:
        return _alone(folder / "voters.parquet", "hospital (bundled), voters", epsilon)


def _alone(rows: Path, told: str, epsilon: Fraction | None) -> Outcome:
    if epsilon is None:
        found = attacks.uniqueness(rows, _KEY, size=3).value
        return Outcome(data=told, success=found.of(*_KEY).unique, without=found.of("zip", "sex").unique)
    cells = attacks.lone_cells(rows, _CELLS, epsilon=epsilon).value
    return Outcome(
        data=told, success=cells.alone, without=cells.empty, event=PureDP(epsilon), relation=Relation.ADD_REMOVE
    )


def linkage(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Join visits without names with a list of voters."""
    if setting.data is not None:
        rows, names = (_real(setting.data, name) for name in ("discharge.parquet", "voters.parquet"))
        told, found = "sweeney_synthetic, visits", attacks.linkage(rows, names, on=_KEY, name="name").value
    else:
        with data.folder("hospital") as folder:
            rows, names = folder / "stays.parquet", folder / "voters.parquet"
            found = attacks.linkage(rows, names, on=_KEY, name="name").value
        told = "hospital (bundled), stays"
    return Outcome(data=told, success=found.named, without=Success(found.by_chance, found.named.of))


def _real(folder: Path, name: str) -> Path:
    return folder / "sweeney_synthetic" / name


def scoreboard(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Find diaries by eight entries known roughly; in noisy counts of items, find out whether somebody is counted."""
    rows: Any = worlds.films(setting.times(2000))
    told = "made up: 20 films of 2,000 a person"
    if setting.data is not None:
        rows, told = setting.data / "movietweetings" / "ratings_100k.parquet", "movietweetings"
    targets = setting.times(1000)
    if epsilon is None:
        found = attacks.scoreboard(rows, **_DIARIES, known=(8,), days=(14,), targets=targets).value.trials[0]
        return Outcome(data=told, success=found.right, without=found.absent)
    counted = attacks.item_counts(rows, epsilon=epsilon, **_DIARIES, known=8, targets=targets).value
    return Outcome(
        data=told,
        success=counted.present,
        without=counted.absent,
        event=PureDP(epsilon),
        relation=Relation.ADD_REMOVE,
    )


def differencing(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Read a diagnosis off a difference of published counts."""
    by, told = ["district", "sex", "diagnosis"], "hospital (bundled), 4 tables"
    with data.folder("hospital") as folder:
        rows = folder / "stays.parquet"
        exact = [
            attacks.tabulate(rows, by, where=where, name=name, hide_below=5).value
            for name, where in _CONDITIONS.items()
        ]
        if epsilon is None:
            found = attacks.differencing(rows, exact, attribute="diagnosis", person="patient").value
            return Outcome(data=told, success=found.named, without=found.without)
        tables, event = noised(exact, epsilon=epsilon, delta=DELTA)
        found = attacks.differencing(
            rows,
            tables,
            attribute="diagnosis",
            person="patient",
            isolating=exact,
            event=event,
            draws=setting.times(200),
        ).value
    assert found.fresh is not None  # The tables are noisy.
    return Outcome(
        data=told, success=found.fresh, without=found.fresh_without, event=event, relation=Relation.ADD_REMOVE
    )


def marginals(epsilon: Fraction | None, setting: Setting) -> Outcome:
    """Rebuild rows of small blocks from all their tables of up to three columns."""
    relation, found, mechanism = Relation.ADD_REMOVE, [], None
    for _ in range(setting.times(6)):
        block = worlds.block(_SHAPE, _PEOPLE, ways=3)
        if epsilon is not None:
            mechanism = attacks.gaussian_counts(
                block.marginals.cells,
                squared_sensitivity=len(block.marginals.tables),
                epsilon=epsilon,
                delta=DELTA,
                relation=relation,
            )
        found.append(attacks.marginal_reconstruction(block, (), mechanism=mechanism).value)
    return Outcome(
        data=f"made up: blocks of {_PEOPLE} people, {found[0].tables} tables, {found[0].cells} numbers",
        success=added([one.fresh for one in found]),
        without=added([one.without for one in found]),
        event=None if mechanism is None else mechanism.event,
        relation=relation,
    )
