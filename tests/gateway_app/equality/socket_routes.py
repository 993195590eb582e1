"""Routes over a WebSocket: UAMP, the Agent Client Protocol, Realtime."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from websockets.sync.client import ClientConnection, connect

from tests.client import TERMINAL, WAIT_SECONDS, Frame, UampClient, text_of
from tests.gateway_app.equality.http_routes import added, of_frames
from tests.gateway_app.equality.questions import (
    FUNCTION,
    PARAMETERS,
    RESULT,
    TOOL,
    Question,
    Shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.gateway_app.equality.questions import Place

Shape = dict[str, Any]


def uamp_socket(place: Place, question: Question) -> Shown:
    """Ask over UAMP's own WebSocket."""
    url = f"{place.server.ws}/agents/{question.agent}/uamp"
    with UampClient(url, headers=dict(question.headers)) as client:
        client.create_session(session={"tools": [FUNCTION]} if question.has_tool else {})
        client.ask(question.text)
        frames: list[Frame] = []
        while not frames or frames[-1]["type"] not in TERMINAL:
            frame = client.receive()
            frames.append(frame)
            if frame["type"] == "tool.call":
                client.send("tool.result", call_id=frame["call_id"], result=RESULT)
            elif frame["type"] == "payment.required":
                client.send("payment.submit", payment={"scheme": "token", "token": question.token})
            elif question.stop_after and text_of(frames) == question.stop_after:
                client.send("response.cancel")
        return of_frames(frames)


@contextmanager
def dialled(place: Place, path: str, question: Question) -> Iterator[ClientConnection]:
    """Open a socket of another protocol."""
    headers = dict(question.headers)
    with connect(place.server.ws + path, additional_headers=headers, proxy=None) as socket:
        yield socket


def received(socket: ClientConnection) -> Shape:
    """Return the next message."""
    message: Shape = json.loads(socket.recv(timeout=WAIT_SECONDS))
    return message


# --- ACP ---


def acp(place: Place, question: Question) -> Shown:
    """Prompt a session; a refused prompt comes again with its payment."""
    with dialled(place, f"/agents/{question.agent}/acp", question) as socket:
        _acp_call(socket, "initialize", {"protocolVersion": 1})
        opened, _ = _acp_call(socket, "session/new", {"cwd": "/", "mcpServers": []})
        session_id = opened["result"]["sessionId"]
        params: Shape = {
            "sessionId": session_id,
            "prompt": [{"type": "text", "text": question.text}],
        }
        answer, text = _acp_call(socket, "session/prompt", params, stop=question.stop_after)
        if "error" in answer and question.token:
            params["_meta"] = {"payment_token": question.token}
            answer, text = _acp_call(socket, "session/prompt", params)
        used = answer["result"].get("usage")
    tokens = used and (used["inputTokens"], used["outputTokens"], used["totalTokens"])
    return Shown(text=text, tokens=tokens)


def acp_of_webagents(place: Place, question: Question) -> Shown:
    """Submit a prompt in the dialect of webagents."""
    assert not question.stop_after
    with dialled(place, f"/agents/{question.agent}/acp/stream", question) as socket:
        _acp_call(socket, "initialize", {})
        messages = [{"role": "user", "content": question.text}]
        answer, _ = _acp_call(socket, "prompt/submit", {"messages": messages})
        if "error" in answer and question.token:
            paid = {"messages": messages, "payment_token": question.token}
            answer, _ = _acp_call(socket, "prompt/submit", paid)
    return Shown(text=answer["result"]["content"])


def _acp_call(
    socket: ClientConnection, method: str, params: Shape, *, stop: str = ""
) -> tuple[Shape, str]:
    """Send a request; return its response, and the text of the answer before it."""
    socket.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
    text = ""
    while True:
        message = received(socket)
        if message.get("id") == method and "method" not in message:
            return message, text
        update = message["params"].get("update", {})
        if isinstance(update, dict) and update.get("sessionUpdate") == "agent_message_chunk":
            text += update["content"]["text"]
            if stop and text == stop:
                cancel = {"sessionId": params["sessionId"]}
                call = {"jsonrpc": "2.0", "method": "session/cancel", "params": cancel}
                socket.send(json.dumps(call))


# --- Realtime ---


def realtime(path: str) -> Callable[[Place, Question], Shown]:
    """Return a route of OpenAI's Realtime API; the path chooses the dialect."""

    def ask(place: Place, question: Question) -> Shown:
        with dialled(place, path.format(agent=question.agent), question) as socket:
            assert received(socket)["type"] == "session.created"
            if question.has_tool:
                tool = {"type": "function", "name": TOOL, "parameters": PARAMETERS}
                _send(socket, "session.update", session={"tools": [tool]})
            part = {"type": "input_text", "text": question.text}
            _send_item(socket, {"type": "message", "role": "user", "content": [part]})
            ended = _answer(socket, question)
            tokens = _tokens(ended)
            for call in [item for item in ended["output"] if item["type"] == "function_call"]:
                output = {"type": "function_call_output", "call_id": call["call_id"]}
                _send_item(socket, {**output, "output": RESULT})
                ended = _answer(socket, question)
                tokens = added(tokens, _tokens(ended))
        parts = [part for item in ended["output"] for part in item.get("content", ())]
        return Shown(text="".join(part["text"] for part in parts), tokens=tokens)

    return ask


def _send(socket: ClientConnection, kind: str, **members: Any) -> None:
    socket.send(json.dumps({"type": kind, **members}))


def _send_item(socket: ClientConnection, item: Shape) -> None:
    _send(socket, "conversation.item.create", item=item)


def _answer(socket: ClientConnection, question: Question) -> Shape:
    _send(socket, "response.create")
    text = ""
    while (event := received(socket))["type"] != "response.done":
        assert event["type"] != "error", event
        if event["type"] == "payment.required":
            _send(socket, "payment.submit", payment={"scheme": "token", "token": question.token})
        elif event["type"] in {"response.text.delta", "response.output_text.delta"}:
            text += event["delta"]
            if question.stop_after and text == question.stop_after:
                _send(socket, "response.cancel")
    ended: Shape = event["response"]
    return ended


def _tokens(ended: Shape) -> tuple[int, int, int]:
    used = ended["usage"]
    return used["input_tokens"], used["output_tokens"], used["total_tokens"]


GA = "/v1/realtime?model={agent}"
BETA = "/agents/{agent}/realtime"
