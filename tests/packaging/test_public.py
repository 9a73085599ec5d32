"""What `import dagbok` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import dagbok

NAMES = {
    *("Artifact", "ArtifactView", "Artifacts", "Candidate", "Code", "Dagbok", "DagbokError", "Limits", "Outcome"),
    *("Refused", "Registry", "Retry", "RunResult", "SessionFork", "SessionView", "TaskContext", "TaskLimits"),
    *("TaskSession", "TaskSpec", "Terminal", "Usage"),
    *("Verdict", "Verifier", "When", "Worker", "verifier", "worker"),
}


def test_the_public_names_are_these_and_all_are_there() -> None:
    assert set(dagbok.__all__) == NAMES
    assert all(callable(getattr(dagbok, name)) for name in NAMES)
    assert set(dir(dagbok)) >= NAMES


def test_a_wrong_name_is_an_attribute_error() -> None:
    assert not hasattr(dagbok, "Worflow")


def test_commands_that_only_look_do_not_import_what_runs_tasks() -> None:
    code = "import sys, dagbok.cli; dagbok.cli.main(['--help']); print('pydantic' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.strip() == "False"
