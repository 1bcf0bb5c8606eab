"""Runs each test of a contract for each subject that a class names."""

from __future__ import annotations

from typing import Any


def pytest_generate_tests(metafunc: Any) -> None:
    if "subject" in metafunc.fixturenames:
        subjects = metafunc.cls.subjects
        metafunc.parametrize("subject", subjects, ids=[subject.name for subject in subjects])
