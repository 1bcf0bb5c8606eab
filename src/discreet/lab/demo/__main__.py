"""Run the demo: `python -m discreet.lab.demo [FOLDER]`."""

from __future__ import annotations

import sys

from discreet.lab.demo.demo_run import main

if __name__ == "__main__":
    sys.exit(main())
