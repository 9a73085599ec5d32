"""`docs/metrics.md` has every metric, with what the code says of it."""

from __future__ import annotations

import re
from pathlib import Path

from dagbok.agents.kafka.metrics import Metrics
from tests.kafka_roles.metrics_page import table

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_lists_what_the_code_declares() -> None:
    made = re.search(r"<!-- made from the code.*?-->\n(.*?)<!-- end of what is made -->", PAGE.read_text(), re.DOTALL)
    assert made is not None
    assert made[1] == table(), "python -m tests.kafka_roles.metrics_page writes it anew"


def test_names_follow_the_convention() -> None:
    for family in Metrics("test").registry.collect():
        assert family.name.startswith("dagbok_")
        samples = {sample.name for sample in family.samples}
        if family.type == "counter":
            assert all(name.endswith(("_total", "_created")) for name in samples)
        if family.type == "histogram":
            assert family.name.endswith("_seconds")
