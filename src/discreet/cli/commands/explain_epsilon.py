"""`discreet explain-epsilon`: what an ε means, in words, a table and a picture; no data, nothing is spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from discreet.cli.options import AsJson, command
from discreet.cli.output import Block, show

if TYPE_CHECKING:
    from discreet.privacy.meaning import Meaning

__all__ = ["BeliefAnswer", "DeploymentAnswer", "FoundShareAnswer", "MeaningAnswer", "add_to"]

_Epsilon = Annotated[str | None, typer.Argument(help="The ε to explain, such as 1.0.", metavar="EPSILON")]
_Delta = Annotated[str, typer.Option("--delta", help="The δ that comes with it; 0 for pure ε-DP.")]
_Rho = Annotated[str | None, typer.Option("--rho", help="Instead of ε: the ρ of zero-concentrated DP (zCDP).")]
_Mu = Annotated[str | None, typer.Option("--mu", help="Instead of ε: the µ of Gaussian DP.")]
_OfBundle = Annotated[
    Path | None, typer.Option("--bundle", help="Instead of ε and δ: a bundle, explained by the noise it was made with.")
]
_Plot = Annotated[
    Path | None, typer.Option("--plot", help="Plot the trade-off curve to this file: .png, .svg or .html.")
]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "explain-epsilon", example="discreet explain-epsilon 1.0 --delta 1e-6", panel=panel, busy="computing")(
        explain_epsilon
    )


def explain_epsilon(
    epsilon: _Epsilon = None,
    delta: _Delta = "0",
    rho: _Rho = None,
    mu: _Mu = None,
    bundle: _OfBundle = None,
    plot: _Plot = None,
    as_json: AsJson = False,
) -> None:
    """Explain what an ε means: the success of the best attacker, and the ε of known deployments."""
    from discreet.cli.attack.attack_support import draw
    from discreet.privacy import explain_epsilon

    found = (
        explain_epsilon(epsilon, delta=delta, rho=rho, mu=mu)
        if bundle is None
        else _of_bundle(bundle, alone=(epsilon, rho, mu) == (None, None, None) and delta == "0")
    )
    draw(found, plot)
    show(MeaningAnswer.of(found), as_json=as_json)


def _of_bundle(bundle: Path, *, alone: bool) -> Meaning:
    from discreet.errors import InvalidParameter
    from discreet.release.bundle.verification import explain_bundle

    if not alone:
        raise InvalidParameter("--bundle says its own ε and δ: leave EPSILON, --delta, --rho and --mu out")
    return explain_bundle(bundle)


# --- meanings: What an ε means. ---


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FoundShareAnswer:
    """Which share of those in the data is found, at most, if this share of the others is wrongly accused."""

    false_alarms: float
    found: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefAnswer:
    """How sure somebody may become who was this sure before."""

    before: float
    after: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentAnswer:
    """What somebody else has said about their ε, and the share of right guesses against it."""

    who: str
    what: str
    epsilon: float
    delta: float
    success: float
    source: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningAnswer:
    """How far the best attacker gets, rounded up. An ε of null means that there is none at this δ."""

    said: str
    epsilon: float | None
    delta: float
    success: float  # share of right guesses where a coin gets one half
    odds: float | None  # e^ε: the factor by which odds may rise; with δ > 0, see text
    found: list[FoundShareAnswer]
    beliefs: list[BeliefAnswer]
    deployments: list[DeploymentAnswer]
    text: str

    @classmethod
    def of(cls, found: Meaning) -> MeaningAnswer:
        """Read what was found."""
        plain = found.to_json()
        return cls(
            **{name: plain[name] for name in ("said", "epsilon", "delta", "success", "odds")},
            found=[FoundShareAnswer(**one) for one in plain["found"]],
            beliefs=[BeliefAnswer(**one) for one in plain["beliefs"]],
            deployments=[DeploymentAnswer(**one) for one in plain["deployments"]],
            text=str(found),
        )

    def blocks(self) -> Iterator[Block]:
        yield self.text
