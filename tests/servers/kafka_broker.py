"""One Apache Kafka process on loopback ports, which tests may stop, kill and start again on its folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path
from typing import Final

from tests.servers.kafka_config import LOG4J, Secured, cluster_id, free_ports, properties, scram_options
from tests.servers.kafka_jars import jars, java_and_maven
from tests.servers.kafka_ready import NotReady, await_ready
from tests.servers.watchdog import Watchdog

JVM: Final = ("-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
STOP_S: Final = 20.0
SHOWN_LINES: Final = 60
STARTS: Final = 3


class Broker:
    """`folder` holds configuration, data and the log (`broker.log`); it must be there and empty.

    Raises `NotHere` where Java or Maven is missing.
    """

    def __init__(self, folder: Path, secured: Secured | None = None) -> None:
        self._java, maven = java_and_maven()
        self._classes = f"{jars(maven)}/*"
        self._folder, self._secured = folder, secured
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None
        self._formatted = False

    @property
    def bootstrap(self) -> str:
        """`host:port` of the listener without encryption."""
        return f"127.0.0.1:{self._ports.plain}"

    @property
    def secured_bootstrap(self) -> str:
        """`host:port` of the listener with SASL over TLS."""
        return f"127.0.0.1:{self._ports.secured}"

    def start(self) -> None:
        """Start it, again on the same ports and data, and wait until it is ready. Nothing when it runs. Raises
        `NotReady` with its log."""
        if self._alive():
            return
        for left in reversed(range(1 if self._formatted else STARTS)):
            if not self._formatted:
                self._format()
            self._launch()
            try:
                await_ready(self.bootstrap, self._alive)
            except NotReady as error:
                self.kill()
                if left:  # another process may have taken a port meanwhile
                    shutil.rmtree(self._folder / "data")
                    continue
                raise NotReady(f"{error}\n{self.log_tail()}") from error
            self._formatted = True
            return

    def stop(self) -> None:
        """End it in order, and at once when it takes too long. Nothing when it does not run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would end the process."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop it in its tracks (SIGSTOP): connections stay, nobody answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """The last lines of its log."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return "\n".join(lines[-SHOWN_LINES:])

    def _format(self) -> None:
        self._ports = free_ports()
        data = self._folder / "data"
        (self._folder / "server.properties").write_text(properties(self._ports, data, self._secured))
        (self._folder / "log4j2.properties").write_text(LOG4J)
        options = ["-t", cluster_id(), "-c", "server.properties", "--ignore-formatted", *scram_options(self._secured)]
        done = subprocess.run(
            [*self._command("kafka.tools.StorageTool"), "format", *options],
            cwd=self._folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise NotReady(f"the folder could not be formatted:\n{done.stdout}{done.stderr}")

    def _launch(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command("kafka.Kafka"), "server.properties"],
                cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._watchdog = Watchdog(self._process.pid)

    def _command(self, main: str) -> list[str]:
        return [self._java, *JVM, "-Dlog4j2.configurationFile=log4j2.properties", "-cp", self._classes, main]

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._signal(number)
        self._signal(signal.SIGCONT)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        if self._watchdog is not None:
            self._watchdog.dismiss()
            self._watchdog = None
