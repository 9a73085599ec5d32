"""What commands log: warnings and above, unless asked for more."""

from __future__ import annotations

from dagbok import logs
from dagbok.settings import Settings


def quiet_logs(settings: Settings) -> None:
    """Logging of a command that ends."""
    logs.configure(settings.log_level or "warning", "text" if settings.log_format == "auto" else settings.log_format)
