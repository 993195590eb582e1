"""Files of peers that are not what was said, do not come, or are not for the one who asks."""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from chat_app.models import Chat, Content, ContentUse, Message, Participant
from federation_app.guests import fetching, invitations
from federation_app.models import GuestInvitation, Peer
from sessions_app.models import QueuedTurn
from tests.client import wait_until
from tests.factories import png
from tests.federation_app.foreign_guests import GUEST, accept, invited, message
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.federation_app.peer import ForeignPeer
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)
TABLE = b"name,number\nalpha,1\n"
FILE = "5f3b6f0e-8d1c-4f4e-9a53-0d8f6c1d2e3f"


class FileServer(LocalServer):
    """A server that has one file, and answers each request for it as a test wants."""

    def __init__(self, answer: Callable[[QuietHandler], None]) -> None:
        self.paths: list[str] = []
        self.tokens: list[str] = []

        class Handler(QuietHandler):
            def do_GET(handler) -> None:  # noqa: N802, N805 the interface of http.server
                self.paths.append(handler.path)
                self.tokens.append(handler.headers.get("Authorization", ""))
                answer(handler)

            def do_POST(handler) -> None:  # noqa: N802, N805 as above
                handler.rfile.read(int(handler.headers["Content-Length"]))
                handler.send_response(202)
                handler.end_headers()

        super().__init__(Handler)


def sends(data: bytes, status: int = 200, **headers: str) -> Callable[[QuietHandler], None]:
    """Return an answer with these bytes."""

    def answer(handler: QuietHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def never_ends(handler: QuietHandler) -> None:
    """Send a byte now and then."""
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b"x")
            time.sleep(0.1)
    except OSError:
        return


def described(data: bytes = TABLE, type_: str = "text/csv", **changes: Any) -> dict[str, Any]:
    """Return a peer's description of a file."""
    sha256 = hashlib.sha256(data).hexdigest()
    description = {
        "file": FILE,
        "name": "t.csv",
        "type": type_,
        "size": len(data),
        "sha256": sha256,
    }
    return {**description, **changes}


LIES: dict[str, tuple[Callable[[QuietHandler], None], dict[str, Any]]] = {
    "hash": (sends(TABLE), described(sha256="0" * 64)),
    "more bytes": (sends(TABLE + b"x"), described()),
    "fewer bytes": (sends(TABLE[:-1]), described()),
    "type": (sends(png()), described(png(), "text/csv")),
    "no picture": (sends(TABLE), described(TABLE, "image/png")),
    "too large": (sends(TABLE), described(size=10**12)),
    "inside": (sends(b"", 302, Location="http://127.0.0.1:1/admin"), described()),
    "refused": (sends(b"", 404), described()),
}


@pytest.fixture
def mirror(
    peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person, settings: Any
) -> Chat:
    """Return the mirror here of a chat of the peer that alice has joined."""
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    content = {
        "invitation": str(uuid.uuid4()),
        "chat": "chat_theirs",
        "title": "Theirs",
        "by": GUEST,
        "to": "alice@chat.example",
    }
    assert tell(peer, "propose", content) == (202, "")
    row = GuestInvitation.objects.get()
    invitations.answer(user=alice.user, invitation_id=row.invitation_id, answer="accept")
    joined = entry(alice, 1, {"type": "participant.joined"})
    assert tell(peer, "notify", joined) == (202, "")
    return Chat.objects.get(home="client.example")


