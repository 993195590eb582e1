"""Shares of the workers: an asker with many long tools leaves room for those of others."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents_app.tools.registry import ToolOutcome
from sessions_app.models import ToolCall
from sessions_app.tools import tasks
from sessions_app.tools.fair_claims import SHARE
from sessions_app.tools.worker import claim_call, end_call
from tests.sessions_app.tools.claims import claimed
from tests.sessions_app.tools.tool_workers import queued_call

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("is_visitor", [False, True])
def test_an_asker_with_a_full_share_starts_no_call_while_others_wait(*, is_visitor: bool) -> None:
    busy = None if is_visitor else User.objects.create_user("busy")
    waiting = User.objects.create_user("waiting")
    first, *_ = [claimed(queued_call("steps", user=busy)) for _ in range(SHARE)]
    refused = queued_call("steps", user=busy)
    other = queued_call("steps", user=waiting)

    assert claim_call(refused.pk) is None
    assert ToolCall.objects.get(pk=refused.pk).status == "queued"
    claimed(other)
    # No one else waits now, so that the workers are not idle.
    claimed(refused)

    late = queued_call("steps", user=busy)
    queued_call("steps", user=waiting)
    assert claim_call(late.pk) is None
    end_call(first, "done", ToolOutcome(result=""))
    assert claim_call(late.pk) is None


def test_askers_with_full_shares_do_not_wait_for_each_other() -> None:
    askers = [User.objects.create_user(name) for name in ("one", "two")]
    for asker in askers:
        for _ in range(SHARE):
            claimed(queued_call("steps", user=asker))
    more = [queued_call("steps", user=asker) for asker in askers]
    for call in more:
        claimed(call)


def test_askers_take_turns_when_calls_are_queued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "NOTIFIED_AT_ONCE", 2)
    monkeypatch.setattr(tasks, "_notify", list)
    busy, waiting = (User.objects.create_user(name) for name in ("busy", "waiting"))
    many = [queued_call("steps", user=busy) for _ in range(3)]
    last = queued_call("steps", user=waiting)
    ToolCall.objects.update(created_at=timezone.now() - timedelta(seconds=60))
    assert tasks.requeue_lost_calls() == [many[0].pk, last.pk]
