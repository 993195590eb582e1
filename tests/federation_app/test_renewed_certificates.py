"""Certificates that are replaced while the ports for peers are open."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from asgiref.sync import async_to_sync

from federation_app.peers import renewed_certificates
from federation_app.peers.renewed_certificates import RenewableCertificate
from federation_app.rpc import agent_pb2, agent_pb2_grpc
from federation_app.rpc.server import EnvelopeServer
from tests.federation_app.http3_client import Http3, connected
from tests.federation_app.local_certificate import certificate
from tests.federation_app.test_http2 import tls

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

FILES = ("certificate.pem", "key.pem")


@pytest.fixture(autouse=True)
def watchful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the files for each connection."""
    monkeypatch.setattr(renewed_certificates, "LOOK_SECONDS", 0.0)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Return a folder with another certificate of localhost, and its key."""
    folder = tmp_path / "new"
    folder.mkdir()
    certificate(folder)
    return folder


def replace(folder: Path, new: Path, *names: str) -> None:
    """Replace files as tools do that renew certificates."""
    for name in names or FILES:
        shutil.copy(new / name, folder / f"{name}.part")
        (folder / f"{name}.part").replace(folder / name)


def presented_certificate(client: httpx.Client, folder: Path) -> bytes:
    """Return the certificate that a new client is shown over TCP, if it trusts it."""
    with tls(client, folder, ssl.TLSVersion.TLSv1_3) as secured:
        assert (secured.version(), secured.selected_alpn_protocol()) == ("TLSv1.3", "h2")
        return secured.getpeercert(binary_form=True) or b""


def der(folder: Path) -> bytes:
    """Return the certificate in a folder."""
    return ssl.PEM_cert_to_DER_cert((folder / FILES[0]).read_text())


@pytest.mark.django_db(transaction=True)
def test_new_connections_over_tcp_have_the_new_certificate(
    hypercorn: httpx.Client, tmp_path: Path, new: Path
) -> None:
    before = der(tmp_path)
    assert presented_certificate(hypercorn, tmp_path) == before
    # Only the certificate is there yet: a client that trusts the old one is served.
    old = tmp_path / "old"
    old.mkdir()
    shutil.copy(tmp_path / FILES[0], old)
    replace(tmp_path, new, FILES[0])
    assert presented_certificate(hypercorn, old) == before
    replace(tmp_path, new, FILES[1])
    assert presented_certificate(hypercorn, new) == der(new) != before
    with pytest.raises(ssl.SSLCertVerificationError):
        presented_certificate(hypercorn, old)


@pytest.mark.django_db(transaction=True)
def test_new_connections_over_quic_have_the_new_certificate(
    hypercorn: httpx.Client, tmp_path: Path, new: Path
) -> None:
    port = hypercorn.base_url.port
    assert port is not None

    async def status(client: Http3) -> str:
        return (await client.request("GET", "/healthz", {})).headers[":status"]

    @async_to_sync
    async def renew() -> None:
        async with connected(port, tmp_path) as early:
            assert await status(early) == "200"
            (tmp_path / FILES[0]).rename(tmp_path / "old.pem")
            async with connected(port, tmp_path, "old.pem") as client:
                assert await status(client) == "200", "a file is missing for a moment"
            replace(tmp_path, new)
            async with connected(port, new) as client:
                assert await status(client) == "200"
            with pytest.raises(ConnectionError):
                async with connected(port, tmp_path, "old.pem"):
                    pass
            assert await status(early) == "200"

    renew()


def test_new_connections_over_grpc_have_the_new_certificate(
    settings: Any, tmp_path: Path, new: Path
) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    chain, key = certificate(folder)
    before = chain.read_bytes()
    settings.UAMP_GRPC_CERTIFICATE, settings.UAMP_GRPC_KEY = str(chain), str(key)
    codes: list[grpc.StatusCode] = []

    def call(channel: grpc.Channel) -> None:
        stub = agent_pb2_grpc.AgentStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            stub.Send(agent_pb2.EnvelopeRecord(envelope=b"{"), timeout=30)
        error: Any = refused.value
        codes.append(error.code())

    def channel(port: int, trusted: bytes) -> grpc.Channel:
        # Channels to one target share connections.
        options = [("grpc.use_local_subchannel_pool", 1)]
        credentials = grpc.ssl_channel_credentials(trusted)
        return grpc.secure_channel(f"localhost:{port}", credentials, options)

    def renew(port: int) -> None:
        after = (new / FILES[0]).read_bytes()
        with channel(port, before) as early:
            call(early)
            replace(folder, new)
            for trusted in (after, before):
                with channel(port, trusted) as late:
                    call(late)
            call(early)

    async def serve() -> None:
        server = EnvelopeServer("127.0.0.1:0")
        await server.start()
        try:
            await asyncio.to_thread(renew, server.port)
        finally:
            await server.stop(0)

    asyncio.run(serve())
    is_absent = [code is grpc.StatusCode.UNAVAILABLE for code in codes]
    assert is_absent == [False, False, True, False], codes


def test_a_pair_that_cannot_be_used_is_tried_once(
    tmp_path: Path, new: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chain, key = certificate(tmp_path)
    renewable = RenewableCertificate(str(chain), str(key))
    pairs: list[bytes] = []

    def load(pair: renewed_certificates.PemPair) -> bytes:
        pairs.append(pair.key)
        return pair.key

    assert renewable.renewed(load) is None
    replace(tmp_path, new, FILES[0])
    for _ in range(2):
        assert renewable.renewed(load) is None
    (warning,) = caplog.messages
    assert "the key does not match the certificate" in warning
    key.write_bytes(b"not a key")
    assert renewable.renewed(load) is None
    assert pairs == []
    replace(tmp_path, new, FILES[1])
    assert renewable.renewed(load) == (new / FILES[1]).read_bytes()
    assert renewable.renewed(load) is None


def test_the_files_are_looked_at_now_and_then(
    tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewed_certificates, "LOOK_SECONDS", 600.0)
    chain, key = certificate(tmp_path)
    renewable = RenewableCertificate(str(chain), str(key))
    replace(tmp_path, new)
    assert renewable.renewed(lambda pair: pair) is None
