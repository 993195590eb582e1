"""Envelopes through nginx and Caddy, over every transport that each of them has."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest
from asgiref.sync import async_to_sync
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from federation_app.rpc import agent_pb2, agent_pb2_grpc
from federation_app.rpc.reflection import AGENT_SERVICE, REFLECTION_SERVICES
from tests.agents_app.web_server import write_certificate
from tests.deploy.proxies import (
    caddyfile_for_certificates,
    caddyfile_for_http3,
    running_caddy,
)
from tests.deploy.test_running_proxies import PROXIES
from tests.federation_app.http3_client import Answer, connected
from tests.federation_app.peer import ECHO, Records, sse, text_of
from tests.live_server import quick_agent

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import ServerAddress
    from tests.deploy.proxies import RunningProxy
    from tests.federation_app.peer import ForeignPeer

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60
WINDOW = 2
REFUSALS = 100
ENVELOPE = {"content-type": "application/uamp+json"}
TALKER = f"{ECHO.rpartition(':')[0]}:talker"
TEXT = " ".join(f"word{n}" for n in range(20))
CLIENT_CERTIFICATE = "X-Client-Certificate"


@pytest.fixture
def talker(federated: ServerAddress) -> ServerAddress:
    """Give the server, with an agent whose answer has many deltas."""
    quick_agent("talker", "echo", delay=0.01)
    return federated


def place(server: ServerAddress) -> str:
    """Return the host and port of the server behind a proxy."""
    return f"{server.host}:{server.port}"


@contextmanager
def client_of(
    proxy: RunningProxy, trust: ssl.SSLContext | None = None, *, http2: bool = False
) -> Iterator[httpx.Client]:
    """Yield a client that speaks one version of HTTP alone."""
    with httpx.Client(
        base_url=f"https://{proxy.place}",
        verify=trust or proxy.trust,
        trust_env=False,
        timeout=SECONDS,
        http1=not http2,
        http2=http2,
    ) as client:
        yield client


def post(client: httpx.Client, envelope: Any) -> httpx.Response:
    """Post an envelope."""
    return client.post("/v1/messages", content=json.dumps(envelope), headers=ENVELOPE)


def acknowledgement(delta: Any) -> dict[str, Any]:
    """Return the delta of a reader that has one."""
    members = {"delta_seq": 0, "stream_id": delta["stream_id"], "ts": delta["ts"]}
    return {**members, "type": "progress", "payload": {"ack": delta["delta_seq"]}}


@pytest.mark.parametrize("http2", [False, True], ids=["1.1", "2"])
@pytest.mark.parametrize("name", PROXIES)
def test_each_delta_arrives_before_it_is_acknowledged(
    name: str, talker: ServerAddress, peer: ForeignPeer, tmp_path: Path, *, http2: bool
) -> None:
    ask = peer.envelope(content=TEXT, to=[TALKER], stream_id="str-1", delta_window=WINDOW)
    with (
        PROXIES[name](tmp_path, web=[place(talker)]) as proxy,
        client_of(proxy, http2=http2) as client,
    ):
        accepted = post(client, ask)
        assert (accepted.status_code, accepted.http_version) == (
            202,
            "HTTP/2" if http2 else "HTTP/1.1",
        )
        path = accepted.headers["Location"]
        deltas = []
        with client.stream("GET", path, headers=peer.bearer()) as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            for number, delta in sse(response):
                deltas.append(delta)
                ack = peer.envelope("progress", json.dumps({"ack": int(number)}), stream_id="str-1")
                assert post(client, ack).status_code == 202
        refused = post(client, {**ask, "intent": "cancel"})
        assert (refused.status_code, refused.json()["code"]) == (401, "4.01")
    assert deltas[-1]["type"] == "done"
    assert text_of(deltas) == TEXT
    assert len(deltas) > WINDOW


@pytest.mark.parametrize("name", PROXIES)
def test_a_websocket_carries_records(
    name: str, talker: ServerAddress, peer: ForeignPeer, tmp_path: Path
) -> None:
    with (
        PROXIES[name](tmp_path, web=[place(talker)]) as proxy,
        Records(f"wss://{proxy.place}", tls=proxy.trust) as records,
    ):
        assert records.socket.subprotocol == "uamp.v1"
        records.send(peer.envelope(content=TEXT, to=[TALKER], delta_window=WINDOW))
        deltas = [records.receive()]
        while deltas[-1].get("type") not in {"done", "error"}:
            records.send(acknowledgement(deltas[-1]))
            deltas.append(records.receive())
    assert text_of(deltas) == TEXT
    assert len(deltas) > WINDOW


@pytest.mark.parametrize("name", PROXIES)
def test_grpc_and_its_reflection_pass_through(
    name: str, rpc_place: str, peer: ForeignPeer, settings: Any, tmp_path: Path
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 100_000
    ask = json.dumps(peer.envelope(content="hello there")).encode()
    with PROXIES[name](tmp_path, grpc=rpc_place) as proxy:
        credentials = grpc.ssl_channel_credentials(proxy.authority.read_bytes())
        with grpc.secure_channel(proxy.place, credentials) as channel:
            stub: Any = agent_pb2_grpc.AgentStub(channel)
            answers = stub.Stream(iter([agent_pb2.Record(json=ask)]), timeout=SECONDS)
            deltas = [json.loads(answer.json) for answer in answers]
            repeat = stub.Send(agent_pb2.EnvelopeRecord(envelope=ask), timeout=SECONDS)
            # Caddy loses a status in the first headers now and then.
            for _ in range(REFUSALS):
                with pytest.raises(grpc.RpcError) as refused:
                    stub.Send(agent_pb2.EnvelopeRecord(envelope=b"{"), timeout=SECONDS)
                error: Any = refused.value
                assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
            services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert text_of(deltas) == "hello there"
    assert repeat.repeated_envelope
    assert json.loads(dict(error.trailing_metadata())["uamp-error-bin"])["code"] == "4.00"
    assert {*services} == {AGENT_SERVICE, *REFLECTION_SERVICES}


def test_caddy_carries_envelopes_over_http3(
    talker: ServerAddress, peer: ForeignPeer, tmp_path: Path
) -> None:
    ask = json.dumps(peer.envelope(content=TEXT, to=[TALKER], stream_id="str-1")).encode()
    bearer = {name.lower(): value for name, value in peer.bearer().items()}

    @async_to_sync
    async def ask_and_read(proxy: RunningProxy) -> Answer:
        folder, authority = proxy.authority.parent, proxy.authority.name
        async with connected(proxy.port, folder, authority) as client:
            # Caddy 2.6 drops a body over HTTP/3 that comes without its length.
            headers = {**ENVELOPE, "content-length": str(len(ask))}
            accepted = await client.request("POST", "/v1/messages", headers, ask)
            assert accepted.headers[":status"] == "202", accepted.body
            path = accepted.headers["location"]
            return await client.request("GET", path, bearer)

    with running_caddy(tmp_path, web=[place(talker)], site=caddyfile_for_http3()) as proxy:
        stream = ask_and_read(proxy)
    assert stream.headers["content-type"] == "text/event-stream"
    lines = stream.body.decode().splitlines()
    deltas = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert deltas[-1]["type"] == "done"
    assert text_of(deltas) == TEXT


def test_caddy_names_the_peer_of_a_client_certificate_and_no_other(
    talker: ServerAddress, peer: ForeignPeer, settings: Any, tmp_path: Path
) -> None:
    settings.UAMP_CLIENT_CERTIFICATE_HEADER = CLIENT_CERTIFICATE
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1", "::1"]
    host = peer.did.removeprefix("did:web:")
    certificates = {name: tmp_path / f"{name}.pem" for name in (host, "other.example")}
    for name, certificate in certificates.items():
        write_certificate(certificate, name)
    forged = {CLIENT_CERTIFICATE: host}
    site = caddyfile_for_certificates(certificates[host])
    with running_caddy(tmp_path, web=[place(talker)], site=site) as proxy:
        trust = proxy.trust
        trust.load_cert_chain(certificates[host])
        with client_of(proxy, trust) as client:
            accepted = post(client, peer.envelope(content=TEXT, stream_id="str-1"))
            path = accepted.headers["Location"]
            for headers in ({}, {CLIENT_CERTIFICATE: "other.example"}):
                with client.stream("GET", path, headers=headers) as response:
                    assert response.status_code == 200
                    assert [delta for _, delta in sse(response)][-1]["type"] == "done"
        with client_of(proxy) as client:
            for headers in ({}, forged):
                assert client.get(path, headers=headers).status_code == 401
        # A certificate of another authority is none.
        trust = proxy.trust
        trust.load_cert_chain(certificates["other.example"])
        with client_of(proxy, trust) as client, pytest.raises(httpx.TransportError):
            client.get(path, headers=forged)
