"""What all one-call statistics share: naming the budget and whom to protect, and paying before reading."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from discreet.adaptive.bounded_memberships import UnitRows
from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, exact
from discreet.frames.column import Column, reader_for, taken
from discreet.mechanisms.additive_noise import GaussianNoise, LaplaceNoise, Noise
from discreet.mechanisms.grid import Grid
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer, Price, PricedMechanism, paid
from discreet.schema.columns import Bounds, declaration_of, pair_of

__all__ = ["answer", "composes", "grid_from", "noise_from", "paid_for", "quoted", "refuse_delta", "row_epsilon"]

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
    whom: UnitRows | None = None,
) -> Noise:
    """Choose the noise for one row by what one unit spends: epsilon, epsilon with delta, or rho."""
    noise = _noise_for(epsilon, delta, rho, public_rows, allow_large_delta)
    return noise if whom is None else whom.noise_of(noise)


def _noise_for(
    epsilon: Number | None, delta: Number | None, rho: Number | None, public_rows: int | None, allow_large_delta: bool
) -> Noise:
    if rho is not None and epsilon is None and delta is None:
        return GaussianNoise.for_rho(rho)
    if epsilon is None or rho is not None:
        raise InvalidParameter(
            "say what to spend: epsilon=… (Laplace noise), epsilon=… and delta=… (Gaussian noise), or rho=…"
        )
    if delta is None:
        return LaplaceNoise(epsilon=exact(epsilon, name="epsilon"))
    return GaussianNoise.for_epsilon(epsilon, delta, public_rows=public_rows, allow_large_delta=allow_large_delta)


def composes(payer: Payer | None) -> bool:
    """Tell whether a payer adds up more than epsilons, so that a bounded range is cheaper than a pure epsilon to it."""
    account = getattr(getattr(payer, "ledger", payer), "account", None)
    return getattr(getattr(account, "budget", None), "kind", "pure") != "pure"


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
    whom: UnitRows | None = None,
) -> Release[T]:
    """Refuse what is no column, pay, read, release. `prepare` turns each row into another, by itself.

    With `whom`, the mechanism protects one row, and what is paid and told is for one unit.
    """
    reader = reader_for(data)
    with paid_for(whom, session, mechanism, purpose=purpose):
        column = reader(data)
        kept = column if whom is None else taken(column, whom.kept(len(column)))
        return quoted(mechanism.release(prepare(kept)), noise, whom, session)


def paid_for(
    whom: UnitRows | None, session: Payer | None, mechanism: PricedMechanism, *, purpose: str
) -> AbstractContextManager[None, None]:
    """Charge, as `paid` does, for one row or for one unit, of whom so many rows count."""
    if whom is None:
        return paid(session, mechanism, purpose=purpose)
    unit = "row" if session is None else whom.account  # Where nobody pays, nobody asks for a name.
    return paid(session, Price(whom.event_of(mechanism.event), mechanism.relation), purpose=purpose, unit=unit)


def quoted(
    release: Release[T], noise: Noise | None, whom: UnitRows | None = None, session: Payer | None = None
) -> Release[T]:
    """Say whom the price protects, and quote the cost at the delta that the noise was made for, if for one."""
    delta = noise.delta if isinstance(noise, GaussianNoise) else release.delta
    if whom is None:
        return replace(release, delta=delta, unit="row")
    # A session may have a word for its units, such as household, where the column has none.
    noun = getattr(getattr(session, "unit", None), "noun", whom.noun)
    return replace(release, delta=delta, event=whom.event_of(release.event), unit=noun, max_rows=whom.max_rows)


def row_epsilon(epsilon: Number, whom: UnitRows | None) -> Fraction:
    """Return the epsilon of a choice for one row with which one unit spends `epsilon`."""
    return exact(epsilon, name="epsilon") / (1 if whom is None else whom.max_rows)


def refuse_delta(whom: UnitRows | None, delta: object) -> None:
    """Refuse a delta of choices for units: what rows may lose by chance grows much faster than their number."""
    if whom is not None and delta is not None:
        raise Refused(
            "with unit=… this spends epsilon alone",
            reason="the delta of a choice grows much faster than the rows of a unit do",
            way_out="leave delta out; the methods that need one protect rows",
        )
