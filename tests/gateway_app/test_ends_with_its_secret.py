"""What was made with a key's secret opens nothing once that secret is replaced."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

import httpx
import pytest
from django.utils import timezone
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from sessions_app.access import keys
from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import ServerAddress
    from tests.live_server import Person

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"

Make: TypeAlias = "Callable[[httpx.Client, keys.NewSecret], str]"
Opens: TypeAlias = "Callable[[httpx.Client, ServerAddress, str], bool]"


@pytest.fixture
def made(alice: Person) -> keys.NewSecret:
    """Return a key of alice's program."""
    return keys.make_key(alice.user.pk, keys.KeyRequest(name="program"))


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def access_token(web: httpx.Client, made: keys.NewSecret) -> str:
    form = {
        "grant_type": "client_credentials",
        "client_id": made.key.prefix,
        "client_secret": made.secret,
    }
    token: str = web.post("/auth/token", data=form).json()["access_token"]
    return token


def exchanged_token(web: httpx.Client, made: keys.NewSecret) -> str:
    """Return a token that was exchanged for an access token."""
    form = {
        "grant_type": EXCHANGE,
        "subject_token": access_token(web, made),
        "subject_token_type": ACCESS,
    }
    token: str = web.post("/auth/token", data=form).json()["access_token"]
    return token


def ticket(web: httpx.Client, made: keys.NewSecret) -> str:
    answer = web.post("/api/v1/tickets", json={}, headers=bearer(made.secret))
    text: str = answer.json()["ticket"]
    return text


def ticket_of_a_token(web: httpx.Client, made: keys.NewSecret) -> str:
    answer = web.post("/api/v1/tickets", json={}, headers=bearer(access_token(web, made)))
    text: str = answer.json()["ticket"]
    return text


def client_secret(web: httpx.Client, made: keys.NewSecret) -> str:
    session = {"type": "realtime", "model": "echo"}
    answer = web.post(
        "/v1/realtime/client_secrets", json={"session": session}, headers=bearer(made.secret)
    )
    text: str = answer.json()["value"]
    return text


def opens_rest(web: httpx.Client, demo: ServerAddress, secret: str) -> bool:
    del demo
    status = web.get("/api/v1/me", headers=bearer(secret)).status_code
    assert status in {200, 401}
    # A token that opens nothing else must not make a key that does.
    wanted = {"name": "new", "scopes": ["*"]}
    new = web.post("/api/v1/keys", json=wanted, headers=bearer(secret)).status_code
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


@pytest.mark.parametrize("end", [_at_once, _kept_until_a_moment_ago, _twice, _revoked])
@pytest.mark.parametrize(("make", "opens"), THINGS)
def test_it_ends_with_the_secret_that_made_it(
    demo: ServerAddress,
    web: httpx.Client,
    made: keys.NewSecret,
    make: Make,
    opens: Opens,
    end: Callable[[ApiKey], None],
) -> None:
    assert opens(web, demo, make(web, made))
    kept = make(web, made)

    end(made.key)

    assert not opens(web, demo, kept)


@pytest.mark.parametrize(("make", "opens"), THINGS)
def test_it_works_for_as_long_as_the_secret_is_kept(
    demo: ServerAddress, web: httpx.Client, made: keys.NewSecret, make: Make, opens: Opens
) -> None:
    before = make(web, made)
    keys.rotate_key(made.key, by=made.key.user, keep=timedelta(hours=1))
    meanwhile = make(web, made)

    assert opens(web, demo, before)
    assert opens(web, demo, make(web, made))

    ApiKey.objects.filter(pk=made.key.pk).update(previous_until=timezone.now())
    assert not opens(web, demo, meanwhile)
