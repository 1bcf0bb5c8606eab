"""A learnt diffusion model: it draws pictures, is saved as numbers and words, and may be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import InvalidParameter
from discreet.exact import positive_integer
from discreet.stored_names import StoredName, stored_names
from discreet.synth.diffusion.diffusion_method import Convolutional, Ddim, Heun, Linear, Network, Sampler
from discreet.synth.diffusion.warm_up import PictureCoordinates
from discreet.synth.domain.images import Images
from discreet.synth.method import Document

if TYPE_CHECKING:
    from discreet.synth.diffusion.diffusion_plan import DiffusionPlan

__all__ = ["DiffusionModel", "Start"]

# --- start: Where learning begins, and what is known of the number of pictures: guessed, or bought. ---


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


_FORMAT = 1
# Stored in files of models: these names never change.
_NETWORKS = stored_names({Linear: "linear: hidden blocks", Convolutional: "convolutional: channels factors blocks"})
_SAMPLERS = stored_names(
    {Heun: "heun: steps churn churn_from churn_to guidance", Ddim: "ddim: steps stochastic guidance"}
)
_AT_ONCE = 4096  # Pictures that are drawn at once.
_FINEST = 1 << 20  # Chances of classes are whole numbers of this part.


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DiffusionModel:
    """Weights of the network, where it began, and how it is drawn from. Everything in it was released."""

    domain: Images
    network: Network
    sampler: Sampler
    start: Start
    weights: dict[str, NDArray[np.float32]] = field(repr=False)

    @property
    def rows(self) -> int:
        """How many pictures there were: noisy, or the public number."""
        return self.start.rows

    def sample(
        self, rows: int, *, labels: NDArray[np.int32] | None = None, sampler: Sampler | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Draw pictures, (rows, pixels) of 0 to 255, of classes as likely as they were found, or of given ones."""
        from discreet.synth.diffusion.sampling import Drawing

        codes = self._labels(positive_integer(rows, name="rows")) if labels is None else self._checked(labels, rows)
        drawing = Drawing(self, self.sampler if sampler is None else sampler)
        pieces = [drawing.pictures(codes[start : start + _AT_ONCE]) for start in range(0, rows, _AT_ONCE)]
        return np.concatenate(pieces), codes

    def document(self) -> Document:
        """Return what is to be saved: words as JSON, and arrays."""
        start, coordinates = self.start, self.start.coordinates
        said = {
            "format": _FORMAT,
            "network": _said(self.network, _NETWORKS),
            "sampler": _said(self.sampler, _SAMPLERS),
            "rows": start.rows,
        }
        arrays: dict[str, NDArray[Any]] = {
            "axes": coordinates.axes,
            "centres": coordinates.centres,
            "scale": coordinates.scale,
            "frames": coordinates.frames,
            "spreads": coordinates.spreads,
            "rest": coordinates.rest,
            "chances": start.chances,
        }
        return said, arrays | {f"network.{name}": value for name, value in self.weights.items()}

    @classmethod
    def restored(cls, domain: Images, document: Document) -> Self:
        """Make a model of what `document` returned, and check all of it."""
        from discreet.synth.diffusion.sampling import Drawing

        said, arrays = document
        if said["format"] != _FORMAT:
            raise InvalidParameter("it was written by another version")
        sizes = len(domain.classes) + 1, domain.pixels
        coordinates = _coordinates(arrays, *sizes)
        chances = np.asarray(arrays["chances"], np.float64)
        if chances.shape != (sizes[0] - 1,) or (chances < 0).any() or abs(chances.sum() - 1) > 1e-6:
            raise InvalidParameter("its chances of classes do not add up")
        head = "network."
        model = cls(
            domain=domain,
            network=_made(said["network"], _NETWORKS),
            sampler=_made(said["sampler"], _SAMPLERS),
            start=Start(coordinates, chances, positive_integer(said["rows"], name="rows")),
            weights={name.removeprefix(head): value for name, value in arrays.items() if name.startswith(head)},
        )
        Drawing(model, model.sampler)  # Refuses weights that do not fit the network.
        return model

    def _labels(self, rows: int) -> NDArray[np.int32]:
        """Draw classes by their chances."""
        ends = np.floor(np.cumsum(self.start.chances) * _FINEST)
        drawn = np.searchsorted(ends[:-1], noise.uniform(_FINEST, rows), side="right")
        codes: NDArray[np.int32] = drawn.astype(np.int32)
        return codes

    def _checked(self, labels: NDArray[np.int32], rows: int) -> NDArray[np.int32]:
        codes = np.asarray(labels)
        if codes.shape != (rows,) or codes.dtype.kind not in "iu" or not np.isin(codes, np.arange(self._classes)).all():
            raise InvalidParameter(f"labels must be {rows} places of classes, from 0 to {self._classes - 1}")
        return codes.astype(np.int32)

    @property
    def _classes(self) -> int:
        return len(self.domain.classes)


def _coordinates(arrays: dict[str, NDArray[Any]], classes: int, pixels: int) -> PictureCoordinates:
    names = ("axes", "centres", "scale", "frames", "spreads", "rest")
    axes, centres, scale, frames, spreads, rest = (np.asarray(arrays[name], np.float32) for name in names)
    places = axes.shape[1] if axes.ndim == 2 else 0
    shapes = (pixels, places), (classes, pixels), (places,), (classes, places), (pixels,)
    found = axes.shape, centres.shape, scale.shape, spreads.shape, rest.shape
    fits = found == shapes and 0 < places <= pixels
    if not fits or frames.shape not in ((0, 0, 0), (classes, places, places)):
        raise InvalidParameter("its axes, centres or spreads do not fit the pictures")
    if not (spreads > 0).all() or not (scale > 0).all() or (rest < 0).any():
        raise InvalidParameter("its spreads are out of range")
    return PictureCoordinates(axes=axes, centres=centres, scale=scale, frames=frames, spreads=spreads, rest=rest)


def _said(option: Any, kinds: Mapping[type[Any], StoredName]) -> dict[str, Any]:
    name = kinds[type(option)]
    return {"kind": name.tag} | dict(name.values(option))


def _made(said: dict[str, Any], kinds: Mapping[type[Any], StoredName]) -> Any:
    """Make options again; their own checks refuse what is out of range."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
    kind, name = {name.tag: (kind, name) for kind, name in kinds.items()}[str(values.pop("kind"))]
    return kind(**{name.parts[part]: value for part, value in values.items()})
