"""Operations in the admin: confirmed with a reason, done once, recorded, and refused by role."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents_app.models import Agent
from agents_app.tools.registry import ToolOutcome
from audit_app.admin import operations
from audit_app.models import AuditRecord
from sessions_app.access.auth import create_api_key, verify_token
from sessions_app.access.principal import AuthenticationError
from sessions_app.models import ApiKey, Response, Session, ToolCall
from sessions_app.tools.worker import claim_call, end_call, renew_claim
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import Model

pytestmark = pytest.mark.django_db

# The model, the operation, a role that has the right, one that only looks, and what is recorded.
OPERATIONS: Final = {
    "end": (Session, "Support", "Auditor", "session.ended"),
    "cancel": (Response, "Support", "Finance", "response.cancelled"),
    "requeue": (ToolCall, "Operator", "Developer", "tool.requeued"),
    "cancel_call": (ToolCall, "Support", "Auditor", "tool.cancelled"),
    "revoke": (ApiKey, "Operator", "Auditor", "key.revoked"),
    "disable": (Agent, "Operator", "Support", "agent.disabled"),
    "enable": (Agent, "Operator", "Support", "agent.enabled"),
}
IS_DONE: Final[dict[str, Callable[[], bool]]] = {
    "end": lambda: Session.objects.get().status == "closed",
    "cancel": lambda: Response.objects.get().cancel_requested_at is not None,
    "requeue": lambda: ToolCall.objects.get().status == "queued",
    "cancel_call": lambda: ToolCall.objects.get().status == "cancelled",
    "revoke": lambda: ApiKey.objects.get().revoked_at is not None,
    "disable": lambda: not Agent.objects.get().is_enabled,
    "enable": lambda: Agent.objects.get().is_enabled,
}


NAMES: Final = {"cancel_call": "cancel"}
"""The operations that share a name, by that name in an address."""


def staff(*roles: str) -> Client:
    user = factories.user("-".join(roles), is_staff=True)
    user.groups.set(Group.objects.filter(name__in=roles))
    client = Client()
    client.force_login(user)
    return client


def row_of(model: type[Model]) -> Any:
    """Make a person with a key, and a session in which an answer waits for a tool; return a row."""
    ada, agent = factories.user("ada"), factories.agent()
    chat = factories.chat(ada, agent)
    response = factories.response(agent, chat, session=factories.session(ada, chat))
    factories.tool_call(response, attempts=1)
    create_api_key(ada, name="ci")
    return model._default_manager.get()


def page_of(row: Model, name: str) -> str:
    opts = row._meta
    view = f"admin:{opts.app_label}_{opts.model_name}_operate"
    return reverse(view, args=[quote(row.pk), NAMES.get(name, name)])


def submit_form(client: Client, url: str, **fields: str) -> Any:
    """Send the form of a page as it was shown."""
    page = client.get(url)
    seen = page.context["form"].initial["seen"]
    return client.post(url, {"seen": seen, **fields})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_needs_a_reason_and_is_done_and_recorded_once(name: str) -> None:
    model, role, _, act = OPERATIONS[name]
    row, client = row_of(model), staff(role)
    if name == "enable":
        Agent.objects.update(is_enabled=False)
    url = page_of(row, name)
    page = client.get(url.replace(f"operate/{NAMES.get(name, name)}/", "change/"))
    assert f'href="{url}"' in page.content.decode()
    assert client.get(url).status_code == 200
    assert not IS_DONE[name]()
    # Without a reason it is not done.
    answer = submit_form(client, url, reason="")
    assert (answer.status_code, answer.context["form"].errors["reason"]) == (
        200,
        ["This field is required."],
    )
    assert not IS_DONE[name]()
    seen = client.get(url).context["form"].initial["seen"]
    for _ in range(2):
        assert client.post(url, {"seen": seen, "reason": "it hung"}).status_code == 302
        assert IS_DONE[name]()
    (record,) = AuditRecord.objects.filter(action=act)
    assert (record.object_id, record.reason) == (str(row.pk), "it hung")
    assert record.actor is not None
    assert record.actor.username == role


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_need_more_than_the_right_to_view(name: str) -> None:
    model, _, role, _ = OPERATIONS[name]
    row, client = row_of(model), staff(role)
    url = page_of(row, name)
    assert client.get(url).status_code == 403
    assert client.post(url, {"reason": "it hung"}).status_code == 403
    label = f"{row._meta.app_label}_{row._meta.model_name}"
    if name == "enable":
        Agent.objects.update(is_enabled=False)
    listed = {"action": NAMES.get(name, name), "_selected_action": [row.pk], "reason": "it hung"}
    client.post(reverse(f"admin:{label}_changelist"), listed)
    assert not IS_DONE[name]()
    assert not AuditRecord.objects.exists()


def test_a_list_asks_once_and_leaves_out_what_has_ended() -> None:
    session = row_of(Session)
    ended = factories.session(session.user, session.chat, status="closed", closed_at=timezone.now())
    client, url = staff("Support"), reverse("admin:sessions_app_session_changelist")
    chosen = {"action": "end", "_selected_action": [session.pk, ended.pk]}
    page = client.post(url, chosen).content.decode()
    assert session.pk in page
    assert "1 of the selected rows are skipped" in page
    assert Session.objects.get(pk=session.pk).status == "idle"
    assert client.post(url, {**chosen, "reason": "it hung"}).status_code == 302
    assert Session.objects.filter(status="closed").count() == 2
    assert AuditRecord.objects.get().object_id == session.pk


def test_a_call_that_another_worker_took_is_not_queued_again() -> None:
    call, client = row_of(ToolCall), staff("Operator")
    url = page_of(call, "requeue")
    seen = client.get(url).context["form"].initial["seen"]
    assert client.post(url, {"seen": seen, "reason": "it hung"}).status_code == 302
    claim = claim_call(call.pk)
    assert claim is not None
    # The form that is sent twice does not take the call from its new worker.
    assert client.post(url, {"seen": seen, "reason": "it hung"}).status_code == 302
    assert ToolCall.objects.get().status == "running"
    assert AuditRecord.objects.filter(action="tool.requeued").count() == 1
    # No one reads the result of an answer that has ended.
    ToolCall.objects.update(status="running", finished_at=None)
    Response.objects.update(status="completed", finished_at=timezone.now())
    answer = submit_form(client, url, reason="it hung")
    assert "Its answer has ended" in answer.content.decode()


def test_a_list_that_is_confirmed_twice_takes_no_call_from_its_new_worker() -> None:
    call, client = row_of(ToolCall), staff("Operator")
    url = reverse("admin:sessions_app_toolcall_changelist")
    chosen = {"action": "requeue", "_selected_action": [call.pk]}
    shown = {f"seen-{pk}": seen for pk, seen in client.post(url, chosen).context["chosen"]}
    confirmed = {**chosen, **shown, "reason": "it hung"}
    # A form that does not say what its operator saw does nothing.
    assert client.post(url, {**chosen, "reason": "it hung"}).status_code == 302
    assert not AuditRecord.objects.filter(action="tool.requeued").exists()
    assert client.post(url, confirmed).status_code == 302
    assert claim_call(call.pk) is not None
    assert client.post(url, confirmed).status_code == 302
    assert ToolCall.objects.get().status == "running"
    assert AuditRecord.objects.filter(action="tool.requeued").count() == 1


def test_a_list_says_how_many_of_the_selected_rows_it_covers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "MAX_ROWS", 1)
    session = row_of(Session)
    factories.session(session.user, session.chat)
    url = reverse("admin:sessions_app_session_changelist")
    chosen = {"action": "end", "_selected_action": ["0"], "select_across": "1"}
    page = staff("Support").post(url, chosen).content.decode()
    assert "Only the first 1 of the selected rows are covered." in page


def test_a_call_that_was_cancelled_is_no_longer_its_workers() -> None:
    call, client = row_of(ToolCall), staff("Operator")
    ToolCall.objects.update(status="queued", lease_until=None)
    claim = claim_call(call.pk)
    assert claim is not None
    url = page_of(call, "cancel_call")
    # The form shows a call that this worker has since taken.
    assert client.post(url, {"seen": "queued 0", "reason": "it hung"}).status_code == 302
    assert ToolCall.objects.get().status == "running"
    assert submit_form(client, url, reason="it hung").status_code == 302
    row = ToolCall.objects.get()
    assert (row.status, row.is_error, row.result) == ("cancelled", True, "The tool was cancelled.")
    assert not renew_claim(claim, None)
    assert not end_call(claim, "done", ToolOutcome(result="late"))
    assert ToolCall.objects.get().result == "The tool was cancelled."


def test_revoking_and_disabling_say_how_many_answers_end() -> None:
    key, client = row_of(ApiKey), staff("Operator")
    agent = Agent.objects.get()
    for row, name in ((key, "revoke"), (agent, "disable")):
        facts = client.get(page_of(row, name)).context["facts"]
        assert (
            "1 running answer will end." if name == "disable" else "No answer is running."
        ) in facts
    Response.objects.update(request={"credential": key.credential})
    assert "1 running answer will end." in client.get(page_of(key, "revoke")).context["facts"]


def test_a_rotation_says_that_running_answers_continue() -> None:
    key, client = row_of(ApiKey), staff("Operator", "Auditor")
    Response.objects.update(request={"credential": key.credential})
    facts = client.get(page_of(key, "rotate")).context["facts"]
    assert "1 answer that was requested with it is running, and continues; revoke" in facts
    Response.objects.update(status="completed", finished_at=timezone.now())
    assert "No answer is running; revoke" in client.get(page_of(key, "rotate")).context["facts"]


def test_a_rotated_key_has_a_new_secret_that_is_shown_once() -> None:
    ada = factories.user("ada")
    before = create_api_key(ada, name="ci")
    key, client = ApiKey.objects.get(), staff("Operator", "Auditor")
    url = page_of(key, "rotate")
    assert staff("Auditor").get(url).status_code == 403
    assert staff("Operator").get(url).status_code == 403
    seen = client.get(url).context["form"].initial["seen"]
    form = {"seen": seen, "reason": "it leaked", "keep": "0"}
    assert client.post(url, {**form, "keep": "48"}).context["form"].errors
    answer = client.post(url, form)
    assert "no-store" in answer["Cache-Control"]
    match = re.search(r"uak_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", answer.content.decode())
    assert match is not None
    assert verify_token(match.group(), protocol="rest").user_id == ada.pk
    with pytest.raises(AuthenticationError):
        verify_token(before, protocol="rest")
    # The form again changes nothing, and shows no secret.
    assert client.post(url, form).status_code == 302
    assert verify_token(match.group(), protocol="rest").user_id == ada.pk
    record = AuditRecord.objects.get()
    assert (record.action, record.object_id, record.reason) == (
        "key.rotated",
        str(key.pk),
        "it leaked",
    )
    assert match.group() not in client.get(page_of(key, "rotate")).content.decode()


def test_a_call_that_waits_for_approval_is_cancelled_and_named_in_one_word() -> None:
    call, client = row_of(ToolCall), staff("Support")
    ToolCall.objects.update(status="asking", attempts=0, asked_in=call.response.chat_id)
    url = page_of(call, "cancel_call")
    page = client.get(url.replace("operate/cancel/", "change/")).content.decode()
    listed = client.get(reverse("admin:sessions_app_toolcall_changelist")).content.decode()
    assert f'href="{url}"' in page
    for html in (page, listed):
        assert "waiting for approval" in html
        assert "asking<" not in html
    facts = client.get(url).context["facts"]
    assert "is waiting for approval. The request for approval will be withdrawn." in facts
    assert submit_form(client, url, reason="it hung").status_code == 302
    assert ToolCall.objects.get().status == "cancelled"
    assert AuditRecord.objects.get(action="tool.cancelled").reason == "it hung"
