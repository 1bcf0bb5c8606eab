"""Floating point: which outputs of a noise function can only come from one of two inputs. [Mir12, JMRO22, HDHSH22]

Doubles are not evenly spaced. A sum has the last digits that its larger part allows, so they tell how large the exact
value was; and a logarithm of a double leaves out many doubles, others for each input. Whoever sees all digits of
one answer may know the exact one, whatever its noise was meant to hide.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter, Refused
from discreet.exact import Number, positive, probability
from discreet.lab.attacks.success_rates import Success
from discreet.lab.attacks.textbook_noise import log
from discreet.pages.progress import working

if TYPE_CHECKING:
    import altair as alt

__all__ = ["FloatingPoint", "floating_point", "laplace_reaches"]

_FEWEST, _MOST = 1_000, 10_000_000  # Samples of each input.
_ZERO = -2000  # The binary places of 0: fewer than those of any other double.
_DRAWN = 80  # Binary places in the picture.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingPoint:
    """How surely the last digits of one output tell which of two inputs it came from."""

    inputs: tuple[float, float]
    samples: int  # of each input
    epsilon: float  # what is claimed
    delta: float
    error: float  # the chance that a correct function is called broken
    telling: str  # the outputs that tell most, chosen on one half of the samples
    seen: tuple[Success, Success]  # such outputs among the other half, of either input
    epsilon_at_least: float  # what the function has, with confidence 1 - error
    unreachable: tuple[Success, Success] | None  # outputs that the other input cannot give; None if the law is unknown
    places: tuple[NDArray[np.int64], NDArray[np.int64]]  # binary places of the outputs, in order

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon_at_least > self.epsilon

    @property
    def baseline(self) -> float:
        """Which share of such outputs the claim allows, given how often the other input gives them."""
        least = min(one.interval(self.error / 2)[1] for one in self.seen)
        return min(1.0, math.exp(min(self.epsilon, 700.0)) * least + self.delta)

    def __str__(self) -> str:
        a, b = (f"{value:g}" for value in self.inputs)
        lines = [
            f"floating point: {self.samples:,} outputs each of {a} and {b}, claimed ε = {self.epsilon:g}",
            f"  {self._verdict()}, with confidence {100 * (1 - self.error):.6g} %",
            f"  {self.telling}: {self.seen[0]} from {a}, {self.seen[1]} from {b}",
            f"  the claim allows at most {100 * self.baseline:.3g} %",
        ]
        if self.unreachable is not None:
            lines.append(
                f"  impossible for the other input: {self.unreachable[0]} from {a}, {self.unreachable[1]} from {b}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _verdict(self) -> str:
        if math.isinf(self.epsilon_at_least):
            return "BROKEN: no ε holds, since outputs of one input are impossible for the other"
        if self.broken:
            return f"BROKEN: ε is at least {self.epsilon_at_least:.3g}"
        return f"not refuted: ε may be as small as {self.epsilon_at_least:.3g}"

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers and texts; an epsilon without a bound is null."""
        return {
            "inputs": list(self.inputs),
            "samples": self.samples,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "error": self.error,
            "broken": self.broken,
            "epsilon_at_least": self.epsilon_at_least if math.isfinite(self.epsilon_at_least) else None,
            "telling": self.telling,
            "seen": [_share(one) for one in self.seen],
            "baseline": self.baseline,
            "unreachable": None if self.unreachable is None else [_share(one) for one in self.unreachable],
        }

    def plot(self) -> alt.LayerChart:
        """Draw which share of the outputs of either input has at least so many binary places; none is at the bottom."""
        from discreet import plots

        digits, floor = list(range(_DRAWN + 1)), 0.5 / self.samples
        curves = {
            f"input {value:g}": (digits, [max(floor, float(np.mean(places >= digit))) for digit in digits])
            for value, places in zip(self.inputs, self.places, strict=True)
        }
        across, up = "binary places after the point", "share of outputs with as many or more"
        return plots.lines(curves, across=across, up=up, log_y=True)


