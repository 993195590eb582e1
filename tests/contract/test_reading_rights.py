"""A key without the right to read gets nothing of a chat's contents, whatever else it may do.

The paths are those of `routes`: a new one is called here, too. Each answer is searched for the text
that every row of the owner's has. What belongs to the owner and to no chat is left out.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from agents_app.rest.rights import SCOPES
from chat_app.models import Participant
from sessions_app.models import Response
from tests.client import wait_until
from tests.contract.routes import QUERIES, ROUTES
from tests.contract.test_routes import PAGES, _filled, staged
from tests.live_server import Person, shared_chat
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    from pytest_django import Settings

    from tests.contract.test_routes import Stage

SECRET: Final = "secret-of-owner"
# The owner's own files, and webhooks, which have scopes of their own.
OWN: Final = ("api/v1/uploads", "api/v1/contents", "api/v1/webhooks")
# Changes come after what they would change.
ORDER: Final = ("GET", "PUT", "POST", "PATCH", "DELETE")


def all_but_reading(who: Person) -> Person:
    return key_of(who, *(set(SCOPES) - {"chats:read"}))


def of_another_chat(who: Person) -> Person:
    return key_of(who, chats=[shared_chat(who).pk])


def removed(who: Person) -> Person:
    Participant.objects.filter(user=who.user).update(left_at=who.user.date_joined)
    return who


def answers(web: httpx.Client, stage: Stage, who: Person) -> dict[str, str]:
    """Return the answer to each method and path that has the text of the owner's rows."""
    texts = {}
    for method in ORDER:
        for route, methods in ROUTES.items():
            if method not in methods or PAGES.match(route) or not route:
                continue
            if route.startswith(OWN):
                continue
            ids = stage.ids_of(route)
            _, body = methods[method]
            path = "/" + _filled(route, ids) + QUERIES.get((method, route), "")
            content: Any = None if body is None else json.loads(_filled(json.dumps(body), ids))
            answer = web.request(method, path, json=content, headers=who.headers)
            assert answer.status_code < 500 or answer.status_code == 503, (method, path)
            if SECRET in answer.text:
                texts[f"{method} {route}"] = answer.text
    return texts


@pytest.fixture
def stage(web: httpx.Client, settings: Settings) -> Stage:
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)
    new_stage = staged(web)
    owner = new_stage.people["owner"]
    Response.objects.filter(pk=new_stage.ids["response_id"]).update(text=SECRET)
    question = {"model": new_stage.ids["agent"], "input": SECRET}
    answered = web.post("/responses", json=question, headers=owner.headers).json()
    part = {"type": "text", "text": SECRET}
    body = {"message": {"role": "user", "parts": [part]}}
    task = web.post(f"/agents/{new_stage.ids['agent']}/tasks", json=body, headers=owner.headers)
    (task_id, *_) = re.findall(r'"id": ?"([^"]+)"', task.text)
    new_stage.ids |= {"gateway_response_id": answered["id"], "task_id": task_id}
    return new_stage


def test_the_owner_is_shown_the_text(web: httpx.Client, stage: Stage) -> None:
    assert len(answers(web, stage, stage.people["owner"])) > 20


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lose", [all_but_reading, of_another_chat, removed])
def test_no_text_is_shown_without_the_right_to_read(
    web: httpx.Client, stage: Stage, lose: Callable[[Person], Person]
) -> None:
    assert answers(web, stage, lose(stage.people["owner"])) == {}


def test_an_answer_that_is_replayed_has_no_text_for_a_key_that_only_writes(
    web: httpx.Client, stage: Stage
) -> None:
    owner, chat = stage.people["owner"], shared_chat(stage.people["owner"]).pk
    writer = key_of(owner, "messages:write", "tools:approve", "chats:write")
    keyed = {"Idempotency-Key": "once"}
    bodies: dict[str, dict[str, Any]] = {
        f"/api/v1/chats/{chat}/messages": {"content": f"@echo {SECRET}"},
        "/api/v1/responses": {"agent": "echo", "content": SECRET},
    }
    for path, body in bodies.items():
        first = web.post(path, json=body, headers={**owner.headers, **keyed}).json()
        (response,) = first["responses"]
        wait_until(Response.objects.filter(pk=response["id"], status="completed").exists)

        replayed = web.post(path, json=body, headers={**writer.headers, **keyed})

        (answer,) = replayed.json()["responses"]
        assert replayed.headers["Idempotency-Replayed"] == "true"
        assert (answer["id"], answer["text"]) == (response["id"], "")
        assert replayed.json()["message"]["id"] == first["message"]["id"]
        assert SECRET not in replayed.text
        full_answer = web.post(path, json=body, headers={**owner.headers, **keyed}).json()
        assert SECRET in full_answer["responses"][0]["text"]
        for end, more in (("cancel", None), ("retry", {})):
            changed = web.post(
                f"/api/v1/responses/{response['id']}/{end}", json=more, headers=writer.headers
            )
            assert SECRET not in changed.text
