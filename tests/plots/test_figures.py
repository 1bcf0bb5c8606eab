from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest
from chart_reading import points

import discreet as dp
from discreet import noise, privacy
from discreet.errors import InvalidParameter
from discreet.mechanisms import Count, GaussianNoise, LaplaceNoise, Mean
from discreet.mechanisms.grid import Grid
from discreet.privacy import Relation
from discreet.statistics.guarantee_charts import plot_accuracy, plot_neighbours, plot_profile, plot_tradeoff

EVENTS = {
    "Laplace": privacy.Laplace(1),
    "Gaussian": privacy.Gaussian(2),
    "ten": privacy.Repeated(privacy.PureDP("0.1"), 10),
    "approximate": privacy.ApproxDP("0.5", "1e-6"),
}


@cache
def profile_of_all():
    return plot_profile(EVENTS)


@cache
def tradeoff_of_all():
    return plot_tradeoff(EVENTS)


@pytest.mark.parametrize("name", EVENTS)
def test_every_point_of_a_profile_is_a_delta_that_holds(name):
    drawn = points(profile_of_all(), name)
    assert len(drawn) > 40
    for epsilon, delta in drawn[::7]:
        assert delta >= privacy.delta(EVENTS[name], Fraction(epsilon)) * (1 - 1e-12)


def test_a_profile_ends_where_the_guarantee_is_pure():
    epsilon, delta = points(plot_profile(privacy.PureDP(2)), "PureDP")[-1]
    assert epsilon == pytest.approx(2)
    assert delta < 1e-9


def test_an_approximate_profile_stays_on_its_delta():
    drawn = points(profile_of_all(), "approximate")
    assert drawn[-1][1] == pytest.approx(1e-6)
    assert drawn[-1][0] == pytest.approx(max(points(profile_of_all(), "Gaussian"))[0])


@pytest.mark.parametrize("name", EVENTS)
def test_no_point_of_a_tradeoff_promises_more_than_is_proven(name):
    for fpr, fnr in points(tradeoff_of_all(), name)[::9]:
        proven = privacy.tradeoff(EVENTS[name], Fraction(fpr))
        assert proven - 0.01 <= fnr <= proven + 1e-9


def test_the_relation_is_passed_on():
    sampled = privacy.PoissonSampled(privacy.PureDP(1), "0.1")
    with pytest.raises(InvalidParameter, match="relation"):
        plot_profile(sampled)
    drawn = points(plot_profile(sampled, relation=Relation.ADD_REMOVE), "PoissonSampled")
    assert drawn[0][1] == pytest.approx(privacy.delta(sampled, 0, relation=Relation.ADD_REMOVE))


def test_accuracy_is_the_half_width_that_the_law_promises():
    chart = plot_accuracy(lambda epsilon: noise.DiscreteLaplaceLaw(1 / epsilon), ["0.01", "0.1", 1], step="0.5")
    expected = [(e, noise.DiscreteLaplaceLaw(1 / Fraction(str(e))).half_width("0.95") / 2) for e in (0.01, 0.1, 1.0)]
    assert points(chart, "±") == expected


def test_accuracy_of_a_mechanism_needs_no_data():
    makers = {
        "Laplace": lambda e: Count(relation=Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=e)),
        "Gaussian": lambda e: Count(relation=Relation.ADD_REMOVE, noise=GaussianNoise.for_epsilon(e, "1e-6")),
    }
    chart = plot_accuracy(makers, ["0.1", 1], confidence="0.99", unit="people")
    assert points(chart, "Laplace") == [
        (e, noise.DiscreteLaplaceLaw(1 / Fraction(str(e))).half_width("0.99")) for e in (0.1, 1.0)
    ]
    assert points(chart, "Gaussian")[0][1] > points(chart, "Laplace")[0][1]
    assert "99 %" in chart.to_json()


def test_a_mechanism_of_two_measurements_is_refused():
    grid = Grid.between(0, 1)

    def mean(epsilon: Fraction) -> Mean:
        return Mean(grid=grid, relation=Relation.ADD_REMOVE, noise=LaplaceNoise(epsilon=epsilon))

    with pytest.raises(InvalidParameter, match="one noisy number"):
        plot_accuracy(mean, [1, 2])


@pytest.mark.parametrize("events", [{}, [], None, {"a": 1}, "Laplace", privacy.PureDP(0), privacy.ApproxDP(1, 1)])
def test_what_is_no_event_is_refused(events):
    for plot in (plot_profile, plot_tradeoff):
        with pytest.raises(InvalidParameter):
            plot(events)


@pytest.mark.parametrize("epsilons", [[], [0, 1], [-1, 1], [float("nan"), 1], [1]])
def test_nonsense_epsilons_are_refused(epsilons):
    with pytest.raises(InvalidParameter):
        plot_accuracy(lambda epsilon: noise.DiscreteLaplaceLaw(1 / epsilon), epsilons)


class TestNeighbours:
    def test_the_laws_are_those_of_the_noise_and_pure_privacy_holds(self):
        law = noise.DiscreteLaplaceLaw(2)
        chart = plot_neighbours(law, epsilon="0.5", exact_answers=(41, 42))
        first, second, above = (
            dict(points(chart, name))
            for name in ("data with answer 41", "data with answer 42", "e^0.5 times the second")
        )
        assert first.keys() == second.keys() == above.keys()
        assert sum(first.values()) == pytest.approx(1, abs=0.01)
        for answer, chance in first.items():
            assert chance == pytest.approx(float(law.pmf(int(answer) - 41)))
            assert chance <= above[answer] * (1 + 1e-9)

    def test_gaussian_noise_crosses_every_curve(self):
        count = Count(relation=Relation.ADD_REMOVE, noise=GaussianNoise.for_epsilon("0.5", "0.01"))
        chart = plot_neighbours(count, epsilon="0.5", distance=1)
        above = dict(points(chart, "e^0.5 times the second"))
        assert any(chance > above[answer] for answer, chance in points(chart, "data with answer 0"))

    def test_wide_noise_has_few_points(self):
        chart = plot_neighbours(noise.RoundedGaussianLaw(10**8))
        assert 100 < len(points(chart, "data with answer 0")) <= 400

    @pytest.mark.parametrize("answers", [(1, 1), (0.5, 1), (True, 2)])
    def test_answers_are_two_whole_numbers(self, answers):
        with pytest.raises(InvalidParameter, match="two exact answers"):
            plot_neighbours(noise.DiscreteLaplaceLaw(2), exact_answers=answers)

    def test_what_has_no_single_noise_is_refused(self):
        with pytest.raises(InvalidParameter, match="one noisy number a cell"):
            plot_neighbours(object())
        with pytest.raises(InvalidParameter, match=r"release\.noise"):
            plot_neighbours(dp.count([1, 2], epsilon=1, relation="add-remove"))
