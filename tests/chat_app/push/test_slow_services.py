"""Slow and silent push services: their attempts leave workers to others."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from chat_app.models import PushDelivery, PushSubscription
from chat_app.push import deliveries
from chat_app.push.news import queue_news
from tests import factories
from tests.chat_app.push.push_rounds import make_due, signed_in, subscribe

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from tests.push_service import PushBrowser, PushService

pytestmark = pytest.mark.django_db


def test_slow_push_services_of_a_person_leave_workers_to_others(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    own = push_service.browser("grace")
    assert subscribe(signed_in(grace), own.subscription).status_code == 201
    chat = factories.chat(ada, grace)
    for _ in range(deliveries.UNDER_WAY + 2):
        factories.message(chat, grace)
    factories.message(chat, ada, "for Grace")
    now = timezone.now()
    queue_news(now)

    due = deliveries.take_due(now)
    assert len(due) == deliveries.UNDER_WAY + 1
    # None of these attempts ends: the service is slow.
    begun = [deliveries.claim(pk) for pk in due]
    assert None not in begun

    rest = PushDelivery.objects.filter(attempts=0)
    assert len(rest) == 2
    assert [deliveries.claim(row.pk) for row in rest] == [None, None]
    of_ada = next(claim for claim in begun if claim is not None and claim.user == ada.pk)
    following = deliveries.finish(of_ada, 201)
    assert following in {row.pk for row in rest}
    assert deliveries.claim(following) is not None
    assert (push_service.received(browser), push_service.received(own)) == ([], [])


def test_push_services_that_do_not_answer_leave_workers_to_others(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    own = push_service.browser("grace")
    assert subscribe(signed_in(grace), own.subscription).status_code == 201
    chat = factories.chat(ada, grace)
    slow = []
    for number in range(deliveries.UNANSWERED_UNDER_WAY):
        person = factories.user(f"slow{number}")
        made = push_service.browser(person.username)
        assert subscribe(signed_in(person), made.subscription).status_code == 201
        factories.message(factories.chat(person, grace), grace)
        slow.append(person.pk)
    factories.message(chat, grace)
    queue_news(timezone.now())
    for row in PushDelivery.objects.all():
        claimed = deliveries.claim(row.pk)
        assert claimed is not None
        deliveries.finish(claimed, None)
    factories.message(chat, ada, "for Grace")
    queue_news(timezone.now())
    make_due()

    due = deliveries.take_due(timezone.now())
    assert len(due) == deliveries.UNANSWERED_UNDER_WAY + 2
    assert PushDelivery.objects.get(pk=due[0]).subscription.user_id == grace.pk
    begun = [deliveries.claim(pk) for pk in [*due[1:], due[0]]]

    users = [claim.user for claim in begun if claim is not None]
    assert len(users) == deliveries.UNANSWERED_UNDER_WAY + 1
    assert users[-1] == grace.pk
    assert set(users[:-1]) <= {*slow, ada.pk}
    assert (push_service.received(browser), push_service.received(own)) == ([], [])


def test_a_browser_whose_push_service_does_not_answer_leaves_the_others_their_turn(
    ada: User, grace: User, push_service: PushService, browser: PushBrowser
) -> None:
    chat = factories.chat(ada, grace)
    for _ in range(deliveries.UNDER_WAY + 1):
        factories.message(chat, grace)
    queue_news(timezone.now())
    silent = PushSubscription.objects.get()
    claimed = deliveries.claim(PushDelivery.objects.earliest("pk").pk)
    assert claimed is not None
    deliveries.finish(claimed, None)
    other = push_service.browser("phone")
    assert subscribe(signed_in(ada), other.subscription).status_code == 201
    factories.message(chat, grace)
    queue_news(timezone.now())
    make_due()

    due = deliveries.take_due(timezone.now())
    assert len(due) == deliveries.UNDER_WAY
    begun = [claim for pk in reversed(due) if (claim := deliveries.claim(pk)) is not None]
    # The silent one has an attempt at a time.
    assert [claim.subscription == silent.pk for claim in begun] == [True, False]
    assert claimed.subscription == silent.pk
    assert (push_service.received(browser), push_service.received(other)) == ([], [])


def test_first_attempts_of_workers_of_an_earlier_release_count_as_running(
    ada: User,
    grace: User,
    push_service: PushService,
    browser: PushBrowser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat = factories.chat(ada, grace)
    for _ in range(2):
        factories.message(chat, grace)
    queue_news(timezone.now())
    first, second = PushDelivery.objects.order_by("pk")
    lease = timezone.now() + timedelta(seconds=deliveries.LEASE_SECONDS)
    PushDelivery.objects.filter(pk=first.pk).update(attempts=1, due_at=lease)
    monkeypatch.setattr(deliveries, "UNANSWERED_UNDER_WAY", 0)

    assert deliveries.claim(second.pk) is not None
    assert push_service.received(browser) == []
