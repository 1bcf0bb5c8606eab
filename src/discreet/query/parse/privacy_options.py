"""BigQuery's clause `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(…)`: what an analyst may ask for beside the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.errors import InvalidParameter
from discreet.exact import exact
from discreet.query.parse.refusals import Script
from discreet.query.policy import FamilyChoice, Unit, UnitLimits

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

__all__ = ["PrivacyOptions", "read_options"]

_NUMBERS = ("epsilon", "delta")
_LIMITS = ("max_groups_contributed", "max_rows_contributed")
_STRATEGIES = ("LAPLACE_THRESHOLD", "PUBLIC_GROUPS")
_NAMES = (*_NUMBERS, *_LIMITS, "privacy_unit_column", "group_selection_strategy")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyOptions:
    """What the clause says; None where it is silent. It can tighten a policy, never loosen it."""

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_inner: int | None = None  # said beside the query only
    public_groups: bool = False  # every key must have a public domain
    family: FamilyChoice | None = None  # said beside the query, never by it

    def tightened(self, limits: UnitLimits) -> PrivacyOptions:
        """Take limits that were said beside the query, too: where both are said, the smaller."""
        return replace(
            self,
            max_groups=_smaller(self.max_groups, limits.max_groups),
            max_rows_per_group=_smaller(self.max_rows_per_group, limits.max_rows_per_group),
            max_inner=_smaller(self.max_inner, limits.max_inner),
            family=limits.family,
        )


def _smaller(said: int | None, also: int | None) -> int | None:
    return min((limit for limit in (said, also) if limit is not None), default=None)


def read_options(script: Script, tokens: Sequence[Token], unit: Unit) -> PrivacyOptions:
    """Read what stands between the parentheses of OPTIONS."""
    found: dict[str, Token] = {}
    for name, value in _assignments(script, tokens):
        key = name.text.lower()
        if key not in _NAMES or key in found:
            raise script.refuse(
                name,
                "this option is unknown, or given twice",
                reason="every option changes what is promised, so none is ignored",
                way_out=f"the options are {', '.join(_NAMES)}",
            )
        found[key] = value
    _check_unit(script, found.get("privacy_unit_column"), unit)
    return PrivacyOptions(
        epsilon=_number(script, found.get("epsilon"), positive=True),
        delta=_number(script, found.get("delta"), positive=False),
        max_groups=_limit(script, found.get("max_groups_contributed"), unit.max_groups),
        max_rows_per_group=_limit(script, found.get("max_rows_contributed"), unit.max_rows_per_group),
        public_groups=_strategy(script, found.get("group_selection_strategy")) == "PUBLIC_GROUPS",
    )


def _assignments(script: Script, tokens: Sequence[Token]) -> list[tuple[Token, Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type.name == "COMMA":
            parts.append([])
        else:
            parts[-1].append(token)
    wrong = next((part for part in parts if len(part) != 3 or part[1].token_type.name != "EQ"), None)
    if wrong is not None and tokens:
        raise script.refuse(
            (wrong or list(tokens))[0],
            "an option is written name = constant",
            reason="the price must follow from the text alone",
            way_out="for example OPTIONS(epsilon = 1, delta = 1e-6)",
        )
    return [(part[0], part[2]) for part in parts if part]


def _number(script: Script, token: Token | None, *, positive: bool) -> Fraction | None:
    if token is None:
        return None
    try:
        number = exact(token.text)
    except InvalidParameter:
        number = Fraction(-1)
    if token.token_type.name != "NUMBER" or (number <= 0 if positive else not 0 <= number < 1):
        raise script.refuse(
            token,
            "epsilon is a number above 0, delta one from 0 to below 1",
            reason="nothing else bounds what can be learned",
            way_out="for example OPTIONS(epsilon = 1, delta = 1e-6)",
        )
    return number


def _limit(script: Script, token: Token | None, most: int) -> int | None:
    if token is None:
        return None
    if token.token_type.name != "NUMBER" or not token.text.isdecimal() or not 1 <= int(token.text[:12]) <= most:
        raise script.refuse(
            token,
            f"this limit is a whole number from 1 to {most}, which is what the policy allows",
            reason="a query may tighten the policy, never loosen it",
            way_out="choose a smaller limit, or leave it out",
        )
    return int(token.text)


def _check_unit(script: Script, token: Token | None, unit: Unit) -> None:
    if token is not None and (unit.is_row or token.text.lower() != unit.called.lower()):
        raise script.refuse(
            token,
            "the privacy unit is set by the policy, and it is another one",
            reason="whom to protect is the custodian's choice, not the analyst's",
            way_out="leave privacy_unit_column out",
        )


def _strategy(script: Script, token: Token | None) -> str | None:
    if token is None:
        return None
    if token.text.upper() not in _STRATEGIES:
        raise script.refuse(
            token,
            "the strategies are LAPLACE_THRESHOLD and PUBLIC_GROUPS",
            reason="groups are either listed in public or shown above a threshold",
            way_out="leave group_selection_strategy out",
        )
    return token.text.upper()
