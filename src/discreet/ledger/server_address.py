"""Where a ledger on a PostgreSQL server is, how to connect to it, and what is said when that fails.

An address has no password: libpq takes it from PGPASSWORD, PGPASSFILE or ~/.pgpass, or a service file. No message here
quotes an address or what the driver says of it, since a password that is not escaped can be taken for a host or a port.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.errors import InvalidParameter, LedgerDamaged, LedgerUnavailable, MissingLibrary, NotAuthorised, Refused
from discreet.ledger.budget import canonical, digest

if TYPE_CHECKING:
    import psycopg

__all__ = ["LedgerAddress", "LedgerPlace", "as_place", "connect", "driver", "is_lost", "server_damage", "server_errors"]

_SCHEME = re.compile(r"postgres(?:ql)?:/", re.IGNORECASE)
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SECRET = ("password", "sslpassword")
_PATIENCE = "60s"  # to wait for others, and for a client whose machine is gone


@final
@dataclass(frozen=True, slots=True)
class LedgerAddress:
    """A ledger in a schema of a database: `postgresql://host/database`, with `?schema=` if it is not `discreet`."""

    schema: str
    parameters: dict[str, str] = field(hash=False, repr=False)

    @classmethod
    def read(cls, text: str) -> LedgerAddress:
        """Read an address; refuse one with a password, and one without a database."""
        address, _, query = text.partition("?")
        said = [each.partition("=") for each in query.split("&") if each]
        schema = next((value for name, _, value in said if name == "schema"), "discreet")
        rest = "&".join("".join(each) for each in said if each[0] != "schema")
        if not _NAME.fullmatch(schema):
            raise InvalidParameter("the schema of a ledger is named by small letters, digits and _, at most 63 of them")
        pg = driver()
        try:
            found = pg.conninfo.conninfo_to_dict(f"{address}?{rest}" if rest else address)
        except pg.Error:
            raise InvalidParameter(
                "this is not the address of a database: write postgresql://user@host:port/database"
            ) from None
        parameters = {name: str(value) for name, value in found.items() if value is not None}
        if any(name in parameters for name in _SECRET):
            raise Refused(
                "the address of a ledger must not have a password",
                reason="addresses stand in plans, in commands and in histories of shells",
                way_out="put the password into ~/.pgpass or the variable PGPASSWORD, and leave it out of the address",
            )
        if not ("dbname" in parameters or "service" in parameters or "PGDATABASE" in os.environ):
            raise InvalidParameter("say which database has the ledger: postgresql://host/database")
        return cls(schema, parameters)

    @property
    def name(self) -> str:
        """How it is called in texts: host, port if it is not the usual one, and database, no user."""
        port = self._said("port", "PGPORT", "5432")
        host = self._said("host", "PGHOST", "local") + ("" if port == "5432" else f":{port}")
        return f"postgresql://{host}/{self._said('dbname', 'PGDATABASE', '')}" + (
            "" if self.schema == "discreet" else f"?schema={self.schema}"
        )

    def _said(self, name: str, variable: str, default: str) -> str:
        return self.parameters.get(name) or os.environ.get(variable, default)

    def __str__(self) -> str:
        return self.name

    @property
    def suffix(self) -> str:
        """Like that of a file that is a ledger."""
        return ".ledger"

    @property
    def identity(self) -> str:
        """The same for the same ledger, whoever connects."""
        names = (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"), ("port", "PGPORT"), ("dbname", "PGDATABASE"))
        said = [self._said(name, variable, "") for name, variable in (*names, ("service", "PGSERVICE"))]
        return digest(canonical([*said, self.schema]))

    def exists(self) -> bool:
        """Tell whether there is a ledger."""
        with server_errors(), connect(self) as connection:
            found = connection.execute("SELECT to_regclass(%s)", (f"{self.schema}.entries",)).fetchone()
        return found is not None and found[0] is not None

    def resolve(self) -> LedgerAddress:
        """It is what it is from everywhere."""
        return self

    def default_anchor(self) -> Path:
        """Return the file in which this machine keeps the last head that it told or saw."""
        home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        return Path(home) / "discreet" / "anchors" / f"{self.identity[:32]}.anchor"


LedgerPlace = Path | LedgerAddress


def as_place(place: object) -> object:
    """Return the address if a place is on a server; anything else stays what it is.

    A path has one slash where an address had two; a single part after it is the database.
    """
    if not isinstance(place, (str, Path)) or not _SCHEME.match(str(place)):
        return place
    text = str(place)
    if isinstance(place, Path):
        rest = text.partition(":/")[2]
        text = f"postgresql://{rest}" if "/" in rest.partition("?")[0] else f"postgresql:///{rest}"
    return LedgerAddress.read(text)


def driver() -> Any:
    """Import psycopg, or say which extra brings it."""
    try:
        import psycopg
        import psycopg.conninfo
    except ImportError:
        raise MissingLibrary(
            "a ledger on a PostgreSQL server needs psycopg: install discreet with its extra `postgres`"
        ) from None
    return psycopg


def connect(address: LedgerAddress) -> psycopg.Connection[Any]:
    """Connect so that a commit returns only when it is on the disk of the server, and nothing waits for ever."""
    given = {"connect_timeout": "10", "application_name": "discreet ledger", "keepalives_idle": "20"}
    given |= {
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",
        "client_encoding": "utf8",
    }
    pg = driver()
    try:
        connection: psycopg.Connection[Any] = pg.connect(**given | address.parameters, autocommit=True)
    except pg.OperationalError as error:
        error.ledger = address  # where to look for why, if it is told to somebody
        raise
    try:
        _settle(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _settle(connection: psycopg.Connection[Any]) -> None:
    """Force what a commit must mean, and refuse a server that does not keep it."""
    row = connection.execute(
        "SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN "
        "'remote_apply' ELSE 'on' END, false), set_config('search_path', 'pg_catalog, pg_temp', false), "
        "set_config('lock_timeout', %(patience)s, false), set_config('statement_timeout', '0', false), "
        "set_config('idle_in_transaction_session_timeout', %(patience)s, false), "
        "set_config('tcp_keepalives_idle', '20', false), set_config('tcp_keepalives_interval', '5', false), "
        "set_config('tcp_keepalives_count', '3', false), set_config('jit', 'off', false), "
        "set_config('default_transaction_isolation', 'read committed', false), "
        "set_config('default_transaction_read_only', 'off', false), "
        "current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(), "
        "current_setting('server_encoding')",
        {"patience": _PATIENCE},
    ).fetchone()
    assert row is not None
    fsync, pages, is_copy, encoding = row[-4:]
    if fsync != "on" or pages != "on":
        raise Refused(
            "this server may lose what it has committed: fsync or full_page_writes is off",
            way_out="turn both on in postgresql.conf, or keep the ledger on another server",
        )
    if is_copy:
        raise LedgerUnavailable("this server is a standby, where nothing can be written: name the primary")
    if connection.info.server_version < 140_000:
        raise Refused("a ledger needs PostgreSQL 14 or newer", way_out="keep the ledger on a newer server")
    if encoding != "UTF8":
        raise Refused("the database of a ledger must have the encoding UTF8", way_out="make one with ENCODING 'UTF8'")


def is_lost(error: BaseException) -> bool:
    """Tell whether a connection is gone, or the server ends it: whether a commit came through is then unknown."""
    pg = driver()
    ended = (pg.errors.IdleInTransactionSessionTimeout, pg.errors.IdleSessionTimeout)
    if isinstance(error, (pg.errors.AdminShutdown, pg.errors.CrashShutdown, *ended)):
        return True
    return isinstance(error, pg.OperationalError | pg.InterfaceError) and getattr(error, "sqlstate", None) is None


def server_damage(error: Exception) -> LedgerDamaged | None:
    """Say what is damaged, if that is what the server met while it read."""
    errors = driver().errors
    if not isinstance(error, (errors.DataCorrupted, errors.IndexCorrupted)):
        return None
    return LedgerDamaged("the tables of this ledger are damaged: restore the database from a backup")


@contextmanager
def server_errors() -> Iterator[None]:
    """Say in our words what went wrong. What the server says may name values of a statement, so it is not repeated."""
    pg = driver()
    try:
        yield
    except (pg.errors.DataCorrupted, pg.errors.IndexCorrupted) as error:
        raise server_damage(error) or error from None
    except pg.errors.InsufficientPrivilege:
        raise NotAuthorised(
            "this role may not use the ledger, or not make it: whoever owns it grants what docs/ledger.md lists"
        ) from None
    except (pg.errors.IntegrityError, pg.errors.RaiseException):
        raise LedgerDamaged("the ledger refuses this change: it was written by something else than discreet") from None
    except pg.errors.LockNotAvailable:
        raise LedgerUnavailable(f"others had the ledger for longer than {_PATIENCE}; nothing was released") from None
    except pg.OperationalError as error:
        raise _unreachable(str(error), getattr(error, "ledger", None)) from None
    except pg.Error as error:
        code = getattr(error, "sqlstate", None) or type(error).__name__
        raise LedgerUnavailable(f"the ledger could not be used ({code}); nothing was released") from None


# What libpq says of a connection that failed has no code; these are parts of its constant texts, and what we say.
_REFUSALS = {
    "no password supplied": "the server of the ledger asks for a password: put it into ~/.pgpass or PGPASSWORD",
    "authentication failed": "the server of the ledger refuses this user or its password: see ~/.pgpass and PGPASSWORD",
    "pg_hba.conf": "the server of the ledger has no rule that lets this user in from here: see its pg_hba.conf",
}
_MISSING = {
    'role "': "the server has no such role: make it first (createuser), or name another user in the address",
    'database "': "the server has no such database: make it first (createdb)",
}


def _unreachable(said: str, address: LedgerAddress | None) -> Exception:
    for part, told in _REFUSALS.items():
        if part in said:
            return NotAuthorised(told)
    for part, told in _MISSING.items():
        if part in said and "does not exist" in said:
            return LedgerUnavailable(told)
    if "too many clients" in said or "connection slots" in said:
        return LedgerUnavailable("the server of the ledger has no room for another connection (max_connections)")
    why = None if address is None else _why(address)
    because = "" if why is None else f": {why}"
    return LedgerUnavailable(f"the server of the ledger cannot be reached, or was lost{because}; nothing was released")


def _why(address: LedgerAddress) -> str | None:
    """Find out by ourselves why a server does not answer: what the driver says may quote a password."""
    said = {name: address._said(name, f"PG{name.upper()}", "") for name in ("host", "hostaddr", "port", "service")}
    host, port = said["hostaddr"] or said["host"], said["port"] or "5432"
    if said["service"] or "," in host or not port.isdecimal():
        return None
    if not host or host.startswith("/"):
        return "no server has its socket there, or it is not running"
    try:
        with socket.create_connection((host, int(port)), timeout=3):
            return "something answers at this host and port, but it is no PostgreSQL, or it is starting or stopping"
    except (socket.gaierror, UnicodeError):
        return "its host has no address; see how it is written"
    except ConnectionRefusedError:
        return "nothing listens at this port of its host; is it running, and at this port?"
    except OSError:
        return "its host does not answer; see the network and firewalls"
