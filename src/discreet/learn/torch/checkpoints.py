"""Where a run stands, on disk: safetensors and JSON, never a pickle."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from discreet import noise
from discreet.errors import Refused
from discreet.file_locks import refuse_without_locks, try_to_lock
from discreet.ledger import Ledger
from discreet.ledger.budget import canonical
from discreet.ledger.charge_record import Charge, Entry
from discreet.ledger.private_files import place, private, refuse_network

__all__ = ["LedgerClaims", "RunFolder", "StepClaim", "new_token", "pack", "unpack"]


# --- ledger_claims: Claims of training steps as entries of the ledger, beside the charge of the run. ---
#
# A folder can be copied, and brought back from a backup; the anchor of a ledger notices that. So where a ledger pays
# for
# a run, it also keeps which steps were claimed: one entry a claim, durable before the noise of these steps is drawn.
# Every claim has a random token, which the folder that made it keeps. A folder without the token of the last claim is
# an
# older state of the run, or a copy that was left behind.


class StepClaim(NamedTuple):
    """All steps before this number, and who claimed them."""

    steps: int
    token: str


_NOTHING = StepClaim(0, "")


@final
class LedgerClaims:
    """What a ledger knows about the steps of one run, which it was charged for under a key.

    A charge of today pays for as many claims as the run has steps. One that an earlier release made has room for a
    single one: it claims all steps that are left.
    """

    def __init__(self, ledger: Ledger, charge: Entry, steps: int) -> None:
        self._ledger, self._charge, self._steps = ledger, charge, steps
        self._receipt = Charge(charge.index, charge.index, charge.hash)
        self._texts = self._read()

    @property
    def name(self) -> str:
        """What the folder knows this ledger by: the hash of the charge."""
        return self._charge.hash

    @property
    def last(self) -> StepClaim:
        """The last claim; no step and no token if there is none."""
        return _ledger_claims_read(self._texts[-1]) if self._texts else _NOTHING

    def end_of(self, steps: int) -> int:
        """Tell which steps a claim of these really takes."""
        return steps if self._is_series else self._steps

    def add(self, claim: StepClaim) -> None:
        """Commit a claim durably; refuse if somebody else has claimed in the meantime."""
        text, number = canonical({"steps": claim.steps, "token": claim.token}), len(self._texts)
        if self._is_series:
            kept = self._ledger.store_part(self._receipt, number, lambda: text)
        else:
            kept = self._ledger.store(self._receipt, lambda: text)
        if kept != text:
            raise Refused(
                "steps of this run were claimed from another copy of its folder",
                reason="both would draw noise for steps that were paid once",
                way_out="go on there, or name another folder for a new run",
            )
        self._texts = (*self._texts, text)

    @property
    def _is_series(self) -> bool:
        return "parts" in self._charge.content

    def _read(self) -> tuple[str, ...]:
        if self._is_series:
            return self._ledger.parts(self._receipt)
        said = self._charge.content
        found = self._ledger.stored(
            principal=said["principal"],
            project=said.get("project") or "",
            plan=said.get("plan"),
            version=said.get("version"),
            idempotency_key=said.get("key"),
        )
        return () if found is None else (found.text,)


def _ledger_claims_read(text: str) -> StepClaim:
    stored = json.loads(text)
    return StepClaim(stored["steps"], stored["token"])


def new_token() -> str:
    """Draw a name that nobody else has."""
    return "".join(f"{int(part):016x}" for part in noise.uniform(1 << 62, 2))


# --- folder: The folder of one run: what it is, which steps were claimed, and where it stands. ---
#
# A step is claimed before its noise is drawn, and a claim is never taken back. After a crash the steps that were
# claimed
# and that no checkpoint holds are lost: the run goes on behind them, and the account is the one of a run that was never
# interrupted. So no step is ever drawn a second time, whenever the process dies.
#
# Where a ledger pays, claims are entries of the ledger too, and the folder must know the last one: see `LedgerClaims`.
# Without a ledger only the folder knows, and `check_place` notices a folder that was copied or brought back as a whole.
#
#     run.json               what this run is; written once, never changed
#     charged.json           the ledger was charged; nothing is read before it is there
#     claims.json            how many steps were claimed, and the last two tokens by ledger; it only grows
#     step-00000120.safetensors   weights, optimiser and averages after step 120
#     lock                   held by the one process that trains here


_FORMAT = 2  # 1 knows its place by the number of the folder alone.
_CHECKPOINT = re.compile(r"step-(\d{8,})\.safetensors")
_RUN, _CHARGED, _CLAIMS, _LOCK = "run.json", "charged.json", "claims.json", "lock"


@final
class RunFolder:
    """The one process that trains in a folder, and what it has written down there."""

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self._path = path
        self._process = os.getpid()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_network(path)
        self._lock = _lock(path / _LOCK)
        self._ledger: LedgerClaims | None = None
        self._pending: StepClaim | None = None  # what the ledger may have or not
        try:
            self.run = self._begin(dict(identity))
            self.claimed, self._tokens = self._claims()
        except BaseException:
            self.close()
            raise

    @property
    def key(self) -> str:
        """Under which the ledger knows this run, so that it is charged once."""
        return f"training run {self.run}"

    @property
    def charged(self) -> bool:
        """Whether the ledger was charged for this run."""
        return (self._path / _CHARGED).exists()

    def mark_charged(self) -> None:
        """Write down that the run is paid."""
        self._write(_CHARGED, {"run": self.run})

    def claim(self, steps: int) -> None:
        """Claim all steps before this number, durably: here, and then in the ledger. Claims only grow."""
        if steps <= self.claimed:
            return
        if self._ledger is None:
            self._note_claim(steps)
            self.claimed = steps
        else:
            self._claim_in_ledger(self._ledger, steps)

    def _claim_in_ledger(self, ledger: LedgerClaims, steps: int) -> None:
        """Note the token, then make the entry: killed in between, the folder still has the token before."""
        claim = self._pending = self._pending or StepClaim(ledger.end_of(steps), new_token())
        self._tokens[ledger.name] = [ledger.last.token, claim.token]
        self._note_claim(claim.steps)
        ledger.add(claim)
        self.claimed, self._pending = claim.steps, None

    def use_ledger(self, claims: LedgerClaims) -> None:
        """Keep claims in a ledger from now on, if this folder knows the last one that is there."""
        last = claims.last
        if last.token not in self._tokens.get(claims.name, [""]):
            raise Refused(
                f"{self._path.name} does not know what the ledger knows of this run: it is an older state, or a copy",
                reason="steps were claimed from the folder as it was later; going on from here would draw them again",
                way_out="go on in the folder that trained last; or name another for a new run, which is charged",
            )
        if not last.token and self.claimed:
            self._check_copied()  # Claimed without this ledger: only the folder knows.
        self.claimed = max(self.claimed, last.steps)
        self._ledger = claims

    def check_place(self, steps: int) -> None:
        """Without a ledger, refuse a folder that was copied or brought back, and a run that a ledger knows."""
        if self._tokens and self.claimed < steps:
            raise Refused(
                f"the steps of the run in {self._path.name} are claimed in a ledger",
                reason="without it nobody knows whether they were drawn since",
                way_out="hand over the session or the ledger that paid for the run",
            )
        self._check_copied()

    def _check_copied(self) -> None:
        there = _read(self._path / _RUN) or {}
        if there.get("place") != self._place(there.get("format", _FORMAT)):
            raise Refused(
                f"{self._path.name} is a copy of a run's folder, or was brought back from one",
                reason="the original may have gone on: both would draw noise for steps that were paid once",
                way_out="go on in the original folder, which may be moved on its disk, or name another for a new run",
            )

    def save(self, steps: int, content: bytes) -> None:
        """Write the checkpoint after so many steps; when it is safe on the disk, remove older ones."""
        self._check_process()
        path = self._path / f"step-{steps:08}.safetensors"
        place(path, content)
        for older in self._checkpoints():
            if older != path:
                older.unlink(missing_ok=True)

    def latest(self) -> bytes | None:
        """Return the newest checkpoint, if there is one."""
        found = self._checkpoints()
        return found[-1].read_bytes() if found else None

    def close(self) -> None:
        """Let another process train here."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _begin(self, identity: dict[str, Any]) -> str:
        """Start a run, or find the one that is here and refuse to go on with another one."""
        there = _read(self._path / _RUN)
        if there is None:
            if self._checkpoints() or (_read(self._path / _CLAIMS) or {}).get("claimed", 0) != 0:
                raise Refused(f"{self._path.name} holds checkpoints of a run, and not what run it is", way_out=_ANOTHER)
            run = new_token()
            # Claims come first: a run is never there without them, so that missing ones are missed.
            self._write(_CLAIMS, {"run": run, "claimed": 0})
            self._write(_RUN, {"format": _FORMAT, "run": run, "place": self._place(_FORMAT), **identity})
            return run
        if there.get("format") not in range(1, _FORMAT + 1):
            raise Refused(
                f"the run in {self._path.name} was begun by another release of this package: it differs in format"
            )
        differing = sorted(name for name in identity if there.get(name) != identity[name])
        if differing:
            raise Refused(
                f"the run in {self._path.name} is another one: it differs in {', '.join(differing)}",
                reason="steps that were claimed for one run cannot be gone on with in another",
                way_out=_ANOTHER,
            )
        return str(there["run"])

    def _place(self, form: int) -> str:
        """What the file system says of this folder and its lock, which is made once and never written.

        A folder that is brought back may get the number of the one that is gone. When a file was last changed is kept
        by the system, and a copy cannot set it.
        """
        folder, lock = self._path.stat(), os.fstat(self._lock)
        return f"{folder.st_ino:020}" if form == 1 else f"{folder.st_ino:020} {lock.st_ino:020} {lock.st_ctime_ns:020}"

    def _note_claim(self, steps: int) -> None:
        tokens = {"tokens": self._tokens} if self._tokens else {}
        self._write(_CLAIMS, {"run": self.run, "claimed": steps, **tokens})

    def _claims(self) -> tuple[int, dict[str, list[str]]]:
        claims = _read(self._path / _CLAIMS)
        if claims is None:
            raise Refused(
                f"the claims of the run in {self._path.name} are missing",
                reason="they say which steps were drawn; without them steps would be drawn again that were paid once",
                way_out=_ANOTHER,
            )
        if claims.get("run") != self.run:
            raise Refused(f"the claims in {self._path.name} belong to another run", way_out=_ANOTHER)
        return int(claims["claimed"]), dict(claims.get("tokens", {}))

    def _checkpoints(self) -> list[Path]:
        found = [(int(match[1]), path) for path in self._path.iterdir() if (match := _CHECKPOINT.fullmatch(path.name))]
        return [path for _, path in sorted(found)]

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        self._check_process()
        place(self._path / name, canonical(value).encode())

    def _check_process(self) -> None:
        if self._lock < 0 or os.getpid() != self._process:
            raise Refused(
                "this run belongs to the process that started it, and is closed here",
                way_out="call make_private again with the same folder, in one process at a time",
            )


