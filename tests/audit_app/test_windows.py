"""Filters without an index look at every row, a window at a time, and lists lead to all rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit_app.admin.windows import WindowFilter, place_in
from chat_app.models import ChatEvent, Message
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db

MESSAGES = reverse("admin:chat_app_message_changelist")
EVENTS = reverse("admin:chat_app_chatevent_changelist")


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(factories.superuser())
    return client


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a window have three rows, and a list count as many."""
    monkeypatch.setattr("audit_app.admin.checked_lists.WINDOW", 3)
    monkeypatch.setattr("audit_app.admin.checked_lists.COUNTED_ROWS", 3)
    monkeypatch.setattr("audit_app.admin.records.COUNTED_ROWS", 3)


def change_list(client: Client, address: str) -> Any:
    """Return the list on a page."""
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.context["cl"]


def walked(client: Client, address: str, query: str) -> list[list[Any]]:
    """Return the keys that each list has, from the newest row to the oldest."""
    windows = []
    while query:
        part = change_list(client, f"{address}{query}")
        windows.append([row.pk for row in part.result_list])
        query = part.further
        assert len(windows) < 20
    return windows


def chat_with(*roles: str, title: str = "") -> tuple[Chat, User, list[str]]:
    """Return a chat with a message of each role, the oldest first."""
    person = factories.user(f"ada{title}")
    chat = factories.chat(person, title=title)
    keys = [factories.message(chat, person).pk for _ in roles]
    for key, role in zip(keys, roles, strict=True):
        Message.objects.filter(pk=key).update(role=role)
    return chat, person, keys


def test_the_oldest_row_is_found_by_searching_further_back(root: Client) -> None:
    _, _, keys = chat_with("tool", *["user"] * 4, "tool", "user")

    assert walked(root, MESSAGES, "?role=tool") == [[keys[5]], [], [keys[0]]]
    first = root.get(f"{MESSAGES}?role=tool").content.decode()
    assert "The filter examined 3 rows, back to" in first
    assert first.count("Search further back") == 2
    last = root.get(MESSAGES + change_list(root, f"{MESSAGES}?role=tool").further).content.decode()
    assert "Newest rows" in last


def test_the_oldest_window_is_marked_as_the_last(root: Client) -> None:
    chat_with("user", "tool")

    page = root.get(f"{MESSAGES}?role=tool").content.decode()
    assert "The filter examined all rows to the oldest." in page
    assert "Search further back" not in page


def test_windows_have_each_matching_row_once(root: Client) -> None:
    _, _, keys = chat_with(*["user", "tool"] * 5)
    Message.objects.update(created_at=Message.objects.earliest("seq").created_at)

    walked_keys = [key for part in walked(root, MESSAGES, "?role=user") for key in part]
    assert sorted(walked_keys) == sorted(keys[::2])


def test_a_rare_value_is_found_at_once(root: Client) -> None:
    _, _, keys = chat_with(*["user"] * 8)
    Message.objects.filter(pk=keys[0]).update(status="failed")

    page = root.get(f"{MESSAGES}?status=failed")
    assert [row.pk for row in page.context["cl"].result_list] == [keys[0]]
    assert "window-note" not in page.content.decode()


def test_a_window_counts_only_rows_that_pass_the_other_filters(root: Client) -> None:
    chat, _, keys = chat_with("tool", "user", title="Wanted")
    chat_with(*["user"] * 8, title="Other")

    assert walked(root, MESSAGES, f"?role=tool&q={chat.pk}") == [[keys[0]]]


def test_a_window_stays_within_a_range_of_days(root: Client) -> None:
    _, _, keys = chat_with(*["tool", "user"] * 6)
    old = Message.objects.filter(pk__in=keys[:4])
    old.update(created_at=datetime(2020, 1, 1, tzinfo=UTC))
    new = Message.objects.filter(pk__in=keys[10:])
    new.update(created_at=datetime(2022, 1, 1, tzinfo=UTC))
    Message.objects.filter(pk__in=keys[4:10]).update(created_at=datetime(2021, 1, 1, tzinfo=UTC))

    days = "created_at_from=2021-01-01&created_at_until=2021-01-01"
    windows = walked(root, MESSAGES, f"?role=tool&{days}")
    assert sorted(key for part in windows for key in part) == sorted(keys[4:10:2])
    assert len(windows) == 3
    with CaptureQueriesContext(connection) as queries:
        change_list(root, f"{MESSAGES}?role=tool&{days}")
    (counting,) = [query["sql"] for query in queries if "COUNT(*)" in query["sql"]]
    assert counting.count('"chat_app_message"."created_at" >=') == 1


def test_two_filters_share_a_window(root: Client) -> None:
    _, _, keys = chat_with("tool", "user", "tool", "user")
    Message.objects.filter(pk=keys[2]).update(status="failed")

    windows = walked(root, MESSAGES, "?role=tool&status=completed")
    assert [key for part in windows for key in part] == [keys[0]]


