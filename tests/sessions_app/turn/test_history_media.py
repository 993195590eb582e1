"""The media of a history that a client sends with its turn are stored like those of inputs."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from chat_app.contents import addresses, storage
from chat_app.models import Content, ContentUse, Message
from sessions_app.models import Response
from tests import factories
from tests.client import TERMINAL, Frame
from tests.sessions_app.model_server import model_server

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial, Person

PNG = factories.png()
ENCODED = base64.b64encode(PNG).decode()
DATA_URL = f"data:image/png;base64,{ENCODED}"
PARTS: list[Frame] = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": DATA_URL}},
]
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "


def ask_with_history(client: UampClient, *messages: Frame) -> Frame:
    """Ask with a history and return the last frame."""
    client.send("response.create", response={"messages": list(messages)})
    return client.until("session.error", *TERMINAL)[-1]


def picture(medium: object, **members: object) -> Frame:
    """Return an image item."""
    return {"type": "image", "image": medium, "format": "png", **members}


def spoken(*items: Frame) -> list[Frame]:
    """Return a history in which the user said this before the last message."""
    return [
        {"role": "user", "content": "Look", "content_items": [*items]},
        {"role": "assistant", "content": "A square."},
        {"role": "user", "content": "Which colour?"},
    ]


def test_a_picture_in_a_history_is_stored_and_shown_to_the_model(dial: Dial, alice: Person) -> None:
    with model_server() as model:
        model.agent()
        client = dial(alice)
        client.create_session(agent="model")
        history = [{"role": "user", "content": PARTS}, *spoken()[1:]]
        assert ask_with_history(client, *history)["type"] == "response.done"
        content = Content.objects.get()
        assert (content.owner_id, storage.read(content)) == (alice.user.pk, PNG)
        assert ENCODED not in json.dumps(Response.objects.get().request)
        # The label names the content, so that the agent's tools may be given it.
        first = json.dumps(model.last["messages"][0])
        assert f"content_id={content.pk}" in first
        assert DATA_URL in first


@pytest.mark.parametrize(
    "item",
    [
        {"type": "audio", "audio": base64.b64encode(WAV).decode(), "format": "wav"},
        {
            "type": "file",
            "file": base64.b64encode(b"a,b\n1,2\n").decode(),
            "filename": "a.csv",
            "mime_type": "text/csv",
        },
        {
            "type": "tool_result",
            "tool_result": {"call_id": "c", "result": "1", "content_items": [picture(ENCODED)]},
        },
    ],
)
def test_every_kind_of_medium_is_stored(dial: Dial, alice: Person, item: Frame) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    assert ask_with_history(client, *spoken(item))["type"] == "response.done"
    content = Content.objects.get()
    request = Response.objects.get().request
    assert addresses.content_url(content.pk) in json.dumps(request["context"])
    assert ContentUse.objects.get().content_id == content.pk


def test_what_a_client_sends_again_is_stored_and_counted_once(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_STORED_FILES_PER_USER = 1
    for _ in range(2):
        client = dial(alice)
        client.create_session(agent="echo")
        # First as the message of its turn, then as the history of the next one.
        message: Frame = {"role": "user", "content": "Look", "content_items": [picture(ENCODED)]}
        assert ask_with_history(client, message)["type"] == "response.done"
        assert ask_with_history(client, message, *spoken()[1:])["type"] == "response.done"
    content = Content.objects.get()
    chats = set(Response.objects.values_list("chat_id", flat=True))
    assert set(ContentUse.objects.values_list("chat_id", "content_id")) == {
        (chat_id, content.pk) for chat_id in chats
    }


def test_the_same_bytes_of_another_person_are_their_own(
    dial: Dial, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        client = dial(person)
        client.create_session(agent="echo")
        ask_with_history(client, *spoken(picture(ENCODED)))
    owners = set(Content.objects.values_list("owner_id", flat=True))
    assert owners == {alice.user.pk, bob.user.pk}


def test_a_history_counts_against_the_quota(dial: Dial, alice: Person, settings: Settings) -> None:
    settings.UAMP_STORED_BYTES_PER_USER = len(PNG) - 1
    client = dial(alice)
    client.create_session(agent="echo")
    assert ask_with_history(client, *spoken(picture(ENCODED)))["error"]["code"] == "quota_exceeded"
    assert not Content.objects.exists()
    assert not Message.objects.exists()


@pytest.mark.parametrize("last", [picture("no base64!"), picture(ENCODED, content_id="no uuid")])
def test_a_refused_turn_keeps_nothing_of_its_history(
    dial: Dial, alice: Person, last: dict[str, Any]
) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    history = spoken(picture(ENCODED))
    history[-1]["content_items"] = [last]
    assert ask_with_history(client, *history)["error"]["code"] == "invalid_media"
    assert not Content.objects.exists()


def test_a_history_never_opens_a_file_of_another_person_and_leaves_it_out(
    dial: Dial, alice: Person, bob: Person
) -> None:
    secret = factories.content(bob.user)
    with model_server() as model:
        model.agent()
        client = dial(alice)
        client.create_session(agent="model")
        item = picture({"url": addresses.content_url(secret.pk)})
        assert ask_with_history(client, *spoken(item))["type"] == "response.done"
        assert not ContentUse.objects.exists()
        assert ENCODED not in json.dumps(model.last)


def test_a_file_of_ones_own_in_a_history_is_shown_to_the_model(dial: Dial, alice: Person) -> None:
    own_content = factories.content(alice.user)
    with model_server() as model:
        model.agent()
        client = dial(alice)
        client.create_session(agent="model")
        item = picture({"url": addresses.content_url(own_content.pk)})
        ask_with_history(client, *spoken(item))
        assert ENCODED in json.dumps(model.last)
