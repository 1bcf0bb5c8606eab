"""`python -m discreet` is `discreet`."""

from __future__ import annotations

from discreet.cli import main

main()
