"""What a reader of the documentation has who was given a token: a server on this machine that serves visits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLICY = """\
dataset = "visits"
ledger = "visits.ledger"

[unit]
column = "patient"
max_groups = 1
max_rows_per_group = 1

[budget]
epsilon = 4

[tables.visits]
source = "visits.csv"

[tables.visits.columns]
age = { low = 0, high = 120, whole = true }
clinic = { categories = ["Harbour", "Hillside", "Market", "Old Mill", "Station"] }
"""


@contextmanager
def reader_server(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve the table in a folder to Ana, an analyst; her address and token."""
    import uvicorn

    from discreet.query import read_policy
    from discreet.server.accounts import AccountRole
    from discreet.server.listener import ServerSettings, opened_server, web_app

    (folder / "visits.toml").write_text(POLICY, encoding="utf-8")
    settings = ServerSettings(state=folder / "server.db", answer_after={"visits": 2.0})
    bound = socket.create_server(("127.0.0.1", 0))
    with opened_server([read_policy(folder / "visits.toml")], settings) as server:
        server.accounts.add("ana", AccountRole.ANALYST, ("visits",), by="test")
        said = {"scopes": ("read", "ask", "release"), "datasets": None, "cap": None, "seconds": 3600.0}
        token = server.accounts.new_token("ana", by="test", **said)
        config = uvicorn.Config(web_app(server, settings), log_config=None, lifespan="off", ws="none")
        web = uvicorn.Server(config)
        thread = threading.Thread(target=web.run, kwargs={"sockets": [bound]}, daemon=True)
        server.jobs.start()
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}", token
        finally:
            web.should_exit = True
            thread.join(60)
