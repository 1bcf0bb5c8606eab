"""A mean within bounds found in the data: its claim on all data sets of a small world, and what it is good for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet import adaptive
from discreet.errors import InvalidParameter
from discreet.lab import verify
from discreet.lab.verify import worlds
from discreet.lab.verify.small_worlds import neighbours
from discreet.mechanisms import Grid, Mean
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise
from discreet.privacy import epsilon
from discreet.privacy.events import PureDP
from discreet.privacy.relation import Relation

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
GRID = Grid(low=Fraction(0), high=Fraction(4), step=Fraction(1), default=Fraction(2))
SMALL = adaptive.ClippedMean(
    grid=GRID,
    relation=REPLACE_ONE,
    epsilon=Fraction(6),
    public_rows=3,
    likely_radius=Fraction(2),
    centre_share="1/4",
    radius_share="1/2",
)
WORLD = worlds((0, 1, 4), [3])


@pytest.mark.long
def test_claim_holds_on_all_data_sets_of_three_out_of_three_values() -> None:
    report = verify.check(SMALL, WORLD)
    assert report.holds, str(report)


@pytest.mark.slow
def test_claim_holds_on_all_data_sets_of_three_values() -> None:
    report = verify.check(SMALL, worlds((0, 1, 2, 3, 4), [3]))
    assert report.holds, str(report)


@pytest.mark.long
def test_a_radius_paid_for_half_is_refuted() -> None:
    """As if each score moved by half a row."""
    bold = replace(SMALL, radius_share=Fraction(7, 10), centre_share=Fraction(1, 100))
    cheap = PureDP(6 * (1 - Fraction(7, 10) / 2))
    assert verify.check(bold, WORLD, claim=cheap).violated


@pytest.mark.long
def test_claim_holds_where_rows_come_and_go() -> None:
    """With a private number of rows: the sum, the count, the centre and the radius together."""
    grid = Grid(low=Fraction(0), high=Fraction(2), step=Fraction(1), default=Fraction(1))
    mechanism = adaptive.ClippedMean(
        grid=grid, relation=ADD_REMOVE, epsilon=Fraction(30), likely_radius=1, centre_share="1/4", radius_share="1/4"
    )
    world = worlds((0, 1, 2), [0, 1, 2])
    assert verify.check(mechanism, world).holds
    assert verify.check(mechanism, world, claim=PureDP(18)).violated


# --- the radius: neighbours move all scores one way, by 1 at most, for every centre, prior and relation. ---

VALUES = (0, 1, 2, 3, 4)
RADIUS = Fraction(3)  # what the choice of a radius may cost
CHOICES = [
    adaptive.ClippedMean(
        grid=GRID,
        relation=relation,
        epsilon=2 * RADIUS,
        public_rows=3 if relation is REPLACE_ONE else None,
        radius_share="1/2",
        likely_radius=likely,
        preference=preference,
    )
    for relation in (ADD_REMOVE, REPLACE_ONE)
    for likely, preference in ((None, "1/2"), (None, 0), (2, 1), (100, 2))
]


def radius_laws(mechanism: adaptive.ClippedMean, middle: int) -> tuple[list[list[int]], list[np.ndarray]]:
    """Count rows beyond each radius from the definition, and list log-probabilities, for all data sets."""
    sizes = [3] if mechanism.relation is REPLACE_ONE else [0, 1, 2, 3]
    found = worlds(VALUES, sizes)
    counts = [[sum(abs(row - middle) > radius for row in rows) for radius in mechanism.radii] for rows in found]
    laws = []
    for rows in found:
        scaled = np.array([float(mechanism._factor * score) for score in mechanism._scores(list(rows), middle)])
        laws.append(scaled - np.logaddexp.reduce(scaled))
    return counts, laws


def largest_loss(mechanism: adaptive.ClippedMean) -> tuple[float, float]:
    """Return the largest privacy loss of the radius, and the largest range of losses, over all pairs and centres."""
    sizes = [3] if mechanism.relation is REPLACE_ONE else [0, 1, 2, 3]
    pairs = neighbours(worlds(VALUES, sizes), mechanism.relation)
    losses = [
        laws[one] - laws[other]
        for middle in VALUES
        for laws in [radius_laws(mechanism, middle)[1]]
        for one, other in pairs
    ]
    return max(np.abs(loss).max() for loss in losses), max(np.ptp(loss) for loss in losses)


@pytest.mark.parametrize("mechanism", CHOICES, ids=str)
def test_a_neighbour_moves_the_rows_beyond_all_radii_one_way_and_by_one(mechanism: adaptive.ClippedMean) -> None:
    sizes = [3] if mechanism.relation is REPLACE_ONE else [0, 1, 2, 3]
    pairs = neighbours(worlds(VALUES, sizes), mechanism.relation)
    for middle in VALUES:
        counts, _ = radius_laws(mechanism, middle)
        for one, other in pairs:
            moved = {a - b for a, b in zip(counts[one], counts[other], strict=True)}
            assert moved <= {0, 1} or moved <= {0, -1}


@pytest.mark.parametrize("mechanism", CHOICES, ids=str)
def test_the_choice_of_a_radius_spends_its_share_and_no_more(mechanism: adaptive.ClippedMean) -> None:
    """The range of losses is the share exactly: some row moves one radius and leaves another."""
    loss, span = largest_loss(mechanism)
    assert loss <= float(RADIUS) + 1e-12
    assert span == pytest.approx(float(RADIUS), abs=1e-12)


@pytest.mark.parametrize("mechanism", CHOICES, ids=str)
def test_a_doubled_factor_spends_more_than_the_share(
    mechanism: adaptive.ClippedMean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive.ClippedMean, "_factor", property(lambda self: 2 * self.epsilon * self.radius_share))
    loss, span = largest_loss(mechanism)
    assert loss > float(RADIUS) + 0.1
    assert span == pytest.approx(2 * float(RADIUS), abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_verification_refutes_a_doubled_factor(relation: Relation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the whole mechanism; the same with the right factor holds."""
    grid = Grid(low=Fraction(0), high=Fraction(2), step=Fraction(1), default=Fraction(1))
    mechanism = adaptive.ClippedMean(
        grid=grid,
        relation=relation,
        epsilon=Fraction(20),
        public_rows=2 if relation is REPLACE_ONE else None,
        preference=6,
        centre_share="1/10",
        radius_share="8/10",
    )
    world = worlds((0, 1, 2), [2] if relation is REPLACE_ONE else [0, 1])
    assert verify.check(mechanism, world).holds
    monkeypatch.setattr(adaptive.ClippedMean, "_factor", property(lambda self: 2 * self.epsilon * self.radius_share))
    assert verify.check(mechanism, world).violated


