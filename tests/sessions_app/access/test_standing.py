"""Revoked means stopped: what runs or waits for one who may not act any more ends, and says why."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents_app.models import Agent
from agents_app.providers import scripts
from chat_app.members.participants import remove_participant
from chat_app.models import Message, Participant
from payments_app.spending import approvals
from sessions_app import database, lifespan
from sessions_app.access import standing
from sessions_app.access.auth import of_user
from sessions_app.connection.client_connection import CLOSE_UNAUTHORIZED, ClientConnection
from sessions_app.models import ApiKey, Response, ToolCall
from sessions_app.process import periodic
from tests import factories
from tests.client import TERMINAL, wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced, rich, usd
from tests.sessions_app.connected.daemons import Daemon, token_for
from tests.sessions_app.process.server_processes import Server, killable, prepared
from tests.sessions_app.turn.delegation import answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order
from upp.providers.scripted import Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from chat_app.models import Chat
    from tests.client import UampClient
    from tests.live_server import Dial, Person
    from upp import LLMRequest

__all__ = ["killable", "prepared"]

TEXT = "Half of it. "


async def half(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    yield Text(TEXT)
    yield Pause(60)


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "QUEUE_SECONDS", 0.1)
    monkeypatch.setitem(scripts.SCRIPTS, "half", half)


def revoke_the_key(_chat: Chat | None, who: Person) -> None:
    ApiKey.objects.filter(user=who.user).update(revoked_at=timezone.now())


def let_the_key_expire(_chat: Chat, who: Person) -> None:
    ApiKey.objects.filter(user=who.user).update(expires_at=timezone.now())


def deactivate(_chat: Chat, who: Person) -> None:
    User.objects.filter(pk=who.user.pk).update(is_active=False)


def remove(chat: Chat, who: Person) -> None:
    assert chat.created_by is not None
    member = Participant.objects.get(chat=chat, user=who.user)
    remove_participant(chat_id=chat.pk, participant_id=member.pk, removed_by=chat.created_by)


def leave(chat: Chat, who: Person) -> None:
    member = Participant.objects.get(chat=chat, user=who.user)
    remove_participant(chat_id=chat.pk, participant_id=member.pk, removed_by=who.user)


def switch_off(_chat: Chat, _who: Person) -> None:
    Agent.objects.filter(name="half").update(is_enabled=False)


def make_private(_chat: Chat, _who: Person) -> None:
    Agent.objects.filter(name="half").update(is_public=False)


LOSSES: list[tuple[Callable[[Chat, Person], None], str]] = [
    (revoke_the_key, "unauthorized"),
    (let_the_key_expire, "unauthorized"),
    (deactivate, "unauthorized"),
    (remove, "unauthorized"),
    (leave, "unauthorized"),
    (switch_off, "agent_disabled"),
    (make_private, "unauthorized"),
]
PRICES: list[dict[str, Any]] = [{}, {"per_answer": "1"}]


def inside(dial: Dial, who: Person, chat: Chat) -> UampClient:
    client = dial(who)
    client.create_session(chat=chat.pk)
    return client


def stops_growing(journal: Path) -> bool:
    """Return whether a file's size stays the same for a second."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        before = journal.stat().st_size
        time.sleep(1)
        if journal.stat().st_size == before:
            return True
    return False


def begin_answer(client: UampClient) -> None:
    """Ask, and wait until half of the answer is there."""
    client.ask("@half talk")
    client.until("response.delta")


@pytest.mark.sampled
@pytest.mark.parametrize("pricing", PRICES, ids=["free", "paid"])
@pytest.mark.parametrize(("lose", "code"), LOSSES)
def test_a_running_answer_ends_with_the_reason_and_what_it_delivered_is_paid(
    dial: Dial,
    alice: Person,
    bob: Person,
    pricing: dict[str, Any],
    lose: Callable[[Chat, Person], None],
    code: str,
) -> None:
    agent = priced("half", "half", **pricing)
    chat = shared_chat(alice, bob, agents=("half",))
    approvals.approve(rich(bob).user.pk, agent.pk, usd("9"))
    witness, asker = inside(dial, alice, chat), inside(dial, bob, chat)
    begin_answer(asker)
    lose(chat, bob)
    end = witness.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", code)
    if lose not in {remove, leave}:
        assert asker.until(*TERMINAL)[-1]["error"]["code"] == code
    row = Response.objects.get()
    assert (row.status, (row.error or {})["code"]) == ("failed", code)
    message = Message.objects.get(chat=chat, role="assistant")
    assert (message.content, message.status) == (TEXT, "failed")
    wait_until(clean)
    if pricing and lose in {deactivate, remove, switch_off, make_private}:
        # Others may have done that: no more than a share of the price is due.
        assert usd("0") < usd(earned(agent)) < usd("1")
    else:
        assert earned(agent) == ("1" if pricing else "0")


