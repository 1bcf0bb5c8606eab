"""Measures: an aggregate with all that its noise depends on, or a refusal that says what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

from discreet.errors import Refused
from discreet.query.expressions import Expression, Field
from discreet.query.question import Measure, Statistic
from discreet.query.reading.aggregates import Aggregate
from discreet.query.reading.domains import domain_of
from discreet.query.reading.rules import clamp
from discreet.query.reading.scopes import Context
from discreet.query.reading.tokens import Bounds, Per
from discreet.query.reading.units import unit_total
from discreet.query.sources import UnitTotal

__all__ = ["PerGroup", "measure_of"]

_S = Statistic
_BOUNDED = frozenset({_S.SUM, _S.MEAN, _S.VARIANCE, _S.DEVIATION, _S.QUANTILE})
_GROUPED = frozenset({_S.ROWS, _S.COUNT, _S.DISTINCT, _S.SUM, _S.MEAN})


def measure_of(asked: Aggregate) -> Measure:
    """Check that an aggregate has what its noise depends on."""
    argument = asked.argument
    if asked.statistic in _BOUNDED and argument is not None and not _is_bounded(argument):
        raise Refused(
            "this expression has no bounds",
            reason="the noise must hide the largest change that one unit can make, and here there is none",
            way_out="declare the column with dp.between(low, high); or clamp the values, as in "
            "LEAST(GREATEST(x, 0), 100), or LEAST(n, 20) for a count",
        )
    if asked.statistic is _S.MODE and argument is not None:
        argument = _listed(argument)
    return Measure(asked.statistic, argument, asked.quantile, asked.sample, asked.called)


def _is_bounded(argument: Expression) -> bool:
    return argument.facts.is_bounded


def _listed(argument: Expression) -> Expression:
    domain = domain_of(argument)
    if domain is None:
        raise Refused(
            "MODE needs a public list of values",
            reason="the value that is shown would otherwise be somebody's own",
            way_out="declare the column with dp.categories([...]), or GROUP BY it and ORDER BY COUNT(*)",
        )
    return replace(argument, facts=replace(argument.facts, members=domain))


@final
@dataclass(slots=True)
class PerGroup:
    """Totals of each unit in each group, bounded as a whole: BigQuery's contribution_bounds_per_group.

    Each unit's rows of a group are added up first, exactly; that sum is clamped, and the clamped sums are what is added
    up with noise. AVG becomes the mean of the units' own means, as it is there.
    """

    context: Context
    totals: dict[Aggregate, UnitTotal] = field(default_factory=dict)

    def measure(self, asked: Aggregate) -> Measure:
        if asked.statistic is _S.UNITS and asked.per_group is None:
            return Measure(_S.UNITS)
        bounds = asked.per_group or self._default(asked)
        if bounds is None:
            raise Refused(
                "this does not go together with contribution_bounds_per_group",
                reason="each unit is added up by itself first, so that its rows can no longer be told apart",
                way_out="ask for COUNT, SUM and AVG here, and for the others on their own",
            )
        total = clamp(self._field(replace(asked, per_group=None)), bounds.low, bounds.high)
        return Measure(_S.MEAN if asked.statistic is _S.MEAN else _S.SUM, total)

    def _default(self, asked: Aggregate) -> Bounds | None:
        """Return what a unit's rows can add to a group within the policy."""
        rows = self.context.catalogue.unit.max_rows_per_group
        if asked.statistic in (_S.ROWS, _S.COUNT, _S.DISTINCT):
            return Bounds(Per.GROUP, Fraction(0), Fraction(rows))
        facts = None if asked.argument is None else asked.argument.facts
        if asked.statistic not in _GROUPED or facts is None or facts.low is None or facts.high is None:
            return None
        times = rows if asked.statistic is _S.SUM else 1
        return Bounds(Per.GROUP, min(facts.low, times * facts.low), max(facts.high, times * facts.high))

    def _field(self, asked: Aggregate) -> Field:
        if asked not in self.totals:
            self.totals[asked] = unit_total(self.context.fresh(), asked)
        return self.totals[asked].field
