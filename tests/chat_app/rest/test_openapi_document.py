"""The OpenAPI document of the REST API, and its reference page."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from django.core.management import call_command
from django.test import Client
from drf_spectacular import validation
from jsonschema import Draft202012Validator, FormatChecker

import uamp
from agents_app.rest.problem_kinds import PROBLEMS
from tests.chat_app.rest.rest_caller import check_problem

pytestmark = pytest.mark.django_db


def test_the_openapi_document_is_valid_and_says_everything(tmp_path: Path) -> None:
    call_command("spectacular", fail_on_warn=True, file=str(tmp_path / "schema.yaml"))
    document = Client().get("/api/schema").json()
    # `--validate` checks the same, in ten seconds of CPU.
    schema = Path(validation.__file__).with_name("openapi_3_1_schema.json")
    assert jsonschema_rs.is_valid(json.loads(schema.read_text()), document)
    assert "payments" in document["info"]["description"]
    assert (document["openapi"][:3], document["servers"][0]["url"]) == ("3.1", "/")
    responses = document["paths"]["/api/v1/chats/{chat_id}"]["get"]["responses"]
    assert {"304", "404", "429", "503"} <= responses.keys()
    assert {"ETag", "X-Request-ID", "RateLimit-Remaining"} <= responses["200"]["headers"].keys()
    assert "304" not in document["paths"]["/api/payments/balance"]["get"]["responses"]
    for path in ("/api/payments/tokens", "/api/payments/lock", "/api/v1/chats"):
        names = [
            parameter.get("name") for parameter in document["paths"][path]["post"]["parameters"]
        ]
        assert names.count("Idempotency-Key") == 1, path
    operations = {
        operation["operationId"]: path
        for path, methods in document["paths"].items()
        for operation in methods.values()
    }
    assert operations == {
        "get_me": "/api/v1/me",
        "update_me": "/api/v1/me",
        "get_settings": "/api/v1/me/settings",
        "update_settings": "/api/v1/me/settings",
        "get_push_key": "/api/v1/me/push-key",
        "list_push_subscriptions": "/api/v1/me/push-subscriptions",
        "create_push_subscription": "/api/v1/me/push-subscriptions",
        "delete_push_subscription": "/api/v1/me/push-subscriptions/{subscription_id}",
        "set_picture": "/api/v1/me/picture",
        "remove_picture": "/api/v1/me/picture",
        "get_picture": "/api/v1/people/{user_id}/picture/{version}",
        "list_agents": "/api/v1/agents",
        "list_users": "/api/v1/users",
        "list_chats": "/api/v1/chats",
        "create_chat": "/api/v1/chats",
        "get_chat": "/api/v1/chats/{chat_id}",
        "update_chat": "/api/v1/chats/{chat_id}",
        "list_chat_payments": "/api/v1/chats/{chat_id}/payments",
        "list_chat_budgets": "/api/v1/chats/{chat_id}/budgets",
        "get_pool": "/api/v1/chats/{chat_id}/pool",
        "fill_pool": "/api/v1/chats/{chat_id}/pool",
        "list_participants": "/api/v1/chats/{chat_id}/participants",
        "add_participant": "/api/v1/chats/{chat_id}/participants",
        "get_participant": "/api/v1/chats/{chat_id}/participants/{participant_id}",
        "remove_participant": "/api/v1/chats/{chat_id}/participants/{participant_id}",
        "update_participant": "/api/v1/chats/{chat_id}/participants/{participant_id}",
        "mute_chat": "/api/v1/chats/{chat_id}/mute",
        "place_chat": "/api/v1/chats/{chat_id}/place",
        "fork_chat": "/api/v1/chats/{chat_id}/forks",
        "list_share_links": "/api/v1/chats/{chat_id}/share-links",
        "create_share_link": "/api/v1/chats/{chat_id}/share-links",
        "revoke_share_link": "/api/v1/chats/{chat_id}/share-links/{link_id}",
        "list_invite_links": "/api/v1/chats/{chat_id}/invite-links",
        "create_invite_link": "/api/v1/chats/{chat_id}/invite-links",
        "revoke_invite_link": "/api/v1/chats/{chat_id}/invite-links/{link_id}",
        "list_receipts": "/api/v1/chats/{chat_id}/receipts",
        "list_messages": "/api/v1/chats/{chat_id}/messages",
        "create_message": "/api/v1/chats/{chat_id}/messages",
        "list_responses": "/api/v1/chats/{chat_id}/responses",
        "list_tool_approvals": "/api/v1/chats/{chat_id}/approvals",
        "create_agent": "/api/v1/agents",
        "discover_agent": "/api/v1/agent-discovery",
        "probe_agent": "/api/v1/agents/{name}/probe",
        "get_onward_budget": "/api/payments/onward/{agent}",
        "set_onward_budget": "/api/payments/onward/{agent}",
        "get_agent": "/api/v1/agents/{name}",
        "update_agent": "/api/v1/agents/{name}",
        "list_ledger_entries": "/api/v1/ledger/entries",
        "get_usage": "/api/v1/usage",
        "get_pool_usage": "/api/v1/chats/{chat_id}/pool/usage",
        "pay_response": "/api/v1/responses/{response_id}/payment",
        "create_upload": "/api/v1/uploads",
        "get_upload": "/api/v1/uploads/{upload_id}",
        "continue_upload": "/api/v1/uploads/{upload_id}",
        "cancel_upload": "/api/v1/uploads/{upload_id}",
        "create_response": "/api/v1/responses",
        "get_response": "/api/v1/responses/{response_id}",
        "cancel_response": "/api/v1/responses/{response_id}/cancel",
        "retry_response": "/api/v1/responses/{response_id}/retry",
        "list_tool_calls": "/api/v1/responses/{response_id}/tool-calls",
        "get_tool_call": "/api/v1/tool-calls/{call_id}",
        "decide_tool_call": "/api/v1/tool-calls/{call_id}/decision",
        "give_tool_result": "/api/v1/tool-calls/{call_id}/result",
        "get_message": "/api/v1/messages/{message_id}",
        "get_message_frames": "/api/v1/messages/{message_id}/frames",
        "edit_message": "/api/v1/messages/{message_id}",
        "delete_chat": "/api/v1/chats/{chat_id}",
        "delete_message": "/api/v1/messages/{message_id}",
        "search_messages": "/api/v1/search",
        "list_threads": "/api/v1/threads",
        "list_invitations": "/api/v1/invitations",
        "answer_invitation": "/api/v1/invitations/{invitation_id}",
        "list_reactions": "/api/v1/messages/{message_id}/reactions",
        "add_reaction": "/api/v1/messages/{message_id}/reactions",
        "remove_reaction": "/api/v1/messages/{message_id}/reactions",
        "pin_message": "/api/v1/messages/{message_id}/pin",
        "unpin_message": "/api/v1/messages/{message_id}/pin",
        "get_call": "/api/v1/chats/{chat_id}/call",
        "read_link_cards": "/api/v1/messages/{message_id}/link-cards",
        "read_transcript": "/api/v1/contents/{content_id}/transcript",
        "list_keys": "/api/v1/keys",
        "create_key": "/api/v1/keys",
        "get_key": "/api/v1/keys/{key_id}",
        "get_own_key": "/api/v1/keys/self",
        "revoke_key": "/api/v1/keys/{key_id}",
        "rotate_key": "/api/v1/keys/{key_id}/rotate",
        "list_connect_tokens": "/api/v1/connect-tokens",
        "create_connect_token": "/api/v1/connect-tokens",
        "get_connect_token": "/api/v1/connect-tokens/{key_id}",
        "revoke_connect_token": "/api/v1/connect-tokens/{key_id}",
        "list_webhooks": "/api/v1/webhooks",
        "create_webhook": "/api/v1/webhooks",
        "get_webhook": "/api/v1/webhooks/{webhook_id}",
        "change_webhook": "/api/v1/webhooks/{webhook_id}",
        "delete_webhook": "/api/v1/webhooks/{webhook_id}",
        "rotate_webhook": "/api/v1/webhooks/{webhook_id}/rotate",
        "ping_webhook": "/api/v1/webhooks/{webhook_id}/ping",
        "list_webhook_deliveries": "/api/v1/webhooks/{webhook_id}/deliveries",
        "get_webhook_delivery": "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}",
        "redeliver_webhook": "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
        "list_queue": "/api/v1/chats/{chat_id}/queue",
        "remove_queued_message": "/api/v1/chats/{chat_id}/queue/{item_id}",
        "start_queued_message": "/api/v1/chats/{chat_id}/queue/{item_id}/start",
        "list_pins": "/api/v1/chats/{chat_id}/pins",
        "list_versions": "/api/v1/messages/{message_id}/versions",
        "list_revisions": "/api/v1/messages/{message_id}/revisions",
        "export_chat": "/api/v1/chats/{chat_id}/export",
        "get_checkpoint": "/api/v1/chats/{chat_id}/checkpoint",
        "get_message_proof": "/api/v1/messages/{message_id}/proof",
        "list_events": "/api/v1/chats/{chat_id}/events",
        "list_sessions": "/api/v1/sessions",
        "render_text": "/api/v1/render",
        "create_content": "/api/v1/contents",
        "get_content": "/api/v1/contents/{content_id}",
        "read_content": "/api/content/{content_id}",
        "read_preview": "/api/content/{content_id}/preview",
        "get_balance": "/api/payments/balance",
        "get_statement": "/api/payments/statement",
        "get_spend": "/api/payments/spend",
        "get_spending_limits": "/api/payments/limits",
        "set_spending_limits": "/api/payments/limits",
        "list_sponsorships": "/api/payments/sponsorships",
        "sponsor_agent": "/api/payments/sponsorships/{agent}",
        "end_sponsorship": "/api/payments/sponsorships/{agent}",
        "create_ticket": "/api/v1/tickets",
        "list_approvals": "/api/payments/approvals",
        "approve_agent": "/api/payments/approvals/{agent}",
        "withdraw_approval": "/api/payments/approvals/{agent}",
        "verify_payment_token": "/api/payments/verify",
        "lock_payment": "/api/payments/lock",
        "extend_payment_lock": "/api/payments/lock/{lock_id}",
        "settle_payment": "/api/payments/settle",
        "delegate_payment": "/api/payments/delegate",
        "list_payment_tokens": "/api/payments/tokens",
        "create_payment_token": "/api/payments/tokens",
        "get_payment_token": "/api/payments/tokens/{token_id}",
        "revoke_payment_token": "/api/payments/tokens/{token_id}",
        "get_payment_token_tree": "/api/payments/tokens/{token_id}/tree",
        "top_up_payment_token": "/api/payments/tokens/{token_id}/topup",
        "end_payment_token": "/api/payments/tokens/{token_id}/revoke",
        "list_top_up_providers": "/api/payments/topups/providers",
        "list_top_ups": "/api/payments/topups",
        "create_top_up": "/api/payments/topups",
        "get_top_up": "/api/payments/topups/{request_id}",
    }


def test_every_operation_names_the_scope_that_a_key_needs() -> None:
    document = Client().get("/api/schema").json()
    scopes_and_words = {
        operation["operationId"]: (operation["security"][0]["apiKey"], operation["description"])
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    assert scopes_and_words["create_message"][0] == ["messages:write"]
    assert scopes_and_words["get_own_key"][0] == []
    assert all(
        scopes == [] or f"A key needs the scope `{scopes[0]}`." in words
        for scopes, words in scopes_and_words.values()
    )
    refused = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "403" not in operation["responses"]
    ]
    assert refused == []


def test_every_operation_has_examples_that_fit_its_schemas() -> None:
    document = Client().get("/api/schema").json()
    lacking, wrong = [], []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            done = min(status for status in operation["responses"] if status < "400")
            bodies = [operation.get("requestBody", {}), operation["responses"][done]]
            for body in bodies:
                content = body.get("content", {}).get("application/json")
                if content is None:
                    continue
                if "example" not in content:
                    lacking.append((method, path))
                    continue
                schema = {**content["schema"], "components": document["components"]}
                checker = Draft202012Validator(schema, format_checker=FormatChecker())
                wrong += [
                    (method, path, error.json_path, error.message)
                    for error in checker.iter_errors(content["example"])
                ]
    assert lacking == []
    assert wrong == []


def test_every_problem_has_its_place_on_the_reference_page() -> None:
    page = Client().get("/docs/problems").content.decode()
    for code in (*PROBLEMS, *uamp.ERROR_CODES):
        assert page.count(f'<dt id="{code}">') == 1
    assert "`" not in page
    assert "Send <code>Authorization: Bearer &lt;API key&gt;</code> or sign in." in page


@pytest.mark.parametrize("method", ["options", "post", "put", "patch", "delete"])
@pytest.mark.parametrize("accept", ["text/html", "*/*", "application/json"])
def test_the_reference_page_refuses_other_methods_by_name(method: str, accept: str) -> None:
    answer = getattr(Client(headers={"Accept": accept}), method)("/api/docs")
    check_problem(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD"
