"""Run families, keep what came out, and say what differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from .flow import Flow, ran

__all__ = ["FAMILIES", "HERE", "QUICK", "Kept", "differences", "exact_flows", "kept", "outputs", "read", "write"]

Kept: TypeAlias = dict[str, dict[str, str]]  # Names and what is kept of each text, for "numbers" and "texts".

HERE = Path(__file__).parent
QUICK = ("noise", "mechanisms", "statistics", "queries")  # Whole numbers and fractions only: equal on every machine.
FAMILIES = (
    *QUICK,
    "adaptive",
    "robust",
    "accounting",
    "sessions",
    "releases",
    "estimators",
    "synthesis",
    "training",
    "attacks",
    "checks",
    "reports",
    "commands",
)
_SHORT = 200  # Characters that are kept as they are.
_BEGIN = 60  # Characters of a longer text that are kept beside its hash.


def outputs(family: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Run all flows of a family, and yield the name and the texts of each."""
    seen = set()
    for flow in import_module(f"{__package__}.{family}").flows():
        assert flow.name not in seen, f"two flows of {family} are called {flow.name!r}"
        seen.add(flow.name)
        yield flow.name, ran(flow, family)


def exact_flows(family: str) -> Iterator[Flow]:
    """The flows of a family that add no floats; they may run in part."""
    return (flow for flow in import_module(f"{__package__}.{family}").flows() if not flow.rounded)


def kept(found: Mapping[str, Mapping[str, str]], family: str) -> Kept:
    """Shorten what came out of a family to what is kept of it."""
    shortened: Kept = {"numbers": {}, "texts": {}}
    for name, texts in found.items():
        for kind, text in texts.items():
            shortened[kind][f"{family}/{name}"] = _short(text)
    return shortened


def _short(text: str) -> str:
    if len(text) <= _SHORT:
        return text
    return f"sha256 {hashlib.sha256(text.encode()).hexdigest()} of {len(text)}: {text[:_BEGIN]}"


def read() -> Kept:
    """Read the goldens."""
    files = {kind: HERE / f"{kind}.json" for kind in ("numbers", "texts")}
    return {kind: json.loads(file.read_text("utf-8")) if file.exists() else {} for kind, file in files.items()}


def write(new: Kept, family: str) -> None:
    """Put new goldens of a family in the place of its old ones."""
    for kind, old in read().items():
        others = {name: text for name, text in old.items() if not name.startswith(f"{family}/")}
        text = json.dumps(dict(sorted((others | new[kind]).items())), ensure_ascii=False, indent=0)
        (HERE / f"{kind}.json").write_text(text + "\n", "utf-8")


def differences(new: Kept, family: str, *, only: Iterable[str] | None = None) -> list[str]:
    """Say what differs from the goldens of a family, or of some of its flows."""
    lines = []
    asked = None if only is None else {f"{family}/{name}" for name in only}
    for kind, old in read().items():
        before = {name: text for name, text in old.items() if name.startswith(f"{family}/")}
        if asked is not None:
            before = {name: text for name, text in before.items() if name in asked}
        for name in sorted(before.keys() | new[kind].keys()):
            was, now = before.get(name, "nothing"), new[kind].get(name, "nothing")
            if was != now:
                lines.append(f"{kind} {name}\n  was {was}\n  now {now}")
    return lines
