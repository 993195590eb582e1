"""Envelopes over HTTP: `POST /v1/messages`, the stream as SSE, and the documents of discovery."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.utils import timezone

from federation_app.edges import documents
from federation_app.envelope.names.identity import keys_of_document
from federation_app.envelope.names.manifests import document_sha256, read_hub, read_manifest
from federation_app.exchange import outcomes
from federation_app.models import EnvelopeStream, ReceivedEnvelope
from sessions_app.models import Response
from signing_app.cached_documents import forget_all
from tests.federation_app.peer import ECHO, SERVER, ForeignPeer, add_peer, sse, text_of
from tests.live_server import quick_agent
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)
UAMP_JSON = {"Content-Type": "application/uamp+json;v=1"}
LONG = " ".join(f"word{n}" for n in range(60))


@pytest.fixture
def http(federated: ServerAddress) -> Iterator[httpx.Client]:
    """Give a client of the server."""
    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:
        yield client


def post(http: httpx.Client, envelope: Any, **headers: str) -> httpx.Response:
    """Post an envelope."""
    content = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
    return http.post("/v1/messages", content=content, headers={**UAMP_JSON, **headers})


def test_an_ask_is_accepted_and_its_stream_is_read(http: httpx.Client, peer: ForeignPeer) -> None:
    accepted = post(http, peer.envelope(content="hello there", stream_id="str-1"))
    assert (accepted.status_code, accepted.headers["Location"]) == (202, "/v1/stream/str-1")
    with http.stream("GET", "/v1/stream/str-1", headers=peer.bearer()) as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        frames = list(sse(response))

    assert [int(number) for number, _ in frames] == list(range(len(frames)))
    assert all(
        set(delta) == {"delta_seq", "stream_id", "ts", "type", "payload"} for _, delta in frames
    )
    assert "hello there" in text_of([delta for _, delta in frames])
    assert frames[-1][1]["type"] == "done"
    # The same envelope again: the same stream, and nothing is answered twice.
    assert EnvelopeStream.objects.count() == 1
    resumed = {**peer.bearer(), "Last-Event-ID": "0"}
    with http.stream("GET", "/v1/stream/str-1", headers=resumed) as response:
        again = [delta for _, delta in sse(response)]
    assert [delta["delta_seq"] for delta in again] == list(range(1, 1 + len(again)))
    assert again[0]["type"] == "patch"
    assert text_of(again) == text_of([delta for _, delta in frames])


def test_acknowledgements_are_envelopes_of_other_requests(
    http: httpx.Client, peer: ForeignPeer
) -> None:
    quick_agent("talker", "echo", delay=0.005)
    ask = peer.envelope(
        content=LONG, to=[f"{SERVER}:agents:talker"], stream_id="str-1", delta_window=2
    )
    assert post(http, ask).status_code == 202
    deltas = []
    with http.stream("GET", "/v1/stream/str-1", headers=peer.bearer()) as response:
        for number, delta in sse(response):
            deltas.append(delta)
            ack = peer.envelope("progress", json.dumps({"ack": int(number)}), stream_id="str-1")
            assert post(http, ack).status_code == 202

    assert deltas[-1]["type"] == "done"
    assert text_of(deltas) == LONG
    assert EnvelopeStream.objects.get().acknowledged == deltas[-1]["delta_seq"]


def test_refusals_are_problems_with_the_code(http: httpx.Client, peer: ForeignPeer) -> None:
    good = peer.envelope()
    cases: list[tuple[int, str, Any, dict[str, str]]] = [
        (400, "4.00", b"{", {}),
        (401, "4.01", {**good, "intent": "cancel"}, {}),
        (403, "4.03", peer.envelope(to=["did:web:other.example"]), {}),
        (404, "4.04", peer.envelope("cancel", "", stream_id="none"), {}),
        (413, "4.13", b" " * (1024 * 1024 + 1), {}),
        (415, "4.15", good, {"Content-Type": "text/plain"}),
    ]
    for status, code, body, headers in cases:
        refused = post(http, body, **headers)
        assert (refused.status_code, refused.json()["code"]) == (status, code)
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert ("WWW-Authenticate" in refused.headers) is (status == 401)
    assert http.get("/v1/messages").status_code == 405
    assert ReceivedEnvelope.objects.count() == 0


def test_a_stream_is_read_with_a_token_that_its_peer_signed(
    http: httpx.Client, peer: ForeignPeer
) -> None:
    other = add_peer("other.example")
    post(http, peer.envelope(stream_id="str-1"))
    now = datetime.now(UTC)
    for status, headers in (
        (401, {}),
        (401, {"Authorization": "Bearer uak_none"}),
        (401, peer.bearer(audience="did:web:other.example")),
        (401, peer.bearer(subject=other.did)),
        (401, peer.bearer(now=now - timedelta(hours=1))),
        (401, peer.bearer(issuer=other.did, subject=other.did)),
        (403, peer.bearer(scope="uamp:ask")),
        (404, other.bearer()),
        (400, {**peer.bearer(), "Last-Event-ID": "x"}),
    ):
        refused = http.get("/v1/stream/str-1", headers=headers)
        assert refused.status_code == status, headers


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("proxies", "certificates", "status"),
    [
        (["127.0.0.1"], ["client.example"], 200),
        (["127.0.0.1"], ["other.example"], 404),
        (["127.0.0.1"], ["stranger.example"], 401),
        (["127.0.0.1"], ["client.example/x"], 401),
        (["127.0.0.1"], ["client.example", "client.example"], 401),
        (["127.0.0.1"], [], 401),
        # Not from a proxy: a client may send any header.
        ([], ["client.example"], 401),
        (["10.0.0.1"], ["client.example"], 401),
    ],
)
def test_a_proxy_names_the_peer_whose_certificate_it_verified(
    http: httpx.Client,
    peer: ForeignPeer,
    settings: Any,
    proxies: list[str],
    certificates: list[str],
    status: int,
) -> None:
    settings.UAMP_CLIENT_CERTIFICATE_HEADER = "X-Client-Certificate"
    settings.UAMP_TRUSTED_PROXIES = proxies
    add_peer("other.example")
    post(http, peer.envelope(stream_id="str-1"))
    headers = [("X-Client-Certificate", name) for name in certificates]
    with http.stream("GET", "/v1/stream/str-1", headers=headers) as response:
        assert response.status_code == status
        if status == 200:
            assert [delta for _, delta in sse(response)][-1]["type"] == "done"
    manifest = http.get(
        "/.well-known/agent-manifest.json", headers={"Accept": "application/json"}
    ).json()
    assert manifest["auth"] == ["oauth2", "mtls"]


def test_the_same_ask_at_once_is_answered_once(http: httpx.Client, peer: ForeignPeer) -> None:
    ask = peer.envelope(stream_id="str-1")
    with thread_pool(8) as pool:
        answers = list(pool.map(lambda _: post(http, ask), range(16)))
    assert {answer.status_code for answer in answers} == {202}
    assert {answer.headers["Location"] for answer in answers} == {"/v1/stream/str-1"}
    assert EnvelopeStream.objects.count() == ReceivedEnvelope.objects.count() == 1
    assert Response.objects.count() == 1


def test_an_ask_whose_process_died_is_begun_by_its_repeat(
    http: httpx.Client, peer: ForeignPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "WAIT_SECONDS", 0.3)
    ask = peer.envelope(stream_id="str-1")
    assert post(http, ask).status_code == 202
    first = EnvelopeStream.objects.get().response_id
    EnvelopeStream.objects.update(response_id="")
    busy = post(http, ask)
    assert (busy.status_code, busy.json()["code"]) == (503, "5.04")
    assert int(busy.headers["Retry-After"]) >= 1
    ReceivedEnvelope.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    assert post(http, ask).json()["repeated"]
    assert EnvelopeStream.objects.get().response_id == first
    assert Response.objects.count() == 1


def test_a_peer_sends_as_many_envelopes_as_it_may(
    http: httpx.Client, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 2
    answers = [post(http, peer.envelope()) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert answers[-1].json()["code"] == "4.29"
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert ReceivedEnvelope.objects.count() == 2


def test_refused_envelopes_count_for_their_address(
    http: httpx.Client, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 2
    forged = {**peer.envelope(), "delta_window": 0}
    answers = [post(http, forged) for _ in range(2)] + [post(http, peer.envelope())]
    assert [answer.status_code for answer in answers] == [400, 400, 429]
    assert int(answers[-1].headers["Retry-After"]) >= 1


def test_the_documents_agree_with_each_other(http: httpx.Client) -> None:
    document = http.get("/.well-known/did.json").json()
    keys = keys_of_document(document, SERVER)
    response = http.get("/.well-known/agent-hub.json")
    assert response.headers["Content-Type"] == "application/hub+jws"
    hub = read_hub(response.text, did=SERVER, keys=keys)
    child = next(entry for entry in hub.manifests if entry.did == ECHO)
    path = child.url.removeprefix("https://chat.example")
    jws = http.get(path)
    assert jws.headers["Content-Type"] == "application/manifest+jws"
    assert document_sha256(jws.text) == child.sha256
    agent_keys = keys_of_document(http.get("/agents/echo/did.json").json(), ECHO)
    manifest = read_manifest(jws.text, did=ECHO, keys=agent_keys)
    assert manifest.intents == [
        "ask",
        "confirm",
        "deny",
        "progress",
        "cancel",
        "subscribe",
        "error",
    ]
    plain = http.get(path, headers={"Accept": "application/json"})
    assert plain.json()["agent"] == "uamp/1.0"
    not_modified = http.get(path, headers={"If-None-Match": jws.headers["ETag"]})
    assert not_modified.status_code == 304
    assert http.get("/agents/none/did.json").status_code == 404


def test_the_hub_is_made_once_for_many_requests(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents.cached_hub, "seconds", 3600)
    hub = "/.well-known/agent-hub.json"
    # The first one makes the key, after which nothing is kept.
    assert http.get(hub).status_code == 200
    first = http.get(hub)
    quick_agent("later", "echo")
    assert {http.get(hub).text for _ in range(3)} == {first.text}
    not_modified = http.get(hub, headers={"If-None-Match": f'"other", {first.headers["ETag"]}'})
    assert (not_modified.status_code, not_modified.content) == (304, b"")
    plain = http.get(hub, headers={"Accept": "application/json"})
    assert plain.headers["ETag"] != first.headers["ETag"]
    forget_all()
    names = [
        manifest["did"]
        for manifest in http.get(hub, headers=plain.request.headers).json()["manifests"]
    ]
    assert f"{SERVER}:agents:later" in names


def test_a_server_without_a_name_takes_no_envelopes(
    http: httpx.Client, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_FEDERATION_HOST = ""
    assert post(http, peer.envelope()).status_code == 404
    assert http.get("/.well-known/did.json").status_code == 404
    assert http.get("/.well-known/agent-manifest.json").status_code == 404
