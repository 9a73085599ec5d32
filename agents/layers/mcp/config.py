"""Which MCP server an agent has, and which of its tools.

A secret is named and never written: `${NAME}` in an environment variable, a header or an address stands for a variable
of this process, which is looked up when the server is connected to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dagbok.agents.layers.models import LayerConfig

NAMED: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SECRET: Final = re.compile(
    r"(^|[_-])((proxy-)?authorization|cookie|(auth|access|api)?token|secret|password|passwd|credentials?|"
    r"(api|access|private|secret)?[_-]?key)([_-]|$)",
    re.IGNORECASE,
)
"""Names of variables, headers and members of a query whose value is a secret."""

Timeout = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Server(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, revalidate_instances="always")


class StdioServer(_Server):
    """A server that is started as a process of its own and ends with the run.

    It gets `env` and of this process's environment only what every program needs (`PATH`, `HOME` and the like).
    """

    transport: Literal["stdio"] = "stdio"
    command: str = Field(min_length=1)
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None

    @field_validator("env")
    @classmethod
    def _named(cls, env: dict[str, str]) -> dict[str, str]:
        return _secrets_named(env)

    @property
    def said(self) -> str:
        """What errors call it. Arguments may say more than others should read."""
        return f"MCP server {self.command!r}"


class HttpServer(_Server):
    """A server that runs already, by the streamable HTTP transport."""

    transport: Literal["http"] = "http"
    url: str = Field(pattern=r"^https?://[^/?#\s@]+([/?#]\S*)?$")
    headers: dict[str, str] = Field(default_factory=dict)

    @field_validator("url")
    @classmethod
    def _named_in_query(cls, url: str) -> str:
        _secrets_named(dict(parse_qsl(urlsplit(url).query)))
        return url

    @field_validator("headers")
    @classmethod
    def _named(cls, headers: dict[str, str]) -> dict[str, str]:
        return _secrets_named(headers)

    @property
    def said(self) -> str:
        """What errors call it."""
        return f"MCP server at {self.url.split('?')[0]}"


class MCPToolsConfig(LayerConfig):
    """A server, and what of it an agent may use. `answer_chars`: how much of an answer the model is shown."""

    server: Annotated[StdioServer | HttpServer, Field(discriminator="transport")]
    prefix: str = Field(default="", pattern=r"^[A-Za-z0-9_-]{0,32}$")
    """Put before the name of each tool."""
    allow: frozenset[str] | None = None
    """Names as the server says them; None is all."""
    rename: dict[str, str] = Field(default_factory=dict)
    """Other names for tools, by the name that the server says: it may say names that no model takes."""
    connect_timeout_s: Timeout = 30.0
    call_timeout_s: Timeout = 60.0
    answer_chars: int = Field(default=50_000, ge=1)


def resolved(values: Mapping[str, str]) -> dict[str, str]:
    """The values with what is named in them. Raises ValueError, which says all that this process does not have."""
    missing = sorted({name for value in values.values() for name in NAMED.findall(value) if name not in os.environ})
    if missing:
        raise ValueError(f"these environment variables are not set: {', '.join(missing)}")
    return {key: NAMED.sub(lambda found: os.environ[found[1]], value) for key, value in values.items()}


def _secrets_named(values: dict[str, str]) -> dict[str, str]:
    written = sorted(key for key, value in values.items() if SECRET.search(key) and not NAMED.search(value))
    if written:
        raise ValueError(f"name secrets instead of writing them (\"${{NAME}}\" for a variable): {', '.join(written)}")
    return values