_ANOTHER = "name another folder for a new run, or make the same run again: same model, data set, plan and name"


def _refuse_network(path: Path) -> None:
    try:
        refuse_network(path.resolve() / _RUN)
    except Refused:
        raise Refused(
            f"the checkpoints of a run cannot live on a network file system, as {path.name} does",
            reason="locks and forced writes do not hold between machines, so two could draw noise for the same steps",
            way_out="use a folder on a local disk",
        ) from None


def _lock(path: Path) -> int:
    refuse_without_locks("a folder of checkpoints")
    file = private(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    try:
        try_to_lock(file)
    except BlockingIOError:
        os.close(file)
        raise Refused(
            f"another process trains in {path.parent.name}",
            reason="two of them would draw noise for the same steps",
            way_out="wait until it ends, or close the other run with private.close()",
        ) from None
    return file


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(f"{path.name} in {path.parent.name} was changed or is damaged", way_out=_ANOTHER)
    return found


# --- packing ---
# Nested dictionaries of tensors and plain values as one safetensors file: no pickle, nothing in it is ever run.
#
# Tensors get the path to them as their name. What is left is JSON in the head of the file, where tuples and
# dictionaries are marked, so that states of optimisers and schedulers come back as they were.


_HEAD = "discreet"
_PLAIN = (str, int, float, bool, type(None))


def pack(value: Mapping[str, Any]) -> bytes:
    """Write a nested value as a safetensors file; refuse what is neither a tensor nor plain."""
    tensors: dict[str, Tensor] = {}
    head = _packed(value, "", tensors)
    own = {name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    return save(own, {_HEAD: json.dumps(head)})


def unpack(content: bytes) -> dict[str, Any]:
    """Read what `pack` wrote."""
    try:
        size = int.from_bytes(content[:8], "little")
        head = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][_HEAD])
        value = _unpacked(head, load(content))
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError):
        value = None
    if not isinstance(value, dict):
        raise Refused("this checkpoint was changed or is damaged", way_out="start a new run in another folder")
    return value


def _packed(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, Mapping):
        return {"dict": [[key, _packed(part, f"{path}/{key}".strip("/"), tensors)] for key, part in value.items()]}
    if isinstance(value, tuple | list):
        parts = [_packed(part, f"{path}/{index}", tensors) for index, part in enumerate(value)]
        return {"tuple": parts} if isinstance(value, tuple) else parts
    if isinstance(value, _PLAIN):
        return value
    raise Refused(
        f"a {type(value).__name__} at {path} cannot be kept in a checkpoint",
        reason="checkpoints hold tensors and plain values only, so that opening one runs nothing",
        way_out="use an optimiser and a scheduler whose state is such, or train without checkpoint=…",
    )


def _unpacked(head: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(head, list):
        return [_unpacked(part, tensors) for part in head]
    if not isinstance(head, dict):
        return head
    ((kind, inner),) = head.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "tuple":
        return tuple(_unpacked(part, tensors) for part in inner)
    return {key: _unpacked(part, tensors) for key, part in inner}
