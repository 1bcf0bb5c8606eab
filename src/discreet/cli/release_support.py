"""`discreet release` and `discreet plan`: which period, for which price, agreed to by whom, and what was written."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.cli.output import Block, Styled, TextTable, note, working
from discreet.cli.policies import asker, with_progress
from discreet.cli.signing import signing_key
from discreet.cli.spending import PriceTag, agree, limit_of
from discreet.errors import InvalidParameter, Refused
from discreet.exact import up
from discreet.formatting import percent, significant_up
from discreet.privacy import Relation, epsilon
from discreet.query.policy import called_units
from discreet.release import price, publish, read_release_plan, series
from discreet.release.cumulative.advance import NextCharge, next_charge
from discreet.release.plan import Every, Period, ReleasePlan
from discreet.release.schedule_status import Series, plan_ledger

if TYPE_CHECKING:
    from discreet.release.pricing.limit_grid import LimitGrid
    from discreet.release.pricing.plan_check import Checked
    from discreet.release.pricing.priced_release import PricedRelease

__all__ = [
    "CheckedPlan",
    "ComparedLimits",
    "Drafted",
    "LimitFigures",
    "PlanStatus",
    "PriceList",
    "TablePrice",
    "Total",
    "Written",
    "period_of",
    "public_rows",
    "released",
    "standing",
]

# --- releasing: A release on the command line: which period, for which price, agreed to by whom. ---


_SHOWN = 6


def released(
    file: Path, label: str | None, *, max_epsilon: str | None, principal: str | None, key: Path | None = None
) -> Path:
    """Publish one period of a plan, or write again what was published, and return its bundle."""
    plan = read_release_plan(file)
    signing = signing_key(plan, key)
    with working("pricing"):
        stands = series(plan, today=_today(), principal=asker(principal))
        period = period_of(plan, label) or _due(plan, stands)
        unpaid, what = next_charge(plan, period), f"{plan.name} {period.label}"
    if unpaid.parts:
        agree(_price(plan, unpaid, asker(principal)), limit=limit_of(max_epsilon), what=what)
    timed = replace(plan, policy=with_progress(plan.policy))
    with working("publishing"):
        bundle = publish(timed, principal=asker(principal), period=period, today=_today(), on_step=_tell, key=signing)
    if not unpaid.parts:  # Told when it is true: a plan that was changed since is refused above.
        note(f"{what} was published before: its bundle is there as it was, and nothing was charged{_another(plan)}")
    with plan_ledger(plan) as book:
        called = called_units(plan.policy.chain or plan.policy.unit)
        note(book.money(principal=asker(principal), at=plan.allowance.delta, called=called))
    others = [one.label for one in stands.due if one != period]
    if others and plan.schedule.column is not None:  # Without one they would be about the rows that were released now.
        note(f"also due: {_few(others)}")
    return bundle


def _another(plan: ReleasePlan) -> str:
    return f"; {plan.schedule.another}" if plan.schedule.every is Every.ONCE else ""


def _few(labels: list[str]) -> str:
    return f"{', '.join(labels[:_SHOWN])}{' …' if len(labels) > _SHOWN else ''}"


def standing(file: Path) -> Series:
    """Tell where a plan stands today."""
    plan = read_release_plan(file)
    priced = price(plan)
    return series(plan, today=_today(), event=priced.event, nested=priced.nested)


def period_of(plan: ReleasePlan, label: str | None) -> Period | None:
    """Find a period that has begun, by its label."""
    if label is None:
        return None
    schedule, today = plan.schedule, _today()
    begun = list(schedule.until(today))
    if schedule.first is not None and today >= schedule.first:
        begun.append(schedule.containing(today))
    for period in begun:
        if period.label == label:
            return period
    known = ", ".join(period.label for period in begun[-_SHOWN:])
    raise InvalidParameter(f"there is no period {label!r} until today; the last ones are {known or 'none'}")


def public_rows(plan: ReleasePlan, said: Sequence[str] | None) -> dict[str, Path] | None:
    """Read which files stand in for which private tables; None if none was named."""
    if not said:
        return None
    private = [name for name, table in plan.policy.tables.items() if not table.public]
    found: dict[str, Path] = {}
    for one in said:
        name, separator, file = one.partition("=")
        if not separator or name not in private:
            if len(private) != 1 or (separator and not Path(one).exists()):
                raise InvalidParameter(
                    f"say whose rows they are, one of {', '.join(private)}: --public {private[0]}=FILE"
                )
            name, file = private[0], one
        if name in found:
            raise InvalidParameter(f"public rows for {name!r} are named twice: put them into one file")
        found[name] = Path(file)
    return found


def _due(plan: ReleasePlan, stands: Series) -> Period:
    """Return the oldest period that is due; if there is none, the newest that was released, which costs nothing."""
    begins = f"; {stands.next.label} ends on {stands.next.end}" if stands.next is not None else ""
    due = [period for period in stands.due if period not in stands.same_rows]
    if due:
        return due[0]
    if not stands.released:
        raise Refused(f"nothing is due: no period of {plan.name} has ended yet{begins}")
    if stands.same_rows:
        labels = [period.label for period in stands.same_rows]
        note(
            f"nothing new is due: {_few(labels)} had ended when {stands.released[-1].label} was released, and "
            "[schedule] names no column, so the same rows would be charged again. If they have changed, say --period "
            f"{labels[0]}, or a new version in the plan{begins}"
        )
    elif plan.schedule.every is not Every.ONCE:  # What is released once is told of when its bundle was looked at.
        note(f"nothing is due: all periods that have ended are released{begins}")
    newest = period_of(plan, stands.released[-1].label)
    assert newest is not None
    return newest


def _price(plan: ReleasePlan, unpaid: NextCharge, principal: str) -> PriceTag:
    chain, called = plan.policy.chain, called_units(plan.policy.chain or plan.policy.unit)
    with plan_ledger(plan) as book:
        money = book.money(principal=principal, like=unpaid.event, at=plan.allowance.delta, called=called)
    at = f" at δ = {significant_up(unpaid.delta)}" if unpaid.delta else ""
    if chain is not None:  # The limit that was agreed to is that of the outer unit, which pays most.
        levels = [epsilon(each, unpaid.delta, relation=Relation.ADD_REMOVE) for each in unpaid.nested]
        at += f" for one {chain.outer.noun}"
        at += "".join(f"; ε = {significant_up(level)} for one {chain.inner.noun}" for level in levels)
    begin = [name for name in unpaid.parts if name != "release"]
    series = f", with {' and '.join(begin)}, paid once for all days" if begin else ""
    return PriceTag(words=f"ε = {significant_up(unpaid.epsilon)}{at}{series}", epsilon=unpaid.epsilon, budget=money)


def _tell(step: str) -> None:
    if sys.stderr.isatty():
        note(f"… {step}")


def _today() -> date:
    return datetime.now(UTC).date()


# --- plans: What is told of a release plan, and of what was written. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What is divided among the tables: rho with Gaussian noise, epsilon with Laplace noise."""

    unit: str
    amount: str  # an exact fraction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePrice:
    """One table: what it costs, and how far off it will be, at 95 %. Exact numbers are fractions, as text."""

    name: str
    title: str
    rows: int | None  # null if data must tell
    price: str
    rho: str | None
    epsilon: str | None
    epsilon_alone: float  # of this table by itself, at the delta of the release, rounded up
    delta: str | None
    errors: dict[str, float]
    relative_errors: dict[str, float]
    expected: dict[str, float]
    threshold: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """What one release costs, table by table and together, and what to change."""

    format: str
    plan: str
    title: str
    period: str
    epsilon: float
    delta: str
    total: Total
    releases_in_lifetime_budget: int | None
    lifetime_budget: str
    tables: list[TablePrice]
    running: list[dict[str, Any]]  # series of totals, each paid for once, for all its days
    shared_noise: list[str]  # how families are drawn whose tables share their noise
    advice: list[str]
    text: str

    @classmethod
    def of(cls, priced: PricedRelease) -> PriceList:
        """Read a priced release."""
        said = json.loads(priced.to_json())
        tables = [TablePrice(**table) for table in said.pop("tables")]
        return cls(**said | {"total": Total(**said["total"])}, tables=tables, text=str(priced))

    def blocks(self) -> Iterator[Block]:
        opening, _, *sections = self.text.removeprefix(self.title).split("\n\n")
        yield Styled(self.title + opening, labels={self.title: "bold"})
        yield ""
        yield self._prices()
        yield ""
        yield self._errors()
        for section in sections:
            heading, _, told = section.partition("\n")
            yield Styled(f"\n{heading}", "bold")
            yield told

    def _prices(self) -> TextTable:
        """What each table costs, and its part of what all cost."""
        parts = [self._part(table) for table in self.tables]
        rows = [
            (
                table.name,
                "unknown" if table.rows is None else f"{table.rows:,}",
                table.price,
                "–" if part is None else percent(part),
                significant_up(table.epsilon_alone, 3),
            )
            for table, part in zip(self.tables, parts, strict=True)
        ]
        head = ("table", "rows", "price", "of all", "ε alone")
        return TextTable(head=head, rows=rows, right=frozenset({1, 3, 4}), bars={3: [part or 0.0 for part in parts]})

    def _part(self, table: TablePrice) -> float | None:
        """The part of what is split that a table takes; None if it has an epsilon of its own beside a rho."""
        amount = table.rho if self.total.unit == "rho" else table.epsilon
        return None if amount is None else float(Fraction(amount) / Fraction(self.total.amount))

    def _errors(self) -> TextTable:
        """How exact each column will be; one that data must tell has no ±."""
        rows = [
            (table.name, name, "–" if error is None else f"± {significant_up(error, 3)}", _of_expected(table, name))
            for table in self.tables
            for name, error in _known(table)
        ]
        return TextTable(head=("table", "column", "at 95 %", "of what is expected"), rows=rows, right=frozenset({2, 3}))


