"""Fresh secret bits for the generators from which augmentations and data sets draw."""

from __future__ import annotations

import random

import numpy as np
import torch

from discreet import noise

__all__ = ["renew_generators", "renew_torch_generator", "secret_generator"]

_HEAD, _WORDS = 3, 624  # The state of the Mersenne twister lies behind three 64-bit words, one number in each.


def renew_generators() -> None:
    """Key the generators of torch, NumPy and Python afresh: a data set may vary its items by any of them."""
    renew_torch_generator()
    np.random.seed(noise.uniform(1 << 32, _WORDS))
    random.seed(noise.uniform(1 << 32, _WORDS).tobytes())


def renew_torch_generator() -> None:
    """Replace the state of torch's generator by bits from our source, whatever seed it was given.

    Adding a record moves another one to the last slot of a batch. Its view moves along only if views are secret: with a
    seed that the world knows, the slot would decide the view. The state is that of a new generator, because an old one
    may hold a normal number that it drew before and hands out next.
    """
    torch.set_rng_state(secret_generator().get_state())


def secret_generator() -> torch.Generator:
    """Make a generator of torch whose state is bits from our source."""
    generator = torch.Generator()
    state = generator.get_state()
    words = state.numpy().view(np.uint64)
    words[_HEAD : _HEAD + _WORDS] = noise.uniform(1 << 32, _WORDS)
    generator.set_state(state)
    return generator
