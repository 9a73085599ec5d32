"""Why no broker can be reached: aiokafka's clients try them all, and keep the reasons to themselves."""

from __future__ import annotations

from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import KafkaError

from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings

OF_A_CONNECTION = ("client_id", "request_timeout_ms", "security_protocol", "ssl_context")


async def why_not(settings: KafkaSettings) -> Exception | None:
    """Connect once more to the first broker that is named, and return what fails. None when nothing does."""
    options = client_options(settings)
    (host, port, _), *_ = collect_hosts(options["bootstrap_servers"])
    wanted = {name: value for name, value in options.items() if name in OF_A_CONNECTION or name.startswith("sasl_")}
    try:
        connection = await create_conn(host, port, **wanted)
    except (KafkaError, OSError) as error:
        return error
    connection.close()
    return None
