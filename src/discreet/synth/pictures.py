"""Synthetic pictures with their labels, and the promise that comes with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from discreet.ledger.placing import place
from discreet.synth.domain.images import Images
from discreet.synth.promise import Promise

__all__ = ["SyntheticImages"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SyntheticImages:
    """Pictures of nobody. Everything in it may be published."""

    promise: Promise
    domain: Images
    _pixels: NDArray[np.uint8] = field(repr=False)  # (rows, pixels)
    _codes: NDArray[np.int32] = field(repr=False)

    @property
    def images(self) -> NDArray[np.uint8]:
        """The pictures, (rows, height, width) of 0 to 255."""
        return self._pixels.reshape(-1, self.domain.height, self.domain.width)

    @property
    def labels(self) -> NDArray[Any]:
        """The class of each picture."""
        return np.array(self.domain.classes)[self._codes]

    def __len__(self) -> int:
        return len(self._pixels)

    def to_safetensors(self, path: str | Path) -> None:
        """Write pictures and the places of their labels to one file, all of it or nothing."""
        from safetensors.numpy import save

        place(Path(path), save({"images": self.images, "labels": self._codes}, {"discreet": str(self.promise)}))

    def __repr__(self) -> str:
        return f"SyntheticImages({len(self)} pictures of {self.domain.height} x {self.domain.width})"
