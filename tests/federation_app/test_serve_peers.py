"""`manage.py serve --peers`: ports for peers, with a certificate that the server makes."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import ssl
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest
from django.core.management.base import CommandError

from federation_app.rpc import agent_pb2, agent_pb2_grpc
from tests import services
from tests.federation_app.hypercorn_server import answers
from tests.programs import Program
from tests.uamp_project.serving import ROOT, Serving, data_dir, environment, manage
from uamp_project.management.serving_peers import (
    certificate_pair,
    peers_address,
    require_hypercorn,
    settings_pair,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["data_dir"]

pytestmark = pytest.mark.any_database
FINGERPRINT = re.compile(r"Certificate for peers: (\S+), SHA-256 ((?:[0-9A-F]{2}:){31}[0-9A-F]{2})")


def is_ready(serving: Serving) -> bool:
    """Return whether a server is ready; until then it may lack its ports for peers."""
    response = httpx.get(f"http://127.0.0.1:{serving.port}/readyz")
    assert response.status_code == 200 or "peers" in response.json()["reasons"]
    return response.status_code == 200


def documents_client(data_dir: Path, port: int) -> httpx.Client:
    """Return a client that trusts the server's own certificate, and speaks HTTP/2 alone."""
    context = ssl.create_default_context(cafile=str(data_dir / "peers" / "certificate.pem"))
    return httpx.Client(
        base_url=f"https://127.0.0.1:{port}", http1=False, http2=True, verify=context, timeout=60
    )


def test_serve_has_ports_for_peers_from_its_start_to_its_end(data_dir: Path) -> None:
    port, rpc_port = services.free_port(), services.free_port()
    variables: dict[str, Any] = {
        "UAMP_FEDERATION_HOST": "chat.example",
        "UAMP_PEERS_ADDRESS": f"127.0.0.1:{port}",
        # gRPC has the same certificate where it needs one.
        "UAMP_GRPC_ADDRESS": f"0.0.0.0:{rpc_port}",
    }
    fingerprints = []
    for _ in range(2):
        serving = Serving(data_dir, **variables)
        try:
            serving.process.wait_until(partial(is_ready, serving))
            output = serving.output.read_text()
            assert f"Peers: https://127.0.0.1:{port}, TCP and UDP." in output
            match = FINGERPRINT.search(output)
            assert match is not None, output
            fingerprints.append(match[2])
            with documents_client(data_dir, port) as client:
                document = client.get("/.well-known/did.json")
                assert (document.http_version, document.json()["id"]) == (
                    "HTTP/2",
                    "did:web:chat.example",
                )
                assert f'":{port}"' in document.headers["alt-svc"], "HTTP/3 is there, too"
            with (
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
                pytest.raises(OSError, match="in use"),
            ):
                datagrams.bind(("127.0.0.1", port))
            certificate = (data_dir / "peers" / "certificate.pem").read_bytes()
            credentials = grpc.ssl_channel_credentials(certificate)
            with grpc.secure_channel(f"127.0.0.1:{rpc_port}", credentials) as channel:
                stub = agent_pb2_grpc.AgentStub(channel)
                with pytest.raises(grpc.RpcError) as refused:
                    stub.Send(agent_pb2.EnvelopeRecord(envelope=b"{}"), timeout=60)
            error: Any = refused.value
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        finally:
            assert serving.process.end(signal.SIGTERM) == 0
        assert "Traceback" not in serving.output.read_text()
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
    assert len(set(fingerprints)) == 1, "the second start has the certificate of the first"


def test_serve_ends_if_it_cannot_listen_for_peers(data_dir: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = manage(
            *("serve", "--port", "0", "--no-worker", "--peers", str(port)), data_dir=data_dir
        )
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port} for peers: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("address", ["https://chat.example", "127.0.0.1:", "65536", ":8443", "::1"])
def test_an_invalid_address_for_peers_is_refused(address: str) -> None:
    with pytest.raises(CommandError, match="is not an address for peers"):
        peers_address({"peers": address, "host": "127.0.0.1"})


@pytest.mark.parametrize(
    ("option", "setting", "host", "address"),
    [
        (None, "", "127.0.0.1", ""),
        ("", "8443", "127.0.0.1", ""),
        (None, "8443", "127.0.0.1", "127.0.0.1:8443"),
        ("443", "8443", "::", "[::]:443"),
        ("chat.example:8443", "", "127.0.0.1", "chat.example:8443"),
        ("[::1]:8443", "", "127.0.0.1", "[::1]:8443"),
    ],
)
def test_an_address_for_peers_has_the_host_of_the_web_server_unless_it_names_another(
    settings: Any, option: str | None, setting: str, host: str, address: str
) -> None:
    settings.UAMP_PEERS_ADDRESS = setting
    assert peers_address({"peers": option, "host": host}) == address


def test_half_of_a_certificate_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.pem"
    file.touch()
    with pytest.raises(CommandError, match="There is no key for peers"):
        certificate_pair(str(file), "", print)
    with pytest.raises(CommandError, match="There is no certificate for peers"):
        certificate_pair("", str(file), print)
    assert certificate_pair(str(file), str(file), print) == (str(file), str(file))


def test_a_new_certificate_is_announced_with_what_peers_need(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    lines: list[str] = []
    settings_pair(lines.append)
    assert lines[0].startswith("Created a certificate for peers.")
    settings.ALLOWED_HOSTS = ["other.example"]
    lines.clear()
    settings_pair(lines.append)
    assert "Peers refuse this server until they have the new copy" in lines[0]
    assert str(tmp_path / "peers" / "certificate.previous.pem") in lines[0]
    lines.clear()
    settings_pair(lines.append)
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("version", "words"), [("0.19.0", "Hypercorn 0.19.0 is installed"), ("0.18.7", "")]
)
def test_another_version_of_hypercorn_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: str, words: str
) -> None:
    require_hypercorn()
    monkeypatch.setattr("importlib.metadata.version", lambda _name: version)
    if not words:
        require_hypercorn()
        return
    with pytest.raises(CommandError, match=words) as refused:
        require_hypercorn()
    assert 'pip install "uamp-server[peers]"' in str(refused.value)


def test_hypercorn_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(CommandError, match=r"uamp-server\[peers\]"):
        require_hypercorn()


def test_a_damaged_certificate_ends_serve_and_peers_with_a_sentence(data_dir: Path) -> None:
    folder = data_dir / "peers"
    folder.mkdir(exist_ok=True)
    aside = folder.rename(data_dir / "aside")
    try:
        folder.mkdir()
        (folder / "key.pem").write_text("-----BEGIN PRIVATE KEY-----")
        for arguments in (("serve", "--peers", "0"), ("peers", "--port", "0")):
            done = manage(*arguments, data_dir=data_dir)
            assert done.returncode == 1, arguments
            assert f"CommandError: {folder}/key.pem is damaged" in done.stderr
            assert "Traceback" not in done.stderr
    finally:
        shutil.rmtree(folder)
        aside.rename(folder)


def test_peers_makes_a_certificate_as_well(data_dir: Path) -> None:
    port = services.free_port()
    with Program(
        *(sys.executable, "manage.py", "peers", "--port", str(port)),
        cwd=ROOT,
        env={**environment(data_dir), "UAMP_FEDERATION_HOST": "chat.example"},
        log=data_dir / "peers.txt",
    ) as program:
        program.wait_until(lambda: FINGERPRINT.search(program.output))
        with documents_client(data_dir, port) as client:
            program.wait_until(lambda: answers(client))
            assert client.get("/.well-known/did.json").http_version == "HTTP/2"
        assert program.end(signal.SIGTERM) == 0
