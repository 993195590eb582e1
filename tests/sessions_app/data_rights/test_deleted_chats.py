"""A chat that its owner deletes is gone for everyone at once, and its rows soon after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from audit_app.models import AuditRecord
from chat_app.models import Chat, ChatEvent, Message, Participant, ShareLink
from sessions_app.data_rights.deleted_chats import delete_rows
from sessions_app.models import QueuedTurn, Response, Session
from tests import factories
from tests.chat_app.forks.test_what_leaves import fork
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import clean, priced, rich, wallet

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_deleted_chat_is_gone_for_everyone_and_its_money_goes_back(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), rich(bob), agents=("paid", "slow"))
    path = f"/api/v1/chats/{chat.pk}"

    def call(method: str, who: Person, below: str = "", **request: object) -> httpx.Response:
        headers = {**who.headers, "Idempotency-Key": f"{who.user.username}{below}"}
        return web.request(method, f"{path}{below}", headers=headers, **request)  # type: ignore[arg-type]  # of the client

    assert call("PATCH", alice, json={"payer": "pool"}).is_success
    Participant.objects.filter(chat=chat, user=bob.user).update(role="owner")
    for who, amount in ((alice, "2"), (bob, "3")):
        assert call("POST", who, "/pool", json={"amount": amount}).is_success
    Participant.objects.filter(chat=chat, user=bob.user).update(role="member")
    link = web.post(f"{path}/share-links", json={}, headers=alice.headers).json()["url"]
    bobs = dial(bob)
    bobs.create_session(chat=chat.pk)
    bobs.ask("@paid hello")
    bobs.until("response.done")
    bobs.ask("@slow hello")
    running = bobs.until("response.created")[-1]["response_id"]
    tag = call("GET", alice).headers["ETag"]

    refused = [call("DELETE", bob), web.delete(path, headers={**alice.headers, "If-Match": '"x"'})]
    assert [answer.status_code for answer in refused] == [403, 412]
    assert not Chat.objects.get(pk=chat.pk).deleted_at
    deleted = web.delete(path, headers={**alice.headers, "If-Match": tag})
    assert (deleted.status_code, deleted.content) == (204, b"")

    for who in (alice, bob):
        assert call("GET", who).status_code == call("GET", who, "/messages").status_code == 404
        assert call("DELETE", who).status_code == 404
    assert web.get(link).status_code == 404
    assert not ShareLink.objects.filter(chat=chat, revoked_at__isnull=True).exists()
    assert bobs.until("session.end", "session.error")
    unfinished = Response.objects.filter(pk=running, status__in=Response.LIVE)
    wait_until(lambda: not unfinished.exists())
    delete_rows(10)

    row = Chat.objects.get(pk=chat.pk)
    assert (row.title, row.last_seq > 0) == ("", True)
    for model in (Message, ChatEvent, Participant, Session):
        assert not model.objects.filter(chat=chat).exists(), model
    assert list(Response.objects.filter(chat=chat).values_list("agent__name", "text")) == [
        ("paid", "")
    ]
    # A dollar of the first deposit was spent.
    assert [str(wallet(who).available) for who in (alice, bob)] == ["9", "10"]
    assert clean()
    assert AuditRecord.objects.get(action="chat.deleted").actor_id == alice.user.pk
    assert delete_rows(10) == 0


def test_the_rows_of_a_deleted_chat_wait_for_its_answers() -> None:
    ada, echo = factories.user(), factories.agent()
    chats = [factories.chat(ada, echo) for _ in range(3)]
    over, runs, stays = chats
    factories.queued_turn(ada, factories.session(ada, over))
    factories.response(echo, runs)
    Chat.objects.exclude(pk=stays.pk).update(deleted_at=timezone.now())

    assert delete_rows(10) == 1
    assert set(Chat.objects.values_list("pk", flat=True)) == {runs.pk, stays.pk}
    assert not QueuedTurn.objects.exists()
    Response.objects.update(status="completed", finished_at=timezone.now())
    assert delete_rows(10) == 1
    assert list(Chat.objects.values_list("pk", flat=True)) == [stays.pk]


def test_copies_of_a_deleted_message_go_at_the_latest_with_its_chat() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    original = factories.message(chat, ada, "between us")
    copy = Message.objects.get(copied_from=original.pk, chat=fork(original, bob))
    # The process that deleted it died before it looked for copies.
    Message.objects.filter(pk=original.pk).update(content="", deleted_at=timezone.now())
    Chat.objects.filter(pk=chat.pk).update(deleted_at=timezone.now())

    assert delete_rows(10) == 1

    copy.refresh_from_db()
    assert (copy.content, copy.deleted_at is None) == ("", False)
