"""Envelopes over HTTP/2 and TLS 1.3: httpx with h2 against Hypercorn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.federation_app.peer import add_peer, sse, text_of

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_ask_and_its_stream_over_http2(hypercorn: httpx.Client) -> None:
    peer = add_peer()
    ask = peer.envelope(content="hello there", stream_id="str-1")
    headers = {"Content-Type": "application/uamp+json"}
    accepted = hypercorn.post("/v1/messages", content=json.dumps(ask), headers=headers)
    assert (accepted.http_version, accepted.status_code) == ("HTTP/2", 202)
    with hypercorn.stream("GET", accepted.headers["Location"], headers=peer.bearer()) as response:
        assert response.http_version == "HTTP/2"
        deltas = [one for _, one in sse(response)]
    assert "hello there" in text_of(deltas)
    assert deltas[-1]["type"] == "done"
    forged = {**ask, "intent": "cancel"}
    refused = hypercorn.post("/v1/messages", content=json.dumps(forged), headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (401, "4.01")
