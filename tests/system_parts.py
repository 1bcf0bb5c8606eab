"""Parts of the system that some tests need: where one is missing they are skipped, which is named and fails FULL=1.

`.ci/run` installs them.
"""

from __future__ import annotations

import shutil
import sys

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
COMPILER = (shutil.which("gcc") or shutil.which("cc")) if sys.platform == "linux" else None
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="CHROMIUM IS MISSING: no page was opened in a browser")
needs_compiler = pytest.mark.skipif(
    COMPILER is None, reason="NO C COMPILER ON LINUX: faults of single writes and flushes were not tested"
)
