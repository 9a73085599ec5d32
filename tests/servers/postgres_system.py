"""The system's PostgreSQL, with a fresh cluster in a folder of its own, on the loopback address."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.servers.watchdog import Watchdog

USER: Final = "dagbok"
ACCOUNT: Final = "postgres"
START_S: Final = 60.0
_POLL_S: Final = 0.02
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",  # it outlives killed processes, not the machine
    "shared_buffers": "64MB",
    "max_connections": "200",
    "deadlock_timeout": "200ms",
}


def find_programs(folders: Sequence[str] | None = None) -> Path | None:
    """The folder with `initdb` and `postgres`, of the newest version. Debian does not put them on the path."""
    if folders is None:
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: _number(path.parent.name))
        on_path = shutil.which("postgres")
        folders = [*map(str, reversed(versions)), *([os.path.dirname(on_path)] if on_path else [])]
    for folder in map(Path, folders):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def may_start() -> bool:
    """PostgreSQL refuses to run as root: then another user has to be there for it."""
    return os.getuid() != 0 or any(account.pw_name == ACCOUNT for account in pwd.getpwall())


class SystemPostgres:
    """A server that a test may kill and start again; its data stay. A context, which removes them."""

    def __init__(self, programs: Path, settings: dict[str, str] | None = None) -> None:
        self._programs = programs
        self._settings = _SETTINGS | (settings or {})
        self._port = _free_port()
        # Not below a folder of root's own, in which another user would see nothing.
        self._account = pwd.getpwnam(ACCOUNT) if os.getuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="dagbok-postgres-"))
        self._server: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None

    @property
    def url(self) -> str:
        """Of its one database."""
        return f"postgresql://{USER}@127.0.0.1:{self._port}/postgres"

    @property
    def pid(self) -> int:
        """Of the server's first process."""
        assert self._server is not None
        return self._server.pid

    def __enter__(self) -> Self:
        try:
            if self._account is not None:
                os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)
            self._create()
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def start(self) -> None:
        """Start, or start again, and wait until it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self._port)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "server.log").open("ab") as log:
            self._server = self._run(command, log.fileno())
        self._watchdog = Watchdog(self._server.pid)
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'server.log').read_text()[-2_000:]}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """As when the machine goes: nobody says goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As an administrator does, without waiting for clients."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        server = self._server
        if server is None:
            return
        self._server = None
        # Its helpers would notice by themselves that it is gone, but not at once.
        helpers = _children(server.pid) if how is signal.SIGKILL else []
        server.send_signal(how)
        for pid in helpers:
            with suppress(ProcessLookupError):
                os.kill(pid, how)
        server.wait()
        if self._watchdog is not None:
            self._watchdog.dismiss()
            self._watchdog = None

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _create(self) -> None:
        command = [str(self._programs / "initdb"), "-D", str(self._data), "-U", USER, "--auth", "trust", "--no-sync"]
        command += ["-E", "UTF8", "--no-instructions", "--locale", "C.UTF-8"]
        if int(_number(self._programs.parent.name)) >= 15:
            # A language whose order is not that of the bytes: what relies on the order has to ask for it.
            command += ["--locale-provider", "icu", "--icu-locale", "en-US"]
        done = self._run(command, subprocess.PIPE)
        said, _ = done.communicate()
        if done.returncode:
            raise RuntimeError(f"initdb failed: {said.decode(errors='replace')[-2_000:]}")

    def _run(self, command: Sequence[str], output: int) -> subprocess.Popen[bytes]:
        account = self._account
        return subprocess.Popen(
            command,
            cwd=self._folder,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            user=None if account is None else account.pw_uid,
            group=None if account is None else account.pw_gid,
            extra_groups=None if account is None else [],
            start_new_session=True,
        )

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _remove(self) -> None:
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _number(version: str) -> float:
    try:
        return float(version)
    except ValueError:
        return 0.0
