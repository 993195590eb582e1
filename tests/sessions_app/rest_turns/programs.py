"""A program that uses the REST API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessions_app.models import Response
from tests.client import wait_until

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

SEARCH = {"type": "function", "function": {"name": "search"}}
SSE = {"Accept": "text/event-stream"}


class Program:
    """A program of a person: JSON in, JSON out."""

    def __init__(self, web: httpx.Client, who: Person) -> None:
        self.web, self.who = web, who

    def call(
        self, method: str, path: str, body: Any = None, *, status: int = 200, **headers: str
    ) -> Any:
        """Send a request and return the body of its answer, which has this status."""
        all_headers = {**self.who.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        answer = self.web.request(method, f"/api/v1/{path}", json=body, headers=all_headers)
        assert answer.status_code == status, answer.text
        assert "RateLimit-Remaining" in answer.headers
        return answer.json() if answer.content else None

    def ended(self, response_id: str) -> dict[str, Any]:
        """Wait for the end of an answer and return it."""
        wait_until(lambda: Response.objects.get(pk=response_id).finished_at is not None)
        response: dict[str, Any] = self.call("GET", f"responses/{response_id}")
        return response
