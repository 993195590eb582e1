"""Tool calls of delegated work are read by those who may read that work.

A question about it is asked in the chat of the original request, and is all that its members see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from chat_app.members.chats import create_chat
from chat_app.models import Chat, Message
from sessions_app.models import ToolCall, ToolCallKind
from tests import factories
from tests.live_server import Person, person, shared_chat
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import httpx

SECRET: Final = "secret-of-the-work"
QUESTION: Final = "question-of-the-work"
OPEN: Final = "asking"
STATES: Final = ("running", "done", "failed", OPEN)


def asker(_chat: Chat, _alice: Person, bob: Person) -> Person:
    return bob


def owner(_chat: Chat, alice: Person, _bob: Person) -> Person:
    return alice


def member(chat: Chat, _alice: Person, _bob: Person) -> Person:
    carol = person("carol")
    chat.participants.create(user=carol.user)
    return carol


def key_for_the_chat(chat: Chat, _alice: Person, bob: Person) -> Person:
    return key_of(bob, chats=[chat.pk])


def key_without_reading(_chat: Chat, _alice: Person, bob: Person) -> Person:
    return key_of(bob, "tools:approve", "messages:write")


def former_member(chat: Chat, _alice: Person, _bob: Person) -> Person:
    dave = person("dave")
    chat.participants.create(user=dave.user, left_at=dave.user.date_joined)
    return dave


def stranger(_chat: Chat, _alice: Person, _bob: Person) -> Person:
    return person("erin")


# Who sees the work, the question, or nothing.
READERS: Final[dict[Callable[[Chat, Person, Person], Person], str]] = {
    asker: "work",
    owner: "question",
    member: "question",
    key_for_the_chat: "question",
    key_without_reading: "nothing",
    former_member: "nothing",
    stranger: "nothing",
}


def delegated_call(chat: Chat, bob: Person, status: str) -> ToolCall:
    """Make a call of an agent that works for another one, which bob asked in a chat."""
    agent = factories.agent(f"worker-{status}")
    boss = factories.agent(f"boss-{status}")
    boss_response = factories.response(boss, chat, session=factories.session(bob.user, chat))
    above = factories.tool_call(
        boss_response, "delegate", kind=ToolCallKind.AGENT, status="waiting"
    )
    private = create_chat(
        title="",
        created_by_id=bob.user.pk,
        user_ids=[bob.user.pk],
        agents=[(agent.pk, "always")],
        kind="session",
    )
    session = factories.session(bob.user, private, parent_call=above)
    work = factories.response(agent, private, session=session, text=SECRET)
    return factories.tool_call(
        work,
        "steps",
        status=status,
        asked_in=chat.pk,
        arguments=f'{{"a": "{QUESTION}"}}',
        result=SECRET,
        content_items=[{"type": "text", "text": SECRET}],
        progress={"target": "tool", "target_id": "call", "message": SECRET},
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("reader", READERS)
def test_without_the_right_to_read_the_work_only_its_open_question_is_shown(
    web: httpx.Client,
    alice: Person,
    bob: Person,
    reader: Callable[[Chat, Person, Person], Person],
) -> None:
    chat = shared_chat(alice, bob)
    headers = reader(chat, alice, bob).headers
    sees = READERS[reader]
    for status in STATES:
        call = delegated_call(chat, bob, status)
        answers = all_answers(web, call, headers)
        assert (SECRET in answers) == (sees == "work"), answers
        asks = status == OPEN and sees == "question"
        assert (QUESTION in answers) == (sees == "work" or asks), answers
        call.refresh_from_db()
        assert call.result != "forged"
        may_decide = reader not in {member, former_member, stranger}
        assert (call.decided_at is not None) == (status == OPEN and may_decide)


def all_answers(web: httpx.Client, call: ToolCall, headers: Mapping[str, str]) -> str:
    """Return the answers of every path that reads or changes a call."""
    routes: dict[str, Any] = {
        f"/api/v1/tool-calls/{call.pk}": None,
        f"/api/v1/responses/{call.response_id}/tool-calls": None,
        f"/api/v1/responses/{call.response_id}/tool-calls/{call.pk}": None,
        f"/api/v1/responses/{call.response_id}": None,
        f"/api/v1/chats/{call.response.chat_id}/messages": None,
        f"/api/v1/chats/{call.asked_in}/approvals": None,
        f"/api/v1/tool-calls/{call.pk}/result": {"result": "forged"},
        f"/api/v1/tool-calls/{call.pk}/decision": {"approved": False},
    }
    return "\n".join(
        web.request("POST" if body else "GET", path, json=body, headers=dict(headers)).text
        for path, body in routes.items()
    )


def test_the_calls_of_a_deleted_answer_are_withheld(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    boss = factories.agent("boss")
    response = factories.response(boss, chat, session=factories.session(alice.user, chat))
    call = factories.tool_call(response, status="done", result=SECRET, arguments=SECRET)
    path = f"/api/v1/responses/{response.pk}/tool-calls"
    assert SECRET in web.get(path, headers=alice.headers).text
    answer = factories.message(chat, boss, response_id=response.pk)
    Message.objects.filter(pk=answer.pk).update(deleted_at=call.created_at)
    assert SECRET not in web.get(path, headers=alice.headers).text
