"""What a language model would say to the agents of `agent_research.py`; a test replaces single answers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.support.chat_stub import Asked, Call, Reply

QUESTION = "How does a swarm choose its home?"
PARTS = {
    "Who looks for it?": ("choosing-a-home.md", "A few hundred scouts, the oldest and most experienced bees, search"),
    "How is it told?": ("waggle-dance.md", "The duration of the run tells the distance"),
}
FINAL = "final_result"

Answer = Callable[[Asked], Reply]


def role_of(asked: Asked) -> str:
    """Which agent asks, by what it wants to have."""
    fields = set(asked.tools[FINAL]["properties"])
    if fields == {"questions"}:
        return "planner"
    if fields == {"passes", "problems"}:
        return "judge"
    return "researcher" if "answer" in fields else "writer"


def quote_for(part: str) -> dict[str, str]:
    """The right quote for a part."""
    document, text = PARTS[part]
    return {"document": document, "text": text}


def findings_for(part: str) -> dict[str, Any]:
    """The right findings for a part."""
    return {"answer": f"{part} That is what the document says.", "quotes": [quote_for(part)]}


class Brain:
    """Answers well, except where `say` has put something else: then that once, in the order it was put."""

    def __init__(self) -> None:
        self.answers = Counter[str]()
        self._instead: dict[str, list[Reply]] = {}
        self._lock = threading.Lock()

    def say(self, role: str, *replies: Reply, part: str = "") -> None:
        """These are the next answers to this agent (on this part)."""
        self._instead.setdefault(role + part, []).extend(replies)

    def __call__(self, asked: Asked) -> Reply:
        """The answer to a request."""
        role, part = role_of(asked), asked.prompt["question"]
        with self._lock:
            self.answers[role if role in ("planner", "writer") else f"{role}: {part}"] += 1
            for key in (role + part, role):
                if self._instead.get(key):
                    return self._instead[key].pop(0)
        return {"planner": _plan, "researcher": _research, "judge": _judge, "writer": _write}[role](asked)


def _plan(asked: Asked) -> Reply:
    return Call(FINAL, {"questions": list(PARTS)})


def _research(asked: Asked) -> Reply:
    if not asked.returned:
        return Call("search", {"words": "scouts distance"})
    return Call(FINAL, findings_for(asked.prompt["question"]))


def _judge(asked: Asked) -> Reply:
    return Call(FINAL, {"passes": True, "problems": []})


def _write(asked: Asked) -> Reply:
    findings = asked.prompt["findings"]
    text = " ".join(f"{part['answer']} [{number}]" for number, part in enumerate(findings, start=1))
    return Call(FINAL, {"text": text, "quotes": [part["quotes"][0] for part in findings]})
