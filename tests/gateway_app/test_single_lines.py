"""Event streams and NDJSON can be read by clients that split lines at any Unicode separator."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.export import personal
from tests.client import new_event
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from tests.live_server import Person

SEPARATORS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"
TEXT = "".join(f"a{char}b" for char in SEPARATORS)
SSE = {"Accept": "text/event-stream"}
MESSAGES = [{"role": "user", "content": TEXT}]


@dataclass(frozen=True)
class Request:
    """A request whose answer is lines: all of them, or those until one has the word `end`."""

    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=lambda: SSE)
    end: str = ""


def rpc(method: str, **params: Any) -> Any:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def task_message(**fields: Any) -> dict[str, Any]:
    """Return a message of A2A."""
    return {"messageId": uuid.uuid4().hex, **fields}


def batch(_chat: str) -> Request:
    """Ask in a batch."""
    session = new_event("session.create", uamp_version="1.0", session={}, agent="echo")
    events = [session, new_event("input.text", text=TEXT), new_event("response.create")]
    return Request("/uamp/stream", events)


def responses(_chat: str) -> Request:
    """Ask over the Responses API."""
    return Request("/agents/echo/responses", {"model": "echo", "input": TEXT, "stream": True})


def anthropic(_chat: str) -> Request:
    """Ask over the Messages API."""
    body = {"model": "echo", "max_tokens": 1024, "messages": MESSAGES, "stream": True}
    return Request("/agents/echo/v1/messages", body)


def ag_ui(_chat: str) -> Request:
    """Run an agent over AG-UI."""
    messages = [{"id": "m1", **MESSAGES[0]}]
    return Request("/agents/echo/agui", {"threadId": "t", "runId": "r", "messages": messages})


def a2a(_chat: str) -> Request:
    """Send a message over the JSON-RPC of A2A."""
    message = task_message(role="ROLE_USER", parts=[{"text": TEXT}])
    return Request("/agents/echo/a2a", rpc("SendStreamingMessage", message=message))


def a2a_rest(_chat: str) -> Request:
    """Send a message over the REST of A2A."""
    message = task_message(role="ROLE_USER", parts=[{"text": TEXT}])
    return Request("/agents/echo/a2a/rest/message:stream", {"message": message})


def tasks(_chat: str) -> Request:
    """Begin a task at `/tasks`."""
    parts = [{"type": "text", "text": TEXT}]
    return Request("/agents/echo/tasks", {"message": {"role": "user", "parts": parts}})


def completions(_chat: str) -> Request:
    """Ask over Completions."""
    return Request("/agents/echo/chat/completions", {"messages": MESSAGES, "stream": True})


def acp(_chat: str) -> Request:
    """Ask over ACP in one request."""
    return Request("/agents/echo/acp", rpc("prompt/submit", messages=MESSAGES))


def rest_turn(chat: str) -> Request:
    """Send a message over REST and follow its answers."""
    return Request(f"/api/v1/chats/{chat}/messages", {"content": TEXT, "agents": ["echo"]})


def rest_events(chat: str) -> Request:
    """Follow the log of a chat from its begin."""
    return Request(f"/api/v1/chats/{chat}/events?after=0", end='{"type":"message.created"')


def export(chat: str) -> Request:
    """Export a chat with its log."""
    return Request(f"/api/v1/chats/{chat}/export?format=ndjson&log=true", headers={})


ROUTES: list[Callable[[str], Request]] = [
    a2a, a2a_rest, acp, ag_ui, anthropic, batch, completions, export, responses,
    rest_events, rest_turn, tasks,
]  # fmt: skip


def lines_of(web: httpx.Client, request: Request, who: Person) -> Iterator[str]:
    """Yield the lines of an answer, as HTTPX splits them."""
    method = "GET" if request.body is None else "POST"
    headers = {**request.headers, **who.headers}
    with web.stream(method, request.path, json=request.body, headers=headers) as answer:
        assert answer.is_success, answer.read()
        for line in answer.iter_lines():
            yield line
            if request.end and request.end in line:
                return


def strings_of(value: Any) -> Iterator[str]:
    """Yield the strings of a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from strings_of(member)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.__name__)
def test_no_separator_of_a_text_ends_a_line(
    web: httpx.Client, alice: Person, route: Callable[[str], Request]
) -> None:
    chat = shared_chat(alice, agents=("echo",)).pk
    body = {"content": TEXT, "agents": []}
    path = f"/api/v1/chats/{chat}/messages"
    web.post(path, json=body, headers=alice.headers).raise_for_status()
    request = route(chat)
    strings: list[str] = []
    for line in lines_of(web, request, alice):
        name, _, rest = line.partition(": ")
        data = rest if request.headers else line
        if line in {"", "data: [DONE]"} or line.startswith(":"):
            continue
        assert not request.headers or name in {"id", "data", "event"}, line
        if name not in {"id", "event"}:
            strings += strings_of(json.loads(data))
    for char in SEPARATORS:
        assert any(char in text for text in strings), ascii(char)


def test_a_copy_of_all_that_a_person_wrote_has_a_message_a_line(
    web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice).pk
    body = {"content": TEXT, "agents": []}
    path = f"/api/v1/chats/{chat}/messages"
    web.post(path, json=body, headers=alice.headers).raise_for_status()
    text = b"".join(personal.message_lines(alice.user)).decode()
    assert [json.loads(line)["content"] for line in text.splitlines()] == [TEXT]
