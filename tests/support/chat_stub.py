"""A server on loopback that speaks the chat completions of OpenAI, as far as agents use them, and says what it is told
to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT_TOKENS, ANSWER_TOKENS = 100, 20
"""What each answer says that it has cost."""


@dataclass(frozen=True)
class Asked:
    """A request: its messages by role, in order, and the tools that may be called, with their parameters."""

    path: str
    key: str
    model: str
    system: str
    user: list[str]
    returned: list[str]
    tools: dict[str, dict[str, Any]]

    @property
    def prompt(self) -> Any:
        """What the user said first, as JSON."""
        return json.loads(self.user[0])


@dataclass(frozen=True)
class Call:
    """The model calls a tool. `arguments`: as JSON, or text as it is, broken perhaps."""

    tool: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True)
class Say:
    """The model says something."""

    text: str


@dataclass(frozen=True)
class Refuse:
    """The server answers with an error. `retry_after`: the header of that name."""

    status: int
    message: str = "no"
    retry_after: str = ""


Reply = Call | Say | Refuse


@dataclass
class ChatStub:
    """A running server: its address, and what it was asked so far."""

    url: str
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def chat_stub(answer: Callable[[Asked], Reply]) -> Iterator[ChatStub]:
    """Serve while the block lasts. `answer` is called in a thread per request, and may block."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked = _asked(self.path, self.headers["authorization"] or "", body)
            with lock:
                stub.asked.append(asked)
                number = len(stub.asked)
            reply = answer(asked)
            status, said = _body(reply, asked.model, number)
            data = json.dumps(said).encode()
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                if isinstance(reply, Refuse) and reply.retry_after:
                    self.send_header("retry-after", reply.retry_after)
                self.end_headers()
                self.wfile.write(data)
            except ConnectionError:
                pass  # whoever asked is gone

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    stub = ChatStub(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _asked(path: str, key: str, body: dict[str, Any]) -> Asked:
    said: dict[str, list[str]] = {}
    for message in body["messages"]:
        said.setdefault(message["role"], []).append(_text(message.get("content")))
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body.get("tools", [])}
    system = "\n".join(said.get("system", []) + said.get("developer", []))
    return Asked(path, key, body["model"], system, said.get("user", []), said.get("tool", []), tools)


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""


def _body(reply: Reply, model: str, number: int) -> tuple[int, dict[str, Any]]:
    if isinstance(reply, Refuse):
        return reply.status, {"error": {"message": reply.message, "type": "stub", "code": None}}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(reply, Say):
        message["content"] = reply.text
    else:
        arguments = reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)
        function = {"name": reply.tool, "arguments": arguments}
        message["tool_calls"] = [{"id": f"call-{number}", "type": "function", "function": function}]
    return 200, {
        "id": f"chat-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "stop" if isinstance(reply, Say) else "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": ANSWER_TOKENS,
            "total_tokens": PROMPT_TOKENS + ANSWER_TOKENS,
        },
    }
