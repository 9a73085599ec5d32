"""The settings of a connection, as every client of aiokafka takes them."""

from __future__ import annotations

import importlib
import ssl

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_settings import PREFIX, KafkaSettings


def client_options(settings: KafkaSettings) -> dict[str, object]:
    """Arguments of a client. Raises `InvalidInput` (`usage`) for settings or files that cannot be used."""
    settings.check()
    return {
        "bootstrap_servers": [server.strip() for server in settings.bootstrap_servers.split(",") if server.strip()],
        "client_id": settings.client_id,
        "request_timeout_ms": int(settings.request_timeout_s * 1000),
        "retry_backoff_ms": int(settings.retry_backoff_s * 1000),
        "metadata_max_age_ms": int(settings.metadata_max_age_s * 1000),
        "connections_max_idle_ms": int(settings.connections_max_idle_s * 1000),
        "security_protocol": settings.security_protocol,
        "ssl_context": ssl_context(settings) if settings.security_protocol.endswith("SSL") else None,
        "sasl_mechanism": settings.sasl_mechanism,
        "sasl_plain_username": settings.sasl_username,
        "sasl_plain_password": settings.sasl_password,
        "sasl_kerberos_service_name": settings.sasl_kerberos_service_name,
        "sasl_kerberos_domain_name": settings.sasl_kerberos_domain_name,
        "sasl_oauth_token_provider": token_provider(settings.sasl_oauth_token_provider),
    }


def ssl_context(settings: KafkaSettings) -> ssl.SSLContext:
    """Checks the broker's certificate and name. Raises `InvalidInput` when a file cannot be used."""
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_file)
        if settings.ssl_cert_file is not None:
            context.load_cert_chain(settings.ssl_cert_file, settings.ssl_key_file, settings.ssl_key_password)
    except OSError as error:  # of which ssl.SSLError is one
        raise InvalidInput(
            f"the TLS files of the Kafka settings cannot be used: {error}",
            code=Code.USAGE,
            advice=f"set {PREFIX}SSL_CA_FILE, _SSL_CERT_FILE and _SSL_KEY_FILE to PEM files that can be read",
        ) from error
    return context


def token_provider(named: str | None) -> object | None:
    """What `module:name`, called without arguments, makes. Raises `InvalidInput` when there is no such thing."""
    if named is None:
        return None
    module, _, name = named.partition(":")
    try:
        made: object = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise InvalidInput(
            f"{named!r} makes no token provider: {error}",
            code=Code.USAGE,
            advice=f"set {PREFIX}SASL_OAUTH_TOKEN_PROVIDER to module:name of a class that can be imported",
        ) from error
    return made
