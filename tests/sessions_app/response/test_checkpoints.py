"""Checkpoints and remote tasks of responses: who may save one, and which are forgotten."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents_app import checkpoints
from agents_app.models import Checkpoint, RemoteTask
from agents_app.remote import tasks
from agents_app.remote.tasks import TaskHandle
from sessions_app.models import Response
from sessions_app.store import responses
from tests import factories
from uamp.types.content import TextContent
from uap import AgentState

HANDLE = TaskHandle(protocol="a2a", address="https://far.example/", ids={"task": "t1"}, rounds=0)
SAID = [TextContent(text="one")]


def running(**fields: object) -> Response:
    agent = factories.agent(f"agent{Response.objects.count()}")
    return factories.response(agent, factories.chat(agent), **fields)


def save(response: Response, *, fence: int) -> None:
    state = AgentState.initial()
    responses.save_checkpoint(
        response.pk,
        fence=fence,
        text="one",
        output=SAID,
        usage=None,
        inferences=None,
        state=state,
        step=1,
    )


@pytest.mark.django_db
def test_only_who_runs_a_response_saves_its_checkpoint() -> None:
    response = running(fence=2)
    save(response, fence=1)
    assert checkpoints.load(response.pk) is None
    save(response, fence=2)
    checkpoint = checkpoints.load(response.pk)
    assert checkpoint is not None
    assert (checkpoint.output, checkpoint.fence) == (tuple(SAID), 2)
    response.refresh_from_db()
    assert response.text == "one"


@pytest.mark.django_db
def test_old_checkpoints_of_what_has_ended_are_forgotten() -> None:
    live, ended, fresh = running(), running(), running()
    for response in (live, ended, fresh):
        save(response, fence=1)
    Response.objects.filter(pk__in=[ended.pk, fresh.pk]).update(
        status="completed", finished_at=timezone.now()
    )
    old = timezone.now() - timedelta(days=1)
    Checkpoint.objects.filter(pk__in=[live.pk, ended.pk]).update(updated_at=old)
    responses.forget_old_checkpoints()
    assert set(Checkpoint.objects.values_list("pk", flat=True)) == {live.pk, fresh.pk}


@pytest.mark.django_db
def test_only_who_runs_a_response_records_its_remote_task() -> None:
    response = running(fence=2)
    responses.save_remote_task(response.pk, HANDLE, fence=1)
    assert tasks.load(response.pk) is None
    responses.save_remote_task(response.pk, HANDLE, fence=2)
    tasks.delete(response.pk, fence=1)
    assert tasks.load(response.pk) == HANDLE
    tasks.delete(response.pk, fence=2)
    assert tasks.load(response.pk) is None


@pytest.mark.django_db
def test_only_who_runs_a_response_may_give_its_question_to_a_daemon() -> None:
    response = running(fence=2, offered_fence=2)
    assert not responses.give_question(response.pk, fence=1)
    fences = Response.objects.filter(pk=response.pk).values_list("offered_fence", flat=True)
    assert fences.get() == 2
    assert responses.give_question(response.pk, fence=2)
    assert fences.get() is None
    Response.objects.filter(pk=response.pk).update(status="failed", finished_at=timezone.now())
    assert not responses.give_question(response.pk, fence=2)


@pytest.mark.django_db
def test_old_remote_tasks_of_what_has_ended_are_forgotten() -> None:
    live, ended = running(), running()
    for response in (live, ended):
        responses.save_remote_task(response.pk, HANDLE, fence=1)
    Response.objects.filter(pk=ended.pk).update(status="completed", finished_at=timezone.now())
    RemoteTask.objects.update(updated_at=timezone.now() - timedelta(days=1))
    responses.forget_old_checkpoints()
    assert list(RemoteTask.objects.values_list("pk", flat=True)) == [live.pk]
