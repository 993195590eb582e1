"""Client secrets of the Realtime API: what they open, for whom, and what ends them."""

from __future__ import annotations

import base64
import json
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.utils import timezone
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from gateway_app.backend.agents import client_secrets
from payments_app.tokens import issuance
from sessions_app.access import tickets
from sessions_app.models import ApiKey, Session, Ticket
from tests import factories
from tests.sessions_app.billing.paid_agents import priced, rich, usd, wallet
from tests.sessions_app.model_server import model_server, text_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

Shown = dict[str, Any]


def issued(web: httpx.Client, who: Person, path: str = "/v1/realtime", **body: Any) -> Shown:
    """Return the answer to a request for a secret of GA."""
    answer = web.post(f"{path}/client_secrets", json=body, headers=who.headers)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    secret: Shown = answer.json()
    return secret


@contextmanager
def opened(
    demo: ServerAddress, secret: str, path: str = "v1/realtime", **options: Any
) -> Iterator[tuple[ClientConnection, Shown]]:
    """Open a socket with a secret, and give its first event too."""
    headers = {} if "subprotocols" in options else {"Authorization": f"Bearer {secret}"}
    with ExitStack() as stack:
        url = f"{demo.ws}/{path}"
        socket = stack.enter_context(
            connect(url, additional_headers=headers, proxy=None, **options)
        )
        yield socket, json.loads(socket.recv(timeout=60))


def answer_of(socket: ClientConnection, text: str) -> str:
    """Say something and return the text of the answer."""
    part = {"type": "input_text", "text": text}
    item = {"type": "message", "role": "user", "content": [part]}
    socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
    socket.send(json.dumps({"type": "response.create"}))
    while (event := json.loads(socket.recv(timeout=60)))["type"] != "response.done":
        pass
    return "".join(part["text"] for item in event["response"]["output"] for part in item["content"])


