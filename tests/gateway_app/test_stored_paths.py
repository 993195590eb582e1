"""Stored rows need the right to read, in the key's chats, and a person who is still in the chat.

The reads are those of `stored_paths`; a new path or method of A2A has to be named there, or here as
one that reads nothing stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from agents_app.providers import scripts
from agents_app.rest.rights import SCOPES
from gateway_app.a2a import rpc
from sessions_app.models import Response
from tests.client import wait_until
from tests.contract.routes import ROUTES
from tests.contract.test_routes import PAGES
from tests.gateway_app.stored_paths import READS, SECRET, TOKEN, Stored, leave_all, store
from tests.live_server import Person, quick_agent, shared_chat
from tests.sessions_app.access.scoped_keys import key_of
from upp.providers.scripted import Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import httpx
    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from tests.conftest import ServerAddress
    from upp import LLMRequest


# The paths of READS, whose views serve every agent and the server's default one.
OPENED: Final = {
    "events",
    "events/stream",
    "uamp",
    "uamp/stream",
    "responses",
    "responses/input_tokens",
    "responses/{response_id}",
    "responses/{response_id}/cancel",
    "responses/{response_id}/input_items",
    "conversations/{conversation_id}",
    "conversations/{conversation_id}/items",
    "conversations/{conversation_id}/items/{item_id}",
    "agui",
    "agui/connect",
    "acp",
    "a2a",
    "a2a/rest/{path}",
    "tasks/{task_id}",
}
# Paths that begin something or describe the server: they read nothing by an id of a client's.
NOTHING_STORED: Final = {
    "chat/completions",
    "conversations",
    "responses/compact",
    "realtime/client_secrets",
    "realtime/sessions",
    "tasks",
    "v1/messages/count_tokens",
    "a2a/{path}",
    "capabilities",
    "models",
    "models/{model_id}",
    "v1/models",
    "info",
    "auth/token",
    "metrics",
    "{path}",
    "agents",
    "agents/{name}",
    "jsi18n/{language}",
    "manifest/{language}.webmanifest",
    "service-worker.js",
    "offline",
    "unsubscribe/{token}",
    "docs/problems",
    "schemas/uamp/1.0/",
    "schemas/uamp/1.0/{type_name}.json",
    "(?:v1|agents)/",
    # Signed by a peer; no key is used.
    "v1/messages",
    "v1/stream/{stream_id}",
    "v1/files/{file_id}",
}
BEGINNING: Final = {
    "SendStreamingMessage",
    "message/send",
    "message/stream",
    "GetExtendedAgentCard",
    "agent/getAuthenticatedExtendedCard",
}
# Changes of a task and of its receivers, which need a right of their own (test_push).
CHANGING: Final = {
    "CreateTaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig",
    "tasks/cancel",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/delete",
}


async def live(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    yield Text(SECRET)
    yield Pause(60)


def account_alone(who: Person) -> Person:
    return key_of(who, "account:read")


def all_but_reading(who: Person) -> Person:
    return key_of(who, *(set(SCOPES) - {"chats:read"}))


def of_another_chat(who: Person) -> Person:
    return key_of(who, chats=[shared_chat(who).pk])


def removed(who: Person) -> Person:
    leave_all(who)
    return who


READERS: Final[list[Callable[[Person], Person]]] = [
    account_alone,
    all_but_reading,
    of_another_chat,
    removed,
]


@pytest.fixture
def stored(
    demo: ServerAddress,
    web: httpx.Client,
    alice: Person,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> Stored:
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)
    monkeypatch.setitem(scripts.SCRIPTS, "live", live)
    quick_agent("live", "live")
    return store(demo, web, alice)


def test_the_whole_key_enters_through_every_read(stored: Stored) -> None:
    wrong = {name: text for name, (ask, mark) in READS.items() if mark not in (text := ask(stored))}
    assert wrong == {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lose", READERS)
def test_no_path_shows_anything_without_the_right_to_read(
    stored: Stored, alice: Person, lose: Callable[[Person], Person]
) -> None:
    visitor = replace(stored, headers=lose(alice).headers)
    before = Response.objects.count()
    wrong = {}
    for name, (ask, mark) in READS.items():
        answer_text = ask(visitor)
        if any(text in answer_text for text in (mark, SECRET, TOKEN)):
            wrong[name] = answer_text
    assert wrong == {}
    assert Response.objects.count() == before


def test_the_stream_of_a_connection_shows_nothing_that_another_key_has_asked_for(
    stored: Stored, alice: Person
) -> None:
    reader, writer = alice.headers, all_but_reading(alice).headers
    path, web = "/agents/echo/acp", stored.web
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    connection = web.post(path, json=hello, headers=reader).headers["Acp-Connection-Id"]
    connection_header = {"Acp-Connection-Id": connection}
    params = {"sessionId": stored.acp_session, "cwd": "/", "mcpServers": []}
    load = {"jsonrpc": "2.0", "id": 2, "method": "session/load", "params": params}
    assert web.post(path, json=load, headers={**reader, **connection_header}).status_code == 202
    refused = web.get(path, headers={**writer, **connection_header, "Accept": "text/event-stream"})
    assert refused.status_code == 403
    assert "chats:read" in refused.text


def test_a_key_that_only_writes_sends_over_rest(stored: Stored, alice: Person) -> None:
    chat = shared_chat(alice)
    writer = key_of(alice, "messages:write").headers
    path = f"/api/v1/chats/{chat.pk}/messages"
    for text in ("@echo first", "@echo second"):
        answer = stored.web.post(path, json={"content": text}, headers=writer)
        assert answer.status_code == 201, answer.text
    wait_until(lambda: Response.objects.filter(chat=chat, text="second").exists())
    alone = {"agent": "echo", "content": "third"}
    assert stored.web.post("/api/v1/responses", json=alone, headers=writer).status_code == 201
    assert stored.web.get(path, headers=writer).status_code == 403


def test_every_path_and_every_method_is_listed_or_reads_nothing_stored() -> None:
    routes = {
        route.removeprefix("agents/{name}/")
        for route in ROUTES
        if not (PAGES.match(route) or route == "" or route.startswith("api/"))
    }
    # The log tree publishes hashes of chats, not their texts (docs/log-tree.md).
    documents = {
        route
        for route in routes
        if ".well-known" in route or route.endswith("did.json") or route.startswith("log-tree/")
    }
    assert routes - documents == OPENED | NOTHING_STORED
    methods = {name.removeprefix("A2A ") for name in READS} & set(rpc.METHODS)
    assert set(rpc.METHODS) == methods | BEGINNING | CHANGING
    assert not methods & (BEGINNING | CHANGING)
