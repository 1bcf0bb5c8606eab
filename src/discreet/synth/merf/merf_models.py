"""Fitted models: a generator in plain arrays and the noisy counts of the classes. All of it is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidParameter
from discreet.frames.column import Column
from discreet.synth.domain.coding import Coder
from discreet.synth.domain.domain import Domain
from discreet.synth.domain.images import BRIGHTEST, Images
from discreet.synth.merf.generator import GeneratorNetwork, cells_of, classes_of, normals

__all__ = ["MerfImageModel", "MerfTableModel"]

_PIECE = 4096  # Rows that are drawn at once.


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MerfImageModel:
    """Draws pictures: what the network says for a code and a class, spread around it, cut at black and white."""

    domain: Images
    network: GeneratorNetwork
    spread: NDArray[np.float32]  # (classes, pixels)
    counts: NDArray[np.float64]  # noisy

    def __post_init__(self) -> None:
        _check_counts(self.counts, len(self.domain.classes))
        if self.network.outputs != self.domain.pixels or self.spread.shape != (len(self.counts), self.domain.pixels):
            raise InvalidParameter("this generator does not fit its domain: it belongs to other data, or was changed")

    @property
    def rows(self) -> int:
        """How many pictures there were, by the noisy counts."""
        return _rows(self.counts)

    def sample(self, rows: int) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Draw pictures with the places of their classes."""
        labels = classes_of(_shares(self.counts), rows)
        drawn = [self._pictures(labels[start : start + _PIECE]) for start in range(0, rows, _PIECE)]
        return np.concatenate([np.empty((0, self.domain.pixels), dtype=np.uint8), *drawn]), labels

    def _pictures(self, labels: NDArray[np.int32]) -> NDArray[np.uint8]:
        loose = self.network.drawn(labels)
        loose += self.spread[labels] * normals(*loose.shape)
        return np.rint(np.clip(loose, 0, 1) * BRIGHTEST).astype(np.uint8)

    def document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what is to be saved."""
        return {}, {**self.network.arrays(), "spread": self.spread, "counts": self.counts}

    @classmethod
    def restored(cls, domain: Images, document: tuple[dict[str, Any], dict[str, NDArray[Any]]]) -> Self:
        """Make a model from what was saved, or refuse what does not fit together."""
        arrays = document[1]
        network = GeneratorNetwork.restored(arrays, classes=len(domain.classes), outputs=domain.pixels)
        return cls(domain, network, _floats(arrays, "spread").astype(np.float32), _floats(arrays, "counts"))


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MerfTableModel:
    """Draws rows: the network gives every column's cells their chances for a code and a class."""

    domain: Domain
    label: str | None
    network: GeneratorNetwork
    counts: NDArray[np.float64]  # noisy, one for each cell of the label

    def __post_init__(self) -> None:
        _check_counts(self.counts, 1 if self.label is None else self.domain.columns[self.label].size)
        if self.network.outputs != sum(self._sizes):
            raise InvalidParameter("this generator does not fit its domain: it belongs to other data, or was changed")

    @property
    def _sizes(self) -> list[int]:
        return [column.size for name, column in self.domain.columns.items() if name != self.label]

    @property
    def rows(self) -> int:
        """How many rows there were, by the noisy counts."""
        return _rows(self.counts)

    def sample(self, rows: int) -> dict[str, Column]:
        """Draw rows of declared values."""
        return Coder(self.domain).decode(self.codes(rows))

    def codes(self, rows: int) -> NDArray[np.int32]:
        """Draw rows of cells."""
        labels = classes_of(_shares(self.counts), rows)
        drawn = [self._cells(labels[start : start + _PIECE]) for start in range(0, rows, _PIECE)]
        cells = np.concatenate([np.empty((0, len(self._sizes)), dtype=np.int32), *drawn])
        if self.label is None:
            return cells
        return np.insert(cells, self.domain.place(self.label), labels, axis=1)

    def _cells(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        outputs = self.network.drawn(labels)
        columns = np.split(outputs, np.cumsum(self._sizes)[:-1], axis=1)
        return np.column_stack([cells_of(np.exp(part - part.max(axis=1, keepdims=True))) for part in columns])

    def document(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what is to be saved."""
        return {"label": self.label}, {**self.network.arrays(), "counts": self.counts}

    @classmethod
    def restored(cls, domain: Domain, document: tuple[dict[str, Any], dict[str, NDArray[Any]]]) -> Self:
        """Make a model from what was saved, or refuse what does not fit together."""
        label, arrays = document[0]["label"], document[1]
        if label is not None:
            domain.place(label)
        sizes = {name: column.size for name, column in domain.columns.items()}
        classes = 1 if label is None else sizes.pop(label)
        network = GeneratorNetwork.restored(arrays, classes=classes, outputs=sum(sizes.values()))
        return cls(domain, label, network, _floats(arrays, "counts"))


def _floats(arrays: dict[str, NDArray[Any]], name: str) -> NDArray[np.float64]:
    if name not in arrays or arrays[name].dtype.kind != "f":
        raise InvalidParameter("a part of this model is missing or is of another kind")
    return arrays[name].astype(np.float64)


def _check_counts(counts: NDArray[np.float64], classes: int) -> None:
    if counts.shape != (classes,) or (counts < 0).any():
        raise InvalidParameter("the counts of this model do not fit its domain")


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the counts, or all alike where the noise left none."""
    return counts if counts.sum() > 0 else np.ones_like(counts)


def _rows(counts: NDArray[np.float64]) -> int:
    return max(1, round(float(counts.sum())))
