"""Calls of A2A, and what is in their answers."""

from __future__ import annotations

import base64
import io
import json
import uuid
from typing import TYPE_CHECKING, Any

from PIL import Image

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person


def text_message(text: str, **members: Any) -> dict[str, Any]:
    """Return a message of A2A 1.0."""
    return {
        "messageId": uuid.uuid4().hex,
        "role": "ROLE_USER",
        "parts": [{"text": text}],
        **members,
    }


def old_message(text: str, **members: Any) -> dict[str, Any]:
    """Return a message of A2A 0.3."""
    return {
        "kind": "message",
        "messageId": uuid.uuid4().hex,
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
        **members,
    }


def call(
    web: httpx.Client,
    agent: str,
    method: str,
    params: Any,
    *,
    who: Person | None = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Call a method over JSON-RPC and return the whole answer."""
    body = {"jsonrpc": "2.0", "id": "call-1", "method": method, "params": params}
    all_headers = {**(who.headers if who else {}), **(headers or {})}
    answer = web.post(f"/agents/{agent}/a2a", json=body, headers=all_headers)
    reply: dict[str, Any] = answer.json()
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", "call-1")
    return reply


def send(
    web: httpx.Client,
    agent: str,
    text: str,
    *,
    who: Person | None = None,
    configuration: dict[str, Any] | None = None,
    **members: Any,
) -> dict[str, Any]:
    """Send a message of 1.0 and return its task."""
    params: dict[str, Any] = {"message": text_message(text, **members)}
    if configuration:
        params["configuration"] = configuration
    answer = call(web, agent, "SendMessage", params, who=who)
    assert "result" in answer, answer
    task: dict[str, Any] = answer["result"]["task"]
    return task


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the results of a stream of JSON-RPC."""
    assert answer.headers["Content-Type"].startswith("text/event-stream"), answer.text
    frames = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]
    return [frame["result"] for frame in frames]


def stream(
    web: httpx.Client, agent: str, method: str, params: Any, *, who: Person | None = None
) -> list[dict[str, Any]]:
    """Call a method that streams, and return its results."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = who.headers if who else {}
    return events_of(web.post(f"/agents/{agent}/a2a", json=body, headers=headers))


def error_of(answer: dict[str, Any]) -> tuple[int, str]:
    """Return the code and the reason of an error."""
    error = answer["error"]
    (info,) = error["data"]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    return error["code"], info["reason"]


def text_of(task: dict[str, Any]) -> str:
    """Return the text of the artifacts of a task."""
    parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
    return "".join(part.get("text", "") for part in parts)


def picture() -> str:
    """Return a small PNG in base64."""
    out = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()
