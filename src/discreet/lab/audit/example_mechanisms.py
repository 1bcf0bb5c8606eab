"""A right and a wrong mechanism to try the auditor on, as somebody outside this library would write them."""

from __future__ import annotations

from collections.abc import Sequence

from discreet import noise

__all__ = ["half_the_noise", "noisy_count", "pairs"]


def noisy_count(data: Sequence[object]) -> int:
    """Count records with noise for ε = 1."""
    return len(data) + noise.discrete_laplace(1)


def half_the_noise(data: Sequence[object]) -> int:
    """The same with half of the noise: ε is 2, whatever its author says."""
    return len(data) + noise.discrete_laplace("1/2")


def pairs() -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Neighbours: one record more or less."""
    return [((), (1,)), ((1,), (1, 1)), ((1, 1, 1), (1, 1))]
