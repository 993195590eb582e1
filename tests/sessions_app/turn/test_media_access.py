"""Media in a message or a tool result must exist, and must be the sender's to show."""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

import uamp
from chat_app.contents import addresses, media_types, quota, reading_rights, references, storage
from chat_app.models import Content, ContentUse
from sessions_app.models import Response, Session
from tests import factories

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person

SEARCH = {"type": "function", "function": {"name": "search"}}


def picture(content_id: object) -> Frame:
    """Return an image item that refers to a content of this server."""
    return {"type": "image", "image": {"url": f"/api/content/{content_id}"}}


def base64_picture(data: bytes) -> Frame:
    """Return an image item with its bytes."""
    return {"type": "image", "image": base64.b64encode(data).decode(), "format": "png"}


def asked_for_a_tool(dial: Dial, who: Person) -> tuple[UampClient, str]:
    """Return a client whose response waits for a tool.call, and its call_id."""
    client = dial(who)
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Paris")
    return client, client.until("tool.call")[-1]["call_id"]


def refused(client: UampClient) -> str:
    """Return the code of the error that comes next."""
    code: str = client.until("session.error", "response.error", "response.done")[-1]["error"][
        "code"
    ]
    return code


@pytest.fixture
def secret(bob: Person) -> Content:
    """Give a file of another person."""
    return factories.content(bob.user)


def test_a_tool_result_does_not_open_another_persons_file(
    dial: Dial, alice: Person, secret: Content
) -> None:
    client, call_id = asked_for_a_tool(dial, alice)
    client.send("tool.result", call_id=call_id, result="22", content_items=[picture(secret.pk)])
    assert refused(client) == "content_not_found"
    # The call still waits: the client may answer with what is its own.
    own_content = factories.content(alice.user)
    client.send(
        "tool.result", call_id=call_id, result="22", content_items=[picture(own_content.pk)]
    )
    client.until("response.done")
    assert list(ContentUse.objects.values_list("content_id", flat=True)) == [own_content.pk]


def test_a_tool_result_with_a_file_that_is_not_there_lets_the_response_end(
    dial: Dial, alice: Person
) -> None:
    client, call_id = asked_for_a_tool(dial, alice)
    client.send("tool.result", call_id=call_id, result="22", content_items=[picture(uuid.uuid4())])
    assert refused(client) == "content_not_found"
    client.send("tool.result", call_id=call_id, result="22")
    assert client.until("response.done")


def test_the_media_of_a_tool_result_are_stored_and_not_kept_in_the_log(
    dial: Dial, alice: Person
) -> None:
    client, call_id = asked_for_a_tool(dial, alice)
    items = [base64_picture(factories.png())]
    client.send("tool.result", call_id=call_id, result="22", content_items=items)
    done = client.until("response.done")[-1]
    (result,) = (i for i in done["response"]["output"] if i["type"] == "tool_result")
    (item,) = result["tool_result"]["content_items"]
    content = Content.objects.get()
    assert item["image"] == {"url": addresses.content_url(content.pk)}
    assert storage.read(content) == factories.png()


def test_a_message_does_not_open_a_file_through_a_tool_result_in_it(
    dial: Dial, alice: Person, secret: Content
) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    hidden: dict[str, Any] = {
        "type": "tool_result",
        "tool_result": {"call_id": "c", "result": "1", "content_items": [picture(secret.pk)]},
    }
    message = {"role": "user", "content": "Look", "content_items": [hidden]}
    client.send("response.create", response={"messages": [message]})
    assert refused(client) == "content_not_found"
    assert not ContentUse.objects.exists()


def test_a_response_ends_although_a_file_of_its_output_was_deleted(
    dial: Dial, alice: Person
) -> None:
    client, call_id = asked_for_a_tool(dial, alice)
    response = Response.objects.get()
    own_content = factories.content(alice.user)
    reading_rights.use(response.chat_id, [str(own_content.pk), str(uuid.uuid4())])
    assert list(ContentUse.objects.values_list("content_id", flat=True)) == [own_content.pk]
    client.send("tool.result", call_id=call_id, result="22")
    client.until("response.done")


@pytest.mark.django_db
def test_nothing_is_kept_of_a_message_of_which_one_medium_is_wrong(
    settings: Settings, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    owner = quota.ContentOwner(user_id=factories.user().pk)
    items = [
        uamp.ImageContent(image=base64.b64encode(data).decode(), format="png")
        for data in (factories.png(), b"not a picture")
    ]
    with pytest.raises(media_types.InvalidMedia):
        references.ingest(items, owner=owner)
    assert not Content.objects.exists()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.django_db
@pytest.mark.parametrize("content_id", ["../v1/keys", "picture"])
def test_an_address_elsewhere_has_no_id_but_a_uuid(content_id: str) -> None:
    owner = quota.ContentOwner(user_id=factories.user().pk)
    url = uamp.MediaUrl(url="https://example.org/a.png")
    image = uamp.ImageContent(image=url, content_id=str(uuid.uuid4()))
    assert references.ingest([image], owner=owner) == [image]
    with pytest.raises(media_types.InvalidMedia):
        references.ingest([uamp.ImageContent(image=url, content_id=content_id)], owner=owner)


def test_a_turn_that_is_sent_again_does_not_store_its_media_again(
    dial: Dial, alice: Person, settings: Settings, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    image = base64.b64encode(factories.png()).decode()
    client = dial(alice)
    created = client.create_session(agent="echo")
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    for socket in (client, dial(alice)):
        if socket is not client:
            socket.send("session.create", session={}, resume=resume)
            socket.until("response.done")
        socket.send("input.image", image=image, format="png")
        socket.send_raw('{"type":"response.create","event_id":"same"}')
        socket.until("response.done")
    assert Content.objects.count() == 1
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_a_turn_that_is_refused_keeps_a_file_that_was_there_before(
    dial: Dial, alice: Person
) -> None:
    own_content = factories.content(alice.user)
    client = dial(alice)
    client.create_session(agent="echo")
    Session.objects.update(status="closed", closed_at=timezone.now())
    client.send("input.image", image={"url": addresses.content_url(own_content.pk)})
    client.send("input.image", image=base64.b64encode(factories.png()).decode(), format="png")
    client.send("response.create")
    assert refused(client) == "unknown_session"
    assert list(Content.objects.values_list("pk", flat=True)) == [own_content.pk]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["label", "elsewhere", "file gone"])
def test_a_medium_that_cannot_be_read_is_left_out_and_does_not_end_a_run(
    kind: str, settings: Settings, tmp_path: Path
) -> None:
    """conversation.history leaves out what raises LookupError; anything else ends the response."""
    settings.MEDIA_ROOT = tmp_path
    person = factories.user()
    content = factories.content(person)
    chat = factories.chat(person)
    content_id = {"label": "img1", "elsewhere": str(uuid.uuid4())}.get(kind, str(content.pk))
    if kind == "file gone":
        reading_rights.use(chat.pk, [content_id])
        content.blob.delete(save=False)
    with pytest.raises(LookupError):
        storage.read_in_chat(content_id, chat.pk)
