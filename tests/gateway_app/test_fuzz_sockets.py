"""Odd frames on the sockets of foreign protocols: a typed error, and the socket stays or closes."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.gateway_app.fuzzing import check_text, no_hurry, odd_bodies, run_examples
from tests.realtime_vendor import realtime_vendor

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Person

FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object"}}
# Too large, not UTF-8, and what UAMP closes with where a frame cannot be trusted.
CLOSED: Final = frozenset({1003, 1007, 1008, 1009, 4400, 4401, 4403, 4413, 4429})


def rpc(method: str, **params: Any) -> dict[str, Any]:
    """Return a request of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


ACP: Final = [
    rpc("initialize", protocolVersion=1, clientCapabilities={"fs": {"readTextFile": True}}),
    rpc("session/new", cwd="/", mcpServers=[], _meta={"payment_token": "t"}),
    rpc("session/load", sessionId="s", cwd="/", mcpServers=[]),
    rpc("session/resume", sessionId="s", cwd="/"),
    rpc("session/list", cursor="c"),
    rpc("session/close", sessionId="s"),
    rpc(
        "session/prompt",
        sessionId="s",
        prompt=[
            {"type": "text", "text": "x"},
            {"type": "image", "data": "QQ==", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
        ],
    ),
    rpc("prompt/submit", messages=[{"role": "user", "content": "x"}], payment_token="t"),
    {"jsonrpc": "2.0", "id": "call", "result": {"outcome": {"outcome": "selected"}}},
]
REALTIME: Final = [
    {
        "type": "session.update",
        "event_id": "e",
        "session": {
            "type": "realtime",
            "instructions": "i",
            "tools": [{"type": "function", **FUNCTION}],
            "tool_choice": {"type": "function", "name": "f"},
            "max_output_tokens": 5,
            "output_modalities": ["text"],
        },
    },
    {
        "type": "conversation.item.create",
        "previous_item_id": "root",
        "item": {
            "id": "i",
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "x"}],
        },
    },
    {
        "type": "response.create",
        "response": {
            "conversation": "none",
            "metadata": {"a": "b"},
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text"}]}],
        },
    },
    {"type": "response.cancel", "response_id": "r"},
    {
        "type": "session.update",
        "session": {
            "type": "realtime",
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcmu"},
                    "turn_detection": {"type": "server_vad", "threshold": 0.5},
                },
                "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alloy"},
            },
            "voice": "alloy",
            "turn_detection": None,
            "input_audio_format": "pcm16",
        },
    },
    {"type": "input_audio_buffer.append", "audio": "AAAA"},
    {"type": "input_audio_buffer.commit"},
    {"type": "input_audio_buffer.clear"},
    {
        "type": "conversation.item.create",
        "item": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_audio", "audio": "AAAA", "transcript": "t"}],
        },
    },
    {"type": "conversation.item.truncate", "item_id": "i", "content_index": 0, "audio_end_ms": 1},
    {"type": "payment.submit", "payment": {"scheme": "token", "token": "t"}, "response_id": "r"},
    {"type": "tool.approve", "call_id": "c", "approved": True, "reason": "r"},
]
# A request whose answer is known, and what its answer is known by.
LAST: Final = {
    "acp": (json.dumps({"jsonrpc": "2.0", "id": "last", "method": "none"}), '"id":"last"'),
    "realtime": (json.dumps({"type": "none", "event_id": "last"}), '"event_id":"last"'),
}


def text_of(frame: bytes) -> str | bytes:
    """Return a frame as text, where it is one."""
    try:
        return frame.decode()
    except UnicodeDecodeError:
        return frame


class FuzzedSocket:
    """A socket that is opened again when the server closed it with a code that may be."""

    def __init__(self, url: str, headers: dict[str, str], protocol: str) -> None:
        self._url, self._headers, self._last = url, headers, LAST[protocol]
        self._opened = ExitStack()
        self._socket: ClientConnection | None = None
        self._session = ""

    def close(self) -> None:
        """Close it."""
        self._opened.close()
        self._socket = None

    def _new_session(self, opened: ClientConnection) -> str:
        """Return the session that requests of ACP name as "s"."""
        if self._last != LAST["acp"]:
            return ""
        opened.send(json.dumps(rpc("session/new", cwd="/", mcpServers=[])))
        session_id: str = json.loads(opened.recv(timeout=60))["result"]["sessionId"]
        return session_id

    def show(self, frame: str | bytes) -> None:
        """Send a frame, and read until the server has answered another one, or has closed."""
        if self._socket is None:
            opened = connect(self._url, additional_headers=self._headers, proxy=None, max_size=None)
            self._socket = self._opened.enter_context(opened)
            self._session = self._new_session(self._socket)
        if isinstance(frame, str):
            frame = frame.replace(
                '"sessionId": "s"', json.dumps({"sessionId": self._session})[1:-1]
            )
        question, mark = self._last
        try:
            self._socket.send(frame)
            self._socket.send(question)
            answer = ""
            while mark not in answer:
                answer = str(self._socket.recv(timeout=60))
                check_text(answer)
                assert "internal_error" not in answer, (frame[:300], answer[:300])
                assert "has a defect" not in answer, (frame[:300], answer[:300])
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd is not None else None
            assert code in CLOSED, (frame[:300], code)
            self.close()


def test_odd_frames_to_an_agent_that_speaks(
    demo: ServerAddress, web: httpx.Client, alice: Person, settings: Settings
) -> None:
    no_hurry(settings)
    with realtime_vendor() as vendor:
        settings.UAMP_MODEL_ALLOW_HOSTS = [vendor.url.split("/")[2]]
        vendor.agent()
        url = f"{demo.ws}/agents/speaker/realtime"
        fuzzed = FuzzedSocket(url, alice.headers, "realtime")
        about_sound = [event for event in REALTIME if "audio" in json.dumps(event)]
        try:
            run_examples(fuzzed.show, st.one_of([odd_bodies(e).map(text_of) for e in about_sound]))
            for event in about_sound:
                fuzzed.show(json.dumps(event))
        finally:
            fuzzed.close()
    assert web.get("/readyz").status_code == httpx.codes.OK


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sender", ["person", "visitor"])
@pytest.mark.parametrize("protocol", LAST)
def test_odd_frames(
    demo: ServerAddress,
    web: httpx.Client,
    alice: Person,
    settings: Settings,
    protocol: str,
    sender: str,
) -> None:
    no_hurry(settings)
    headers = alice.headers if sender == "person" else {}
    fuzzed = FuzzedSocket(f"{demo.ws}/agents/echo/{protocol}", headers, protocol)
    valid = ACP if protocol == "acp" else REALTIME
    frames = st.one_of([odd_bodies(event) for event in valid])

    try:
        run_examples(fuzzed.show, frames.map(text_of))
        for event in valid:
            fuzzed.show(json.dumps(event))
    finally:
        fuzzed.close()
    assert web.get("/readyz").status_code == httpx.codes.OK
