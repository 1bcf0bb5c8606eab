"""What commands of the attack lab share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

from discreet.errors import InvalidParameter
from discreet.exact import exact

if TYPE_CHECKING:
    from discreet.lab.attacks.floating_point_attack import FloatingPoint
    from discreet.lab.attacks.success_rates import Success
    from discreet.privacy import NotPrivate

__all__ = ["Drawable", "Share", "draw", "listed", "tested_noise"]


class Drawable(Protocol):
    """What has a picture of itself."""

    def plot(self) -> Any:
        """Return a chart."""


def listed(words: Sequence[str] | None) -> list[str]:
    """Read names that are separated by commas, or said one by one."""
    return [name.strip() for word in words or () for name in word.split(",") if name.strip()]


def draw(found: Drawable | NotPrivate[Any], path: Path | None) -> None:
    """Write the picture of a result into a file, if one is named; under a heading if it is not private."""
    if path is not None:
        from discreet.plots import save
        from discreet.privacy.not_private import HEADING, NotPrivate

        if isinstance(found, NotPrivate):
            save(found.value.plot(), path, heading=HEADING)
        else:
            save(found.plot(), path)


def tested_noise(
    name: str, inputs: str, law: str | None, *, epsilon: str, delta: str, samples: int, scale: float
) -> FloatingPoint:
    """Test the last digits of a function of the user's."""
    from discreet.cli.options import function_named
    from discreet.lab.attacks import floating_point

    if law not in (None, "laplace"):
        raise InvalidParameter("--law must be laplace, or be left out")
    said = listed([inputs])
    if len(said) != 2:
        raise InvalidParameter("--inputs must be two numbers, such as 0,1")
    first, second = (float(exact(value, name="--inputs")) for value in said)
    return floating_point(
        function_named(name),
        epsilon=epsilon,
        delta=delta,
        inputs=(first, second),
        samples=samples,
        law="laplace" if law else None,
        scale=scale,
    )


# --- attacks: What the answers of all attacks have in common. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many guesses were right, of how many, and between which limits the chance lies, at 95 %."""

    hits: int
    of: int
    share: float
    low: float
    high: float

    @classmethod
    def of_success(cls, success: Success) -> Share:
        """Read what an attack has found."""
        low, high = success.interval()
        return cls(hits=success.hits, of=success.of, share=success.share, low=low, high=high)