@working("attacking", terminal=False)
def floating_point(
    noise: Callable[..., Any],
    *,
    epsilon: Number,
    delta: Number = 0,
    inputs: tuple[float, float] = (0.0, 1.0),
    samples: int = 100_000,
    error: float = 1e-6,
    law: Literal["laplace"] | None = None,
    scale: float = 1.0,
) -> FloatingPoint:
    """Test whether outputs of a noise function on two neighbouring inputs can be told apart by their last digits.

    `noise(value)` returns one output, or `noise(value, size=n)` returns n; `epsilon` and `delta` are what it claims for
    the two inputs. The most telling kind of output is chosen on half of the samples, and held against the claim on the
    other half. With `law="laplace"` and its `scale`, outputs that the other input cannot give are counted exactly.

    Args:
        noise: The function that adds noise.
        epsilon: What it claims for the two inputs.
        delta: The delta that goes with it.
        inputs: Two exact values that neighbours may have.
        samples: How many outputs of each are looked at.
        error: The chance at most with which a correct function is called broken.
        law: "laplace" if the noise is made by inversion of that law; None looks at last digits only.
        scale: The scale of that law.

    Returns:
        What was found, with `broken`; it prints as a report.

    Raises:
        InvalidParameter: If a number is out of range.

    Examples:
        >>> import numpy as np
        >>> generator = np.random.default_rng(0)
        >>> def noisy(value, size):
        ...     return value + generator.laplace(0, 1, size)
        >>> dp.attacks.floating_point(noisy, epsilon=1, samples=20_000).broken
        True
    """
    claimed, rest = positive(epsilon, name="epsilon"), probability(delta, name="delta")
    _check(inputs, samples, error)
    a, b = (_draw(noise, value, samples) for value in inputs)
    telling, seen, found = _lower_bound(_places(a), _places(b), rest, error / 2)
    exact = None if law is None else _unreachable(a, b, inputs, float(positive(scale, name="scale")))
    # Half of the error is for the last digits, half for what is impossible; either half for both of its limits.
    if exact is not None and max(one.interval(error / 2)[0] for one in exact) > rest:
        found = math.inf  # What the other input cannot give at all is within no epsilon.
    return FloatingPoint(
        inputs=inputs,
        samples=samples,
        epsilon=float(claimed),
        delta=float(rest),
        error=error,
        telling=telling,
        seen=seen,
        epsilon_at_least=found,
        unreachable=exact,
        places=(np.sort(_places(a)), np.sort(_places(b))),
    )


def _check(inputs: tuple[float, float], samples: int, error: float) -> None:
    if len(inputs) != 2 or inputs[0] == inputs[1] or not all(math.isfinite(value) for value in inputs):
        raise InvalidParameter("inputs must be two different finite numbers: the exact values of two neighbours")
    if not _FEWEST <= samples <= _MOST:
        raise InvalidParameter(f"samples must be between {_FEWEST:,} and {_MOST:,}")
    if not 0 < error <= 0.5:
        raise InvalidParameter("error must be above 0 and at most 1/2")


def _draw(noise: Callable[..., Any], value: float, size: int) -> NDArray[np.float64]:
    if _takes_size(noise):
        drawn = np.asarray(noise(value, size=size), dtype=np.float64)
    else:
        drawn = np.array([float(noise(value)) for _ in range(size)], dtype=np.float64)
    if drawn.shape != (size,) or not np.isfinite(drawn).all():
        raise InvalidParameter("a noise function must return finite numbers: one, or as many as its size says")
    return drawn


def _takes_size(noise: Callable[..., Any]) -> bool:
    """Tell which of the two forms a function has; one whose form is not known is called with a value alone."""
    if not callable(noise):
        raise InvalidParameter("noise must be a function of a value, or of a value and a size")
    try:
        form = inspect.signature(noise)
    except ValueError:
        return False
    sized = "size" in form.parameters
    try:
        form.bind(0.0, **({"size": 1} if sized else {}))
    except TypeError:
        raise InvalidParameter("noise must be a function of a value, or of a value and a size") from None
    return sized


