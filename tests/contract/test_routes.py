"""Callers of each path: the table of `routes` against the server, as four callers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.test import Client
from django.urls import URLPattern, get_resolver

from agents_app.rest.rights import ALL
from chat_app.digests.unsubscribing import unsubscribe_url
from chat_app.links.invite_links import create_invite_link
from chat_app.links.share_links import create_share_link
from chat_app.models import Chat, NotificationLevel, Participant, PushSubscription
from chat_app.people.settings import SettingsChange, update_settings
from federation_app.models import GuestInvitation, Peer
from sessions_app.access import connect_tokens
from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey, Response, Session
from sessions_app.states import ToolCallState
from tests import factories
from tests.contract.routes import CALLERS, QUERIES, ROUTES
from tests.contract.tenants import tenant
from tests.live_server import person

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from pytest_django import Settings

    from tests.live_server import Person

# What the owner sees too: there is no such thing, as anyone but a program with its token sees it.
REFUSED = {401, 403, 404}
# What protocols say whose answers have the status 200.
NOT_THERE = re.compile(r"agent_not_found|TASK_NOT_FOUND|There is no agent|no such agent")
METHODS = ("get", "put", "post", "patch", "delete")
PAGES = re.compile(
    r"(account|money|join|shared|chats|style|diagram|admin|login|logout|password|setup|connect-model"
    r"|language)"
)


def templates(patterns: Any, before: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield each path of the resolver with the methods that its class names."""
    for pattern in patterns:
        path = before + re.sub(r"\^|\\Z|/\?|\(\?:v1/\)\?", "", str(pattern.pattern))
        path = re.sub(r"\(\?P<(\w+)>(?:\[[^\]]*\](?:\{[^}]*\}|\+)?|\w+_|[^)])*\)", r"{\1}", path)
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path)
        if isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None)
            methods = {
                m.upper() for m in ("get", "put", "post", "patch", "delete") if hasattr(view, m)
            }
            yield path.removesuffix("/") if path.startswith("agents") else path, methods
        elif path != "admin/":  # its pages have tests of their own: staff with rights
            yield from templates(pattern.url_patterns, path)


def test_every_path_is_in_the_table() -> None:
    there = dict(templates(get_resolver().url_patterns))
    assert set(there) == set(ROUTES)
    for path, methods in there.items():
        assert methods <= set(ROUTES[path]) | {"HEAD"}, path


@dataclass
class Stage:
    """The callers, as programs and as browsers, and the ids of the owner's rows."""

    people: dict[str, Person]
    browsers: dict[str, Client]
    ids: dict[str, str]
    # On the server's paths, and below an agent.
    conversations: list[dict[str, str]]

    def ids_of(self, route: str) -> dict[str, str]:
        """Return the ids for a route: two routes may each need a row of a kind."""
        if "{conversation_id}" in route:
            return {**self.ids, **self.conversations[route.startswith("agents")]}
        if route.startswith(("responses", "agents")):
            return {**self.ids, "response_id": self.ids["gateway_response_id"]}
        if "{key_id}" in route:
            # A key that was revoked or rotated is there no more.
            return {**self.ids, "key_id": self.ids[f"key of {route}"]}
        kinds = {
            "share-links": {"link_id": self.ids["share_id"]},
            "start": {"item_id": self.ids["other_item_id"]},
            "decision": {"call_id": self.ids["asking_id"]},
            "join": {"secret": self.ids["join_secret"]},
        }
        matching_ids = (new for part, new in kinds.items() if part in route.split("/"))
        return {**self.ids, **next(matching_ids, {})}


