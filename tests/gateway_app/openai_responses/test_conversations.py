"""OpenAI's Conversations API: chats as conversations, and their messages as items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.models import Chat, Message, Participant
from sessions_app.models import Response
from tests.live_server import Person, shared_chat
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

USER = {"type": "message", "role": "user", "content": "Hello there"}


class Caller:
    """A client of the API."""

    def __init__(self, web: httpx.Client, who: Person | None) -> None:
        self.web, self.headers = web, {} if who is None else who.headers

    def __call__(
        self, method: str, path: str, body: Any = None, *, status: int = 200, **headers: str
    ) -> Any:
        """Send a request and return the body of its answer, which has this status."""
        all_headers = {**self.headers, **{name.replace("_", "-"): v for name, v in headers.items()}}
        answer = self.web.request(
            method, f"/v1/conversations{path}", json=body, headers=all_headers
        )
        assert answer.status_code == status, answer.text
        return answer.json()


def text_of(item: dict[str, Any]) -> str:
    """Return the text of an item."""
    return "".join(part["text"] for part in item.get("content") or item["summary"])


def test_a_conversation_is_a_chat_that_agents_answer_in(web: httpx.Client, alice: Person) -> None:
    call = Caller(web, alice)
    conversation = call("POST", "", {"metadata": {"topic": "cats"}, "items": [USER]})
    assert conversation == {
        "id": conversation["id"],
        "object": "conversation",
        "created_at": conversation["created_at"],
        "metadata": {"topic": "cats"},
    }
    chat = Chat.objects.get(pk=conversation["id"])
    assert not Response.objects.exists()
    path = f"/{chat.pk}"

    body = {"model": "thinker", "conversation": chat.pk, "input": "And again"}
    answer = web.post("/v1/responses", json=body, headers=alice.headers)
    assert answer.status_code == 200, answer.text
    output = answer.json()["output"]
    members = Participant.objects.filter(chat=chat, agent__isnull=False)
    assert [member.agent.name for member in members if member.agent] == ["thinker"]

    page = call("GET", f"{path}/items?order=asc")
    texts = [(entry["type"], entry.get("role"), text_of(entry)) for entry in page["data"]]
    assert texts[:2] == [("message", "user", "Hello there"), ("message", "user", "And again")]
    # The items of an answer are those of its response.
    assert page["data"][2:] == output
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert (page["has_more"], page["first_id"]) == (False, page["data"][0]["id"])

    def walk(order: str) -> list[str]:
        ids: list[str] = []
        after = ""
        while True:
            batch = call("GET", f"{path}/items?limit=1&order={order}{after}")
            ids += [item["id"] for item in batch["data"]]
            if not batch["has_more"]:
                return ids
            after = f"&after={batch['last_id']}"

    ids = [item["id"] for item in page["data"]]
    assert (walk("asc"), walk("desc")) == (ids, ids[::-1])
    for item in page["data"]:
        assert call("GET", f"{path}/items/{item['id']}") == item

    assert call("POST", path, {"metadata": {"topic": "dogs"}})["metadata"] == {"topic": "dogs"}
    assert call("DELETE", f"{path}/items/{ids[0]}")["id"] == chat.pk
    assert [item["id"] for item in call("GET", f"{path}/items?order=asc")["data"]] == ids[1:]
    for gone in (ids[0], "msg_" + "0" * 32, "msg_" + "0" * 32 + "_0"):
        call("GET", f"{path}/items/{gone}", status=404)
        call("GET", f"{path}/items?after={gone}", status=404)
    deleted = call("DELETE", path)
    assert deleted == {"id": chat.pk, "object": "conversation.deleted", "deleted": True}
    error = call("GET", path, status=404)["error"]
    assert (error["type"], error["code"]) == ("not_found_error", "chat_not_found")


def test_items_are_added_once_and_not_answered(web: httpx.Client, alice: Person) -> None:
    call = Caller(web, alice)
    first, again, other = (
        call("POST", "", {"metadata": {"n": n}}, Idempotency_Key="a") for n in ("1", "1", "2")
    )
    assert (again, other["id"] == first["id"]) == (first, False)
    conversation = web.post("/agents/echo/v1/conversations", headers=alice.headers).json()
    path = f"/{conversation['id']}/items"
    two = [USER, {"role": "user", "content": [{"type": "input_text", "text": "@echo you too"}]}]
    for _ in range(2):
        added = call("POST", path, {"items": two}, Idempotency_Key="b")
        assert [text_of(item) for item in added["data"]] == ["Hello there", "@echo you too"]
        assert added["last_id"] == added["data"][1]["id"]
    assert Message.objects.filter(chat=conversation["id"]).count() == 2
    assert not Response.objects.exists()


def test_each_added_item_counts_as_an_event(
    web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_HTTP_EVENTS_PER_MINUTE = 20
    call = Caller(web, alice)
    path = f"/{call('POST', '', {})['id']}/items"

    refused = call("POST", path, {"items": [USER] * 20}, status=429)

    assert refused["error"]["code"] == "rate_limited"
    assert not Message.objects.exists()
    call("POST", path, {"items": [USER] * 5})
    assert Message.objects.count() == 5


def test_what_a_conversation_does_not_take_is_refused(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    call, path = Caller(web, alice), f"/{chat.pk}"
    count = Chat.objects.count()
    for item, place in (
        ({"role": "system", "content": "Be brief"}, "items[0]"),
        ({"role": "assistant", "content": "I said so"}, "items[0]"),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, "items[0]"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "items[0].content[0].type"),
    ):
        for where in ("", f"{path}/items"):
            error = call("POST", where, {"items": [item]}, status=400)["error"]
            assert (error["code"], error["param"]) == ("unsupported_parameter", place)
    assert call("POST", "", {"items": [USER] * 21}, status=400)["error"]["param"] == "items"
    call("POST", path, {"metadata": {"a": 1}}, status=400)
    assert (Chat.objects.count(), Message.objects.count()) == (count, 0)

    # A chat that was not made here keeps its members.
    body = {"model": "slow", "conversation": chat.pk, "input": "a"}
    answer = web.post("/v1/responses", json=body, headers=alice.headers)
    assert answer.json()["error"]["code"] == "agent_not_found"
    bobs = Caller(web, bob)
    bobs("POST", path, {"metadata": {}}, status=403)
    bobs("DELETE", path, status=403)
    mine = call("POST", f"{path}/items", {"items": [USER]})["first_id"]
    bobs("DELETE", f"{path}/items/{mine}", status=403)
    assert bobs("GET", f"{path}/items")["data"][0]["id"] == mine


@pytest.mark.sampled(2)
@pytest.mark.parametrize("who", ["mallory", "visitor", "reader", "other chats"])
def test_a_conversation_is_for_those_who_are_in_it(
    web: httpx.Client, alice: Person, mallory: Person, who: str
) -> None:
    chat = shared_chat(alice)
    item = Caller(web, alice)("POST", f"/{chat.pk}/items", {"items": [USER]})["first_id"]
    caller, reads, writes = {
        "mallory": (mallory, 404, 404),
        "visitor": (None, 401, 401),
        "reader": (key_of(alice, "chats:read"), 200, 403),
        "other chats": (key_of(alice, chats=[shared_chat(alice).pk]), 404, 404),
    }[who]
    call, path = Caller(web, caller), f"/{chat.pk}"
    for below in ("", "/items", f"/items/{item}"):
        call("GET", path + below, status=reads)
    call("POST", path, {"metadata": {"a": "b"}}, status=writes)
    call("POST", f"{path}/items", {"items": [USER]}, status=writes)
    call("DELETE", f"{path}/items/{item}", status=writes)
    call("DELETE", path, status=writes)
    if who != "mallory":
        call("POST", "", {}, status=401 if who == "visitor" else 403)
    chat.refresh_from_db()
    assert (chat.metadata, chat.deleted_at, Message.objects.count()) == (None, None, 1)


@pytest.mark.parametrize("payer", ["owner", "pool"])
def test_a_key_that_may_not_pay_takes_no_agent_in_that_others_pay_for(
    web: httpx.Client, alice: Person, payer: str
) -> None:
    chat_id = Caller(web, alice)("POST", "", {})["id"]
    path = f"/api/v1/chats/{chat_id}"
    assert web.patch(path, json={"payer": payer}, headers=alice.headers).is_success
    body = {"model": "echo", "conversation": chat_id, "input": "Hello"}
    narrow = key_of(alice, "chats:read", "chats:write", "messages:write")
    refused = web.post("/v1/responses", json=body, headers=narrow.headers)
    assert refused.status_code == 403, refused.text
    assert "payments:write" in refused.json()["error"]["message"]
    assert not Participant.objects.filter(chat=chat_id, agent__isnull=False).exists()
    assert not Response.objects.exists()