def _places(outputs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the binary places after the point that write a double exactly; negative for multiples of 2, 4, …"""
    mantissa, exponent = np.frexp(outputs)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(outputs == 0, _ZERO, 53 - exponent.astype(np.int64) - lowest).astype(np.int64)


def _lower_bound(
    a: NDArray[np.int64], b: NDArray[np.int64], delta: Fraction, error: float
) -> tuple[str, tuple[Success, Success], float]:
    """Choose on the first half, test on the second: so the confidence holds for whatever was chosen."""
    half = len(a) // 2
    tried = [(event, event.of(a[:half], b[:half])) for event in _events(a[:half], b[:half])]
    best, before = max(tried, key=lambda one: (_epsilon(one[1], delta, error), abs(one[1][0].share - one[1][1].share)))
    seen = best.of(a[half:], b[half:])
    return best.name, seen, _epsilon(seen, delta, error, swapped=_swapped(before))


@final
@dataclass(frozen=True, slots=True)
class _PlacesEvent:
    """Outputs with at least, or with at most, so many binary places."""

    limit: int
    finer: bool

    @property
    def name(self) -> str:
        return f"outputs with at {'least' if self.finer else 'most'} {self.limit} binary places"

    def of(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> tuple[Success, Success]:
        return tuple(  # type: ignore[return-value]
            Success(int(np.count_nonzero(one >= self.limit if self.finer else one <= self.limit)), len(one))
            for one in (a, b)
        )


def _events(a: NDArray[np.int64], b: NDArray[np.int64]) -> Iterator[_PlacesEvent]:
    for limit in np.unique(np.concatenate([a, b])).tolist():
        yield _PlacesEvent(limit, True)
        yield _PlacesEvent(limit, False)


def _swapped(seen: tuple[Success, Success]) -> bool:
    """Whether the second input gives such outputs more often."""
    return seen[1].share > seen[0].share


def _epsilon(seen: tuple[Success, Success], delta: Fraction, error: float, swapped: bool | None = None) -> float:
    """Bound epsilon from below: p <= e^epsilon q + delta, so it is at least log((p - delta) / q). [KOV15]

    Each of the two limits is wrong with half of the error.
    """
    often, seldom = seen[::-1] if (_swapped(seen) if swapped is None else swapped) else seen
    more = often.interval(error)[0] - float(delta)
    return max(0.0, math.log(more / seldom.interval(error)[1])) if more > 0 else 0.0


def _unreachable(
    a: NDArray[np.float64], b: NDArray[np.float64], inputs: tuple[float, float], scale: float
) -> tuple[Success, Success]:
    """Count outputs that the other input cannot give; refuse if the law does not even give its own."""
    if not (laplace_reaches(a, inputs[0], scale).all() and laplace_reaches(b, inputs[1], scale).all()):
        raise Refused(
            "this is not Laplace noise by inversion on doubles of that scale",
            reason="some outputs cannot come from their own input by that law",
            way_out="leave law out: the last digits are tested without knowing it",
        )
    crossed = (laplace_reaches(a, inputs[1], scale), laplace_reaches(b, inputs[0], scale))
    return tuple(Success(int(np.count_nonzero(~one)), len(one)) for one in crossed)  # type: ignore[return-value]


def _share(success: Success) -> dict[str, Any]:
    low, high = success.interval()
    return {"hits": success.hits, "of": success.of, "share": success.share, "low": low, "high": high}


# --- reachable: Which doubles Laplace noise by inversion can reach from an input, exactly. [Mir12] ---


_GRID = 2.0**53  # Uniform doubles are multiples of its inverse; some libraries use fewer of them, none more.
_REACHABLE_MOST = 64  # Candidates on either side.


def laplace_reaches(outputs: NDArray[np.float64], value: float, scale: float) -> NDArray[np.bool_]:
    """Tell for each output whether value ± scale log(m / 2^53) is that double for a whole number m up to 2^53.

    The noise must be about output - value, so m is about 2^53 exp(-|noise| / scale); all m are tried whose noise is
    within the rounding of output and noise. Where there are too many of them the output counts as reached.
    """
    size = np.abs(outputs - value)
    middle = np.clip(np.rint(_GRID * np.exp(-size / scale)), 1, _GRID)
    rounding = np.spacing(np.maximum(np.maximum(np.abs(outputs), abs(value)), size))
    # m changes by m / scale for each unit of noise; logarithm, product, sum and difference round once each, and the
    # exponential by a unit or two of m.
    width = np.ceil(3 * middle * rounding / scale + 3)
    reached = width > _REACHABLE_MOST  # With so many candidates nothing is left out: no claim is made.
    for step in _outwards(int(width[~reached].max(initial=0))):
        left = ~reached & (abs(step) <= width)
        tried = middle[left] + step
        inside = (tried >= 1) & (tried <= _GRID)
        z = scale * log(np.where(inside, tried, _GRID) / _GRID)
        reached[left] = inside & ((value + z == outputs[left]) | (value - z == outputs[left]))
    return reached


def _outwards(width: int) -> list[int]:
    return sorted(range(-width, width + 1), key=abs)
