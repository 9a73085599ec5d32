"""How to reach a Kafka cluster: every connection setting, from code or from `DAGBOK_KAFKA_*`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput

PREFIX: Final = "DAGBOK_KAFKA_"

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"]
Compression = Literal["zstd", "lz4", "snappy", "gzip", "none"]
SECRET: Final = ("sasl_password", "ssl_key_password")

Seconds = float


class KafkaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is read from the variable of its name: `sasl_username` from `DAGBOK_KAFKA_SASL_USERNAME`.

    `bootstrap_servers`: `host:port`, several with commas. `prefix`: what the names of all topics start with.
    `ssl_*_file`: PEM files; without `ssl_ca_file` the system's authorities count. `sasl_oauth_token_provider`:
    `module:name` of what makes aiokafka's `AbstractTokenProvider`. `client_rack`: read from a replica in this rack,
    where the brokers allow that. `request_timeout_s`: how long one request may take; an append is given up, in doubt,
    after twice that.
    """

    bootstrap_servers: str = "localhost:9092"
    prefix: str = "dagbok."
    client_id: str = "dagbok"
    client_rack: str | None = None
    compression: Compression = "zstd"
    request_timeout_s: Seconds = 10.0
    retry_backoff_s: Seconds = 0.1
    metadata_max_age_s: Seconds = 300.0
    connections_max_idle_s: Seconds = 540.0
    security_protocol: Protocol = "PLAINTEXT"
    ssl_ca_file: str | None = None
    ssl_cert_file: str | None = None
    ssl_key_file: str | None = None
    ssl_key_password: str | None = None
    sasl_mechanism: Mechanism = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = None
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None
    sasl_oauth_token_provider: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **given: str) -> KafkaSettings:
        """Read the variables; an empty one counts as absent, and one that names no field as another's (Kubernetes makes
        `…_KAFKA_PORT` of a service's name). What is `given` goes before them.
        Raises `InvalidInput` (`usage`) naming a wrong one."""
        told = {
            name.removeprefix(PREFIX).lower(): value.strip()
            for name, value in environment.items()
            if name.startswith(PREFIX) and value.strip()
        }
        try:
            settings = msgspec.convert(told | given, cls, strict=False)
        except msgspec.ValidationError as error:
            raise _wrong(error) from error
        settings.check()
        return settings

    def check(self) -> None:
        """Raises `InvalidInput` (`usage`) for settings that cannot go together."""
        if not self.bootstrap_servers.strip():
            raise _usage("no broker is named", f"set {PREFIX}BOOTSTRAP_SERVERS to host:port")
        if (self.ssl_cert_file is None) != (self.ssl_key_file is None):
            raise _usage("a client certificate needs both its files", f"set {PREFIX}SSL_CERT_FILE and _SSL_KEY_FILE")
        by_password = self.sasl_mechanism == "PLAIN" or self.sasl_mechanism.startswith("SCRAM")
        if (
            self.security_protocol.startswith("SASL")
            and by_password
            and not (self.sasl_username and self.sasl_password)
        ):
            told = f"{self.security_protocol} with {self.sasl_mechanism} needs a user and a password"
            raise _usage(told, f"set {PREFIX}SASL_USERNAME and _SASL_PASSWORD")
        if min(self.request_timeout_s, self.retry_backoff_s, self.metadata_max_age_s, self.connections_max_idle_s) <= 0:
            raise _usage("a time of the Kafka settings is not above zero", "give seconds above zero")

    def __repr__(self) -> str:
        """Without what is secret."""
        told = (
            f"{name}={'***' if name in SECRET else repr(value)}"
            for name, value in msgspec.structs.asdict(self).items()
            if value is not None
        )
        return f"KafkaSettings({', '.join(told)})"


def options_of(settings: KafkaSettings, environment: Mapping[str, str]) -> list[str]:
    """`--kafka broker:9092 --prefix blue.`: the options of a command that is to reach the same topics, as far as these
    variables do not name them."""
    options: list[str] = []
    if environment.get(f"{PREFIX}BOOTSTRAP_SERVERS", "").strip() != settings.bootstrap_servers:
        options += ["--kafka", shlex.quote(settings.bootstrap_servers)]
    if settings.prefix != (environment.get(f"{PREFIX}PREFIX", "").strip() or KafkaSettings().prefix):
        options += ["--prefix", shlex.quote(settings.prefix)]
    return options


def _wrong(error: msgspec.ValidationError) -> InvalidInput:
    """The message of msgspec ends with the path of the field."""
    message, _, field = str(error).partition(" - at `$.")
    name = PREFIX + field.rstrip("`").upper()
    return _usage(f"{name}: {message}", "see docs/cli.md for the settings")


def _usage(message: str, advice: str) -> InvalidInput:
    return InvalidInput(message, code=Code.USAGE, advice=advice)
