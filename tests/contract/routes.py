"""Every path of the server, and who may call it.

`owner` owns the chat and every row that the paths name; `member` is a member of the chat with no
other right; `stranger` is a person who is in no chat; `anonymous` shows no credential.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

CALLERS: Final = ("owner", "member", "stranger", "anonymous")


class Who(Enum):
    """Those who may."""

    EVERYONE = frozenset(CALLERS)
    PEOPLE = frozenset({"owner", "member", "stranger"})
    MEMBERS = frozenset({"owner", "member"})
    OWNER = frozenset({"owner"})
    NO_ONE = frozenset[str]()


E, P, M, O, N = Who.EVERYONE, Who.PEOPLE, Who.MEMBERS, Who.OWNER, Who.NO_ONE  # noqa: E741 columns of a table

_CHAT = "api/v1/chats/{chat_id}"
_MESSAGE = "api/v1/messages/{message_id}"
_RESPONSE = "api/v1/responses/{response_id}"
_TOKEN = "api/payments/tokens/{token_id}"


def _rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


_AG_UI: Final = {
    "threadId": "t",
    "runId": "r",
    "state": {},
    "messages": [{"id": "m", "role": "user", "content": "a"}],
    "tools": [],
    "context": [],
    "forwardedProps": {},
}
_MESSAGES: Final = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "a"}],
}
# Ids for a request that is refused before they are looked up.
IDS: Final = {
    "name": "echo",
    "model_id": "echo",
    "path": "v1/card",
    "content_id": "00000000-0000-0000-0000-000000000000",
    "upload_id": "00000000-0000-0000-0000-000000000000",
    "file_id": "00000000-0000-0000-0000-000000000000",
    "invitation_id": "00000000-0000-0000-0000-000000000000",
    "version": "0" * 16,
    "request_id": f"topup_{'0' * 32}",
    "response_id": "resp_0123456789abcdef0123456789abcdef",
}
# The query of a path, where one is needed.
QUERIES: Final = {
    ("PUT", f"{_MESSAGE}/reactions"): "?emoji=%E2%9C%A8",
    ("DELETE", f"{_MESSAGE}/reactions"): "?emoji=%E2%9C%A8",
    ("GET", f"{_CHAT}/export"): "?format=ndjson",
    ("GET", "api/v1/users"): "?q=a",
    ("GET", "api/v1/search"): "?q=word",
    ("GET", "log-tree/consistency"): "?from=1&to=1",
    ("GET", "log-tree/proof"): "?index=0",
}
ROUTES: Final[dict[str, dict[str, tuple[Who, Any]]]] = {
    # --- Pages ---
    "": {"GET": (P, None)},
    "chats/{chat_id}": {"GET": (P, None)},
    "money": {"GET": (P, None)},
    "style/": {"GET": (N, None)},
    "diagram/": {"GET": (E, None)},
    "language": {"POST": (E, None)},
    "jsi18n/{language}": {"GET": (E, None)},
    "manifest/{language}.webmanifest": {"GET": (E, None)},
    "service-worker.js": {"GET": (E, None)},
    "offline": {"GET": (E, None)},
    # Accounts exist, and none of the four is an administrator.
    "setup": {"GET": (N, None), "POST": (N, None)},
    "setup/invitation/{chat_id}": {"GET": (N, None), "POST": (N, None)},
    "connect-model": {"GET": (N, None), "POST": (N, None)},
    "login": {"GET": (E, None)},
    "admin/password_change/": {"GET": (E, None)},
    "admin/login/": {"GET": (E, None)},
    "login/code": {"GET": (E, None)},
    "login/passkey": {"GET": (E, None)},
    # Without emails there are no such pages.
    "password/forgotten": {"GET": (N, None), "POST": (N, None)},
    "password/forgotten/sent": {"GET": (N, None)},
    "password/new/{uidb36}-{key}": {"GET": (N, None), "POST": (N, None)},
    "account/address": {"GET": (N, None), "POST": (N, None)},
    "account/address/confirm/{key}": {"GET": (N, None), "POST": (N, None)},
    "account": {"GET": (P, None)},
    "account/security": {"GET": (P, None)},
    "account/security/passkeys": {"GET": (E, None)},
    "account/security/confirm": {"GET": (P, None), "POST": (P, None)},
    # They need a factor, or the password again.
    "account/security/confirm/code": {"GET": (P, None), "POST": (P, None)},
    "account/security/confirm/passkey": {"GET": (P, None), "POST": (P, None)},
    "account/security/app": {"GET": (P, None), "POST": (P, None)},
    "account/security/app/remove": {"GET": (N, None), "POST": (N, None)},
    "account/security/recovery-codes": {"GET": (N, None)},
    "account/security/recovery-codes/new": {"GET": (P, None), "POST": (P, None)},
    "account/security/passkeys/new": {"GET": (P, None), "POST": (P, None)},
    "account/security/passkeys/{pk}/remove": {"GET": (P, None), "POST": (P, None)},
    "account/password": {"GET": (P, None)},
    "account/sign-out-others": {"POST": (P, None)},
    "account/keys": {"POST": (P, None)},
    "account/export": {"POST": (P, None)},
    "account/agents": {"GET": (P, None)},
    "account/agents/tokens": {"POST": (P, None)},
    "account/agents/tokens/{key_id}/revoke": {"POST": (O, None)},
    # Without a provider of identities there is no such page.
    "login/oidc": {"GET": (N, None)},
    "login/oidc/callback": {"GET": (N, None)},
    # A form without the seconds for which the old key stays is answered like a wrong id.
    "account/keys/{key_id}/rotate": {"POST": (N, None)},
    "account/keys/{key_id}/revoke": {"POST": (O, None)},
    "join/{secret}": {"GET": (E, None)},
    "shared/{secret}": {"GET": (E, None)},
    "shared/files/{content_id}": {"GET": (N, None)},
    "unsubscribe/{token}": {"GET": (E, None), "POST": (E, None)},
    "docs/problems": {"GET": (E, None)},
    "metrics": {"GET": (N, None)},
    # --- People ---
    "api/v1/me": {"GET": (P, None), "PATCH": (P, {"status_text": "here"})},
    "api/v1/me/settings": {"GET": (P, None), "PATCH": (P, {})},
    "api/v1/me/push-key": {"GET": (P, None)},
    "api/v1/me/push-subscriptions": {"GET": (P, None), "POST": (P, {})},
    "api/v1/me/push-subscriptions/{subscription_id}": {"DELETE": (O, None)},
    "api/v1/me/picture": {"DELETE": (P, None), "PUT": (P, {})},
    "api/v1/people/{user_id}/picture/{version}": {"GET": (N, None)},
    "api/v1/agents": {"GET": (P, None), "POST": (O, {})},
    "api/v1/agent-discovery": {"POST": (O, {"url": "https://localhost/"})},
    # The agent of the table is not remote, so that there is nothing to look at.
    "api/v1/agents/{name}/probe": {"POST": (N, None)},
    "api/v1/agents/{name}": {"GET": (O, None), "PATCH": (O, {"description": "changed"})},
    "api/v1/ledger/entries": {"GET": (P, None)},
    "api/v1/usage": {"GET": (P, None)},
    "api/v1/users": {"GET": (P, None)},
    "api/v1/render": {"POST": (P, {"text": "a"})},
    "api/v1/keys": {"GET": (P, None), "POST": (P, {})},
    "api/v1/keys/self": {"GET": (P, None)},
    "api/v1/keys/{key_id}/rotate": {"POST": (O, {})},
    "api/v1/keys/{key_id}": {"GET": (O, None), "DELETE": (O, None)},
    "api/v1/connect-tokens": {"GET": (P, None), "POST": (P, {})},
    "api/v1/connect-tokens/{key_id}": {"GET": (O, None), "DELETE": (O, None)},
    "api/v1/webhooks": {
        "GET": (P, None),
        "POST": (M, {"chat": "{chat_id}", "url": "https://example.org/"}),
    },
    "api/v1/webhooks/{webhook_id}/rotate": {"POST": (O, {})},
    "api/v1/webhooks/{webhook_id}/ping": {"POST": (O, None)},
    "api/v1/webhooks/{webhook_id}/deliveries": {"GET": (O, None)},
    "api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}": {"GET": (O, None)},
    "api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": {"POST": (O, None)},
    "api/v1/webhooks/{webhook_id}": {
        "GET": (O, None),
        "PATCH": (O, {"name": "changed"}),
        "DELETE": (O, None),
    },
    "api/v1/tickets": {"POST": (P, {})},
    "api/v1/sessions": {"GET": (P, None)},
    "api/v1/threads": {"GET": (P, None)},
    "api/v1/invitations": {"GET": (P, None)},
    "api/v1/invitations/{invitation_id}": {"POST": (O, {"answer": "withdraw"})},
    "api/v1/search": {"GET": (P, None)},
    # --- Chats ---
    "api/v1/chats": {"GET": (P, None), "POST": (P, {"title": "new"})},
    f"{_CHAT}/participants": {"GET": (M, None), "POST": (M, {"user": "guest"})},
    f"{_CHAT}/participants/{{participant_id}}": {
        "GET": (M, None),
        "PATCH": (O, {"trigger": "never"}),
        "DELETE": (O, None),
    },
    f"{_CHAT}/mute": {"PUT": (M, {"muted": True})},
    f"{_CHAT}/place": {"PUT": (M, {"pinned": True})},
    f"{_CHAT}/call": {"GET": (M, None)},
    f"{_CHAT}/share-links": {"GET": (M, None), "POST": (O, {})},
    f"{_CHAT}/share-links/{{link_id}}": {"DELETE": (O, None)},
    f"{_CHAT}/invite-links": {"GET": (M, None), "POST": (M, {})},
    f"{_CHAT}/invite-links/{{link_id}}": {"DELETE": (O, None)},
    f"{_CHAT}/receipts": {"GET": (M, None)},
    f"{_CHAT}/messages": {"GET": (M, None), "POST": (M, {"content": "hello"})},
    f"{_CHAT}/events": {"GET": (M, None)},
    f"{_CHAT}/responses": {"GET": (M, None)},
    f"{_CHAT}/approvals": {"GET": (M, None)},
    f"{_CHAT}/export": {"GET": (M, None)},
    f"{_CHAT}/checkpoint": {"GET": (M, None)},
    f"{_CHAT}/payments": {"GET": (M, None)},
    f"{_CHAT}/budgets": {"GET": (M, None)},
    f"{_CHAT}/forks": {"POST": (M, {"message_id": "{message_id}"})},
    f"{_CHAT}/pins": {"GET": (M, None)},
    f"{_CHAT}/pool": {"GET": (O, None), "POST": (O, {"amount": "0.01"})},
    f"{_CHAT}/pool/usage": {"GET": (O, None)},
    f"{_CHAT}/queue": {"GET": (M, None)},
    f"{_CHAT}/queue/{{item_id}}/start": {"POST": (O, {})},
    f"{_CHAT}/queue/{{item_id}}": {"DELETE": (O, None)},
    # --- Messages, answers, calls of tools ---
    f"{_MESSAGE}/revisions": {"GET": (M, None)},
    f"{_MESSAGE}/proof": {"GET": (M, None)},
    f"{_MESSAGE}/versions": {"GET": (M, None)},
    f"{_MESSAGE}/reactions": {"GET": (M, None), "PUT": (M, None), "DELETE": (M, None)},
    f"{_MESSAGE}/link-cards": {"POST": (M, {})},
    f"{_MESSAGE}/pin": {"PUT": (M, None), "DELETE": (M, None)},
    f"{_MESSAGE}/frames": {"GET": (M, None)},
    "api/v1/responses": {"POST": (O, {"agent": "{agent}", "content": "a"})},
    _RESPONSE: {"GET": (M, None)},
    f"{_RESPONSE}/cancel": {"POST": (M, None)},
    f"{_RESPONSE}/payment": {"POST": (N, {})},
    f"{_RESPONSE}/retry": {"POST": (O, {})},
    f"{_RESPONSE}/tool-calls": {"GET": (M, None)},
    "api/v1/tool-calls/{call_id}": {"GET": (M, None)},
    "api/v1/tool-calls/{call_id}/decision": {"POST": (O, {"approved": True})},
    "api/v1/tool-calls/{call_id}/result": {"POST": (O, {"result": "1"})},
    _MESSAGE: {
        "GET": (M, None),
        "PATCH": (O, {"content": "changed"}),
        "DELETE": (O, None),
    },
    "api/v1/contents": {"POST": (P, {})},
    "api/v1/uploads": {"POST": (P, None)},
    "api/v1/uploads/{upload_id}": {
        "GET": (O, None),
        "PATCH": (O, None),
        "DELETE": (O, None),
    },
    "api/v1/contents/{content_id}": {"GET": (M, None)},
    "api/v1/contents/{content_id}/transcript": {"POST": (N, {})},
    "api/content/{content_id}": {"GET": (M, None)},
    # The file of the table is a picture that browsers show.
    "api/content/{content_id}/preview": {"GET": (N, None)},
    # --- Money: everything is the caller's own ---
    "api/balance": {"GET": (P, None)},
    "api/payments/balance": {"GET": (P, None)},
    "api/payments/statement": {"GET": (P, None)},
    "api/payments/spend": {"GET": (P, None)},
    "api/payments/limits": {"GET": (P, None), "PUT": (P, {"limits": []})},
    "api/payments/approvals": {"GET": (P, None)},
    # An agent that the caller may not use is a wrong name in the request (400).
    "api/payments/approvals/{agent}": {"PUT": (P, {"up_to": "1"}), "DELETE": (O, None)},
    "api/payments/sponsorships": {"GET": (P, None)},
    "api/payments/sponsorships/{agent}": {
        "PUT": (P, {"budgets": [{"period": "day", "amount": "1"}]}),
        "DELETE": (O, None),
    },
    "api/payments/onward/{agent}": {"GET": (P, None), "PUT": (P, {"amount": "1"})},
    "api/payments/verify": {"POST": (P, {"token": "x"})},
    "api/payments/lock": {"POST": (P, {})},
    # A lock is whose token was locked for; the hold of an answer is no one's.
    "api/payments/lock/{lock_id}": {"PATCH": (N, {"amount": "1"})},
    "api/payments/settle": {"POST": (P, {})},
    "api/payments/delegate": {"POST": (P, {})},
    "api/payments/tokens": {"GET": (P, None), "POST": (P, {})},
    f"{_TOKEN}/tree": {"GET": (O, None)},
    f"{_TOKEN}/topup": {"POST": (O, {"amount": "0.01"})},
    f"{_TOKEN}/revoke": {"POST": (O, {})},
    _TOKEN: {"GET": (O, None), "DELETE": (O, None)},
    "api/payments/topups": {"GET": (P, None), "POST": (P, {})},
    "api/payments/topups/providers": {"GET": (P, None)},
    "api/payments/topups/hooks/{provider}": {"POST": (N, {})},
    "api/payments/topups/{request_id}": {"GET": (N, None)},
    # --- UAMP, discovery and documents ---
    "events": {"POST": (E, {"type": "session.create", "session": {}, "agent": "echo"})},
    "events/stream": {"GET": (N, None)},
    "uamp": {"POST": (E, [])},
    "uamp/stream": {"POST": (E, [])},
    "capabilities": {"GET": (E, None)},
    "models": {"GET": (E, None)},
    "info": {"GET": (E, None)},
    "schemas/uamp/1.0/": {"GET": (E, None)},
    "schemas/uamp/1.0/{type_name}.json": {"GET": (E, None)},
    "api/schema": {"GET": (E, None)},
    "api/docs": {"GET": (E, None)},
    ".well-known/jwks.json": {"GET": (E, None)},
    # The tree names no chat. The proof of a message above has made its first leaf.
    "log-tree/checkpoint": {"GET": (E, None)},
    "log-tree/consistency": {"GET": (E, None)},
    "log-tree/proof": {"GET": (E, None)},
    "log-tree/tile/{level}/{place}": {"GET": (E, None)},
    "log-tree/keys": {"GET": (E, None)},
    "log-tree/cosignatures": {"POST": (E, None)},
    ".well-known/openid-configuration": {"GET": (E, None)},
    ".well-known/oauth-authorization-server": {"GET": (E, None)},
    # A client that proves nothing gets no token.
    "auth/token": {"POST": (E, {})},
    "agents/{name}/auth/token": {"POST": (E, {})},
    # What a private agent is known by is not there for other servers.
    "agents/{name}/.well-known/openid-configuration": {"GET": (N, None)},
    "agents/{name}/.well-known/jwks.json": {"GET": (N, None)},
    "api/": {"GET": (N, None)},
    "(?:v1|agents)/": {"GET": (N, None)},
    # --- The protocols of others, with the default agent, which is public ---
    "chat/completions": {"POST": (E, {})},
    "realtime/client_secrets": {"POST": (P, {})},
    "realtime/sessions": {"POST": (P, {})},
    "v1/models": {"GET": (E, None)},
    "models/{model_id}": {"GET": (O, None)},
    "responses": {"POST": (E, {})},
    "responses/compact": {"POST": (E, {})},
    "responses/input_tokens": {"POST": (E, {})},
    "conversations": {"POST": (P, {})},
    "conversations/{conversation_id}/items": {
        "GET": (M, None),
        "POST": (M, {"items": [{"role": "user", "content": "a"}]}),
    },
    "conversations/{conversation_id}/items/{item_id}": {
        "GET": (M, None),
        "DELETE": (O, None),
    },
    "conversations/{conversation_id}": {
        "GET": (M, None),
        "POST": (O, {"metadata": {}}),
        "DELETE": (O, None),
    },
    "responses/{response_id}": {"GET": (O, None)},
    "responses/{response_id}/cancel": {"POST": (O, None)},
    "responses/{response_id}/input_items": {"GET": (O, None)},
    "v1/messages/count_tokens": {"POST": (E, {})},
    # --- Envelopes: the server of this test has no name for them ---
    # Anthropic's Messages API has the same path; its clients send `anthropic-version`.
    "v1/messages": {"POST": (N, {})},
    "v1/stream/{stream_id}": {"GET": (N, None)},
    "v1/files/{file_id}": {"GET": (N, None)},
    ".well-known/did.json": {"GET": (N, None)},
    ".well-known/agent-manifest.json": {"GET": (N, None)},
    ".well-known/agent-hub.json": {"GET": (N, None)},
    "agents/{name}/did.json": {"GET": (N, None)},
    "agents/{name}/.well-known/agent-manifest.json": {"GET": (N, None)},
    # --- Cards ---
    ".well-known/agent-card.json": {"GET": (E, None)},
    ".well-known/agent.json": {"GET": (E, None)},
    "{path}": {"GET": (P, None)},
    "agents": {"GET": (E, None)},
    "logout": {"POST": (E, None)},
    # --- The same of a private agent ---
    "agents/{name}": {"GET": (O, None)},
    "agents/{name}/events": {"POST": (O, {"type": "session.create", "session": {}})},
    "agents/{name}/events/stream": {"GET": (N, None)},
    "agents/{name}/uamp": {"POST": (O, [{"type": "session.create", "session": {}}])},
    "agents/{name}/uamp/stream": {"POST": (O, [{"type": "session.create", "session": {}}])},
    "agents/{name}/capabilities": {"GET": (O, None)},
    "agents/{name}/models": {"GET": (O, None)},
    "agents/{name}/info": {"GET": (O, None)},
    "agents/{name}/chat/completions": {
        "POST": (O, {"messages": [{"role": "user", "content": "a"}]})
    },
    "agents/{name}/realtime/client_secrets": {"POST": (O, {})},
    "agents/{name}/realtime/sessions": {"POST": (O, {})},
    "agents/{name}/v1/models": {"GET": (O, None)},
    "agents/{name}/models/{model_id}": {"GET": (O, None)},
    "agents/{name}/v1/messages": {"POST": (O, _MESSAGES)},
    "agents/{name}/v1/messages/count_tokens": {"POST": (O, _MESSAGES)},
    "agents/{name}/responses": {"POST": (O, {"input": "a"})},
    "agents/{name}/responses/input_tokens": {"POST": (O, {"input": "a"})},
    "agents/{name}/responses/compact": {"POST": (O, {"input": "a"})},
    "agents/{name}/conversations": {"POST": (O, {})},
    # The agent is not in that chat.
    "agents/{name}/conversations/{conversation_id}/items": {
        "GET": (M, None),
        "POST": (N, {"items": [{"role": "user", "content": "a"}]}),
    },
    "agents/{name}/conversations/{conversation_id}/items/{item_id}": {
        "GET": (M, None),
        "DELETE": (O, None),
    },
    "agents/{name}/conversations/{conversation_id}": {
        "GET": (M, None),
        "POST": (O, {"metadata": {}}),
        "DELETE": (O, None),
    },
    "agents/{name}/responses/{response_id}": {"GET": (O, None)},
    "agents/{name}/responses/{response_id}/cancel": {"POST": (O, None)},
    "agents/{name}/responses/{response_id}/input_items": {"GET": (O, None)},
    "agents/{name}/acp": {"POST": (O, _rpc("session/new", cwd="/", mcpServers=[]))},
    "agents/{name}/agui": {"POST": (O, _AG_UI)},
    # A thread that the caller has not is empty, whatever the agent.
    "agents/{name}/agui/connect": {"POST": (E, _AG_UI)},
    "agents/{name}/a2a": {"POST": (O, _rpc("GetTask", id="{task_id}"))},
    "agents/{name}/a2a/rest/{path}": {"GET": (O, None)},
    "agents/{name}/a2a/{path}": {"GET": (O, None)},
    "agents/{name}/.well-known/agent-card.json": {"GET": (O, None)},
    "agents/{name}/.well-known/agent.json": {"GET": (O, None)},
    "agents/{name}/tasks": {
        "POST": (O, {"message": {"role": "user", "parts": [{"type": "text", "text": "a"}]}})
    },
    "agents/{name}/tasks/{task_id}": {"GET": (O, None), "DELETE": (O, None)},
    # Last, since all that the paths above name goes with the chat.
    _CHAT: {"GET": (M, None), "PATCH": (O, {"title": "changed"}), "DELETE": (O, None)},
}
