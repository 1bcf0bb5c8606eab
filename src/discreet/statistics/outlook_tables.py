"""Text tables of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.statistics.predicted import Predicted

__all__ = ["aligned", "error_table", "footnote", "share"]

footnote = '* what method="auto" takes. Predicted from public facts; no data were read.'


def error_table(predictions: Mapping[str, Predicted], best: str) -> list[str]:
    """List the predicted errors, one method a line, with a mark on the best."""
    rows = [("method", "usual error", "95 %", "no answer")]
    for name, found in predictions.items():
        mark = " *" if name == best else ""
        rows.append((name + mark, f"{found.typical:.3g}", f"{found.wide:.3g}", share(found.declines)))
    return aligned(rows)


def share(chance: float) -> str:
    return f"{100 * chance:.3g} %"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Write rows below each other, the first column to the left, all others to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(["", row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