def entry(alice: Person, seq: int, event: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return an entry of the peer's log."""
    here = {"id": str(alice.user.pk), "name": "alice@chat.example"}
    members = {"members": [GUEST, here], "author": GUEST, **changes}
    place = {"start": 0, "after": seq - 1, "seq": seq}
    return {"chat": "chat_theirs", "title": "Theirs", **place, "event": event, **members}


def created(alice: Person, file: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the entry of a message with a file."""
    words = {"content": "words", "name": "gwen", "created_at": 1, "sender_kind": "user"}
    event = {"type": "message.created", "message": {**words, "id": "msg_theirs"}}
    return entry(alice, 2, event, files=[file], **changes)


def serve(peer: ForeignPeer, server: FileServer) -> None:
    """Let a server be at the peer's address."""
    Peer.objects.filter(pk=peer.row.pk).update(address=server.origin)


def fetched(web: httpx.Client, file: str, params: dict[str, str], headers: dict[str, str]) -> int:
    """Ask this server for a file without a key, and return the status."""
    url = str(web.base_url.join(f"/v1/files/{file}"))
    return httpx.get(url, params=params, headers=headers, trust_env=False).status_code


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lie", LIES)
def test_a_home_that_lies_about_a_file_gets_none_of_it_stored(
    lie: str,
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
) -> None:
    answer, file = LIES[lie]
    with serving(FileServer(answer)) as server:
        serve(peer, server)
        assert tell(peer, "notify", created(alice, file)) == (202, "")
        assert len(server.paths) == (0 if lie == "too large" else 1)
    stored = Message.objects.get(chat=mirror)
    assert stored.content == "words\n\n[1 file, on client.example]"
    assert stored.content_items == []
    assert not Content.objects.exists()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lie", LIES)
def test_a_guest_whose_server_lies_about_a_file_is_refused(
    lie: str,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    settings: Any,
) -> None:
    settings.UAMP_REMOTE_ALLOW_HOSTS = ["127.0.0.1:*"]
    chat = shared_chat(alice, agents=())
    accept(peer, tell, invited(chat, alice))
    answer, file = LIES[lie]
    with serving(FileServer(answer)) as server:
        serve(peer, server)
        code = "4.13" if lie == "too large" else "4.09"
        assert tell(peer, "inform", message(chat, files=[file]))[1] == code
    assert not Message.objects.exists()
    assert not Content.objects.exists()
    assert not ContentUse.objects.exists()


@pytest.mark.parametrize("answer", [never_ends, sends(b"", 500)])
def test_a_file_that_does_not_come_is_tried_again_and_given_up(
    answer: Callable[[QuietHandler], None],
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "MIN_SECONDS", 0.5)
    monkeypatch.setattr(fetching, "ATTEMPTS", 3)
    content = created(alice, described(size=10_000_000) if answer is never_ends else described())
    monkeypatch.setattr(fetching, "MAX_SECONDS", 0.5)
    with serving(FileServer(answer)) as server:
        serve(peer, server)
        codes = [tell(peer, "notify", content)[1] for _ in range(3)]
        assert codes == ["5.04", "5.04", ""]
        assert len(server.paths) == 3
    assert "[1 file, on client.example]" in Message.objects.get(chat=mirror).content
    assert not Content.objects.exists()


def test_a_server_that_is_away_is_waited_for(
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "ATTEMPTS", 2)
    Peer.objects.filter(pk=peer.row.pk).update(address="http://127.0.0.1:1")
    content = created(alice, described())
    assert [tell(peer, "notify", content)[1] for _ in range(4)] == ["5.04"] * 4
    assert not Message.objects.exists()
    monkeypatch.setattr(fetching, "UNREACHABLE_SECONDS", 0.0)
    assert tell(peer, "notify", content) == (202, "")
    assert "[1 file, on client.example]" in Message.objects.get(chat=mirror).content
    assert not Content.objects.exists()


def test_a_slow_file_comes_while_its_server_tries_again(
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 0.2)

    def slowly(handler: QuietHandler) -> None:
        time.sleep(1)
        sends(TABLE)(handler)

    with serving(FileServer(slowly)) as server:
        serve(peer, server)
        notice = created(alice, described())
        assert tell(peer, "notify", notice)[1] == "5.04"
        assert not Message.objects.exists()
        wait_until(lambda: tell(peer, "notify", notice) == (202, ""))
        assert len(server.paths) == 1
        assert server.tokens[0].startswith("Bearer ")
        assert f"by={alice.user.pk}" in server.paths[0]
    content = Content.objects.get()
    assert (content.owner, content.owner_key) == (None, f"elsewhere:{mirror.pk}")
    assert ContentUse.objects.get().chat_id == mirror.pk


def test_a_file_is_taken_while_the_task_that_stored_it_ends(
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 0.2)
    ends, store = threading.Event(), fetching._store

    def store_slowly(order: fetching._Order, data: bytes) -> None:
        store(order, data)
        assert ends.wait(30)

    monkeypatch.setattr(fetching, "_store", store_slowly)
    with serving(FileServer(sends(TABLE))) as server:
        serve(peer, server)
        notice = created(alice, described())
        try:
            assert tell(peer, "notify", notice)[1] == "5.04"
            wait_until(Content.objects.exists)
            assert tell(peer, "notify", notice) == (202, "")
        finally:
            ends.set()
        assert len(server.paths) == 1
    assert ContentUse.objects.get().chat_id == mirror.pk


def test_messages_that_are_never_sent_again_leave_room_for_files_of_others(
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetching, "PATIENCE_SECONDS", 0.0)
    for limit in ("WAITING", "WAITING_OF_PEER"):
        monkeypatch.setattr(fetching, limit, 1)
    monkeypatch.setattr(fetching, "REMEMBERED", 0)
    other = created(alice, described(file=str(uuid.uuid4()), name="other.csv"))
    with serving(FileServer(sends(TABLE))) as server:
        serve(peer, server)
        assert tell(peer, "notify", created(alice, described()))[1] == "5.04"
        wait_until(Content.objects.exists)
        wait_until(lambda: tell(peer, "notify", other) == (202, ""))
        assert len(server.paths) == 2


def test_no_file_is_fetched_for_people_who_lost_the_chat(
    mirror: Chat, peer: ForeignPeer, tell: Callable[..., tuple[int, str]], alice: Person
) -> None:
    with serving(FileServer(sends(TABLE))) as server:
        serve(peer, server)
        assert tell(peer, "notify", created(alice, described(), members=[GUEST])) == (202, "")
        assert server.paths == []
    assert not Content.objects.exists()
    assert not Participant.objects.filter(chat=mirror, user=alice.user, left_at=None).exists()


def test_a_home_reads_the_files_of_waiting_messages_alone(
    mirror: Chat, peer: ForeignPeer, web: httpx.Client, alice: Person, dial: Dial
) -> None:
    web.headers.update(alice.headers)
    Peer.objects.filter(pk=peer.row.pk).update(address="http://127.0.0.1:1")
    files = {"file": ("t.csv", TABLE, "text/csv")}
    content = web.post("/api/v1/contents", files=files).json()["content_id"]
    private = web.post("/api/v1/contents", files=files).json()["content_id"]
    path = f"/api/v1/chats/{mirror.pk}/messages"
    web.post(path, json={"attachments": [content]}).raise_for_status()
    turn = QueuedTurn.objects.get()

    def status(file: str, **query: str) -> int:
        params = {"chat": "chat_theirs", "ref": f"turn-{turn.pk}-x", **query}
        return httpx.get(
            f"{str(web.base_url).rstrip('/')}/v1/files/{file}",
            params=params,
            headers=peer.bearer(),
            trust_env=False,
        ).status_code

    assert status(content) == 200
    assert status(private) == 404
    assert status(content, ref=f"turn-{turn.pk + 1}-x") == 404
    assert status(content, chat="chat_other") == 404
    # Data in the message itself is refused: it is uploaded first.
    client = dial(alice)
    client.create_session(chat=mirror.pk)
    client.send("input.file", file="eA==", filename="x.txt", mime_type="text/plain")
    client.send("response.create")
    error = client.until("session.error")[-1]["error"]
    assert (error["code"], "Upload the files" in error["message"]) == ("invalid_event", True)
    assert QueuedTurn.objects.count() == 1


def test_a_waiting_message_keeps_its_files_when_its_sender_may_no_longer_share_them(
    mirror: Chat,
    peer: ForeignPeer,
    tell: Callable[..., tuple[int, str]],
    web: httpx.Client,
    alice: Person,
    bob: Person,
) -> None:
    Peer.objects.filter(pk=peer.row.pk).update(address="http://127.0.0.1:1")
    source = shared_chat(bob, alice, agents=())
    files = {"file": ("t.csv", TABLE, "text/csv")}
    content = web.post("/api/v1/contents", files=files, headers=bob.headers).json()["content_id"]
    body = {"attachments": [content]}
    path = f"/api/v1/chats/{source.pk}/messages"
    web.post(path, json=body, headers=bob.headers).raise_for_status()
    in_source = Participant.objects.filter(chat=source, user=alice.user)
    in_source.update(role="admin")
    path = f"/api/v1/chats/{mirror.pk}/messages"
    web.post(path, json=body, headers=alice.headers).raise_for_status()
    turn = QueuedTurn.objects.get()

    in_source.update(role="member")
    ordered = created(alice, described(file=content))
    ordered["author"] = ordered["members"][1]
    ordered["event"]["message"] |= {
        "content": turn.text,
        "client_event_id": f"turn-{turn.pk}-{0:024x}",
    }
    assert tell(peer, "notify", ordered) == (202, "")

    assert not QueuedTurn.objects.exists(), "its home has ordered it"
    stored = Message.objects.get(chat=mirror)
    assert stored.sender_user == alice.user
    assert ContentUse.objects.get(chat=mirror).content_id == uuid.UUID(content)
