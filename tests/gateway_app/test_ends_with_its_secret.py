"""Credentials made with a key's secret open nothing once that secret is replaced."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from sessions_app.access import keys, tickets
from sessions_app.access.auth import of_user
from sessions_app.connection.client_connection import CLOSE_UNAUTHORIZED
from sessions_app.models import ApiKey, Response, Ticket
from tests.client import new_event
from tests.live_server import Person

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import ServerAddress
    from tests.live_server import Dial

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"

Make: TypeAlias = "Callable[[httpx.Client, keys.NewSecret], str]"
Opens: TypeAlias = "Callable[[httpx.Client, ServerAddress, str], bool]"


@pytest.fixture
def new_secret(alice: Person) -> keys.NewSecret:
    """Return a key of alice's program."""
    return keys.make_key(alice.user.pk, keys.KeyRequest(name="program"))


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def access_token(web: httpx.Client, new_secret: keys.NewSecret) -> str:
    form = {
        "grant_type": "client_credentials",
        "client_id": new_secret.key.prefix,
        "client_secret": new_secret.secret,
    }
    token: str = web.post("/auth/token", data=form).json()["access_token"]
    return token


def exchanged_token(web: httpx.Client, new_secret: keys.NewSecret) -> str:
    """Return a token that was exchanged for an access token."""
    form = {
        "grant_type": EXCHANGE,
        "subject_token": access_token(web, new_secret),
        "subject_token_type": ACCESS,
    }
    token: str = web.post("/auth/token", data=form).json()["access_token"]
    return token


def ticket(web: httpx.Client, new_secret: keys.NewSecret) -> str:
    answer = web.post("/api/v1/tickets", json={}, headers=bearer(new_secret.secret))
    text: str = answer.json()["ticket"]
    return text


def ticket_of_a_token(web: httpx.Client, new_secret: keys.NewSecret) -> str:
    answer = web.post("/api/v1/tickets", json={}, headers=bearer(access_token(web, new_secret)))
    text: str = answer.json()["ticket"]
    return text


def client_secret(web: httpx.Client, new_secret: keys.NewSecret) -> str:
    session = {"type": "realtime", "model": "echo"}
    answer = web.post(
        "/v1/realtime/client_secrets", json={"session": session}, headers=bearer(new_secret.secret)
    )
    text: str = answer.json()["value"]
    return text


def opens_rest(web: httpx.Client, demo: ServerAddress, secret: str) -> bool:
    del demo
    status = web.get("/api/v1/me", headers=bearer(secret)).status_code
    assert status in {200, 401}
    # A token that opens nothing else must not make a key that does.
    key_request = {"name": "new", "scopes": ["*"]}
    new = web.post("/api/v1/keys", json=key_request, headers=bearer(secret)).status_code
    assert (new == httpx.codes.CREATED) is (status == httpx.codes.OK)
    return status == httpx.codes.OK


def opens_a_batch(web: httpx.Client, demo: ServerAddress, secret: str) -> bool:
    del demo
    status = web.post(f"/uamp?ticket={secret}", json={"events": []}).status_code
    return status != httpx.codes.UNAUTHORIZED


def opens_a_socket(web: httpx.Client, demo: ServerAddress, secret: str) -> bool:
    del web
    try:
        with connect(
            f"{demo.ws}/v1/realtime", additional_headers=bearer(secret), proxy=None
        ) as socket:
            socket.recv(timeout=60)
    except InvalidStatus:
        return False
    return True


THINGS = [
    pytest.param(access_token, opens_rest, id="access token"),
    pytest.param(exchanged_token, opens_rest, id="exchanged token"),
    pytest.param(ticket, opens_a_batch, id="ticket"),
    pytest.param(ticket_of_a_token, opens_a_batch, id="ticket of a token"),
    pytest.param(client_secret, opens_a_socket, id="client secret"),
]


def _at_once(key: ApiKey) -> None:
    keys.rotate_key(key, by=key.user)


def _kept_until_a_moment_ago(key: ApiKey) -> None:
    keys.rotate_key(key, by=key.user, keep=timedelta(hours=1))
    ApiKey.objects.filter(pk=key.pk).update(previous_until=timezone.now() - timedelta(seconds=1))


def _twice(key: ApiKey) -> None:
    for _ in range(2):
        keys.rotate_key(key, by=key.user, keep=timedelta(hours=1))


def _revoked(key: ApiKey) -> None:
    keys.revoke_key(key, by=key.user)


