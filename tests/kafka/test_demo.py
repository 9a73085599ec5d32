"""`make demo-kafka`: one of three workers is killed, and the run succeeds."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

from tests.servers.kafka_session import session_kafka

ROOT = Path(__file__).parents[2]
FILES = 30
GIVE_UP_S = 120.0


async def test_the_main_job_succeeds_although_a_worker_is_killed_in_the_middle(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(FILES):
        (docs / f"page{number}.md").write_text(f"# Page\n\n[next](page{number + 1}.md)\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ROOT / "bench" / "demo_kafka.py"),
        "--input", str(docs), "--pace", "3", "--session", "1.5", "--data", str(tmp_path / "data"),
        env={**os.environ, "KAFKA_BOOTSTRAP_SERVERS": session_kafka().bootstrap},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(GIVE_UP_S):
        out, told = (text.decode() for text in await process.communicate())
    assert process.returncode == 0, out + told
    assert "worker 2    killed (SIGKILL" in out
    assert f"succeeded   {FILES + 1} tasks verified, each exactly once" in out
    behind = out.partition("killed (SIGKILL")[2]
    stands = [int(found) for found in re.findall(rf"(\d+) of {FILES + 1} verified", behind)]
    assert stands[0] < FILES + 1, "it was killed in the middle"
    assert "1 broken_link" in out
    (report,) = (tmp_path / "data" / "output").glob("*/report.md")
    assert "page30.md" in report.read_text()
