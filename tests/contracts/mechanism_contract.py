"""What every mechanism keeps: frozen public fields, nonsense refused, a claim that holds, a law that is sampled."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from statistical import expected_p_value, fits, rejects

from discreet.balls import ball, precision
from discreet.errors import DiscreetError
from discreet.lab import verify
from discreet.mechanisms import Release
from discreet.mechanisms.sum import centred_step
from discreet.privacy import events
from discreet.privacy.outcomes import Outcomes

NONSENSE = (math.nan, math.inf, -math.inf, "NaN", "x", "", "1/0", True, None, [], 1j)
DRAWS = 500


class MechanismContract:
    """Inherit, and name `subjects`: each test then runs for each of them."""

    subjects: ClassVar[list[Any]]
    hard_to_tell: ClassVar[list[Any]] = []  # so private that the other end of their world looks the same

    def test_is_a_frozen_value_with_keyword_fields(self, subject: Any) -> None:
        mechanism = subject.mechanism
        field = dataclasses.fields(mechanism)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, field, getattr(mechanism, field))
        with pytest.raises(TypeError):
            type(mechanism)(getattr(mechanism, field))
        assert dataclasses.replace(mechanism) == mechanism
        assert not hasattr(mechanism, "__dict__")

    def test_refuses_nonsense_in_every_number(self, subject: Any) -> None:
        mechanism, tried = subject.mechanism, 0
        for field in dataclasses.fields(mechanism):
            if type(getattr(mechanism, field.name)) in (int, Fraction):
                for value in NONSENSE:
                    if value is None and field.default is None:
                        continue
                    tried += 1
                    with pytest.raises(DiscreetError):
                        dataclasses.replace(mechanism, **{field.name: value})
        assert tried or not any(field.type == "Fraction" for field in dataclasses.fields(mechanism))

    def test_refuses_what_is_no_relation(self, subject: Any) -> None:
        if "relation" not in {field.name for field in dataclasses.fields(subject.mechanism)}:
            return
        for value in ("add remove", None, 0, True):
            with pytest.raises(DiscreetError):
                dataclasses.replace(subject.mechanism, relation=value)

    def test_reads_a_relation_by_its_name(self, subject: Any) -> None:
        if "relation" in {field.name for field in dataclasses.fields(subject.mechanism)}:
            named = dataclasses.replace(subject.mechanism, relation=subject.mechanism.relation.value)
            assert named.relation is subject.mechanism.relation
            assert named == subject.mechanism

    def test_event_is_stored_and_read_back_equal(self, subject: Any) -> None:
        event = subject.mechanism.event
        assert events.from_json(event.to_json()) == event

    def test_release_carries_event_relation_and_cost(self, subject: Any) -> None:
        release = subject.mechanism.release(subject.given(subject.pair[0]))
        assert isinstance(release, Release)
        assert release.event == subject.mechanism.event
        assert release.relation is subject.mechanism.relation
        assert "=" in release.cost
        assert release.cost in repr(release)

    def test_distribution_sums_to_one(self, subject: Any) -> None:
        for data in subject.pair:
            with precision(128):
                law = subject.mechanism.distribution(subject.given(data))
                total = sum(law.masses.values(), ball(0))
                assert total <= 1 + ball(Fraction(1, 2**60))
                assert total + ball(law.tail) >= 1 - ball(Fraction(1, 2**60))

    @pytest.mark.some(18)
    def test_claim_holds_on_small_worlds(self, subject: Any) -> None:
        report = verify.check(subject.mechanism, subject.worlds, query=subject.given)
        assert all(finding.holds for finding in report.findings), str(report)
        # The planted bug of all mechanisms: one that claims a third of this would be refuted, so the world has power.
        assert any(finding.lower > finding.claim.value / 3 for finding in report.findings), "its neighbours look alike"

    @pytest.mark.some(18)
    @pytest.mark.statistical
    def test_release_follows_distribution(self, subject: Any) -> None:
        data, other = map(subject.given, subject.pair)
        with precision(128):
            law, wrong = (subject.mechanism.distribution(given) for given in (data, other))
        places = {outcome: place for place, outcome in enumerate(telling_apart(law, wrong))}
        truth, mistake = listed(law, places), listed(wrong, places)
        sample = [places[outcome_of(subject.mechanism, subject.mechanism.release(data))] for _ in range(DRAWS)]
        assert fits(sample, truth)
        if expected_p_value(truth, mistake, DRAWS) < 1e-60:  # far enough for any luck of the draws
            assert rejects(sample, mistake)
        else:
            assert subject in self.hard_to_tell, (
                "so much noise that the other end of its world looks the same: add less"
            )


def telling_apart(law: Outcomes, wrong: Outcomes) -> list[Any]:
    """Order all outcomes by how much they speak for the first law: so ranges of places tell the two apart best."""

    def share(outcome: Any) -> float:
        one, other = (float(side.masses.get(outcome, 0)) for side in (law, wrong))
        return one / (one + other) if one + other > 0 else 0.5

    return sorted({**law.masses, **wrong.masses}, key=share)


def listed(law: Outcomes, places: dict[Any, int]) -> list[float]:
    """Return the probabilities by place; what is not listed is far too rare to be seen."""
    chances = [0.0] * len(places)
    for outcome, mass in law.masses.items():
        chances[places[outcome]] = max(0.0, float(mass))
    total = math.fsum(chances)
    return [chance / total for chance in chances]


def outcome_of(mechanism: Any, release: Release[Any]) -> Any:
    """Return what `distribution` lists, from what was released: the noisy numbers behind a quotient."""
    accuracy, value = release.accuracy, release.value
    step = getattr(getattr(mechanism, "grid", mechanism), "step", Fraction(1))
    match type(mechanism).__name__:
        case "Sum":
            return (value / step,)
        case "Mean" | "Proportion":
            step = Fraction(1, 2) if type(mechanism).__name__ == "Proportion" else step
            if mechanism.public_rows is None:
                return (accuracy.total, accuracy.count)
            return (value * mechanism.public_rows / step,)
        case "Variance":
            if mechanism.public_rows is None:
                step = centred_step(mechanism.grid)
                return (accuracy.squares / step**2, accuracy.total / step, accuracy.count)
            return (value * (mechanism.public_rows / step) ** 2,)
        case "PopulationMean":
            sampled = accuracy.sampled
            numbers = (sampled.total, sampled.count if mechanism.public_rows is None else None, sampled.squares)
            return tuple(number for number in numbers if number is not None)
        case "Covariance":
            return _comoments(release)
        case "MatrixMechanism":  # Its queries are the cells, and their strategy is one matrix.
            (factor,) = mechanism.strategy.factors
            return tuple(round(number) for number in factor.matrix @ release.estimate)
        case "VectorMean":
            if mechanism.public_rows is None:
                return (*(cell.total for cell in accuracy.cells), accuracy.cells[0].count)
            return tuple(part * mechanism.public_rows / step for part in value)
        case "Quantile":
            return value / step
        case "QuantileInterval":
            return tuple(part / step for part in (value, accuracy.low, accuracy.high))
        case "Quantiles":
            return tuple(part / step for part in value)
        case "CorrelatedGaussian":
            return _turned_back(mechanism, value)
        case _:  # Measurements are listed as vectors, also where there is one of them.
            return (value,) if hasattr(mechanism, "measurements") and not isinstance(value, tuple) else value


def _comoments(release: Release[Any]) -> tuple[int, ...]:
    """The noisy numbers behind two columns: their variances and covariance, or squares, products, sums and count."""
    first, both, _, second = (cell.numbers for cell in release.accuracy.cells)
    if len(both) == 1:
        return (first[0], second[0], both[0])
    return (first[0], second[0], both[0], first[1], second[1], both[-1])


def _turned_back(mechanism: Any, value: tuple[Fraction, ...]) -> tuple[int, ...]:
    from discreet.mechanisms import correlated_gaussian

    lower, _ = correlated_gaussian.factor(mechanism.covariance)
    turned = correlated_gaussian.solve(lower, value)
    return tuple(int(part / step) for part, step in zip(turned, mechanism.steps, strict=True))
