"""Money in the admin, role by role: who sees it, who may move it back; no role edits it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audit_app.models import AuditRecord
from chat_app.models import Chat
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Account, Hold, LedgerState, Transfer
from payments_app.money import Money
from sessions_app.models import PaymentRequest, Response
from sessions_app.reporting.figures import server_figures
from tests import factories
from tests.payments_app.funded_accounts import authorize, capture_response

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.django_db

LEDGER = sorted(
    model._meta.model_name or ""
    for model in apps.get_app_config("payments_app").get_models()
    if model in admin.site._registry
)
DASHBOARD = "/admin/sessions_app/paymentrequest/dashboard/"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def signed_in(role: str) -> Client:
    """Return a client of staff: plain, of a role, or a superuser."""
    user = factories.superuser() if role == "superuser" else factories.user(role, is_staff=True)
    if role in {"Auditor", "Finance", "Support"}:
        user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    return client


def usd(text: str) -> Money:
    return Money.parse(text)


def charged(amount: str = "1", fee: str = "0.1", name: str = "paid") -> Response:
    """Make an answer of an agent that was paid for, with the server's share in it."""
    ada = factories.user(f"ada-{name}")
    agent = factories.agent(name)
    response = factories.response(agent, factories.chat(ada, agent), status="completed")
    wallet = ledger.account_of_user(ada.pk)
    ledger.top_up(key=name, account=wallet.id, amount=usd("10"), provider="tests", external_id=name)
    authorize(
        key=f"hold:{name}",
        account_id=wallet.id,
        amount=usd("2"),
        purpose="answer",
        response_id=response.pk,
    )
    capture_response(
        key=f"settle:{name}",
        response_id=response.pk,
        amount=usd(amount),
        splits=[
            ledger.Split(ledger.account_of_agent(agent.pk).id, usd(amount) - usd(fee)),
            ledger.Split(None, usd(fee)),
        ],
        kind="answer",
        release=True,
        chat_id=response.chat_id,
        agent_id=agent.pk,
        protocol="uamp",
    )
    return response


def hold_for(response: Response) -> Hold:
    account = Account.objects.get(kind="user")
    authorization = authorize(
        key="held", account_id=account.pk, amount=usd("3"), response_id=response.pk
    )
    return Hold.objects.get(pk=authorization.hold_id)


def wait_for(response: Response) -> PaymentRequest:
    return PaymentRequest.objects.create(
        response=response,
        number=1,
        payer=Account.objects.get(kind="user").owner,
        asked_in=response.chat_id,
        amount=usd("0.5").amount,
        asset="USD",
        reason="llm_usage",
        deadline=timezone.now() + timedelta(minutes=5),
    )


def page_of(model: str, pk: Any, view: str = "change") -> str:
    return reverse(f"admin:{model}_{view}", args=[quote(pk)])


def order(client: Client, model: str, pk: str) -> int:
    body = {"key": f"admin:{model}", "reason": "it was wrong"}
    return client.post(page_of(f"payments_app_{model}", pk, "operate"), body).status_code


def test_the_dashboard_shows_the_books() -> None:
    response = charged()
    hold_for(response)
    wait_for(response)
    ledger.audit()
    page = signed_in("Finance").get(DASHBOARD).content.decode()
    assert '<dd data-card="held">3 USD</dd>' in page
    assert '<dd data-card="revenue">0.1 USD</dd>' in page
    assert '<dd data-card="waiting">1</dd>' in page
    assert "Posted: person" in page
    assert "<dd>9 USD</dd>" in page
    assert "the ledger adds up" in page
    assert '<span class="swatch shade-0" aria-hidden="true"></span>paid: 1' in page
    assert page.count("<rect") == 1
    assert "style=" not in page.split('id="content-main"')[1].split("</div>")[0]


def test_the_dashboard_is_red_when_the_ledger_does_not_add_up() -> None:
    LedgerState.objects.create(
        checked_at=timezone.now(), frozen_at=timezone.now(), reason="off", report=[["sum", "x", 1]]
    )
    page = signed_in("Finance").get(DASHBOARD).content.decode()
    assert '<li class="error">' in page
    assert "1 mismatch." in page


