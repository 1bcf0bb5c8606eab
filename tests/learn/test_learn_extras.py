"""Where an optional library is missing, the way to get it is said, and nothing else of the package needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

_WITHOUT = "import sys; sys.modules[{library!r}] = None; import discreet as dp; dp.count; {use}"


@pytest.mark.parametrize(
    ("library", "use", "extra"),
    [
        ("torch", "dp.make_private", "torch"),
        ("safetensors", "from discreet.learn.torch import make_private", "torch"),
        ("sklearn", "from discreet.learn.sklearn import GaussianNB", "sklearn"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_brings_it(library: str, use: str, extra: str) -> None:
    code = _WITHOUT.format(library=library, use=use)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"needs {library}" in done.stderr
    assert f"pip install 'discreet[{extra}]'" in done.stderr
