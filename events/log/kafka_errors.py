"""What goes wrong with a broker, in the words of dagbok."""

from __future__ import annotations

import os
from typing import Final

from aiokafka import errors

from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, InvalidInput, LogError, NotAllowed
from dagbok.events.log.kafka_settings import KafkaSettings, options_of

FAILURES: Final = (errors.KafkaError, OSError, TimeoutError, AssertionError)
"""What aiokafka lets pass. (It asserts where metadata do not have a partition.)"""

CREATE: Final = "create the topics: dagbok topics create"
CHECK: Final = "compare the topics with what dagbok needs: dagbok topics check"

NOT_ALLOWED: Final = (
    errors.TopicAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.AuthenticationFailedError,
    errors.AuthenticationMethodNotSupported,
    errors.SaslAuthenticationFailed,
    errors.UnsupportedSaslMechanismError,
)
TOO_LARGE: Final = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)


def topics_command(settings: KafkaSettings, *words: str) -> str:
    """`dagbok topics create --kafka broker:9092`: a command on the topics of these settings, to be given here."""
    return " ".join(["dagbok topics", *words, *options_of(settings, os.environ)])


def explain(error: BaseException, place: str) -> DagbokError:
    """What to raise for a failure at `place`, such as `events[3]`. Doubt, unless nothing can have been written."""
    if isinstance(error, DagbokError):
        return error
    if isinstance(error, TOO_LARGE):
        return InvalidInput(f"{place}: the broker takes no batch of this size", code=Code.TOO_LARGE, advice=CHECK)
    if isinstance(error, NOT_ALLOWED):
        return NotAllowed(
            f"{place}: the broker does not let this client in ({_told(error)})",
            advice="mend the credentials (DAGBOK_KAFKA_SASL_*, DAGBOK_KAFKA_SSL_*) or the broker's access rules",
        )
    if isinstance(error, errors.UnknownTopicOrPartitionError):
        return LogError(f"{place} is not there", code=Code.LOG_UNREACHABLE, advice=CREATE)
    return LogError(f"{place}: the broker does not answer ({_told(error)})", code=Code.LOG_UNREACHABLE)


def _told(error: BaseException) -> str:
    """aiokafka's own begin with the name of their type."""
    name, told = type(error).__name__, str(error)
    return told if name in told else f"{name}: {told}".rstrip(": ")
