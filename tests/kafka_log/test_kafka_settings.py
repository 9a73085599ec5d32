"""The settings of a connection: from variables, checked, and handed to aiokafka."""

from __future__ import annotations

import ssl
from pathlib import Path

import msgspec
import pytest

from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import PREFIX, KafkaSettings

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


class Token:
    """Stands for a provider of tokens."""


def test_each_field_is_read_from_the_variable_of_its_name() -> None:
    environment = {
        "DAGBOK_KAFKA_BOOTSTRAP_SERVERS": "a:1, b:2",
        "DAGBOK_KAFKA_REQUEST_TIMEOUT_S": "2.5",
        "DAGBOK_KAFKA_COMPRESSION": "lz4",
        "DAGBOK_KAFKA_CLIENT_RACK": " ",
        "DAGBOK_KAFKA_PORT": "tcp://10.0.0.1:9092",
        "OTHER": "x",
    }
    found = KafkaSettings.from_environment(environment, prefix="mine.")
    assert found == KafkaSettings(
        bootstrap_servers="a:1, b:2", request_timeout_s=2.5, compression="lz4", prefix="mine."
    )
    assert client_options(found)["bootstrap_servers"] == ["a:1", "b:2"]
    assert client_options(found)["request_timeout_ms"] == 2500


@pytest.mark.parametrize(
    ("name", "value"),
    [("SECURITY_PROTOCOL", "TLS"), ("REQUEST_TIMEOUT_S", "soon"), ("COMPRESSION", "best"), ("SASL_MECHANISM", "X")],
)
def test_a_wrong_value_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"{PREFIX}{name}: "):
        KafkaSettings.from_environment({PREFIX + name: value})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"security_protocol": "SASL_SSL"}, "needs a user and a password"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}, "needs a user and a password"),
        ({"ssl_cert_file": "cert.pem"}, "both its files"),
        ({"request_timeout_s": "0"}, "above zero"),
    ],
)
def test_settings_that_cannot_go_together_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        KafkaSettings.from_environment({}, **given)


def test_no_secret_is_shown() -> None:
    settings = KafkaSettings(sasl_username="alice", sasl_password="hush", ssl_key_password="hush")
    assert "hush" not in repr(settings)
    assert "alice" in repr(settings)


def test_tls_checks_certificate_and_name_and_a_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    context = client_options(KafkaSettings(security_protocol="SSL"))["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED

    with pytest.raises(InvalidInput, match="TLS files"):
        client_options(KafkaSettings(security_protocol="SSL", ssl_ca_file=str(tmp_path / "none.pem")))


def test_a_token_provider_is_made_of_its_name() -> None:
    named = f"{Token.__module__}:Token"
    settings = KafkaSettings(
        security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=named
    )
    assert type(client_options(settings)["sasl_oauth_token_provider"]).__name__ == "Token"

    for wrong in ("nowhere:Token", f"{Token.__module__}:Nobody", "nocolon"):
        with pytest.raises(InvalidInput, match="makes no token provider"):
            client_options(msgspec.structs.replace(settings, sasl_oauth_token_provider=wrong))


def test_the_page_lists_every_setting() -> None:
    page = PAGE.read_text()
    for field in KafkaSettings.__struct_fields__:
        assert f"`{PREFIX}{field.upper()}`" in page, field