def _known(table: TablePrice) -> list[tuple[str, float | None]]:
    return list(table.errors.items()) or [("–", None)]


def _of_expected(table: TablePrice, name: str) -> str:
    relative = table.relative_errors.get(name)  # As it is written: the nearest float may lie above.
    return "–" if relative is None else f"{significant_up(100 * Fraction(str(relative)), 3)} %"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlan:
    """A plan in which nothing was found wrong."""

    plan: str
    tables: list[str]
    running: list[str]
    epsilon: float  # of one release, at `delta`, rounded up
    delta: float
    notes: list[str]
    text: str

    @classmethod
    def of(cls, checked: Checked) -> CheckedPlan:
        """Read a plan that was checked."""
        return cls(
            plan=checked.plan.name,
            tables=[table.name for table in checked.plan.tables],
            running=[series.name for series in checked.plan.running],
            epsilon=checked.priced.epsilon,
            delta=up(checked.priced.delta),
            notes=list(checked.notes),
            text=str(checked),
        )

    def blocks(self) -> Iterator[Block]:
        first, *notes = self.text.split("\n")
        yield Styled(first, "bold green")
        yield from notes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFigures:
    """The error of one column under one limit. Shares are parts of what is expected of a typical group."""

    published: str  # the name in [[publish]]
    table: str
    column: str
    of: str  # "contributions" or "bounds"
    limit: str  # as the plan would say it
    noise: float | None  # the ± at 95 %, as in the price list; null where such a plan is refused
    noise_share: float | None
    bias_share: float | None
    total_share: float | None
    current: bool
    least: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLimits:
    """Limits of a plan beside the error of each, on rows that are made up or public."""

    plan: str
    period: str
    rows: str  # "made-up" or "public"
    grid: list[LimitFigures]
    proposals: dict[str, str]  # by name in [[publish]]
    left_out: list[str]
    notes: list[str]

    @classmethod
    def of(cls, grid: LimitGrid) -> ComparedLimits:
        """Read a comparison."""
        said = grid.to_json()
        return cls(**said | {"grid": [LimitFigures(**row) for row in said["grid"]]})

    def blocks(self) -> Iterator[Block]:
        yield Styled(f"Limits of {self.plan} ({self.period}), compared on {self.rows} rows", "bold")
        for (table, column, of), rows in groupby(self.grid, key=lambda row: (row.table, row.column, row.of)):
            yield Styled(f"\n{table}: {column}", "bold")
            head = ("bounds" if of == "bounds" else "limit", "± at 95 %", "noise", "bias", "total", "")
            yield TextTable(head=head, rows=[_figures(row) for row in rows], right=frozenset({1, 2, 3, 4}))
        yield ""
        yield from (f"{name}: of these, {limit} errs least" for name, limit in self.proposals.items())
        yield from self.left_out
        yield from self.notes


