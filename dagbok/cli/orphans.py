"""`dagbok artifact collect`: what nothing refers to any more."""

from __future__ import annotations

import asyncio

from dagbok.agents.hosting.orphans import collect
from dagbok.cli import say
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import existing_folder

DAY_S = 24 * 3600.0


def collect_orphans(grace_days: float, remove: bool, place: Place | None, output: Output | None) -> int:
    """Count the orphans of a data folder, or remove them."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    folder = existing_folder(settings)
    artifacts, snapshots = asyncio.run(collect(folder, grace_s=grace_days * DAY_S, dry_run=not remove))
    found = {"artifacts": artifacts, "snapshots": snapshots}
    if how.json:
        say.out_json(
            {
                kind: {
                    "removed": remove,
                    "seen": report.listed,
                    "orphans": len(report.orphans),
                    "size_bytes": report.size_bytes,
                    "unfinished": report.unfinished,
                }
                for kind, report in found.items()
            }
        )
        return 0
    verb = "removed" if remove else "would remove"
    for kind, report in found.items():
        say.out(f"{kind}: {verb} {len(report.orphans)} of {report.listed} ({report.size_bytes} bytes)")
    return 0
