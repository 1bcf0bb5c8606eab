"""Places where a ledger must not live: under two names, or on a network that goes by an odd name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from discreet.errors import Refused
from discreet.ledger import Account, Budget, Ledger, private_files
from discreet.privacy.relation import Relation

ACCOUNT = Account("people", "row", Relation.ADD_REMOVE, Budget(1))


@pytest.mark.parametrize("which", ["ledger", "ledger.anchor"])
def test_a_second_name_of_a_file_is_refused(which: str, tmp_path: Path) -> None:
    """Each name would have a log, a lock and an anchor of its own: both could spend the same budget at once."""
    path = tmp_path / "ledger"
    Ledger.open(path, ACCOUNT).close()
    os.link(tmp_path / which, tmp_path / "second")
    shutil.copy2(path.with_name("ledger.anchor"), path.with_name("second.anchor"))
    with pytest.raises(Refused, match="second name"):
        Ledger.open(path, ACCOUNT)
    (tmp_path / "second").unlink()
    Ledger.open(path, ACCOUNT).close()


MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:50 / /mnt/donn\u00e9es rw - nfs4 server:/data rw
31 22 0:51 / /mnt/two\\040words rw shared:1 - cifs //server/data rw
32 22 0:52 / /mnt/back\\134slash rw - ceph server:/ rw
33 22 0:53 / /mnt/\u4eba rw - fuse.sshfs host: rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/ana", "ext4"),
        ("/mnt/donn\u00e9es", "nfs4"),
        ("/mnt/donn\u00e9es/deep/er", "nfs4"),
        ("/mnt/two words/a", "cifs"),
        ("/mnt/back\\slash", "ceph"),
        ("/mnt/\u4eba/a", "fuse.sshfs"),
    ],
)
def test_a_network_is_known_by_any_name(folder: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *given, **named: MOUNTS)
    assert private_files._kind_of_mount(Path(folder)) == kind
