"""Texts and names that do not fit into an envelope or an account, in a chat on two servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from federation_app.models import ChatFollower
from tests.client import wait_until
from tests.federation_app.shared_chats import ALICE, joined, message_id, rest, texts
from tests.federation_app.two_servers import BOB

if TYPE_CHECKING:
    import httpx

    from tests.federation_app.two_servers import OtherServer
    from tests.live_server import Dial, Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]
# Each \x01 has 7 bytes in the JSON within an envelope: these are more than 1 MiB. A text of nothing
# else would be blank.
PIECE = "a" + "\x01" * 29_999
LONG = PIECE * 5
FROM_HERE = "\n\n[Shortened; the full text is on chat.example]"
FROM_THERE = "\n\n[Shortened; the full text is on other.example]"
LONG_NAME = "n" * 149
SMALL = """
from federation_app.models import Peer
Peer.objects.update(manifest={"limits": {"max_body_kb": 200}})
"""
RENAME = """
from django.contrib.auth.models import User
User.objects.filter(username="bob").update(username={name!r})
"""


def is_shortened(text: str, note: str, full: str = LONG) -> bool:
    """Return whether a text is a note after the beginning of another text, with most of it."""
    body = text.removesuffix(note)
    return body != text and full.startswith(body) and len(body) > 0.9 * len(full)


def test_a_text_too_long_for_an_envelope_arrives_shortened_and_holds_up_nothing(
    other: OtherServer, web: httpx.Client, dial: Dial, alice: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    # One event has at most 256 KiB of JSON, but a message may have several.
    for _ in range(5):
        client.send("input.text", text=PIECE)
    client.send("response.create")
    wait_until(lambda: len(texts(chat)) == 1)
    ((_, sent_text),) = texts(chat)
    assert sent_text.count("\x01") == LONG.count("\x01")
    rest(web, alice, "POST", f"/chats/{chat.pk}/messages", {"content": "after"})
    wait_until(lambda: other.texts(mirror)[-1:] == [(ALICE, "after")])
    (_, shown_text), _ = other.texts(mirror)
    assert is_shortened(shown_text, FROM_HERE, sent_text)
    assert ChatFollower.objects.filter(chat_id=chat.pk).exists()

    edited = f"/messages/{message_id(chat, 'after')}"
    assert rest(web, alice, "PATCH", edited, {"content": LONG}).status_code == 200
    wait_until(lambda: is_shortened(other.texts(mirror)[-1][1], FROM_HERE))


def test_a_home_has_the_beginning_of_what_the_server_of_its_guest_has_in_full(
    other: OtherServer, web: httpx.Client, alice: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    first = other.post(f"/chats/{mirror}/messages", {"content": "short"})
    assert first["queued"]
    wait_until(lambda: texts(chat)[-1:] == [(BOB, "short")])
    own_message = message_id(chat, "short")
    wait_until(lambda: [text for _, text in other.texts(mirror)] == ["short"])
    other.patch(f"/messages/{own_message}", {"content": LONG})
    wait_until(lambda: is_shortened(texts(chat)[-1][1], FROM_THERE))
    assert other.texts(mirror)[-1][1] == LONG
    # A queued message is smaller, but a home may accept less.
    other.product.run(SMALL)
    other.post(f"/chats/{mirror}/messages", {"content": PIECE})
    other.post(f"/chats/{mirror}/messages", {"content": "and on"})
    wait_until(lambda: texts(chat)[-1:] == [(BOB, "and on")])
    assert is_shortened(texts(chat)[-2][1], FROM_THERE, PIECE)
    wait_until(lambda: [text for _, text in other.texts(mirror)[-2:]] == [PIECE, "and on"])
    assert other.get(f"/chats/{mirror}/queue")["data"] == []


def test_people_with_the_longest_names_write_on_both_servers(
    other: OtherServer, web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat, mirror = joined(other, web, alice)
    for person, end in ((bob, "b"), (mallory, "m")):
        User.objects.filter(pk=person.user.pk).update(username=LONG_NAME + end)
        new = {"user": LONG_NAME + end}
        response = rest(web, alice, "POST", f"/chats/{chat.pk}/participants", new)
        assert response.status_code < 300, response.text
        rest(web, person, "POST", f"/chats/{chat.pk}/messages", {"content": f"from {end}"})
    wait_until(lambda: len(other.texts(mirror)) == 2)
    # Names that begin alike stay apart.
    for person, (name, _) in zip((bob, mallory), other.texts(mirror), strict=True):
        assert name.endswith(f"n-{person.user.pk}@chat.example")
    assert ChatFollower.objects.filter(chat_id=chat.pk).exists()

    # A guest keeps the name under which they joined.
    other.product.run(RENAME.format(name=f"{LONG_NAME}b"))
    other.post(f"/chats/{mirror}/messages", {"content": "from the guest"})
    wait_until(lambda: texts(chat)[-1] == (BOB, "from the guest"))
    wait_until(lambda: other.texts(mirror)[-1] == (f"{LONG_NAME}b", "from the guest"))
