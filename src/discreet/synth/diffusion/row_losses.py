"""One loss for each row: K noisy copies of a picture, how well each is seen through, on average. [DCVK23]"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from discreet.learn.torch.layers import SecretNormal
from discreet.synth.diffusion.denoiser import Denoiser
from discreet.synth.diffusion.scaling import left

__all__ = ["DiffusionRowLosses"]


@final
class DiffusionRowLosses(nn.Module):
    """What private training clips: the mean over K draws of a row's squared error, in units of what is to be learnt.

    Theorem     The K draws of a row go into one number, whose gradient is clipped once. So a row moves the sum by at
                most the clip whatever K is, and privacy does not depend on K. [DCVK23]
    """

    axes: Tensor
    typical: Tensor

    def __init__(
        self, denoiser: Denoiser, *, axes: Tensor, draws: int, drop: float, levels: tuple[float, float]
    ) -> None:
        super().__init__()
        self.denoiser = denoiser
        self.register_buffer("axes", axes, persistent=False)  # (pixels, places): where a picture lies along each axis
        self.register_buffer("typical", denoiser.scale.square().mean().sqrt(), persistent=False)
        self.classes = len(denoiser.centres) - 1
        self.middle, self.width = levels  # of the logarithm of the level, which is normal
        self.noise, self.levels = SecretNormal(draws, axes.shape[1]), SecretNormal(draws, 1)
        self.drop = nn.Dropout(drop)

    def forward(self, pictures: Tensor, labels: Tensor) -> Tensor:
        """Take pictures (rows, pixels) from -1 to 1 and labels (rows,); return (rows,)."""
        level = torch.exp(self.middle + self.width * self.levels(pictures))
        clean = (pictures @ self.axes)[:, None, :]
        noisy = clean + level * self.noise(pictures)
        wrong = self.denoiser(noisy, level, self._told(labels)) - clean
        losses: Tensor = (wrong / left(level, self.typical)).square().mean((1, 2))
        return losses

    def _told(self, labels: Tensor) -> Tensor:
        """The class of each row, or, by a secret coin a row, that none is told."""
        told = self.drop(torch.ones(len(labels), 1)) * (1 - self.drop.p)
        known = (labels[:, None] == torch.arange(self.classes)).to(told.dtype)  # Also where there is one class only.
        return torch.cat([told * known, 1 - told], 1)[:, None, :]