def _figures(row: LimitFigures) -> tuple[str, ...]:
    from discreet.release.pricing.limit_grid import percents

    noise = "refused" if row.noise is None else f"± {significant_up(row.noise, 3)}"
    marks = ", ".join(word for word, said in (("now", row.current), ("least", row.least)) if said)
    return (row.limit, noise, *map(percents, (row.noise_share, row.bias_share, row.total_share)), marks)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """A plan that was written, and checked."""

    plan: str  # the file
    tables: list[str]
    epsilon: float  # of one release, rounded up
    text: str

    @classmethod
    def of(cls, checked: Checked, file: Path) -> Drafted:
        """Read a plan that was written."""
        tables = [table.name for table in checked.plan.tables]
        return cls(plan=str(file), tables=tables, epsilon=checked.priced.epsilon, text=str(checked))

    def blocks(self) -> Iterator[Block]:
        first, *notes = self.text.split("\n")
        yield Styled(first, "bold green")
        yield from notes
        yield f"Read {self.plan} and change what you know better; then: discreet plan price {self.plan}"


_FACTS = ("plan", "released", "unfinished", "due", "gaps", "next", "price", "holds")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatus:
    """Where a plan that repeats stands today."""

    plan: str
    every: str
    today: str
    released: list[dict[str, Any]]
    unfinished: list[dict[str, Any]]
    due: list[str]
    gaps: list[str]
    same_rows: list[str]  # due, but no release without --period: the rows of the last one would be charged again
    next: str | None
    price: str
    holds: list[dict[str, Any]]
    more: int | None
    text: str

    @classmethod
    def of(cls, series: Series) -> PlanStatus:
        """Read a series."""
        return cls(**series.to_json(), text=str(series))

    def blocks(self) -> Iterator[Block]:
        yield Styled(self.text, labels=dict.fromkeys(_FACTS, "bold"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A bundle that was written: where it is, and the page to open."""

    bundle: str
    report: str

    @classmethod
    def of(cls, bundle: Path) -> Written:
        """Name a bundle."""
        return cls(bundle=str(bundle), report=str(bundle / "report.html"))

    def blocks(self) -> Iterator[Block]:
        yield self.bundle
        yield Styled(f"open {self.report}", "cyan")
