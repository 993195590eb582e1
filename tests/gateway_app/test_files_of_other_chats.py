"""Files stay in the chats that show them, by any route that takes a file.

A key for one chat takes no file of another chat into it, and a member no file of others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

from agents_app.models import Agent
from agents_app.tools.registry import ToolError
from chat_app.contents import reading_rights
from chat_app.members.participants import add_participant
from chat_app.models import Chat, Content, ContentUse, Participant
from sessions_app.models import Response, Session
from sessions_app.tools import contents
from tests import factories
from tests.client import new_event, wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.access.scoped_keys import key_of
from tests.sessions_app.turn.delegation import doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from tests.live_server import Dial, Person

    Route = Callable[[httpx.Client, Dial, Person, Chat, str], Any]


def message(web: httpx.Client, _dial: Dial, who: Person, chat: Chat, file: str) -> None:
    body = {"content": "x", "attachments": [file]}
    web.post(f"/api/v1/chats/{chat.pk}/messages", json=body, headers=who.headers)


def response(web: httpx.Client, _dial: Dial, who: Person, chat: Chat, file: str) -> None:
    body = {"agent": "echo", "chat": chat.pk, "content": "x", "attachments": [file]}
    web.post("/api/v1/responses", json=body, headers=who.headers)


def avatar(web: httpx.Client, _dial: Dial, who: Person, chat: Chat, file: str) -> None:
    body = {"avatar": f"content:{file}"}
    web.patch(f"/api/v1/chats/{chat.pk}", json=body, headers=who.headers)


def avatar_on_a_socket(_web: httpx.Client, dial: Dial, who: Person, chat: Chat, file: str) -> None:
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.send("chat.update", avatar=f"content:{file}")
    client.until("chat.updated", "session.error")


def socket(_web: httpx.Client, dial: Dial, who: Person, chat: Chat, file: str) -> None:
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.send("input.image", image={"url": f"/api/content/{file}"})
    client.send("input.text", text="@echo x")
    client.send("response.create")
    client.until("response.done", "session.error")


def batch(web: httpx.Client, _dial: Dial, who: Person, chat: Chat, file: str) -> None:
    events = [
        new_event("session.create", uamp_version="1.0", session={}, chat=chat.pk),
        new_event("input.image", image={"url": f"/api/content/{file}"}),
        new_event("input.text", text="@echo x"),
        new_event("response.create"),
    ]
    web.post("/uamp", json=events, headers=who.headers)


def responses(web: httpx.Client, _dial: Dial, who: Person, chat: Chat, file: str) -> None:
    content = [{"type": "input_file", "file_id": file}]
    body = {"model": "echo", "input": [{"role": "user", "content": content}]}
    web.post("/v1/responses", json=body, headers={**who.headers, "X-Chat-Id": chat.pk})


def tool(_web: httpx.Client, dial: Dial, who: Person, chat: Chat, file: str) -> None:
    """Let an agent that the key has asked present the file."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.ask("@echo x")
    client.until("response.done")
    present(chat, file)


def tool_in_a_session_of_rest(
    web: httpx.Client, _dial: Dial, who: Person, chat: Chat, file: str
) -> None:
    """Do so in the session of the chat that a key of all rights has opened over REST."""
    for asker in (key_of(who), who):
        body = {"content": "@echo x", "wait": 20}
        answer = web.post(f"/api/v1/chats/{chat.pk}/messages", json=body, headers=asker.headers)
        assert answer.is_success
    assert Session.objects.filter(chat=chat).count() == 1
    present(chat, file)


def tool_in_a_resumed_session(
    _web: httpx.Client, dial: Dial, who: Person, chat: Chat, file: str
) -> None:
    """Do so in a session that a key of all rights has opened on a socket."""
    opened = dial(key_of(who)).create_session(chat=chat.pk)["session_id"]
    client = dial(who)
    client.create_session(chat=chat.pk, resume={"session_id": opened})
    client.ask("@echo x")
    client.until("response.done")
    assert Session.objects.filter(chat=chat).count() == 1
    present(chat, file)


def tool_of_a_mentioned_agent(
    _web: httpx.Client, dial: Dial, who: Person, chat: Chat, file: str
) -> None:
    """Do so as an agent that the agent mentions which was asked."""
    quick_agent("curious", "asker", asks=["echo"], says="what do you think?")
    add_participant(
        chat_id=chat.pk, added_by=who.user, agent_id=Agent.objects.get(name="curious").pk
    )
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.ask("@curious x")
    wait_until(
        lambda: Response.objects.filter(agent__name="echo", finished_at__isnull=False).exists()
    )
    present(chat, file)


def tool_of_a_delegate(_web: httpx.Client, dial: Dial, who: Person, chat: Chat, file: str) -> None:
    """Do so as the agent to which the one that was asked gives work."""
    doer("boss", "worker")
    doer("worker")
    add_participant(chat_id=chat.pk, added_by=who.user, agent_id=Agent.objects.get(name="boss").pk)
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.ask(f"@boss {task_for('worker', order(say='done'))}")
    client.until("response.done")
    present(chat, file, agent="worker")


