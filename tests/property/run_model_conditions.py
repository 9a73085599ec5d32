"""The model's word on conditions: what a dependency returned, against what an edge asks of it."""

from __future__ import annotations

from operator import ge, gt, le, lt

import msgspec

from dagbok.events.run.values import Condition


def holds(condition: Condition, outputs: object) -> bool:
    """Conditions on one name at the top of an object."""
    found = outputs.get(condition.output[1:]) if isinstance(outputs, dict) else None
    absent = not isinstance(outputs, dict) or condition.output[1:] not in outputs
    values = [msgspec.json.decode(value) for value in condition.values]
    if condition.op in ("in", "not_in"):
        return (not absent and found in values) == (condition.op == "in")
    if not isinstance(found, int):
        return False
    compare = {"lt": lt, "le": le, "gt": gt, "ge": ge}[condition.op]
    return bool(compare(found, values[0]))