def test_a_list_leads_on_to_rows_beyond_the_counted(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin.site._registry[ChatEvent], "list_per_page", 2)
    chat, _, _ = chat_with(*["user"] * 7)
    everything = list(ChatEvent.objects.order_by("-pk").values_list("pk", flat=True))
    assert len(everything) >= 7

    assert not change_list(root, EVENTS).further, "the next page comes first"
    row_ids: list[int] = []
    address = "?"
    while address:
        row_ids += [row.pk for row in change_list(root, f"{EVENTS}{address}").result_list]
        last = change_list(root, f"{EVENTS}{address}&p=2")
        if last.page_num == 2 and last.paginator.num_pages == 2:
            row_ids += [row.pk for row in last.result_list]
        address = str(getattr(last, "further", ""))
    assert row_ids == everything
    assert chat.events.count() == len(row_ids)


def test_pages_stay_in_a_window_and_filters_begin_anew(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin.site._registry[Message], "list_per_page", 1)
    chat_with(*["user"] * 7)
    further = change_list(root, f"{MESSAGES}?role=user")
    second = change_list(root, f"{MESSAGES}{further.further}")

    assert second.result_count == 3
    assert "before=" in second.get_query_string({"p": 2})
    assert "before=" not in second.get_query_string({"role": "tool"})
    assert second.newest_url() == "?role=user"
    page = root.get(f"{MESSAGES}{further.further}").content.decode()
    assert 'name="before"' not in page


@pytest.mark.parametrize("before", ["", "x", "1~", "~", "99999-01-01~msg_1", "%C3%28", "1~2~3"])
def test_an_invalid_place_is_refused(before: str, root: Client) -> None:
    answer = root.get(f"{MESSAGES}?role=user&before={before}")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{MESSAGES}?e=1")


def test_every_filter_without_an_index_has_windows() -> None:
    request = RequestFactory().get("/")
    request.user = factories.superuser()
    filter_count = 0
    for model, page in admin.site._registry.items():
        if any(
            isinstance(item, type) and issubclass(item, WindowFilter) for item in page.list_filter
        ):
            ordering = page.get_changelist_instance(request).get_ordering(
                request, page.get_queryset(request)
            )
            assert place_in(model, ordering) is not None, model
            filter_count += 1
    assert filter_count >= 8


@pytest.mark.parametrize(
    ("address", "index"),
    [
        (f"{EVENTS}?type=participant.left", "event_types"),
        (f"{MESSAGES}?status=failed", "message_ends"),
        (reverse("admin:payments_app_transfer_changelist") + "?kind=refund", "transfer_kinds"),
        (reverse("admin:payments_app_hold_changelist") + "?state=expired", "hold_ends"),
    ],
)
def test_a_rare_value_uses_the_index_that_leaves_out_common_ones(
    address: str, index: str, root: Client
) -> None:
    rows = change_list(root, address).queryset
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Of an empty table the planner reads all rows.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
    assert index in rows.order_by(*rows.query.order_by).explain()


def test_kinds_of_transfers_are_offered(root: Client) -> None:
    (choices,) = [
        spec.lookup_choices
        for spec in change_list(
            root, reverse("admin:payments_app_transfer_changelist")
        ).filter_specs
        if getattr(spec, "parameter_name", "") == "kind"
    ]
    assert ("refund", "refund") in choices
    assert ("top_up", "top_up") in choices


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("created_at_from=2026-13-01", "“2026-13-01” is not a date"),
        ("created_at_until=yesterday", "“yesterday” is not a date"),
        ("created_at_from=9999-12-31&created_at_until=9999-12-31", "“9999-12-31” is not a date"),
        ("created_at_from=2026-01-01&created_at_from_time=25:00", "“2026-01-01 25:00” is not"),
        ("created_at_from_time=10:00", "The time 10:00 has no date."),
        (
            "created_at_from=2026-01-02&created_at_until=2026-01-01",
            "The range ends before it begins.",
        ),
    ],
)
def test_a_range_that_cannot_be_read_lists_nothing_and_says_so(
    root: Client, query: str, error: str
) -> None:
    chat_with("tool", "user")

    answer = root.get(f"{MESSAGES}?{query}")
    assert list(answer.context["cl"].result_list) == []
    assert answer.content.decode().count(error) == 2
    assert "No rows are listed." in answer.content.decode()
    assert list(change_list(root, f"{MESSAGES}?role=tool&{query}").result_list) == []


def test_a_range_may_have_times_of_the_day(root: Client) -> None:
    _, _, keys = chat_with(*["user"] * 3)
    for minute, key in enumerate(keys):
        at = datetime(2021, 1, 1, 10, minute, 30, tzinfo=UTC)
        Message.objects.filter(pk=key).update(created_at=at)
    day = "created_at_from=2021-01-01&created_at_until=2021-01-01"

    def listed(times: str) -> list[str]:
        return [row.pk for row in change_list(root, f"{MESSAGES}?{day}{times}").result_list]

    assert sorted(listed("")) == sorted(keys)
    assert listed("&created_at_from_time=10:01&created_at_until_time=10:01") == [keys[1]]
    assert sorted(listed("&created_at_until_time=10:01")) == sorted(keys[:2])


@pytest.mark.parametrize("query", ["role=owner", "trigger=never"])
def test_members_are_filtered_a_window_at_a_time(query: str, root: Client) -> None:
    """No index has the role or the trigger of members, of whom there may be millions."""
    for number in range(5):
        factories.chat(factories.user(f"person{number}"))
    address = reverse("admin:chat_app_participant_changelist")
    part = change_list(root, f"{address}?{query}")
    assert part.examined
    keys = [key for keys in walked(root, address, f"?{query}") for key in keys]
    assert len(keys) == (5 if query == "role=owner" else 0)
