"""Contents and messages that long tools read and write in their chat, and the built-in tools."""

import json
import uuid
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

import uamp
from agents_app.tools.registry import FoundMessage, ToolError
from chat_app.contents import quota, reading_rights, references, storage
from chat_app.models import ContentUse, Participant
from sessions_app.models import Response, ToolCall
from sessions_app.tools.contents import presentable
from sessions_app.tools.tasks import notify_workers, run_tool_call
from sessions_app.tools.worker import Work
from tests import factories
from tests.agents_app.web_server import web_server
from tests.sessions_app.tools.claims import claimed, expire_lease, progress_of, receiving
from tests.sessions_app.tools.tool_workers import ended, queued_call, wait_for, worker_process
from uamp_project.celery import app

pytestmark = pytest.mark.usefixtures("database_threads")


def test_a_tool_reads_what_is_in_its_chat_or_its_persons_own() -> None:
    asker, other = (User.objects.create_user(name) for name in ("asker", "other"))
    call, elsewhere = (queued_call("steps", user=asker) for _ in range(2))
    for chat_id in (call.response.chat_id, elsewhere.response.chat_id):
        for user in (asker, other):
            Participant.objects.create(chat_id=chat_id, user=user)
    shared, own_content, foreign, carried = (
        storage.store(name.encode(), mime_type="text/plain", filename=f"{name}.txt", owner=owner)
        for name, owner in (
            ("shared", quota.ContentOwner(user_id=other.pk)),
            ("own", quota.ContentOwner(user_id=asker.pk)),
            ("foreign", quota.ContentOwner(user_id=other.pk)),
            ("carried", quota.ContentOwner(user_id=other.pk)),
        )
    )
    reading_rights.use(call.response.chat_id, [str(shared.pk)])
    reading_rights.use(elsewhere.response.chat_id, [str(carried.pk)])
    with Work(claimed(call)) as work:
        content = work.read_content(str(shared.pk))
        assert (content.data, content.mime_type, content.filename) == (
            b"shared",
            "text/plain",
            "shared.txt",
        )
        assert work.read_content(str(own_content.pk)).data == b"own"
        for content_id in (str(foreign.pk), str(carried.pk), str(uuid.uuid4()), "x"):
            with pytest.raises(ToolError, match=f"There is no file '{content_id}'"):
                work.read_content(content_id)


def test_a_tool_reads_no_file_that_its_person_showed_only_elsewhere() -> None:
    asker = User.objects.create_user("asker")
    call, elsewhere = (queued_call("steps", user=asker) for _ in range(2))
    here, away = (
        storage.store(
            name.encode(),
            mime_type="text/plain",
            filename=f"{name}.txt",
            owner=quota.ContentOwner(user_id=asker.pk),
        )
        for name in ("here", "away")
    )
    for content in (here, away):
        reading_rights.use(elsewhere.response.chat_id, [str(content.pk)])
    reading_rights.use(call.response.chat_id, [str(here.pk)])
    with Work(claimed(call)) as work:
        assert work.read_content(str(here.pk)).data == b"here"
        with pytest.raises(ToolError, match="There is no file"):
            work.read_content(str(away.pk))
    with pytest.raises(ToolError, match="There is no file"):
        presentable(call.response_id, call.response.chat_id, [str(away.pk)])
    assert not ContentUse.objects.filter(chat=call.response.chat, content=away).exists()


def test_a_visitors_tool_reads_what_they_sent_and_what_was_made_for_them() -> None:
    call = queued_call("steps")
    visitors_content, foreign = (
        storage.store(b"sent", mime_type="text/plain", filename="a.txt", owner=owner)
        for owner in (
            quota.ContentOwner(key="anonymous:abc"),
            quota.ContentOwner(key="anonymous:x"),
        )
    )
    with Work(claimed(call)) as work:
        new_content = work.write_content(b"made", mime_type="text/plain", filename="b.txt")
        assert isinstance(new_content, uamp.FileContent)
        assert work.read_content(str(new_content.content_id)).data == b"made"
        assert work.read_content(str(visitors_content.pk)).data == b"sent"
        with pytest.raises(ToolError, match="There is no file"):
            work.read_content(str(foreign.pk))


def test_the_same_bytes_from_two_attempts_are_one_content() -> None:
    call = queued_call("steps")
    items = []
    for _ in range(2):
        with Work(claimed(call)) as work:
            items.append(work.write_content(b"a,b", mime_type="text/csv", filename="r.csv"))
        expire_lease(call)
    assert items[0] == items[1]
    [use] = ContentUse.objects.filter(chat_id=call.response.chat_id).select_related("content")
    assert use.content.owner_key == f"chat:{call.response.chat_id}"
    assert references.item_of(use.content) == items[0]