@pytest.mark.parametrize("mechanism", CHOICES, ids=str)
@pytest.mark.parametrize("chance", ["0.5", "0.1", "0.001"])
def test_more_rows_than_said_are_seldom_left_out(mechanism: adaptive.ClippedMean, chance: str) -> None:
    most = mechanism.most_beyond(chance)
    for middle in VALUES:
        for beyond, law in zip(*radius_laws(mechanism, middle), strict=True):
            assert np.exp(law)[np.array(beyond) > most].sum() <= float(chance)


# --- the check: a mean within the whole grid, for a share of the budget. ---

CHECKED = adaptive.ClippedMean(
    grid=GRID,
    relation=REPLACE_ONE,
    epsilon=Fraction(20),
    public_rows=2,
    centre_share="1/10",
    radius_share="1/10",
    check_share="1/2",
)
EXTREMES = worlds((0, 1, 4), [2])


def checked_where_rows_come_and_go() -> adaptive.ClippedMean:
    return replace(CHECKED, relation=ADD_REMOVE, public_rows=None, epsilon=Fraction(60))


@pytest.mark.long
def test_the_claim_holds_for_what_is_found_and_what_checks_it_together() -> None:
    assert verify.check(CHECKED, EXTREMES).holds


@pytest.mark.slow
def test_the_claim_of_a_check_holds_where_rows_come_and_go() -> None:
    assert verify.check(checked_where_rows_come_and_go(), worlds((0, 4), [0, 1, 2])).holds


