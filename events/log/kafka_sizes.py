"""Every size of the Kafka log, in one place: what a batch may hold, and what broker and clients must let through.

Kafka limits the *batch*, compressed (`max.message.bytes` of the topic); the client limits it uncompressed. Appends that
wait together share a batch only while they are small, so that a batch is never refused for what stands beside a record.
"""

from __future__ import annotations

from typing import Final

from dagbok.events.body import MAX_STORED_BYTES

MIB: Final = 1024 * 1024

MAX_COMMAND_BYTES: Final = 24 * MIB
"""What an owner takes as one command (`dagbok.agents.scheduler.inbox`; a test compares them)."""
MAX_COMMITS_BYTES: Final = 2 * MIB + MAX_STORED_BYTES
"""Bodies of the commits that an owner appends as one batch: it closes a batch above 2 MiB, and the last commit is as
large as a commit may be."""
SEALS_BYTES: Final = 1 * MIB
"""256 seals, keys and headers around them."""

SHARED_BYTES: Final = 1 * MIB
"""Appends of several callers share a batch up to this many bytes, uncompressed."""
BATCH_BYTES: Final = MAX_COMMAND_BYTES + SEALS_BYTES
"""The most that one append may hold, uncompressed: the clients' `max_batch_size`."""
REQUEST_BYTES: Final = BATCH_BYTES + 1 * MIB
"""The clients' `max_request_size`. A broker takes requests up to 100 MiB (`socket.request.max.bytes`)."""
MESSAGE_BYTES: Final = MAX_COMMITS_BYTES + 2 * SEALS_BYTES
"""`max.message.bytes` of `commands` and `events`: a full batch of commits, which may be incompressible. A command that
compresses worse could not be committed."""

FETCH_BYTES: Final = 4 * MIB
"""What one fetch of a reader brings. A larger batch comes alone and whole (KIP-74)."""
VALUE_FETCH_BYTES: Final = 64 * 1024
"""What one fetch of a single record brings: its batch, and little besides."""

HEADER_BYTES: Final = 61
RECORD_BYTES: Final = 40
"""Upper bounds of what Kafka adds to a batch, and to a record (lengths, offset, time, count of headers)."""
RECORD_HEADER_BYTES: Final = 10
