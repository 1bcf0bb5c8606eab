"""Pass: Laplace or Gaussian noise, how the budget is split, and which numbers no row moves together."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING
from unicodedata import normalize

from discreet.errors import Refused
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise
from discreet.noise.laws import DiscreteLaplaceLaw, RoundedGaussianLaw
from discreet.noise.limits import check_noise_scale, check_noise_variance
from discreet.privacy.relation import Relation
from discreet.query.ast import Apply, Case, Expression, Literal, Operator
from discreet.query.engine import StageColumn
from discreet.query.plan.choices import check_choices, chooser_of, values_epsilon
from discreet.query.plan.draft import (
    Bundle,
    BundledDraft,
    Chooser,
    FinalDraft,
    LimitedDraft,
    MeasuredDraft,
    Noising,
    Number,
    NumberNoise,
    Pick,
    SensitivityDraft,
    TallySpec,
    choices_spent,
    known_as,
)
from discreet.schema.columns import Kind

if TYPE_CHECKING:
    from discreet.adaptive.truncated_histogram import TruncatedHistogram

__all__ = ["bundle_numbers", "choose_noise", "exclusive", "parts"]

# --- choice: Pass: Laplace or Gaussian noise, whichever errs less, and how much of it. ---


_FINEST = 1 << 38  # Units to the scale of noise, up to twice as many: then samplers still take it.
_ROUNDED_UP = 1 << 20  # Rounding a change up to a unit costs at most this part of it.
_LAPLACE_95, _NORMAL_95 = math.log(20), 1.96  # Half widths at 95 %, in scales and in standard deviations.
_DIGITS = 10**9


def choose_noise(draft: BundledDraft) -> FinalDraft:
    """Fit noise to the budget: Gaussian for rho, Laplace for epsilon, the better of both for epsilon and delta."""
    spend, unknown = draft.spend, draft.groups is None
    _check(draft)
    hidden = spend.delta if unknown else None
    if spend.rho is not None:
        return _by_rho(draft, spend.rho, hidden)
    assert spend.epsilon is not None
    if spend.delta is None or not draft.bundles:
        return _laplace(draft, spend.epsilon, hidden)
    # Of a delta, Gaussian noise takes all, or half where the other half hides groups.
    own = spend.delta / 2 if unknown else spend.delta
    multiplier = GaussianNoise.for_epsilon(spend.epsilon * _numbers_share(draft), own).squared_multiplier
    if _gaussian_is_better(draft, spend.epsilon, multiplier):
        choosers = _choosers(draft, spend.epsilon / sum(parts(draft)), flips=True)
        return _gaussian(draft, 1 / multiplier, own if unknown else None, choosers)
    return _laplace(draft, spend.epsilon, hidden)


def _check(draft: LimitedDraft) -> None:
    spend = draft.spend
    if draft.pure and (spend.delta is not None or spend.rho is not None):
        raise Refused(
            "this ledger is pure: it takes epsilon alone, no delta and no rho",
            way_out="leave them out; or raise the budget to one with a delta, which stays on record: "
            "session.raise_budget, `discreet budget raise`",
        )
    if draft.groups is not None:
        return
    if draft.pure:
        raise Refused(
            "the keys of these groups are not public, and naming one costs a delta, which a pure ledger does not "
            f"take: {_declare_keys(draft)}, or join a public table of keys"
        )
    if spend.delta is None:
        raise Refused(
            "the keys of these groups are not public, and naming one costs a delta: say delta=…, far below one over "
            f"the number of people, or {_declare_keys(draft)}"
        )


def _declare_keys(draft: LimitedDraft) -> str:
    if any(key.expression.facts.kind is Kind.REAL for key in draft.question.keys):
        return (
            "list real keys with dp.categories([...]), declare them with dp.between(low, high, whole=True) if they are "
            "whole numbers, or bucket them with FLOOR"
        )
    return "declare them with dp.categories([...]) or dp.between(low, high)"


def _numbers_share(draft: BundledDraft) -> Fraction:
    numbers, picks = parts(draft)
    return Fraction(numbers, numbers + picks)


def _gaussian_is_better(draft: BundledDraft, epsilon: Fraction, multiplier: Fraction) -> bool:
    """Compare the half widths at 95 % of a number that one unit changes by 1 in each of its groups."""
    numbers, picks = parts(draft)
    groups = draft.footprint.most(1, 1)
    laplace = _LAPLACE_95 * groups * (numbers + picks) / float(epsilon)
    return _NORMAL_95 * math.sqrt(groups * numbers * multiplier) < laplace


def _by_rho(draft: BundledDraft, rho: Fraction, hidden: Fraction | None) -> FinalDraft:
    numbers, picks = parts(draft)
    each = rho / (numbers + picks)
    return _gaussian(draft, 2 * each * numbers, hidden, _choosers(draft, each, flips=False))


def _choosers(draft: BundledDraft, each: Fraction, *, flips: bool) -> tuple[Chooser, ...]:
    """Give each choice its part: an epsilon that adds up over a unit's groups, or a rho, by squares."""
    return tuple(_chooser(draft, asked, each, flips=flips) for asked in draft.picks)


