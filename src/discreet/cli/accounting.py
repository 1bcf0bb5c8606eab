"""What the accountant does for the command line: numbers in, numbers out."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet import privacy
from discreet.cli.answers.accounting import Calibrated, ComposedTotal, Converted
from discreet.cli.event_words import read_events
from discreet.errors import InvalidParameter
from discreet.exact import exact, up
from discreet.privacy import Event, Relation

__all__ = ["calibrated", "composed", "converted"]

_ADD_REMOVE = Relation.ADD_REMOVE
_FEW = Fraction(1, 20)


def composed(events: str, delta: str) -> ComposedTotal:
    """Compose events and bound the total from both sides."""
    event, level = read_events(events), exact(delta, name="--delta")
    lower, upper = privacy.epsilon_bounds(event, level, relation=_ADD_REMOVE)
    found = privacy.best_tpr(event, _FEW, relation=_ADD_REMOVE)
    return ComposedTotal(
        epsilon=_finite(upper), lower=_finite(lower) if lower > 0 else None, delta=up(level), best_true_positives=found
    )


def converted(*, rho: str | None, mu: str | None, epsilon: str | None, delta: str) -> Converted:
    """Say in ε and ρ what was said in one of ρ, µ and ε."""
    said = {name: value for name, value in (("ρ", rho), ("µ", mu), ("ε", epsilon)) if value is not None}
    if len(said) != 1:
        raise InvalidParameter("say exactly one of --rho, --mu and --epsilon: what to convert from")
    ((name, value),) = said.items()
    event, level = _MEANT[name](value), exact(delta, name="--delta")
    return Converted(
        given=f"{name} = {value.strip()}",
        epsilon=_finite(privacy.epsilon(event, level, relation=_ADD_REMOVE)),
        delta=up(level),
        rho=_rho(event),
    )


_MEANT = {"ρ": privacy.ZCDP, "µ": privacy.GDP, "ε": privacy.PureDP}


def _rho(event: Event) -> float | None:
    match event:
        case privacy.PureDP():
            return privacy.convert.pure_to_zcdp(event.epsilon)
        case privacy.GDP():
            return up(event.mu_squared / 2)
    return None


def calibrated(epsilon: str, delta: str, *, steps: int, rate: str, noise: str) -> Calibrated:
    """Find the least noise multiplier for which all steps together stay within ε and δ."""
    if noise not in ("gaussian", "laplace"):
        raise InvalidParameter("--noise must be gaussian or laplace")
    chance, level = exact(rate, name="--sampling-rate"), exact(delta, name="--delta")
    law = privacy.Gaussian if noise == "gaussian" else privacy.Laplace

    def event(multiplier: Fraction) -> Event:
        one = law(multiplier)
        return privacy.Repeated(one if chance == 1 else privacy.PoissonSampled(one, chance), steps)

    if level == 0 and noise == "gaussian":
        raise InvalidParameter("Gaussian noise has no ε at δ = 0: say --delta, or --noise laplace")
    found = privacy.calibrate(event, epsilon=epsilon, delta=level, relation=_ADD_REMOVE)
    return Calibrated(
        noise=noise,
        noise_multiplier=up(found),
        epsilon=privacy.epsilon(event(found), level, relation=_ADD_REMOVE),
        delta=up(level),
        steps=steps,
        sampling_rate=up(chance),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
