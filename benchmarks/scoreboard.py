"""One line for each topic: our figure, the best peer's, the limit and whether it was reached, quoted from its tables.

A line says in which cells of the topic's own tables its figures stand, so that nothing is on the scoreboard that is not
on the page of the topic; only a ratio that no column has is computed, from the two figures beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from benchmarks.table import MISSING, Table, number

__all__ = ["GROUPS", "HEADLINES", "Cell", "Headline", "limits_reached", "scoreboard"]

_NUMBER: Final = re.compile(r"-?[\d,]*\.?\d+")
_VERDICT: Final = re.compile(r": (yes|NO|not measured)\b")


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure in one table of a topic: its column, what other columns of its row say, which part between slashes."""

    column: str
    row: Mapping[str, str]
    table: int = 0
    part: int = 0

    def text(self, tables: Sequence[Table]) -> str:
        """Return the figure, without the limits in parentheses; there must be exactly one such cell."""
        table = tables[self.table]
        place = {name: at for at, name in enumerate(table.columns)}
        [found] = [row for row in table.rows if all(row[place[name]] == said for name, said in self.row.items())]
        return found[place[self.column]].split(" / ")[self.part].partition(" (")[0].strip()


@dataclass(frozen=True, slots=True)
class Headline:
    """What a topic is called, and the figures that stand for it."""

    title: str
    measured: str
    ours: Cell
    limit: str = ""  # as a table of the topic words it
    peers: Mapping[str, Cell] = field(default_factory=lambda: MappingProxyType({}))
    more_is_better: bool = False

    def line(self, topic: str, tables: Sequence[Table]) -> tuple[str, ...]:
        """Return the line of the scoreboard."""
        ours, (name, best) = self.ours.text(tables), self._best(tables)
        reached, judged = limits_reached(tables)
        return (
            f"[{self.title}]({topic.replace('_', '-')}.md)",
            self.measured,
            ours,
            f"{name}: {best}" if name else MISSING,
            MISSING if self.more_is_better or not name else self._ratio(name, tables),
            self.limit or MISSING,
            self._verdict(tables),
            f"{reached} of {judged}" if judged else MISSING,
        )

    def _best(self, tables: Sequence[Table]) -> tuple[str, str]:
        figures = {name: cell.text(tables) for name, cell in self.peers.items()}
        best = max if self.more_is_better else min
        return best(figures.items(), key=lambda item: _value(item[1]), default=("", ""))

    def _ratio(self, name: str, tables: Sequence[Table]) -> str:
        column, theirs = f"{name} / ours", self.peers[name]
        if column in tables[theirs.table].columns:
            return Cell(column, theirs.row, theirs.table).text(tables)
        return f"{number(_value(theirs.text(tables)) / _value(self.ours.text(tables)))}×"

    def _verdict(self, tables: Sequence[Table]) -> str:
        """Return what the row of our figure, or a remark below its table, says of the limit."""
        if not self.limit:
            return MISSING
        table = tables[self.ours.table]
        place = {name: at for at, name in enumerate(table.columns)}
        rows = (row for row in table.rows if all(row[place[name]] == said for name, said in self.ours.row.items()))
        said = "\n".join([*(cell for row in rows for cell in row), *table.remarks])
        [verdict] = set(re.findall(rf"{re.escape(self.limit)}(?: \([^)]*\))?: (yes|NO)\b", said))
        return str(verdict)


def _value(text: str) -> float:
    found = _NUMBER.search(text)
    if found is None:
        raise ValueError(f"a figure of the scoreboard is no number: {text!r}")
    return float(found[0].replace(",", ""))


def limits_reached(tables: Sequence[Table]) -> tuple[int, int]:
    """Return how many limits of a topic were reached, and how many there are."""
    verdicts = []
    for table in tables:
        judged = [at for at, name in enumerate(table.columns) if name.startswith("goal")]
        cells = [row[at] for row in table.rows for at in judged]
        verdicts += [cell for cell in cells if cell in ("yes", "NO")]
        verdicts += _VERDICT.findall("\n".join([*cells, *table.remarks]))
    return verdicts.count("yes"), len(verdicts)


