"""Branches: what a task decides says which tasks run, and a join goes on with whatever is there.

    dagbok run examples/branches.py --message "I was charged twice"
    dagbok run examples/branches.py --message "How do I log in?"

`triage` reads a message and says what it is about. A refund is worked out only for money matters, an article is looked
up only for questions; the branch that is not taken is skipped. `reply` waits for both and uses the one that ran. A
second look is taken only when triage was not sure.
"""

from __future__ import annotations

from dagbok import Candidate, Outcome, TaskContext, TaskSpec, When, verifier, worker

MONEY = ("charged", "refund", "invoice", "paid")
ARTICLES = {"log in": "Reset your password", "export": "Export your data"}


def main(message: str = "I was charged twice") -> list[TaskSpec]:
    """Answer a message."""
    said = {"message": message}
    return [
        TaskSpec(id="triage", goal="tell what it is about", worker="triage", verifier="check-triage", inputs=said),
        TaskSpec(
            id="second-look",
            goal="a person would look at this",
            worker="second-look",
            verifier="said-something",
            depends_on=[When("triage", "confidence", below=0.5)],
        ),
        TaskSpec(
            id="refund",
            goal="work out the refund",
            worker="refund",
            verifier="check-refund",
            depends_on=[When("triage", "about", equals="money")],
        ),
        TaskSpec(
            id="article",
            goal="find the article that helps",
            worker="article",
            verifier="said-something",
            inputs=said,
            depends_on=[When("triage", "about", equals="question")],
        ),
        TaskSpec(
            id="reply",
            goal="write the reply",
            worker="reply",
            verifier="said-something",
            depends_on=["second-look", "refund", "article"],
        ),
    ]


@worker("triage", pure=True)
async def triage(task: TaskContext) -> Outcome:
    """Control values are what edges may have conditions on."""
    message = task.inputs["message"].lower()
    hits = sum(word in message for word in MONEY)
    outputs = {"about": "money" if hits else "question", "confidence": 0.9 if hits != 1 else 0.6}
    if not message.strip("?! ."):
        outputs["confidence"] = 0.1
    return Outcome.candidate(outputs, outputs=outputs)


@worker("second-look", pure=True)
async def second_look(task: TaskContext) -> Outcome:
    """Only when triage was not sure."""
    return Outcome.candidate("please say more")


@worker("refund", pure=True)
async def refund(task: TaskContext) -> Outcome:
    """Proposes; nothing is paid here."""
    return Outcome.candidate({"amount": 20, "reason": "charged twice"})


@worker("article", pure=True)
async def article(task: TaskContext) -> Outcome:
    """The first that fits."""
    message = task.inputs["message"].lower()
    return Outcome.candidate(next((title for word, title in ARTICLES.items() if word in message), "Contact us"))


@worker("reply", pure=True)
async def reply(task: TaskContext) -> Outcome:
    """A skipped dependency is not there."""
    parts = {name: made.json() for name, made in task.dependencies.items()}
    return Outcome.candidate(
        {"used": sorted(parts), "text": "; ".join(f"{name}: {parts[name]}" for name in sorted(parts))}
    )


@verifier("check-triage", version="1")
def check_triage(candidate: Candidate, task: TaskContext) -> bool:
    """It is one of the two, with a confidence that is one."""
    match candidate.outputs:
        case {"about": "money" | "question", "confidence": float(confidence)}:
            return 0 <= confidence <= 1
    return False


@verifier("check-refund", version="1")
def check_refund(candidate: Candidate, task: TaskContext) -> bool:
    """Never more than a hundred."""
    match candidate.json():
        case {"amount": int(amount), "reason": str(reason)}:
            return 0 < amount <= 100 and bool(reason)
    return False


@verifier("said-something", version="1")
def said_something(candidate: Candidate, task: TaskContext) -> bool:
    """Not empty."""
    return bool(candidate.json())


if __name__ == "__main__":
    raise SystemExit("run it so: dagbok run examples/branches.py")
