"""Answer by the method that was named, or by the one that public facts choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from discreet.exact import Number
from discreet.mechanisms.release import Release
from discreet.privacy.payer import Payer
from discreet.statistics.choosing import Method, method_for
from discreet.statistics.facts import ChooserInputs
from discreet.statistics.paid import PAID, PaidChoice
from discreet.statistics.paying import answer

__all__ = ["answer_by"]


def answer_by(
    name: str,
    methods: Sequence[Method],
    facts: ChooserInputs,
    column: Any,
    *,
    session: Payer | None,
    purpose: str,
    choice_share: Number,
) -> Release[Any]:
    """Choose, pay, read, release, and say how it was done."""
    if name == PAID:
        return answer(PaidChoice(methods, facts, choice_share), column, session=session, purpose=purpose)
    method = method_for(name, methods, facts)
    found: Release[Any] = answer(method.make(facts), column, session=session, purpose=purpose)
    return replace(found, method=method.name)
