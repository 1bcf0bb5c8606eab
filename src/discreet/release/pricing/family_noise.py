"""One noise for all tables of a family: which residuals they are made of, and how the price is divided among these.

Prices stay as they were divided among tables. What all tables of a family pay together is spent on residuals instead
(`query/plan/residuals.py`), which is no more, and then no table need be less exact. Everything here follows from the
plan: from groupings, levels, public values, prices and weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from discreet.errors import InvalidParameter, Refused
from discreet.formatting import significant_up
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy.relation import Relation
from discreet.query.plan.draft import FinalDraft, TallySpec
from discreet.query.plan.planner import PricedQuery
from discreet.query.plan.residuals import (
    GroupTree,
    ResidualNoise,
    SharedNoise,
    TableLevels,
    VarianceTypes,
    best_shares,
    variance_types,
)
from discreet.release.plan import ReleasePlan, TablePlan, located, place_of
from discreet.release.pricing.quotes import Quote, is_gaussian
from discreet.release.tidy.cell_layout import Places, axes_of
from discreet.release.tidy.tidying import canonical_groupings, families

__all__ = ["divide_by_aim", "share_noise", "shared_words"]

Tables: TypeAlias = Mapping[str, PricedQuery]

APART = "apart"
_AIMS = {
    None: "the smallest sum of variances with which no table is less exact than by itself",
    "sum": "the smallest sum of variances",
    "largest": "the smallest variance of the least exact cell",
}
_NAMED = "its tables name the error that they reach, so nothing is left to aim at"
_PARTS = 10**6  # Parts of a price are multiples of its inverse.
_ADDED = (TallySpec.ROWS, TallySpec.COUNT, TallySpec.NULLS, TallySpec.TOTAL, TallySpec.SQUARES)


def share_noise(plan: ReleasePlan, priced: Tables) -> dict[str, PricedQuery]:
    """Let the tables of every family share their noise, where that is proven, can be drawn and makes them more exact.

    Refused is an `aim` or `weights` for a family whose tables cannot.
    """
    found = dict(priced)
    for name, tables in families(plan.tables).items():
        if tables[0].aim == APART or len(tables) == 1:
            continue
        if tables[0].aim is not None and not is_gaussian(plan.allowance):
            continue  # `divide_by_aim` has seen to it.
        try:
            found |= _shared(plan, tables, {table.name: priced[table.name] for table in tables})
        except InvalidParameter as reason:
            if tables[0].aim is not None or any(table.weight != 1 for table in tables):
                error = Refused(
                    f"the tables of {name!r} cannot share their noise, as aim and weights say",
                    reason=str(reason),
                    way_out="leave aim and weights out",
                )
                raise located(plan, place_of(plan, tables[0].name, "aim", "weights"), error) from None
    return found


def divide_by_aim(plan: ReleasePlan, quotes: Sequence[Quote], priced: Sequence[PricedQuery]) -> tuple[PricedQuery, ...]:
    """Divide what the tables of a family with an aim spend anew, where noise is Laplace and each table has its own.

    Theorem     The variance of a cell is as 1 / ε². With n cells that count w each, the sum of n w / ε² is least for ε
                as the cube root of n w, and the largest w / ε² for ε as the root of w, if what all spend is given.
    """
    found = list(priced)
    if is_gaussian(plan.allowance):
        return tuple(found)
    places = {quote.table.name: place for place, quote in enumerate(quotes)}
    for tables in families(plan.tables).values():
        if tables[0].aim in (None, APART):
            continue
        if any(table.wish.error or table.wish.relative_error for table in tables):
            raise located(plan, place_of(plan, tables[0].name, "aim"), InvalidParameter(_NAMED))
        for place, one in _divided(
            tables, [(places[table.name], quotes[places[table.name]]) for table in tables], found
        ):
            found[place] = one
    return tuple(found)


def _divided(
    tables: Sequence[TablePlan], asked: Sequence[tuple[int, Quote]], priced: Sequence[PricedQuery]
) -> list[tuple[int, PricedQuery]]:
    """Return the tables of a family at other prices, or at those that they have if these are better."""
    weights = [float(table.weight) for table in tables]
    cells = [float(priced[place].draft.groups or 1) for place, _ in asked]
    total = sum((quote.amount_of(priced[place]) for place, quote in asked), Fraction(0))
    largest = tables[0].aim == "largest"
    parts = [
        weight**0.5 if largest else (weight * many) ** (1 / 3) for weight, many in zip(weights, cells, strict=True)
    ]
    wanted = [
        Fraction(round(part / sum(parts) * _PARTS), _PARTS) * (1 - Fraction(len(parts), _PARTS)) for part in parts
    ]

    def worth(tried: Sequence[PricedQuery]) -> float:
        each = [w * float(next(iter(one.variances.values()))) for w, one in zip(weights, tried, strict=True)]
        return max(each) if largest else sum(many * variance for many, variance in zip(cells, each, strict=True))

    before = [priced[place] for place, _ in asked]
    even = [quote.at(total / len(asked)) for _, quote in asked]
    aimed = [quote.at(total * part) for (_, quote), part in zip(asked, wanted, strict=True)]
    best = min((aimed, even, before), key=worth) if all(one.variances for one in aimed) else before
    return [(place, one) for (place, _), one in zip(asked, best, strict=True)]


def shared_words(plan: ReleasePlan, priced: Tables) -> Iterator[str]:
    """Say of every family how its noise is drawn, and what that gains."""
    for name, tables in families(plan.tables).items():
        shared = priced[tables[0].name].draft.noising.shared
        aim = tables[0].aim
        if shared is None and aim not in (None, APART):
            yield f"{name}: each of {len(tables)} tables has noise of its own, with prices for {_AIMS[aim]}"
        if shared is None:
            continue
        apart, together = _sums([priced[table.name].draft for table in tables], shared)
        yield (
            f"{name}: drawn once for {len(tables)} tables, by residuals, for {_AIMS[tables[0].aim]}; the sum of all "
            f"variances is {significant_up(100 * together / apart, 3)} % of that of tables with noise of their own"
        )


def _sums(drafts: Sequence[FinalDraft], shared: SharedNoise) -> tuple[Fraction, Fraction]:
    """Return the sum of the variances of all cells, of the first number that is shared: apart, and together."""
    place = next(place for place, scale in enumerate(shared.scales) if scale is not None)
    apart = sum((draft.groups or 0) * _variance(draft, place) for draft in drafts)
    types = variance_types(shared.residuals.trees, shared.residuals.tables)
    each = types.times([1 / float(share) for share in shared.residuals.shares])
    scale = shared.scales[place]
    assert scale is not None
    return Fraction(apart), scale * Fraction(float((types.cells * each).sum()))


def _variance(draft: FinalDraft, place: int) -> Fraction:
    law = draft.noising.numbers[place].law
    if not isinstance(law, RoundedGaussianLaw):
        raise InvalidParameter("its noise is not Gaussian: give [release] a delta or a rho")
    return law.variance


def _shared(plan: ReleasePlan, tables: Sequence[TablePlan], priced: Tables) -> dict[str, PricedQuery]:
    drafts = [priced[table.name].draft for table in tables]
    places = _numbers(drafts)
    trees, levels = _trees(plan, tables, drafts)
    types = variance_types(trees, levels)
    scales = {place: 1 / sum((1 / _variance(draft, place) for draft in drafts), Fraction(0)) for place in places}
    noise = ResidualNoise(trees, levels, _shares(tables, types, drafts, scales))
    if not all(map(noise.fits, scales.values())):
        raise InvalidParameter("its noise is too wide to be drawn for all tables together")
    largest = noise.largest()
    if not _gains(tables, drafts, scales, noise, types):
        return {}
    made = {}
    for number, table in enumerate(tables):
        shared = SharedNoise(
            family=table.family or "",
            residuals=noise,
            table=number,
            scales=tuple(scales.get(place) for place in range(len(drafts[0].numbers))),
            variances=tuple(
                largest[number] * scales[place] if place in scales else None for place in range(len(drafts[0].numbers))
            ),
            aim=tables[0].aim or "",
        )
        made[table.name] = priced[table.name].sharing(shared)
    return made


def _numbers(drafts: Sequence[FinalDraft]) -> list[int]:
    """Return the numbers that are added up row by row, and that all tables have alike."""
    first = drafts[0]
    for draft in drafts:
        same_rows = draft.family is not None or draft.catalogue.unit.is_row
        if not same_rows or draft.relation is not Relation.ADD_REMOVE or draft.nesting is not None:
            raise InvalidParameter("its tables do not count the same rows under add-remove")
        if draft.groups is None or draft.max_groups != 1:
            raise InvalidParameter("its groups are not all listed")
        if _measured(draft) != _measured(first):
            raise InvalidParameter("its tables do not measure the same numbers")
    if not first.numbers:
        raise InvalidParameter("nothing that it measures adds up")
    for draft in drafts:
        _variance(draft, 0)  # of Laplace noise there is none to share
    noises = [draft.noising.numbers for draft in drafts]
    found = [
        place
        for place, number in enumerate(first.numbers)
        if number.tallying in _ADDED and all(each[place].unit == 1 and each[place].spread is None for each in noises)
    ]
    if not found:
        raise InvalidParameter("nothing that it measures adds up")
    return found


def _measured(draft: FinalDraft) -> tuple[object, ...]:
    """Return what a table measures, and of which rows: tables that differ in any of it are no sums of each other."""
    return draft.numbers, draft.changes, draft.max_rows, draft.columns, draft.question.source


def _trees(
    plan: ReleasePlan, tables: Sequence[TablePlan], drafts: Sequence[FinalDraft]
) -> tuple[tuple[GroupTree, ...], tuple[TableLevels, ...]]:
    """Return the levels of every column that is grouped by, and which of them each table has, key by key."""
    keys = {
        table.name: tuple(key.domain or () for key in draft.question.keys)
        for table, draft in zip(tables, drafts, strict=True)
    }
    groupings, levels, domains = canonical_groupings(tables, plan.levels, keys)
    for name, by in groupings.items():
        if any(domains[key] != listed for key, listed in zip(by, keys[name], strict=True)):
            raise InvalidParameter("its tables list the same values in different orders")
    axes = axes_of(groupings, levels, domains)
    steps = [sorted(axis, key=lambda name: len(domains[name])) for axis in axes]
    trees = tuple(
        _tree([axis[name] for name in names], domains, names) for axis, names in zip(axes, steps, strict=True)
    )
    return trees, tuple(_levels(groupings[table.name], steps) for table in tables)


def _tree(places: Sequence[Places], domains: Mapping[str, Sequence[object]], names: Sequence[str]) -> GroupTree:
    """Order the levels of a column, coarse ones first; each must divide the groups of the one before it."""
    above = np.zeros(places[0].size, np.int64)
    parents: list[tuple[int, ...]] = []
    for name, level in zip(names, places, strict=True):
        pairs = np.unique(np.stack([level, above]), axis=1)
        if not np.array_equal(pairs[0], np.arange(len(domains[name]))):  # Each group is there, within one group.
            raise InvalidParameter("levels of one of its columns cut across each other, or have groups without values")
        parents.append(tuple(pairs[1].tolist()))
        above = level
    return GroupTree(tuple(parents))


def _levels(by: Sequence[str], steps: Sequence[Sequence[str]]) -> TableLevels:
    found: list[tuple[int, int]] = []
    for name in by:
        tree = next(number for number, names in enumerate(steps) if name in names)
        if any(tree == other for other, _ in found):
            raise InvalidParameter("one of its tables is grouped by two levels of one column")
        found.append((tree, list(steps[tree]).index(name) + 1))
    return tuple(found)


def _shares(
    tables: Sequence[TablePlan], types: VarianceTypes, drafts: Sequence[FinalDraft], scales: Mapping[int, Fraction]
) -> tuple[Fraction, ...]:
    aim, weights = tables[0].aim, [float(table.weight) for table in tables]
    if aim is not None and any(table.wish.error or table.wish.relative_error for table in tables):
        raise InvalidParameter(_NAMED)
    if aim is not None:
        found = best_shares(types, weights, largest=aim == "largest")
    else:
        most = [min(float(_variance(draft, place) / scale) for place, scale in scales.items()) for draft in drafts]
        found = best_shares(types, weights, largest=False, most=most)
    if found is None:
        raise InvalidParameter("some table would be less exact")
    return found


def _gains(
    tables: Sequence[TablePlan],
    drafts: Sequence[FinalDraft],
    scales: Mapping[int, Fraction],
    noise: ResidualNoise,
    types: VarianceTypes,
) -> bool:
    """Whether it is predicted to be better than noise of each table's own: in what is aimed at, or in every table."""
    apart = {place: [_variance(draft, place) for draft in drafts] for place in scales}
    if tables[0].aim is None:
        pairs = [
            (scale * most, own)
            for place, scale in scales.items()
            for most, own in zip(noise.largest(), apart[place], strict=True)
        ]
        return all(together <= own for together, own in pairs)
    weights = [float(table.weight) for table in tables]
    found = types.times([1 / float(share) for share in noise.shares]) * np.array(weights)[types.tables]
    if tables[0].aim == "largest":
        return all(
            float(scale) * found.max()
            <= max(weight * float(own) for weight, own in zip(weights, apart[place], strict=True))
            for place, scale in scales.items()
        )
    cells = [draft.groups or 0 for draft in drafts]
    return all(
        float(scale) * (types.cells * found).sum()
        <= sum(weight * many * float(own) for weight, many, own in zip(weights, cells, apart[place], strict=True))
        for place, scale in scales.items()
    )
