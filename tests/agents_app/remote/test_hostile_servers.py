"""A remote server that dies at any byte, redirects, whose certificate expired, or that lies."""

from __future__ import annotations

import json
import ssl
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from agents_app.providers import addresses
from agents_app.remote.addresses import close_remotes
from agents_app.runtime.agent_run import AgentError, run_agent
from tests.agents_app.remote.remote_agents import failure, remote_spec, request_of, run, text_of
from tests.agents_app.run_context import Broker, Media
from tests.agents_app.web_server import write_certificate
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve

if TYPE_CHECKING:
    from pathlib import Path

    from agents_app.selectors import AgentSpec
    from uamp.events import Event

pytestmark = pytest.mark.usefixtures("database_threads")

SAID: Final = "Hello there"
STEP: Final = 7
"""An answer is cut after each so many bytes."""
PROTOCOLS: Final = (
    "a2a",
    "a2a_03",
    "acp",
    "ag_ui",
    "completions",
    "responses",
    "uamp",
    "uamp_http",
)


def a2a_update(kind: str, **members: Any) -> dict[str, Any]:
    result = {kind: {"taskId": "t", "contextId": "c", **members}}
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def a2a_piece(text: str, **members: Any) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return a2a_update("artifactUpdate", artifact=artifact, **members)


def uamp_piece(text: str, response_id: str = "r9") -> dict[str, Any]:
    delta = {"type": "text", "text": text}
    return {"type": "response.delta", "response_id": response_id, "delta": delta}


UAMP_DONE: Final = {
    "type": "response.done",
    "response_id": "r9",
    "response": {"id": "r9", "status": "completed", "output": []},
}
ANSWERS: Final[dict[str, list[dict[str, Any]]]] = {
    "a2a": [
        a2a_piece("Hello "),
        a2a_piece("there", append=True),
        a2a_update("statusUpdate", status={"state": "TASK_STATE_COMPLETED"}),
    ],
    "ag_ui": [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hello "},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "there"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ],
    "completions": [
        {"choices": [{"index": 0, "delta": {"content": "Hello "}}]},
        {"choices": [{"index": 0, "delta": {"content": "there"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
    "responses": [
        {"type": "response.output_text.delta", "delta": "Hello "},
        {"type": "response.output_text.delta", "delta": "there"},
        {"type": "response.completed", "response": {}},
    ],
    "uamp_http": [
        {"type": "response.created", "response_id": "r9"},
        uamp_piece("Hello "),
        uamp_piece("there"),
        UAMP_DONE,
    ],
}


async def outcome(spec: AgentSpec) -> tuple[str, str]:
    """Return the text of an answer and the code of its error, or ""."""
    events: list[Event | str] = []
    try:
        await run_agent(spec, request_of(), events.append, broker=Broker(), media=Media())
    except AgentError as error:
        return text_of(events), str(error.code)
    return text_of(events), ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", ANSWERS)
async def test_a_server_that_dies_at_any_byte_ends_the_answer_once(protocol: str) -> None:
    data = STREAM_HEAD
    for event in ANSWERS[protocol]:
        data += b"data: " + json.dumps(event).encode() + b"\n\n"
    response_bytes = bytearray()

    async def dies(exchange: Exchange) -> None:
        await exchange.send(bytes(response_bytes))

    ends = {}
    async with serve(dies) as wire:
        spec = await remote_spec(wire.url, protocol=protocol)
        for cut in [*range(0, len(data), STEP), len(data)]:
            response_bytes[:] = data[:cut]
            ends[cut] = await outcome(spec)
    await close_remotes()
    for text, code in ends.values():
        assert SAID.startswith(text)
        assert code in {"agent_offline", "provider_error"} or (text, code) == (SAID, "")
    assert ends[0] == ("", "agent_offline")
    assert ends[len(data)] == (SAID, "")
    assert len({text for text, _ in ends.values()}) == 3, "it was cut before, within and after"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_redirect_to_an_inside_host_is_not_followed(protocol: str) -> None:
    async def inside(exchange: Exchange) -> None:
        await exchange.refuse("200 OK", b"secret")

    async with serve(inside) as hidden:

        async def leads_there(exchange: Exchange) -> None:
            await exchange.refuse("307 Temporary Redirect", b"", f"Location: {hidden.url}/x")

        async with serve(leads_there) as wire:
            _, error = await failure(await remote_spec(wire.url, protocol=protocol), request_of())
            assert len(wire.exchanges) == 1
    assert error.code in {"provider_error", "agent_offline"}
    assert not hidden.exchanges


@pytest.mark.parametrize("protocol", ["acp", "uamp"])
async def test_an_expired_certificate_ends_a_socket_before_its_handshake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    file = tmp_path / "certificate.pem"
    trust = write_certificate(file, "127.0.0.1", ends_in=timedelta(minutes=-1))
    monkeypatch.setattr(addresses, "certified", lambda: trust)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)

    async def never(exchange: Exchange) -> None:
        raise AssertionError(exchange.head)

    async with serve(never, tls=tls) as wire:
        spec = await remote_spec(wire.url, protocol=protocol, key="sesame")
        _, error = await failure(spec, request_of())
    assert error.code == "agent_offline"
    assert "expired" in error.cause
    assert not wire.exchanges


async def test_events_of_another_response_are_kept_out_of_the_answer() -> None:
    created, *pieces = ANSWERS["uamp_http"]
    foreign = {**UAMP_DONE, "response_id": "r8"}
    events = [created, uamp_piece("forged", "r8"), foreign, *pieces]

    async def lies(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        for event in events:
            await exchange.chunk(**event)

    async with serve(lies) as wire:
        shown_events, _ = await run(await remote_spec(wire.url, protocol="uamp_http"), request_of())
    assert text_of(shown_events) == SAID
