"""Dashboard, alerts and scrape configuration name metrics that are declared, with the labels that they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase

from dagbok.agents.kafka.metrics import Metrics
from tests.support.deployed import CHART, DEPLOY, ROOT

DASHBOARD = json.loads((DEPLOY / "grafana" / "dagbok.json").read_text())
GROUPS = yaml.safe_load((CHART / "files" / "alerts.yml").read_text())["groups"]
ALERTS = [rule for group in GROUPS for rule in group["rules"]]
SCRAPE = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
ADDED = {"instance", "job", "le"}
"""Labels that Prometheus adds to what a process says."""


def declared() -> dict[str, set[str]]:
    """Each series of the roles, with its labels."""
    found: dict[str, set[str]] = {"dagbok_process_info": {"role", "version"}}
    for metric in vars(Metrics("scheduler")).values():
        if isinstance(metric, MetricWrapperBase):
            labels = set(metric._labelnames)
            ends = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(str(metric._type), ("",))
            found |= {metric._name + end: labels for end in ends}
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Where each expression stands, and it."""
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_metric_and_label_is_declared(where: str, expression: str) -> None:
    series = set(re.findall(r"\bdagbok_\w+", expression))
    assert series
    assert series - declared().keys() == set()
    known = ADDED.union(*[declared()[name] for name in series])
    grouped = {label for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(", ")}
    matched = set(re.findall(r"[{,]\s*(\w+)=", expression))
    assert (grouped | matched) - known == set()


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(expression for _, expression in expressions())
    names = {re.sub(r"_(bucket|sum|count)$", "", name) for name in declared()}
    assert [name for name in sorted(names) if name not in shown] == [], "give it a panel in deploy/grafana/dagbok.json"


def test_what_has_to_wake_somebody_has_an_alert_that_says_what_to_do() -> None:
    about = {"dagbok_halted_partitions", "dagbok_lag_records", "dagbok_dead_letters_total", "dagbok_decisions_total"}
    alarmed = " ".join(rule["expr"] for rule in ALERTS)
    assert [name for name in about if name not in alarmed] == []
    assert [rule["alert"] for rule in ALERTS if not {"summary", "action"} <= rule["annotations"].keys()] == []
    assert {rule["labels"]["severity"] for rule in ALERTS} <= {"critical", "warning"}


def test_panels_have_ids_of_their_own_and_one_choice_of_a_source() -> None:
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {target["datasource"]["uid"] for panel in panels for target in panel["targets"]} == {"${datasource}"}


def test_each_role_of_the_compose_file_is_scraped_where_it_listens() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    commands = {name: service.get("command", []) for name, service in services.items()}
    roles = {name: command for name, command in commands.items() if "--health-port" in command}
    (job,) = SCRAPE["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    assert set(found["names"]) == roles.keys()
    assert {command[command.index("--health-port") + 1] for command in roles.values()} == {str(found["port"])}
    assert {command[command.index("--health-host") + 1] for command in roles.values()} == {"0.0.0.0"}
