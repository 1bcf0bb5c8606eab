"""A number with very wide noise is measured in coarse units; its sensitivity must hold there too."""

from fractions import Fraction

from discreet import Relation
from discreet.mechanisms import LaplaceNoise
from discreet.mechanisms.additive_noise import Sensitivity
from discreet.mechanisms.measurement import BoundedQuery, Measurement


def _measurement(sensitivity: int) -> Measurement:
    query = BoundedQuery(
        evaluate=lambda data: (data[0],), sensitivity=Sensitivity.scalar(sensitivity), relation=Relation.ADD_REMOVE
    )
    return Measurement(query=query, noise=LaplaceNoise(epsilon=Fraction(1, 1 << 30)))


def test_coarse_values_of_neighbours_stay_within_the_coarse_sensitivity():
    measurement = _measurement(3 << 20)
    unit = measurement.unit
    assert unit > 1
    allowed = measurement.sensitivity.l1
    starts = range(-3 * unit, 3 * unit + 1)
    moves = (measurement.query.sensitivity.l1, unit * allowed, unit * (allowed - 1) + 1)
    changes = [
        measurement._exact((start + move,))[0] - measurement._exact((start,))[0]
        for start in starts
        for move in moves
        if move <= measurement.query.sensitivity.l1
    ]
    assert max(changes) == allowed


def test_rounding_half_to_even_would_break_it():
    unit = 2
    even = [round(Fraction(value, unit)) for value in (1, 3)]
    assert even[1] - even[0] == 2 > -(-2 // unit)
