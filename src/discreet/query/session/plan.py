"""A plan: a question with its price. Looking at it is free; releasing it is paid."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import final

from discreet.privacy.events import Event
from discreet.query.catalogue import Catalogue
from discreet.query.engine import Deadline
from discreet.query.planning import Explanation
from discreet.query.question import Query
from discreet.query.results import ReleaseTable
from discreet.query.session.answering import Executor
from discreet.query.session.asked import Request

__all__ = ["Plan"]


@final
class Plan:
    """One question after analysis. Everything in it follows from public facts and may be shown."""

    __slots__ = ("_asked", "_catalogue", "_desk")

    def __init__(self, desk: Executor, asked: Request, catalogue: Catalogue) -> None:
        self._desk, self._asked, self._catalogue = desk, asked, catalogue

    @property
    def question(self) -> Query:
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

    @property
    def cost(self) -> str:
        """What a release spends, in a few words."""
        return self._asked.priced.cost

    @property
    def fingerprint(self) -> str:
        """A text that is the same for the same question and price, and for no other."""
        return self._asked.fingerprint

    @property
    def deviations(self) -> Mapping[str, Fraction]:
        """The standard deviation of the noise on each column that is a plain count or sum, rounded up."""
        return self._asked.priced.deviations

    @property
    def variances(self) -> Mapping[str, Fraction]:
        """Its square, exactly for Gaussian noise of more than a few grid steps."""
        return self._asked.priced.variances

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answer should know, as parameters."""
        return self._asked.priced.notes

    def explain(self) -> Explanation:
        """Say who is protected, how it will be answered, the expected ±, the price and what is left. Free."""
        return self._asked.priced.explain(left=str(self._desk.ledger.left()))

    def dummy(self) -> ReleaseTable:
        """Answer the same question from made-up rows that fit the schema, to see what an answer looks like. Free."""
        from discreet.query.engines import dummy_engine

        engine = dummy_engine(self._catalogue)
        try:
            tallied = engine.run(self._asked.priced.stage, deadline=Deadline.after(self._desk.seconds))
        finally:
            engine.close()
        return self._asked.priced.draw(tallied)

    def release(self) -> ReleaseTable:
        """Pay, read, draw, store and return the answer; or return the one that was stored, for free."""
        return ReleaseTable.from_json(self._desk.answer(self._asked).text)

    def __repr__(self) -> str:
        return str(self.explain())

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()
