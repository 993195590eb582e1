"""Peers: added by their manifest through the guard, in the admin, rotated, revoked; and liars."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.contrib.auth.models import User
from django.utils import timezone

from agents_app.outbound import guard
from agents_app.outbound.rules import Cleartext
from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.names.identity import document_of
from federation_app.envelope.names.manifests import MANIFEST_TYPE, AgentManifest, ManifestLimits
from federation_app.envelope.names.manifests import signed_document as manifest_of
from federation_app.envelope.signatures.keys import EnvelopeKey
from federation_app.exchange import admission
from federation_app.models import EnvelopeStream, Peer, PeerKey, PeerTrust, ReceivedEnvelope
from federation_app.peers import registry
from federation_app.peers.documents import documents_at
from tests.federation_app.peer import HOST, ForeignPeer, add_peer
from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client

pytestmark = pytest.mark.django_db


class Publisher:
    """A server of another name, reached over plain HTTP where its name leads to https."""

    def __init__(self) -> None:
        self.did = "did:web:worker.example"
        self.keys = [self.new_key(1)]
        self.signer = self.keys[0]
        self.requests: list[str] = []
        self.replaced: dict[str, bytes] = {}

    def new_key(self, number: int) -> EnvelopeKey:
        """Return another key of its name."""
        return EnvelopeKey(f"{self.did}#{number}", Ed25519PrivateKey.generate())

    def answer(self, path: str) -> bytes | None:
        """Return the document of a path; None for none."""
        self.requests.append(path)
        if path in self.replaced:
            return self.replaced[path]
        if path == "/.well-known/did.json":
            return json.dumps(document_of(self.did, [key.public() for key in self.keys])).encode()
        if path == "/.well-known/agent-manifest.json":
            manifest = AgentManifest(
                agent="uamp/1.0",
                description="A worker",
                intents=["ask"],
                body_types=["text/plain"],
                auth=["oauth2"],
                limits=ManifestLimits(),
            )
            return manifest_of(manifest, self.signer, type_=MANIFEST_TYPE).encode()
        return None


@contextmanager
def published(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 the handler's name
            body = publisher.answer(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

    with serving(LocalServer(Handler)) as server:
        fetch = guard.fetch

        def plain(url: str, policy: Any, **kwargs: Any) -> Any:
            host = server.origin.removeprefix("http://")
            policy = replace(policy, allowed=frozenset({host}), cleartext=Cleartext.ALLOWED)
            here = url.replace("https://worker.example", server.origin)
            answer = fetch(here, policy, **kwargs)
            return replace(answer, url=answer.url.replace(server.origin, "https://worker.example"))

        monkeypatch.setattr(guard, "fetch", plain)
        yield "https://worker.example/.well-known/agent-manifest.json"


@pytest.fixture
def publisher() -> Publisher:
    """Return a server that publishes its documents."""
    return Publisher()


@pytest.fixture
def manifest_url(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of the publisher's manifest."""
    with published(publisher, monkeypatch) as url:
        yield url


def later(peer: Peer, **passed: int) -> Peer:
    """Return a peer whose documents were read so long ago."""
    Peer.objects.filter(pk=peer.pk).update(checked_at=timezone.now() - timedelta(**passed))
    return Peer.objects.get(pk=peer.pk)


def kids(peer: Peer, kid: str = "") -> list[str]:
    return sorted(key.kid for key in registry.keys_of(peer, kid))


def test_a_peer_is_added_by_its_manifest_and_its_keys_rotate(
    publisher: Publisher, manifest_url: str
) -> None:
    peer = registry.add_peer(documents_at(manifest_url), trust=PeerTrust.MANIFEST, user=None)
    first, second = publisher.keys[0].kid, publisher.new_key(2)
    assert peer.manifest["description"] == "A worker"
    assert kids(peer) == [first]
    publisher.keys.append(second)
    request_count = len(publisher.requests)
    # A strange key costs no request in the first minute, and one after it.
    assert kids(peer, second.kid) == [first]
    assert len(publisher.requests) == request_count
    assert kids(later(peer, minutes=2), second.kid) == [first, second.kid]
    publisher.keys = [second]
    assert kids(later(peer, minutes=11)) == [second.kid]
    registry.revoke_key(PeerKey.objects.get(kid=second.kid))
    assert kids(later(peer, minutes=11)) == []


