"""An agent finds only the messages of its chat that it may see (docs/members.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User

from chat_app.models import Chat, Participant
from sessions_app.models import Response, ToolCall
from sessions_app.tools.worker import Work
from tests import factories
from tests.sessions_app.tools.claims import claimed
from tests.sessions_app.tools.tool_workers import queued_call

if TYPE_CHECKING:
    from chat_app.models import Message

pytestmark = pytest.mark.usefixtures("database_threads")


@pytest.fixture
def call() -> ToolCall:
    """Return a queued call of an agent in a group."""
    call = queued_call("search_chat", user=User.objects.create_user("ada"))
    Chat.objects.filter(pk=call.response.chat_id).update(kind="group")
    return call


def join(call: ToolCall, **scope: Any) -> None:
    """Make the call's agent a member of its chat."""
    response = call.response
    Participant.objects.create(chat=response.chat, agent=response.agent, **scope)


def say(call: ToolCall, text: str, **fields: Any) -> Message:
    """Append a message to the call's chat."""
    return factories.message(call.response.chat, User.objects.get(), text, **fields)


def hits(call: ToolCall, word: str = "budget", limit: int = 5) -> list[str]:
    """Search, answering the newest message of the chat."""
    with Work(claimed(call)) as work:
        return [message.text for message in work.search_messages([word], limit=limit)]


def ask(call: ToolCall, message: Message, **request: Any) -> None:
    """Have the call's response answer a message."""
    Response.objects.filter(pk=call.response_id).update(message=message, request=request)


def test_an_agent_that_sees_what_is_addressed_to_it_finds_only_that(call: ToolCall) -> None:
    join(call, trigger="keyword", keywords=["invoice"], context="addressed")
    say(call, "A secret budget")
    name = call.response.agent.name
    say(call, f"@{name} the budget is 5")
    say(call, "The budget of the invoice")
    factories.message(call.response.chat, call.response.agent, "My budget")
    # More than are read at once lie between.
    for number in range(120):
        say(call, f"Another budget {number}")
    ask(call, say(call, f"@{name} which budget?"))
    visible = ["My budget", "The budget of the invoice", f"@{name} the budget is 5"]
    assert hits(call) == visible


def test_an_agent_that_sees_the_last_messages_finds_only_those(call: ToolCall) -> None:
    join(call, context="last", context_messages=3)
    for number in range(5):
        say(call, f"budget {number}")
    ask(call, say(call, "Which budget?"))
    assert hits(call) == ["budget 4", "budget 3"]


@pytest.mark.parametrize("context", ["chat", "addressed", "last"])
def test_an_agent_finds_nothing_in_other_threads(call: ToolCall, context: str) -> None:
    join(call, context=context, context_messages=4 if context == "last" else None)
    root, other = (say(call, f"The root of {name}") for name in ("this", "other"))
    say(call, "budget elsewhere", thread=other.pk)
    say(call, "budget here", thread=root.pk)
    question = say(call, "Which budget?", thread=root.pk)
    ask(call, question, thread=root.pk)
    assert hits(call) == ["budget here"]
    assert hits(queued_again(call), "root", limit=1) == {
        "addressed": ["The root of this"],
    }.get(context, ["The root of other"])
    ask(call, say(call, "Which budget in the chat?"))
    assert hits(queued_again(call)) == []


def test_an_agent_that_was_removed_finds_nothing(call: ToolCall) -> None:
    ask(call, say(call, "Which budget?"))
    say(call, "The budget is 5")
    assert hits(call) == []


def queued_again(call: ToolCall) -> ToolCall:
    """Return a call whose row is queued again."""
    ToolCall.objects.filter(pk=call.pk).update(status="queued")
    return call