_DPSGD: Final = "DP-SGD q=0.01 σ=1 T=10,000: ε"
_DPSGD_PEERS: Final = ("dp-accounting PLD 1e-3", "dp-accounting PLD 1e-4", "prv-accountant PRV 0.01", "opacus PRV")
_LAPLACE: Final = {"noise": "discrete Laplace", "scale or σ": "1", "call": "vector"}
_MEDIAN: Final = {
    "values": "1,000,000",
    "job": "median",
    "ours": "exponential mechanism",
    "relation": "add-remove",
}
_GROUPED: Final = {"job": "at most 3 groups × 2 rows a user", "clock": "CPU"}
_QUERY_PEERS: Final = ("OpenDP (Polars)", "Qrlew (DuckDB)", "SmartNoise SQL (DuckDB)", "PipelineDP (local)")
_ON_SPARK: Final = {"rows": "10,000,000", "question": "count, bounded"}
_IMPORTED: Final = ("opendp", "python-dp", "diffprivlib", "dp-accounting", "prv-accountant", "opacus")
_MLP: Final = {"network": "mlp", "batch": "256", "threads": "1"}
_HOUSES: Final = {"data": "California housing", "estimator": "linear regression"}
_MST: Final = {"data": "Adult", "method": "MST", "ε": "1"}
_LINEAR: Final = {"model": "fixed features + linear", "ε": "3.000"}
_PUBLISHED: Final = "release.publish: price, charge, read, draw, tidy, bundle with report"

