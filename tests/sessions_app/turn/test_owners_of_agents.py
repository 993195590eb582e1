"""An agent involves only agents that its own owner may use, even if its asker may use others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User

from agents_app.models import Agent
from agents_app.selectors import forget, get_spec
from sessions_app.models import Response
from tests import factories
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.turn.delegation import answer_frames, answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from tests.live_server import Dial, Person


@pytest.mark.any_database
@pytest.mark.parametrize("asker", ["staff", "owner of the private agent"])
def test_an_agent_has_no_agent_work_that_its_owner_may_not_use(
    dial: Dial, alice: Person, bob: Person, asker: str
) -> None:
    doer("worker", is_public=False, owner=alice.user, description="SECRET DESCRIPTION")
    boss = doer("boss", "worker", owner=bob.user)
    if asker == "staff":
        User.objects.filter(pk=bob.user.pk).update(is_staff=False)
        User.objects.filter(pk=alice.user.pk).update(is_staff=True)
        Agent.objects.filter(name="worker").update(owner=factories.user("carol"))
    # Its model sees neither the name nor the description.
    assert get_spec(boss.pk).delegates == ()
    assert "done" not in answer_text(
        answer_frames(dial(), "boss", task_for("worker", order(say="done")))
    )
    assert not Response.objects.filter(agent__name="worker").exists()
    # A public agent may be used by everyone.
    Agent.objects.filter(name="worker").update(is_public=True)
    forget(boss)
    assert (
        answer_text(answer_frames(dial(), "boss", task_for("worker", order(say="done"))))
        == "received: done"
    )


def test_an_agent_that_becomes_private_while_it_is_asked_does_not_work(
    dial: Dial, alice: Person, bob: Person
) -> None:
    worker = doer("worker", owner=alice.user)
    boss = doer("boss", "worker", owner=bob.user)
    assert get_spec(boss.pk).delegates == (("worker", ""),)
    # Written without a signal: the answer runs with the configuration read before.
    Agent.objects.filter(pk=worker.pk).update(is_public=False)
    received = answer_text(answer_frames(dial(), "boss", task_for("worker", order(say="done"))))
    assert received == "failed: worker is not available to the owner of boss."
    assert not Response.objects.filter(agent=worker).exists()


@pytest.mark.any_database
def test_an_agent_does_not_mention_one_that_its_owner_may_not_use(
    dial: Dial, alice: Person, bob: Person
) -> None:
    quick_agent("helper", "echo")
    quick_agent("curious", "asker", asks=["helper"], says="what do you think?")
    Agent.objects.filter(name="curious").update(owner=bob.user)
    User.objects.filter(pk=alice.user.pk).update(is_staff=True)
    chat = shared_chat(alice, agents=("helper", "curious"))
    Agent.objects.filter(name="helper").update(is_public=False)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    # Alice may ask it herself, as staff.
    client.answer("@helper hello")
    client.ask("@curious hello")
    stopped = client.until("agent.stopped")[-1]
    assert (stopped["agent"], stopped["reason"]) == ("helper", "private")
    assert Response.objects.filter(agent__name="helper").count() == 1
