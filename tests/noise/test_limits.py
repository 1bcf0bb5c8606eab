"""One rule for very narrow and very wide noise, at every door through which noise is asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet import noise
from discreet.errors import InvalidParameter
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise.limits import check_noise_scale, check_noise_variance, finest_radius

SOURCE = Path(dp.__file__).parent
ADD = dp.Relation.ADD_REMOVE
WIDE: dict[str, Callable[[], Any]] = {
    "scale": lambda: check_noise_scale(Fraction((1 << 50) + 1)),
    "sampler": lambda: noise.discrete_laplace(Fraction((1 << 50) + 1)),
    "sampler of arrays": lambda: noise.discrete_laplace(Fraction((1 << 50) + 1), size=2),
    "mechanism": lambda: Laplace(scale=Fraction((1 << 50) + 1), sensitivity=1, relation=ADD),
    "statistic": lambda: dp.count([1], epsilon=Fraction(1, (1 << 50) + 1), relation=ADD),
}


def test_the_same_words_at_every_door() -> None:
    said = set()
    for asked in WIDE.values():
        with pytest.raises(InvalidParameter) as refused:
            asked()
        said.add(str(refused.value))
    assert said == {"the noise would have a scale outside 2^-20 … 2^50 grid steps: choose another step or budget"}


def test_the_same_words_for_variances() -> None:
    wide, said = Fraction(1 << 81), set()
    for asked in (
        lambda: check_noise_variance(wide),
        lambda: noise.rounded_gaussian(variance=wide),
        lambda: noise.discrete_gaussian(variance=wide),
        lambda: Gaussian(variance=wide, squared_sensitivity=1, relation=ADD),
    ):
        with pytest.raises(InvalidParameter) as refused:
            asked()
        said.add(str(refused.value))
    (words,) = said
    assert words.startswith("the noise would have a variance outside 2^-20 … 2^80 squared grid steps")


@pytest.mark.parametrize("scale", [Fraction(1, 1 << 20), Fraction(1 << 50)])
def test_the_ends_are_drawn(scale: Fraction) -> None:
    assert check_noise_scale(scale) == scale
    assert isinstance(noise.discrete_laplace(scale), int)


@given(
    precision=st.fractions(min_value=Fraction(1, 10**40), max_value=10**9),
    power=st.sampled_from([2, 4]),
    most=st.sampled_from([1 << 15, 1 << 60]),
    least=st.sampled_from([1, 2, 4]),
)
def test_the_finest_radius_is_the_largest_that_is_not_too_wide(
    precision: Fraction, power: int, most: int, least: int
) -> None:
    found = finest_radius(precision, power=power, most=most, least=least)
    assert least <= found <= most
    assert found & (found - 1) == 0
    assert found == least or found**power / precision <= 1 << 78
    assert found == most or (2 * found) ** power / precision > 1 << 78


def test_nobody_else_has_limits_of_their_own() -> None:
    """The text and the numbers are in one file."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if path.relative_to(SOURCE).as_posix() != "noise/limits.py":
            assert "the noise would have" not in text, path
            assert not {"1 << 78", "1 << 80"} & {
                ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.BinOp)
            }, path
