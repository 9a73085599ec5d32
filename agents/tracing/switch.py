"""Turns tracing on: `DAGBOK_TRACING=1`, and everything else by the variables of OpenTelemetry.

Nothing of OpenTelemetry is imported before that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from dagbok.events.codes import Code
from dagbok.events.envelope import Dispatch
from dagbok.events.errors import InvalidInput
from dagbok.events.extras import install
from dagbok.events.traceparent import passed_on

SWITCH: Final = "DAGBOK_TRACING"
ON: Final = frozenset(("1", "true", "yes", "on"))
OFF: Final = frozenset(("", "0", "false", "no", "off"))

Around = Callable[[Dispatch], AbstractContextManager[None]]
"""What surrounds the function of an attempt."""
Context = Callable[[], str | None]
"""The span that whoever asks is in, as the header `traceparent`; none when it is in none."""
AttemptContext = Callable[[Dispatch], str | None]
"""The span of an attempt, likewise."""


def is_on(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether tracing is wanted. Raises `InvalidInput` (`usage`) for a value that says neither."""
    value = environment.get(SWITCH, "").strip().lower()
    if value not in ON | OFF:
        raise InvalidInput(f"{SWITCH} is {value!r}", code=Code.USAGE, advice="set it to 1 or 0, or unset it")
    return value in ON and environment.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"


def check(environment: Mapping[str, str] = os.environ) -> bool:
    """`is_on`, and it can be. Raises `InvalidInput` (`usage`) when it is on and the extra `otel` is not installed."""
    if not is_on(environment):
        return False
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401  # both are only tried
    except ModuleNotFoundError as error:
        raise not_installed(error) from error
    return True


def around_attempts(environment: Mapping[str, str] = os.environ) -> Around:
    """For workers: makes the span of an attempt the current one while its function runs; nothing when tracing is off.
    Raises like `check`."""
    if not check(environment):
        return _nothing
    from dagbok.agents.tracing.current import AttemptSpans

    return AttemptSpans().around


def callers_context(environment: Mapping[str, str] = os.environ) -> Context:
    """For clients: the current span of the one who asks, else the one that the variable `TRACEPARENT` names, in which
    this process was started; always none when tracing is off. Raises like `check`."""
    if not check(environment):
        return no_context
    from dagbok.agents.tracing.current import of_caller

    started_in = passed_on(environment.get("TRACEPARENT"))
    return lambda: of_caller() or started_in


def attempt_contexts(environment: Mapping[str, str] = os.environ) -> AttemptContext:
    """For whoever sends dispatches, and commands about them; always none when tracing is off. Raises like `check`."""
    if not check(environment):
        return no_attempt_context
    from dagbok.agents.tracing.current import AttemptSpans

    return AttemptSpans().traceparent


def no_context() -> None:
    """Of nobody who traces."""
    return


def no_attempt_context(dispatch: Dispatch) -> None:
    """Of an attempt that nobody traces."""
    return


def not_installed(error: ModuleNotFoundError) -> InvalidInput:
    """What to say when traces are wanted without the extra."""
    return InvalidInput(
        f"sending traces needs {error.name}, which is not installed",
        code=Code.USAGE,
        advice=f"{install('otel')} (or unset {SWITCH})",
    )


def _nothing(dispatch: Dispatch) -> AbstractContextManager[None]:
    return nullcontext()
