"""No example of a property is too slow on a busy machine: time is printed, it never fails a test."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
