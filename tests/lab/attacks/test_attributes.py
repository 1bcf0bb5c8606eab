"""Attributes: what a row adds to a guess is measured against the same guess without it, and held to its ceiling."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from small_models import NoisySteps

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.lab.attacks import attributes, attributes_of_table, read_columns, through_model, through_table
from discreet.lab.attacks.attribute_inference import Attributes
from discreet.lab.attacks.lab_tables import Columns, encoder
from discreet.lab.attacks.membership import softmax_regression
from discreet.lab.attacks.success_rates import Success
from discreet.privacy import DiscreteLaplace, NotPrivate, PureDP

ILL = np.array([f"illness {i:02}" for i in range(16)])
TOWN = 120


def town(count: int) -> Columns:
    """People who are alone in their street, with an illness that nothing tells."""
    return {"street": np.array([f"s{i}" for i in range(count)]), "ill": ILL[noise.uniform(16, count)]}


def noisy_table(scale: Fraction) -> Callable[[Columns], Columns]:
    """A synthetic table from noisy counts of every street and illness."""
    streets = np.array([f"s{i}" for i in range(TOWN)])

    def make(table: Columns) -> Columns:
        exact = (table["street"][:, None, None] == streets[:, None]) & (table["ill"][:, None, None] == ILL)
        counts = np.maximum(exact.sum(axis=0) + noise.discrete_laplace(scale, (TOWN, 16)), 0)
        street, ill = np.repeat(np.indices((TOWN, 16)).reshape(2, -1), counts.ravel(), axis=1)
        return {"street": streets[street], "ill": ILL[ill]}

    return make


def found(release: object, table: Columns, **options: object) -> Attributes:
    return attributes(release, table, secret="ill", **options).value


@pytest.mark.statistical
def test_a_copy_tells_everything_and_only_with_the_row() -> None:
    result = found(through_table(lambda table: table, secret="ill"), town(200), people=200)
    assert result.right == Success(200, 200)
    assert result.without.interval(1e-9)[1] < 0.5
    assert result.advantage_limits(1e-9)[0] > 0.4
    assert result.p_value < 1e-9
    assert result.refutes(PureDP(1), error=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_private_tables_stay_below_their_ceiling(epsilon: Fraction) -> None:
    event = DiscreteLaplace(scale=1 / epsilon, sensitivity=1)
    result = found(through_table(noisy_table(1 / epsilon), secret="ill"), town(TOWN), people=TOWN, event=event)
    assert not result.refutes(event, error=1e-9)
    assert result.ceiling is not None
    assert result.right.interval(1e-9)[0] < result.ceiling


@pytest.mark.statistical
def test_a_hundredth_of_the_noise_exceeds_it() -> None:
    claimed = DiscreteLaplace(scale=10, sensitivity=1)
    result = found(through_table(noisy_table(Fraction(1, 10)), secret="ill"), town(TOWN), people=TOWN)
    assert result.refutes(claimed, error=1e-9)


@pytest.mark.statistical
def test_a_model_that_learns_by_heart_tells_whether_asked_or_tried() -> None:
    asked = {"street": np.array([f"s{i}" for i in range(40)]), "ill": np.tile(ILL[:4], 10)}
    result = found(through_model(softmax_regression, asked, label="ill", secret="ill"), asked, people=40)
    assert result.right == Success(40, 40)
    assert result.without == Success(0, 40)  # Without the row its own illness is the rarest.
    assert result.p_value < 1e-9


def test_what_a_model_knows_of_everybody_is_no_gain_from_the_row() -> None:
    """Whoever is in the club has the illness of the club, and the others have the other: also without the own row."""
    ill = np.tile(ILL[:2], 24)
    rows = {"ill": ill, "club": np.where(ill == ILL[1], "yes", "no")}
    result = found(through_model(softmax_regression, rows, label="club", secret="ill"), rows, people=24)
    assert result.right == result.without == Success(24, 24)
    assert (result.gained, result.lost) == (0, 0)


@pytest.mark.statistical
def test_a_model_trained_privately_tells_nothing() -> None:
    rows, training = town(60), NoisySteps(steps=5, multiplier=20)

    def train(examples: object, labels: object) -> object:
        models = training(examples, labels, np.ones((1, len(labels)), bool))
        return lambda asked: models(asked)[0]

    result = found(through_model(train, rows, label="ill", secret="ill"), rows, people=60, event=training.event)
    assert not result.refutes(training.event, error=1e-9)
    assert result.right.interval(1e-9)[0] < 0.5


def test_limits_and_p_value_are_those_of_the_binomial_law() -> None:
    result = Attributes(
        secret="ill", right=Success(30, 100), without=Success(25, 100), commonest=Success(2, 100),
        gained=9, lost=4, ceiling=None,
    )  # fmt: skip
    assert result.p_value == pytest.approx(sum(binom.pmf(k, 13, 0.5) for k in range(9, 14)))
    low, high = result.advantage_limits(0.05)
    assert low < 0.05 < high
    assert result.advantage == pytest.approx(0.05)
    # At each end of a Clopper-Pearson interval, what was seen or more has a chance of a quarter of half of the error.
    assert binom.sf(8, 100, Success(9, 100).interval(0.025)[0]) == pytest.approx(0.0125)
    assert low == Success(9, 100).interval(0.025)[0] - Success(4, 100).interval(0.025)[1]


def test_results_are_marked_drawn_and_written() -> None:
    result = attributes(through_table(lambda table: table, secret="ill"), town(10), secret="ill", event=PureDP(1))
    assert isinstance(result, NotPrivate)
    document = json.loads(result.value.to_json())
    assert document["right"][:2] == [10, 10]
    assert "learnt from the row" in str(result)
    assert "no attacker exceeds" in str(result)
    assert len(result.value.plot().to_dict()["layer"]) == 2


def test_numbers_are_near_and_texts_are_equal() -> None:
    rows = {"age": np.array([20.0, 40.0, 60.0]), "sex": np.array(["f", "m", "f"]), "ill": np.array(["a", "b", "c"])}
    guess = through_table(lambda table: table, secret="ill")(rows)
    assert guess({"age": 41.0, "sex": "m"}) == "b"
    assert guess({"age": 58.0, "sex": "f"}) == "c"


def test_an_encoder_knows_the_values_that_it_has_seen() -> None:
    rows = {"age": np.array([1.0, 3.0]), "sex": np.array(["f", "m"])}
    encoded = encoder(rows, ["age", "sex"])({"age": np.array([2.0, 4.0, np.nan]), "sex": np.array(["x", "f", "m"])})
    assert np.array_equal(encoded, [[0.0, 0.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(InvalidParameter, match="age, sex"):
        encoder(rows, ["height"])


def test_columns_are_read_from_tables_of_this_machine() -> None:
    import pyarrow as pa

    table = pa.table({"a": list(range(50)), "b": ["x"] * 50})
    columns = read_columns(table, ["a", "b"], people=20)
    assert len(set(columns["a"])) == len(columns["b"]) == 20


def test_nonsense_is_refused() -> None:
    copy = through_table(lambda table: table, secret="ill")
    for wrong in ({"ill": ILL}, {"street": ILL, "ill": ILL[:2]}, {"street": ILL, "club": ILL}):
        with pytest.raises(InvalidParameter, match="the secret and at least one more"):
            found(copy, wrong)
    with pytest.raises(InvalidParameter, match="three people"):
        found(copy, town(2))


def test_a_table_is_attacked_through_a_model_or_a_synthetic_table() -> None:
    import pyarrow as pa

    table = pa.table(town(30))
    by_model = attributes_of_table(table, secret="ill", known=["street"], rows=20, people=10).value
    assert by_model.right == Success(10, 10)
    copied = attributes_of_table(table, secret="ill", known=["street"], people=30, synthesise=lambda rows: rows).value
    assert copied.right == Success(30, 30)
    with pytest.raises(InvalidParameter, match="without the label"):
        attributes_of_table(table, secret="ill", known=["ill"])
