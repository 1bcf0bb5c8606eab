"""Runs each test of a contract for each subject that a class names; no example is too slow on a busy machine."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_generate_tests(metafunc: Any) -> None:
    if "subject" in metafunc.fixturenames:
        subjects = metafunc.cls.subjects
        metafunc.parametrize("subject", subjects, ids=[subject.name for subject in subjects])
