"""How Faust is set up here: it hosts; nothing that counts is kept by it (`docs/design/kafka.md`)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import faust
from faust.types.auth import CredentialsT

from dagbok.agents.kafka.faust_transport import use_it
from dagbok.agents.kafka.group import METADATA_MS
from dagbok.events.log.kafka_options import ssl_context, token_provider
from dagbok.events.log.kafka_settings import KafkaSettings

BUFFER: Final = 512
"""So many records wait between Faust's reader, which has a thread of its own, and whoever handles them; then the
partition is paused, and the group hears of nothing."""
COMMIT_S: Final = 0.5


def new_app(settings: KafkaSettings, group: str, *, session_s: float, scratch: Path) -> faust.App:
    """An application that is a member of `group`. `scratch`: a folder that Faust may use, which must be there."""
    app = faust.App(
        group,
        broker=[f"kafka://{server.strip()}" for server in settings.bootstrap_servers.split(",") if server.strip()],
        broker_credentials=credentials(settings),
        broker_client_id=settings.client_id,
        # Faust refuses a request that may take less than a session.
        broker_request_timeout=max(settings.request_timeout_s, session_s),
        broker_session_timeout=session_s,
        broker_heartbeat_interval=session_s / 5,
        broker_commit_interval=COMMIT_S,
        table_standby_replicas=0,  # else Faust's own assignor shares out, which may leave members with nothing
        store="memory://",
        datadir=scratch,
        web_enabled=False,
        autodiscover=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        processing_guarantee="at_least_once",
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=METADATA_MS,
        stream_buffer_maxsize=BUFFER,
        stream_wait_empty=False,
        stream_recovery_delay=0.0,
    )
    use_it(app)
    return app


def credentials(settings: KafkaSettings) -> CredentialsT | None:
    """What Faust needs to be let in; none for a broker that lets everybody in. Raises `InvalidInput` like
    `client_options`."""
    context = ssl_context(settings) if settings.security_protocol.endswith("SSL") else None
    if not settings.security_protocol.startswith("SASL"):
        return None if context is None else faust.SSLCredentials(context)
    if settings.sasl_mechanism == "OAUTHBEARER":
        provider = token_provider(settings.sasl_oauth_token_provider)
        return faust.OAuthCredentials(oauth_cb=provider, ssl_context=context)
    if settings.sasl_mechanism == "GSSAPI":
        return faust.GSSAPICredentials(
            kerberos_service_name=settings.sasl_kerberos_service_name,
            kerberos_domain_name=settings.sasl_kerberos_domain_name,
            ssl_context=context,
        )
    return faust.SASLCredentials(
        username=settings.sasl_username,
        password=settings.sasl_password,
        ssl_context=context,
        mechanism=settings.sasl_mechanism,
    )
