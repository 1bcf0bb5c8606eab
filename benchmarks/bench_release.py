"""A release plan end to end on real data: priced errors against real ones, tidy tables, and the split of the budget."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

from benchmarks.environments import OURS
from benchmarks.results import Goal, Results, gather
from benchmarks.table import MISSING, Table, number

__all__ = ["measure", "tables"]

WITHIN: Final = 0.10  # of the priced error
BETTER: Final = 0.20  # of the worst relative error
SURE: Final = 0.999


def measure(*, quick: bool, data: Path | None) -> Results:
    """Price families and the plan, and draw its tables many times; without a folder there are no rows to ask."""
    gathering = gather(quick=quick)
    if (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_families")
    if data is None:
        gathering.failures[OURS] = "not measured: name a folder with the real data sets by --data"
    elif (environment := gathering.environment(OURS)) is not None:
        gathering.run(environment, "discreet_release", str(data.resolve()))
        gathering.failures = {
            name.replace(str(data.resolve()), "DATA"): why for name, why in gathering.failures.items()
        }
    return gathering.results("release")


def tables(results: Results) -> tuple[Table, ...]:
    """Show the errors of every column, what tidying and splitting do, and how near families are to the optimum."""
    return errors(results), together(results), optimum(results)


def _columns(results: Results) -> list[dict[str, Any]]:
    return [row for row in results.rows if row["job"] == "column"]


def is_as_priced(row: dict[str, Any]) -> bool:
    """Whether the errors that came out are as wide as was said, within a tenth."""
    return bool(abs(row["deviation"] / row["priced_deviation"] - 1) <= WITHIN)


def is_unbiased(row: dict[str, Any], cells: int) -> bool:
    """Whether no cell leans further than the farthest of as many means without bias would."""
    return bool(row["lean"] <= NormalDist().inv_cdf(1 - (1 - SURE) / (2 * cells)))


def goals(results: Results) -> tuple[Goal, ...]:
    """Judge the plan."""
    rows = _columns(results)
    cells = sum(row["cells"] for row in rows)
    tidy, estimate, split = (results.find(job=job) for job in ("tidy", "estimate", "split"))
    return (
        Goal("every priced error within 10 %", all(map(is_as_priced, rows)) if rows else None),
        Goal("raw values unbiased", all(is_unbiased(row, cells) for row in rows) if rows else None),
        Goal("tidy tables always add up", None if tidy is None else _always(tidy)),
        Goal("least squares never worse than raw", None if estimate is None else estimate["worse"] == 0),
        Goal("worst relative error 20 % below an even split", None if split is None else _saved(split) >= BETTER),
    )


def _always(tidy: dict[str, Any]) -> bool:
    return bool(tidy["adding_up"] == tidy["whole"] == tidy["tidied"])


def _saved(split: dict[str, Any]) -> float:
    return float(1 - split["accuracy"] / split["even"])


def errors(results: Results) -> Table:
    """Show every column of every table."""
    rows = _columns(results)
    releases = max((row["releases"] for row in rows), default=0)
    return Table(
        title=f"A plan of twelve tables on Adult, PUMS and online_retail_ii: {releases:,} releases",
        columns=(
            "table", "column", "rows", "priced sd", "sd of errors", "priced ± (95 %)", "95 % of errors are below",
            "tidy: root mean square error", "tidy: mean bias / sd", "tidy: largest bias / sd",
        ),
        rows=tuple(_row(row) for row in rows),
        remarks=(
            ", ".join(map(str, goals(results))) + ".",
            "The exact answer is that of the rows after clamping and bounding, which are done once; noise is drawn by "
            f"the code that releases. Unbiased: the mean error of every cell is within what {100 * SURE:g} % of "
            "unbiased plans would show in their farthest cell. The bias of tidy values, as a part of the priced sd, is "
            "the mean over the cells of a table, and the largest of a single cell: cells near zero are moved up, and "
            "within a family others are moved down for that, so that margins hardly lean.",
            *results.missing(),
        ),
    )  # fmt: skip


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    parts = ("tidy_bias", "tidy_bias_deviation", "tidy_bias_most")
    bias, unsure, most = (100 * row[part] / row["priced_deviation"] for part in parts)
    return (
        row["table"],
        row["column"],
        str(row["cells"]),
        number(row["priced_deviation"], 4),
        number(row["deviation"], 4) + ("" if is_as_priced(row) else " (NO)"),
        number(row["priced_reach"], 4),
        number(row["reach"], 4),
        number(row["tidy_error"], 4),
        f"{bias:.1f} % (± {2 * unsure:.1f})",
        f"{most:.0f} %",
    )


def together(results: Results) -> Table:
    """Show what concerns the plan as a whole."""
    tidy, estimate, split = (results.find(job=job) for job in ("tidy", "estimate", "split"))
    found = (
        ("tidied releases that add up exactly, in whole steps, not negative", _adding(tidy)),
        ("CPU seconds to tidy a release", MISSING if tidy is None else number(tidy["seconds"])),
        ("weighted squared error of least squares / raw: mean, largest", _estimates(estimate)),
        ("worst relative error against declared sizes: by accuracy, evenly", _splits(split)),
    )
    return Table(title="The plan as a whole", columns=("what", "found"), rows=found, remarks=())


NEAR: Final = 1.05  # times the optimum
_KINDS = {"before": "noise of its own, by accuracy (before)", "even": "noise of its own, evenly", "default": "default",
          "sum": 'aim = "sum"', "largest": 'aim = "largest"'}  # fmt: skip


def optimum(results: Results) -> Table:
    """Show sums of variances and largest variances of families, as times the least of any Gaussian mechanism."""
    rows = [row for row in results.rows if row["job"] == "family"]
    near = all(row["default_sum"] <= NEAR * row["least_sum"] for row in rows)
    reached = near and all(row["largest_largest"] <= NEAR * row["least_largest"] for row in rows)
    return Table(
        title="Families of tables: variances as times the optimum (ρ = 0.1, one row a unit)",
        columns=("family", "tables", "of", "the optimum", *_KINDS.values()),
        rows=tuple(_family(row, what) for row in rows for what in ("sum", "largest")),
        remarks=(
            str(
                Goal(
                    "default within 1.05 of the least sum, and largest of the least largest", reached if rows else None
                )
            )
            + ".",
            "Priced variances, with their rounding to whole numbers, over a bound by singular values that no Gaussian "
            "mechanism of the same price is below. The default has the smallest sum with which no table is less exact "
            "than with noise of its own. The 35 columns have 2 to 10 values; regions have 3, 4 and 5 districts.",
        ),
    )


def _family(row: dict[str, Any], what: str) -> tuple[str, ...]:
    least = row[f"least_{what}"]
    times = (f"{row[f'{kind}_{what}'] / least:.3g}" for kind in _KINDS)
    return (row["family"], str(row["tables"]), f"{what} variance" if what == "largest" else "sum of variances",
            number(least, 4), *times)  # fmt: skip


def _adding(tidy: dict[str, Any] | None) -> str:
    return MISSING if tidy is None else f"{min(tidy['adding_up'], tidy['whole']):,} of {tidy['tidied']:,}"


def _estimates(estimate: dict[str, Any] | None) -> str:
    return MISSING if estimate is None else f"{number(estimate['mean'])}, {number(estimate['largest'])}"


def _splits(split: dict[str, Any] | None) -> str:
    if split is None:
        return MISSING
    priced = f"{100 * split['accuracy']:.1f} %, {100 * split['even']:.1f} %: {100 * _saved(split):.0f} % less"
    return f"{priced} (ε = {split['epsilon']:.3g}, δ = {split['delta']:g})"
