"""Learn a denoiser by noisy gradients; the averages that were bought first are where it begins."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from discreet.errors import Refused
from discreet.learn.torch import make_private
from discreet.learn.torch.training_run import Callback, PrivateTraining
from discreet.synth.diffusion.denoiser import DiffusionRowLosses, build, tensor
from discreet.synth.diffusion.diffusion_model import DiffusionModel, Start
from discreet.synth.diffusion.warm_up import PictureCoordinates
from discreet.synth.domain.images import BRIGHTEST, ImageRows
from discreet.synth.method import progress_line

if TYPE_CHECKING:
    from discreet.synth.diffusion.diffusion_plan import DiffusionPlan

__all__ = ["begin", "train", "try_out"]

_RISE = 20  # Steps in which the learning rate rises.


def train(plan: DiffusionPlan, rows: ImageRows, *, progress: bool) -> DiffusionModel:
    """Read the pictures once, buy averages of them if the plan says so, and learn."""
    pictures, labels = rows.pixels(), rows.labels()
    start = Start.of(plan, pictures, labels)
    data = _shades(pictures), torch.from_numpy(labels.astype(np.int64))
    with (
        progress_line("learning", plan.schedule.steps, shown=progress) as tell,
        begin(plan, start.coordinates, *data, callback=lambda _: tell("")) as private,
        private.fit(progress=False).averaged() as learnt,
    ):
        assert isinstance(learnt, DiffusionRowLosses)
        state = learnt.denoiser.network.state_dict()
        weights = {name: value.numpy().copy() for name, value in state.items()}
    return DiffusionModel(
        domain=plan.domain,
        network=plan.method.network,
        sampler=plan.method.sampler,
        start=start,
        weights=weights,
    )


def begin(
    plan: DiffusionPlan,
    coordinates: PictureCoordinates,
    pictures: Tensor,
    labels: Tensor,
    *,
    callback: Callback | None = None,
) -> PrivateTraining:
    """Set up the noisy gradients of a plan, and make sure that they are the ones that it prices."""
    method, schedule = plan.method, plan.schedule
    model = DiffusionRowLosses(
        build(method.network, plan.domain, coordinates),
        axes=tensor(coordinates.axes),
        draws=method.draws,
        drop=method.label_drop,
        levels=method.levels,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate)
    private = make_private(
        model,
        optimizer,
        (pictures, labels, labels),
        loss=_as_it_is,
        noise_multiplier=plan.noise_multiplier,
        delta=plan.delta,
        public_rows=schedule.public_rows,
        batch_size=schedule.batch_size,
        steps=schedule.steps,
        clip=method.clip,
        physical_batch=method.physical_batch,
        ema=method.ema,
        scheduler=LambdaLR(optimizer, lambda step: _rate(step, schedule.steps)),
        callback=callback,
        name="diffusion",
    )
    if private.plan.event != plan.learning:
        raise Refused("the noisy gradients are not those that were paid for")
    return private


def try_out(plan: DiffusionPlan) -> None:
    """Set everything up on pictures of zeros, so that what cannot be trained here is refused before it is paid for."""
    classes, pixels = len(plan.domain.classes), plan.domain.pixels
    places = None if plan.method.warm_up is None else plan.method.warm_up.places
    guessed = PictureCoordinates.guessed(pixels, classes, plan.method.spread, places=places)
    if plan.frames is not None:
        counts = np.ones(classes, np.int64)
        guessed = guessed.turned(np.zeros((classes, guessed.places, guessed.places), np.int64), counts, Fraction(1))
    nothing = torch.zeros(1, pixels), torch.zeros(1, dtype=torch.int64)
    begin(plan, guessed, *nothing).close()


def _shades(pictures: NDArray[np.uint8]) -> Tensor:
    """Pixels from -1 to 1, each read off one list: so the same pixel is the same float wherever it stands."""
    shades = (np.arange(BRIGHTEST + 1) / (BRIGHTEST / 2) - 1).astype(np.float32)
    return torch.from_numpy(shades.take(pictures))


def _rate(step: int, steps: int) -> float:
    """Rise to 1, then fall to a tenth in a straight line."""
    return min(1.0, (step + 1) / _RISE) * (1 - 0.9 * step / steps)


def _as_it_is(losses: Tensor, _labels: Tensor) -> Tensor:
    return losses
