"""A question that every route can ask, and what a client of the route was shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, TypeAlias

from sessions_app.models import Response
from tests.client import WAIT_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from tests.conftest import ServerAddress

TOOL = "search"
RESULT = "three cats"
PARAMETERS = {"type": "object", "properties": {}}
FUNCTION = {
    "type": "function",
    "function": {"name": TOOL, "description": "Find", "parameters": PARAMETERS},
}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, and the client's use of its answer.

    `headers` name the caller, and may pay. `token` pays in the protocol's own words, when the
    server asks for it. With `has_tool` the client declares TOOL and answers a call of it with
    RESULT. With `stop_after` it stops the answer when its text has come so far.
    """

    agent: str
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    has_tool: bool = False
    stop_after: str = ""

    @property
    def paying(self) -> dict[str, str]:
        """The headers of a request that pays with the token, where the protocol has a header."""
        return {**self.headers, **({"X-PAYMENT": self.token} if self.token else {})}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The client's view of an answer: the text, and the tokens as (read, written, all).

    `tokens` is None where the protocol has no word for them, or where the client left.
    """

    text: str
    tokens: tuple[int, int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """The server, and an HTTP client of it without credentials."""

    server: ServerAddress
    web: httpx.Client


Ask: TypeAlias = Callable[[Place, Question], Shown]


@dataclass(frozen=True, kw_only=True)
class Route:
    """A way to ask: whether its clients declare tools, stop answers, send `PAYMENT-SIGNATURE`."""

    ask: Ask
    has_tools: bool = True
    has_stop: bool = True
    has_402: bool = False


def post(place: Place, path: str, body: Any, headers: Mapping[str, str]) -> httpx.Response:
    """Send JSON and return the answer, which is no refusal."""
    answer = place.web.post(path, json=body, headers=dict(headers), timeout=WAIT_SECONDS)
    assert answer.status_code in {200, 202}, (path, answer.status_code, answer.text)
    return answer


def data_of(answer: httpx.Response) -> list[Any]:
    """Return the JSON of an event stream."""
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line.startswith("{")]


def wait_for_text(text: str) -> Response:
    """Wait until a response that runs has this text so far, and return it."""
    running = Response.objects.filter(finished_at=None, text=text)
    wait_until(running.exists)
    return running.get()


@contextmanager
def open_request(place: Place, path: str, body: Any, headers: Mapping[str, str]) -> Iterator[None]:
    """Send JSON, and leave at the end of the block without reading the answer."""
    connection = HTTPConnection(place.server.host, place.server.port, timeout=WAIT_SECONDS)
    all_headers = {**headers, "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), all_headers)
    try:
        yield
    finally:
        connection.close()


def left(
    place: Place, path: str, body: Any, question: Question, headers: Mapping[str, str]
) -> Shown:
    """Send JSON, leave in the middle of the answer, and return what it said until then."""
    with open_request(place, path, body, headers):
        response = wait_for_text(question.stop_after)
    wait_until(lambda: not Response.objects.filter(pk=response.pk, finished_at=None).exists())
    return Shown(text=question.stop_after)