def _chooser(draft: BundledDraft, asked: Pick, each: Fraction, *, flips: bool) -> Chooser:
    whole = chooser_of(draft, asked, flips=flips)
    chooser = _fitted(draft, whole, each)
    again = chooser_of(draft, asked, flips=flips, near=values_epsilon(draft, asked, chooser))
    return chooser if len(again.steps) == len(whole.steps) else _fitted(draft, again, each)


def _fitted(draft: BundledDraft, whole: Chooser, each: Fraction) -> Chooser:
    """Return a choice that spends its part: an epsilon, or a rho."""
    flips = whole.flips
    spent = choices_spent(draft.footprint, whole.single, flips=flips)
    if flips:
        epsilon = each / sum(part * times for part, times in spent)
    else:  # The exponential mechanism spends epsilon^2 / 8 in each of the unit's groups. [DR19]
        squares = sum(share**2 for share in whole.shares)
        epsilon = _root_down(8 * each / (squares * sum(part**2 * times for part, times in spent)))
    return replace(whole, epsilon=epsilon)


def _root_down(square: Fraction) -> Fraction:
    """Return a root, rounded down."""
    return Fraction(math.isqrt(int(square * _DIGITS**2)), _DIGITS)


def _laplace(draft: BundledDraft, epsilon: Fraction, hidden: Fraction | None) -> FinalDraft:
    each = epsilon / sum(parts(draft))

    def fitted(place: int) -> NumberNoise:
        change, own = draft.changes[place], each * _weight(draft, place)
        unit = _unit(int(_most(draft, place, 1) / own), change)
        law = DiscreteLaplaceLaw(check_noise_scale(_most(draft, place, 1, unit) / own))
        return _noise_of(draft, place, law, unit)

    noises = tuple(map(fitted, range(len(draft.numbers))))
    choosers = _choosers(draft, each, flips=True)
    return _noised(draft, noises, _selection(draft, LaplaceNoise(epsilon=each), hidden), choosers, gaussian=False)


def _gaussian(
    draft: BundledDraft, mu_squared: Fraction, hidden: Fraction | None, choosers: tuple[Chooser, ...]
) -> FinalDraft:
    """Split the square of mu among numbers and the choice of groups: squares add up. [DRS22]"""
    numbers, _ = parts(draft)
    each = mu_squared / numbers if numbers else Fraction(1)

    def fitted(place: int) -> NumberNoise:
        own = each * _weight(draft, place)
        unit = _unit(math.isqrt(int(_most(draft, place, 2) / own)), draft.changes[place])
        law = RoundedGaussianLaw(check_noise_variance(_most(draft, place, 2, unit) / own))
        return _noise_of(draft, place, law, unit)

    noises = tuple(map(fitted, range(len(draft.numbers))))
    selection = _selection(draft, GaussianNoise(squared_multiplier=1 / each), hidden)
    return _noised(draft, noises, selection, choosers, gaussian=True)


