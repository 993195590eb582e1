"""Sessions, responses and keys in the admin: what an operator may do, and who may not."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from agents_app.rest.rights import SCOPES
from sessions_app import http_connections
from sessions_app.access import tickets
from sessions_app.access.auth import create_api_key, of_user, verify_token
from sessions_app.access.keys import budgets_of
from sessions_app.models import (
    AnswerHour,
    ApiKey,
    ChargeHour,
    CountedHour,
    ExternalIdentity,
    FollowUp,
    HttpConnection,
    InboundEvent,
    PaymentRequest,
    PendingInput,
    ProcessBeat,
    ProcessKind,
    Response,
    Session,
    SessionTransport,
    Webhook,
    WebhookDelivery,
)
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db

MODELS = sorted(
    model._meta.label_lower for model in apps.get_app_config("sessions_app").get_models()
)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def operator(*permissions: str) -> User:
    user = factories.user("operator", is_staff=True)
    for name in permissions:
        right = Permission.objects.get(codename=name, content_type__app_label="sessions_app")
        user.user_permissions.add(right)
    return user


def address(label: str, view: str = "changelist", **options: Any) -> str:
    # The admin writes ids in its paths in a way of its own: `_25` is a character to it.
    options["args"] = [quote(pk) for pk in options.get("args", ())]
    return reverse(f"admin:{label.replace('.', '_')}_{view}", **options)


def act(client: Client, label: str, action: str, *rows: Any) -> None:
    keys = [str(row.pk) for row in rows]
    chosen = {"action": action, "_selected_action": keys, "reason": "it hung"}
    assert client.post(address(label), chosen).status_code in {200, 302}


def one_of_each(number: int) -> Session:
    """Add one row of every model."""
    person = factories.user(f"person{number}")
    agent = factories.agent(f"agent{number}")
    chat = factories.chat(person, agent)
    session = factories.session(person, chat, agent=agent)
    response = factories.response(agent, chat, session=session)
    factories.tool_call(response)
    PaymentRequest.objects.create(
        response=response, number=1, payer=person, asked_in=chat.pk, amount=1, asset="USD",
        reason="llm_usage", deadline=response.created_at,
    )  # fmt: skip
    InboundEvent.objects.create(session=session, event_id="1", sha256="0" * 64)
    ProcessBeat.objects.create(name=f"server{number}", kind=ProcessKind.SERVER)
    PendingInput.objects.create(session=session, event_id="2", payload={"type": "input.text"})
    FollowUp.objects.create(response=response, message_id="3", parts=[{"text": "yes"}], digest="4")
    factories.queued_turn(person, session)
    ExternalIdentity.objects.create(user=person, issuer="https://example.org", subject=str(number))
    hour: dict[str, Any] = {"hour": timezone.now() - timedelta(hours=number), "agent_id": agent.pk}
    CountedHour.objects.create(hour=hour["hour"])
    ChargeHour.objects.create(**hour, asset="USD", amount=1)
    AnswerHour.objects.create(
        **hour, status="completed", answers=1, input_tokens=1, output_tokens=1
    )
    webhook = Webhook.objects.create(response=response, name="one", url="https://example.org/")
    WebhookDelivery.objects.create(webhook=webhook, number=1, state="working")
    hook = Webhook.objects.create(chat=session.chat, name="two", url="https://example.org/")
    WebhookDelivery.objects.create(webhook=hook, number=1, state="ping")
    create_api_key(person, name="key")
    tickets.issue(of_user(person))
    connection_id = http_connections.open_connection(of_user(person), transport="acp", agent="")
    http_connections.add_request(connection_id, "1", session_id=session.pk)
    return session


def test_every_model_of_sessions_is_in_the_admin() -> None:
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert set(MODELS) <= registered


@pytest.mark.long
def test_a_list_of_20_takes_as_many_queries_as_a_list_of_2() -> None:
    client = signed_in(factories.superuser())
    for number in range(2):
        one_of_each(number)

    def queries() -> dict[str, int]:
        counts = {}
        for label in MODELS:
            with CaptureQueriesContext(connection) as captured:
                response = client.get(address(label))
            assert response.status_code == 200, label
            counts[label] = len(captured)
        return counts

    # The first reading also looks up the content types.
    queries()
    few = queries()
    for number in range(2, 20):
        one_of_each(number)
    assert queries() == few


def test_pages_open_and_neither_change_nor_delete() -> None:
    session = one_of_each(0)
    client = signed_in(factories.superuser())
    for label in MODELS:
        model = apps.get_model(label)
        row = model.objects.first()
        assert row is not None, label
        before = list(model.objects.values())
        change = address(label, "change", args=[row.pk])
        delete = address(label, "delete", args=[row.pk])
        assert client.get(change).status_code == 200, label
        assert client.get(address(label), {"q": session.pk}).status_code == 200, label
        assert client.post(change, {"status": "closed", "name": "x"}).status_code == 403, label
        assert client.post(delete, {"post": "yes"}).status_code == 403, label
        act(client, label, "delete_selected", row)
        if label != "sessions_app.apikey":
            assert client.get(address(label, "add")).status_code == 403, label
        assert list(model.objects.values()) == before, label


# --- Actions ---


def test_an_operator_with_the_right_ends_sessions() -> None:
    Permission.objects.get_or_create(
        codename="end_session",
        content_type=ContentType.objects.get_for_model(Session),
        defaults={"name": "Can end sessions"},
    )
    session, other = one_of_each(0), one_of_each(1)
    act(signed_in(operator("view_session", "end_session")), "sessions_app.session",
        "end", session)  # fmt: skip
    session.refresh_from_db()
    other.refresh_from_db()
    assert (session.status, session.close_reason) == ("closed", "ended by an operator")
    assert session.closed_at is not None
    assert other.status == "idle"
    assert not PendingInput.objects.filter(session=session).exists()
    assert LogEntry.objects.get().get_change_message() == "End session: ended (it hung)"
    # Twice is once.
    act(signed_in(factories.superuser()), "sessions_app.session", "end", session)
    assert Session.objects.get(pk=session.pk).closed_at == session.closed_at


def test_the_right_to_look_does_not_end_sessions() -> None:
    session = one_of_each(0)
    client = signed_in(operator("view_session"))
    assert "End session" not in client.get(address("sessions_app.session")).content.decode()
    act(client, "sessions_app.session", "end", session)
    session.refresh_from_db()
    assert (session.status, session.closed_at) == ("idle", None)
    assert PendingInput.objects.count() == 1


def test_a_running_response_is_asked_to_stop() -> None:
    one_of_each(0)
    response = Response.objects.get()
    ended = factories.response(response.agent, response.chat, status="completed")
    viewer = signed_in(operator("view_response"))
    act(viewer, "sessions_app.response", "cancel", response)
    response.refresh_from_db()
    assert response.cancel_requested_at is None
    root = signed_in(factories.superuser())
    act(root, "sessions_app.response", "cancel", response, ended)
    ended.refresh_from_db()
    assert Response.objects.get(pk=response.pk).cancel_requested_at is not None
    assert ended.cancel_requested_at is None


# --- Keys ---


NEW_KEY: dict[str, Any] = {
    "owner": "ada", "name": "ci", "scopes": ["chats:read"], "budget": "", "period": "day",
    "expires_at_0": "", "expires_at_1": "",
}  # fmt: skip


def test_a_new_key_is_shown_once_and_works() -> None:
    ada = factories.user("ada")
    client = signed_in(factories.superuser())
    page = client.post(address("sessions_app.apikey", "add"), {**NEW_KEY, "scopes": list(SCOPES)})
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    match = re.search(r"uak_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", page.content.decode())
    assert match is not None
    secret = match.group()
    assert verify_token(secret, protocol="uamp").user_id == ada.pk
    key = ApiKey.objects.get()
    assert (key.prefix, key.name, key.scopes) == (secret[:12], "ci", ["*"])
    for url in (
        address("sessions_app.apikey"),
        address("sessions_app.apikey", "change", args=[key.pk]),
        reverse("admin:index"),
    ):
        page = client.get(url)
        assert secret[13:] not in page.content.decode()
        assert key.sha256 not in page.content.decode()
    assert secret not in str(client.cookies)
    assert secret not in str(LogEntry.objects.values())


def test_connections_are_searched_by_what_they_count_as_and_by_their_principal() -> None:
    ada = factories.user("ada")
    key = http_connections.open_connection(of_user(ada), transport="acp", agent="")
    # An earlier release opened another one during the upgrade.
    HttpConnection.objects.create(principal=of_user(ada).key, transport="acp")
    client = signed_in(factories.superuser())

    page = client.get(address("sessions_app.httpconnection"), {"q": of_user(ada).key})

    assert HttpConnection.objects.get(pk=key).counted_as == of_user(ada).key
    assert len(page.context["cl"].result_list) == 2


def test_a_new_key_has_a_scope_a_budget_and_an_expiry() -> None:
    factories.user("ada")
    client = signed_in(factories.superuser())
    form = {**NEW_KEY, "budget": "2.50", "expires_at_0": "2999-01-01", "expires_at_1": "00:00"}
    page = client.post(address("sessions_app.apikey", "add"), form).content.decode()
    match = re.search(r"uak_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", page)
    assert match is not None
    program = Client(headers={"Authorization": f"Bearer {match.group()}"})
    assert program.get("/api/v1/chats").status_code == 200
    assert program.post("/api/v1/chats", {}, content_type="application/json").status_code == 403
    key = ApiKey.objects.get()
    state = budgets_of([key])[key.pk]
    assert (str(state.limit.amount), state.limit.period) == ("2.5", "day")
    change_page = client.get(
        address("sessions_app.apikey", "change", args=[key.pk])
    ).content.decode()
    assert "chats:read" in change_page
    assert "2.5 USD per day, 0 spent or held" in change_page
    assert "2999-01-01 00:00:00 UTC" in change_page


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("owner", "eve", "There is no active person eve."),
        ("owner", "a" * 151, "Ensure this value has at most 150 characters"),
        ("scopes", ["everything"], "is not one of the available choices"),
        ("scopes", [], "This field is required."),
        ("budget", "-1", "An amount must not have a sign."),
        ("budget", "1e20", "Write the amount with digits"),
        ("period", "decade", "is not one of the available choices"),
        ("expires_at_0", "2001-01-01", "This time has passed."),
        ("expires_at_0", "99999-01-01", "Enter a valid date"),
    ],
)
def test_a_key_that_cannot_be_is_refused(field: str, value: Any, message: str) -> None:
    factories.user("ada")
    client = signed_in(factories.superuser())
    form = {**NEW_KEY, "expires_at_1": "00:00" if field == "expires_at_0" else "", field: value}
    page = client.post(address("sessions_app.apikey", "add"), form)
    assert message in str(page.context["adminform"].form.errors)
    assert not ApiKey.objects.exists()


def test_no_operator_gets_a_secret_of_someone_with_more_rights() -> None:
    boss = factories.superuser("boss")
    create_api_key(boss, name="ci")
    key = ApiKey.objects.get()
    client = signed_in(operator("view_apikey", "add_apikey", "rotate_key"))
    page = client.post(address("sessions_app.apikey", "add"), {**NEW_KEY, "owner": "boss"})
    assert "boss has rights that you do not have, or" in str(page.context["adminform"].form.errors)
    rotate = address("sessions_app.apikey", "operate", args=[key.pk, "rotate"])
    assert client.post(rotate, {"reason": "r", "keep": "0", "seen": "0"}).status_code == 403
    assert ApiKey.objects.get().version == 0


def test_a_revoked_key_works_no_more() -> None:
    ada = factories.user("ada")
    secret = create_api_key(ada, name="ci")
    key = ApiKey.objects.get()
    act(signed_in(operator("view_apikey")), "sessions_app.apikey", "revoke", key)
    assert verify_token(secret, protocol="uamp").user_id == ada.pk
    act(signed_in(factories.superuser()), "sessions_app.apikey", "revoke", key)
    headers = {"Authorization": f"Bearer {secret}"}
    assert Client(headers=headers).get("/api/v1/me").status_code == 401
    revoked_at = ApiKey.objects.get().revoked_at
    act(signed_in(factories.superuser("root2")), "sessions_app.apikey", "revoke", key)
    assert ApiKey.objects.get().revoked_at == revoked_at


def test_the_page_of_a_webhook_shows_the_newest_deliveries_and_the_way_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("audit_app.admin.records.NEWEST", 2)
    person = factories.user()
    chat = factories.chat(person)
    hooks = [
        Webhook.objects.create(chat=chat, name=name, url="https://example.org/")
        for name in ("one", "two")
    ]
    for number in range(1, 5):
        for hook in hooks:
            WebhookDelivery.objects.create(webhook=hook, number=number, state=f"ping-{number}")
    client = signed_in(factories.superuser())
    page = client.get(address("sessions_app.webhook", "change", args=[hooks[0].pk]))
    (formset,) = page.context["inline_admin_formsets"]
    assert [form.original.number for form in formset if form.original] == [4, 3]
    text = page.content.decode()
    way = f"{address('sessions_app.webhookdelivery')}?webhook__id__exact={hooks[0].pk}"
    assert f'href="{way}"' in text
    rows = client.get(way).context["cl"].result_list
    assert [(row.webhook_id, row.number) for row in rows] == [
        (hooks[0].pk, number) for number in (4, 3, 2, 1)
    ]


@pytest.mark.parametrize("transport", SessionTransport)
def test_sessions_of_every_transport_are_listed_under_its_name(
    transport: SessionTransport,
) -> None:
    person = factories.user()
    session = factories.session(person, factories.chat(person))
    Session.objects.filter(pk=session.pk).update(transport=transport)
    client = signed_in(factories.superuser())
    page = client.get(address("sessions_app.session"), {"transport__exact": transport.value})
    (row,) = page.context["cl"].result_list
    assert row.get_transport_display() == transport.label
    width = Session._meta.get_field("transport").max_length
    assert width is not None
    assert len(transport.value) <= width


@pytest.mark.parametrize("label", ["sessions_app.response", "sessions_app.session"])
def test_a_list_offers_the_agents_of_its_newest_rows(label: str) -> None:
    """A server may have thousands of agents, which each page would list."""
    ada, idle = factories.user(), factories.agent("idle")
    for name in ("echo", "parrot"):
        agent = factories.agent(name)
        chat = factories.chat(ada, agent)
        factories.session(ada, chat, agent=agent)
        factories.response(agent, chat)
    client = signed_in(factories.superuser())
    page = client.get(address(label)).content.decode()
    assert f"?agent={agent.pk}" in page
    assert idle.pk not in page
    rows = client.get(f"{address(label)}?agent={agent.pk}").context["cl"].result_list
    assert [row.agent_id for row in rows] == [agent.pk]
    chosen = client.get(f"{address(label)}?agent={idle.pk}")
    assert idle.pk in chosen.content.decode()
    assert not chosen.context["cl"].result_list
