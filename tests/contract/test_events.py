"""Callers of each event and method: the tables of `events` against the server."""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any

from websockets.exceptions import ConnectionClosed, InvalidStatus

from agents_app.models import Agent
from chat_app.models import Chat, Participant
from gateway_app.a2a.rpc import METHODS
from sessions_app.handlers.table import HANDLERS
from sessions_app.models import Response, Session, ToolCallKind
from sessions_app.states import ToolCallState
from tests import factories
from tests.contract.events import A2A, EVENTS, SOCKETS
from tests.contract.routes import CALLERS
from tests.contract.tenants import Tenant, tenant
from tests.live_server import person

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.live_server import Dial, Person

DENIED = {
    "unauthorized",
    "forbidden",
    "forbidden_role",
    "agent_not_found",
    "chat_not_found",
    "message_not_found",
    "unknown_session",
    "unknown_call",
    "nothing_to_cancel",
    "payment_not_due",
    "invalid_event",
}
# Events of a connection, and the one that opens a session.
WITHOUT_SESSION = {"session.create", "ping", "chats.watch"}
# A2A: TaskNotFoundError, and what a card is refused with that needs authentication.
NOT_FOR_THEM = re.compile(r'"code": ?(-32001|-32007)\b')
EXAMPLE_SECONDS = 30


def people_of(settings: Settings) -> tuple[Tenant, dict[str, Person | None]]:
    """Return the owner, with their rows, and all callers."""
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)
    owner = tenant("owner")
    member = person("member")
    Participant.objects.create(chat_id=owner.ids["chat_id"], user=member.user)
    callers: dict[str, Person | None] = {
        "owner": owner.who,
        "member": member,
        "stranger": person("stranger"),
        "anonymous": None,
    }
    return owner, callers


def new_rows(owner: Tenant, payload_text: str) -> dict[str, str]:
    """Make the rows of the owner that a payload names; return their ids, and the others' too."""
    ids = dict(owner.ids)
    chat = Chat.objects.get(pk=ids["chat_id"])
    agent = Agent.objects.get(name=ids["agent"])
    session = Session.objects.filter(chat=chat, user=owner.who.user).earliest("created_at")
    question = factories.message(chat, owner.who.user, "a question")
    ids["message_id"] = question.pk
    response = factories.response(agent, chat, session=session, message_id=question.pk)
    ids["response_id"] = response.pk
    if "answer_id" in payload_text:
        ids["answer_id"] = factories.message(chat, agent, "a", response_id=response.pk).pk
    if "item_id" in payload_text:
        ids["item_id"] = str(factories.queued_turn(owner.who.user, session).pk)
    if "asking_id" in payload_text:
        asking = factories.tool_call(
            response, status=ToolCallState.ASKING, asked_in=chat.pk, kind=ToolCallKind.LONG
        )
        ids["asking_id"] = asking.call_id
    if "participant_id" in payload_text:
        new = factories.agent(f"agent-{uuid.uuid4().hex[:8]}")
        row = Participant.objects.create(chat=chat, agent=new)
        ids["participant_id"] = str(row.pk)
    return ids


def filled(template: Any, ids: dict[str, str]) -> Any:
    """Return a payload with ids; that of a participant is a number."""
    text = re.sub(r"\{(\w+)\}", lambda match: ids.get(match[1], match[0]), json.dumps(template))
    return json.loads(re.sub(r'("participant_id": )"(\d+)"', r"\1\2", text))


def test_every_event_and_method_is_in_the_tables() -> None:
    assert {event.__struct_config__.tag for event in HANDLERS} == set(EVENTS)
    assert set(METHODS) == set(A2A)


def test_each_event_is_for_those_of_the_table(dial: Dial, settings: Settings) -> None:
    owner, callers = people_of(settings)
    factories.user("guest")
    clients, sessions = {}, {}
    for name, caller in callers.items():
        clients[name] = dial(caller)
        place = {"chat": owner.ids["chat_id"]} if name in {"owner", "member"} else {"agent": "echo"}
        clients[name].send("session.create", session={}, **place)
        sessions[name] = clients[name].until("session.created")[-1]["session_id"]
    wrong = []
    voice_id = "none"
    for type_, (who, payload) in EVENTS.items():
        allowed, seen = set(), {}
        for name in reversed(CALLERS):
            ids = new_rows(owner, json.dumps(payload))
            ids["voice_id"] = voice_id
            clients[name].settle()
            scope = {} if type_ in WITHOUT_SESSION else {"session_id": sessions[name]}
            clients[name].send(type_, **scope, **filled(payload, ids))
            frames = clients[name].settle()
            errors = [
                frame["error"]["code"] for frame in frames if frame["type"] == "session.error"
            ]
            errors += ["payment_not_due" for frame in frames if frame["type"] == "payment.error"]
            seen[name] = errors or [frame["type"] for frame in frames][:4]
            if type_ == "voice.invite":
                voice_id = next(
                    (frame["call_id"] for frame in frames if "call_id" in frame), voice_id
                )
            if not DENIED.intersection(errors):
                allowed.add(name)
        if allowed != who.value:
            wrong.append((type_, sorted(allowed), sorted(who.value), seen))
    assert wrong == [], "\n".join(map(repr, wrong))


def test_each_method_is_for_those_of_the_table(web: httpx.Client, settings: Settings) -> None:
    owner, callers = people_of(settings)
    message = {"messageId": "first", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    wrong = []
    answer = _call(web, "SendMessage", {"message": message}, owner.who)
    task_id = Response.objects.latest("created_at").pk
    assert task_id in answer
    for method, (who, params) in A2A.items():
        allowed, seen = set(), {}
        for name in reversed(CALLERS):
            text = _call(web, method, filled(params, {"task_id": task_id}), callers[name])
            seen[name] = text[:120]
            if NOT_FOR_THEM.search(text) is None:
                allowed.add(name)
        if allowed != who.value:
            wrong.append((method, sorted(allowed), sorted(who.value), seen))
    assert wrong == [], "\n".join(map(repr, wrong))


def _call(web: httpx.Client, method: str, params: Any, who: Person | None) -> str:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    version = {"A2A-Version": "0.3" if "/" in method else "1.0"}
    headers = {**(who.headers if who else {}), **version}
    return web.post("/agents/echo/a2a", json=body, headers=headers).text


def test_each_socket_is_for_those_of_the_table(dial: Dial, settings: Settings) -> None:
    owner, callers = people_of(settings)
    wrong = []
    for path, who in SOCKETS.items():
        allowed = set()
        for name in reversed(CALLERS):
            try:
                client = dial(callers[name], filled(path, owner.ids))
                client.send_raw(json.dumps(FIRST[path.rpartition("/")[2]]))
                if "not_found" not in json.dumps(client.receive(EXAMPLE_SECONDS)):
                    allowed.add(name)
            except (InvalidStatus, ConnectionClosed):
                continue
        if allowed != who.value:
            wrong.append((path, sorted(allowed), sorted(who.value)))
    assert wrong == [], "\n".join(map(repr, wrong))


FIRST: dict[str, Any] = {
    "uamp": {"type": "session.create", "event_id": "1", "session": {}},
    "acp": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "session/new",
        "params": {"cwd": "/", "mcpServers": []},
    },
    "realtime": {"type": "session.update", "session": {"type": "realtime"}},
}
