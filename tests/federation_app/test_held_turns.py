"""Answers that a POST began, and the readers that come for them: at once, late, or elsewhere."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from federation_app.exchange import held_turns
from federation_app.exchange.turns import PeerTurn
from tests.client import wait_until
from tests.federation_app.peer import SERVER, ForeignPeer, sse, text_of
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)
TALKER = f"{SERVER}:agents:talker"
WORDS = " ".join(f"word{number}" for number in range(30))


@pytest.fixture
def http(federated: ServerAddress) -> Iterator[httpx.Client]:
    """Give a client of the server, with a slow agent."""
    quick_agent("talker", "echo", delay=0.02)
    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:
        yield client


def ask(http: httpx.Client, peer: ForeignPeer, stream_id: str = "str-1") -> None:
    """Post a question to the agent."""
    raw = json.dumps(peer.envelope(content=WORDS, to=[TALKER], stream_id=stream_id)).encode()
    headers = {"Content-Type": "application/uamp+json"}
    assert http.post("/v1/messages", content=raw, headers=headers).status_code == 202


def read(
    http: httpx.Client, peer: ForeignPeer, stream_id: str = "str-1", **headers: str
) -> list[Any]:
    """Read the deltas of a stream to its end."""
    headers = {**peer.bearer(), **headers}
    with http.stream("GET", f"/v1/stream/{stream_id}", headers=headers) as response:
        return [delta for _, delta in sse(response)]


def count() -> int:
    """Return the number of turns that the running server holds."""
    loops = held_turns._by_loop.items()
    return sum(len(held._turns) for loop, held in loops if not loop.is_closed())


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the responses that readers join from now on."""
    joined: list[str] = []
    join = PeerTurn.join

    async def note(turn: PeerTurn, response_id: str) -> None:
        joined.append(response_id)
        await join(turn, response_id)

    monkeypatch.setattr(PeerTurn, "join", note)
    return joined


def test_the_reader_of_a_question_takes_over_its_turn(
    http: httpx.Client, peer: ForeignPeer, joins: list[str]
) -> None:
    ask(http, peer)
    assert count() == 1
    deltas = read(http, peer)
    assert (text_of(deltas), deltas[-1]["type"], joins) == (WORDS, "done", [])
    assert count() == 0
    # A second reader has no turn to take over.
    assert text_of(read(http, peer)) == WORDS
    assert len(joins) == 1


def test_a_late_reader_joins_the_answer(
    http: httpx.Client, peer: ForeignPeer, joins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[PeerTurn] = []
    close = PeerTurn.close

    async def note(turn: PeerTurn) -> None:
        closed.append(turn)
        await close(turn)

    monkeypatch.setattr(PeerTurn, "close", note)
    monkeypatch.setattr(held_turns, "HOLD_SECONDS", 0.05)
    ask(http, peer)
    wait_until(lambda: count() == 0 and len(closed) > 0)
    assert (text_of(read(http, peer)), len(joins)) == (WORDS, 1)


def test_a_reader_that_has_deltas_joins_the_answer(
    http: httpx.Client, peer: ForeignPeer, joins: list[str]
) -> None:
    ask(http, peer)
    deltas = read(http, peer, **{"Last-Event-ID": "0"})
    assert (deltas[0]["delta_seq"], deltas[-1]["type"], text_of(deltas)) == (1, "done", WORDS)
    assert (len(joins), count()) == (1, 0)


def test_held_turns_take_no_room_from_readers(
    http: httpx.Client, peer: ForeignPeer, settings: Any, joins: list[str]
) -> None:
    settings.UAMP_ENVELOPE_STREAMS = 1
    settings.UAMP_CONNECTIONS_PER_ADDRESS = settings.UAMP_CONNECTIONS_PER_USER = 1
    for stream_id in ("str-1", "str-2", "str-3"):
        ask(http, peer, stream_id)
    assert text_of(read(http, peer, "str-3")) == WORDS
    assert joins == []


def test_a_process_holds_no_more_turns_than_its_limit(
    http: httpx.Client, peer: ForeignPeer, joins: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_turns, "AT_ONCE", 1)
    ask(http, peer, "str-1")
    ask(http, peer, "str-2")
    assert count() == 1
    assert text_of(read(http, peer, "str-2")) == WORDS
    assert len(joins) == 1
