"""The history of a task: the message that began it, and those that answered what it asked for."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from chat_app.conversation.deletion import delete_message
from payments_app.tokens import issuance
from sessions_app.models import FollowUp, Response, ToolCall
from tests.gateway_app.a2a.calls import call, picture, send, text_message
from tests.sessions_app.billing.paid_agents import rich, usd

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

SEARCH = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
TOOLS = {"uamp_tools": [SEARCH]}


def task_of(
    web: httpx.Client, agent: str, task_id: str, who: Person, **params: Any
) -> dict[str, Any]:
    answer = call(web, agent, "GetTask", {"id": task_id, **params}, who=who)
    task: dict[str, Any] = answer["result"]
    return task


def test_an_answer_to_a_waiting_task_is_in_its_history(web: httpx.Client, alice: Person) -> None:
    question = send(web, "tool-user", "Find it", who=alice, metadata=TOOLS)
    message = text_message("42", taskId=question["id"])
    answer = call(web, "tool-user", "SendMessage", {"message": message}, who=alice)
    task = answer["result"]["task"]

    for version in (task, task_of(web, "tool-user", question["id"], alice)):
        assert [entry["parts"][0]["text"] for entry in version["history"]] == ["Find it", "42"]
        assert [entry["role"] for entry in version["history"]] == ["ROLE_USER", "ROLE_USER"]
        assert version["history"][1]["messageId"] == message["messageId"]
    listed = call(web, "tool-user", "ListTasks", {"historyLength": 5}, who=alice)["result"]
    (listed_task,) = [item for item in listed["tasks"] if item["id"] == question["id"]]
    assert len(listed_task["history"]) == 2


@pytest.mark.parametrize(("length", "texts"), [(0, []), (1, ["42"]), (2, ["Find it", "42"])])
def test_the_newest_messages_are_shown(
    web: httpx.Client, alice: Person, length: int, texts: list[str]
) -> None:
    question = send(web, "tool-user", "Find it", who=alice, metadata=TOOLS)
    send(web, "tool-user", "42", who=alice, taskId=question["id"])

    task = task_of(web, "tool-user", question["id"], alice, historyLength=length)
    assert [entry["parts"][0]["text"] for entry in task.get("history", [])] == texts


@pytest.mark.parametrize("form", ["data", "file", "spoken"])
def test_parts_come_back_as_they_were_sent(web: httpx.Client, alice: Person, form: str) -> None:
    question = send(web, "tool-user", "Find it", who=alice, metadata=TOOLS)
    call_id = ToolCall.objects.get(response_id=question["id"]).call_id
    raw = picture()
    forms: dict[str, list[dict[str, Any]]] = {
        "data": [{"data": {"callId": call_id, "result": {"rows": [1, 2.5, None]}}}],
        "file": [{"text": "this"}, {"raw": raw, "mediaType": "image/png"}, {"text": "and that"}],
        "spoken": [{"text": "one"}, {"text": "two"}],
    }
    parts = forms[form]
    send(web, "tool-user", "", who=alice, taskId=question["id"], parts=parts)

    shown_parts = task_of(web, "tool-user", question["id"], alice)["history"][1]["parts"]
    if form != "file":
        assert shown_parts == parts
        return
    assert [part.get("text") for part in shown_parts] == ["this", None, "and that"]
    assert web.get(shown_parts[1]["url"]).content == base64.b64decode(raw)
    # The bytes are stored once, with the result of the tool.
    (row,) = FollowUp.objects.filter(response_id=question["id"])
    assert row.parts[1] == {"medium": 0, "call_id": call_id}


def test_a_refused_approval_is_in_the_history(web: httpx.Client, alice: Person) -> None:
    Agent.objects.filter(name="darkroom").update(approvals=["edit_picture"])
    parts = [{"text": "black and white"}, {"raw": picture(), "mediaType": "image/png"}]
    question = send(web, "darkroom", "", who=alice, parts=parts)
    send(web, "darkroom", "No", who=alice, taskId=question["id"])

    history = task_of(web, "darkroom", question["id"], alice)["history"]
    assert history[-1]["parts"] == [{"text": "No"}]


def test_a_payment_is_in_the_history_without_its_secret(web: httpx.Client, alice: Person) -> None:
    rich(alice)
    question = send(
        web, "paid-echo", "Hello there", who=alice, metadata={"x402.payment.status": "x"}
    )
    offer = question["status"]["message"]["metadata"]["x402.payment.required"]["accepts"][0]
    issued = issuance.issue(key="t", user_id=alice.user.pk, amount=usd("1"), expires_in=600)
    poor = {"x402Version": 2, "payload": {"token": "not.a.token"}}
    good = {"x402Version": 2, "accepted": offer, "payload": {"token": issued.token}}
    for text, payload in (("Take this", poor), ("Or this", good)):
        paid = {"x402.payment.status": "payment-submitted", "x402.payment.payload": payload}
        send(web, "paid-echo", text, who=alice, taskId=question["id"], metadata=paid)

    task = task_of(web, "paid-echo", question["id"], alice)
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    texts = [entry["parts"][0]["text"] for entry in task["history"]]
    assert texts == ["Hello there", "Take this", "Or this"]
    assert issued.token not in str(task["history"])


def test_a_message_that_answers_nothing_is_not_in_the_history(
    web: httpx.Client, alice: Person
) -> None:
    question = send(web, "tool-user", "Find it", who=alice, metadata=TOOLS)
    message = text_message("", taskId=question["id"], parts=[{"data": {"callId": "other"}}])
    refused = call(web, "tool-user", "SendMessage", {"message": message}, who=alice)

    assert "error" in refused
    assert len(task_of(web, "tool-user", question["id"], alice)["history"]) == 1


def test_one_message_id_may_name_several_messages(web: httpx.Client, alice: Person) -> None:
    question = send(web, "tool-user", "Find it", who=alice, metadata=TOOLS, messageId="same")
    send(web, "tool-user", "42", who=alice, taskId=question["id"], messageId="same")

    history = task_of(web, "tool-user", question["id"], alice)["history"]
    assert [entry["parts"][0]["text"] for entry in history] == ["Find it", "42"]


def test_a_deleted_question_takes_its_follow_ups_from_the_history(
    web: httpx.Client, alice: Person
) -> None:
    question = send(web, "tool-user", "Find it", who=alice, metadata=TOOLS)
    send(web, "tool-user", "42", who=alice, taskId=question["id"])
    response = Response.objects.select_related("message").get(pk=question["id"])
    assert response.message is not None
    delete_message(chat_id=response.chat_id, message_id=response.message.pk, user_id=alice.user.pk)

    assert "history" not in task_of(web, "tool-user", question["id"], alice)
