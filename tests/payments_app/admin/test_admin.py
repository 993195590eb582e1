"""The ledger in the admin: read with a permission, never changed, ordered with another one."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission
from django.db import OperationalError, connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents_app.selectors import known_names
from audit_app.admin.records import CappedPaginator
from audit_app.models import AuditRecord
from payments_app import selectors, services
from payments_app.ledger.freezing import freeze
from payments_app.models import Account, Hold, Idempotency, LedgerState, Transfer
from payments_app.reporting.statement_csv import statement_pages
from tests import factories
from tests.payments_app.funded_accounts import (
    authorize,
    available,
    fees,
    funded_account,
    hold,
    to,
    usd,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpResponse

pytestmark = pytest.mark.django_db

SHOWN = [
    f"payments_app.{name}"
    for name in ("account", "hold", "idempotency", "ledgerstate", "receipt", "transfer")
]
OPERATIONS = {
    "account": "adjust_account",
    "hold": "void_hold",
    "transfer": "refund_transfer",
    "ledgerstate": "unfreeze_ledger",
}


def staff(*permissions: str) -> Client:
    user = factories.user(f"operator{len(permissions)}", is_staff=True)
    for name in permissions:
        user.user_permissions.add(
            Permission.objects.get(codename=name, content_type__app_label="payments_app")
        )
    return signed_in(user)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def address(model: str, view: str = "changelist", *args: Any) -> str:
    return reverse(f"admin:payments_app_{model}_{view}", args=[quote(pk) for pk in args])


@pytest.fixture
def rows() -> dict[str, Any]:
    """Return a row of each kind, by the name of its model."""
    payer, agent = funded_account("payer", "10"), funded_account("agent")
    paid = services.capture(
        key="c",
        hold_id=hold(payer, "3", response_id="resp_1"),
        amount=usd("3"),
        splits=[to(agent, "2"), fees("1")],
        memo="=1+1",
    ).transfer_ids[0]
    open_hold = hold(payer, "4")
    services.audit()
    return {"account": payer.id, "hold": open_hold, "transfer": paid, "ledgerstate": 1}


@pytest.mark.usefixtures("rows")
def test_the_admin_neither_adds_changes_nor_deletes() -> None:
    client = signed_in(factories.superuser())
    for label in SHOWN:
        pk = apps.get_model(label)._default_manager.values_list("pk", flat=True)[0]
        name = label.split(".")[1]

        assert client.get(address(name)).status_code == 200, name
        assert client.get(address(name, "change", pk)).status_code == 200, name
        assert client.post(address(name, "change", pk), {"memo": "x"}).status_code == 403, name
        assert client.get(address(name, "add")).status_code == 403, name
        assert client.post(address(name, "delete", pk), {"post": "yes"}).status_code == 403, name
        assert "delete_selected" not in client.get(address(name)).content.decode(), name


@pytest.mark.parametrize("label", SHOWN)
def test_a_list_is_seen_only_with_the_right_to_view(label: str) -> None:
    name = label.split(".")[1]

    assert staff().get(address(name)).status_code == 403
    assert staff(f"view_{name}").get(address(name)).status_code == 200
    assert signed_in(factories.user("guest")).get(address(name)).status_code == 302


def test_a_list_of_20_takes_as_many_queries_as_a_list_of_2() -> None:
    client = signed_in(factories.superuser())
    payer, agent = funded_account("payer", "100"), funded_account("agent")
    # Names of agents are read once a minute.
    known_names()

    def count(name: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address(name)).status_code == 200
        return len(queries)

    def charge() -> None:
        services.transfer(
            key=f"t{Transfer.objects.count()}", debit=payer.id, credit=agent.id, amount=usd("1")
        )
        hold(payer, "1")
        funded_account(f"person{Account.objects.count()}", "1")

    names = ("account", "transfer", "hold", "receipt")
    for _ in range(2):
        charge()
    few = [count(name) for name in names]
    for _ in range(18):
        charge()

    assert [count(name) for name in names] == few


def test_a_long_list_is_counted_up_to_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audit_app.admin.records.COUNTED_ROWS", 2)
    for number in range(3):
        funded_account(f"person{number}")

    assert CappedPaginator(Account.objects.order_by("pk"), 50).count == 2


def order(client: Client, model: str, pk: Any, **values: str) -> HttpResponse:
    url = address(model, "operate", pk)
    form = {"key": "k", "reason": "Because", "direction": "credit", **values}
    page: Any = client.post(url, form)
    if page.status_code == 200 and page.context["preview"]:
        page = client.post(url, {**form, "confirmed": page.context["preview"]})
    return page  # type: ignore[no-any-return] # the client's own kind of response


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", OPERATIONS)
def test_an_order_needs_its_own_permission(model: str, rows: dict[str, Any]) -> None:
    views = [f"view_{name}" for name in OPERATIONS]
    others = [permission for name, permission in OPERATIONS.items() if name != model]
    looker, other = staff(*views), staff(*views, *others)
    if model == "ledgerstate":
        # Only a frozen ledger can be released.
        freeze("a mismatch")

    for client in (looker, other):
        assert order(client, model, rows[model], amount="1").status_code == 403
        assert address(model, "operate", rows[model]) not in (
            client.get(address(model, "change", rows[model])).content.decode()
        )
    mine = staff(OPERATIONS[model], f"view_{model}")
    page = mine.get(address(model, "change", rows[model])).content.decode()
    assert address(model, "operate", rows[model]) in page
    assert mine.get(address(model, "operate", rows[model])).status_code == 200
    assert order(mine, model, rows[model], amount="1").status_code == 302
    assert LogEntry.objects.filter(change_message__contains="Because").count() == 1


def test_a_double_click_is_one_adjustment(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())
    before = usd(available(rows["account"]))

    for _ in range(2):
        done = order(client, "account", rows["account"], amount="0.5", direction="debit")
        assert done.status_code == 302

    assert usd(available(rows["account"])) == before - usd("0.5")
    assert LogEntry.objects.filter(change_message__startswith="Adjust: ").count() == 1


def test_an_order_that_cannot_be_recorded_is_not_done(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())
    before = available(rows["account"])

    def full(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 Django's interface
        if sql.startswith('INSERT INTO "audit_app_auditrecord"'):
            raise OperationalError("database or disk is full")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(full), pytest.raises(OperationalError):
        order(client, "account", rows["account"], amount="0.5")

    assert available(rows["account"]) == before
    assert not Transfer.objects.filter(kind="adjust").exists()
    # The same form goes through when there is room again.
    assert order(client, "account", rows["account"], amount="0.5").status_code == 302
    assert AuditRecord.objects.filter(action="balance.adjusted").count() == 1


def test_each_form_carries_a_new_key(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())
    forms = [client.get(address("account", "operate", rows["account"])) for _ in range(2)]

    keys = {form.context["form"].initial["key"] for form in forms}

    assert len(keys) == 2


@pytest.mark.parametrize("amount", ["1e3", "", "0", "-1", "\uff11", "10000.01", "99999999999"])
def test_an_invalid_amount_is_reported_in_the_form(rows: dict[str, Any], amount: str) -> None:
    client = signed_in(factories.superuser())

    page = order(client, "account", rows["account"], amount=amount)

    assert page.status_code == 200
    assert "errorlist" in page.content.decode()
    assert Transfer.objects.filter(kind="adjust").count() == 0


def test_an_order_needs_a_reason(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())

    assert order(client, "transfer", rows["transfer"], reason=" ").status_code == 200
    assert Transfer.objects.filter(kind="refund").count() == 0


def test_a_refund_returns_what_is_asked_or_all_that_is_left(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())

    assert order(client, "transfer", rows["transfer"], key="a", amount="1").status_code == 302
    assert order(client, "transfer", rows["transfer"], key="b").status_code == 302
    refused = order(client, "transfer", rows["transfer"], key="third")

    assert "left: 0" in refused.content.decode()
    assert [row.amount for row in Transfer.objects.filter(kind="refund").order_by("pk")] == [
        usd("1").amount,
        usd("2").amount,
    ]
    assert Transfer.objects.filter(kind="refund")[0].by_id == int(client.session["_auth_user_id"])


def test_a_void_gives_back_and_a_second_one_is_refused(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())

    assert order(client, "hold", rows["hold"], key="a").status_code == 302
    assert "released" in order(client, "hold", rows["hold"], key="b").content.decode()

    assert Hold.objects.get(pk=rows["hold"]).state == "released"


def test_an_order_on_nothing_is_not_found() -> None:
    assert order(signed_in(factories.superuser()), "hold", "hold_missing").status_code == 404


def test_the_list_says_whether_the_ledger_adds_up() -> None:
    client = signed_in(factories.superuser())
    payer = funded_account("payer", "5")

    assert "not been checked yet" in client.get(address("account")).content.decode()
    services.audit()
    sound = client.get(address("account")).content.decode()
    assert 'class="success">Ledger check: the ledger adds up' in sound
    Account.objects.filter(pk=payer.id).update(posted=usd("6").amount)
    services.audit()
    broken = client.get(address("transfer")).content.decode()
    assert 'class="error"' in broken
    assert "Payouts have been frozen" in broken
    assert "found 2 mismatches. Failed checks: " in broken
    assert "posted is the sum of the entries (user:payer:USD)" in broken
    assert order(client, "account", payer.id, amount="1").status_code == 200
    assert order(client, "ledgerstate", 1, key="u").status_code == 302
    assert LedgerState.objects.get().frozen_at is None


def test_a_statement_is_a_file_without_formulas(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())

    answer: Any = client.get(address("account", "statement", rows["account"]))
    lines = list(csv.DictReader(answer.getvalue().decode().splitlines()))

    assert [(line["kind"], line["amount"]) for line in lines] == [
        ("charge", "-3"),
        ("top_up", "10"),
    ]
    assert lines[0]["memo"] == "'=1+1"
    assert lines[0]["response"] == "resp_1"
    assert answer["Content-Disposition"].endswith('.csv"')
    assert LogEntry.objects.filter(change_message="Exported the statement.").exists()
    for client in (staff("view_account"), staff("view_entry", "view_hold")):
        assert client.get(address("account", "statement", rows["account"])).status_code == 403
    response = signed_in(factories.superuser("root2")).get(address("account", "statement", 10**9))
    assert response.status_code == 404


@pytest.mark.parametrize(
    "memo", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0d1"]
)
def test_no_text_of_a_statement_is_a_formula(memo: str) -> None:
    payer = funded_account("payer", "1")
    services.transfer(
        key="t",
        debit=payer.id,
        credit=funded_account("shop").id,
        amount=usd("1"),
        memo=memo,
        chat_id="a=b",
    )

    csv_text = "".join(statement_pages(payer.id))

    row = next(csv.DictReader(StringIO(csv_text, newline="")))
    assert (row["memo"], row["chat"], row["amount"]) == (f"'{memo}", "a=b", "-1")


@pytest.mark.django_db(transaction=True)
def test_a_long_statement_is_sent_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under ASGI too, which is how the server runs."""
    account = funded_account("payer", "10")
    for number in range(5):
        funded_account(f"shop{number}")
        services.adjust(key=f"a{number}", account=account.id, amount=usd("1"), by=1, reason="x")
    monkeypatch.setattr(selectors, "PAGE_MAX", 2)
    read: list[int | None] = []
    statement = selectors.statement

    def noted(account_id: int, *, before: int | None = None, limit: int = 0) -> Any:
        read.append(before)
        return statement(account_id, before=before, limit=limit)

    monkeypatch.setattr(selectors, "statement", noted)
    root = factories.superuser()

    async def download() -> tuple[int, list[str]]:
        client = AsyncClient()
        await client.aforce_login(root)
        answer: Any = await client.get(address("account", "statement", account.id))
        parts = aiter(answer.streaming_content)
        first = [await anext(parts), await anext(parts)]
        pages = len(read)
        return pages, [part.decode() for part in first] + [part.decode() async for part in parts]

    pages, parts = async_to_sync(download)()

    assert pages == 1
    assert len(read) == 4
    assert len("".join(parts).splitlines()) == 1 + 6


def test_the_keys_of_forms_are_not_those_of_the_server(rows: dict[str, Any]) -> None:
    client = signed_in(factories.superuser())
    authorize(key="k", account_id=rows["account"], amount=usd("1"))

    assert order(client, "account", rows["account"], amount="1").status_code == 302
    assert set(Idempotency.objects.filter(key="k").values_list("scope", flat=True)) == {"", "admin"}
