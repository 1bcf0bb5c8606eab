"""What all one-call statistics share: naming the budget, and paying before reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact
from discreet.frames.column import Column, reader_for
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer, PricedMechanism, paid
from discreet.schema.columns import Bounds, declaration_of, pair_of

__all__ = ["answer", "grid_from", "noise_from", "quoted"]

T = TypeVar("T")
R = TypeVar("R", covariant=True)


class Mechanism(PricedMechanism, Protocol[R]):
    """What can be paid for and then asked for a release."""

    def release(self, data: Any, /) -> Release[R]: ...


def noise_from(
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    public_rows: int | None = None,
    allow_large_delta: bool = False,
) -> Noise:
    """Choose the noise by what the caller wants to spend: epsilon, epsilon with delta, or rho."""
    if rho is not None and epsilon is None and delta is None:
        return GaussianNoise.for_rho(rho)
    if epsilon is None or rho is not None:
        raise InvalidParameter(
            "say what to spend: epsilon=… (Laplace noise), epsilon=… and delta=… (Gaussian noise), or rho=…"
        )
    if delta is None:
        return LaplaceNoise(epsilon=exact(epsilon, name="epsilon"))
    return GaussianNoise.for_epsilon(epsilon, delta, public_rows=public_rows, allow_large_delta=allow_large_delta)


def grid_from(bounds: Bounds | None, *, step: Number | None, missing: Number | None, toward_zero: bool = False) -> Grid:
    """Make the public grid, or say the three ways to bounds."""
    if bounds is None:
        raise Refused(
            "this needs bounds=(low, high), which must not be read from the data. Three ways out: take them from "
            "what is publicly known (units, a questionnaire, the law); use `count`, `proportion` or `histogram` "
            "with public bins, which need none; or spend a little on a private `quantile` near 0 and near 1, "
            "within bounds as wide as you like, and use its answers"
        )
    declared = declaration_of(bounds)
    if declared is not None:
        step = declared.step if step is None else step
        missing = declared.missing if missing is None else missing
    grid = Grid.between(*pair_of(bounds, takes_grid=True), step=step, default=missing)
    if missing is not None or not toward_zero:
        return grid
    return replace(grid, default=min(max(Fraction(0), grid.low), grid.high))


def answer(
    mechanism: Mechanism[T],
    data: Any,
    *,
    session: Payer | None,
    purpose: str,
    noise: Noise | None = None,
    prepare: Callable[[Column], Any] = lambda column: column,
) -> Release[T]:
    """Refuse what is no column, pay, read, release. `prepare` turns each row into another, by itself."""
    reader = reader_for(data)
    with paid(session, mechanism, purpose=purpose):
        return quoted(mechanism.release(prepare(reader(data))), noise)


def quoted(release: Release[T], noise: Noise | None) -> Release[T]:
    """Say that one row is protected, and quote the cost at the delta that the noise was made for, if for one."""
    delta = noise.delta if isinstance(noise, GaussianNoise) else release.delta
    return replace(release, delta=delta, unit="row")
