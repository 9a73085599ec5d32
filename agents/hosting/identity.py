"""What this process is called in claims, locks and logs."""

from __future__ import annotations

import os
import re
import secrets
import socket


def new_process_id() -> str:
    """Host name, process number, and a random word: no two processes ever have the same one."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40]
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"
