"""An event as part of a record."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from discreet.errors import InvalidParameter
from discreet.privacy.events import Event

__all__ = ["packed_event"]


def packed_event(event: Event) -> Any:
    """Return what JSON writes of an event."""
    if not isinstance(event, Event):
        raise InvalidParameter(f"expected an event of discreet.privacy, not {type(event).__name__}")
    try:
        return _packed(event)
    except ValueError:
        raise InvalidParameter("this event has a number with too many digits to be written down") from None


@lru_cache(maxsize=4096)
def _packed(event: Event) -> Any:
    return json.loads(event.to_json())