def present(chat: Chat, file: str, agent: str = "echo") -> None:
    """Let the answer of an agent show a file in a chat, as its tool `present` does."""
    response = Response.objects.filter(agent__name=agent).latest("created_at")
    try:
        asker = contents.asker_of(response)
        content = contents.readable(file, chat_id=chat.pk, asker=asker)
    except ToolError:
        return
    reading_rights.use(chat.pk, [str(content.pk)])


ROUTES: Final[dict[str, Route]] = {
    "REST message": message,
    "REST response": response,
    "REST avatar": avatar,
    "UAMP avatar": avatar_on_a_socket,
    "UAMP socket": socket,
    "UAMP batch": batch,
    "Responses": responses,
    "tool": tool,
    "tool in REST's session": tool_in_a_session_of_rest,
    "tool in a resumed session": tool_in_a_resumed_session,
    "tool of a mentioned agent": tool_of_a_mentioned_agent,
    "tool of a delegate": tool_of_a_delegate,
}
# An agent carries no file between the chats of its asker, even for the same asker.
OF_OTHERS: Final = sorted(name for name in ROUTES if not name.startswith("tool"))


def file_of(owner: Person, chat: Chat | None) -> str:
    """Return a file that only this chat shows, or none does."""
    content: Content = factories.content(owner.user)
    if chat is not None:
        reading_rights.use(chat.pk, [str(content.pk)])
    return str(content.pk)


def is_shown(file: str, chat: Chat) -> bool:
    return ContentUse.objects.filter(chat=chat, content_id=file).exists()


@pytest.mark.sampled
@pytest.mark.parametrize("owner", ["own", "of another member"])
@pytest.mark.parametrize("name", ROUTES)
def test_a_key_takes_no_file_out_of_a_chat_that_it_is_not_for(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person, name: str, owner: str
) -> None:
    there, here = shared_chat(bob, alice), shared_chat(alice)
    file = file_of(alice if owner == "own" else bob, there)
    ROUTES[name](web, dial, key_of(alice, chats=[here.pk]), here, file)
    assert not is_shown(file, here)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ROUTES)
def test_a_key_for_one_chat_takes_a_new_file_into_it(
    web: httpx.Client, dial: Dial, alice: Person, name: str
) -> None:
    here = shared_chat(alice)
    file = file_of(alice, None)
    ROUTES[name](web, dial, key_of(alice, chats=[here.pk]), here, file)
    assert is_shown(file, here)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OF_OTHERS)
@pytest.mark.parametrize("role", ["member", "admin"])
def test_a_file_of_others_leaves_a_chat_with_the_right_to_share_it(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person, name: str, role: str
) -> None:
    there, here = shared_chat(bob, alice), shared_chat(alice)
    Participant.objects.filter(chat=there, user=alice.user).update(role=role)
    file = file_of(bob, there)
    ROUTES[name](web, dial, alice, here, file)
    assert is_shown(file, here) == (role == "admin")
    if role == "admin":
        assert ContentUse.objects.get(chat=here).source_id == there.pk


def test_a_refusal_does_not_show_whether_there_is_such_a_file(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    here = shared_chat(alice)
    files = [file_of(bob, None), file_of(bob, shared_chat(bob, alice)), str(uuid4())]
    paths: dict[str, Callable[[str], Any]] = {
        f"/api/v1/chats/{here.pk}/messages": lambda file: {"content": "x", "attachments": [file]},
        "/api/v1/responses": lambda file: {"agent": "echo", "content": "x", "attachments": [file]},
        "/v1/responses": lambda file: {
            "model": "echo",
            "input": [{"role": "user", "content": [{"type": "input_file", "file_id": file}]}],
        },
    }
    for path, body_of in paths.items():
        answers = [web.post(path, json=body_of(file), headers=alice.headers) for file in files]
        refusals = [answer.json() for answer in answers]
        for refusal in refusals:
            # The number of the request is in every problem.
            refusal.pop("request_id", None)
        assert refusals[0] == refusals[1] == refusals[2], path
        assert answers[0].is_client_error


def test_a_client_adds_no_file_of_others_to_an_answer(
    dial: Dial, alice: Person, bob: Person
) -> None:
    there = shared_chat(bob, alice)
    Participant.objects.filter(chat=there, user=alice.user).update(role="admin")
    file = file_of(bob, there)
    client = dial(alice)
    search = {"type": "function", "function": {"name": "search"}}
    client.create_session(agent="tool-user", session={"tools": [search]})
    client.ask("Paris")
    call_id = client.until("tool.call")[-1]["call_id"]
    items = [{"type": "image", "image": {"url": f"/api/content/{file}"}}]
    client.send("tool.result", call_id=call_id, result="22", content_items=items)
    assert client.until("session.error")[-1]["error"]["code"] == "content_not_found"