def _most(draft: BundledDraft, place: int, power: int, unit: int = 1) -> Fraction:
    """Return the l1 sensitivity of a number in units, or the square of the l2 one; in a bundle, of all that is in it.

    Where rows are exchanged, those that go may be of one number of a bundle and those that come of another: twice as
    much, or what an exchange within the number moves if that is more. `Bundle` says what is really spent.
    """
    change = _in_units(draft, draft.changes[place], unit) ** power
    if draft.relation is Relation.ADD_REMOVE:
        return Fraction((draft.spreads[place] or draft.max_groups) * change)
    exchange = _in_units(draft, draft.exchanges[place], unit) ** power
    is_alone = any(bundle == (place,) for bundle in draft.bundles)
    return draft.footprint.most(change, exchange if is_alone else max(exchange, 2 * change))


def _noise_of(draft: BundledDraft, place: int, law: DiscreteLaplaceLaw | RoundedGaussianLaw, unit: int) -> NumberNoise:
    exchanged = None if draft.relation is Relation.ADD_REMOVE else _in_units(draft, draft.exchanges[place], unit)
    change, spread = _in_units(draft, draft.changes[place], unit), draft.spreads[place]
    return NumberNoise(law=law, change=change, unit=unit, spread=spread, exchange=exchanged)


