"""A server of the tests ends with them, however they end."""

from __future__ import annotations

import subprocess
import sys

from tests.servers.watchdog import Watchdog

OWNER = """\
import subprocess, time
from tests.servers.watchdog import Watchdog
server = subprocess.Popen(["sleep", "600"], start_new_session=True)
watchdog = Watchdog(server.pid)
print("watched", flush=True)
time.sleep(600)
"""


def test_the_server_ends_when_its_owner_is_killed() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"watched\n"

    owner.kill()
    owner.wait()

    assert owner.stdout.read() == b""  # the end of the pipe that the server inherited: the server is gone
    owner.stdout.close()


def test_a_watchdog_that_was_dismissed_kills_nobody() -> None:
    server = subprocess.Popen(["sleep", "600"])
    Watchdog(server.pid).dismiss()

    assert server.poll() is None
    server.terminate()
    server.wait()
    assert server.returncode == -15
