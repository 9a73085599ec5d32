"""The end of a process does not wait for what hangs in a thread."""

from __future__ import annotations

import asyncio
import threading
import time

from dagbok.cli.interrupts import LeavableThreads

HANGS_S = 20.0


def test_a_loop_ends_while_a_function_hangs_in_a_thread() -> None:
    let_go, ended = threading.Event(), threading.Event()

    def hangs() -> None:
        let_go.wait(HANGS_S)
        ended.set()

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(LeavableThreads())
        hanging = asyncio.create_task(asyncio.to_thread(hangs))
        await asyncio.sleep(0)
        hanging.cancel()

    began_s = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began_s < HANGS_S / 2
    assert not ended.is_set()
    let_go.set()
    assert ended.wait(HANGS_S)
