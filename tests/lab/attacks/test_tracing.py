"""Tracing: exact means give members away, private ones keep to their ceiling, and broken ones are caught."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from discreet.errors import InvalidParameter
from discreet.lab.attacks import (
    Score,
    coins,
    gaussian_counts,
    genome,
    halves,
    indicators,
    least_deviation,
    plot_power,
    tracing,
    tracing_power,
)
from discreet.lab.attacks.populations import Population
from discreet.lab.attacks.tracing import points, score_all
from discreet.mechanisms import VectorGaussian
from discreet.privacy import Gaussian, NotPrivate, Relation, epsilon, gdp_mu

FALSE_ALARM = 1e-9
REPLACE = Relation.REPLACE_ONE


def ours(attributes: int, level: str, change: int | None = None) -> VectorGaussian:
    return gaussian_counts(
        attributes, squared_sensitivity=change or attributes, epsilon=level, delta="1e-6", relation=REPLACE
    )


@dataclass(frozen=True)
class Broken:
    """Claims what a mechanism claims, and adds a fraction of its noise."""

    honest: VectorGaussian
    part: int

    @property
    def event(self) -> Gaussian:
        return self.honest.event

    @property
    def relation(self) -> Relation:
        return self.honest.relation

    def release(self, answer: list[int]) -> object:
        less = VectorGaussian(
            squared_sensitivity=self.honest.squared_sensitivity,
            variance=self.honest.variance / self.part**2,
            dimension=self.honest.dimension,
            relation=self.honest.relation,
        )
        return less.release(answer)


class TestPower:
    def test_the_law_of_the_score_agrees_with_the_published_vectors(self):
        """d = 1000 coins of ±1, n = 100: 10, 9.9, 0, 10 and 0.98750894…; a coin of 0 and 1 has a quarter of that."""
        power = tracing_power(100, coins(1000))
        assert 4 * power.members_mean == pytest.approx(10)
        assert 16 * power.members_variance == pytest.approx(9.9)
        assert 16 * power.strangers_variance == pytest.approx(10)
        assert power.auc == pytest.approx(0.9875089433783157, rel=1e-6)
        assert 4 * tracing_power(100, Population(np.full(1000, 0.8))).members_mean == pytest.approx(6.4)

    @pytest.mark.parametrize("copies", [1, 2])
    def test_the_law_of_the_score_agrees_with_brute_force(self, copies):
        """All worlds of two people and one attribute, with their chances."""
        p, people = 0.3, 2
        chance = [math.comb(copies, x) * p**x * (1 - p) ** (copies - x) for x in range(copies + 1)]
        mean = copies * p
        inside = [
            (chance[x] * chance[y], (x - mean) * ((x + y) / people - mean))
            for x, y in product(range(copies + 1), repeat=2)
        ]
        first = sum(w * s for w, s in inside)
        power = tracing_power(people, Population(np.array([p]), copies))
        assert power.members_mean == pytest.approx(first)
        assert power.members_variance == pytest.approx(sum(w * s * s for w, s in inside) - first**2)

    def test_power_grows_with_attributes_for_each_person(self):
        found = [tracing_power(100, coins(d)).tpr(0.05) for d in (10, 100, 1000, 3000)]
        assert found == sorted(found)
        assert found[0] < 0.1
        assert found[-1] > 0.99

    def test_noise_that_grows_like_the_root_of_the_attributes_stops_tracing_and_less_does_not(self):
        """With sqrt(d) / µ on each count no number of attributes leads beyond µ; with a fixed noise it does."""
        mu = gdp_mu(ours(10, "1").event, relation=REPLACE)
        for d in (10**2, 10**4, 10**6):
            assert tracing_power(100, coins(d), deviation=math.sqrt(d) / mu).mu < mu
        assert tracing_power(100, coins(10**6), deviation=50.0).mu > mu

    @pytest.mark.parametrize("level", ["0.1", "1", "10"])
    def test_the_floor_is_half_of_what_the_mechanism_adds(self, level):
        """Tracing refutes the claim below sqrt(d) / (2 µ), and the Gaussian mechanism adds sqrt(d) / µ."""
        d = 10**5
        mechanism = ours(d, level)
        mu = gdp_mu(mechanism.event, relation=REPLACE)
        floor = least_deviation(50, coins(d), mu=mu)
        assert floor == pytest.approx(math.sqrt(mechanism.variance) / 2, rel=2e-3)
        assert tracing_power(50, coins(d), deviation=floor).mu == pytest.approx(mu)

    def test_the_chart_draws(self, tmp_path):
        assert plot_power(100, (0.0, 30.0)).to_dict()["layer"]


class TestScores:
    @pytest.mark.parametrize("copies", [1, 2])
    def test_the_likelihood_ratio_is_exact(self, copies):
        """Compared with all worlds of three people: P(count, person has x) / (P(count) P(x))."""
        p, people = 0.2, 3
        population = Population(np.array([p]), copies)
        law = [math.comb(copies, x) * p**x * (1 - p) ** (copies - x) for x in range(copies + 1)]
        joint: dict[tuple[int, int], float] = {}
        for world in product(range(copies + 1), repeat=people):
            key = (world[0], sum(world))
            joint[key] = joint.get(key, 0.0) + math.prod(law[x] for x in world)
        for count in range(copies * people + 1):
            table = points(Score.LIKELIHOOD_RATIO, np.array([float(count)]), people, population, 0.0)
            whole = sum(chance for (_, total), chance in joint.items() if total == count)
            for x in range(copies + 1):
                if (x, count) in joint:
                    assert math.exp(table[x, 0]) == pytest.approx(joint[x, count] / whole / law[x])
                else:
                    assert table[x, 0] == -1e6

    def test_points_add_up_to_the_inner_product(self):
        population = genome(30)
        rows, counts = population.draw(5), population.draw(40).sum(axis=0).astype(float)
        table = points(Score.INNER_PRODUCT, counts, 40, population, 0.0)
        direct = (rows - population.means) @ (counts / 40 - population.means)
        assert score_all(rows, table) == pytest.approx(direct)

    @pytest.mark.statistical
    def test_only_the_centred_product_tells_members_where_the_mean_is_not_zero(self):
        """Each row of a coin of 0.9 is like every other: the product of the notes is about as high for strangers."""
        population = Population(np.full(600, 0.9))
        members, strangers = population.draw(60), population.draw(200)
        found = tracing(members, strangers, population=population).value
        assert found.found(0.05).interval(FALSE_ALARM)[0] > 0.3
        mean = members.mean(axis=0)
        assert np.mean((members @ mean)[:, None] > (strangers @ mean)[None, :]) < 0.8


@pytest.mark.statistical
@pytest.mark.parametrize("score", list(Score))
def test_exact_counts_of_many_attributes_give_members_away(score):
    """40 attributes for each person: the formula misses one in a million."""
    population = coins(2400)
    found = tracing(population.draw(60), population.draw(200), population=population, score=score).value
    assert found.power.tpr(0.05) > 0.99999
    assert found.found(0.05).interval(FALSE_ALARM)[0] > 0.5
    assert found.accused(0.05).interval(FALSE_ALARM)[0] < 0.2
    assert found.ceiling(0.05) is None
    assert found.auc > 0.95


@pytest.mark.statistical
def test_few_attributes_for_each_person_give_nobody_away():
    population = coins(10)
    found = tracing(population.draw(500), population.draw(400), population=population).value
    # The score from which somebody is accused is estimated from the strangers, so that it is 0.05 only about.
    assert found.found(0.05).interval(FALSE_ALARM)[0] < found.accused(0.05).interval(FALSE_ALARM)[1]
    assert found.power.tpr(0.05) < 0.08


@pytest.mark.statistical
def test_allele_frequencies_of_a_study_give_its_members_away():
    population = genome(2400)
    members, strangers = population.draw(60), population.draw(200)
    for score in Score:
        found = tracing(members, strangers, population=population, score=score).value
        assert found.found(0.05).interval(FALSE_ALARM)[0] > 0.4


@pytest.mark.statistical
def test_the_measured_share_agrees_with_the_formula():
    population = coins(800)
    found = tracing(population.draw(400), population.draw(600), population=population).value
    low, high = found.found(0.05).interval(FALSE_ALARM)
    # The threshold is a quantile of 300 strangers, which moves the share by a few hundredths.
    assert low - 0.1 < found.power.tpr(0.05) < high + 0.1
    assert 0.35 < found.power.tpr(0.05) < 0.45
    assert high < 0.7


@pytest.mark.statistical
@pytest.mark.parametrize("level", ["0.1", "1", "10"])
def test_tracing_stays_below_the_ceiling_of_a_private_release(level):
    population = coins(150)
    members, strangers = population.draw(30), population.draw(200)
    mechanism = ours(150, level)
    assert epsilon(mechanism.event, "1e-6", relation=REPLACE) <= float(Fraction(level))
    for score in (Score.INNER_PRODUCT, Score.LIKELIHOOD_RATIO):
        found = tracing(members, strangers, mechanism=mechanism, score=score, population=population, trials=300).value
        for fpr in (0.05, 0.2):
            ceiling = found.ceiling(fpr, FALSE_ALARM)
            assert ceiling is not None
            assert found.found(fpr).interval(FALSE_ALARM)[0] <= ceiling < 1


@pytest.mark.statistical
def test_tracing_beats_the_ceiling_of_a_release_with_a_hundredth_of_its_noise():
    population = coins(600)
    members, strangers = population.draw(20), population.draw(200)
    broken = Broken(ours(600, "1"), 100)
    found = tracing(members, strangers, mechanism=broken, population=population, trials=300).value
    ceiling = found.ceiling(0.05, FALSE_ALARM)
    assert ceiling is not None
    assert found.found(0.05).interval(FALSE_ALARM)[0] > ceiling


@pytest.mark.statistical
def test_noise_calibrated_to_one_count_instead_of_all_is_caught():
    """The mistake of the notes' l2 slide: sensitivity 1 for d counts that one person changes all at once."""
    population = coins(600)
    one = gaussian_counts(600, squared_sensitivity=1, epsilon=1, delta="1e-6", relation=REPLACE)
    found = tracing(population.draw(20), population.draw(200), mechanism=one, population=population, trials=300).value
    ceiling = found.ceiling(0.05, FALSE_ALARM)
    assert ceiling is not None
    assert found.found(0.05).interval(FALSE_ALARM)[0] > ceiling