HEADLINES: Final[Mapping[str, Headline]] = {
    "noise": Headline(
        "Noise",
        "discrete Laplace, scale 1: CPU ns a sample",
        Cell("Discreet", _LAPLACE),
        "≤ 10 ns",
        {peer: Cell(peer, _LAPLACE) for peer in ("opendp", "python-dp", "diffprivlib")},
    ),
    "accounting": Headline(
        "Accounting",
        "ε of 10,000 steps of DP-SGD, tight accountants: CPU ms",
        Cell("cold ms", {"task (δ=1e-5)": _DPSGD, "accountant": "discreet epsilon"}),
        "≤ 50 ms",
        {peer: Cell("cold ms", {"task (δ=1e-5)": _DPSGD, "accountant": peer}) for peer in _DPSGD_PEERS},
    ),
    "imports": Headline(
        "Imports",
        "every part and its libraries, above NumPy: CPU s",
        Cell("above NumPy, s", {"library": "discreet, every part and its libraries"}),
        "",
        {peer: Cell("above NumPy, s", {"library": peer}) for peer in _IMPORTED},
    ),
    "ledger": Headline(
        "Ledger",
        "durable charges in a second, one writer, (ε, δ)",
        Cell("a second", {"what": "one writer, (ε, δ)"}),
        "≥ 1,500 a second",
    ),
    "ledger_server": Headline(
        "Ledger on a server",
        "durable charges in a second, 16 processes",
        Cell("a second", {"what": "server, 16 processes"}),
        "≥ 1,500 a second",
    ),
    "speed": Headline(
        "Quantiles",
        "median of 1,000,000 floats: CPU ns a value",
        Cell("Discreet", _MEDIAN),
        "≥ 5× the fastest peer",
        {peer: Cell(peer, _MEDIAN) for peer in ("opendp", "python-dp", "diffprivlib")},
    ),
    "accuracy": Headline(
        "Accuracy",
        "cells in which a peer is surely more than a tenth better",
        Cell("surely > 1.1", {"asked": "all"}),
        "no cell above 1.1",
    ),
    "quantile_intervals": Headline(
        "Intervals of quantiles",
        "lowest coverage of 95 % intervals in a cell of six real columns, per cent",
        Cell("lowest coverage, %", {"asked by": "all"}),
        "every cell covers in 95 %",
    ),
    "population": Headline(
        "Intervals for populations",
        "lowest coverage of 95 % intervals in a cell, of 50 to a million rows, per cent",
        Cell("lowest coverage, %", {"asked": "all cells"}, table=1),
        "every cell covers in 95 %",
    ),
    "quantiles_at_once": Headline(
        "Several quantiles",
        "nine deciles at once, ε = 1, 10,000 normal rows: mean error / that of one decile",
        Cell(
            "values / one's",
            {"data": "normal", "asked by": "dp.quantiles, add-remove", "budget": "ε = 1"},
        ),
        "values ≤ 3.5×",
    ),
    "robustness": Headline(
        "Robust estimates",
        "coverage of 95 % intervals: Huber, n = 1,000, µ = 0.25",
        Cell("coverage, worst", {"estimate": "Huber", "n": "1,000", "µ": "0.25"}),
        "≥ 0.93",
    ),
    "queries": Headline(
        "Private group-by",
        "10,000,000 rows, 1,000 groups: CPU s",
        Cell("Discreet", _GROUPED),
        "≤ 3.5× plain",
        {peer: Cell(peer, _GROUPED) for peer in _QUERY_PEERS},
    ),
    "engines": Headline(
        "Engines",
        "10,000,000 rows, count of 1,000 cities, bounded, local[2]: s on the wall",
        Cell("wall", _ON_SPARK | {"asked of": "Discreet"}),
        "≤ 3× COUNT(DISTINCT unit)",
        {peer: Cell("wall", _ON_SPARK | {"asked of": peer}) for peer in ("Tumult Analytics", "PipelineDP")},
    ),
    "corpus": Headline(
        "Queries of analysts",
        "answered rightly, of 169",
        Cell("Discreet", {"data": "all"}),
        "ours all as expected",
        {peer: Cell(peer, {"data": "all"}) for peer in ("SmartNoise SQL", "Qrlew")},
        more_is_better=True,
    ),
    "profile": Headline(
        "Profiles",
        "200 columns, 100,000 rows: CPU s",
        Cell("seconds of CPU", {"protected": "each row"}),
        "at most 60 s of CPU for all columns",
    ),
    "spread": Headline(
        "Predicted errors of queries",
        "intervals of 95 % that cover: revenue of a shop",
        Cell("covered", {"query": "revenue", "column": "revenue"}),
        "every interval covers as often as it says",
    ),
    "release_speed": Headline(
        "Speed of a release",
        "twelve tables, 10,000,000 rows: CPU s",
        Cell("CPU", {"job": _PUBLISHED}),
        "≤ 3.5× plain DuckDB, CPU",
    ),
    "running": Headline(
        "Running totals",
        "worst deviation over 365 days, beside a binary tree, in people",
        Cell("largest", {"way": "scaled square root"}),
        "within 10 % of what no way goes below",
        {"binary tree": Cell("largest", {"way": "binary tree"})},
    ),
    "units": Headline(
        "Two promises, families",
        "count by sex for a household and its people, beside the household alone: CPU",
        Cell("CPU, ratio", {"question": "count by sex", "protected": "household and person"}),
        "≤ 1.4×, CPU",
    ),
    "totals": Headline(
        "Totals where limits cut",
        "number of all flights, ρ = 0.001: releases whose interval holds it, per cent",
        Cell("held, %", {"table": "flights by origin", "price": "ρ = 0.001", "told": "number of all rows"}),
        "corrected totals hold in 94 % of releases",
    ),
    "workload": Headline(
        "Many queries at once",
        "256 running totals: sum of variances as times the optimum, beside noise on cells",
        Cell("ours", {"workload": "running totals", "of": "sum of variances"}),
        "Gaussian noise within 1.05 of the optimum",
        {"noise on cells": Cell("noise on cells", {"workload": "running totals", "of": "sum of variances"})},
    ),
    "release": Headline(
        "Errors of a release",
        "tidied releases that add up exactly",
        Cell("found", {"what": "tidied releases that add up exactly, in whole steps, not negative"}, table=1),
    ),
    "attacks": Headline(
        "Attacks",
        "members found by LiRA at 5 % false alarms: ours at ε = 1",
        Cell("ours, ε = 1", {"attack": "membership"}),
        "all 36 ceilings are kept",
        {"raw or naive": Cell("raw or naive", {"attack": "membership"})},
    ),
    "attacks_identity": Headline(
        "Re-identification",
        "385 combinations of columns, 10,000,000 rows: CPU s",
        Cell("seconds of CPU", {"rows": "10,000,000"}, table=3),
        "at most 300 s of CPU for all combinations",
    ),
    "audit": Headline(
        "Audits",
        "Laplace that claims ε = 1: at least this ε is shown",
        Cell("shown ε ≥", {"library": "discreet", "mechanism": "Laplace"}),
    ),
    "training_speed": Headline(
        "Speed of training",
        "a noisy step of a small network, batch 256: ms",
        Cell("ours, noisy", _MLP),
        "≤ 1.9× plain",
        {peer: Cell(peer, _MLP, part=1) for peer in ("Opacus hooks", "Opacus ghost", "torch.func compiled")},
    ),
    "people": Headline(
        "People with several rows",
        "500 people with 20 rows each, ε = 1 for a person: accuracy, per cent",
        Cell("ε = 1", {"trained by": "Discreet, at most 20 of a person's rows in a step"}),
        "≥ group privacy at ε = 1",
        {"Opacus": Cell("ε = 1", {"trained by": "Opacus, all rows, noise for 20 of them (group privacy)"})},
        more_is_better=True,
    ),
    "people_regression": Headline(
        "Regression for people",
        "intervals of coefficients, ε = 1, correlation 0.8: covered, least and greatest, per cent",
        Cell("covered of the others, %", {"correlation": "0.8", "ε": "1"}),
        "covers",
    ),
    "learning": Headline(
        "MNIST",
        "accuracy at ε = 3, per cent",
        Cell("accuracy, mean", _LINEAR),
        "≥ 98.5 %",
        {"published": Cell("published", _LINEAR)},
        more_is_better=True,
    ),
    "trees": Headline(
        "Trees",
        "boosted trees, late flights, ε = 1: AUC",
        Cell("ε = 1: boosted / forest / lines / diffprivlib", {"data": "flights"}),
        "lines, ε = 1",
        {"diffprivlib": Cell("ε = 1: boosted / forest / lines / diffprivlib", {"data": "flights"}, part=3)},
        more_is_better=True,
    ),
    "estimators": Headline(
        "Estimators",
        "linear regression of house values, ε = 1: R²",
        Cell("ε = 1: ours / diffprivlib", _HOUSES),
        "",
        {"diffprivlib": Cell("ε = 1: ours / diffprivlib", _HOUSES, part=1)},
        more_is_better=True,
    ),
    "merf": Headline(
        "DP-MERF",
        "MNIST at ε = 1: mean accuracy of twelve classifiers",
        Cell("mean", {"learnt from": "DP-MERF, add or remove"}),
        "mnist ≥ 0.70",
        {who: Cell("mean", {"learnt from": who}) for who in ("DP-MERF, published", "DP-HP, published")},
        more_is_better=True,
    ),
    "diffusion": Headline(
        "Diffusion",
        "MNIST at ε = 10: accuracy of a CNN",
        Cell("CNN", {"learnt from": "drawn, ε = 10"}),
        "ε = 10: CNN ≥ 0.88",
        {"DPDM as published": Cell("CNN", {"learnt from": "DPDM as published, ε = 10"})},
        more_is_better=True,
    ),
    "synth_tables": Headline(
        "Synthetic tables",
        "MST on Adult, ε = 1: distance of pairs of columns",
        Cell("ours", _MST, part=1),
        "no error above 1.05 of the best peer's",
        {peer: Cell(peer, _MST, part=1) for peer in ("OpenDP", "SmartNoise")},
    ),
    "synth_auto": Headline(
        "Synthetic tables, nothing tuned",
        "Adult, ε = 1: distance of pairs of columns",
        Cell("two columns", {"table": "Adult"}),
        "all 5 tables fitted within ε = 1",
    ),
}

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Noise, accounting and statistics": (
        "noise",
        "accounting",
        "speed",
        "accuracy",
        "quantile_intervals",
        "quantiles_at_once",
        "population",
        "workload",
        "robustness",
    ),
    "SQL, releases and the ledger": (
        "queries",
        "engines",
        "corpus",
        "spread",
        "profile",
        "release",
        "release_speed",
        "units",
        "totals",
        "running",
        "ledger",
        "ledger_server",
        "imports",
    ),
    "Learning and synthetic data": (
        "estimators",
        "trees",
        "learning",
        "training_speed",
        "people",
        "people_regression",
        "synth_tables",
        "synth_auto",
        "merf",
        "diffusion",
    ),
    "Attacks and audits": ("attacks", "attacks_identity", "audit"),
}
_COLUMNS: Final = ("topic", "measured", "ours", "best peer", "peer ÷ ours", "limit", "reached", "all limits")


def scoreboard(tables: Mapping[str, Sequence[Table]]) -> str:
    """Return the tables of the scoreboard, one for each group, for the topics that were measured."""
    parts = []
    for group, topics in GROUPS.items():
        rows = tuple(HEADLINES[topic].line(topic, tables[topic]) for topic in topics if topic in tables)
        if rows:
            parts.append(f"## {group}\n\n" + Table(group, _COLUMNS, rows).text().partition("\n\n")[2])
    return "\n\n".join(parts)
