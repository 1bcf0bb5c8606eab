"""`discreet account`: events as people type them, and what the accountant answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import final

from discreet import privacy
from discreet.cli.output import Block
from discreet.errors import InvalidParameter
from discreet.exact import exact, positive, up
from discreet.privacy import Event, Relation

__all__ = ["KNOWN", "Calibrated", "ComposedTotal", "Converted", "calibrated", "composed", "converted", "read_events"]

# --- accounting: What the accountant does for the command line: numbers in, numbers out. ---


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


# --- accounting: What the accountant answers. ---


def _number(value: float | None) -> str:
    return "∞" if value is None else f"{value:.6g}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedTotal:
    """The total of some events. An ε of null means that there is none at this δ."""

    epsilon: float | None  # rounded up
    lower: float | None  # the worst mechanism with these events has at least this ε
    delta: float
    best_true_positives: float | None  # of an attacker who wrongly accuses at most one in twenty

    def blocks(self) -> Iterator[Block]:
        yield f"ε = {_number(self.epsilon)} at δ = {_number(self.delta)}"
        if self.lower is not None and self.epsilon is not None:
            yield f"proven: the worst case is between {_number(self.lower)} and {_number(self.epsilon)}"
        if self.best_true_positives is not None:
            yield (
                "in words: whoever tries to tell if one person is in the data, and accuses 5 % of the others wrongly, "
                f"is right about at most {100 * self.best_true_positives:.3g} % of those who are"
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """One way of saying privacy in the others."""

    given: str
    epsilon: float | None  # at `delta`, rounded up; null if there is none
    delta: float
    rho: float | None  # rounded up; null if there is none

    def blocks(self) -> Iterator[Block]:
        yield f"{self.given}: ε = {_number(self.epsilon)} at δ = {_number(self.delta)}"
        if self.rho is not None:
            yield f"{self.given}: ρ = {_number(self.rho)}, zero-concentrated"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The least noise that keeps a promise."""

    noise: str
    noise_multiplier: float  # noise in units of the sensitivity, rounded up
    epsilon: float  # what is reached, rounded up
    delta: float
    steps: int
    sampling_rate: float

    def blocks(self) -> Iterator[Block]:
        name = "σ" if self.noise == "gaussian" else "scale"
        each = f"in each of {self.steps:,} releases" if self.steps > 1 else "in one release"
        yield f"{self.noise} noise of {name} = {self.noise_multiplier:.8g} times the sensitivity, {each}"
        yield f"reaches ε = {_number(self.epsilon)} at δ = {_number(self.delta)}"


# --- event_words ---
# Events as people type them: `gaussian:sigma=2 x 10, laplace:scale=3, gaussian:sigma=1 @ 0.01 x 1000`.


# By name: what it needs, and the event it stands for.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "pure": ("epsilon",),
    "approximate": ("epsilon", "delta"),
    "zcdp": ("rho",),
    "gdp": ("mu",),
    "laplace": ("scale",),
    "gaussian": ("sigma",),
    "discrete-laplace": ("scale", "sensitivity"),
    "discrete-gaussian": ("sigma", "sensitivity"),
    "bounded-range": ("epsilon",),
}
_ITEM = re.compile(r"(?P<name>[a-z-]+)\s*:\s*(?P<fields>[^@]*?)(?:@\s*(?P<rate>[^\s@]+))?(?:\s+x\s*(?P<times>\d+))?")
_FIELD = re.compile(r"\s*([a-z]+)\s*=\s*(\S+)\s*")
_EXAMPLE = 'write such as "gaussian:sigma=2 x 10, laplace:scale=3"'


def read_events(text: str) -> Event:
    """Read a list of events; what is typed is composed."""
    from discreet.privacy import Composed

    return Composed([_event(item) for item in _items(text)])


def _items(text: str) -> list[str]:
    """Split at commas; a piece without a name goes on with the fields of the one before."""
    items: list[str] = []
    for piece in text.split(","):
        if ":" in piece or not items:
            items.append(piece.strip())
        else:
            items[-1] += f",{piece}"
    return items


def _event(item: str) -> Event:
    from discreet.privacy import PoissonSampled, Repeated

    found = _ITEM.fullmatch(item)
    if found is None:
        raise InvalidParameter(f"{item!r} is no event: {_EXAMPLE}")
    event = _named(found["name"], _fields(found["name"], found["fields"]))
    if found["rate"] is not None:
        event = PoissonSampled(event, found["rate"])
    return event if found["times"] is None else Repeated(event, int(found["times"]))


def _fields(name: str, written: str) -> dict[str, str]:
    if name not in KNOWN:
        near = get_close_matches(name, KNOWN, n=1)
        raise InvalidParameter(f"{name} is no event. {f'Did you mean {near[0]}? ' if near else ''}{_known()}")
    fields = dict(_field(part) for part in written.split(","))
    if set(fields) != set(KNOWN[name]):
        raise InvalidParameter(f"{name} needs {' and '.join(KNOWN[name])}, nothing else: {_shape(name)}")
    return fields


def _field(part: str) -> tuple[str, str]:
    found = _FIELD.fullmatch(part)
    if found is None:
        raise InvalidParameter(f"{part.strip()!r} should be name=number: {_EXAMPLE}")
    return found[1], found[2]


def _known() -> str:
    return f"There are: {', '.join(map(_shape, KNOWN))}"


def _shape(name: str) -> str:
    return f"{name}:{','.join(f'{field}=…' for field in KNOWN[name])}"


def _named(name: str, fields: Mapping[str, str]) -> Event:
    from discreet import privacy

    makers: dict[str, Callable[..., Event]] = {
        "pure": privacy.PureDP,
        "approximate": privacy.ApproxDP,
        "zcdp": privacy.ZCDP,
        "gdp": privacy.GDP,
        "laplace": lambda scale: privacy.Laplace(scale),
        "gaussian": lambda sigma: privacy.Gaussian(sigma),
        "discrete-laplace": lambda scale, sensitivity: privacy.DiscreteLaplace(scale, _whole(sensitivity)),
        "discrete-gaussian": privacy.DiscreteGaussian,
        "bounded-range": privacy.BoundedRange,
    }
    return makers[name](**fields)


def _whole(text: str) -> int:
    number = positive(text, name="sensitivity")
    if number.denominator != 1:
        raise InvalidParameter("the sensitivity of discrete-laplace is a whole number of grid steps")
    return int(number)
