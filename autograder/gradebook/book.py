"""The connection to nbgrader's gradebook: made as nbgrader makes it, waited for when held."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

from alembic.script import ScriptDirectory
from nbgrader.api import Base  # type: ignore[import-untyped]
from nbgrader.dbutil import ALEMBIC_DIR  # type: ignore[import-untyped]
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from mpedu.faults import Failure

COURSE = "mpedu"  # what release calls it in nbgrader's settings
WAIT_S = 60.0
_TRIES = 3
_DAMAGED = ("not a database", "malformed")  # in SQLite's words
_EXAMPLES = "like sqlite:////folder/gradebook.db or postgresql://user@host/name"

T = TypeVar("T")


class BookError(Failure):
    """The gradebook cannot be read or written; what it held is intact."""


def default_url(nbgrader_folder: Path) -> str:
    """Where nbgrader run in this folder keeps its gradebook unless its settings name another."""
    path = str(nbgrader_folder.resolve() / "gradebook.db")
    return URL.create("sqlite", database=path).render_as_string(hide_password=False)


class Book:
    """The gradebook at a database URL; its tables are made at the first write.

    ValueError if the URL is none. BookError, after waiting up to `wait_s` seconds, while another
    program holds it.
    """

    def __init__(self, url: str, wait_s: float = WAIT_S) -> None:
        self.wait_s = wait_s
        try:
            self.url = make_url(url)
            # no connection outlives its use: processes are forked, and SQLite's log is tidied up
            self.engine = create_engine(self.url, poolclass=NullPool)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise ValueError(
                f"The gradebook {url!r} is no database that can be used here ({error});"
                f" give a URL {_EXAMPLES}."
            ) from None
        self.name = self.url.render_as_string()  # without the password
        self.file: Path | None = None  # of an SQLite gradebook
        if self.url.get_backend_name() == "sqlite":
            self.file = Path(self.url.database) if self.url.database else None
            self.name = self.url.database or ":memory:"
            _set_up_sqlite(self.engine, wait_s)

    def ensure(self) -> None:
        """Makes the tables if they are not there; so it is known early if it can be written."""
        if self.file:
            with contextlib.suppress(OSError):  # the write itself says what is wrong
                self.file.parent.mkdir(parents=True, exist_ok=True)
        self.write(lambda session: _make_tables(session.connection()))

    def write(self, work: Callable[[Session], T]) -> T:
        """What `work` returns, all of its changes in one transaction, or none."""
        for left in reversed(range(_TRIES)):
            with self._told(retry=left > 0), Session(self.engine) as session, session.begin():
                return work(session)
            time.sleep(0.1)
        raise AssertionError("the last try raises")

    def read(self, query: Any) -> list[Any]:
        """The rows of a query; none where there is no gradebook yet, which is not made by this."""
        if self.file and not self.file.exists():
            return []
        with self._told(), self.engine.connect() as connection:
            connection = connection.execution_options(reads=True)
            if not inspect(connection).has_table("grade"):
                return []
            return list(connection.execute(query))
        raise AssertionError("told raises")

    def copy(self, to: Path) -> None:
        """Writes a copy of an SQLite gradebook, whole or not at all; of another database none."""
        if self.file is None:
            return
        part = to.with_name(f".{to.name}.{os.getpid()}.part")
        try:
            with (
                contextlib.closing(sqlite3.connect(self.file, timeout=self.wait_s)) as source,
                contextlib.closing(sqlite3.connect(part)) as target,
            ):
                target.execute("PRAGMA journal_mode = OFF")
                source.backup(target)
            part.replace(to)
        except sqlite3.Error as error:
            raise BookError(
                f"The copy of the gradebook cannot be written to {to} ({error}); make room, and run"
                " the same command again. Pages and grades are written."
            ) from error
        finally:
            part.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _told(self, retry: bool = False) -> Iterator[None]:
        """Errors of the database as one sentence; with `retry` those are passed over that pass."""
        try:
            yield
        except DBAPIError as error:
            held = _is_held(error)
            # SQLite has waited `wait_s` itself; a server's deadlock passes at once
            if retry and held and not isinstance(error.orig, sqlite3.Error):
                return
            raise BookError(
                f"The gradebook {self.name} cannot be used: {self._way_out(error, held)}, and run"
                " the same command again. The results are recorded; nothing is lost."
            ) from error

    def _way_out(self, error: DBAPIError, held: bool) -> str:
        """What is wrong with the database, and what to do."""
        if held:
            return (
                f"another program has held it for {self.wait_s:g} s; end that (formgrader, a"
                " database viewer, a backup), or let it finish"
            )
        if self.file and any(word in str(error.orig) for word in _DAMAGED):
            return (
                f"it is damaged or no database at all ({error.orig}), and was left as it is; move"
                f" it away (mv {quote(self.name)} {quote(f'{self.name}.damaged')}), put a copy in"
                " its place if there is one (like gradebook-copy.db beside grades.csv; without one"
                " a new gradebook is made)"
            )
        return (
            f"{error.orig}; see that it can be written and is of this nbgrader (nbgrader db"
            " upgrade)"
        )


def _is_held(error: DBAPIError) -> bool:
    """Whether it passes when somebody else lets go: a lock, a deadlock, a lost connection."""
    said = str(error.orig).lower()
    words = ("locked", "deadlock", "lock wait", "serializ", "busy")
    return error.connection_invalidated or (
        isinstance(error, OperationalError) and any(word in said for word in words)
    )


def _set_up_sqlite(engine: Engine, wait_s: float) -> None:
    """One writer at a time, who waits; readers, like formgrader, are never in its way (WAL)."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions begin below, and nowhere else
        connection.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
        with contextlib.suppress(sqlite3.OperationalError):  # a file system without shared memory
            connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # At once, since a reader that wants to write later is refused without waiting.
        reads = connection.get_execution_options().get("reads")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _make_tables(connection: Connection) -> None:
    """nbgrader's tables, and the version that its own upgrades look at."""
    fresh = not inspect(connection).get_table_names()
    Base.metadata.create_all(connection)
    if fresh:
        version = ScriptDirectory(ALEMBIC_DIR).get_current_head()
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("INSERT INTO alembic_version VALUES (:v)"), {"v": version})
