"""The process that sends spans: `python -m dagbok.agents.tracing.child`, started by `process.py`.

Reads batches from its standard input, answers each with one byte, and ends when its input does: so it never outlives
the process that started it by more than a batch.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

import msgspec

from dagbok.agents.tracing.otlp import OtlpExporter
from dagbok.agents.tracing.process import ARRIVED, LENGTH_BYTES, LOST
from dagbok.agents.tracing.span import Span

_decode = msgspec.json.Decoder(list[Span]).decode


def serve(batches: BinaryIO, answers: BinaryIO) -> None:
    """Until `batches` ends."""
    exporter = OtlpExporter()
    while len(head := batches.read(LENGTH_BYTES)) == LENGTH_BYTES:
        size_bytes = int.from_bytes(head, "big")
        batch = batches.read(size_bytes)
        if len(batch) < size_bytes:
            break
        answers.write(ARRIVED if exporter.export(_decode(batch)) else LOST)
        answers.flush()
    exporter.stop()


def main() -> int:
    """Exit status: 0."""
    # What any library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, answers)
        answers.close()
    except BrokenPipeError:
        os._exit(0)  # nobody is left to answer
    return 0


if __name__ == "__main__":
    sys.exit(main())
