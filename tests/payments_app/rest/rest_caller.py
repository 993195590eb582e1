"""A person who calls the REST API of payments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.test import Client

from sessions_app.access.auth import create_api_key

if TYPE_CHECKING:
    from django.contrib.auth.models import User


JSON = "application/json"


class Caller:
    """A program of one person."""

    def __init__(self, person: User) -> None:
        self.person = person
        key = create_api_key(person, name="tests")
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the answer; a body that is a text is sent as it is."""
        data = body if isinstance(body, str) else json.dumps(body)
        return self.client.generic(
            method,
            f"/api/payments/{path}",
            "" if body is None else data,
            content_type=JSON,
            headers=headers,
        )

    def get(self, path: str) -> Any:
        """Return the body of a GET that is answered."""
        answer = self.send("GET", path)
        assert answer.status_code == 200, answer.content
        return answer.json()

    def post(self, path: str, body: Any, **headers: str) -> Any:
        """Return the body of a POST that is answered."""
        answer = self.send("POST", path, body, **headers)
        assert answer.status_code in {200, 201}, answer.content
        return answer.json()

    def refused(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Return the problem of a request that is refused."""
        answer = self.send(method, path, body, **headers)
        assert answer["Content-Type"] == "application/problem+json", answer.content
        problem = answer.json()
        assert problem["status"] == answer.status_code
        return problem