@pytest.mark.sampled
@pytest.mark.parametrize("end", [_at_once, _kept_until_a_moment_ago, _twice, _revoked])
@pytest.mark.parametrize(("make", "opens"), THINGS)
def test_it_ends_with_the_secret_that_made_it(
    demo: ServerAddress,
    web: httpx.Client,
    new_secret: keys.NewSecret,
    make: Make,
    opens: Opens,
    end: Callable[[ApiKey], None],
) -> None:
    assert opens(web, demo, make(web, new_secret))
    unused_credential = make(web, new_secret)

    end(new_secret.key)

    assert not opens(web, demo, unused_credential)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("make", "opens"), THINGS)
def test_it_works_for_as_long_as_the_secret_is_kept(
    demo: ServerAddress, web: httpx.Client, new_secret: keys.NewSecret, make: Make, opens: Opens
) -> None:
    before = make(web, new_secret)
    keys.rotate_key(new_secret.key, by=new_secret.key.user, keep=timedelta(hours=1))
    meanwhile = make(web, new_secret)

    assert opens(web, demo, before)
    assert opens(web, demo, make(web, new_secret))

    ApiKey.objects.filter(pk=new_secret.key.pk).update(previous_until=timezone.now())
    assert not opens(web, demo, meanwhile)


# --- Tokens that others passed on ---


def passed_on(
    web: httpx.Client, new_secret: keys.NewSecret, by: keys.NewSecret, **form: str
) -> str:
    """Return a token that another program exchanged for one of the key's, and that was renewed."""
    token = access_token(web, new_secret)
    for client in ({"client_id": by.key.prefix, "client_secret": by.secret}, {}):
        exchange = {
            "grant_type": EXCHANGE,
            "subject_token": token,
            "subject_token_type": ACCESS,
            **client,
            **form,
        }
        token = web.post("/auth/token", data=exchange).json()["access_token"]
    return token


def _expired(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now())


def _owner_deactivated(key: ApiKey) -> None:
    User.objects.filter(pk=key.user.pk).update(is_active=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("end", [_at_once, _twice, _revoked, _expired, _owner_deactivated])
def test_a_token_that_was_passed_on_ends_with_the_key_of_who_did(
    web: httpx.Client,
    demo: ServerAddress,
    dial: Dial,
    bob: Person,
    new_secret: keys.NewSecret,
    end: Callable[[ApiKey], None],
) -> None:
    worker = keys.make_key(bob.user.pk, keys.KeyRequest(name="worker"))
    token = passed_on(web, new_secret, worker)
    unused_ticket = web.post("/api/v1/tickets", json={}, headers=bearer(token)).json()["ticket"]
    assert opens_rest(web, demo, token)
    client = dial(Person(new_secret.key.user, token))
    client.create_session(agent="slow")
    client.ask("hello")
    client.until("response.delta")

    end(worker.key)

    assert not opens_rest(web, demo, token)
    assert not opens_a_batch(web, demo, unused_ticket)
    assert client.until("response.error")[-1]["error"]["code"] == "unauthorized"
    client.until("session.error")
    assert client.close_code() == CLOSE_UNAUTHORIZED
    assert opens_rest(web, demo, access_token(web, new_secret))


@pytest.mark.parametrize("make", ["ticket", "client secret"])
def test_what_is_made_with_a_narrow_token_opens_no_more_than_it(
    web: httpx.Client, demo: ServerAddress, bob: Person, new_secret: keys.NewSecret, make: str
) -> None:
    worker = keys.make_key(bob.user.pk, keys.KeyRequest(name="worker"))
    scopes = "account:read" if make == "ticket" else "messages:write"
    token = bearer(passed_on(web, new_secret, worker, scope=scopes))
    if make == "ticket":
        secret = web.post("/api/v1/tickets", json={}, headers=token).json()["ticket"]
        turn = [
            new_event("session.create", uamp_version="1.0", session={}, agent="echo"),
            new_event("input.text", text="hello"),
            new_event("response.create"),
        ]
        answer = web.post(f"/uamp?ticket={secret}", json=turn).text
        assert "This credential lacks the scope" in answer, answer
        assert not Response.objects.exists()
        return
    session = {"session": {"type": "realtime", "model": "echo"}}
    made_secret = web.post("/v1/realtime/client_secrets", json=session, headers=token).json()
    row = Ticket.objects.get(sha256=hashlib.sha256(made_secret["value"].encode()).hexdigest())
    principal = tickets.limited(of_user(new_secret.key.user), row)
    assert principal.rights.scopes == {"messages:write"}
    assert principal.actors == ((f"key:{worker.key.pk}", 0),)
    assert principal.expires_at is not None
