"""How much the noise of a plan really tells of one unit, computed from exact numbers of both neighbours.

Nothing here is taken from what the planner claims a unit can change. The shift of every number of every group is
divided by the noise that is drawn for it, the scores of every choice are compared point by point, and the sum is held
against the epsilon, or the square of mu, that is charged.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from neighbour_grammar import DECLARED, PUBLIC, Tables, draw_tables, other_rows
from numpy.typing import NDArray
from recorded import replayed

import discreet as dp
from discreet.balls import bounds, precision
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.mechanisms.joint_quantiles import QuantileInterval
from discreet.mechanisms.order_statistics import Ranked
from discreet.noise.laws import DiscreteLaplaceLaw
from discreet.privacy.events import ApproxDP, BoundedRange, Composed, DiscreteLaplace, Event, Gaussian, PureDP, Repeated
from discreet.query.bounding import secret
from discreet.query.engine import Deadline, ExactCounts
from discreet.query.engines.duckdb import DuckDBEngine
from discreet.query.execute import exact_numbers
from discreet.query.parse.select import read
from discreet.query.plan.choices import interval_of, intervals_of, mode_factor, mode_scores, quantile_of, quantiles_of
from discreet.query.plan.draft import Chooser, ModePick, QuantilesPick, Spend
from discreet.query.plan.planner import PricedQuery, plan
from discreet.query.session.catalogue_builder import build_catalogue

__all__ = ["SPENDS", "Loss", "NeighbourWorld", "SmallWorld", "exceeded", "loss_between", "price_of"]

Key = tuple[Hashable, ...]
SPENDS = (
    Spend(epsilon=1),
    Spend(epsilon="0.25", delta="1e-6"),
    Spend(rho="0.1", delta="1e-6"),
    Spend(epsilon=8, delta="1e-9"),
)
_SECONDS = 60
_FEWEST = 8  # Steps of a grid on which the law of a list is enumerated.
_ONE_SECRET = {32: b"the key of all choices in a test"}


@dataclass
class Loss:
    """What two neighbours differ by, in units of privacy."""

    pure: Fraction = Fraction(0)  # the sum of all pure losses
    mu_squared: Fraction = Fraction(0)
    choices: Fraction = Fraction(0)  # of choices alone
    opened: int = 0  # groups that only one of the neighbours has
    crowded: bool = False  # such a group has more than the one unit


def price_of(priced: PricedQuery) -> Loss:
    """Read what was charged, from the event alone."""
    total = Loss()
    for event, times in _parts(priced.event, 1):
        if isinstance(event, Gaussian):
            total.mu_squared += times * event.mu_squared
        elif isinstance(event, BoundedRange):
            total.choices += times * event.epsilon
        else:
            total.pure += times * _epsilon(event)
    unit = priced.draft.catalogue.unit
    total.opened = unit.max_groups * (2 if unit.is_exchanged else 1)  # As many vanish as appear.
    return total


def _parts(event: Event, times: int) -> Iterator[tuple[Event, int]]:
    match event:
        case Composed(events=events):
            for one in events:
                yield from _parts(one, times)
        case Repeated(event=inner, times=count):
            yield from _parts(inner, times * count)
        case _:
            yield event, times


def _epsilon(event: Event) -> Fraction:
    if isinstance(event, DiscreteLaplace):
        return Fraction(event.sensitivity) / event.scale
    assert isinstance(event, PureDP | ApproxDP)
    return event.epsilon


def loss_between(priced: PricedQuery, one: ExactCounts, other: ExactCounts) -> Loss:
    """Add up what the noise tells of the difference between two exact results under one secret."""
    here, there = _Groups(priced, one), _Groups(priced, other)
    loss = Loss()
    for key in here.places.keys() | there.places.keys():
        if priced.draft.groups is None and (key not in here.places or key not in there.places):
            present = here if key in here.places else there
            units = present.units(present.places[key])
            loss.opened += bool(units)
            loss.crowded |= units > 1
            continue
        _add_group(priced, loss, here, there, key)
    return loss


def _add_group(priced: PricedQuery, loss: Loss, here: _Groups, there: _Groups, key: Key) -> None:
    noising = priced.draft.noising
    mine, yours = here.places[key], there.places[key]
    if noising.selection is not None:
        _add_selection(loss, noising.selection, abs(here.units(mine) - there.units(yours)))
    for noise, a, b in zip(noising.numbers, here.numbers, there.numbers, strict=True):
        shift = abs(int(a[mine]) - int(b[yours]))
        if isinstance(noise.law, DiscreteLaplaceLaw):
            loss.pure += Fraction(shift) / noise.law.scale
        else:
            loss.mu_squared += Fraction(shift**2) / noise.law.variance
    for place, chooser in enumerate(priced.draft.choosers):
        values, widths = here.choice_losses(there, place, mine, yours)
        for spent, flips in ((values, chooser.flips and not chooser.at_once), (widths, chooser.flips)):
            if flips:
                loss.pure += spent
            else:
                loss.choices += spent


def _add_selection(loss: Loss, selection: Any, shift: int) -> None:
    first = selection.event.events[0]
    if isinstance(selection.noise, GaussianNoise):
        loss.mu_squared += first.mu_squared * shift**2 / selection.sensitivity.squared_l2
    else:
        loss.pure += Fraction(shift) / first.scale


class _Groups:
    """The exact numbers of one neighbour, found by key."""

    def __init__(self, priced: PricedQuery, tallied: ExactCounts) -> None:
        self.priced, self.tally = priced, tallied.tally
        self.places = {key: place for place, key in enumerate(tallied.keys(list(range(tallied.groups))))}
        noising = priced.draft.noising
        exact = exact_numbers(priced.draft, tallied.tally)
        self.numbers = [noise.rounded(column) for noise, column in zip(noising.numbers, exact, strict=True)]

    def units(self, place: int) -> int:
        counted = self.tally.rows if self.priced.draft.max_rows == 1 else self.tally.units
        assert counted is not None
        return int(counted[place])

    def choice_losses(self, other: _Groups, pick: int, mine: int, yours: int) -> tuple[Fraction, Fraction]:
        """Return how far the scaled scores of values, and of widths around them, move apart. [DR19, MS20]"""
        draft = self.priced.draft
        asked, chooser = draft.picks[pick], draft.choosers[pick]
        one, two = self._kept(pick, mine), other._kept(pick, yours)
        if isinstance(asked, ModePick):
            moved = mode_scores(asked, one) - mode_scores(asked, two)
            return _range(moved) * mode_factor(draft, chooser), Fraction(0)
        if isinstance(asked, QuantilesPick):
            return self._list_losses(asked, chooser, one, two)
        mechanism = quantile_of(draft, asked, chooser)
        points = np.unique(
            np.concatenate([one, two, one + 1, two + 1, one - 1, two - 1, [asked.grid.first, asked.grid.last]])
        )
        points = points[(points >= asked.grid.first) & (points <= asked.grid.last)]
        moved = _rank_scores(mechanism, one, points) - _rank_scores(mechanism, two, points)
        spent = _range(moved) * mechanism.factor
        if not chooser.interval:
            return spent, Fraction(0)
        return spent, _width_loss(interval_of(draft, asked, chooser), one, two, points)

    def _list_losses(
        self, asked: QuantilesPick, chooser: Chooser, one: NDArray[np.int64], two: NDArray[np.int64]
    ) -> tuple[Fraction, Fraction]:
        """Return the largest loss of values that are chosen together, by their exact law, and of widths around them.

        Where all are chosen at once their losses span no more than is charged: that is a bounded range.
        """
        draft, grid = self.priced.draft, asked.grid
        assert grid.width <= _FEWEST, "lists are asked of small grids here: their law is listed"
        mechanism = replace(quantiles_of(draft, asked, chooser), fineness=1)
        laws = [mechanism.distribution([int(value) * grid.step for value in values]) for values in (one, two)]
        assert laws[0].masses.keys() == laws[1].masses.keys()
        with precision(128):
            pairs = [(mass, laws[1].masses[chosen]) for chosen, mass in laws[0].masses.items()]
            losses = [bounds((a / b).log()) for a, b in pairs]
            least, most = min(one for _, one in losses), max(one for one, _ in losses)
            spent = max(Fraction(0), most - least if chooser.at_once else max(most, -least))
        points = np.arange(grid.first, grid.last + 1)
        widths = intervals_of(draft, asked, chooser) if chooser.interval else ()
        return spent, sum((_width_loss(width, one, two, points) for width in widths), Fraction(0))

    def _kept(self, pick: int, place: int) -> NDArray[np.int64]:
        values = self.tally.measures[self.priced.draft.picks[pick].column].values
        assert values is not None
        return np.sort(np.asarray(values.of(place), np.int64))


def _rank_scores(mechanism: Any, values: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[Any]:
    below, at_most = np.searchsorted(values, points, "left"), np.searchsorted(values, points, "right")
    return mechanism.scores(below, at_most, values.size)


def _width_loss(
    mechanism: QuantileInterval, one: NDArray[np.int64], two: NDArray[np.int64], points: NDArray[np.int64]
) -> Fraction:
    """Return how far the scaled scores of widths move apart, around the worst point: whichever comes out is known."""
    first, last = mechanism.grid.first, mechanism.grid.last
    return max(_range_of_widths(mechanism, Ranked(one, first, last), Ranked(two, first, last), int(p)) for p in points)


def _range_of_widths(mechanism: QuantileInterval, one: Ranked, two: Ranked, point: int) -> Fraction:
    ends = mechanism.ends(point)
    scored = zip(mechanism.scores(one, ends), mechanism.scores(two, ends), strict=True)
    moved = [Fraction(a) - Fraction(b) for a, b in scored]
    return (max(moved) - min(moved)) * mechanism._chooser(len(ends)).factor


def _range(moved: NDArray[Any]) -> Fraction:
    return Fraction(int(moved.max()) - int(moved.min())) if moved.size else Fraction(0)


class NeighbourWorld:
    """Small tables, the same tables without each unit in turn, and what may be asked of them.

    Under replace-one each unit in turn has other rows instead, or none.
    """

    def __init__(self, seed: str, *, exchanged: bool = False) -> None:
        self.chance = random.Random(seed)
        self.tables: Tables = draw_tables(self.chance)
        rows = self.chance.random() < 0.2
        most = self.chance.choice([(1, 1), (2, 1), (1, 3), (2, 2), (3, 5)])
        more: dict[str, Any] = {"relation": dp.Relation.REPLACE_ONE, "units": 100} if exchanged else {}
        self.unit = dp.Unit("row", **more) if rows else dp.Unit("who", *most, **more)
        self.opened = ExitStack()
        self.whole = self._engine()
        changes = self._changes(rows)
        if exchanged:
            most_rows = 1 if rows else 2 * most[0] * most[1]
            changes = [change | {"instead": other_rows(self.chance, most_rows)} for change in changes * 2]
        self.less = [self._engine(**change) for change in changes]
        named: dict[str, Any] = {"stays": None, "bills": None} | {
            name: dp.public(table) for name, table in PUBLIC.items()
        }
        own = random.Random(f"{seed}, of units").random() < 0.4 and not rows
        stays = DECLARED | {name: replace(DECLARED[name], of_unit=own) for name in ("town", "small", "half")}
        self.catalogue = build_catalogue(self.whole, named, unit=self.unit, columns={"stays": stays, "bills": DECLARED})

    def _changes(self, rows: bool) -> list[dict[str, Any]]:
        if rows:
            return [{"place": place} for place in range(len(self.tables.stays))]
        return [{"without": owner} for owner in self.tables.owners]

    def _engine(self, **change: Any) -> DuckDBEngine:
        private = {name: self.tables.arrow(name, **change) for name in ("stays", "bills")}
        public = {name: dp.public(table) for name, table in PUBLIC.items()}
        engine = DuckDBEngine({**private, **public}, threads=1)
        self.opened.callback(engine.close)
        return engine

    def priced(self, sql: str, spend: Spend) -> PricedQuery:
        return plan(read(sql, self.catalogue).question, self.catalogue, spend, pure=False)

    def run(self, engine: DuckDBEngine, plans: Sequence[PricedQuery]) -> tuple[ExactCounts, ...] | None:
        """Return exact numbers under a fixed secret, of several plans in one scan; None where the engine failed."""
        # A stage that finds no group draws no secret, so a stream of bytes would give the next one another: that is
        # another draw, not another law. The bound holds for all secrets, so every stage may have the same.
        try:
            with replayed("one secret"), patch.object(secret, "read", _ONE_SECRET.__getitem__):
                return engine.run_all([priced.stage for priced in plans], deadline=Deadline.after(_SECONDS))
        except dp.AnswerFailed:
            return None

    def losses(self, plans: Sequence[PricedQuery]) -> Iterator[tuple[PricedQuery, Loss] | None]:
        """Compare with every neighbour; None where one of the two failed and the other did not."""
        whole = self.run(self.whole, plans)
        for engine in self.less:
            part = self.run(engine, plans)
            if whole is not None and part is not None:
                for priced, one, other in zip(plans, whole, part, strict=True):
                    yield priced, loss_between(priced, one, other)
            elif whole is not part:
                yield None

    def complaints(self, *plans: PricedQuery) -> list[str]:
        """Return what is wrong with plans, over all neighbours."""
        found = []
        for compared in self.losses(plans):
            if compared is None:
                found.append("it fails for one neighbour alone")
            else:
                found += exceeded(compared[1], price_of(compared[0]))
        return found


class SmallWorld(NeighbourWorld):
    """One table `t`, and the same without each unit in turn; `units` tells whose each row is."""

    def __init__(self, table: Any, units: Sequence[Hashable], unit: dp.Unit, columns: dict[str, Any]) -> None:
        self.opened = ExitStack()
        kept = [table.filter(np.array([one != gone for one in units])) for gone in dict.fromkeys(units)]
        made = [self.opened.enter_context(closing(DuckDBEngine({"t": one}, threads=1))) for one in (table, *kept)]
        self.whole, self.less = made[0], made[1:]
        self.catalogue = build_catalogue(self.whole, {"t": None}, unit=unit, columns=columns)


def exceeded(loss: Loss, most: Loss) -> list[str]:
    """Name the parts of a price that a loss is beyond."""
    checks = {
        "pure": loss.pure > most.pure,
        "Gaussian": loss.mu_squared > most.mu_squared,
        "choices": loss.choices > most.choices,
        "opened groups": loss.opened > most.opened,
        "opened by several": loss.crowded,
    }
    return [f"{name}: {loss} beyond {most}" for name, wrong in checks.items() if wrong]
