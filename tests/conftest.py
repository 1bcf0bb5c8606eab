"""What all tests share: no deadlines, and one thread for each process that runs tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Two processes share two cores. Matrix libraries that start a thread for each core would wait for each other; they read
# this when they are loaded, and so do processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No example of a property is too slow on a busy machine: time is printed, it never fails a test. Examples are the same
# in every run, so that none refuses a change by chance; where DISCREET_SEARCH is set, they are others each time.
settings.register_profile("same examples", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("search" if "DISCREET_SEARCH" in os.environ else "same examples")