def _unit(scale: int, change: int) -> int:
    """Return a unit that is tiny next to the noise and next to the change, which it rounds up."""
    return max(1, min(scale // _FINEST, change // _ROUNDED_UP))


def _in_units(draft: LimitedDraft, change: int, unit: int) -> int:
    """Return a change in units, rounded up row by row: in a bundle a unit's rows are spread over several numbers."""
    rows = draft.factor * draft.max_rows
    return change if unit == 1 else rows * -(-change // (rows * unit))


def _selection(draft: LimitedDraft, noise: Noise, hidden: Fraction | None) -> TruncatedHistogram | None:
    """Return what shows groups: those whose number of units, with noise of its own, exceeds a threshold."""
    if hidden is None:
        return None
    from discreet.adaptive.truncated_histogram import TruncatedHistogram  # It brings all of that floor along.

    return TruncatedHistogram(noise=noise, delta=hidden, relation=draft.relation, bins_per_unit=draft.max_groups)


def _noised(
    draft: BundledDraft,
    noises: tuple[NumberNoise, ...],
    selection: TruncatedHistogram | None,
    choosers: tuple[Chooser, ...],
    *,
    gaussian: bool,
) -> FinalDraft:
    bundles = tuple(Bundle(tuple(noises[place] for place in bundle)) for bundle in draft.bundles)
    noising = Noising(
        gaussian=gaussian,
        numbers=noises,
        bundles=bundles,
        selection=selection,
        max_groups=draft.max_groups,
        common=draft.footprint.common,
    )
    final = FinalDraft(**known_as(BundledDraft, draft), noising=noising, choosers=choosers)
    check_choices(final)
    return final


# --- allocation: Pass: which numbers are paid together, and how the budget is split. ---
#
# Everything that is paid gets the same part: each bundle of numbers, each choice within groups, and the choice of
# groups
# if their keys are not public. Equal parts minimise the sum of all variances, each relative to its squared sensitivity:
# that sum is as the sum of 1 / part^2 for Laplace noise and of 1 / part for Gaussian noise, both convex and symmetric.
# A measure with a weight has so many of these parts; what is spent follows from the noise, whatever the weights.


def bundle_numbers(draft: SensitivityDraft) -> BundledDraft:
    """Put numbers together of which no row moves two; greedily, each into the first bundle that takes it."""
    bundles: list[list[int]] = []
    for place in range(len(draft.numbers)):
        for bundle in bundles:
            if all(exclusive(draft, place, other) for other in bundle):
                bundle.append(place)
                break
        else:
            bundles.append([place])
    return BundledDraft(**known_as(SensitivityDraft, draft), bundles=tuple(tuple(bundle) for bundle in bundles))


def parts(draft: BundledDraft) -> tuple[int, int]:
    """Return in how many parts the budget is split: for noise on numbers and groups, and for choices within groups."""
    weights = (max(draft.weights[place] for place in bundle) for bundle in draft.bundles)
    return sum(weights) + (draft.groups is None), len(draft.picks)


def _weight(draft: BundledDraft, place: int) -> int:
    """Return how many parts of the budget the bundle of a number has."""
    bundle = next(bundle for bundle in draft.bundles if place in bundle)
    return max(draft.weights[other] for other in bundle)


# --- exclusive ---
# Which numbers no row moves together: values and NULLs, and CASE expressions whose conditions exclude each other.
#
# A unit's rows are spread over such numbers: with r_i rows for number i and M rows in all, the sum of r_i s_i / b_i is
# at
# most M times the largest s_i / b_i, and the sum of the squares of r_i s_i / b_i is at most M^2 times the largest
# square.


_EXACT = 1 << 53  # Larger whole numbers may be equal as doubles.
_LONGEST = 64  # Numbers beyond it are not compared: planning stays quick.


def exclusive(draft: MeasuredDraft, one: int, other: int) -> bool:
    """Whether a row surely leaves one of two numbers unchanged."""
    if max(one, other) >= _LONGEST:
        return False
    if _are_halves(draft.numbers[one], draft.numbers[other]):
        return True
    first, second = _condition(draft, one), _condition(draft, other)
    return first is not None and second is not None and _contradict(first, second)


def _are_halves(one: Number, other: Number) -> bool:
    """Whether two numbers count the values and the NULLs of one column."""
    halves = {TallySpec.COUNT, TallySpec.NULLS}
    return one.column is not None and one.column == other.column and {one.tallying, other.tallying} == halves


def _condition(draft: MeasuredDraft, place: int) -> Expression | None:
    """Return what must be true of a row that moves a number; None if nothing is known."""
    number = draft.numbers[place]
    if number.column is None or number.tallying not in (TallySpec.COUNT, TallySpec.TOTAL):
        return None
    column = draft.columns[number.column]
    case = column.expression
    if not isinstance(case, Case) or len(case.branches) != 1 or not isinstance(case.otherwise, Literal):
        return None
    # NULL adds to nothing; zero adds nothing to a total about zero.
    nothing = case.otherwise.value is None or (number.tallying is TallySpec.TOTAL and _is_zero(column, case.otherwise))
    return case.branches[0][0] if nothing else None


def _is_zero(column: StageColumn, value: Literal) -> bool:
    """Whether a constant is counted as zero: it is, and clamping leaves it there."""
    grid = column.grid
    return value.value == 0 and column.centre == 0 and grid is not None and grid.first <= 0 <= grid.last


def _contradict(one: Expression, other: Expression) -> bool:
    """Whether two conditions are never both true of a row: not(a) and a, or a = 1 and a = 2."""
    if any(_is_negation(a, b) for a, b in ((one, other), (other, one))):
        return True
    first, second = _equation(one), _equation(other)
    if first is None or second is None:
        return False
    return first[0] == second[0] and _differ(first[1], second[1])


def _is_negation(one: Expression, other: Expression) -> bool:
    return isinstance(one, Apply) and one.operator is Operator.NOT and one.arguments[0] == other


def _equation(condition: Expression) -> tuple[Expression, Literal] | None:
    """Read x = constant, in either order; IN of constants is left alone."""
    if not isinstance(condition, Apply) or condition.operator is not Operator.EQUAL:
        return None
    left, right = condition.arguments
    if isinstance(right, Literal) and not isinstance(left, Literal):
        return left, right
    return (right, left) if isinstance(left, Literal) and not isinstance(right, Literal) else None


def _differ(one: Literal, other: Literal) -> bool:
    """Whether two constants of one kind surely differ, whichever engine compares."""
    a, b = one.value, other.value
    if isinstance(a, str) and isinstance(b, str):
        return _folded(a) != _folded(b)
    if type(a) is not type(b) or not isinstance(a, int) or not isinstance(b, int):
        return False
    return a != b and max(abs(a), abs(b)) < _EXACT


def _folded(text: str) -> str:
    """Take off what some engine might not compare: case, composition, blanks at the end."""
    return normalize("NFKC", text).casefold().strip()
