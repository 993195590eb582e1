"""The server of a member, its answers, and envelopes for it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from tests.federation_app.peer import ForeignPeer


MEMBER = "did:web:member.example"
UAMP_JSON = {"Content-Type": "application/uamp+json"}
_DELTA = b'data: {"delta_seq":%d,"stream_id":"str-1","ts":"2026-07-10T13:37:05Z","type":"%b"}'
FRAMES = [
    b"id: 0\n%b\n\n" % (_DELTA % (0, b"progress")),
    b": keep-alive\n\n",
    b"id: 1\r\n%b\r\n\r\n" % (_DELTA % (1, b"done")),
]


@dataclass
class Answer:
    """The reply of a member to a request."""

    status: int = 202
    headers: dict[str, str] = field(default_factory=lambda: {"Location": "/v1/stream/str-1"})
    body: bytes = b'{"stream_id":"str-1","delta_window":8,"repeated":false}'
    pieces: list[bytes] | None = None
    # Does not answer before this is set.
    until: threading.Event | None = None


def refusal(code: str, status: int, **members: Any) -> Answer:
    """Return a refusal with a problem document."""
    body = {"title": "Refused", "status": status, "code": code, "detail": "no", **members}
    return Answer(status, {"Content-Type": "application/problem+json"}, json.dumps(body).encode())


class MemberServer:
    """The server of a member, which keeps what it receives."""

    def __init__(self) -> None:
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: Callable[[str], Answer] = lambda _path: Answer()
        self.arrived = threading.Event()

    @contextmanager
    def running(self) -> Iterator[str]:
        """Run it, and yield its address."""
        member = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:  # noqa: N802 the handler's name
                self.do_POST()

            def do_POST(self) -> None:  # noqa: N802 the handler's name
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                member.received.append((self.path, headers, body))
                member.arrived.set()
                answer = member.answers(self.path)
                if answer.until is not None:
                    answer.until.wait(30)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for piece in answer.pieces or [answer.body]:
                    self.wfile.write(piece)
                    self.wfile.flush()

        with serving(LocalServer(Handler)) as server:
            yield server.origin


def post(http: httpx.Client, envelope: Any, **headers: str) -> httpx.Response:
    """Post an envelope, or its bytes."""
    content = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
    return http.post("/v1/messages", content=content, headers={**UAMP_JSON, **headers})


def to_member(sender: ForeignPeer, intent: str = "ask", **members: Any) -> Any:
    """Return an envelope for the member."""
    return sender.envelope(intent, **{"to": [MEMBER], **members})


def outcome(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a response."""
    return response.status_code, response.json().get("code", "")
