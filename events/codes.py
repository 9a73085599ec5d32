"""The one word list of refusals and failures, with what each means for whoever meets it.

A code is written in snake_case in the log and the API and as ``DAGBOK-UPPER-KEBAB`` in the command line
(`docs/design/messages.md`, section 8). A code never changes its meaning; new ones are added there first.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, NamedTuple

Fault = Literal["caller", "operator", "worker", "dagbok"]


class Code(StrEnum):
    """Stable machine-readable reason."""

    IDENTITY_REQUIRED = "identity_required"
    VERIFIER_UNAVAILABLE = "verifier_unavailable"
    CONFIG_MISMATCH = "config_mismatch"
    SCHEMA_MISMATCH = "schema_mismatch"
    BUDGET_EXHAUSTED = "budget_exhausted"
    UNKNOWN_DEPENDENCY = "unknown_dependency"
    CYCLE = "cycle"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    VERSION_CONFLICT = "version_conflict"
    VERIFICATION_FAILED = "verification_failed"
    STALE_ATTEMPT = "stale_attempt"
    LEASE_REJECTED = "lease_rejected"
    ARTIFACT_INTEGRITY = "artifact_integrity"
    CONTEXT_OVERFLOW = "context_overflow"
    ATTEMPT_CLAIMED = "attempt_claimed"
    VERDICT_MISMATCH = "verdict_mismatch"
    RUN_CLOSED = "run_closed"
    RUN_PAUSED = "run_paused"
    NOT_DUE = "not_due"
    NOT_FOUND = "not_found"
    WRONG_PARTITION = "wrong_partition"
    UNDECODABLE = "undecodable"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "too_large"
    TOO_OLD = "too_old"
    CLOCK_AHEAD = "clock_ahead"
    INTERNAL_ERROR = "internal_error"
    INVALID_OUTCOME = "invalid_outcome"
    VERIFIER_ERROR = "verifier_error"
    INCONCLUSIVE = "inconclusive"
    TIMEOUT = "timeout"
    LEASE_EXPIRED = "lease_expired"
    PROCESS_GONE = "process_gone"
    POISON = "poison"
    INVALID_SPEC = "invalid_spec"
    WORKER_FAILED = "worker_failed"
    WORKER_BLOCKED = "worker_blocked"
    BAD_MODULE = "bad_module"
    FOLDER_BUSY = "folder_busy"
    LOG_CORRUPT = "log_corrupt"
    LOG_CONFLICT = "log_conflict"
    LOG_LOST = "log_lost"
    LOG_UNREACHABLE = "log_unreachable"
    STORAGE_FAILED = "storage_failed"
    NETWORK_FILESYSTEM = "network_filesystem"
    USAGE = "usage"
    TASK_CANCELLED = "task_cancelled"
    WEAKER_VERIFIER = "weaker_verifier"

    @property
    def shown(self) -> str:
        """The word a person sees: ``DAGBOK-STALE-ATTEMPT``."""
        return "DAGBOK-" + self.value.upper().replace("_", "-")

    @property
    def meaning(self) -> Meaning:
        """Whose fault it is, whether the same request may succeed later, and what to do next."""
        return MEANINGS[self]

    @property
    def retry(self) -> bool:
        """True: the same command may succeed later. Such a refusal is never remembered."""
        return MEANINGS[self].retry


class Meaning(NamedTuple):
    """What a code tells the one who meets it."""

    fault: Fault
    retry: bool
    advice: str


MEANINGS: dict[Code, Meaning] = {
    Code.IDENTITY_REQUIRED: Meaning("caller", False, "name a tenant and a project"),
    Code.VERIFIER_UNAVAILABLE: Meaning("caller", False, "register the verifier before the run starts"),
    Code.CONFIG_MISMATCH: Meaning("caller", False, "use another idempotency key (--new), or the pinned values again"),
    Code.SCHEMA_MISMATCH: Meaning("operator", False, "run a dagbok version that knows this format"),
    Code.BUDGET_EXHAUSTED: Meaning("caller", False, "ask for less, or raise the limit of the run"),
    Code.UNKNOWN_DEPENDENCY: Meaning("caller", False, "name tasks that exist in the run or in the same proposal"),
    Code.CYCLE: Meaning("caller", False, "remove the dependency that closes the circle"),
    Code.IDEMPOTENCY_CONFLICT: Meaning("caller", False, "use a new id for new content"),
    Code.VERSION_CONFLICT: Meaning("caller", False, "look how it stands now, and decide again"),
    Code.VERIFICATION_FAILED: Meaning("worker", False, "read the diagnostics of the report"),
    Code.STALE_ATTEMPT: Meaning("worker", False, "drop the result: the attempt is closed"),
    Code.LEASE_REJECTED: Meaning("worker", False, "stop: another claim holds the attempt"),
    Code.ARTIFACT_INTEGRITY: Meaning(
        "operator", False, "restore the artifact from a backup: its bytes changed on disk"
    ),
    Code.CONTEXT_OVERFLOW: Meaning("caller", False, "hand the task less, or raise its context budget"),
    Code.ATTEMPT_CLAIMED: Meaning("worker", False, "drop it: another process runs this attempt"),
    Code.VERDICT_MISMATCH: Meaning("worker", False, "judge with the pinned verifier on the present candidate"),
    Code.RUN_CLOSED: Meaning("caller", False, "start another run"),
    Code.RUN_PAUSED: Meaning("operator", True, "resume the run"),
    Code.NOT_DUE: Meaning("dagbok", True, "nothing: it is tried again when it is due"),
    Code.NOT_FOUND: Meaning("caller", False, "check the id, the tenant and the project"),
    Code.WRONG_PARTITION: Meaning("caller", False, "send it to the partition of its stream"),
    Code.UNDECODABLE: Meaning("caller", False, "send valid JSON of a documented command"),
    Code.UNSUPPORTED: Meaning("operator", True, "upgrade the schedulers first, then send it again"),
    Code.TOO_LARGE: Meaning("caller", False, "store the payload as an artifact and send its reference"),
    Code.TOO_OLD: Meaning("caller", False, "send a new command: this one is older than the window of repeats"),
    Code.CLOCK_AHEAD: Meaning("caller", False, "set the sender's clock"),
    Code.INTERNAL_ERROR: Meaning("dagbok", True, "report it with the log line that has the same command id"),
    Code.INVALID_OUTCOME: Meaning("worker", False, "return an Outcome of JSON values or bytes"),
    Code.VERIFIER_ERROR: Meaning("worker", False, "mend the verifier, then resolve the task"),
    Code.INCONCLUSIVE: Meaning("worker", False, "look at the candidate, then resolve the task"),
    Code.TIMEOUT: Meaning("worker", False, "raise timeout_s of the task, or make it smaller"),
    Code.LEASE_EXPIRED: Meaning("worker", False, "nothing: the task runs again"),
    Code.PROCESS_GONE: Meaning("operator", False, "nothing: the task runs again"),
    Code.POISON: Meaning(
        "worker", False, "find out why its processes die, then retry the task, or resolve it if blocked"
    ),
    Code.INVALID_SPEC: Meaning("caller", False, "mend the task specification"),
    Code.WORKER_FAILED: Meaning("worker", False, "read the failure of the attempt"),
    Code.WORKER_BLOCKED: Meaning("operator", False, "do what the worker asks for, then resolve the task"),
    Code.BAD_MODULE: Meaning("caller", False, "mend the file so that it can be imported"),
    Code.FOLDER_BUSY: Meaning(
        "operator", True, "wait for the process that owns the data folder, stop it, or use --data"
    ),
    Code.LOG_CORRUPT: Meaning("operator", False, "restore the data folder from a backup"),
    Code.LOG_CONFLICT: Meaning("dagbok", True, "nothing: the writer folds the log anew"),
    Code.LOG_LOST: Meaning("operator", False, "find out who removed records of the log before going on"),
    Code.LOG_UNREACHABLE: Meaning(
        "operator", True, "look whether the brokers run and can be reached; it is tried again until then"
    ),
    Code.STORAGE_FAILED: Meaning("operator", True, "free disk space or mend the file system, then start again"),
    Code.NETWORK_FILESYSTEM: Meaning("operator", False, "put the data folder on a local disk"),
    Code.USAGE: Meaning("caller", False, "see --help"),
    Code.TASK_CANCELLED: Meaning("operator", False, "put another task in its place (supersede), or start another run"),
    Code.WEAKER_VERIFIER: Meaning(
        "caller", False, "name a verifier that the task above allows (its child_verifiers, else its own assurance)"
    ),
}
