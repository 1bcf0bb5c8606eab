"""The mechanisms for a mean: how each is made from public facts, and what it is predicted to be worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from discreet.adaptive.clipped_mean import ClippedMean
from discreet.adaptive.noise_recipes import Recipe, best_recipe, polynomial
from discreet.adaptive.order_queries import trimmed_mean_query
from discreet.adaptive.smooth_mechanisms import SmoothSensitivityMechanism
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.mean import Mean
from discreet.mechanisms.measurement import Measurement
from discreet.mechanisms.sum import centred_step
from discreet.privacy.relation import Relation
from discreet.statistics.chooser_inputs import TYPICAL, WIDE, ChooserInputs, Predicted, with_bias
from discreet.statistics.expected import Floats

__all__ = ["CheckedMean", "ClampedMean", "FoundBoundsMean", "TrimmedMeanMethod"]

_SHARES = tuple(Fraction(1, part) for part in (40, 28, 20, 14, 10, 7, 5, 4))  # Of epsilon, for the radius.
_CENTRE = Fraction(1, 4)  # Of that share, for the centre.
_PREFERENCES = (Fraction(1), Fraction(2))  # For smaller radii, up to the likely one.
_BEYOND = 2 * math.log(2)  # Rows beyond a good radius, times epsilon, see below.
_ALIKE = 8  # Centres that are nearer to each other than the radius over this have bounds that are alike.
_MARGIN = 5
_CHECKED_MARGIN = 2.5
# A mechanism that nobody named leaves out more than one row in a hundred once in ten thousand times, whatever the data,
_RARE, _LOST = 100, Fraction(1, 10**4)
_DEAREST = Fraction(1, 14)  # and if bounds must be whole, it has spent 1/11 on them: the noise is wider by a tenth.
# One that a guess alone chooses notices if so many rows are not where they are expected, but for one time in a hundred.
_MANY, _SELDOM = 10, Fraction(1, 100)
_FINER = 1 << 12
_MOST_STEPS = 1 << 51
_ENDS = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 4))  # Of the rows, left out on each side.


class _AlwaysAnswers:
    declines: ClassVar[bool] = False

    def is_doubtful(self, facts: ChooserInputs) -> bool:
        return False

    def margin(self, facts: ChooserInputs) -> float:
        return 1


@dataclass(frozen=True)
class ClampedMean(_AlwaysAnswers):
    """The mean of values clamped to the declared bounds, with noise scaled to the width of the bounds."""

    name: ClassVar[str] = "clamped"
    count_share: Fraction = Fraction(1, 2)

    def refusal(self, facts: ChooserInputs) -> str | None:
        return None

    def make(self, facts: ChooserInputs) -> Mean:
        noise = _noise(facts)
        return Mean(
            grid=facts.grid, relation=facts.relation, noise=noise, public_rows=facts.size, count_share=self.count_share
        )

    def predict(self, facts: ChooserInputs) -> Predicted:
        return _mean_errors(facts, facts.grid, _noise(facts), self.count_share)


@dataclass(frozen=True)
class FoundBoundsMean(_AlwaysAnswers):
    """The mean within narrower bounds, which are found privately for a part of the budget."""

    name: ClassVar[str] = "clipped"

    def refusal(self, facts: ChooserInputs) -> str | None:
        return None if facts.rows else "it is tuned by the number of rows: say public_rows=…"

    def margin(self, facts: ChooserInputs) -> float:
        """What is clipped depends on tails, which a guess does not know: it is for a look that was paid, or for a name.

        Few rows far beyond a guess are lost: 100 of 100,000 at epsilon 1 make it 100 times worse than a clamped mean.
        """
        return _MARGIN if facts.rough and _cautious(facts) else math.inf

    def make(self, facts: ChooserInputs) -> ClippedMean:
        return _clipped(facts, facts.size, _best_setting(facts))

    def predict(self, facts: ChooserInputs) -> Predicted:
        return _clipped_errors(facts, _best_setting(facts))


@dataclass(frozen=True)
class CheckedMean(_AlwaysAnswers):
    """The same, beside a mean within the declared bounds, which is taken if the two do not agree.

    Rows that nobody expects can be lost only as far as the check does not notice: of 100,000 rows at epsilon 1 up to
    about ten at the far end of the bounds. So a guess of the law may choose it.
    """

    name: ClassVar[str] = "checked"

    def refusal(self, facts: ChooserInputs) -> str | None:
        return FoundBoundsMean().refusal(facts)

    def margin(self, facts: ChooserInputs) -> float:
        """With too few rows, or by a look that spent a part of epsilon, a wrong guess costs more than it gains."""
        if facts.rough or not facts.can_predict:
            return math.inf
        noticed = _predicted(facts, _CHECKED).most_beyond(_SELDOM) * _MANY <= (facts.rows or 0)
        return _CHECKED_MARGIN if noticed else math.inf

    def make(self, facts: ChooserInputs) -> ClippedMean:
        return _clipped(facts, facts.size, _CHECKED)

    def predict(self, facts: ChooserInputs) -> Predicted:
        return _clipped_errors(facts, _CHECKED)


@dataclass(frozen=True)
class TrimmedMeanMethod(_AlwaysAnswers):
    """The trimmed mean, with noise scaled to its smooth sensitivity."""

    name: ClassVar[str] = "trimmed"

    def refusal(self, facts: ChooserInputs) -> str | None:
        if facts.relation is not Relation.REPLACE_ONE:
            return "it needs a public number of rows, as under replace-one"
        return None if (facts.size or 0) > 2 / _ENDS[0] else "there are too few rows to leave some out"

    def margin(self, facts: ChooserInputs) -> float:
        """It answers another question where data are not symmetric."""
        return math.inf

    def make(self, facts: ChooserInputs) -> SmoothSensitivityMechanism:
        ends, recipe = _best_ends(facts)
        size = facts.size or 0
        query = trimmed_mean_query(grid=_finer(facts.grid), public_rows=size, trimmed=math.floor(ends * size))
        return SmoothSensitivityMechanism(query=query, recipe=recipe)

    def predict(self, facts: ChooserInputs) -> Predicted:
        ends, recipe = _best_ends(facts)
        return _trimmed_errors(facts, ends, recipe)


def _noise(facts: ChooserInputs) -> Noise:
    if facts.delta is None:
        return LaplaceNoise(epsilon=facts.epsilon)
    # How many people there are, and whether delta is small for them, was asked where it was named.
    return GaussianNoise.for_epsilon(facts.epsilon, facts.delta)


def _mean_errors(facts: ChooserInputs, within: Grid, noise: Noise, count_share: Fraction = Fraction(1, 2)) -> Predicted:
    """Predict for a mean within some bounds, both what its noise does and what clamping does."""
    mean = Mean(
        grid=within,
        relation=facts.relation,
        noise=noise,
        public_rows=facts.rows if facts.relation is Relation.REPLACE_ONE else None,
        count_share=count_share,
    )
    low, high, rows = float(within.low), float(within.high), facts.rows or 1
    inside = np.clip(facts.column, low, high)
    # The noise of the sum, and under add-remove that of the count times how far the mean is from the middle.
    step = within.step if mean.public_rows is not None else centred_step(within)
    weights = (float(step), abs(float(inside.mean()) - (low + high) / 2))
    typical, wide = (
        math.hypot(
            *(_half_width(part, level) * weight for part, weight in zip(mean.measurements, weights, strict=False))
        )
        for level in (TYPICAL, WIDE)
    )
    errors = Predicted(typical=typical / rows, wide=wide / rows)
    return with_bias(errors, _mismatch(inside - facts.column, rows))


def _half_width(measured: Measurement, level: Fraction) -> float:
    """Return the half-width of the noise, in grid steps."""
    return float(measured.accuracy().interval(Fraction(0), level)[1])


def _mismatch(changes: Floats, rows: int) -> float:
    """Return how far the mean is moved by changes of single rows: on average, and by chance."""
    return math.hypot(float(changes.mean()), float(changes.std()) / math.sqrt(rows))


@dataclass(frozen=True)
class _Setting:
    """What a clipped mean is tuned by."""

    share: Fraction  # of epsilon, for the radius
    preference: Fraction
    check: Fraction = Fraction(0)  # of the rest, for a mean within the declared bounds


_SETTINGS = tuple(_Setting(share, preference) for share in _SHARES for preference in _PREFERENCES)
_CHECKED = _Setting(_DEAREST, Fraction(1, 2), Fraction(1, 2))


def _clipped(facts: ChooserInputs, size: int | None, setting: _Setting) -> ClippedMean:
    return ClippedMean(
        grid=facts.grid,
        relation=facts.relation,
        epsilon=facts.epsilon,
        delta=facts.delta,
        public_rows=size,
        likely_radius=_likely_radius(facts),
        preference=setting.preference,
        centre_share=setting.share * _CENTRE,
        radius_share=setting.share,
        check_share=setting.check,
        allow_large_delta=True,
    )


def _predicted(facts: ChooserInputs, setting: _Setting) -> ClippedMean:
    """Return the mechanism to predict for; under replace-one a guess of the number of rows will do."""
    return _clipped(facts, facts.rows if facts.relation is Relation.REPLACE_ONE else None, setting)


@lru_cache(64)
def _likely_radius(facts: ChooserInputs) -> Fraction | None:
    """Return the radius that suits the expected column best, or nothing where nothing is expected.

    A radius larger by r adds 2 r ln 2 / epsilon to the usual noise of the sum, and takes r from what each row beyond it
    is moved by. So 2 ln 2 / epsilon rows beyond are best.
    """
    if not facts.can_predict:
        return None
    column = facts.column
    distances = np.sort(np.abs(column - column[column.size // 2]))
    beyond = math.ceil(_BEYOND / float(facts.epsilon) / facts.shortened)
    return max(Fraction(float(distances[max(0, distances.size - 1 - beyond)])), facts.grid.step)


@lru_cache(64)
def _clipped_errors(facts: ChooserInputs, setting: _Setting) -> Predicted:
    """Predict for the bounds that are likely to be found, each as often as it is."""
    mechanism = _predicted(facts, setting)
    found = [
        (chance * often, _checked_errors(facts, within, mechanism.noises_within(within)))
        for middle, often in _centres(facts, mechanism).items()
        for within, chance in mechanism.likely_bounds(facts.column, middle, rows=facts.shortened)
    ]
    total = sum(often for often, _ in found)
    return Predicted(
        typical=sum(often * errors.typical for often, errors in found) / total,
        wide=sum(often * errors.wide for often, errors in found) / total,
    )


def _checked_errors(facts: ChooserInputs, within: Grid, noises: tuple[Noise, ...]) -> Predicted:
    """Predict for a mean within some bounds that agrees with what checks it, but for one time in twenty."""
    errors = _mean_errors(facts, within, noises[0])
    checks = [_mean_errors(facts, facts.grid, noise).typical for noise in noises[1:]]
    return replace(errors, wide=max(errors.wide, *checks)) if checks else errors


def _centres(facts: ChooserInputs, mechanism: ClippedMean) -> dict[int, float]:
    """Return a usual centre, and a low and a high one that are hardly ever passed, if that matters to the bounds."""
    starts, lengths, scores = mechanism.centre.pieces_near(facts.sample)
    weights = lengths * np.exp(float(mechanism.centre.factor) * facts.shortened * scores.astype(float))
    chances = np.cumsum(weights) / weights.sum()
    places = [min(int(np.searchsorted(chances, level)), starts.size - 1) for level in (0.025, 0.5, 0.975)]
    low, middle, high = (int(starts[place] + lengths[place] // 2) for place in places)
    apart = (mechanism.likely_radius or 0) / mechanism.grid.step / _ALIKE
    return {middle: 1.0} if high - low <= apart else {low: 0.05, middle: 0.9, high: 0.05}


@lru_cache(64)
def _best_setting(facts: ChooserInputs) -> _Setting:
    """Return the best by prediction of the cautious settings, or of all where there are none."""
    if not facts.can_predict:
        return _Setting(Fraction(1, 10), Fraction(1, 2))
    return min(_cautious(facts) or _SETTINGS, key=lambda setting: _clipped_errors(facts, setting).typical)


@lru_cache(64)
def _cautious(facts: ChooserInputs) -> tuple[_Setting, ...]:
    """Return the settings with which a wrong guess costs little, by what is proven for all data."""
    if not facts.can_predict:
        return ()
    return tuple(
        setting
        for setting in _SETTINGS
        if setting.share <= _DEAREST and _predicted(facts, setting).most_beyond(_LOST) * _RARE <= (facts.rows or 0)
    )


@lru_cache(64)
def _best_ends(facts: ChooserInputs) -> tuple[Fraction, Recipe]:
    """Return how much to leave out, and noise that is predicted to be narrow; it hardly depends on how much."""
    recipe = best_recipe(
        lambda beta: polynomial(facts.epsilon, beta=beta),
        guess=lambda beta: _trimmed_bound(facts, _ENDS[1], beta),
        confidence=TYPICAL,
    )
    return min(_ENDS, key=lambda ends: _trimmed_errors(facts, ends, recipe).typical), recipe


def _trimmed_bound(facts: ChooserInputs, ends: Fraction, beta: Fraction) -> float:
    """Return the smooth bound of the expected column, in grid steps."""
    size = facts.sample.size
    query = trimmed_mean_query(grid=facts.grid, public_rows=size, trimmed=math.floor(ends * size))
    return query.smooth_bound(facts.sample, beta).approximate(float(beta))


def _finer(grid: Grid) -> Grid:
    """Return a grid on which a mean of many values can be told: it moves by much less than a step of theirs."""
    room = max(1, _MOST_STEPS // max(abs(grid.first), abs(grid.last), 1))
    return replace(grid, step=grid.step / min(room, _FINER))


def _trimmed_errors(facts: ChooserInputs, ends: Fraction, recipe: Recipe) -> Predicted:
    scale = _trimmed_bound(facts, ends, recipe.beta) * float(recipe.ratio * facts.grid.step) / facts.shortened
    typical, wide = (scale * recipe.law.guess(float(1 - level)) for level in (TYPICAL, WIDE))
    return with_bias(Predicted(typical=typical, wide=wide), _trimming(facts.column, ends, facts.rows or 1))


def _trimming(column: Floats, ends: Fraction, rows: int) -> float:
    """Return how far a trimmed mean is from the mean: by the shape of the data, and by chance.

    A row moves the trimmed mean as if it were Winsorised, over the share that is left. [HRRS86]
    """
    cut = math.floor(ends * column.size)
    kept = column[cut : column.size - cut]
    influence = np.clip(column, kept[0], kept[-1]) / float(1 - 2 * ends)
    shift = float(kept.mean() - column.mean())
    return math.hypot(shift, float((influence - column).std()) / math.sqrt(rows))
