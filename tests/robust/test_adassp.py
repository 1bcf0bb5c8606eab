"""AdaSSP: the joint calibration by vectors, the eigenvalue by all neighbours, and what is wrong with others."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from robust.regression_worlds import ADD_REMOVE, BOTH, REPLACE_ONE, small
from statistical import fits, rejects

from discreet.errors import InvalidParameter
from discreet.lab.verify import sensitivity
from discreet.mechanisms.additive_noise import GaussianNoise
from discreet.noise.laws import RoundedGaussianLaw
from discreet.privacy import delta as delta_of
from discreet.privacy.events import GDP
from discreet.privacy.relation import Relation
from discreet.robust import AdaSSP, Design
from discreet.robust.noisy_moments import FINEST

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "regression.json").read_text())["vectors"]
DESIGN = Design.between([(0, 1)], (0, 1))
UNIT = FINEST**2


def made(relation: Relation = ADD_REMOVE, **fields: Any) -> AdaSSP:
    known: dict[str, Any] = {"design": DESIGN, "noise": GaussianNoise.for_rho(1)}
    return AdaSSP(relation=relation, public_rows=None if relation is ADD_REMOVE else 2, **(known | fields))


@pytest.mark.parametrize("vector", [v for v in VECTORS if "exact_sigma" in v["id"]], ids=lambda v: v["id"])
def test_noise_agrees_with_the_exact_joint_calibration(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    subject = made(noise=GaussianNoise.for_epsilon(given["eps"], given["delta"]))
    moments = subject.moments
    for variance in (subject.eigenvalue_variance, moments.gram_variance, moments.cross_variance):
        assert math.sqrt(variance) / UNIT == pytest.approx(vector["expected"], rel=vector["tolerance"])


@pytest.mark.parametrize("vector", [v for v in VECTORS if "joint_delta" in v["id"]], ids=lambda v: v["id"])
def test_published_noise_spends_far_less_than_it_says(vector: dict[str, Any]) -> None:
    given = vector["inputs"]
    spent = delta_of(GDP(mu_squared=3 / Fraction(given["sigma_multiplier"]) ** 2), given["eps"])
    assert spent == pytest.approx(vector["expected"], rel=vector["tolerance"])
    assert spent < given["delta"]


def test_published_noise_is_sixty_per_cent_larger() -> None:
    published = next(v for v in VECTORS if v["id"] == "robust/adassp_noise")
    given = published["inputs"]
    subject = made(noise=GaussianNoise.for_epsilon(given["eps"], given["delta"]))
    assert math.sqrt(math.log(6 / given["delta"])) / (given["eps"] / 3) == pytest.approx(published["expected"])
    offset = next(v for v in VECTORS if v["id"] == "robust/adassp_lmin_offset")
    assert math.log(6 / given["delta"]) / (given["eps"] / 3) == pytest.approx(offset["expected"])
    assert published["expected"] / (math.sqrt(subject.eigenvalue_variance) / UNIT) == pytest.approx(1.62, abs=0.01)


ROWS = tuple((round(FINEST * a), round(FINEST * b)) for a, b in ((1, 0), (0, 1), (0.6, 0.8), (-0.8, 0.6), (0, 0)))


def eigenvalue(data: Any) -> int:
    return made().eigenvalue(np.array(data, dtype=np.int64))


@pytest.mark.parametrize("relation", BOTH)
def test_eigenvalue_changes_by_the_squared_radius_and_no_more(relation: Relation) -> None:
    longest = max(a * a + b * b for a, b in ROWS)
    found = sensitivity(eigenvalue, small(ROWS, relation, 4), relation=relation).value
    assert UNIT <= found <= longest
    # The wrong neighbour: half of it.
    assert found > UNIT // 2


def test_eigenvalue_is_that_of_the_gram_matrix_rounded_down() -> None:
    for data in (ROWS[:2], ROWS[:3], ROWS[1:4] * 2, ROWS[:1]):
        rows = np.array(data, dtype=np.int64)
        exact = float(np.linalg.eigvalsh(rows.T @ rows)[0])
        assert -1e-6 * UNIT <= exact - eigenvalue(data) <= 1 + 1e-6 * UNIT


def test_eigenvalue_billed_with_half_its_sensitivity_is_refuted() -> None:
    subject = made()
    charged = Fraction(UNIT // 2) ** 2 / subject.eigenvalue_variance
    found = sensitivity(eigenvalue, small(ROWS, ADD_REMOVE, 3), relation=ADD_REMOVE).value
    assert found**2 / subject.eigenvalue_variance > 3 * charged


@pytest.mark.statistical
def test_noise_on_the_eigenvalue_follows_its_law() -> None:
    subject = made(noise=GaussianNoise.for_rho(2))
    rows = np.array(ROWS[:2] * 50, dtype=np.int64)  # Its eigenvalue is far above the noise, so nothing is cut at zero.
    drawn = np.array([subject._noisy_eigenvalue(rows) for _ in range(1500)]) * UNIT
    allowance = NormalDist().inv_cdf(1 - 1 / 40) * math.sqrt(subject.eigenvalue_variance)
    sample = np.rint(drawn + allowance - eigenvalue(rows.tolist())).astype(np.int64)
    assert fits(sample, RoundedGaussianLaw(subject.eigenvalue_variance))
    assert rejects(sample, RoundedGaussianLaw(subject.eigenvalue_variance / 2))
    assert rejects(sample, RoundedGaussianLaw(subject.eigenvalue_variance * 2))


def test_ridge_is_there_only_where_it_is_needed() -> None:
    """With features that vary, plain least squares; with one that does not, a slope near zero and not a wild one."""
    generator = np.random.default_rng(1)
    x = generator.uniform(size=20_000)
    y = np.clip(0.2 + 0.5 * x + 0.05 * generator.normal(size=20_000), 0, 1)
    noise = GaussianNoise.for_epsilon(1, Fraction(1, 10**6))
    intercept, slope = made(noise=noise).release(np.column_stack([x, y])).value
    assert float(intercept) == pytest.approx(0.2, abs=0.1)
    assert float(slope) == pytest.approx(0.5, abs=0.2)
    # One slope in some hundreds is beyond 1, because the ridge itself is noisy; of 25 the middle one never is.
    flat = made(noise=noise)
    rows = np.column_stack([np.full(20_000, 0.5), y])
    assert np.median([abs(float(flat.release(rows).value[1])) for _ in range(25)]) < 1


@pytest.mark.parametrize(
    "bad", [{"failure": 0}, {"failure": 1}, {"eigenvalue_share": 0}, {"eigenvalue_share": 1}, {"relation": REPLACE_ONE}]
)
def test_nonsense_is_refused(bad: dict[str, Any]) -> None:
    known: dict[str, Any] = {"design": DESIGN, "relation": ADD_REMOVE, "noise": GaussianNoise.for_rho(1)}
    with pytest.raises(InvalidParameter):
        AdaSSP(**(known | bad))