def test_the_sums_are_made_once_a_minute_for_all_operators() -> None:
    charged()
    client = signed_in("Finance")
    client.get(DASHBOARD)
    charged("2", name="other")
    with CaptureQueriesContext(connection) as queries:
        page = client.get(DASHBOARD).content.decode()
    assert not [query for query in queries if "SUM(" in query["sql"]]
    assert "other" not in page
    cache.clear()
    assert "other: 2" in client.get(DASHBOARD).content.decode()


def test_many_agents_share_the_last_colour() -> None:
    for number in range(8):
        charged(f"1.{number}", name=f"agent{number}")
    charged_by_agent = server_figures().charged_by_agent
    assert sum(charged_by_agent.values.values()) == usd("10.8").amount
    page = signed_in("Finance").get(DASHBOARD).content.decode()
    assert "shade-5" in page
    assert "shade-6" not in page
    assert "others: 3.3" in page


def test_the_dashboard_says_who_and_what_was_charged_most() -> None:
    dear, cheap = charged("1.5", name="dear"), charged("0.5", name="cheap")
    # A chat is named by its title, where it has one.
    Chat.objects.filter(pk=dear.chat_id).update(title="Dear talk")
    page = signed_in("Finance").get(DASHBOARD).content.decode()
    tables = page.split('class="most"')[1]
    for first, second in (("ada-dear", "ada-cheap"), ("Dear talk", cheap.chat_id)):
        assert 0 < tables.index(f">{first}<") < tables.index(f">{second}<")
    assert page_of("chat_app_chat", dear.chat_id) in tables
    assert '<th scope="row">uamp</th><td>2</td>' in tables


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("role", "sees"), [("plain", False), ("Support", False), ("Finance", True), ("superuser", True)]
)
def test_who_sees_money(role: str, sees: bool) -> None:  # noqa: FBT001 the table's
    response = charged()
    client = signed_in(role)
    assert client.get(DASHBOARD).status_code == (200 if sees else 403)
    assert (DASHBOARD in client.get("/admin/").content.decode()) is sees
    for model in LEDGER:
        listed = client.get(reverse(f"admin:payments_app_{model}_changelist"))
        assert listed.status_code == (200 if sees else 403), model
    answer = client.get(page_of("sessions_app_response", response.pk))
    if role == "plain":
        assert answer.status_code in {302, 403}
    else:
        assert (f"transfer/?q={response.pk}" in answer.content.decode()) is sees
        assert ("1 USD charged" in answer.content.decode()) is sees
    chat = client.get(page_of("chat_app_chat", response.chat_id))
    assert (f"transfer/?q={response.chat_id}" in chat.content.decode()) is sees


def test_the_links_of_an_answer_lead_to_its_rows() -> None:
    response = charged()
    charged(name="other")
    client = signed_in("superuser")
    for model in ("transfer", "hold"):
        page = client.get(f"/admin/payments_app/{model}/?q={response.pk}").content.decode()
        assert "1 result" in page
    transfers = client.get(f"/admin/payments_app/transfer/?q={response.chat_id}").content.decode()
    assert "1 result" in transfers


@pytest.mark.parametrize(
    ("role", "may"), [("plain", False), ("Support", False), ("Finance", True), ("superuser", True)]
)
def test_who_may_refund_and_void(role: str, may: bool) -> None:  # noqa: FBT001 the table's
    response = charged()
    hold = hold_for(response)
    transfer = Transfer.objects.get(kind="answer")
    client = signed_in(role)
    assert order(client, "transfer", transfer.pk) == (302 if may else 403)
    assert order(client, "hold", hold.pk) == (302 if may else 403)
    wallet = ledger_rows.balance(hold.account_id)
    assert (str(wallet.posted), str(wallet.held)) == (("10", "0") if may else ("9", "3"))


@pytest.mark.parametrize("role", ["Finance", "superuser"])
def test_the_admin_edits_no_row(role: str) -> None:
    response = charged()
    payment_request = wait_for(response)
    client = signed_in(role)
    rows = [
        ("payments_app_transfer", Transfer.objects.get(kind="answer")),
        ("payments_app_account", Account.objects.get(kind="user")),
        ("payments_app_hold", Hold.objects.get()),
        ("sessions_app_paymentrequest", payment_request),
    ]
    for model, row in rows:
        changed = client.post(page_of(model, row.pk), {"amount": "1", "status": "paid"})
        assert changed.status_code == 403, model
        assert client.post(page_of(model, row.pk, "delete"), {"post": "yes"}).status_code == 403
        assert client.get(reverse(f"admin:{model}_add")).status_code == 403
    assert type(payment_request).objects.values().get() == {
        name: value for name, value in vars(payment_request).items() if not name.startswith("_")
    }


