"""Events as people type them: `gaussian:sigma=2 x 10, laplace:scale=3, gaussian:sigma=1 @ 0.01 x 1000`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from discreet.errors import InvalidParameter
from discreet.exact import positive

if TYPE_CHECKING:
    from discreet.privacy import Event

__all__ = ["KNOWN", "read_events"]

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