@pytest.mark.long
def test_a_check_that_is_not_paid_for_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the mean within the whole grid were free."""
    right = adaptive.ClippedMean.noises_within

    def unpaid(self: adaptive.ClippedMean, within: Grid) -> tuple[LaplaceNoise, ...]:
        return (LaplaceNoise(epsilon=self._rest),) * len(right(self, within))

    monkeypatch.setattr(adaptive.ClippedMean, "noises_within", unpaid)
    assert verify.check(CHECKED, EXTREMES).violated


@pytest.mark.parametrize("noise", [LaplaceNoise(epsilon=Fraction(3)), GaussianNoise(squared_multiplier=Fraction(2))])
def test_parts_of_noise_spend_what_the_whole_does(noise: LaplaceNoise | GaussianNoise) -> None:
    """The event says what one mean with all of the budget spends."""
    mechanism = replace(CHECKED, delta=Fraction(1, 100) if isinstance(noise, GaussianNoise) else None)
    mechanism = replace(mechanism, allow_large_delta=True)
    inside, check = mechanism.noises_within(Grid.between(0, 1, step=1))
    if isinstance(inside, GaussianNoise):
        assert isinstance(mechanism.noise, GaussianNoise)
        assert 1 / inside.squared_multiplier + 1 / check.squared_multiplier == 1 / mechanism.noise.squared_multiplier
    else:
        assert inside.epsilon + check.epsilon == mechanism.noise.epsilon


def test_only_bounds_narrower_than_a_fourth_are_checked() -> None:
    assert len(CHECKED.noises_within(Grid.between(0, 1, step=1))) == 2
    assert len(CHECKED.noises_within(Grid.between(0, 2, step=1))) == 1
    assert len(replace(CHECKED, check_share=0).noises_within(Grid.between(0, 1, step=1))) == 1


def far_apart(far: int) -> tuple[adaptive.ClippedMean, np.ndarray]:
    """A hundred thousand rows near 50, and a few at the far end of bounds that are twenty times wider."""
    values = np.random.default_rng(5).normal(50, 10, 100_000)
    values[:far] = 1000
    mechanism = adaptive.ClippedMean(
        grid=Grid.between(-1000, 1000, step="0.01"),
        relation=REPLACE_ONE,
        epsilon=Fraction(1),
        public_rows=100_000,
        likely_radius=50,
        preference=1,
        centre_share="1/56",
        radius_share="1/14",
        check_share="1/2",
    )
    return mechanism, values


def usual_error(mechanism: adaptive.ClippedMean, values: np.ndarray) -> float:
    return float(np.median([abs(float(mechanism.release(values).value) - values.mean()) for _ in range(61)]))


@pytest.mark.long
def test_a_check_notices_rows_that_the_radius_leaves_out() -> None:
    """Forty rows move the mean by 0.38, which Laplace noise of scale 0.044 tells; a radius paid by 1/14 does not.

    Each error is on the other side with a chance of 0.12 at most, so that a median of 61 is with one below 1e-11.
    """
    mechanism, values = far_apart(40)
    assert usual_error(mechanism, values) < 0.15
    assert usual_error(replace(mechanism, check_share=0), values) > 0.2


@pytest.mark.long
def test_a_check_leaves_most_of_the_gain() -> None:
    """Half the usual error of a mean within all of the grid is exceeded once in ten times, and not by a median."""
    mechanism, values = far_apart(0)
    assert usual_error(mechanism, values) < 0.014 / 2


def test_an_answer_that_was_checked_has_the_interval_of_two() -> None:
    """Which of two answers is taken depends on their noise, so both intervals must hold at once."""
    mechanism, values = far_apart(0)
    plain = Mean(
        grid=mechanism.grid,
        relation=REPLACE_ONE,
        noise=mechanism.noise.part(Fraction(1, 2)),
        public_rows=mechanism.public_rows,
    )
    # One that was checked: one time in twenty the bounds that are found are too wide for that.
    release = next(found for found in (mechanism.release(values) for _ in range(100)) if found.noise is None)
    low, high = release.limits
    assert low is not None
    assert high is not None
    alone = replace(plain, grid=Grid(low=low, high=high, step=mechanism.grid.step, default=low)).release(values)
    assert release.plus_minus("0.9") == pytest.approx(alone.plus_minus("0.95"))


@pytest.mark.parametrize("share", [-1, 1, "3/2"])
def test_shares_of_a_check_that_make_no_sense_are_refused(share: object) -> None:
    with pytest.raises(InvalidParameter):
        replace(CHECKED, check_share=share)


def test_a_likely_radius_is_preferred_until_rows_say_otherwise() -> None:
    wide = Grid.between(0, 10**6, step=1)
    mechanism = adaptive.ClippedMean(grid=wide, relation=ADD_REMOVE, epsilon=1, likely_radius=1000)
    [(near, _), *_] = sorted(mechanism.likely_bounds([5000] * 10, 5000), key=lambda pair: -pair[1])
    assert near.high - near.low <= 2000
    far = [5000] * 1000 + [900_000] * 1000
    assert all(bounds.high >= 900_000 for bounds, _ in mechanism.likely_bounds(far, 5000))


@pytest.mark.parametrize(
    "wrong", [{"likely_radius": 0}, {"likely_radius": -1}, {"preference": -1}, {"preference": "x"}]
)
def test_priors_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        adaptive.ClippedMean(grid=GRID, relation=ADD_REMOVE, epsilon=Fraction(1), **wrong)


def test_the_price_is_the_whole_epsilon() -> None:
    for relation, size in ((ADD_REMOVE, None), (REPLACE_ONE, 1000)):
        mechanism = adaptive.ClippedMean(grid=GRID, relation=relation, epsilon=Fraction(1), public_rows=size)
        assert epsilon(mechanism.event, 0, relation=relation) == pytest.approx(1)


def test_with_a_delta_the_price_stays_within_epsilon() -> None:
    mechanism = adaptive.ClippedMean(grid=GRID, relation=ADD_REMOVE, epsilon=Fraction(1), delta=Fraction("1e-6"))
    assert 0.9 < epsilon(mechanism.event, Fraction("1e-6"), relation=ADD_REMOVE) <= 1


@pytest.mark.parametrize("delta", [None, Fraction("1e-6")])
def test_the_release_says_what_all_three_steps_spend(delta: Fraction | None) -> None:
    mechanism = adaptive.ClippedMean(grid=GRID, relation=ADD_REMOVE, epsilon=Fraction(1), delta=delta)
    assert mechanism.release([0, 1, 4]).event == mechanism.event


def test_wide_bounds_cost_far_less_than_they_do_a_plain_mean() -> None:
    values = np.random.default_rng(7).normal(30, 5, 20_000)
    wide = Grid.between(-1000, 1000, step="0.01")
    mechanism = adaptive.ClippedMean(grid=wide, relation=REPLACE_ONE, epsilon=Fraction(1), public_rows=20_000)
    plain = Mean(grid=wide, relation=REPLACE_ONE, noise=LaplaceNoise(epsilon=Fraction(1)), public_rows=20_000)
    truth = values.mean()
    ours = np.median([abs(float(mechanism.release(values).value) - truth) for _ in range(60)])
    theirs = np.median([abs(float(plain.release(values).value) - truth) for _ in range(60)])
    assert ours < theirs / 10  # Usually a fortieth.


def test_the_bounds_that_were_found_are_told() -> None:
    values = np.random.default_rng(7).normal(30, 5, 20_000)
    wide = Grid.between(-1000, 1000, step="0.01")
    answer = adaptive.ClippedMean(grid=wide, relation=ADD_REMOVE, epsilon=Fraction(2)).release(values)
    low, high = answer.limits
    assert low is not None
    assert high is not None
    assert wide.low <= low < high <= wide.high


@pytest.mark.parametrize("shares", [("1/2", "1/2"), ("0.9", "0.2"), ("0", "0.1"), ("0.1", "1")])
def test_shares_that_leave_nothing_are_refused(shares: tuple[str, str]) -> None:
    with pytest.raises(InvalidParameter):
        adaptive.ClippedMean(
            grid=GRID, relation=ADD_REMOVE, epsilon=Fraction(1), centre_share=shares[0], radius_share=shares[1]
        )
