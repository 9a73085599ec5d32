"""Records of somebody else that aiokafka cannot read."""

from __future__ import annotations

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy


class NoText(str):
    """A name whose bytes in the record are no text."""

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"\xff\xfe"


async def send_unreadable(
    bootstrap: str, topic: str, partition: int, *, before: bytes = b"before", behind: bytes = b"behind"
) -> None:
    """One batch of three records, of which the second cannot be read."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as foreign:
        batch = foreign.create_batch()
        batch._builder = _DefaultRecordBatchBuilderPy(2, 0, 0, -1, -1, 0, 1_000_000)
        for value, name in ((before, "name"), (b"bad", NoText("x")), (behind, "name")):
            assert batch.append(timestamp=None, key=b"k", value=value, headers=[(name, b"v")])
        await (await foreign.send_batch(batch, topic, partition=partition))
