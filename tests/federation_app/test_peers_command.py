"""`manage.py peers` as a process: HTTP/2 over TLS 1.3, and gRPC beside it."""

from __future__ import annotations

import signal
import ssl
import sys
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest

from federation_app.rpc import agent_pb2, agent_pb2_grpc
from tests import services
from tests.federation_app.hypercorn_server import answers
from tests.federation_app.local_certificate import certificate
from tests.programs import Program
from tests.uamp_project.serving import ROOT, data_dir, environment, manage

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["data_dir"]

pytestmark = pytest.mark.any_database


def test_peers_are_served_until_a_signal(data_dir: Path, tmp_path: Path) -> None:
    certfile, keyfile = certificate(tmp_path)
    port, rpc_port = services.free_port(), services.free_port()
    variables = {
        "UAMP_FEDERATION_HOST": "chat.example",
        "UAMP_GRPC_ADDRESS": f"127.0.0.1:{rpc_port}",
        "UAMP_GRPC_CERTIFICATE": str(certfile),
        "UAMP_GRPC_KEY": str(keyfile),
    }
    context = ssl.create_default_context(cafile=str(certfile))
    with Program(
        *(sys.executable, "manage.py", "peers", "--port", str(port)),
        *("--certificate", str(certfile), "--key", str(keyfile)),
        cwd=ROOT,
        env={**environment(data_dir), **variables},
    ) as program:
        with httpx.Client(
            base_url=f"https://localhost:{port}",
            http1=False,
            http2=True,
            verify=context,
            timeout=60,
        ) as client:
            program.wait_until(lambda: answers(client))
            document = client.get("/.well-known/did.json")
            assert (document.http_version, document.json()["id"]) == (
                "HTTP/2",
                "did:web:chat.example",
            )
        credentials = grpc.ssl_channel_credentials(certfile.read_bytes())
        with grpc.secure_channel(f"localhost:{rpc_port}", credentials) as channel:
            stub = agent_pb2_grpc.AgentStub(channel)
            with pytest.raises(grpc.RpcError) as refused:
                stub.Send(agent_pb2.EnvelopeRecord(envelope=b"{}"), timeout=60)
        error: Any = refused.value
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert program.end(signal.SIGTERM) == 0


def test_serve_does_not_start_where_grpc_cannot(data_dir: Path) -> None:
    variables = {"UAMP_FEDERATION_HOST": "chat.example", "UAMP_GRPC_ADDRESS": "0.0.0.0:0"}
    done = manage("serve", "--port", "0", "--no-worker", data_dir=data_dir, **variables)
    assert done.returncode == 1
    assert "envelopes are not sent without TLS" in done.stderr


def test_a_missing_certificate_is_one_line(data_dir: Path) -> None:
    done = manage("peers", "--certificate", "none.pem", "--key", "none.pem", data_dir=data_dir)
    assert done.returncode == 1
    assert done.stderr.endswith("CommandError: There is no file none.pem: check --certificate.\n")
