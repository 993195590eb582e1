"""Hubs: added in the admin, their children trusted through them, and documents that lie."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from federation_app.envelope.errors import EnvelopeError
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.members.writing import new_envelope
from federation_app.exchange import admission
from federation_app.models import Peer, PeerKey, PeerTrust
from federation_app.peers import hubs, registry
from federation_app.peers.documents import documents_at
from tests.federation_app.hub import HUB, HUB_URL, MANIFEST, Name, PublishedHub, published
from tests.federation_app.peer import HOST, SERVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

pytestmark = pytest.mark.django_db
ONE, TWO = "did:web:one.example", "did:web:two.example"


@pytest.fixture
def hub(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[PublishedHub]:
    """Publish a hub with two children."""
    settings.UAMP_FEDERATION_HOST = HOST
    published_hub = PublishedHub()
    with published(published_hub, monkeypatch):
        yield published_hub


def add_hub(trust: PeerTrust = PeerTrust.SIGNED) -> Peer:
    """Trust the hub."""
    return hubs.add_hub(documents_at(HUB_URL), trust=trust, user=None)


def with_children() -> Peer:
    """Trust the hub and its children."""
    row = add_hub()
    assert hubs.trust_children(row) == ([ONE, TWO], [])
    return row


def pass_time(**passed: int) -> None:
    """Let time pass since everything was read."""
    for peer in Peer.objects.all():
        for name in ("checked_at", "documents_read_at", "failing_since"):
            if (at := getattr(peer, name)) is not None:
                setattr(peer, name, at - timedelta(**passed))
        peer.save()


def code_of(sender: Name) -> str:
    """Return the code with which an envelope of a name is refused; "" if it is accepted."""
    value = new_envelope(
        sender.signing, to=[SERVER], intent=Intent.ASK, content="hello", now=timezone.now()
    )
    try:
        try:
            admission.admit(json.dumps(value).encode())
        except registry.KeysDue as due:
            if registry.claim(due):
                registry.store_keys(due, registry.fetch_keys(due))
            admission.admit(json.dumps(value).encode())
    except EnvelopeError as error:
        return error.code.value
    return ""


def test_an_operator_is_shown_a_hub_and_trusts_it_and_its_children(
    client: Client, hub: PublishedHub
) -> None:
    client.force_login(User.objects.create_superuser("operator", password="password"))
    add = "/admin/federation_app/peer/add/"
    values = {"trust": "signed", "manifest_url": HUB_URL}
    response = client.post(add, values)
    for text in (
        HUB,
        hub.hub.keys[0].kid,
        "ask, inform",
        "max_body_kb 64, rate_lph 100",
        "https://hub.example/v1/messages",
        "wss://hub.example/uamp/1/ws",
        f"{ONE} (https://one.example{MANIFEST})",
        f"Its trust anchors: {HUB}.",
    ):
        assert text in response.content.decode(), text
    seen = response.context["adminform"].form.data["seen"]
    # The list changes before the operator agrees: nothing is trusted that was not shown.
    two = hub.children.pop()
    assert client.post(add, {**values, "seen": seen}).status_code == 200
    assert not Peer.objects.exists()
    hub.children.append(two)
    # A hub whose keys change without a word is no anchor.
    seen = client.post(add, values).context["adminform"].form.data["seen"]
    unsigned = client.post(add, {**values, "trust": "manifest", "seen": seen})
    assert b"signed or pinned" in unsigned.content
    seen = client.post(add, values).context["adminform"].form.data["seen"]
    assert client.post(add, {**values, "seen": seen}).status_code == 302
    row = Peer.objects.get()
    assert (row.did, row.trust, code_of(hub.children[0])) == (HUB, "signed", "4.01")
    page = f"/admin/federation_app/peer/{row.pk}"
    client.post(f"{page}/operate/children/", {"reason": "members"})
    children = row.children.order_by("did")
    assert [(child.did, child.trust, child.user) for child in children] == [
        (ONE, "signed", None),
        (TWO, "signed", None),
    ]
    assert [code_of(child) for child in hub.children] == ["", ""]
    assert client.get(f"{page}/change/").status_code == 200
    assert HUB in client.get("/admin/federation_app/peer/").content.decode()


@pytest.fixture
def here(hub: PublishedHub) -> dict[str, Callable[[Peer], object]]:
    """Return the events that may befall a hub whose children are trusted."""

    def expires(row: Peer) -> None:
        Peer.objects.filter(pk=row.pk).update(hub_expires_at=timezone.now())

    def unlists(row: Peer) -> None:
        hub.children.clear()
        hubs.read_again(row)

    return {
        "suspended": registry.suspend,
        "revoked": registry.revoke,
        "expired": expires,
        "unlisted": unlists,
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("event", ["suspended", "revoked", "expired", "unlisted"])
def test_what_ends_the_trust_in_a_hub_ends_that_in_its_children(
    event: str, hub: PublishedHub, here: dict[str, Callable[[Peer], object]]
) -> None:
    first_child = hub.children[0]
    row = with_children()
    child = Peer.objects.get(did=ONE)
    assert code_of(first_child) == ""
    here[event](row)
    assert code_of(first_child) == "4.01"
    assert not registry.accepted([child.pk])
    # A peer that an operator has added hangs on no hub.
    hub.children = [first_child, *hub.children[1:]]
    documents = documents_at(f"https://one.example{MANIFEST}")
    registry.add_peer(documents, trust=PeerTrust.MANIFEST, user=None)
    assert code_of(first_child) == ""


def test_a_suspended_hub_comes_back_with_its_children(hub: PublishedHub) -> None:
    row = with_children()
    registry.suspend(row)
    registry.resume(row)
    assert code_of(hub.children[0]) == ""
    # One that is listed again is trusted again; one that an operator has revoked is not.
    one, two = hub.children
    registry.revoke(Peer.objects.get(did=TWO))
    hub.children = []
    hubs.read_again(row)
    hub.children = [one, two]
    hubs.read_again(row)
    assert hubs.trust_children(row) == ([], [])
    assert [code_of(child) for child in (one, two)] == ["", "4.01"]


def lies(hub: PublishedHub) -> dict[str, Callable[[], object]]:
    """Return the lies that the documents of a hub can tell, by name."""
    other = Name("did:web:other.example")
    now = datetime.now(UTC)
    past = (now - timedelta(seconds=1)).isoformat()
    at = "hub.example/.well-known/agent-hub.json"
    change = hub.changes.update
    return {
        "unsigned": lambda: hub.replaced.update({at: json.dumps(hub.value(hub.hub)).encode()}),
        "a foreign key": lambda: setattr(hub.hub, "signer", other.keys[0]),
        "a key under its name": lambda: setattr(hub.hub, "signer", hub.hub.new_key(1)),
        "another issuer": lambda: change(issuer=other.did),
        "expired": lambda: change(expires_at=past),
        "a time without a zone": lambda: change(expires_at="2026-01-01T00:00:00"),
        "a time that is none": lambda: change(expires_at="soon"),
        "an unknown member": lambda: change(children=[]),
        "no list": lambda: change(manifests={}),
        "too many children": lambda: change(
            manifests=[{"did": f"did:web:a{n}.example", "url": "https://a/", "sha256": "0" * 64}
                       for n in range(257)]
        ),
        "a child at http": lambda: change(
            manifests=[{"did": ONE, "url": "http://one.example/", "sha256": "0" * 64}]
        ),
        "a digest that is none": lambda: change(
            manifests=[{"did": ONE, "url": "https://one.example/", "sha256": "0" * 63}]
        ),
        "another version": lambda: change(hub="uamp/2.0"),
        "too large": lambda: hub.replaced.update({at: b"x" * (512 * 1024 + 1)}),
        "missing": lambda: hub.replaced.update({at: b""}),
    }  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("lie", sorted(lies(PublishedHub())))
def test_a_hub_that_lies_is_not_added_and_not_read_again(lie: str, hub: PublishedHub) -> None:
    before = len(hub.hub.keys)
    lies(hub)[lie]()
    with pytest.raises(EnvelopeError) as refused:
        add_hub()
    assert refused.value.code in {"4.00", "4.01", "4.13"}
    assert not Peer.objects.exists()
    # The same from a hub that was honest before: what it said then still counts.
    hub.changes.clear()
    hub.replaced.clear()
    hub.hub.signer = None
    row = with_children()
    hub_row = row.hub
    lies(hub)[lie]()
    pass_time(minutes=11)
    assert hubs.read_due() == 3
    row.refresh_from_db()
    assert row.hub == hub_row
    assert row.problem
    assert code_of(hub.children[0]) == ""
    assert len(hub.hub.keys) == before


def test_an_older_list_of_a_hub_is_not_taken_for_the_current_one(hub: PublishedHub) -> None:
    child = hub.children[0]
    hub.issued_at = datetime.now(UTC)
    with_children()
    old = hub.document(hub.hub).encode()
    hub.children = hub.children[1:]
    hub.issued_at = datetime.now(UTC) + timedelta(seconds=1)
    hubs.read_again(Peer.objects.get(did=HUB))
    assert code_of(child) == "4.01"
    # Replayed, and without its time.
    for replaced, changes in ((old, {}), (None, {"issued_at": None})):
        hub.changes = changes
        hub.replaced = {} if replaced is None else {HUB_URL.removeprefix("https://"): replaced}
        with pytest.raises(EnvelopeError) as refused:
            hubs.read_again(Peer.objects.get(did=HUB))
        assert (refused.value.code, refused.value.detail) == ("4.01", "issued_at")
        assert code_of(child) == "4.01"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "lie", ["digest", "place", "signature", "name", "document", "missing", "itself"]
)
def test_a_child_that_is_not_what_its_hub_lists_becomes_no_peer(
    lie: str, hub: PublishedHub
) -> None:
    one, two = hub.children
    row = add_hub()
    entry = {"did": ONE, "url": f"https://one.example{MANIFEST}", "sha256": hub.listed(one).sha256}
    good = {"did": TWO, "url": f"https://two.example{MANIFEST}", "sha256": hub.listed(two).sha256}
    if lie == "digest":
        entry["sha256"] = "0" * 64
    elif lie == "place":
        entry["url"] = f"https://elsewhere.example{MANIFEST}"
    elif lie == "signature":
        one.signer = one.new_key(1)
    elif lie == "name":
        entry["did"] = "did:web:ONE.example"
    elif lie == "document":
        hub.replaced["one.example/.well-known/did.json"] = two.document()
    elif lie == "missing":
        hub.children = [two]
    else:
        entry["did"] = HUB
    hub.changes["manifests"] = [entry, good]
    child_dids, problems = hubs.trust_children(row)
    assert child_dids == [TWO]
    assert len(problems) == (lie != "itself")
    assert sorted(Peer.objects.values_list("did", flat=True)) == sorted([HUB, TWO])
    assert code_of(one) == "4.01"


def rotations(name: Name, hub: PublishedHub) -> dict[str, Callable[[], object]]:
    """Return the changes that a name's keys may make, by name; the first ones are legitimate."""
    old = name.keys[0]

    def publish(*keys: Any) -> Callable[[], object]:
        return lambda: setattr(name, "keys", list(keys))

    def unvouched(*keys: Any) -> Callable[[], object]:
        def change() -> None:
            # The list of the old key names the old key alone.
            host = name.did.removeprefix("did:web:")
            hub.replaced[f"{host}/.well-known/agent-hub.json"] = hub.document(name).encode()
            name.keys = list(keys)

        return change

    def expired() -> None:
        hub.changes["expires_at"] = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
        name.keys = [old, new]

    new = name.new_key(2)
    return {
        "true: beside the old one": publish(old, new),
        "true: the old one leaves": publish(old),
        "without a word": unvouched(old, new),
        "with a word that has expired": expired,
        "the new one signs for itself": publish(new, old),
        "the old one is gone": publish(new),
        "another key under the old id": publish(name.new_key(1)),
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("who", ["hub", "child"])
@pytest.mark.parametrize("change", sorted(rotations(Name(ONE), PublishedHub())))
def test_a_new_key_counts_with_the_word_of_an_old_one_alone(
    change: str, who: str, hub: PublishedHub
) -> None:
    with_children()
    name = hub.hub if who == "hub" else hub.children[0]
    old = name.keys[0]
    hub.children = [child_name for child_name in hub.children]  # noqa: C416 the list changes with the names
    rotations(name, hub)[change]()
    pass_time(minutes=11)
    peer = Peer.objects.get(did=name.did)
    keys = {key.kid: key.jwk() for key in registry.keys_of(peer, "")}
    is_true = change.startswith("true")
    expected = name.keys if is_true else [old]
    assert keys == {key.kid: key.public().jwk() for key in expected}
    assert bool(Peer.objects.get(did=name.did).problem) is not is_true
    if not is_true:
        assert code_of(Name(name.did, [key for key in name.keys if key is not old][:1])) == "4.01"
        # The old key counts for an hour, as if the document were away.
        Peer.objects.filter(pk=peer.pk).update(failing_since=timezone.now() - timedelta(minutes=61))
        with pytest.raises(EnvelopeError):
            registry.keys_of(Peer.objects.get(pk=peer.pk), "")
        # An operator who has asked the owner reads the new ones.
        registry.refresh(Peer.objects.get(pk=peer.pk))
        current_keys = PeerKey.objects.filter(peer=peer, revoked_at=None, retired_at=None)
        assert change.startswith("another") or current_keys.exists()


def test_one_process_reads_a_hub_that_is_due(hub: PublishedHub) -> None:
    row = with_children()
    assert hubs.read_due() == 0
    pass_time(minutes=11)
    hub.children[0].description = "Changed"
    request_count = len(hub.requests)
    assert hubs.read_due() == 3
    assert hubs.read_due() == 0
    assert len(hub.requests) > request_count
    child = Peer.objects.get(did=ONE)
    assert (child.manifest["description"], child.problem) == ("Changed", "")
    # The hub lists another manifest than the child has: what was verified before is kept.
    hub.changes["manifests"] = [
        {"did": ONE, "url": f"https://one.example{MANIFEST}", "sha256": "0" * 64}
    ]
    pass_time(minutes=11)
    hubs.read_due()
    child.refresh_from_db()
    assert (child.manifest["description"], bool(child.problem)) == ("Changed", True)
    registry.suspend(row)
    pass_time(minutes=11)
    assert hubs.read_due() == 0
