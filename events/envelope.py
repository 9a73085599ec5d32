"""What travels between processes beside commits: commands, dispatches and replies (`messages.md`, sections 1, 5 and
7)."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from dagbok.events.log.port import NO_HEADERS, Record
from dagbok.events.run.commands import RunCommand
from dagbok.events.run.values import (
    NULL,
    ArtifactRef,
    AttemptKind,
    Decompose,
    Failure,
    Phase,
    SecurityContext,
    Spec,
    VerifierPin,
)
from dagbok.events.traceparent import TRACEPARENT

ENVELOPE_VERSION: Final = 1
REPLY_TO: Final = "reply_to"
"""Loose header of a command: where the answer goes."""
MAX_FIELD_CHARS: Final = 300
"""Of a text in the envelope of a command."""
MAX_TIME_MS: Final = 2**53
"""Times are below it, so that every reader of JSON keeps them exactly."""


class Command(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request, as it stands in `commands`. `id` is 128 random bits of the sender, or derived for what follows from a
    commit; `first_sent_ms` is the sender's clock and may only refuse; `actor` is who asks, from authentication."""

    v: int = ENVELOPE_VERSION
    type: str
    version: int
    id: str
    tenant: str
    project: str
    stream: str
    actor: str
    first_sent_ms: int
    cause: str | None = None
    data: msgspec.Raw


class Sender(msgspec.Struct, frozen=True):
    """In whose name commands are sent."""

    tenant: str
    project: str
    actor: str


def run_command(
    sender: Sender, stream: str, command: RunCommand, *, id: str, now_ms: int, cause: str | None = None
) -> Command:
    """The envelope of a command to a run."""
    return Command(
        type=type(command).__name__,
        version=command.version,
        id=id,
        tenant=sender.tenant,
        project=sender.project,
        stream=stream,
        actor=sender.actor,
        first_sent_ms=now_ms,
        cause=cause,
        data=msgspec.Raw(msgspec.json.encode(command)),
    )


def command_record(command: Command, reply_to: str | None = None, traceparent: str | None = None) -> Record:
    """The log record of a command; `reply_to` asks for an answer, `traceparent` names the span that it is sent in."""
    headers = {name: found for name, found in ((REPLY_TO, reply_to), (TRACEPARENT, traceparent)) if found}
    return Record(command.stream, msgspec.json.encode(command), headers or NO_HEADERS)


_command_decoder = msgspec.json.Decoder(Command)


def decode_command(value: bytes) -> Command:
    """The envelope in a record of `commands`. Raises `msgspec.MsgspecError` when it is none."""
    return _command_decoder.decode(value)


def command_hash(value: bytes) -> str:
    """What a commit says of its command: SHA-256 of the record value."""
    return sha256(value).hexdigest()


class Input(msgspec.Struct, frozen=True, gc=False):
    """An artifact of a task, as a dispatch hands it over: `inline` when it carries the bytes, else read where `ref`
    says."""

    task: str
    ref: ArtifactRef
    inline: bytes | None = None


class Problem(msgspec.Struct, frozen=True, gc=False):
    """Why the attempt before did not end well: its failure, the diagnostics of a verdict, or the reason of a refusal or
    block; and the note of the person who resolved the block, or had the task tried again."""

    code: str
    failure: Failure | None = None
    diagnostics: msgspec.Raw = NULL
    reason: str = ""
    note: str = ""


class SessionParts(msgspec.Struct, frozen=True, kw_only=True):
    """The session that an attempt goes on with: what its worker put down after `turn`, in parts."""

    turn: int
    digest: str
    parts: tuple[ArtifactRef, ...]


class Dispatch(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt offered to a pool, derived from a confirmed commit. It may be lost or come twice: the claim decides.

    `opened_at` is the commit that opened the attempt (partition, offset). `inputs` are the published artifacts of the
    dependencies; `renamed` has those that stand in for one that the spec names (by that name); `problem` is what went
    wrong before; `session` is what the worker put down last. In phase `integrate`, `composition` is what the children
    are to make up together. A review has what it judges: `candidate` with `outputs`, or a `proposal`; `subject`, the
    hashes that its report must name; and `pin`, the verifier that the run is bound to: who has another does not serve
    it.

    `claim_first`: it was sent before and nobody claimed it. Whoever took it may have died of it, and only a death under
    a claim counts: so it is claimed before it runs, whatever its worker is declared to be.

    `traceparent`: the span of the attempt, where the record that brought the dispatch has that header; its value never
    does."""

    v: int = ENVELOPE_VERSION
    kind: AttemptKind
    tenant: str
    project: str
    run: str
    task: str
    epoch: int
    phase: Phase
    pool: str
    key: str
    input_hash: str
    opened_at: tuple[int, int]
    spec: Spec
    attempt: int
    context: SecurityContext
    graph_revision: int
    inputs: tuple[Input, ...] = ()
    renamed: dict[str, str] = {}
    composition: msgspec.Raw = NULL
    problem: Problem | None = None
    candidate: tuple[Input, ...] = ()
    outputs: msgspec.Raw = NULL
    proposal: Decompose | None = None
    subject: tuple[str, ...] = ()
    pin: VerifierPin | None = None
    session: SessionParts | None = None
    claim_first: bool = False
    traceparent: str | msgspec.UnsetType = msgspec.UNSET


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer", tag_field="type"):
    """What became of a command: the commit at (partition, offset), the code when refused, the events when accepted.

    `stopped`: of a renewal, the attempts (task, epoch) whose leases are not renewed."""

    v: int = ENVELOPE_VERSION
    id: str
    accepted: bool
    at: tuple[int, int]
    code: str | None = None
    reason: str = ""
    advice: str = ""
    retry: bool = False
    events: tuple[str, ...] = ()
    stopped: tuple[tuple[str, int], ...] = ()


class CancelHint(msgspec.Struct, frozen=True, kw_only=True, tag="cancel_hint", tag_field="type"):
    """The fast way to tell a worker that its attempt is closed; the refused renewal is the sure one."""

    v: int = ENVELOPE_VERSION
    run: str
    task: str
    epoch: int


Reply = Answer | CancelHint
