"""Envelopes over gRPC, by its official client for Node, which signs and verifies there."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from federation_app.envelope.signatures.keys import encode64
from federation_app.models import EnvelopeStream
from tests.federation_app.envelope.test_other_implementations import PROGRAM as SIGNS
from tests.federation_app.peer import ECHO
from tests.interop.conftest import PROGRAM_SECONDS, command_of
from tests.interop.installation import REQUIREMENTS
from tests.live_server import quick_agent

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.federation_app.peer import ForeignPeer

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # The first test may have to install the client.
    pytest.mark.timeout(900),
]

SIGNATURES = SIGNS.with_name("signatures.mjs")
PROTO = REQUIREMENTS.parent / "federation_app" / "rpc" / "agent.proto"


def private_jwk(peer: ForeignPeer) -> dict[str, str]:
    """Return the key of a peer for a program in another language."""
    key = peer.key.key
    assert isinstance(key, Ed25519PrivateKey)
    return {**peer.key.public().jwk(), "d": encode64(key.private_bytes_raw())}


@pytest.mark.parametrize("proto", [[], [str(PROTO)]], ids=["reflection", "proto"])
def test_a_client_in_node(
    peer: ForeignPeer, federated: ServerAddress, rpc_place: str, proto: list[str]
) -> None:
    quick_agent("talker", "echo", delay=0.001)
    content = " ".join(f"word{n}" for n in range(200))
    task: dict[str, Any] = {
        "jwk": private_jwk(peer),
        "from": peer.did,
        "to": f"{ECHO.rpartition(':')[0]}:talker",
        "content": content,
    }
    try:
        command = command_of("node", "grpc_client.mjs")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the client cannot be installed: {error}")
    done = subprocess.run(  # noqa: S603 a program of ours
        [*command, str(SIGNATURES), rpc_place, federated.http, *proto],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        timeout=PROGRAM_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    result = json.loads(done.stdout)
    numbers = result.pop("numbers")
    assert numbers == [*range(len(numbers))]
    assert result == {
        "methods": ["/uamp.v1.Agent/Send", "/uamp.v1.Agent/Stream"],
        "end": "done",
        "text": content,
        "signed": {"text": content, "reply_to": True},
        "verified": [True, False],
        "full": {"repeated": True, "window": 2, "waiting": 0},
        "refused": ["UNAUTHENTICATED", "4.01"],
    }
    assert EnvelopeStream.objects.count() == 1
