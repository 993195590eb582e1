"""Envelopes over HTTP/3: the client of aioquic against Hypercorn."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import async_to_sync

from federation_app.exchange import windowed
from tests.client import wait_until
from tests.federation_app.http3_client import Answer, connected
from tests.federation_app.lossy_line import lossy_line
from tests.federation_app.peer import SERVER, add_peer, text_of
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
pytestmark = pytest.mark.django_db(transaction=True)


def test_an_ask_and_its_stream_over_http3(hypercorn: httpx.Client, tmp_path: Path) -> None:
    assert hypercorn.get("/healthz").headers["alt-svc"].startswith('h3=":')
    peer = add_peer()
    ask = json.dumps(peer.envelope(content="hello there", stream_id="str-1")).encode()
    port = hypercorn.base_url.port
    assert port is not None

    @async_to_sync
    async def ask_and_read() -> tuple[Answer, Answer, Answer]:
        async with connected(port, tmp_path) as client:
            headers = {"content-type": "application/uamp+json"}
            accepted = await client.request("POST", "/v1/messages", headers, ask)
            refused = await client.request("POST", "/v1/messages", headers, ask[:-1])
            path = accepted.headers["location"]
            return accepted, refused, await client.request("GET", path, bearer)

    bearer = {name.lower(): value for name, value in peer.bearer().items()}
    accepted, refused, stream = ask_and_read()
    assert accepted.headers[":status"] == "202"
    assert (refused.headers[":status"], json.loads(refused.body)["code"]) == ("400", "4.00")
    assert stream.headers["content-type"] == "text/event-stream"
    lines = stream.body.decode().splitlines()
    deltas = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert "hello there" in text_of(deltas)
    assert deltas[-1]["type"] == "done"


def test_a_client_that_leaves_a_stream_is_sent_nothing_more(
    hypercorn: httpx.Client, tmp_path: Path
) -> None:
    quick_agent("talker", "echo", delay=0.5)
    peer = add_peer()
    words = " ".join(["word"] * 200)
    to = [f"{SERVER}:agents:talker"]
    ask = json.dumps(peer.envelope(content=words, to=to, stream_id="str-1")).encode()
    bearer = {name.lower(): value for name, value in peer.bearer().items()}
    port = hypercorn.base_url.port
    assert port is not None

    @async_to_sync
    async def ask_and_leave() -> None:
        async with connected(port, tmp_path) as client:
            headers = {"content-type": "application/uamp+json"}
            await client.request("POST", "/v1/messages", headers, ask)
            await client.leave("/v1/stream/str-1", bearer)
            # The connection stays open: only the stream was left.
            await asyncio.to_thread(wait_until, lambda: not windowed._open)

    ask_and_leave()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("every", "moves_every"), [(7, 0), (10**6, 40), (11, 40)])
def test_a_stream_survives_lost_datagrams_and_a_moved_address(
    hypercorn: httpx.Client, tmp_path: Path, every: int, moves_every: int
) -> None:
    quick_agent("talker", "echo", delay=0.02)
    peer = add_peer()
    words = " ".join(f"word{number}" for number in range(100))
    to = [f"{SERVER}:agents:talker"]
    ask = json.dumps(
        peer.envelope(content=words, to=to, stream_id="str-1", delta_window=1000)
    ).encode()
    bearer = {name.lower(): value for name, value in peer.bearer().items()}
    port = hypercorn.base_url.port
    assert port is not None

    @async_to_sync
    async def ask_and_read_all() -> tuple[Answer, int, int]:
        async with (
            lossy_line(port, every=every, moves_every=moves_every) as line,
            connected(line.port, tmp_path) as client,
        ):
            headers = {"content-type": "application/uamp+json"}
            await client.request("POST", "/v1/messages", headers, ask)
            stream = await client.request("GET", "/v1/stream/str-1", bearer)
            return stream, line.lost, line.moves

    stream, lost, moves = ask_and_read_all()
    lines = stream.body.decode().splitlines()
    deltas = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert text_of(deltas) == words
    assert [delta["delta_seq"] for delta in deltas] == list(range(len(deltas)))
    assert deltas[-1]["type"] == "done"
    assert (lost > 3) is (every < 100)
    assert (moves > 0) is bool(moves_every)
