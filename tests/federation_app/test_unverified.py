"""The cost of an envelope before its signature is verified, and whose quota it uses up."""

from __future__ import annotations

import hashlib
import json
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.signatures import canonical
from federation_app.exchange import admission
from federation_app.models import ReceivedEnvelope
from federation_app.peers import registry
from tests.client import wait_until
from tests.federation_app.peer import ForeignPeer, add_peer
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import ServerAddress

    Post = Callable[..., httpx.Response]

pytestmark = pytest.mark.django_db(transaction=True)
WAIT_SECONDS = 60
HERE, ELSEWHERE = "192.0.2.1", "198.51.100.1"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list of the forms that are hashed."""
    forms: list[bytes] = []

    def sha256(form: bytes) -> Any:
        forms.append(form)
        return hashlib.sha256(form)

    monkeypatch.setattr(canonical, "hashlib", SimpleNamespace(sha256=sha256))
    return forms


@pytest.fixture
def post(federated: ServerAddress, settings: Any) -> Iterator[Post]:
    """Return a function that posts an envelope from an address."""
    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.1"]

    with httpx.Client(base_url=federated.http, timeout=60, trust_env=False) as client:

        def posted(envelope: Any, address: str = HERE) -> httpx.Response:
            headers = {"Content-Type": "application/uamp+json", "X-Forwarded-For": address}
            return client.post("/v1/messages", content=json.dumps(envelope), headers=headers)

        yield posted


def forged(peer: ForeignPeer) -> Any:
    """Return an envelope of a peer whose content another has changed."""
    return {**peer.envelope(), "body": {"type": "text/plain", "content": "pay"}}


def test_an_envelope_of_a_stranger_is_not_hashed(peer: ForeignPeer, hashed: list[bytes]) -> None:
    raw = json.dumps(peer.envelope(content="\n" * 1000, ext={"x": 0.5})).encode()
    registry.revoke(peer.row)
    hashed.clear()
    with pytest.raises(EnvelopeError) as refused:
        admission.admit(raw)
    assert (refused.value.code, refused.value.detail) == ("4.01", "peer")
    assert hashed == []


def test_an_envelope_under_an_unknown_key_is_not_hashed(
    peer: ForeignPeer, hashed: list[bytes]
) -> None:
    other = add_peer("other.example")
    value = {**peer.envelope(), "from": other.did}
    hashed.clear()
    with pytest.raises(EnvelopeError) as refused:
        admission.admit(json.dumps(value).encode())
    assert (refused.value.code, refused.value.detail) == ("4.01", "kid")
    assert hashed == []


def test_an_envelope_is_hashed_once(peer: ForeignPeer, hashed: list[bytes]) -> None:
    raw = json.dumps(peer.envelope()).encode()
    hashed.clear()
    admission.remember(admission.admit(raw))
    assert len(hashed) == 1


def test_envelopes_beyond_the_quota_of_a_peer_are_not_verified(
    post: Post, peer: ForeignPeer, hashed: list[bytes], settings: Any
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 2
    envelopes = [peer.envelope() for _ in range(4)]
    assert [post(envelope).status_code for envelope in envelopes[:2]] == [202, 202]
    hashed.clear()
    # From another address as well: the quota is that of the peer.
    refused = [post(envelopes[2]), post(envelopes[3], ELSEWHERE)]
    assert [(response.status_code, response.json()["code"]) for response in refused] == [
        (429, "4.29")
    ] * 2
    assert envelopes[2]["id"] not in str(hashed)
    assert envelopes[3]["id"] not in str(hashed)
    assert ReceivedEnvelope.objects.count() == 2


def test_a_forger_uses_up_the_quota_of_its_own_address_alone(
    post: Post, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 2
    answers = [post(forged(peer), ELSEWHERE) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [401, 401, 429, 429]
    assert [post(peer.envelope()).status_code for _ in range(3)] == [202, 202, 429]
    assert ReceivedEnvelope.objects.count() == 2


def test_a_peer_beyond_its_quota_leaves_others_of_its_address_theirs(
    post: Post, peer: ForeignPeer, settings: Any
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 2
    assert [post(peer.envelope()).status_code for _ in range(5)] == [202, 202, 429, 429, 429]
    assert post(add_peer("other.example").envelope()).status_code == 202


def test_an_envelope_is_counted_before_it_is_verified(
    post: Post, peer: ForeignPeer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.UAMP_ENVELOPES_PER_MINUTE = 1
    first, second = forged(peer), forged(peer)
    verifying: list[bytes] = []
    may_end = threading.Event()

    def sha256(form: bytes) -> Any:
        verifying.append(form)
        if len(verifying) == 1:
            may_end.wait(WAIT_SECONDS)
        return hashlib.sha256(form)

    monkeypatch.setattr(canonical, "hashlib", SimpleNamespace(sha256=sha256))
    with thread_pool(1) as pool:
        try:
            under_way = pool.submit(post, first)
            wait_until(lambda: bool(verifying))
            assert post(second).status_code == 429
            assert second["id"] not in str(verifying)
        finally:
            may_end.set()
        assert under_way.result(WAIT_SECONDS).status_code == 401
