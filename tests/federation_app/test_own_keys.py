"""The rotation of this server's own key, as a server that has pinned the old one sees it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from federation_app import own_names
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.members.writing import new_envelope
from federation_app.envelope.names.manifests import kid_of_document
from signing_app import owner_keys
from signing_app.models import PublishedKey
from tests.federation_app.peer import SERVER
from tests.federation_app.two_servers import OTHER, OtherServer

if TYPE_CHECKING:
    import httpx

pytestmark = pytest.mark.django_db(transaction=True)
OWNER = own_names.KEY_OWNER
MANIFEST = "/.well-known/agent-manifest.json"
HUB = "/.well-known/agent-hub.json"
AGE = """
from datetime import timedelta
from django.utils import timezone
from federation_app.models import Peer
Peer.objects.update(checked_at=timezone.now() - timedelta(minutes=2))
"""
KNOWN = """
import json
from federation_app.models import PeerKey
rows = PeerKey.objects.filter(peer__did={did!r}, retired_at=None, revoked_at=None)
print(json.dumps(sorted(row.kid.partition("#")[2] for row in rows)))
"""


def pass_time(passed: timedelta) -> None:
    """Let time pass for the keys of this server."""
    for row in PublishedKey.objects.filter(owner=OWNER):
        for name in ("created_at", "retired_at", "vouches_until"):
            if (at := getattr(row, name)) is not None:
                setattr(row, name, at - passed)
        row.save()
    owner_keys.forget()


def signing() -> str:
    return own_names.own_signer(SERVER).kid.partition("#")[2]


def posted(other: OtherServer, web: httpx.Client) -> int:
    """Post an envelope that this server signs to the other one, and return the status."""
    envelope = new_envelope(
        own_names.own_signer(SERVER),
        to=[OTHER],
        intent=Intent.ASK,
        content="hello",
        now=timezone.now(),
    )
    url = f"{other.product.url}/v1/messages"
    return web.post(
        url, json=envelope, headers={"Content-Type": "application/uamp+json"}
    ).status_code


def known_keys(other: OtherServer) -> Any:
    """Return the keys of this server that the other one trusts."""
    return json.loads(other.product.run(KNOWN.format(did=SERVER)))


def signers(web: httpx.Client) -> set[str]:
    """Return the keys that sign the manifest and the hub."""
    kids = set()
    for path in (MANIFEST, HUB):
        jws = web.get(path, headers={"Accept": "application/manifest+jws, application/hub+jws"})
        kids.add(kid_of_document(jws.text).partition("#")[2])
    return kids


def listed_keys(web: httpx.Client) -> set[str]:
    """Return the keys in the DID document."""
    document = web.get("/.well-known/did.json").json()
    return {key["id"].partition("#")[2] for key in document["verificationMethod"]}


@pytest.mark.long
def test_a_server_that_pinned_the_old_key_follows_without_an_operator(
    other: OtherServer, web: httpx.Client
) -> None:
    old = signing()
    assert (posted(other, web), known_keys(other)) == (202, [old])
    new = owner_keys.rotate(OWNER).kid
    # The new key is published, with the word of the old one, which still signs.
    assert (signing(), signers(web), listed_keys(web)) == (old, {old}, {old, new})
    assert posted(other, web) == 202
    pass_time(own_names.ANNOUNCED_FOR)
    # The other server has asked for nothing meanwhile; it does at the first unknown key.
    assert (signing(), signers(web), known_keys(other)) == (new, {old}, [old])
    other.product.run(AGE)
    assert posted(other, web) == 202
    assert known_keys(other) == sorted([old, new])
    # At the end of the overlap the old key is gone from both servers.
    pass_time(own_names.RETIRED_FOR + timedelta(minutes=1))
    assert (signers(web), listed_keys(web)) == ({new}, {new})
    third = owner_keys.rotate(OWNER).kid
    pass_time(own_names.ANNOUNCED_FOR)
    other.product.run(AGE)
    assert (signing(), posted(other, web)) == (third, 202)
    assert known_keys(other) == sorted([new, third])


def test_a_server_that_pinned_the_old_key_refuses_one_without_its_word(
    other: OtherServer, web: httpx.Client
) -> None:
    old = signing()
    assert posted(other, web) == 202
    # A key that leaked is withdrawn: the new one signs at once, and has no word.
    assert owner_keys.withdraw(old)
    new = signing()
    assert new != old
    assert (signers(web), listed_keys(web)) == ({new}, {new})
    other.product.run(AGE)
    assert (posted(other, web), known_keys(other)) == (401, [old])
