"""People who call the REST API, and the form in which it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.test import Client

from chat_app.models import Chat, ChatEvent, Participant
from sessions_app.access.auth import create_api_key

if TYPE_CHECKING:
    from django.contrib.auth.models import User

PROBLEM = "application/problem+json"
NO_PROFILE = {
    "display_name": "",
    "status_text": "",
    "avatar_emoji": "",
    "avatar_colour": "",
    "avatar_url": None,
}


def signed_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def bearer(user: User) -> Client:
    key = create_api_key(user, name="tests")
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def check_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert (response.status_code, response["Content-Type"]) == (status, PROBLEM)
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["type"] == f"/docs/problems#{code}"
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == response["X-Request-ID"]
    return problem


def rows_written() -> tuple[int, int, int]:
    return Chat.objects.count(), Participant.objects.count(), ChatEvent.objects.count()


def patch(client: Client, path: str, body: Any) -> Any:
    return client.patch(path, json.dumps(body), content_type="application/json")
