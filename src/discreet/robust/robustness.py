"""A report on what bad rows can do to a plain, a robust and a private estimate, as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from discreet import plots
from discreet.errors import InvalidParameter
from discreet.robust.corruption import Kind

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Effect", "EstimateStanding", "RobustnessReport"]

_MEANING = {
    "corrupted": "rows with any other value within the bounds",
    "mislabelled": "rows taken for those of another label, and missing here",
    "exchanged": "rows exchanged with those of the other label",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateStanding:
    """Where an estimate stands before anything goes wrong."""

    name: str
    estimate: float
    local_sensitivity: float  # how far one row with another value moves it
    gross_error_sensitivity: float  # its largest influence within the bounds, per share of rows
    breakdown: float  # the share of bad rows below which it cannot be carried off, for many rows
    exact: bool  # or else its local sensitivity and the effects on it are the worst that a search found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How far some bad rows can move an estimate."""

    kind: Kind
    rows: int
    plain: float
    robust: float
    private: float | None  # where the robust one is worst: the shift, and what the noise exceeds once in twenty times


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessReport:
    """What bad rows can do to three estimates. It is a fact about the data: for the custodian only."""

    size: int
    bounds: tuple[float, float]
    budget: str
    plain: EstimateStanding
    robust: EstimateStanding
    private: str | None  # how the private estimate works
    exchanged: bool  # whether mislabelled rows came from another label in exchange
    effects: tuple[Effect, ...]

    def effects_of(self, kind: Kind) -> tuple[Effect, ...]:
        """Return the effects of one kind of bad rows."""
        return tuple(effect for effect in self.effects if effect.kind == kind)

    def plot(self, kind: Kind = "corrupted") -> alt.LayerChart:
        """Draw how far each estimate can be off against the number of bad rows."""
        effects = self.effects_of(kind)
        if len(effects) < 2:
            raise InvalidParameter('kind must be "corrupted" or "mislabelled", with two numbers of rows at least')
        rows = [float(effect.rows) for effect in effects]
        curves = {self.plain.name: (rows, [effect.plain for effect in effects])}
        curves.setdefault(self.robust.name, (rows, [effect.robust for effect in effects]))
        private = [effect.private for effect in effects if effect.private is not None]
        if private:
            curves[f"private {self.robust.name}"] = (rows, private)
        return plots.shifts(curves, what=f"{kind} rows", title="NOT PRIVATE: what bad rows can do")

    def __str__(self) -> str:
        return "\n".join([*_standings(self), *_tables(self)])


def _standings(report: RobustnessReport) -> Iterator[str]:
    low, high = report.bounds
    plain, robust = report.plain, report.robust
    yield f"{report.size:,} values between {low:g} and {high:g}"
    yield _row("", plain.name, robust.name)
    yield _row("estimate", plain.estimate, robust.estimate)
    yield _row("local sensitivity", plain.local_sensitivity, robust.local_sensitivity)
    yield _row("gross error sensitivity", plain.gross_error_sensitivity, robust.gross_error_sensitivity)
    yield _row("breakdown point", plain.breakdown, robust.breakdown)


def _tables(report: RobustnessReport) -> Iterator[str]:
    for kind in ("corrupted", "mislabelled"):
        effects = report.effects_of("corrupted" if kind == "corrupted" else "mislabelled")
        yield ""
        yield f"{kind}: {_MEANING['exchanged' if report.exchanged and kind == 'mislabelled' else kind]}"
        yield _row("rows", report.plain.name, report.robust.name, *(["private"] if report.private else []))
        for effect in effects:
            told = [] if effect.private is None else [effect.private]
            yield _row(f"{effect.rows:,} ({effect.rows / report.size:.1%})", effect.plain, effect.robust, *told)
    yield ""
    yield from _notes(report)


def _notes(report: RobustnessReport) -> Iterator[str]:
    if report.robust.exact:
        yield "No choice of so many rows does more to the two estimates without noise."
    else:
        yield f"What rows do to {report.robust.name} is the worst that a search found; there may be worse."
    if report.private:
        yield f"private: {report.private}, {report.budget}, replace-one; the shift and 95 % of the noise."


def _row(head: str, *cells: str | float) -> str:
    written = (cell if isinstance(cell, str) else f"{cell:.4g}" for cell in cells)
    return f"{head:<24}" + "".join(f"{cell:>18}" for cell in written)
