"""Fresh secret bits for torch's own generator, from which augmentations draw."""

from __future__ import annotations

import numpy as np
import torch

from discreet import noise

__all__ = ["renew_torch_generator"]

_HEAD, _WORDS = 3, 624  # The state of the Mersenne twister lies behind three 64-bit words, one number in each.


def renew_torch_generator() -> None:
    """Replace the state of torch's generator by bits from our source, whatever seed it was given.

    Adding a record moves another one to the last slot of a batch. Its view moves along only if views are secret: with a
    seed that the world knows, the slot would decide the view.
    """
    state = torch.get_rng_state()
    words = state.numpy().view(np.uint64)
    words[_HEAD : _HEAD + _WORDS] = noise.uniform(1 << 32, _WORDS)
    torch.set_rng_state(state)
