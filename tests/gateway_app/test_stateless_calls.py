"""A call without a session of its own leaves rows for a time, unless its id is named again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from chat_app.models import Chat, Message
from sessions_app.models import Response, Session
from sessions_app.process import retention
from tests.gateway_app.days import let_a_day_go_by
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.any_database

PATH = "/agents/echo/v1/chat/completions"
CALL = {"model": "echo", "messages": [{"role": "user", "content": "one two"}]}


def test_a_call_goes_with_its_chat_and_messages(web: httpx.Client, alice: Person) -> None:
    assert web.post(PATH, json=CALL, headers=alice.headers).status_code == httpx.codes.OK
    assert (Session.objects.get().user, Chat.objects.count()) == (alice.user, 1)
    assert Message.objects.count() > 0
    let_a_day_go_by()
    assert retention.sweep() == 1
    assert [model.objects.count() for model in (Session, Chat, Message, Response)] == [0] * 4


def test_a_call_under_a_key_goes_too(web: httpx.Client, alice: Person) -> None:
    web.post(PATH, json=CALL, headers={**alice.headers, "Idempotency-Key": "1"})
    assert Session.objects.get().ephemeral
    let_a_day_go_by()
    assert retention.sweep() == 1


def test_a_session_that_is_named_again_stays(web: httpx.Client, dial: Dial, alice: Person) -> None:
    web.post(PATH, json=CALL, headers=alice.headers)
    session = Session.objects.get()
    client = dial(alice)
    client.send("session.create", session={}, resume={"session_id": session.pk})
    client.expect("session.created")
    client.close()
    Session.objects.update(status="idle")
    let_a_day_go_by()
    assert retention.sweep() == 0


def test_a_call_in_a_chat_leaves_the_chat(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice, agents=("echo",))
    headers = {**alice.headers, "X-Chat-Id": chat.pk}
    assert web.post(PATH, json=CALL, headers=headers).status_code == httpx.codes.OK
    let_a_day_go_by()
    assert retention.sweep() == 0
    assert Chat.objects.get().pk == chat.pk
