"""The states of many webhooks: those of one person keep those of another from no round."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from sessions_app.access import rates
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.webhooks import deliveries, response_changes
from tests import factories

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _webhooks() -> None:
    """Give one person more changed webhooks than a round has, and a newer one to another person."""
    rates.forget()
    echo = factories.agent()
    ada, bob = factories.user("ada"), factories.user("bob")
    of_ada = factories.response(echo, factories.chat(ada, echo))
    of_bob = factories.response(echo, factories.chat(bob, echo))
    due = timezone.now() - timedelta(hours=1)
    owners = [("user:ada", of_ada, due)] * 2 * response_changes.BATCH_SIZE
    owners += [("user:bob", of_bob, timezone.now())]
    Webhook.objects.bulk_create(
        Webhook(
            response=response,
            name=str(number),
            principal=owner,
            counted_as=owner,
            format="a2a-1.0",
            look_at=look_at,
        )
        for number, (owner, response, look_at) in enumerate(owners)
    )


def test_a_round_has_a_few_webhooks_of_each_person() -> None:
    people = [change.counted_as for change in response_changes.find_changes()]

    assert people == ["user:ada"] * response_changes.MAX_PER_PERSON + ["user:bob"]


def test_what_is_beyond_the_rate_of_a_person_is_postponed_at_once(settings: Settings) -> None:
    settings.UAMP_WEBHOOKS_PER_MINUTE = 0

    async_to_sync(response_changes.queue_changes)()

    assert not Webhook.objects.filter(look_at__lte=timezone.now()).exists()
    assert (
        Webhook.objects.filter(look_at__isnull=False).count() == 2 * response_changes.BATCH_SIZE + 1
    )


def test_first_attempts_of_workers_of_an_earlier_release_count_as_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    webhook = Webhook.objects.order_by("pk")[0]
    lease = timezone.now() + timedelta(seconds=deliveries.LEASE_SECONDS)
    for number, attempts in enumerate((0, 1)):
        WebhookDelivery.objects.create(
            webhook=webhook,
            number=number,
            state="working",
            body="{}",
            attempts=attempts,
            due_at=lease if attempts else timezone.now(),
        )
    (due,) = deliveries.take_due()

    monkeypatch.setattr(deliveries, "UNANSWERED_UNDER_WAY", 0)
    assert deliveries.claim(due) is not None


def test_receivers_that_do_not_answer_leave_workers_to_other_people() -> None:
    retry = timezone.now() + timedelta(seconds=deliveries.BACKOFF_SECONDS[0])
    people = [f"user:slow{number}" for number in range(deliveries.UNANSWERED_UNDER_WAY + 1)]
    webhooks = list(Webhook.objects.order_by("pk")[: len(people) + 1])
    for webhook, person in zip(webhooks, [*people, "user:quick"], strict=True):
        webhook.counted_as = person
        webhook.save()
        # The receiver of each but the last gave no answer to one, and has another one due.
        attempts = (1, 0) if person in people else (0,)
        for number, attempt_count in enumerate(attempts):
            WebhookDelivery.objects.create(
                webhook=webhook,
                number=number,
                state="working",
                body="{}",
                attempts=attempt_count,
                due_at=retry if attempt_count else timezone.now(),
            )
    WebhookDelivery.objects.filter(attempts=1).update(number=2)

    due = deliveries.take_due()
    assert len(due) == len(people) + 1
    first = WebhookDelivery.objects.get(pk=due[0])
    assert first.webhook.counted_as == "user:quick"
    claims = [deliveries.claim(pk) for pk in [*due[1:], due[0]]]

    assert [claim.counted_as for claim in claims if claim is not None] == [
        *people[: deliveries.UNANSWERED_UNDER_WAY],
        "user:quick",
    ]