def test_a_secret_of_ga_opens_sessions_as_its_issuer_configured_them(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    session = {"type": "realtime", "model": "echo", "instructions": "Be brief.", "audio": {}}

    secret = issued(web, alice, session=session, expires_after={"seconds": 30})

    assert secret["value"].startswith("ek_")
    lasts = secret["expires_at"] - timezone.now().timestamp()
    assert 0 < lasts <= 30
    assert (secret["session"]["type"], secret["session"]["model"]) == ("realtime", "echo")
    for _ in range(2):
        with opened(demo, secret["value"]) as (socket, created):
            assert created["session"]["instructions"] == "Be brief."
            assert created["session"]["type"] == "realtime"
            assert answer_of(socket, "Hello there") == "Hello there"
    rows = Session.objects.all()
    assert {(row.user, row.api_key) for row in rows} == {(alice.user, ApiKey.objects.get())}
    assert {row.config["instructions"] for row in rows} == {"Be brief."}


def test_a_secret_of_the_beta_opens_sessions_of_the_beta(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    body = {"model": "echo", "modalities": ["text", "audio"], "temperature": 0.7}

    answer = web.post("/v1/realtime/sessions", json=body, headers=alice.headers).json()

    assert answer["object"] == "realtime.session"
    secret = answer["client_secret"]
    assert 0 < secret["expires_at"] - timezone.now().timestamp() <= 60
    protocols = [
        "realtime",
        f"openai-insecure-api-key.{secret['value']}",
        "openai-beta.realtime-v1",
    ]
    with opened(demo, "", subprotocols=protocols) as (socket, created):
        assert socket.subprotocol == "realtime"
        assert created["session"]["temperature"] == 0.7
        assert "type" not in created["session"]
        assert answer_of(socket, "Hello there") == "Hello there"


def until(socket: ClientConnection, kind: str) -> Shown:
    """Read up to an event of a type, and return it."""
    while (event := json.loads(socket.recv(timeout=60)))["type"] != kind:
        pass
    last_event: Shown = event
    return last_event


def test_a_secret_does_not_spend_the_balance_of_its_issuer(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    priced("dear", per_answer="0.25")
    secret = issued(web, rich(alice), session={"type": "realtime", "model": "dear"})
    before = wallet(alice)
    with opened(demo, secret["value"]) as (socket, _):
        part = {"type": "input_text", "text": "Hello there"}
        item = {"type": "message", "role": "user", "content": [part]}
        socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
        socket.send(json.dumps({"type": "response.create"}))
        until(socket, "payment.required")
        payment = {"scheme": "balance", "network": "uamp"}
        socket.send(json.dumps({"type": "payment.submit", "payment": payment}))
        assert until(socket, "error")["error"]["code"] == "forbidden"
        assert wallet(alice) == before
        token = issuance.issue(
            key="token", user_id=alice.user.pk, amount=usd("1"), expires_in=600
        ).token
        payment = {"scheme": "token", "token": token}
        socket.send(json.dumps({"type": "payment.submit", "payment": payment}))
        assert until(socket, "response.done")["response"]["status"] == "completed"


def test_a_secret_allows_no_tool_call_of_its_issuer(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    secret = issued(web, alice, session={"type": "realtime", "model": "careful"})
    with opened(demo, secret["value"]) as (socket, _):
        image = base64.b64encode(factories.png()).decode()
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{image}"}
        parts = [{"type": "input_text", "text": "black and white"}, picture]
        item = {"type": "message", "role": "user", "content": parts}
        socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
        socket.send(json.dumps({"type": "response.create"}))
        approval = until(socket, "tool.approval_required")
        approve = {"type": "tool.approve", "call_id": approval["call_id"], "approved": True}
        socket.send(json.dumps(approve))
        assert until(socket, "error")["error"]["code"] == "forbidden"


def test_below_an_agent_the_issuer_chooses_the_model(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    with model_server(text_chunks("The answer.")) as server:
        options = {"models": ["large"]}
        server.agent("chosen", options=options)
        path = "/agents/chosen/realtime"
        secret = issued(web, alice, path, session={"type": "realtime", "model": "large"})
        with opened(demo, secret["value"], "agents/chosen/realtime") as (socket, created):
            assert created["session"]["model"] == "large"
            answer_of(socket, "Hello there")
        assert server.requests[-1]["model"] == "large"


@pytest.mark.parametrize(
    "path",
    ["v1/realtime?model=slow", "agents/slow/realtime", "agents/echo/realtime?model=large"],
)
def test_a_secret_opens_no_other_agent_and_no_other_model(
    demo: ServerAddress, web: httpx.Client, alice: Person, path: str
) -> None:
    secret = issued(web, alice, session={"model": "echo"})["value"]

    with pytest.raises(InvalidStatus), opened(demo, secret, path):
        pass
    with opened(demo, secret, "agents/echo/v1/realtime?model=echo"):
        pass


def test_a_secret_opens_nothing_but_its_sockets(
    demo: ServerAddress, web: httpx.Client, dial: Dial, alice: Person
) -> None:
    secret = issued(web, alice, session={"model": "echo"})["value"]
    headers = {"Authorization": f"Bearer {secret}"}

    echo = {"session": {"model": "echo"}}
    question = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    answers = [
        web.get("/api/v1/chats", headers=headers),
        web.post("/v1/chat/completions", json=question, headers=headers),
        web.post("/v1/realtime/client_secrets", json=echo, headers=headers),
        web.post("/api/v1/tickets", json={}, headers=headers),
    ]

    assert [answer.status_code for answer in answers] == [httpx.codes.UNAUTHORIZED] * 4
    for path in ("/uamp", f"/uamp?ticket={secret}", "/agents/echo/acp"):
        with pytest.raises(InvalidStatus):
            dial(path=path, headers={} if "ticket" in path else headers)
    assert tickets.find_secret(secret) is not None


@pytest.mark.parametrize("ended", ["expired", "revoked", "deactivated", "of an expired key"])
def test_a_secret_that_ended_opens_nothing(
    demo: ServerAddress, web: httpx.Client, alice: Person, ended: str
) -> None:
    secret = issued(web, alice, session={"model": "echo"})["value"]
    now = timezone.now()
    match ended:
        case "expired":
            Ticket.objects.update(expires_at=now)
        case "revoked":
            ApiKey.objects.update(revoked_at=now)
        case "deactivated":
            alice.user.is_active = False
            alice.user.save()
        case _:
            ApiKey.objects.update(expires_at=now - timedelta(seconds=1))

    with pytest.raises(InvalidStatus), opened(demo, secret):
        pass


def test_a_revoked_key_ends_the_sockets_of_its_secrets(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    secret = issued(web, alice, session={"model": "echo"})["value"]
    with opened(demo, secret) as (socket, _):
        ApiKey.objects.update(revoked_at=timezone.now())
        assert json.loads(socket.recv(timeout=60))["error"]["code"] == "unauthorized"
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=60)
        assert socket.close_code == 4401


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"session": {"model": "echo"}, "expires_after": {"seconds": 9}}, "expires_after.seconds"),
        (
            {"session": {"model": "echo"}, "expires_after": {"seconds": 7201}},
            "expires_after.seconds",
        ),
        ({"session": {}}, "session.model"),
        ({"session": {"model": "echo", "type": "transcription"}}, "session.type"),
        ({"session": {"model": "echo", "output_modalities": ["audio"]}}, None),
        ({"session": {"model": "m" * 257}}, "session.model"),
    ],
)
def test_a_request_that_is_not_good_is_refused_with_its_place(
    web: httpx.Client, alice: Person, body: Shown, param: str | None
) -> None:
    refused = web.post("/v1/realtime/client_secrets", json=body, headers=alice.headers)

    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert param is None or refused.json()["error"]["param"] == param
    assert not Ticket.objects.exists()


def test_secrets_are_for_people_and_bounded(
    web: httpx.Client, alice: Person, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, echo = "/v1/realtime/client_secrets", {"session": {"model": "echo"}}
    assert web.post(url, json=echo).status_code == httpx.codes.UNAUTHORIZED
    missing = {"session": {"model": "no-such-agent"}}
    not_found = web.post(url, json=missing, headers=alice.headers)
    assert not_found.status_code == httpx.codes.NOT_FOUND
    monkeypatch.setattr(client_secrets, "CONFIG_BYTES", 2000)
    long = {"session": {"model": "echo", "instructions": "x" * 2000}}
    too_large = web.post(url, json=long, headers=alice.headers)
    assert too_large.json()["error"]["code"] == "event_too_large"
    settings.UAMP_CLIENT_SECRETS_PER_USER = 1
    issued(web, alice, session={"model": "echo"})
    too_many = web.post(url, json=echo, headers=alice.headers)
    assert too_many.status_code == httpx.codes.TOO_MANY_REQUESTS
    assert too_many.headers["Retry-After"]
    ticket = web.post("/api/v1/tickets", json={}, headers=alice.headers)
    assert ticket.status_code == httpx.codes.CREATED
