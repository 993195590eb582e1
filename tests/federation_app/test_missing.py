"""What a refusal with 404 means: a chat, a message, a file, an agent, or something unknown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from django.utils import timezone

from agents_app.outbound.guard import Posted
from chat_app.conversation import mirrors
from chat_app.models import Chat
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.guests.posts import refusal_in
from federation_app.models import ChatMirror, Peer
from federation_app.remote_agents.answers import refusal_of, uamp_error
from sessions_app.models import QueuedTurn
from tests import factories
from tests.client import wait_until
from tests.federation_app.foreign_guests import accept, envelope_of, invited, message
from tests.federation_app.shared_chats import counts
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import ServerAddress
    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Person

GENERAL: Final = ErrorCode.REQUEST_REFUSED
MEANINGS: Final[dict[bytes, ErrorCode]] = {
    b'{"code": "4.04", "detail": "No.", "reason": "chat"}': ErrorCode.CHAT_NOT_FOUND,
    b'{"code": "4.04", "detail": "No.", "reason": "by"}': ErrorCode.CHAT_NOT_FOUND,
    b'{"code": "4.04", "detail": "No.", "reason": "message"}': ErrorCode.MESSAGE_NOT_FOUND,
    b'{"code": "4.04", "reason": "message_not_found"}': ErrorCode.MESSAGE_NOT_FOUND,
    b'{"code": "4.04", "reason": "file"}': ErrorCode.CONTENT_NOT_FOUND,
    b'{"code": "4.04", "reason": "content_not_found"}': ErrorCode.CONTENT_NOT_FOUND,
    b'{"code": "4.04", "reason": "agent"}': ErrorCode.AGENT_NOT_FOUND,
    b'{"code": "4.04", "reason": "agent_disabled"}': ErrorCode.AGENT_DISABLED,
    # An `error` as deltas and envelopes have it.
    b'{"code": "4.04", "detail": "message"}': ErrorCode.MESSAGE_NOT_FOUND,
    # The stream of a response, and causes that do not belong to the status.
    b'{"code": "4.04", "reason": "stream_id"}': GENERAL,
    b'{"code": "4.04", "reason": "payment_required"}': GENERAL,
    b'{"code": "4.04", "reason": "unheard_of"}': GENERAL,
    b'{"code": "4.04", "reason": ["chat"]}': GENERAL,
    b'{"code": "4.04", "reason": "", "detail": "chat"}': GENERAL,
    b'{"code": "4.04"}': GENERAL,
    b'{"reason": "chat", "reason": "agent"}': GENERAL,
    b'["chat"]': GENERAL,
    b"<h1>Not Found</h1>": GENERAL,
    b"\xff": GENERAL,
    b"[" * 10_000: GENERAL,
    b"": GENERAL,
}


@pytest.mark.any_database
@pytest.mark.parametrize("body", MEANINGS, ids=lambda body: repr(body[:60]))
def test_a_404_means_what_its_cause_says(body: bytes) -> None:
    assert refusal_in(Posted(404, data=body)) == (404, MEANINGS[body])


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (402, ErrorCode.PAYMENT_REQUIRED),
        (403, ErrorCode.FORBIDDEN),
        (409, ErrorCode.FORBIDDEN),
        (413, ErrorCode.FORBIDDEN),
    ],
)
def test_only_a_404_is_asked_for_its_cause(status: int, code: ErrorCode) -> None:
    assert refusal_in(Posted(status, data=b'{"reason": "chat"}')) == (status, code)


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"code": "4.04", "detail": "agent"}, ErrorCode.AGENT_NOT_FOUND),
        ({"code": "4.04", "detail": "No.", "reason": "agent"}, ErrorCode.AGENT_NOT_FOUND),
        ({"code": "4.04"}, ErrorCode.AGENT_NOT_FOUND),
        ({"code": "4.04", "detail": "agent_disabled"}, ErrorCode.AGENT_DISABLED),
        ({"code": "4.04", "detail": "content_not_found"}, ErrorCode.CONTENT_NOT_FOUND),
        ({"code": "4.04", "detail": "chat"}, ErrorCode.CHAT_NOT_FOUND),
        ({"code": "4.04", "detail": "stream_id"}, ErrorCode.PROVIDER_ERROR),
        ({"code": "4.03", "detail": "agent"}, ErrorCode.FORBIDDEN),
    ],
)
def test_a_peer_that_is_asked_says_what_is_missing(
    payload: dict[str, Any], code: ErrorCode
) -> None:
    assert uamp_error(refusal_of(payload).error).code is code


@pytest.mark.any_database
def test_a_cause_survives_the_way_through_a_refusal() -> None:
    error = EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such file.", detail="file")
    assert refusal_of(error.payload()).error.detail == "file"


class Refusing(LocalServer):
    """Refuses each envelope with 404 and a body."""

    def __init__(self, body: bytes) -> None:
        super().__init__(RefusingHandler)
        self.body = body


class RefusingHandler(QuietHandler):
    """Refuses with the body of its server."""

    server: Refusing

    def do_POST(self) -> None:  # noqa: N802 the name is the interface of http.server
        """Read the envelope."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(404)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"code": "4.04", "reason": "chat"}', ErrorCode.CHAT_NOT_FOUND),
        (b'{"code": "4.04", "reason": "message_not_found"}', ErrorCode.MESSAGE_NOT_FOUND),
        (b"<h1>Not Found</h1>", GENERAL),
        (b'{"reason": "chat", "more": "' + b"x" * 20_000 + b'"}', GENERAL),
    ],
    ids=["chat", "message", "proxy", "too-large"],
)
def test_a_message_that_its_home_refuses_says_what_is_missing_there(
    body: bytes,
    code: ErrorCode,
    peer: ForeignPeer,
    web: httpx.Client,
    alice: Person,
    settings: Any,
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    assert web.get("/healthz").status_code == 200  # the process has begun
    chat_id = mirrors.make_mirror(home="client.example", title="Theirs", member=alice.user)
    session = factories.session(alice.user, Chat.objects.get(pk=chat_id))
    with serving(Refusing(body)) as server:
        Peer.objects.filter(pk=peer.row.pk).update(address=server.origin, deliver_at=timezone.now())
        ChatMirror.objects.create(peer=peer.row, home_chat_id="chat_home", chat_id=chat_id)
        row = factories.queued_turn(alice.user, session)
        wait_until(lambda: QueuedTurn.objects.get(pk=row.pk).code != "")
    row.refresh_from_db()
    assert (row.status, row.code) == ("failed", code)
    assert row.reason == "client.example refused this message."
    assert Peer.objects.get(pk=peer.row.pk).failures == 0


@pytest.mark.django_db(transaction=True)
def test_the_home_says_that_the_message_that_a_guest_answers_is_missing(
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    federated: ServerAddress,
    alice: Person,
) -> None:
    chat = shared_chat(alice, agents=())
    accept(peer, tell, invited(chat, alice))
    before = counts()
    raw = json.dumps(envelope_of(peer, "inform", message(chat, reply_to="msg_none")))
    response = httpx.post(
        f"{federated.http}/v1/messages",
        content=raw,
        headers={"Content-Type": "application/uamp+json"},
        timeout=60,
        trust_env=False,
    )

    posted = Posted(response.status_code, data=response.content)
    assert refusal_in(posted) == (404, ErrorCode.MESSAGE_NOT_FOUND)
    assert counts() == before
