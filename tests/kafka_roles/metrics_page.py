"""The table in `docs/metrics.md`, made from the code: `python -m tests.kafka_roles.metrics_page` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase

from dagbok.agents.kafka.metrics import Metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def table() -> str:
    """A line for each metric, in the order of the code."""
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for metric in vars(Metrics("page")).values():
        if isinstance(metric, MetricWrapperBase):
            lines.append(_line(metric))
    return "\n".join(lines) + "\n"


def _line(metric: MetricWrapperBase) -> str:
    name = metric._name + ("_total" if isinstance(metric, Counter) else "")
    kind = "counter" if isinstance(metric, Counter) else "histogram" if isinstance(metric, Histogram) else "gauge"
    labels = ", ".join(f"`{label}`" for label in metric._labelnames)
    return f"| `{name}` | {kind} | {labels} | {metric._documentation} |"


if __name__ == "__main__":
    text = PAGE.read_text()
    pattern = r"(<!-- made from the code.*?-->\n).*?(<!-- end of what is made -->)"
    PAGE.write_text(re.sub(pattern, lambda found: found[1] + table() + found[2], text, flags=re.DOTALL))
