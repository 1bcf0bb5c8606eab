"""What `--json` of each command answers, as JSON Schema: made from the answers, published in docs/schema/cli."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.cli.account_support import Calibrated, ComposedTotal, Converted
from discreet.cli.attack.attack_attributes import AttributesAnswer
from discreet.cli.attack.attack_differencing import DifferencingAnswer
from discreet.cli.attack.attack_floating_point import FloatingPointAnswer
from discreet.cli.attack.attack_linkage import LinkageAnswer
from discreet.cli.attack.attack_membership import AttackerAnswer, MembershipAnswer
from discreet.cli.attack.attack_membership import FoundAnswer as FoundMember
from discreet.cli.attack.attack_scoreboard import ItemCountsAnswer, ScoreboardAnswer, TrialAnswer
from discreet.cli.attack.attack_sticky import MethodAnswer, StickyAnswer
from discreet.cli.attack.attack_support import Share
from discreet.cli.attack.attack_uniqueness import CombinationAnswer, SingledOutAnswer, UniquenessAnswer
from discreet.cli.attack.count_attacks import AveragingAnswer, RowsAnswer, SecretsAnswer, TracedAt, TracingAnswer
from discreet.cli.audit_support import AuditAnswer, AuditedRow, SelfAuditAnswer
from discreet.cli.budget_support import Amount, BudgetNow, QuotaNow
from discreet.cli.commands.bundle import BundleCheck, VerifiedBundle
from discreet.cli.commands.data import Copied, ErasureAnswer, ErasurePlace, SetFacts, SetFile, Sets
from discreet.cli.commands.demo import DemoAnswer
from discreet.cli.commands.explain_epsilon import BeliefAnswer, DeploymentAnswer, MeaningAnswer
from discreet.cli.commands.explain_epsilon import FoundShareAnswer as FoundMeaning
from discreet.cli.commands.key import KeyAnswer
from discreet.cli.commands.version import Check, Health, Version
from discreet.cli.doctor_support import PreparedSource
from discreet.cli.exits import Failure, Reason
from discreet.cli.ledger_support import (
    ClaimedRead,
    Claims,
    Exported,
    History,
    MovedLedger,
    Recorded,
    VerifiedLedger,
)
from discreet.cli.profile_support import ProfileAnswer
from discreet.cli.query_support import ColumnFacts, Explained, LimitsAnswer, TableAnswer, UnitsInBin
from discreet.cli.release_support import (
    CheckedPlan,
    ComparedLimits,
    Drafted,
    LimitFigures,
    PlanStatus,
    PriceList,
    TablePrice,
    Total,
    Written,
)
from discreet.cli.server_support import (
    NewSecret,
    PeopleList,
    PersonRow,
    ServedRow,
    ServerStarted,
    TokenList,
    TokenRow,
    WaitingList,
    WaitingRow,
)
from discreet.cli.serving.backup_support import CheckedCopy, RestoredState
from discreet.cli.synth_support import DraftedDomain, EvaluatedModel, FittedModel, SampledRows
from discreet.stored_names import stored_definitions

__all__ = ["ANSWERS", "schema_of"]

ANSWERS: Mapping[str, Any] = {
    "account calibrate": Calibrated,
    "account compose": ComposedTotal,
    "account convert": Converted,
    "approve accept": WaitingList,
    "approve decline": WaitingList,
    "approve list": WaitingList,
    "attack floating-point": FloatingPointAnswer,
    "attack differencing": DifferencingAnswer,
    "attack averaging": AveragingAnswer,
    "attack reconstruction": RowsAnswer,
    "attack subset-counts": SecretsAnswer,
    "attack tracing": TracingAnswer,
    "attack attributes": AttributesAnswer,
    "attack linkage": LinkageAnswer,
    "attack membership": MembershipAnswer,
    "attack scoreboard": ScoreboardAnswer,
    "attack singling-out": SingledOutAnswer,
    "attack uniqueness": UniquenessAnswer,
    "attack sticky": StickyAnswer,
    "audit mechanism": AuditAnswer,
    "audit self": SelfAuditAnswer,
    "backup check": CheckedCopy,
    "backup make": CheckedCopy,
    "backup restore": RestoredState,
    "budget": BudgetNow,
    "budget raise": BudgetNow,
    "bundle verify": VerifiedBundle,
    "data copy": Copied,
    "data erase": ErasureAnswer,
    "data list": Sets,
    "demo": DemoAnswer,
    "doctor": Health,
    "error": Failure,  # of every command, on stderr
    "explain": Explained,
    "explain-epsilon": MeaningAnswer,
    "init": Drafted,
    "key new": KeyAnswer,
    "key show": KeyAnswer,
    "ledger claims": Claims,
    "ledger export": Exported,
    "ledger history": History,
    "ledger move": MovedLedger,
    "ledger release": Claims,
    "ledger reopen": Claims,
    "ledger verify": VerifiedLedger,
    "limits": LimitsAnswer,
    "plan check": CheckedPlan,
    "plan dummy": Written,
    "plan price": PriceList,
    "plan schema": dict[str, Any],
    "plan status": PlanStatus,
    "plan tune": ComparedLimits,
    "profile": ProfileAnswer,
    "query": TableAnswer,
    "release": Written,
    "serve": ServerStarted,
    "source check": Health,
    "source prepare": PreparedSource,
    "synth domain": DraftedDomain,
    "synth evaluate": EvaluatedModel,
    "synth fit": FittedModel,
    "synth sample": SampledRows,
    "token list": TokenList,
    "token new": NewSecret,
    "token revoke": TokenList,
    "user add": NewSecret,
    "user disable": PeopleList,
    "user grant": PeopleList,
    "user invite": NewSecret,
    "user list": PeopleList,
    "version": Version,
}

# What parts of answers are called in docs/schema/cli, which others may have made code from: these names never change.
_DEFINITIONS: Mapping[type[Any], str] = {
    Amount: "Amount",
    AttackerAnswer: "AttackerAnswer",
    AuditedRow: "AuditedRow",
    BeliefAnswer: "BeliefAnswer",
    BundleCheck: "BundleCheck",
    Check: "Check",
    CheckedCopy: "CheckedCopy",
    ClaimedRead: "ClaimedRead",
    ColumnFacts: "ColumnFacts",
    CombinationAnswer: "CombinationAnswer",
    DeploymentAnswer: "DeploymentAnswer",
    ErasurePlace: "ErasurePlace",
    FoundMeaning: "FoundAnswer",
    FoundMember: "FoundAnswer",
    ItemCountsAnswer: "ItemCountsAnswer",
    LimitFigures: "LimitFigures",
    MethodAnswer: "MethodAnswer",
    PersonRow: "PersonRow",
    QuotaNow: "QuotaNow",
    Reason: "Reason",
    Recorded: "Recorded",
    ServedRow: "ServedRow",
    SetFacts: "SetFacts",
    SetFile: "SetFile",
    Share: "Share",
    TablePrice: "TablePrice",
    TokenRow: "TokenRow",
    WaitingRow: "WaitingRow",
    Total: "Total",
    TracedAt: "TracedAt",
    TrialAnswer: "TrialAnswer",
    UnitsInBin: "UnitsInBin",
}


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's answer. Nothing that it does not name may stand in it."""
    from pydantic import TypeAdapter

    found = stored_definitions(TypeAdapter(ANSWERS[name]).json_schema(), _DEFINITIONS)
    title = "discreet: an error" if name == "error" else f"discreet {name} --json"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_closed(found), "title": title}


def _closed(part: Any) -> Any:
    """Close every object whose fields are listed."""
    if isinstance(part, list):
        return [_closed(item) for item in part]
    if not isinstance(part, dict):
        return part
    inside = {key: _closed(value) for key, value in part.items()}
    return inside | {"additionalProperties": False} if "properties" in part else inside
