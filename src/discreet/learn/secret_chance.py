"""Fresh secret bits for the generators from which augmentations, data sets and new models draw."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from discreet import noise

if TYPE_CHECKING:
    import torch

__all__ = ["renew_generators", "renew_torch_generator", "secret_generator", "with_own_chance"]

_HEAD, _WORDS = 3, 624  # The state of the Mersenne twister lies behind three 64-bit words, one number in each.


@contextmanager
def with_own_chance() -> Iterator[None]:
    """Draw from generators that are keyed afresh, and leave those of the program as they were.

    What many runs begin with follows from a public seed otherwise, and the generators count how many runs there were.
    """
    torch = sys.modules.get("torch")
    kept = random.getstate(), np.random.get_state(), None if torch is None else torch.get_rng_state()
    renew_generators()
    try:
        yield
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])
        if torch is not None:
            torch.set_rng_state(kept[2])


def renew_generators() -> None:
    """Key the generators of Python, NumPy and a loaded torch afresh: a data set may vary its items by any of them."""
    if "torch" in sys.modules:
        renew_torch_generator()
    np.random.seed(noise.uniform(1 << 32, _WORDS))
    random.seed(noise.uniform(1 << 32, _WORDS).tobytes())


def renew_torch_generator() -> None:
    """Replace the state of torch's generator by bits from our source, whatever seed it was given.

    Adding a record moves another one to the last slot of a batch. Its view moves along only if views are secret: with a
    seed that the world knows, the slot would decide the view. The state is that of a new generator, because an old one
    may hold a normal number that it drew before and hands out next.
    """
    import torch

    torch.set_rng_state(secret_generator().get_state())


def secret_generator() -> torch.Generator:
    """Make a generator of torch whose state is bits from our source."""
    import torch

    generator = torch.Generator()
    state = generator.get_state()
    words = state.numpy().view(np.uint64)
    words[_HEAD : _HEAD + _WORDS] = noise.uniform(1 << 32, _WORDS)
    generator.set_state(state)
    return generator