def test_the_answers_of_others_continue(dial: Dial, alice: Person, bob: Person) -> None:
    quick_agent("half", "half")
    quick_agent("other", "half")
    chat = shared_chat(alice, bob, agents=("half", "other"))
    first, second, visitor = inside(dial, alice, chat), inside(dial, bob, chat), dial()
    visitor.create_session(agent="other")
    visitor.ask("talk")
    for client, text in ((first, "@other talk"), (second, "@other @half talk")):
        client.ask(text)
    wait_until(lambda: Response.objects.filter(text=TEXT).count() == 4)
    switch_off(chat, bob)
    wait_until(lambda: Response.objects.filter(status="failed").count() == 1)
    remove(chat, bob)
    wait_until(lambda: Response.objects.filter(status="failed").count() == 2)
    payers = Response.objects.filter(status="in_progress").values_list("session__user", flat=True)
    assert set(payers) == {None, alice.user.pk}


@pytest.fixture
def journal(settings: Settings, tmp_path: Path) -> Path:
    """Give the file that a long tool writes, whose worker runs."""
    settings.UAMP_SERVER_TOOLS = [
        *settings.UAMP_SERVER_TOOLS,
        "tests.sessions_app.turn.team_tools.STEPS",
    ]
    return tmp_path / "journal"


@pytest.mark.usefixtures("celery_worker_thread")
def test_delegated_work_and_its_tool_stop_with_the_answer(
    dial: Dial, alice: Person, journal: Path
) -> None:
    doer("boss", "worker")
    doer("worker", tools=("steps",))
    client = dial(alice)
    client.create_session(agent="boss")
    arguments = {"steps": 400, "pause": 0.05, "journal": str(journal)}
    client.ask(task_for("worker", order(call="steps", arguments=arguments)))
    wait_until(journal.exists)
    revoke_the_key(None, alice)
    assert client.until(*TERMINAL)[-1]["error"]["code"] == "unauthorized"
    wait_until(lambda: not Response.objects.filter(status__in=Response.LIVE).exists())
    assert not ToolCall.objects.filter(status__in=ToolCall.OPEN).exists()
    # The worker stops at its next step, and writes no more of them.
    assert stops_growing(journal)


def test_an_agent_that_is_switched_off_ends_its_work_for_another_one(
    dial: Dial, alice: Person
) -> None:
    doer("boss", "worker")
    doer("worker")
    client = dial(alice)
    client.create_session(agent="boss")
    client.ask(task_for("worker", order(words=2000)))
    wait_until(lambda: Response.objects.filter(agent__name="worker").exclude(text="").exists())
    Agent.objects.filter(name="worker").update(is_enabled=False)
    assert "failed: worker could not finish: worker is switched off." in answer_text(
        client.until(*TERMINAL)
    )
    assert Response.objects.filter(agent__name="worker", error__code="agent_disabled").exists()


def test_a_daemon_is_asked_to_stop(dial: Dial, alice: Person, bob: Person) -> None:
    daemon = Daemon(dial(path="/ws"))
    daemon.register("helper", token_for(alice, "helper"))
    Agent.objects.filter(name="helper").update(is_public=True)
    client = dial(bob)
    client.create_session(agent="helper")
    client.ask("hello")
    turn = daemon.turn()
    daemon.say(turn, "so far")
    client.until("response.delta")
    revoke_the_key(None, bob)
    assert daemon.socket.expect("response.cancel")["session_id"] == turn["session_id"]
    end = client.until(*TERMINAL)[-1]
    assert (end["error"]["code"], end["partial_output"][0]["text"]) == ("unauthorized", "so far")


def test_the_cost_of_the_check_does_not_grow_with_the_answers(
    alice: Person, django_assert_num_queries: Any
) -> None:
    agent = quick_agent("half", "half")
    chat = shared_chat(alice, agents=("half",))
    credential = ApiKey.objects.get(user=alice.user).credential
    bases = {
        f"resp_{number}": standing.AnswerBasis(agent.pk, "half", alice.user.pk, chat.pk, credential)
        for number in range(50)
    }
    with django_assert_num_queries(3):
        assert standing.revoked_answers(bases) == {}
    bases["resp_0"] = bases["resp_0"]._replace(agent_id="gone")
    assert set(standing.revoked_answers(bases)) == {"resp_0"}


def test_the_process_of_an_answer_finds_what_another_process_changed(killable: Server) -> None:
    killable.start()
    client = killable.dial()
    client.create_session(agent="slow")
    client.ask("Count")
    client.until("response.delta")
    killable.run(
        "from agents_app.models import Agent\n"
        "Agent.objects.filter(name='slow').update(is_enabled=False)"
    )
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], end["error"]["code"]) == ("response.error", "agent_disabled")
    assert killable.query("SELECT status FROM sessions_app_response") == [("failed",)]


async def test_a_right_that_is_lost_during_a_round_ends_the_connection_in_the_next_one(
    database_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its own rounds would come between.
    monkeypatch.setattr(periodic, "start", lambda _process: None)
    who = await database.run(factories.user)
    process = lifespan.start()
    connection = ClientConnection(
        principal=of_user(who), transport="websocket", reader=process, groups=process.groups
    )
    process.followers.add(connection)

    async def lose() -> None:
        await database.run(User.objects.filter(pk=who.pk).update, is_active=False)

    # The answers that it asked for are stopped before, in the next round.
    codes = []
    for _ in range(2):
        await process.followers.check_principals(stop_answers=lose)
        codes.append(connection.closed_with)
    assert codes == [None, CLOSE_UNAUTHORIZED]
    await lifespan.shutdown()