@pytest.mark.statistical
def test_a_histogram_in_which_everybody_is_once_keeps_its_ceiling_with_the_noise_of_one():
    bins = np.eye(40, dtype=np.int64)
    members, strangers = bins[np.arange(30) % 40], bins[np.arange(200) * 7 % 40]
    found = tracing(members, strangers, mechanism=ours(40, "1", 2), trials=400).value
    ceiling = found.ceiling(0.05, FALSE_ALARM)
    assert ceiling is not None
    assert found.found(0.05).interval(FALSE_ALARM)[0] <= ceiling < 0.6


def test_a_table_becomes_attributes():
    table = pa.table({"sex": ["f", "m", "f", None], "town": ["a", "b", "c", "a"], "old": [True, False, True, True]})
    read = indicators(table, ["sex", "town", "old"])
    assert read.names == ("sex = ", "sex = f", "sex = m", "town = a", "town = b", "town = c", "old = true")
    assert read.rows.sum(axis=0).tolist() == [1, 2, 1, 2, 1, 1, 3]
    assert read.squared_change == 5
    inside, outside = halves(read.rows)
    assert len(inside) == len(outside) == 2
    assert sorted(map(tuple, np.vstack([inside, outside]))) == sorted(map(tuple, read.rows))


def test_the_result_says_what_was_found_and_writes_it():
    population = coins(300)
    result = tracing(population.draw(20), population.draw(40), mechanism=ours(300, "1"), population=population)
    assert isinstance(result, NotPrivate)
    assert "no attacker exceeds" in str(result)
    document = json.loads(result.value.to_json())
    assert [rate["false_alarms"] for rate in document["rates"]] == [0.01, 0.05, 0.2]
    assert document["people"] == 20
    assert result.value.plot().to_dict()["layer"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": np.zeros((1, 3), int)}, "two members"),
        ({"strangers": np.zeros((9, 2), int)}, "same attributes"),
        ({"members": np.full((9, 3), 2)}, "0 or 1"),
        ({"members": np.zeros((9, 3))}, "whole numbers"),
        ({"population": Population(np.array([0.5]))}, "frequency for each"),
        ({"mechanism": gaussian_counts(3, squared_sensitivity=3, epsilon=1, delta="0.1",
                                       relation=Relation.ADD_REMOVE)}, "REPLACE_ONE"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_is_refused(change, words):
    given = {"members": np.zeros((9, 3), int), "strangers": np.ones((9, 3), int)} | change
    with pytest.raises(InvalidParameter, match=words):
        tracing(given.pop("members"), given.pop("strangers"), **given)


@pytest.mark.parametrize(
    "call",
    [
        lambda: coins(0),
        lambda: Population(np.array([1.0])),
        lambda: Population(np.array([0.5]), 3),
        lambda: tracing_power(0, coins(3)),
        lambda: least_deviation(5, coins(3), mu=0.0),
        lambda: tracing_power(5, coins(3)).tpr(0.0),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(InvalidParameter):
        call()