def test_the_document_of_a_peer_is_read_once_by_all_who_need_it(
    publisher: Publisher, manifest_url: str
) -> None:
    peer = registry.add_peer(documents_at(manifest_url), trust=PeerTrust.MANIFEST, user=None)
    later(peer, minutes=11)
    readers = [Peer.objects.get(pk=peer.pk) for _ in range(3)]
    request_count = len(publisher.requests)
    for reader in readers:
        assert kids(reader) == [publisher.keys[0].kid]
    assert len(publisher.requests) == request_count + 1


def test_another_key_under_a_known_id_is_not_accepted(
    publisher: Publisher, manifest_url: str
) -> None:
    peer = registry.add_peer(documents_at(manifest_url), trust=PeerTrust.MANIFEST, user=None)
    publisher.keys = [publisher.new_key(1)]
    assert kids(later(peer, minutes=11)) == []


def test_a_pinned_peer_keeps_its_keys_until_an_operator_reads_them(
    publisher: Publisher, manifest_url: str
) -> None:
    peer = registry.add_peer(documents_at(manifest_url), trust=PeerTrust.PINNED, user=None)
    second = publisher.new_key(2)
    publisher.keys.append(second)
    assert len(kids(later(peer, days=3), second.kid)) == 1
    assert registry.refresh(peer) == 2


def test_keys_are_good_for_an_hour_while_the_document_is_away(
    publisher: Publisher, manifest_url: str
) -> None:
    peer = registry.add_peer(documents_at(manifest_url), trust=PeerTrust.MANIFEST, user=None)
    publisher.replaced["/.well-known/did.json"] = b"not JSON"
    peer = later(peer, minutes=11)
    assert len(kids(peer)) == 1
    assert Peer.objects.get().problem
    Peer.objects.update(failing_since=timezone.now() - timedelta(minutes=61))
    with pytest.raises(EnvelopeError) as refused:
        kids(later(peer, minutes=11))
    assert refused.value.code == "4.01"


@pytest.mark.parametrize("lie", ["signer", "name", "place", "content", "document", "size"])
def test_documents_that_lie_add_no_peer(publisher: Publisher, manifest_url: str, lie: str) -> None:
    path = "/.well-known/agent-manifest.json"
    if lie == "signer":
        publisher.signer = publisher.new_key(9)
    elif lie == "name":
        other = EnvelopeKey("did:web:other.example#1", publisher.keys[0].key)
        publisher.signer = other
    elif lie == "place":
        publisher.replaced["/elsewhere.json"] = publisher.answer(path) or b""
        manifest_url = "https://worker.example/elsewhere.json"
    elif lie == "content":
        publisher.replaced[path] = b"eyJ9.e30.AA"
    elif lie == "document":
        publisher.replaced["/.well-known/did.json"] = json.dumps(
            {**document_of(publisher.did, []), "id": "did:web:other.example"}
        ).encode()
    else:
        publisher.replaced[path] = b"x" * 70_000
    with pytest.raises(EnvelopeError) as refused:
        registry.add_peer(documents_at(manifest_url), trust=PeerTrust.MANIFEST, user=None)
    assert refused.value.code in {"4.00", "4.01", "4.13"}
    assert not Peer.objects.exists()


def test_an_operator_adds_refreshes_and_revokes_a_peer(
    client: Client, publisher: Publisher, manifest_url: str
) -> None:
    operator = User.objects.create_superuser("operator", password="password")
    client.force_login(operator)
    add = "/admin/federation_app/peer/add/"
    assert client.get(add).status_code == 200
    wrong = client.post(add, {"trust": "manifest", "manifest_url": "https://worker.example/x"})
    assert b"4.01" in wrong.content
    values = {"trust": "pinned", "manifest_url": manifest_url, "user": operator.pk, "name": "W"}
    response = client.post(add, values)
    for text in (publisher.did, "A worker", publisher.keys[0].kid, "Save again to trust it."):
        assert text in response.content.decode()
    seen = response.context["adminform"].form.data["seen"]
    assert f'name="seen" value="{seen}"' in response.content.decode()
    # The keys change before the operator agrees: nothing is trusted that was not shown.
    first, publisher.keys[0] = publisher.keys[0], publisher.new_key(1)
    publisher.signer = publisher.keys[0]
    assert client.post(add, {**values, "seen": seen}).status_code == 200
    assert not Peer.objects.exists()
    publisher.signer = publisher.keys[0] = first
    assert client.post(add, {**values, "seen": seen}).status_code == 302
    peer = Peer.objects.get()
    assert (peer.did, peer.trust, peer.user, peer.name) == (publisher.did, "pinned", operator, "W")
    page = f"/admin/federation_app/peer/{peer.pk}"
    assert client.get(f"{page}/change/").status_code == 200
    publisher.keys.append(publisher.new_key(2))
    client.post(f"{page}/operate/refresh/", {"reason": "rotation"})
    assert PeerKey.objects.count() == 2
    client.post(f"{page}/operate/revoke/", {"reason": "left"})
    peer.refresh_from_db()
    assert peer.revoked_at is not None
    by_hand = {
        "trust": "operator",
        "did": "did:web:hand.example",
        "jwks": json.dumps({"keys": [publisher.keys[0].public().jwk() | {"kid": "k"}]}),
    }
    assert client.post(add, by_hand).status_code == 302
    assert PeerKey.objects.get(peer__did="did:web:hand.example").kid == "did:web:hand.example#k"
    for model in (Peer, PeerKey, EnvelopeStream, ReceivedEnvelope):
        assert client.get(f"/admin/federation_app/{model._meta.model_name}/").status_code == 200


