"""TLS with passwords on a real broker: PLAIN and SCRAM let in who knows the password, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dagbok import Dagbok, Outcome, TaskContext, worker
from dagbok.events.errors import DagbokError, LogError
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import EVENTS
from tests.contract.reading import read_all, records, values_of
from tests.servers.certificates import Certificates, make_certificates
from tests.servers.kafka_broker import Broker
from tests.servers.kafka_config import Secured
from tests.servers.kafka_topics import create_log_topics, fresh_prefix
from tests.support.hosts import TIMEOUT_S, spec, yes

PASSWORD = "s3cret-pass"
USER_OF = {"PLAIN": "paula", "SCRAM-SHA-512": "sam"}


@worker("echo", pure=True)
async def echo(task: TaskContext) -> Outcome:
    """Its own id."""
    return Outcome.candidate(task.task_id)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Broker]:
    """A broker that knows both users."""
    users = Secured(certificates.server, scram={"sam": PASSWORD}, plain={"paula": PASSWORD})
    broker = Broker(tmp_path_factory.mktemp("secured"), users)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def settings_for(broker: Broker, certificates: Certificates, mechanism: str, password: str = PASSWORD) -> KafkaSettings:
    return KafkaSettings.from_environment(
        {
            "DAGBOK_KAFKA_BOOTSTRAP_SERVERS": broker.secured_bootstrap,
            "DAGBOK_KAFKA_PREFIX": fresh_prefix(),
            "DAGBOK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "DAGBOK_KAFKA_SSL_CA_FILE": str(certificates.authority),
            "DAGBOK_KAFKA_SASL_MECHANISM": mechanism,
            "DAGBOK_KAFKA_SASL_USERNAME": USER_OF[mechanism],
            "DAGBOK_KAFKA_SASL_PASSWORD": password,
            "DAGBOK_KAFKA_REQUEST_TIMEOUT_S": "5",
        }
    )


@pytest.mark.parametrize("mechanism", USER_OF)
async def test_who_knows_the_password_writes_and_reads_over_tls(
    secured: Broker, certificates: Certificates, mechanism: str
) -> None:
    settings = settings_for(secured, certificates, mechanism)
    await create_log_topics(settings)
    log = await KafkaLog.open(settings)

    offset = await log.append(EVENTS, 0, records(b"a", b"b"))

    assert values_of(await read_all(log, EVENTS, 0)) == [b"a", b"b"]
    assert log.value_at(EVENTS, 0, offset + 1) == b"b"
    await log.delete_before(EVENTS, 0, offset + 1)
    assert (await log.bounds(EVENTS, 0)).start == offset + 1
    await log.close()


@pytest.mark.parametrize("mechanism", USER_OF)
async def test_a_run_is_decided_worked_on_and_answered_over_it(
    secured: Broker, certificates: Certificates, mechanism: str, tmp_path: Path
) -> None:
    """Groups, lanes and replies have clients of their own; those of the lanes are Faust's, with its own words for who
    they are."""
    settings = settings_for(secured, certificates, mechanism)
    await topics.create(settings, topics.declared(settings.prefix, 1))
    async with (
        asyncio.timeout(TIMEOUT_S),
        Dagbok.connect(yes, echo, kafka=settings, artifacts=str(tmp_path), schedule=True, session_s=1.5) as dagbok,
    ):
        result = await dagbok.run(spec("echo"))
    assert (result.succeeded, result.counts) == (True, {"verified": 1})


@pytest.mark.parametrize("mechanism", USER_OF)
async def test_who_does_not_know_it_is_not_let_in_and_told_so(
    secured: Broker, certificates: Certificates, mechanism: str
) -> None:
    with pytest.raises(DagbokError) as refused:
        await KafkaLog.open(settings_for(secured, certificates, mechanism, "wrong"))
    assert "DAGBOK_KAFKA_SASL" in str(refused.value)
    assert "wrong" not in str(refused.value)


async def test_a_broker_that_another_authority_vouches_for_is_not_talked_to(
    secured: Broker, tmp_path_factory: pytest.TempPathFactory
) -> None:
    others = make_certificates(tmp_path_factory.mktemp("others"))
    with pytest.raises(LogError):
        await KafkaLog.open(settings_for(secured, others, "PLAIN"))
