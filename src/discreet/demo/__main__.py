"""Run the demo: `python -m discreet.demo [FOLDER]`."""

from __future__ import annotations

import sys

from discreet.demo.demo_run import main

if __name__ == "__main__":
    sys.exit(main())