def test_the_requests_of_an_answer_are_on_its_page_to_be_read() -> None:
    response = charged()
    wait_for(response)
    page = signed_in("superuser").get(page_of("sessions_app_response", response.pk))
    text = page.content.decode()
    assert "0.5 USD" in text
    assert 'name="payment_requests-0-status"' not in text
    support = factories.user("support", is_staff=True)
    support.groups.add(Group.objects.get(name="Support"))
    client = Client()
    client.force_login(support)
    support_text = client.get(page_of("sessions_app_response", response.pk)).content.decode()
    assert "0.5 USD" not in support_text


def test_finance_refunds_a_whole_answer_once_and_nothing_is_offered_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    response, client = charged(), signed_in("Finance")
    wallet = ledger.account_of_user(User.objects.get(username="ada-paid").pk)
    refund = reverse("admin:sessions_app_response_operate", args=[quote(response.pk), "refund"])
    page = page_of("sessions_app_response", response.pk)
    assert refund in client.get(page).content.decode()
    confirmation = client.get(refund)
    assert confirmation.context["facts"].startswith("Returns 1 USD to the payers of the answer")
    form = {"seen": confirmation.context["form"].initial["seen"], "reason": "it was wrong"}
    # What cannot be recorded is not done.
    with monkeypatch.context() as patch:
        patch.setattr("sessions_app.admin.operations.record_request", _broken)
        with pytest.raises(RuntimeError):
            client.post(refund, form)
    assert ledger_rows.balance(wallet.id).available == usd("9")
    for _ in range(2):
        assert client.post(refund, form).status_code == 302
        assert ledger_rows.balance(wallet.id).available == usd("10")
    (record,) = AuditRecord.objects.filter(action="answer.refunded")
    assert (record.object_id, record.reason) == (response.pk, "it was wrong")
    refunded = Transfer.objects.get(kind="refund")
    assert refunded.pk in record.detail
    # Filtered by refunds of transfers, the audit has one row for each movement.
    (movement,) = AuditRecord.objects.filter(action="transfer.refunded")
    assert (movement.object_id, movement.reason) == (refunded.reverses_id, "it was wrong")
    assert (
        f"Refund: 1 USD in transfer {refunded.pk}, with the answer {response.pk}" in movement.detail
    )
    after = client.get(page).content.decode()
    assert refund not in after
    assert "1 USD refunded" in after
    paid = client.get(page_of("payments_app_transfer", refunded.reverses_id)).content.decode()
    assert quote(refunded.pk) in paid
    assert "/operate/" not in paid
    assert signed_in("Support").post(refund, form).status_code == 403


def _broken(*_: Any, **__: Any) -> None:
    raise RuntimeError


def test_the_pages_of_a_refund_lead_to_its_audit_records() -> None:
    response = charged()
    refund = reverse("admin:sessions_app_response_operate", args=[quote(response.pk), "refund"])
    finance = signed_in("Finance")
    seen = finance.get(refund).context["form"].initial["seen"]
    finance.post(refund, {"seen": seen, "reason": "it was wrong"})
    movement = Transfer.objects.get(kind="refund")
    auditor = signed_in("Auditor")
    for kind, pk, action in (
        ("sessions_app_response", response.pk, "answer.refunded"),
        ("payments_app_transfer", movement.reverses_id, "transfer.refunded"),
        ("payments_app_transfer", movement.pk, "transfer.refunded"),
    ):
        page = auditor.get(page_of(kind, pk))
        (address,) = [link["url"] for link in page.context["links"] if link["label"] == "Audit"]
        rows = auditor.get(address).context["cl"].result_list
        # The auditor's own reading of the answer is recorded, too.
        assert [row.action for row in rows if row.action != "content.read"] == [action]
        links = finance.get(page_of(kind, pk)).context["links"]
        assert "Audit" not in [link["label"] for link in links]
