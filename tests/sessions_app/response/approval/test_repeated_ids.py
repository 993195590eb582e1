"""Decisions about calls of several agents that chose the same id."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone

from sessions_app.access.principal import Principal, PrincipalKind
from sessions_app.models import ToolCall
from sessions_app.tools.approvals import decide_call
from sessions_app.tools.calls import open_call
from tests import factories
from tests.sessions_app.connection.sessions import open_session
from uamp import ErrorCode, RemoteProtocolError, ToolCallContent, ToolCallData
from uamp import events as ev

pytestmark = pytest.mark.django_db(transaction=True)


def approval(*, approved: bool, response_id: str | None = None) -> ev.ToolApprove:
    return ev.ToolApprove(call_id="call_1", approved=approved, response_id=response_id)


def test_a_repeated_decision_decides_no_other_call() -> None:
    ada = factories.user("ada")
    agents = [factories.agent(name) for name in ("first", "second")]
    chat = factories.chat(ada, *agents)
    principal = Principal(key=PrincipalKind.PERSON.key(ada.pk), user_id=ada.pk, username="ada")
    session = replace(open_session(chat_id=chat.pk), principal=principal)
    first, second = [
        factories.tool_call(
            factories.response(agent, chat), call_id="call_1", status="asking", asked_in=chat.pk
        )
        for agent in agents
    ]
    assert decide_call(session, approval(approved=True, response_id=first.response_id)) == first
    # If the client did not receive the reply, this repeats the decision; or it is of the other.
    for approved in (True, False):
        with pytest.raises(RemoteProtocolError) as refused:
            decide_call(session, approval(approved=approved))
        assert refused.value.code == ErrorCode.INVALID_EVENT
    assert ToolCall.objects.get(pk=second.pk).status == "asking"
    # Once the first answer has ended, the id belongs to the second.
    type(first.response).objects.filter(pk=first.response_id).update(
        status="completed", finished_at=timezone.now()
    )
    assert decide_call(session, approval(approved=False)) == second


def test_a_call_that_was_opened_under_its_own_id_keeps_it() -> None:
    ada, agent = factories.user("ada"), factories.agent("helper")
    chat = factories.chat(ada, agent)
    session = factories.session(ada, chat, agent=agent)
    responses = [
        factories.response(agent, chat, session=session, status="in_progress") for _ in range(2)
    ]
    call = ToolCallData(id="call_1", name="ask_client", arguments="{}")

    def opened(number: int) -> str:
        response = responses[number]
        row = open_call(
            response_id=response.pk,
            fence=response.fence,
            kind="client",
            call=call,
            text="",
            output=[ToolCallContent(tool_call=call)],
        )
        assert row is not None
        return row.call_id

    # An earlier release gave both calls the same id.
    for response in responses:
        factories.tool_call(response, call_id="call_1", kind="client", status="waiting")
    assert [opened(0), opened(1)] == ["call_1", "call_1"]
    ToolCall.objects.filter(response=responses[1]).delete()
    new_id = opened(1)
    assert new_id != "call_1"
    assert opened(1) == new_id
    responses[1].refresh_from_db()
    assert [item["tool_call"]["id"] for item in responses[1].output] == [new_id]
