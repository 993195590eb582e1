"""A peer that an operator adds in the admin by the URL of its manifest."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.test import Client

from federation_app.models import Peer

ADD = "/admin/federation_app/peer/add/"
TRIES = 5
THERE = """
from tests.federation_app.importing import import_peer
import_peer({host!r}, {address!r})
"""


def import_peer(host: str, address: str) -> Peer:
    """Add the peer of a host, which is at this address, and return its row.

    The operator enters the URL of its manifest, sees what was found, and saves again.
    """
    did = f"did:web:{host}"
    operator, _ = User.objects.get_or_create(
        username="operator", defaults={"is_staff": True, "is_superuser": True}
    )
    client = Client(headers={"host": "localhost"})
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    url = f"https://{host}/.well-known/agent-manifest.json"
    values = {"trust": "signed", "manifest_url": url, "address": address}
    page = ""
    for _ in range(TRIES):
        # A busy machine may not answer in the time that fetching a document may take.
        page = client.post(ADD, values).content.decode()
        if f"Found {did}" in page:
            break
    seen = re.search(r'name="seen" value="([0-9a-f]{64})"', page)
    assert f"Found {did}" in page, page
    assert seen, page
    response = client.post(ADD, {**values, "seen": seen[1]})
    assert response.status_code == 302, response.content.decode()
    return Peer.objects.get(did=did)
