"""A plan: a question with its price. Looking at it is free; releasing it is paid."""

from __future__ import annotations

from typing import final

from discreet.privacy.events import Event
from discreet.query.catalogue import Catalogue
from discreet.query.question import Question
from discreet.query.session.answering import Asked, Desk

__all__ = ["Plan"]


@final
class Plan:
    """One question after analysis. Everything in it follows from public facts and may be shown."""

    __slots__ = ("_asked", "_catalogue", "_desk")

    def __init__(self, desk: Desk, asked: Asked, catalogue: Catalogue) -> None:
        self._desk, self._asked, self._catalogue = desk, asked, catalogue

    @property
    def question(self) -> Question:
        """The closed tree that was read."""
        return self._asked.priced.question

    @property
    def event(self) -> Event:
        """What a release spends."""
        return self._asked.priced.event

    @property
    def text(self) -> str:
        """The question as it was asked."""
        return self._asked.text