def staged(web: httpx.Client) -> Stage:
    """Make the callers, and a row of the owner's for everything that a path names."""
    owner, people = tenant("owner"), {"member": person("member"), "stranger": person("stranger")}
    factories.user("guest")
    user, ids = owner.who.user, owner.ids
    chat = Chat.objects.get(pk=ids["chat_id"])
    Participant.objects.create(chat=chat, user=people["member"].user)
    response = Response.objects.get(pk=ids["response_id"])
    asking = factories.tool_call(response, status=ToolCallState.ASKING, asked_in=chat.pk)
    share, secret = create_share_link(chat_id=chat.pk, made_by=user)
    invite, join_secret = create_invite_link(chat_id=chat.pk, made_by=user)
    elsewhere = GuestInvitation.objects.create(
        peer=Peer.objects.create(did="did:web:b.example"),
        invitation_id=str(UUID(int=1)),
        is_received=False,
        user=user,
        name="bob@b.example",
        chat_id=chat.pk,
        title="a",
    )
    body = {"model": ids["agent"], "input": "a"}
    answered = web.post("/responses", json=body, headers=owner.who.headers).json()
    path = f"/agents/{ids['agent']}/tasks"
    task = web.post(path, json=ROUTES["agents/{name}/tasks"]["POST"][1], headers=owner.who.headers)
    (task_id, *_) = re.findall(r'"id": ?"([^"]+)"', task.text)
    everyone = {"owner": owner.who, **people}
    browsers = {name: Client() for name in CALLERS}
    for name, who in everyone.items():
        browsers[name].force_login(who.user)
    rows = {
        "link_id": str(invite.pk),
        "invitation_id": elsewhere.invitation_id,
        "pk": "1",
        "share_id": str(share.pk),
        "other_item_id": str(factories.queued_turn(user, Session.objects.filter(chat=chat)[0]).pk),
        "asking_id": str(asking.pk),
        "gateway_response_id": answered["id"],
        "task_id": task_id,
        "secret": secret,
        "join_secret": join_secret,
        "language": "en",
        "version": "0" * 16,
        "type_name": "input.text",
        "model_id": ids["agent"],
        "provider": "none",
        "request_id": f"topup_{'0' * 32}",
        "path": "v1/card",
        "stream_id": "str-1",
        "file_id": str(UUID(int=2)),
        "level": "0",
        "place": "000.p/1",
    }
    # A worker would find that its key is not the server's, and remove it.
    update_settings(user_id=user.pk, change=SettingsChange(notifications=NotificationLevel.NONE))
    device = PushSubscription.objects.create(
        user=user,
        session_id=str(browsers["owner"].session.session_key),
        endpoint="https://push.example/a",
        endpoint_sha256="0" * 64,
    )
    rows["token"] = unsubscribe_url(user.pk).rpartition("/")[2]
    rows["subscription_id"] = str(device.pk)
    for route in ROUTES:
        if "{key_id}" in route:
            if "connect-tokens" in route or "account/agents" in route:
                _, daemon = connect_tokens.issue(user.pk, "daemon-of-owner", by=ALL)
                rows[f"key of {route}"] = str(daemon.key.pk)
                continue
            prefix = ApiKey.split_secret(create_api_key(user, name="spare"))[0]
            rows[f"key of {route}"] = str(ApiKey.objects.get(prefix=prefix).pk)
    spare = [factories.chat(user, people["member"].user) for _ in range(2)]
    conversations = [
        {"conversation_id": conversation.pk, "item_id": factories.message(conversation, user).pk}
        for conversation in spare
    ]
    return Stage(everyone, browsers, {**ids, **rows}, conversations)


def test_each_path_is_for_those_of_the_table(web: httpx.Client, settings: Settings) -> None:
    for name in dir(settings):
        if name.endswith(("_PER_MINUTE", "_PER_DAY")):
            setattr(settings, name, 10**9)
    stage = staged(web)
    wrong = []
    for route, methods in ROUTES.items():
        for method, (who, body) in methods.items():
            # Those who may not come first: the owner may delete the row.
            seen = {
                name: _answer(stage, web, method, route, body, name) for name in reversed(CALLERS)
            }
            allowed = {name for name, (is_refused, _) in seen.items() if not is_refused}
            if allowed != who.value:
                wrong.append((method, route, sorted(allowed), sorted(who.value), seen))
    assert wrong == [], "\n".join(map(repr, wrong))


def _answer(
    stage: Stage, web: httpx.Client, method: str, route: str, body: Any, caller: str
) -> tuple[bool, str]:
    """Send a request as a caller; return whether it was refused, and what was answered."""
    ids = stage.ids_of(route)
    path = "/" + _filled(route, ids) + QUERIES.get((method, route), "")
    answer: Any
    if PAGES.match(route) or route == "":
        answer = stage.browsers[caller].generic(method, path)
        refused = "/login?" in answer.headers.get("Location", "")
    else:
        content = None if body is None else json.loads(_filled(json.dumps(body), ids))
        headers = stage.people[caller].headers if caller in stage.people else {}
        answer = web.request(method, path, json=content, headers=headers)
        in_words = route.startswith("agents") and NOT_THERE.search(answer.text)
        refused = bool(in_words)
    status = answer.status_code
    assert status != 405, (method, path)
    assert status < 500 or status == 503, (method, path)
    end = b"" if getattr(answer, "streaming", False) else answer.content[-160:]
    return refused or status in REFUSED, f"{status} {end!r}"


def _filled(template: str, ids: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: ids.get(match[1], match[0]), template)
