"""The search of the admin: any id, names, words of messages, titles and causes."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit_app.models import AuditRecord
from payments_app import services
from payments_app.models import Account, Hold, Receipt, Transfer
from payments_app.money import Money
from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey, Response
from tests import factories
from tests.sessions_app.admin.test_home import member_of, paid_answer, signed_in

pytestmark = pytest.mark.django_db


def test_the_search_leads_to_the_row_of_any_id() -> None:
    answer = paid_answer()
    message = factories.message(answer.chat, factories.user("bob"), "a zebra crossing")
    call = factories.tool_call(answer)
    hold, transfer = Hold.objects.get(), Transfer.objects.get(kind="answer")
    client = signed_in(factories.superuser())

    def led_to(text: str) -> str:
        answer = client.get(reverse("admin:find"), {"q": text})
        return answer["Location"] if answer.status_code == 302 else answer.content.decode()

    rows: dict[str, Any] = {
        "chat_app_chat": answer.chat,
        "chat_app_message": message,
        "sessions_app_response": answer,
        "sessions_app_session": answer.session,
        "payments_app_hold": hold,
        "payments_app_transfer": transfer,
    }
    for name, row in rows.items():
        page = reverse(f"admin:{name}_change", args=[quote(row.pk)])
        assert led_to(row.pk) == page
        # As lists show it.
        assert f'href="{page}"' in led_to(row.pk[:17])
    assert led_to(call.call_id) == reverse("admin:sessions_app_toolcall_change", args=[call.pk])
    person = reverse("admin:auth_user_change", args=[message.sender_user_id])
    assert f'href="{person}"' in led_to("bob")
    account = Account.objects.get(kind="user")
    amount = Money.parse("5", "USD")
    services.record_receipt(
        provider="x402", external_id="0xbeef", account_id=account.pk, amount=amount
    )
    receipt = Receipt.objects.get(external_id="0xbeef")
    assert led_to("0xbeef") == reverse("admin:payments_app_receipt_change", args=[receipt.pk])
    code = account.code
    assert "payments_app/account" in led_to(code)
    assert "Nothing found" in led_to("resp_0000000000")
    for odd in ("", "%", "\N{SNOWMAN}" * 300, "' OR 1=1 --", "7" * 40):
        assert "Search" in led_to(odd)


def test_words_are_searched_for_by_readers_of_contents_and_it_is_recorded() -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada, title="Plans")
    message = factories.message(chat, ada, "a Zebra crossing at noon")
    factories.message(chat, ada, "nothing of the kind")
    address = reverse("admin:find")
    support = member_of("Support").get(address, {"q": "zebra"}).content.decode()
    assert "crossing" not in support
    assert not AuditRecord.objects.exists()
    auditor = member_of("Auditor")
    results = auditor.get(address, {"q": "zebra noon"}).content.decode()
    assert quote(message.pk) in results
    assert "nothing of the kind" not in results
    assert AuditRecord.objects.get().detail == "zebra noon"


def test_a_name_hides_neither_messages_nor_titles_with_that_word() -> None:
    zebra = factories.user("zebra", email="zebra@example.org")
    agent = factories.agent("zebra")
    chat = factories.chat(zebra, agent, title="The Zebra crossing")
    message = factories.message(chat, zebra, "a zebra at noon")
    address = reverse("admin:find")
    answer = member_of("Auditor").get(address, {"q": "zebra"})
    assert answer.status_code == 200
    assert sorted(answer.context["groups"]) == ["Agents", "Chats", "Users"]
    page = answer.content.decode()
    for model, pk in (
        ("auth_user", zebra.pk), ("agents_app_agent", agent.pk), ("chat_app_chat", chat.pk),
        ("chat_app_message", message.pk),
    ):  # fmt: skip
        assert f'href="{reverse(f"admin:{model}_change", args=[quote(pk)])}"' in page
    # What leads on from a person does so from here, too.
    assert f"{reverse('admin:sessions_app_response_changelist')}?q=zebra" in page
    person = reverse("admin:auth_user_change", args=[zebra.pk])
    assert person in member_of("Support").get(address, {"q": zebra.email}).content.decode()


def test_the_search_names_the_rights_that_a_search_in_messages_needs() -> None:
    factories.chat(factories.user("ada"))
    address, needs = reverse("admin:find"), "needs the rights view_message and view_content"
    support = member_of("Support").get(address, {"q": "zebra"}).content.decode()
    assert "Nothing found" in support
    assert needs in support
    assert needs not in member_of("Auditor").get(address, {"q": "zebra"}).content.decode()


def test_causes_and_ids_of_providers_and_prefixes_of_keys_are_found() -> None:
    answer = paid_answer()
    failed = factories.response(
        answer.agent, answer.chat, status="failed", error={"code": "x"},
        error_cause="openai_compat: quota of the vault exceeded",
    )  # fmt: skip
    Response.objects.filter(pk=answer.pk).update(inferences=[{"number": 1, "request_id": "req_77"}])
    secret = create_api_key(factories.user("bob"), name="ci")
    key = ApiKey.objects.get()
    address = reverse("admin:find")
    support, operator = member_of("Support"), member_of("Operator")
    page = reverse("admin:sessions_app_response_change", args=[quote(failed.pk)])
    assert page in support.get(address, {"q": "of the VAULT"}).content.decode()
    page = reverse("admin:sessions_app_response_change", args=[quote(answer.pk)])
    assert page in support.get(address, {"q": "req_77"}).content.decode()
    page = reverse("admin:sessions_app_apikey_change", args=[key.pk])
    for text in (key.prefix, secret):
        assert operator.get(address, {"q": text})["Location"] == page
    assert page in operator.get(address, {"q": key.prefix[:9]}).content.decode()
    assert page not in support.get(address, {"q": key.prefix[:9]}).content.decode()


def test_a_search_takes_as_many_queries_for_many_rows_as_for_few() -> None:
    client, address = member_of("Auditor"), reverse("admin:find")

    def queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address, {"q": "zebra"}).status_code == 200
        return len(queries)

    ada, agent = factories.user("ada"), factories.agent("helper")
    for number in range(2):
        factories.response(
            agent, factories.chat(ada, agent, title=f"Zebra {number}"), status="failed",
            error={"code": "x"}, error_cause="zebra",
        )  # fmt: skip
    queries()
    few = queries()
    for number in range(10):
        factories.response(
            agent, factories.chat(ada, agent, title=f"Zebra {number}"), status="failed",
            error={"code": "x"}, error_cause="zebra",
        )  # fmt: skip
    assert queries() == few