def test_a_file_is_measured_without_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    in_transaction: list[bool] = []

    def measured(*_: object, **__: object) -> int:
        in_transaction.append(connection.in_atomic_block)
        return 1

    monkeypatch.setattr(storage, "extent_of", measured)
    with Work(claimed(queued_call("steps"))) as work:
        work.write_content(b"a,b", mime_type="text/csv", filename="r.csv")
    assert in_transaction == [False]


def test_a_file_that_cannot_be_stored_is_reported() -> None:
    call = queued_call("steps")
    with Work(claimed(call)) as work, pytest.raises(ToolError, match="The file is empty"):
        work.write_content(b"", mime_type="text/csv", filename="r.csv")


def test_a_tool_searches_its_own_chat_and_no_other() -> None:
    asker = User.objects.create_user("asker")
    call, elsewhere = (queued_call("steps", user=asker) for _ in range(2))
    here = call.response.chat
    texts = ("Die ÄRGER-Liste", "100% ärger, liste", "an_other liste", "Liste: Ärger?")
    first, second, _, question = (factories.message(here, asker, text) for text in texts)
    factories.message(elsewhere.response.chat, asker, "ärger liste elsewhere")
    Response.objects.filter(pk=call.response_id).update(message=question)
    with Work(claimed(call)) as work:
        assert work.search_messages(["ärger", "LISTE"], limit=5) == [
            FoundMessage(at=m.created_at, role="user", name="asker", text=m.content)
            for m in (second, first)
        ]
        assert [m.text for m in work.search_messages(["liste"], limit=1)] == ["an_other liste"]
        # What LIKE takes for a wildcard is a character here.
        assert [m.text for m in work.search_messages(["%"], limit=5)] == ["100% ärger, liste"]
        assert [m.text for m in work.search_messages(["n_o"], limit=5)] == ["an_other liste"]
        assert work.search_messages(["elsewhere"], limit=5) == []


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_tool_that_ships_reports_on_a_file_of_the_chat() -> None:
    asker = User.objects.create_user("asker")
    table = storage.store(
        b"city,rain\nBern,3\nBasel,5\n",
        mime_type="text/csv",
        filename="rain.csv",
        owner=quota.ContentOwner(user_id=asker.pk),
    )
    call = queued_call("csv_report", {"content_id": str(table.pk)}, user=asker)
    with receiving(call) as received:
        notify_workers(call.pk)
        row = ended(call)
        wait_for(lambda: received and received[-1]["type"] == "run.settled")
    assert (row.status, row.is_error) == ("done", False)
    assert row.result.startswith("**rain.csv** has 2 rows and 2 columns.")
    [item] = row.content_items
    _, mime_type = storage.read_in_chat(item["content_id"], call.response.chat_id)
    assert (item["type"], mime_type) == ("image", "image/png")
    stages = list(dict.fromkeys(event["stage"] for event in progress_of(received)))
    assert stages == ["read", "parse", "statistics", "chart", "write", "done"]
    assert progress_of(received)[-1]["percent"] == 100


@pytest.mark.usefixtures("celery_worker_thread")
def test_the_tool_that_ships_searches_its_chat() -> None:
    asker = User.objects.create_user("asker")
    call, elsewhere = (queued_call("search_chat", {"query": "BUDGET"}) for _ in range(2))
    message = factories.message(call.response.chat, asker, "The budget is 5.")
    factories.message(elsewhere.response.chat, asker, "Another budget.")
    notify_workers(call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("done", False)
    time_of = message.created_at.isoformat(timespec="seconds")
    assert json.loads(row.result) == [
        {"time": time_of, "name": "asker", "excerpt": "The budget is 5."}
    ]


def test_the_tool_that_ships_fetches_a_page(tmp_path: Path) -> None:
    with web_server() as web:
        url = web.page("/", "<title>Rain</title><p>It rains.")
        call = queued_call("fetch_page", {"url": url})
        inside = queued_call("fetch_page", {"url": web.redirect("/in", "https://169.254.169.254/")})
        environment = {"UAMP_FETCH_ALLOW_HOSTS": web.place}
        with worker_process(tmp_path, environment) as (_, broker):
            for each in (call, inside):
                app.send_task(str(run_tool_call.name), kwargs={"pk": each.pk}, connection=broker)
            wait_for(lambda: ToolCall.objects.get(pk=call.pk).finished_at)
            row, refused = ended(call), ended(inside)
    assert (row.status, row.is_error) == ("done", False)
    assert row.result.startswith(f"Content of {url}, untrusted: ")
    assert row.result.endswith("\n\nTitle: Rain\n\nIt rains.")
    assert row.progress is not None
    assert (row.progress["stage"], row.progress["percent"]) == ("done", 100)
    assert (refused.status, refused.is_error) == ("failed", True)
    assert refused.result == "The page was not fetched. The address cannot be reached."
