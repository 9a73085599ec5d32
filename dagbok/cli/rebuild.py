"""What `dagbok projections rebuild` does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from dagbok.cli import say
from dagbok.cli.interrupts import interruptible
from dagbok.cli.options import Output, Place, settle
from dagbok.cli.quiet import quiet_logs
from dagbok.cli.reading import reading
from dagbok.cli.text import duration
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.projections.projector import rebuild
from dagbok.projections.views import VIEWS
from dagbok.settings import Settings


def rebuild_views(names: Sequence[str], place: Place | None, output: Output | None) -> int:
    """Rebuild these views, or all, and say how long it took. Raises `InvalidInput` for one that is not known."""
    settings, how = settle(place, output)
    quiet_logs(settings)
    known = [view.name for view in VIEWS]
    views = list(dict.fromkeys(names or known))
    if unknown := [name for name in views if name not in known]:
        told = f"there is no view {unknown[0]!r}"
        raise InvalidInput(told, code=Code.USAGE, advice=f"views: {', '.join(known)}")
    began_s = time.monotonic()
    asyncio.run(interruptible(_rebuild(settings, views)))
    elapsed_s = time.monotonic() - began_s
    if how.json:
        say.out_json({"views": views, "elapsed_s": round(elapsed_s, 3)})
    else:
        say.out(f"built anew: {', '.join(views)} in {duration(elapsed_s * 1000)}")
    return 0


async def _rebuild(settings: Settings, views: Sequence[str]) -> None:
    async with reading(settings) as found:
        await rebuild(found.log, found.tables, views)
