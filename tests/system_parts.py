"""Parts of the system that some tests need: where one is missing they are skipped, which is named and fails FULL=1.

`.ci/run` installs them.
"""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
COMPILER = (shutil.which("gcc") or shutil.which("cc")) if sys.platform == "linux" else None
# Where initdb and pg_ctl are; Debian keeps them out of PATH, a folder for each version.
POSTGRES = next(
    (
        Path(found).resolve().parent
        for found in (
            shutil.which("initdb"),
            *sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb"), reverse=True),
        )
        if found
    ),
    None,
)
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
needs_spark = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None,
    reason="JAVA OR PYSPARK IS MISSING: nothing was counted by Spark",
)
needs_postgres = pytest.mark.skipif(POSTGRES is None, reason="POSTGRESQL IS MISSING: nothing was tested on a server")
