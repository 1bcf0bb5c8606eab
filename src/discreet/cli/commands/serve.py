"""`discreet serve`: the server and its pages, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.options import AsJson, command

__all__ = ["add_to"]

_Connections = Annotated[
    list[str] | None,
    typer.Option("--data-connection", help="An environment variable with an address of PostgreSQL, for the same."),
]
_Above = Annotated[
    list[str] | None,
    typer.Option("--approve-above", help="DATASET=ε or DATASET:ROLE=ε: a release above it waits for a custodian."),
]
_AboveDaily = Annotated[
    list[str] | None,
    typer.Option("--approve-above-daily", help="The same for what one account asks of a data set in 24 hours."),
]
_Folder = Annotated[
    Path | None,
    typer.Option("--data-folder", help="A folder whose tables custodians may declare on a page; served, too."),
]


def add_to(app: typer.Typer, panel: str) -> None:
    """Add the command."""
    command(app, "serve", panel=panel, example="discreet serve --policy plan.toml --check")(serve)


def serve(
    policy: Annotated[
        list[Path] | None,
        typer.Option("--policy", help="A policy file, or a folder of them; several times for several data sets."),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve bundled data of people who do not exist.")] = False,
    state: Annotated[
        Path,
        typer.Option(
            "--state", help="People, tokens, jobs and the log: a file, or postgresql://… for several servers."
        ),
    ] = Path("discreet-server.db"),
    state_anchor: Annotated[
        Path | None, typer.Option("--state-anchor", help="Where the end of the log is kept, to notice an old copy.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.")] = 8000,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="Another name of this server, as browsers say it.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", help="How many releases are read at a time.")] = 2,
    answer_after: Annotated[
        list[str] | None,
        typer.Option(
            "--answer-after", help="DATASET=SECONDS or DATASET:KIND=SECONDS: when answers leave; else by a trial."
        ),
    ] = None,
    plan: Annotated[
        list[Path] | None, typer.Option("--plan", help="A release plan of one of the data sets, to be released here.")
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option("--tls-certificate", help="The certificate, as PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="The key of the certificate, as PEM.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine has TLS and passes requests on.")
    ] = False,
    approve_above: _Above = None,
    approve_above_daily: _AboveDaily = None,
    approval_days: Annotated[float, typer.Option("--approval-days", help="How long a release waits for one.")] = 7.0,
    oidc: Annotated[
        Path | None, typer.Option("--oidc", help="A file about a provider (OpenID Connect) that people sign in by.")
    ] = None,
    log: Annotated[
        str, typer.Option("--log", help="What is said on standard error, for each decision: json, text or off.")
    ] = "text",
    data_folder: _Folder = None,
    data_connection: _Connections = None,
    exact_looks: Annotated[
        bool, typer.Option("--allow-exact-looks", help="Let those who hold the data look at exact results, logged.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Open and verify everything, then end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve data sets to several people: an HTTP API and pages, accounts, one budget. See docs/server.md."""
    from discreet.cli.server_support import answer_times, approval_limits, run_server
    from discreet.server.listener import ServerSettings

    place: dict[str, Any] = {"state": state, "state_anchor": state_anchor, "host": host, "port": port}
    place |= {"names": tuple(name or ()), "workers": workers, "exact_looks": exact_looks}
    place["data_connections"] = tuple(data_connection or ())
    tls: dict[str, Any] = {"certificate": tls_certificate, "key": tls_key, "behind_proxy": behind_proxy}
    limits = approval_limits(approve_above, approve_above_daily, approval_days)
    place |= {"plans": tuple(plan or ()), "oidc": oidc, "log": log, "data_folder": data_folder}
    settings = ServerSettings(**place, **tls, answer_after=answer_times(answer_after or ()), approvals=limits)
    run_server(policy or [], settings, demo=demo, check=check, as_json=as_json)
