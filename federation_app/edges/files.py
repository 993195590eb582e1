"""`GET /v1/files/{id}`: the files of shared chats, for the servers of their members (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.rest.contents.contents import BlobResponse, Part
from federation_app.edges.http import envelope_view, peer_of
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.exchange import admission
from federation_app.guests import serving
from federation_app.peers import quotas
from sessions_app import database
from sessions_app.access import rates

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase


@envelope_view("GET")
async def shared_file(request: HttpRequest, file_id: str) -> HttpResponseBase:
    """Send a file to a peer that may read it now, for a person who is in its chat.

    The peer shows a bearer token that it signed, or its certificate (envelope §6.2).
    """
    peer = await peer_of(request)
    query = serving.read_query(request.GET.dict())
    quota = await rates.limiter().take("envelopes", admission.principal_of(peer).counted_as)
    if not quota.allowed:
        raise EnvelopeError(
            EnvelopeCode.RATE_LIMITED, "You fetch too much.", retry_after=quota.retry_after
        )
    content = await database.run(serving.file_for, peer, file_id, query)
    await database.run(quotas.count_file, peer, content.size_bytes)
    headers = {"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff"}
    return BlobResponse(content.blob, Part(0, content.size_bytes), headers=headers)
