"""The settings of a chat over REST: its title, who pays, and whom its agents answer."""

from __future__ import annotations

from typing import Any

import pytest

from chat_app.models import ChatEvent
from tests import factories
from tests.chat_app.rest.rest_caller import check_problem, patch, signed_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("users", "trigger"), [([], "always"), (["bob"], "mention")], ids=["alone", "with bob"]
)
def test_an_agent_alone_with_one_person_answers_always(users: list[str], trigger: str) -> None:
    factories.user("bob")
    factories.agent("echo")
    client = signed_in(factories.user("alice"))
    body = {"users": users, "agents": ["echo"]}
    chat = client.post("/api/v1/chats", body, content_type="application/json").json()
    (agent,) = (member for member in chat["participants"] if member["kind"] == "agent")
    assert agent["trigger"] == trigger


def test_agents_publish_their_prices_and_chats_their_payer() -> None:
    ada = factories.user("ada")
    factories.agent("free")
    paid = factories.agent("paid", pricing={"per_answer": "0.02", "tools": {"look": "0.1"}})
    chat = factories.chat(ada, paid)
    client = signed_in(ada)
    free, priced = client.get("/api/v1/agents").json()["data"]
    assert free["pricing"] is None
    assert priced["id"] == paid.pk
    assert priced["pricing"] == {
        "currency": "USD",
        "per_answer": "0.02",
        "input_per_1k": "0",
        "output_per_1k": "0",
        "cache_read_per_1k": None,
        "cache_write_per_1k": None,
        "audio_input_per_1k": None,
        "audio_output_per_1k": None,
        "tools": {"look": "0.1"},
        "unfinished": "whole",
        "expected_tokens": None,
    }
    chat_data = client.get(f"/api/v1/chats/{chat.pk}").json()
    assert chat_data["payer"] == "asker"
    assert [m.get("pricing") for m in chat_data["participants"]] == [None, priced["pricing"]]


def test_an_owner_changes_the_title_and_who_pays_and_the_log_says_so() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob, title="Before")
    path = f"/api/v1/chats/{chat.pk}"
    changed = patch(signed_in(ada), path, {"title": "\u202eAfter", "payer": "owner"})
    assert (changed.status_code, changed.json()["payer"]) == (200, "owner")
    chat.refresh_from_db()
    assert (chat.title, chat.payer, chat.last_seq) == ("After", "owner", 1)
    reported = ChatEvent.objects.get(chat=chat)
    assert (reported.type, reported.payload["payer"]) == ("chat.updated", "owner")
    assert patch(signed_in(ada), path, {"payer": "owner"}).status_code == 200
    assert ChatEvent.objects.filter(chat=chat).count() == 1


@pytest.mark.parametrize("body", [{"payer": "owner"}, {"title": "Mine"}])
def test_a_member_changes_neither_who_pays_nor_the_title(body: dict[str, str]) -> None:
    ada, bob, mallory = (factories.user(name) for name in ("ada", "bob", "mallory"))
    chat = factories.chat(ada, bob, title="Ours")
    path = f"/api/v1/chats/{chat.pk}"
    check_problem(patch(signed_in(bob), path, body), 403, "forbidden")
    check_problem(patch(signed_in(mallory), path, body), 404, "not_found")
    chat.refresh_from_db()
    assert (chat.title, chat.payer, chat.last_seq) == ("Ours", "asker", 0)


@pytest.mark.parametrize("body", [{"payer": "missing"}, {"payer": None}, {"kind": "session"}])
def test_a_change_that_cannot_be_is_refused(body: dict[str, Any]) -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada)
    check_problem(patch(signed_in(ada), f"/api/v1/chats/{chat.pk}", body), 400, "invalid")
