"""The queue: the port, and its adapters within one process (`MemoryQueue`) and between the processes of one data
folder (`FolderQueue`). The one on topics comes with its host."""

from dagbok.agents.queue.folder import FolderQueue
from dagbok.agents.queue.memory import MemoryQueue
from dagbok.agents.queue.port import (
    KINDS,
    AttemptKey,
    Lane,
    Listener,
    Queue,
    SharedQueue,
    Taker,
    attempt_of,
    lane_address,
    lane_of,
)
from dagbok.agents.queue.sharing import OnLost

__all__ = [
    "KINDS",
    "AttemptKey",
    "FolderQueue",
    "Lane",
    "Listener",
    "MemoryQueue",
    "OnLost",
    "Queue",
    "SharedQueue",
    "Taker",
    "attempt_of",
    "lane_address",
    "lane_of",
]
