"""`dagbok trace`: its options and help. What it does is in `tracing.py`, imported when it is called."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from dagbok.cli.options import Output, Place


def trace(
    run: Annotated[str, Parameter(help='Id, its first digits, or "last".')] = "last",
    /,
    *,
    otlp: str | None = None,
    send: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    place: Place | None = None,
    output: Output | None = None,
) -> int:
    """Print the trace of a run as lines of OTLP JSON, or send it.

    Parameters
    ----------
    otlp
        Send it to this OTLP/HTTP receiver, http://localhost:4318 say.
    send
        Send it to where the OTEL_EXPORTER_OTLP_* variables say.
    """
    from dagbok.cli.tracing import print_trace, send_trace

    return send_trace(run, otlp, place, output) if send or otlp is not None else print_trace(run, place, output)
