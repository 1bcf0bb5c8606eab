"""Messages between two processes: a short text of plain values, then blocks of bytes, and perhaps open files."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

__all__ = ["Block", "Message", "readable", "receive", "send"]

Block: TypeAlias = "bytes | bytearray | memoryview"
Wait: TypeAlias = Callable[[], None]  # returns once there is something to read, or raises

_LENGTH = 8  # bytes
_LONGEST = 1 << 30  # bytes of a text
_MOST_FILES = 250  # with one message


@final
@dataclass(frozen=True, slots=True)
class Message:
    """Plain values by name, blocks of bytes, and numbers of open files, which are the receiver's to close."""

    said: dict[str, Any]
    blocks: list[Any] = field(default_factory=list)
    files: list[int] = field(default_factory=list)


def send(
    connection: socket.socket, said: dict[str, Any], blocks: Sequence[Block] = (), files: Sequence[int] = ()
) -> None:
    """Send a message; files stay open here."""
    if len(files) > _MOST_FILES:
        raise ValueError("too many files for one message")
    views = [memoryview(block).cast("B") for block in blocks]
    text = json.dumps({"said": said, "blocks": [view.nbytes for view in views]}, separators=(",", ":")).encode()
    whole = len(text).to_bytes(_LENGTH, "little") + text
    sent = socket.send_fds(connection, [whole], files) if files else 0
    connection.sendall(memoryview(whole)[sent:])
    for view in views:
        connection.sendall(view)


def receive(connection: socket.socket, wait: Wait | None = None) -> Message:
    """Receive a message; EOFError if the other end is gone. Before every wait `wait` is asked whether to go on."""
    head, files = _first(connection, wait)
    _fill(connection, head, _LENGTH - len(head), wait)
    length = int.from_bytes(head, "little")
    if length > _LONGEST:
        raise EOFError
    told = json.loads(bytes(_fill(connection, bytearray(), length, wait)))
    blocks = [_block(connection, size, wait) for size in told["blocks"]]
    return Message(told["said"], blocks, files)


def _first(connection: socket.socket, wait: Wait | None) -> tuple[bytearray, list[int]]:
    """Receive the beginning, with which files come."""
    if wait is not None:
        wait()
    data, files, *_ = socket.recv_fds(connection, _LENGTH, _MOST_FILES)
    if not data:
        raise EOFError
    return bytearray(data), list(files)


def _fill(connection: socket.socket, known: bytearray, more: int, wait: Wait | None) -> bytearray:
    known += _block(connection, more, wait)
    return known


def _block(connection: socket.socket, size: int, wait: Wait | None) -> bytearray:
    block = bytearray(size)
    view = memoryview(block)
    while view:
        if wait is not None:
            wait()
        got = connection.recv_into(view)
        if not got:
            raise EOFError
        view = view[got:]
    return block


def readable(connection: socket.socket, seconds: float) -> bool:
    """Whether there is something to read, or the other end is gone, within some time."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(max(0.0, 1000 * seconds)))
