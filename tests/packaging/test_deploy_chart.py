"""The Helm chart: what can be said of its files without Helm. `docs/deploy.md` says how it was rendered."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import pytest
import yaml

from tests.support.deployed import CHART, ROOT, help_of, unknown_options, variables

TEMPLATES = {path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())}
TEXT = "\n".join(TEMPLATES.values())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
ROLES = ("scheduler", "projector", "worker", "verifier")


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_every_value_is_in_the_schema_which_takes_no_other() -> None:
    def compare(values: dict[str, Any], schema: dict[str, Any], path: str) -> list[str]:
        schema = SCHEMA["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if "properties" not in schema:
            return []
        wrong = [] if schema["additionalProperties"] is False else [f"{path} takes anything"]
        for key, value in values.items():
            if key not in schema["properties"]:
                wrong.append(f"{path}.{key}")
            elif isinstance(value, dict):
                wrong += compare(value, schema["properties"][key], f"{path}.{key}")
        return wrong

    assert compare(VALUES, SCHEMA, "") == []


def test_every_value_that_a_template_reads_is_there() -> None:
    read = set(re.findall(r"\.Values\.([A-Za-z]+(?:\.[A-Za-z]+)*)", TEXT))
    missing = []
    for path in sorted(read):
        found: Any = VALUES
        for key in path.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            missing.append(path)
    assert missing == []


def test_every_variable_is_read_by_dagbok() -> None:
    named = set(re.findall(r"\b(?:DAGBOK|AWS)_[A-Z0-9_]+\b", re.sub(r"\{\{/\*.*?\*/\}\}|#.*", "", TEXT)))
    assert named
    assert named - variables() == set()


@pytest.mark.parametrize("role", ROLES)
def test_every_role_is_there_and_has_the_options_that_it_is_given(role: str) -> None:
    assert f'"{role}"' in TEMPLATES["roles.yaml"]
    given = set(re.findall(r'"(--[a-z-]+)"', TEMPLATES["_role.tpl"]))
    given |= {"--pool", "--import"} if role in ("worker", "verifier") else set()
    assert {"--health-host", "--health-port"} <= given
    assert unknown_options([role, *sorted(given)]) == []


def test_the_job_runs_a_command_of_dagbok() -> None:
    words = re.findall(r'"([a-z-]+)"', TEMPLATES["topics.yaml"])
    assert unknown_options(["topics", "create", *[word for word in words if word.startswith("--")]]) == []
    assert "create" in help_of("topics")


@pytest.mark.parametrize("name", ["_role.tpl", "topics.yaml"])
def test_pods_are_confined(name: str) -> None:
    template = TEMPLATES[name]
    wanted = ("podSecurity", "containerSecurity", "automountServiceAccountToken: false", "enableServiceLinks: false")
    assert [each for each in wanted if each not in template] == []
    assert {"runAsNonRoot: true", "readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false"} <= {
        line.strip() for line in TEMPLATES["_helpers.tpl"].splitlines()
    }


def test_the_user_is_that_of_the_image() -> None:
    (image,) = re.findall(r"^USER (\d+)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    assert f"runAsUser: {image}" in TEMPLATES["_helpers.tpl"]


def test_probes_ask_what_the_roles_serve() -> None:
    probes = dict(re.findall(r"(\w+Probe): \{httpGet: \{path: ([/a-z]+), port: health\}", TEMPLATES["_role.tpl"]))
    assert probes == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }


def test_a_role_has_the_time_to_hand_back_what_it_has() -> None:
    from dagbok.cli.role import STOP_WITHIN_S

    assert VALUES["roleDefaults"]["terminationGracePeriodSeconds"] > STOP_WITHIN_S


def test_every_file_of_kafkas_certificates_is_mounted_from_a_secret_under_the_same_condition() -> None:
    helpers = TEMPLATES["_helpers.tpl"]
    files = re.findall(r"name: (DAGBOK_KAFKA_SSL_\w+_FILE), value: (/[\w./-]+)/([\w.]+)\}", helpers)
    mounted = {path: name for name, path in re.findall(r"name: ([\w-]+), mountPath: (/etc/[\w/-]+), readOnly", helpers)}
    volume = r"\{\{- with \.Values\.kafka\.(\w+) \}\}\n- \{name: ([\w-]+), secret: \{secretName"
    secrets = dict(re.findall(volume, helpers))
    assert {name for name, _, _ in files} == {f"DAGBOK_KAFKA_SSL_{each}_FILE" for each in ("CA", "CERT", "KEY")}
    assert {mounted[path] for _, path, _ in files} == set(secrets.values())
    for secret in secrets:
        assert VALUES["kafka"][secret] == ""
        asked = re.findall(rf"if \.{secret} |if \.Values\.kafka\.{secret} ", helpers)
        assert len(asked) == 2, f"{secret}: the variables and the mount"


def test_secrets_come_by_reference_alone() -> None:
    named = re.findall(r"name: (\w*(?:PASSWORD|USERNAME|ACCESS_KEY|DATABASE)\w*), (\w+):", TEMPLATES["_helpers.tpl"])
    assert len(named) == 5
    assert {how for _, how in named} == {"valueFrom"}
    assert "kind: Secret" not in TEXT