def test_an_operator_limits_suspends_and_resumes_a_peer(client: Client, settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = HOST
    client.force_login(User.objects.create_superuser("operator", password="password"))
    peer = add_peer()
    page = f"/admin/federation_app/peer/{peer.row.pk}/operate"

    def operate(name: str, **values: str) -> None:
        client.post(f"{page}/{name}/", {"reason": "noisy", **values})
        peer.row.refresh_from_db()

    def limits() -> list[int | None]:
        return [peer.row.rate_lph, peer.row.max_body_kb, peer.row.max_streams]

    operate("limit", rate_lph="0")
    assert limits() == [None, None, None]
    operate("limit", rate_lph="5", max_body_kb="2")
    assert limits() == [5, 2, None]
    operate("limit")
    assert limits() == [None, None, None]
    operate("suspend")
    with pytest.raises(EnvelopeError) as refused:
        admission.admit(json.dumps(peer.envelope()).encode())
    assert (refused.value.code, refused.value.detail) == ("4.01", "peer")
    assert not registry.accepted([peer.row.pk])
    operate("resume")
    assert admission.admit(json.dumps(peer.envelope()).encode()).peer == peer.row


@pytest.mark.parametrize(
    ("limit", "value", "code"),
    [
        ("max_body_kb", 1, "4.13"),
        ("rate_lph", 2, "4.29"),
        ("kb_per_hour", 4, "4.29"),
    ],
)
def test_a_peer_has_limits_of_its_own(limit: str, value: int, code: str, settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = HOST
    peer, other = add_peer(), add_peer("other.example")
    Peer.objects.filter(pk=peer.row.pk).update(**{limit: value})
    long = "x" * 1025

    def send(who: ForeignPeer, content: str) -> None:
        admission.remember(admission.admit(json.dumps(who.envelope(content=content)).encode()))

    for _ in range(2):
        send(peer, "x" * 1024)
    with pytest.raises(admission.PeerRefused) as refused:
        send(peer, long)
    assert refused.value.peer == peer.row
    error = refused.value.error
    assert (error.code, error.detail) == (code, limit)
    assert (error.retry_after is not None) is (code == "4.29")
    assert ReceivedEnvelope.objects.count() == 2
    send(other, long)
    # What was sent more than an hour ago does not count.
    ReceivedEnvelope.objects.update(created_at=timezone.now() - timedelta(minutes=61))
    send(peer, "x" * 1024)


def test_the_staff_without_the_right_adds_no_peer(client: Client) -> None:
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert client.get("/admin/federation_app/peer/add/").status_code == 403


def test_a_peer_with_an_inactive_account_is_not_found() -> None:
    user = User.objects.create_user("payer", is_active=False)
    with pytest.raises(EnvelopeError):
        registry.find_peer(add_peer(user=user).did)


def test_old_envelopes_are_forgotten_when_they_cannot_come_again(settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = HOST
    peer: ForeignPeer = add_peer()
    admitted = admission.admit(json.dumps(peer.envelope()).encode())
    received, is_repeated = admission.remember(admitted)
    assert not is_repeated
    assert admission.remember(admitted) == (received, True)
    stream = EnvelopeStream.objects.get()
    for ack, last in ((0, 0), (7, 7), (3, 7)):
        admission.acknowledge(stream, ack)
        assert admission.acknowledged([stream.pk]) == {stream.pk: last}
    assert admission.forget_old(100) == 0
    old = timezone.now() - timedelta(hours=24, seconds=1)
    ReceivedEnvelope.objects.update(created_at=old)
    EnvelopeStream.objects.update(created_at=old)
    assert admission.forget_old(100) == 2
    assert not ReceivedEnvelope.objects.exists()
