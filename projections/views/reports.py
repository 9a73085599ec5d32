"""The view of reports: every verdict, whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from dagbok.events.run.events import VerdictRecorded
from dagbok.events.run.values import Assurance, Judged, VerdictWord
from dagbok.projections.tables.rows import Row
from dagbok.projections.tables.session import Session
from dagbok.projections.views.view import Told


class ReportRow(Row):
    """What a verifier said of a candidate or decomposition of `task`, in the review `epoch`. `subject` (hashes),
    `diagnostics` and `evidence` are JSON. Reports of the same content have the same `report_id`.
    """

    table: ClassVar[str] = "reports"
    key: ClassVar[tuple[str, ...]] = ("run", "task", "epoch")

    run: str
    task: str
    epoch: int
    report_id: str
    kind: Judged
    verdict: VerdictWord
    verifier: str
    version: str
    digest: str
    assurance: Assurance
    input_hash: str
    subject: str
    diagnostics: str
    evidence: str
    recorded_ms: int


class ReportsView:
    """One row per `VerdictRecorded`."""

    name: Final = "reports"
    layout: Final = 1
    rows: Final = (ReportRow,)

    def write(self, session: Session, batch: Sequence[Told]) -> None:
        """Insert the reports of the batch."""
        session.insert([_row(told, event) for told in batch for event in told.events if type(event) is VerdictRecorded])


def _row(told: Told, event: VerdictRecorded) -> ReportRow:
    seal, report = told.commit.seal, event.report
    return ReportRow(
        tenant=seal.tenant,
        project=seal.project,
        run=(seal.stream or "").removeprefix("run:"),
        task=event.task,
        epoch=event.epoch,
        report_id=event.report_id,
        kind=report.kind,
        verdict=report.verdict,
        verifier=report.verifier,
        version=report.version,
        digest=report.digest,
        assurance=report.assurance,
        input_hash=report.input_hash,
        subject=msgspec.json.encode(report.subject).decode(),
        diagnostics=str(report.diagnostics, "utf-8"),
        evidence=str(report.evidence, "utf-8"),
        recorded_ms=seal.now_ms,
    )
