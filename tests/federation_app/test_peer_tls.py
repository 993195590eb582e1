"""The trust of connections to peers, and the places where they may do without TLS."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from agents_app.models import RemoteProtocol
from agents_app.outbound import guard
from agents_app.outbound.rules import Unreachable, check_addresses
from agents_app.providers.addresses import guarded_connector
from agents_app.remote.addresses import policy, target_of
from agents_app.remote.models import called_of
from agents_app.remote.rules import problems_of
from agents_app.selectors import get_spec
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.names.identity import read_identity
from federation_app.peers import connections, documents
from federation_app.remote_agents.transports import rpc
from federation_app.remote_agents.transports.connection import ConnectionLost
from tests.agents_app.remote.remote_agents import remote_agent
from tests.agents_app.web_server import WebServer, web_server, write_certificate
from uamp_project import checks, deployment_checks
from upp import UPPError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PEER = "did:web:peer.example"


@pytest.fixture
def web() -> Iterator[WebServer]:
    """Run a web server on loopback, without TLS."""
    with web_server() as running:
        yield running


def test_documents_of_a_peer_with_its_own_certificate_need_the_setting(
    settings: Any, tmp_path: Path
) -> None:
    certificate = tmp_path / "server.pem"
    write_certificate(certificate, "127.0.0.1")
    with web_server(certificate) as server:
        settings.UAMP_REMOTE_ALLOW_HOSTS = [server.place]
        server.page("/.well-known/did.json", "no document")
        base = f"https://{server.place}"
        with pytest.raises(EnvelopeError, match="could not be fetched"):
            documents.read_keys(read_identity(PEER), base=base)
        assert server.asked == []
        settings.UAMP_PEER_CA_FILE = str(certificate)
        with pytest.raises(EnvelopeError) as refused:
            documents.read_keys(read_identity(PEER), base=base)
        assert "could not be fetched" not in str(refused.value), (
            "it was read, but is not a document"
        )
        assert len(server.asked) == 1
        certificate.unlink()
        # It was read once.
        assert connections.tls() is connections.tls()


def test_connections_to_peers_need_tls_1_3_and_documents_do_not(settings: Any) -> None:
    assert connections.tls().minimum_version is ssl.TLSVersion.TLSv1_3
    assert connections.document_tls().minimum_version is ssl.TLSVersion.TLSv1_2
    assert connections.tls().verify_mode is ssl.CERT_REQUIRED
    assert connections.tls().get_ca_certs(), "public authorities"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"", "it has no certificates"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "a damaged one"),
        (b"#" * (connections.CA_BYTES + 1), "more than 1048576 bytes"),
    ],
)
def test_a_file_without_certificates_of_peers_keeps_the_server_from_starting(
    settings: Any, tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "peers.pem"
    if content is not None:
        file.write_bytes(content)
    assert checks.check_peer_certificates() == []
    settings.UAMP_PEER_CA_FILE = str(file)
    (message,) = checks.check_peer_certificates()
    assert message.id == "uamp.E025"
    assert f"UAMP_PEER_CA_FILE is {file}" in message.msg
    assert words in message.msg
    with pytest.raises(ImproperlyConfigured, match=words):
        connections.tls()


def test_a_file_with_certificates_of_peers_passes_the_check(settings: Any, tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    write_certificate(certificate, "chat.example")
    settings.UAMP_PEER_CA_FILE = str(certificate)
    assert checks.check_peer_certificates() == []


def test_a_peer_on_loopback_needs_tls_unless_a_setting_says_otherwise(
    settings: Any, web: WebServer
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = [web.place]
    settings.UAMP_PEER_LOOPBACK_HTTP = False
    web.page("/")
    url = f"http://{web.place}"
    with pytest.raises(Unreachable) as refused:
        target_of(url, is_peer=True)
    assert refused.value.reason == "'http' is not https"
    with pytest.raises(EnvelopeError, match="could not be fetched"):
        documents.read_keys(read_identity(PEER), base=url)
    with pytest.raises(Unreachable):
        guard.post(url, policy(is_peer=True), body=b"{}", headers={})
    assert web.asked == []
    values = {"url": url, "model": PEER}
    for protocol in (RemoteProtocol.ENVELOPE, RemoteProtocol.ENVELOPE_GRPC):
        assert "url" in problems_of({**values, "protocol": protocol.value})
    # Other remote agents may still be there.
    assert "url" not in problems_of({**values, "protocol": "completions"})

    settings.UAMP_PEER_LOOPBACK_HTTP = True
    assert "url" not in problems_of({**values, "protocol": "envelope"})
    guard.post(url, policy(is_peer=True), body=b"{}", headers={})
    assert len(web.asked) == 1
    settings.UAMP_REMOTE_ALLOW_HOSTS = []
    with pytest.raises(Unreachable):
        target_of(url, is_peer=True)


def test_each_address_of_a_peer_is_checked_as_one() -> None:
    sources = {path: path.read_text() for path in (ROOT / "federation_app").rglob("*.py")}
    calls = [
        (path.name, call[0])
        for path, source in sources.items()
        for call in re.finditer(r"\b(?:remote_policy|policy|target_of)\([^)]*\)", source)
    ]
    assert len(calls) > 5
    assert [call for call in calls if "is_peer=True" not in call[1]] == []


@pytest.mark.django_db
def test_an_agent_of_a_peer_on_loopback_is_not_called_without_tls(settings: Any) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    row = remote_agent("http://127.0.0.1:9", protocol="envelope_grpc", model=PEER)
    assert called_of(get_spec(row.pk), response_id="resp_1", servers=0).target.is_loopback
    settings.UAMP_PEER_LOOPBACK_HTTP = False
    with pytest.raises(UPPError, match="may not be called"):
        called_of(get_spec(row.pk), response_id="resp_1", servers=0)


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], ["93.184.216.34"], ["::ffff:10.0.0.1"]]
)
async def test_the_setting_is_for_loopback_addresses_alone(
    settings: Any, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["peer.example:*"]
    target = target_of("http://peer.example:8000", is_peer=True)
    with pytest.raises(Unreachable, match="cannot be reached") as refused:
        check_addresses(target, addresses)
    assert "needs TLS" in refused.value.reason
    assert check_addresses(target, ["127.0.0.1", "::1"]) == ["127.0.0.1", "::1"]

    # The same host is called with TLS, and by other protocols without it.
    assert check_addresses(target_of("https://peer.example", is_peer=True), addresses)
    assert check_addresses(target_of("http://peer.example:8000"), addresses)

    async def look_up(*_: object) -> list[str]:
        return addresses

    monkeypatch.setattr(rpc, "look_up_async", look_up)
    with pytest.raises(ConnectionLost):
        await rpc._channel(target)


async def test_a_name_that_leads_elsewhere_on_the_second_look_up_is_not_called(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: each connection is checked by the address that it goes to."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["peer.example:*"]
    target = target_of("http://peer.example:8000", is_peer=True)
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def look_up(*_: object) -> list[str]:
        return answers.pop(0)

    monkeypatch.setattr("agents_app.providers.addresses.look_up_async", look_up)
    connector: Any = guarded_connector(target)
    resolver = connector._resolver
    (row,) = await resolver.resolve("peer.example", 8000)
    assert row["host"] == "127.0.0.1"
    with pytest.raises(OSError, match="cannot be reached"):
        await resolver.resolve("peer.example", 8000)
    await connector.close()


def test_a_redirect_leads_to_no_other_address_without_tls(settings: Any, web: WebServer) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = [web.place, "peer.example:*"]
    web.redirect("/", "http://peer.example:8000/")
    with pytest.raises(Unreachable) as refused:
        guard.fetch(
            f"http://{web.place}/",
            policy(is_peer=True),
            resolve=lambda host, _port, _seconds: (
                ["10.0.0.1"] if host == "peer.example" else ["127.0.0.1"]
            ),
        )
    assert refused.value.reason == "peer.example leads to 10.0.0.1, which needs TLS"
    assert len(web.asked) == 1


def test_a_document_is_not_redirected_to_a_host_without_tls(
    settings: Any, web: WebServer, tmp_path: Path
) -> None:
    certificate = tmp_path / "server.pem"
    write_certificate(certificate, "localhost")
    path = "/.well-known/did.json"
    web.page(path, "no document")
    with web_server(certificate) as server:
        settings.UAMP_FETCH_ALLOW_HOSTS = [f"localhost:{server.port}", web.place]
        settings.UAMP_PEER_CA_FILE = str(certificate)
        server.redirect(path, web.url(path))
        with pytest.raises(EnvelopeError, match="could not be fetched"):
            documents.read_keys(read_identity(f"did:web:localhost%3A{server.port}"))
        assert len(server.asked) == 1
    assert web.asked == []


def test_the_setting_is_not_for_the_internet(settings: Any) -> None:
    assert [message.id for message in deployment_checks.check_loopback_peers()] == ["uamp.E026"]
    settings.UAMP_PEER_LOOPBACK_HTTP = False
    assert deployment_checks.check_loopback_peers() == []
