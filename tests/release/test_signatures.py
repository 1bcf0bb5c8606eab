"""Keys: only their owner reads them, and a fingerprint means one key."""

from __future__ import annotations

import os
import pickle
import stat

import pytest

from discreet.cli.command_runner import run
from discreet.cli.exits import Code
from discreet.errors import InvalidParameter, NotAuthorised, Refused
from discreet.release import new_key, read_signing_key
from discreet.release.signatures import PublicKey, read_public_key


def test_a_new_key_is_for_its_owner_and_its_public_half_for_everybody(tmp_path):
    before = os.umask(0)
    try:
        public = new_key(tmp_path / "a.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.key").stat().st_mode) == 0o600
    assert read_public_key(tmp_path / "a.key.pub") == public
    assert read_signing_key(tmp_path / "a.key").public == public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o601])
def test_a_key_that_others_may_read_is_refused(tmp_path, mode):
    new_key(tmp_path / "a.key")
    (tmp_path / "a.key").chmod(mode)
    with pytest.raises(Refused, match="chmod 600"):
        read_signing_key(tmp_path / "a.key")


def test_a_key_is_never_written_over(tmp_path):
    new_key(tmp_path / "a.key")
    held = (tmp_path / "a.key").read_bytes()
    with pytest.raises(InvalidParameter, match="there already"):
        new_key(tmp_path / "a.key")
    (tmp_path / "a.key").rename(tmp_path / "b.key")
    with pytest.raises(InvalidParameter, match="there already"):
        new_key(tmp_path / "a.key")
    assert (tmp_path / "b.key").read_bytes() == held


def test_a_passphrase_locks_a_key(tmp_path):
    public = new_key(tmp_path / "a.key", passphrase="correct horse")
    with pytest.raises(NotAuthorised, match="locked"):
        read_signing_key(tmp_path / "a.key")
    with pytest.raises(InvalidParameter, match="passphrase"):
        read_signing_key(tmp_path / "a.key", passphrase="battery staple")
    assert read_signing_key(tmp_path / "a.key", passphrase="correct horse").public == public
    with pytest.raises(InvalidParameter, match="empty"):
        new_key(tmp_path / "b.key", passphrase="")
    for said in ("x" * 1024, "\udcff"):
        with pytest.raises(InvalidParameter, match="passphrase"):
            new_key(tmp_path / "b.key", passphrase=said)
        with pytest.raises(InvalidParameter, match="passphrase"):
            read_signing_key(tmp_path / "a.key", passphrase=said)
    assert not (tmp_path / "b.key").exists()


def test_a_signature_is_good_for_one_message_and_one_key(tmp_path):
    for name in ("a", "b"):
        new_key(tmp_path / f"{name}.key")
    a, b = (read_signing_key(tmp_path / f"{name}.key") for name in ("a", "b"))
    signature = a.sign(b"text")
    assert a.public.has_signed(b"text", signature)
    assert a.sign(b"text") == signature
    assert not a.public.has_signed(b"Text", signature)
    assert not b.public.has_signed(b"text", signature)
    for place in range(0, 64, 7):
        wrong = bytearray(signature)
        wrong[place] ^= 1
        assert not a.public.has_signed(b"text", bytes(wrong))
    assert not a.public.has_signed(b"text", b"")


def test_a_private_key_is_neither_shown_nor_copied(tmp_path):
    new_key(tmp_path / "a.key")
    key = read_signing_key(tmp_path / "a.key")
    assert repr(key) == f"SigningKey({key.public.fingerprint})"
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_fingerprint_is_read_in_any_writing_but_whole():
    key = PublicKey(bytes(range(32)))
    shown = key.fingerprint
    bare = shown.removeprefix("ed25519:").replace("-", "")
    assert len(bare) == 32
    for writing in (shown, shown.upper(), bare, bare.upper(), f" {shown} "):
        assert read_public_key(writing) == shown
    for short in (shown[:-1], bare[:16], "", "ed25519:", shown.replace("-", "--", 1)):
        with pytest.raises(InvalidParameter):
            read_public_key(short)


@pytest.mark.parametrize(
    "text", ["", "ssh-ed25519 AAAA", "discreet-ed25519", "discreet-ed25519 AAAA", "discreet-ed25519 !!!!"]
)
def test_what_is_no_public_key_is_refused(tmp_path, text):
    (tmp_path / "x.pub").write_text(text)
    with pytest.raises(InvalidParameter):
        read_public_key(tmp_path / "x.pub")


def test_a_public_key_file_with_the_fingerprint_of_another_is_refused(tmp_path):
    one, other = PublicKey(bytes(range(32))), PublicKey(bytes(32))
    (tmp_path / "x.pub").write_text(one.line.replace(one.fingerprint, other.fingerprint))
    with pytest.raises(InvalidParameter, match="fingerprint"):
        read_public_key(tmp_path / "x.pub")


@pytest.mark.parametrize("content", [b"", b"x", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_private_key_is_refused(tmp_path, content):
    (tmp_path / "a.key").write_bytes(content)
    (tmp_path / "a.key").chmod(0o600)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        read_signing_key(tmp_path / "a.key")


def test_the_command_makes_and_shows_keys(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_KEY_PASSPHRASE", "correct horse")
    assert run(["key", "new", "a.key", "--passphrase"]) == Code.OK
    made = capfd.readouterr().out
    for name in ("a.key", "a.key.pub"):
        assert run(["key", "show", name]) == Code.OK
        assert capfd.readouterr().out.splitlines()[0] in made
    monkeypatch.delenv("DISCREET_KEY_PASSPHRASE")
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115 - nobody can be asked
    assert run(["key", "show", "a.key"]) == Code.NOT_AUTHORISED
    assert "PRIVATE" not in made
