"""A standing approval pays where the person chose the trigger: not a seller, nor a limited key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agents_app.rest.rights import ALL, Rights
from chat_app.models import Participant
from sessions_app.access import keys
from tests import factories
from tests.chat_app.forks.test_what_leaves import fork
from tests.live_server import Person, shared_chat
from tests.sessions_app.billing.paid_agents import priced

if TYPE_CHECKING:
    import httpx


@pytest.mark.parametrize("is_chosen", [True, False])
def test_a_fork_does_not_choose_a_trigger_for_the_person(
    demo: object, alice: Person, bob: Person, *, is_chosen: bool
) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(bob, alice, agents=("echo", "paid"))
    agents = Participant.objects.filter(chat=chat, agent__isnull=False)
    spec_trigger = agents.get(agent__name="paid").agent.trigger  # type: ignore[union-attr]  # of an agent
    agents.update(trigger=spec_trigger, trigger_by=alice.user if is_chosen else bob.user)
    new = fork(factories.message(chat, bob.user, "Hello"), alice.user)
    row = Participant.objects.get(chat=new, agent__name="paid")
    assert row.trigger_by_id == (alice.user.pk if is_chosen else None)


@pytest.mark.parametrize("may_commit", [False, True])
def test_a_key_that_may_not_commit_money_chooses_no_trigger(
    web: httpx.Client, alice: Person, *, may_commit: bool
) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(alice, agents=())
    rights = ALL if may_commit else Rights(scopes=frozenset({"chats:read", "chats:write"}))
    key = keys.make_key(alice.user.pk, keys.KeyRequest(name="narrow", rights=rights))
    headers = {"Authorization": f"Bearer {key.secret}"}
    path = f"/api/v1/chats/{chat.pk}/participants"
    body = {"agent": "paid", "trigger": "always"}
    assert web.post(path, json=body, headers=headers).is_success
    row = Participant.objects.get(chat=chat, agent__name="paid")
    chooser = alice.user.pk if may_commit else None
    assert row.trigger_by_id == chooser
    for trigger in ("mention", "always"):
        change = web.patch(f"{path}/{row.pk}", json={"trigger": trigger}, headers=headers)
        assert change.is_success
    row.refresh_from_db()
    assert row.trigger_by_id == chooser
    # A chat with a single agent always asks it.
    chat_id = web.post("/api/v1/chats", json={"agents": ["paid"]}, headers=headers).json()["id"]
    assert Participant.objects.get(chat=chat_id, agent__name="paid").trigger_by_id == chooser
