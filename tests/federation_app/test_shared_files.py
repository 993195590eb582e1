"""Files of messages in a chat with members on two servers, both ways."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Chat, Content, ContentUse, Message
from federation_app.models import Peer
from sessions_app.data_rights.erasure import erase_person
from tests.client import wait_until
from tests.factories import png
from tests.federation_app.shared_chats import ALICE, joined
from tests.federation_app.two_servers import BOB, CutLine

if TYPE_CHECKING:
    import httpx

    from tests.federation_app.two_servers import OtherServer
    from tests.live_server import Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
TABLE = b"name,number\nalpha,1\n"
STORED = """
import json
from chat_app.models import Content
print(json.dumps([[row.owner_key, row.filename] for row in Content.objects.all()]))
"""


def upload(client: httpx.Client, name: str, type_: str, data: bytes) -> str:
    """Store a file, and return its id."""
    response = client.post("/api/v1/contents", files={"file": (name, data, type_)})
    return str(response.raise_for_status().json()["content_id"])


def send(client: httpx.Client, chat: str, text: str, *files: str) -> None:
    """Send a message with files."""
    body: dict[str, Any] = {"attachments": list(files), **({"content": text} if text else {})}
    client.post(f"/api/v1/chats/{chat}/messages", json=body).raise_for_status()


def shown_messages(client: httpx.Client, chat: str) -> list[tuple[str, str, list[bytes]]]:
    """Return the authors, texts and files of the messages of a chat, as a member reads them."""
    rows = client.get(f"/api/v1/chats/{chat}/messages?order=asc&limit=200").json()["data"]
    messages = []
    for row in rows:
        media = [item.get(item["type"]) for item in row.get("content_items") or ()]
        urls = [file["url"] for file in media if isinstance(file, dict)]
        data = [client.get(url).raise_for_status().content for url in urls]
        messages.append((row["name"], row["content"], data))
    return messages


def test_files_travel_both_ways_and_go_with_their_messages(
    other: OtherServer, web: httpx.Client, alice: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    picture = png()
    web.headers.update(alice.headers)
    with other.product.api("bob") as bob:
        send(web, chat.pk, "from home", upload(web, "a.png", "image/png", picture))
        wait_until(lambda: shown_messages(bob, mirror) == [(ALICE, "from home", [picture])])
        files = [
            upload(bob, "b.png", "image/png", picture),
            upload(bob, "t.csv", "text/csv", TABLE),
        ]
        send(bob, mirror, "", *files)
        wait_until(lambda: len(shown_messages(web, chat.pk)) == 2)
        assert shown_messages(web, chat.pk)[1] == (BOB, "", [picture, TABLE])
        wait_until(lambda: shown_messages(bob, mirror)[1:] == [("bob", "", [picture, TABLE])])
        assert bob.get(f"/api/v1/chats/{mirror}/queue").json()["data"] == []
        file_rows = json.loads(other.product.run(STORED))
        assert sorted(file_rows) == [["", "b.png"], ["", "t.csv"], [f"elsewhere:{mirror}", "a.png"]]
        guests = Content.objects.filter(owner_key=f"elsewhere:{chat.pk}")
        assert sorted(guests.values_list("filename", flat=True)) == ["b.png", "t.csv"]

        nothing_is_lost_in_an_outage(other, web, bob, chat, mirror)
        # Deleted with its message, on the other server too.
        first = Message.objects.get(chat=chat, content="from home")
        web.delete(f"/api/v1/messages/{first.pk}").raise_for_status()
        wait_until(lambda: ["a.png"] not in [row[1:] for row in stored_files(other, mirror)])
        second = Message.objects.get(chat=chat, sender_user__username=BOB, content="")
        bob.delete(f"/api/v1/messages/{second.pk}").raise_for_status()
        wait_until(lambda: not ContentUse.objects.filter(content__filename="t.csv").exists())
        assert not Content.objects.filter(filename__in=["b.png", "t.csv"]).exists()
    send(web, chat.pk, "to be erased", upload(web, "e.csv", "text/csv", TABLE + b"beta,2\n"))
    wait_until(lambda: "e.csv" in [name for _, name in stored_files(other, mirror)])
    erase_person(alice.user, reason="asked")
    wait_until(lambda: stored_files(other, mirror) == [])


def stored_files(other: OtherServer, mirror: str) -> list[list[str]]:
    """Return the files there that came from here."""
    rows: list[list[str]] = json.loads(other.product.run(STORED))
    return [row for row in rows if row[0] == f"elsewhere:{mirror}"]


def nothing_is_lost_in_an_outage(
    other: OtherServer, web: httpx.Client, bob: httpx.Client, chat: Chat, mirror: str
) -> None:
    """Let both send files while neither receives anything; then all is there, in order."""
    line = CutLine("127.0.0.1", other.product.port)
    Peer.objects.update(address=f"http://127.0.0.1:{line.port}")
    line.hold()
    for number in range(2):
        table = f"from,here\n{number},1\n".encode()
        send(web, chat.pk, f"here {number}", upload(web, f"h{number}.csv", "text/csv", table))
        table = f"from,there\n{number},1\n".encode()
        send(bob, mirror, f"there {number}", upload(bob, f"t{number}.csv", "text/csv", table))
    wait_until(lambda: Peer.objects.get().failures > 1)
    other.product.stop(signal.SIGKILL)
    other.product.start()
    line.mend()
    wait_until(lambda: len(shown_messages(web, chat.pk)) == 6)
    for place in ("here", "there"):
        own_messages = [
            message for message in shown_messages(web, chat.pk) if place in message[1].split()
        ]
        assert [(text, data) for _, text, data in own_messages] == [
            (f"{place} {number}", [f"from,{place}\n{number},1\n".encode()]) for number in range(2)
        ]
    here = [(text, data) for _, text, data in shown_messages(web, chat.pk)]
    wait_until(lambda: [(text, data) for _, text, data in shown_messages(bob, mirror)] == here)
    Peer.objects.update(address=other.product.url)
    line.close()
