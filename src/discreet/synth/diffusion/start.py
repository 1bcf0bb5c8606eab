"""Where learning begins, and what is known of the number of pictures: guessed, or bought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.synth.diffusion.coordinates import PictureCoordinates

if TYPE_CHECKING:
    from discreet.synth.diffusion.planning import DiffusionPlan

__all__ = ["Start"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Coordinates, how likely each class is, and how many pictures there are. All of it is public."""

    coordinates: PictureCoordinates
    chances: NDArray[np.float64]  # (classes,), adding up to 1
    rows: int

    @classmethod
    def of(cls, plan: DiffusionPlan, pictures: NDArray[np.uint8], labels: NDArray[np.int32]) -> Self:
        """Buy averages if the plan says so; otherwise no picture is looked at."""
        method, classes = plan.method, len(plan.domain.classes)
        even = np.full(classes, 1 / classes)
        if plan.central is None or method.warm_up is None:
            return cls(
                PictureCoordinates.guessed(plan.domain.pixels, classes, method.spread), even, plan.schedule.public_rows
            )
        sums = plan.central.release(pictures, labels)
        counts = np.maximum(sums.counts, 0)
        found = PictureCoordinates.found(sums, spread=method.spread, places=method.warm_up.places)
        if plan.frames is not None:
            products = plan.frames.release(pictures, labels, axes=found.axes, centres=found.centres[:classes])
            found = found.turned(products, sums.counts, plan.frames.variance)
        return cls(found, counts / counts.sum() if counts.any() else even, max(1, int(counts.sum())))
