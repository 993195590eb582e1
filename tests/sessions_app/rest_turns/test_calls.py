"""Asking agents over REST, and answering their calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from chat_app.models import Participant
from sessions_app.models import ToolCall
from tests.client import wait_until
from tests.live_server import person, shared_chat
from tests.sessions_app.response.approval.questions import asker, task
from tests.sessions_app.rest_turns.programs import SEARCH, Program

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    from pytest_django import Settings

    from tests.live_server import Person


def test_an_answer_is_asked_for_cancelled_and_made_again(web: httpx.Client, alice: Person) -> None:
    program = Program(web, alice)
    question = {"agent": "slow", "content": "count"}
    turn = program.call("POST", "responses", question, status=201, Idempotency_Key="b")
    (response,) = turn["responses"]
    again = program.call("POST", "responses", question, status=201, Idempotency_Key="b")
    assert [row["id"] for row in again["responses"]] == [response["id"]]
    chat_id = response["chat_id"]
    running = program.call("GET", f"chats/{chat_id}/responses?status=in_progress")
    assert [row["id"] for row in running["data"]] == [response["id"]]
    problem = program.call("POST", f"responses/{response['id']}/retry", {}, status=409)
    assert problem["code"] == "response_running"
    program.call("POST", f"responses/{response['id']}/cancel", status=202)
    ended = program.ended(response["id"])
    assert (ended["status"], ended["message_id"]) == ("cancelled", ended["message_id"])
    problem = program.call("POST", f"responses/{response['id']}/cancel", status=409)
    assert problem["code"] == "nothing_to_cancel"
    retry = program.call("POST", f"responses/{response['id']}/retry", {}, status=201)
    (newer,) = retry["responses"]
    assert newer["question_id"] == turn["message"]["id"]
    program.call("POST", f"responses/{newer['id']}/cancel", status=202)
    program.ended(newer["id"])
    mallory = Program(web, person("mallory"))
    for method, path in (
        ("GET", f"responses/{newer['id']}"),
        ("POST", f"responses/{newer['id']}/cancel"),
        ("POST", f"responses/{newer['id']}/retry"),
        ("GET", f"responses/{newer['id']}/tool-calls"),
    ):
        mallory.call(method, path, {} if method == "POST" else None, status=404)


def test_a_program_gives_the_results_of_its_own_tools(web: httpx.Client, alice: Person) -> None:
    program = Program(web, alice)
    question = {
        "agent": "tool-user",
        "content": "find it",
        "response": {"tools": [SEARCH], "client_tools": "wait"},
    }
    (response,) = program.call("POST", "responses", question, status=201)["responses"]
    wait_until(ToolCall.objects.filter(response=response["id"]).exists)
    (call,) = program.call("GET", f"responses/{response['id']}/tool-calls")["data"]
    assert (call["name"], call["status"], call["kind"]) == ("search", "waiting", "client")
    path = f"tool-calls/{call['id']}/result"
    Program(web, person("mallory")).call("POST", path, {"result": "{}"}, status=404)
    result = {"result": json.dumps({"found": 3})}
    done = program.call("POST", path, result)
    assert (done["status"], done["result"]) == ("done", result["result"])
    program.call("POST", path, result)
    program.call("POST", path, {"result": "other"}, status=404)
    assert program.ended(response["id"])["status"] == "completed"


def test_a_person_decides_on_a_call(
    web: httpx.Client, settings: Settings, alice: Person, bob: Person, tmp_path: Path
) -> None:
    settings.UAMP_SERVER_TOOLS = [
        *settings.UAMP_SERVER_TOOLS,
        "tests.sessions_app.turn.team_tools.STEPS",
    ]
    asker()
    chat = shared_chat(alice, bob, agents=("asker",), trigger="always")
    program = Program(web, bob)
    body = {"content": task(tmp_path / "journal")}
    turn = program.call("POST", f"chats/{chat.pk}/messages", body, status=201)
    (response,) = turn["responses"]
    wait_until(ToolCall.objects.filter(response=response["id"], status="asking").exists)
    (call,) = program.call("GET", f"chats/{chat.pk}/approvals")["data"]
    assert (call["name"], call["asked_user_id"]) == ("steps", str(bob.user.pk))
    path = f"tool-calls/{call['id']}/decision"
    Program(web, person("mallory")).call("POST", path, {"approved": True}, status=404)
    carol = person("carol")
    Participant.objects.create(chat=chat, user=carol.user)
    assert (
        Program(web, carol).call("POST", path, {"approved": True}, status=404)["code"]
        == "not_found"
    )
    refused = program.call("POST", path, {"approved": False, "reason": "no"})
    assert (refused["status"], refused["decided_by"]) == ("failed", str(bob.user.pk))
    program.call("POST", path, {"approved": False, "reason": "no"})
    program.call("POST", path, {"approved": True}, status=404)
    assert program.call("GET", f"chats/{chat.pk}/approvals")["data"] == []
    assert program.ended(response["id"])["status"] == "completed"
