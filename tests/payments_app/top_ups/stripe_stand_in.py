"""Stripe's API as far as Checkout needs it: its wire format, on a local socket.

It takes form-encoded requests with a secret key, remembers idempotency keys, and signs webhooks as
Stripe does (`t=…,v1=…`, HMAC-SHA256 over `<t>.<body>`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from tests.http_server import LocalServer, QuietHandler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "sk_test_stand_in"
SECRET = "whsec_stand_in"


class StandIn(LocalServer):
    """The server, the sessions that were made, and how it fails."""

    def __init__(self) -> None:
        super().__init__(StripeHandler)
        self.sessions: dict[str, dict[str, Any]] = {}
        self.failures = 0
        self.loses_answers = False

    @property
    def url(self) -> str:
        """The value of UAMP_STRIPE_API."""
        return self.origin


@contextmanager
def running() -> Iterator[StandIn]:
    """Run one for the length of a test."""
    with serving(StandIn()) as server:
        yield server


class StripeHandler(QuietHandler):
    """One request."""

    server: StandIn

    def do_POST(self) -> None:  # noqa: N802 the name in http.server
        """Answer POST /v1/checkout/sessions."""
        raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = dict(parse_qsl(raw, strict_parsing=True))
        if self.headers["Authorization"] != f"Bearer {KEY}":
            self._answer(401, {"error": {"type": "invalid_request_error", "message": "Bad key"}})
        elif self.server.failures:
            self.server.failures -= 1
            self._answer(500, {"error": {"type": "api_error", "message": "Try again"}})
        elif self.path != "/v1/checkout/sessions":
            self._answer(404, {"error": {"type": "invalid_request_error", "message": self.path}})
        else:
            session = self._session(self.headers["Idempotency-Key"], form)
            if self.server.loses_answers:
                self.close_connection = True
                self.connection.close()
            else:
                self._answer(200, session)

    def _session(self, key: str, form: dict[str, str]) -> dict[str, Any]:
        number = len(self.server.sessions) + 1
        price = "line_items[0][price_data]"
        return self.server.sessions.setdefault(
            key,
            {
                "id": f"cs_test_{number}",
                "object": "checkout.session",
                "mode": form["mode"],
                "client_reference_id": form["client_reference_id"],
                "amount_total": int(form[f"{price}[unit_amount]"])
                * int(form["line_items[0][quantity]"]),
                "currency": form[f"{price}[currency]"],
                "payment_status": "unpaid",
                "status": "open",
                "success_url": form["success_url"],
                "url": f"https://checkout.stripe.example/c/pay/cs_test_{number}",
            },
        )

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def event(kind: str, session: dict[str, Any], **changed: Any) -> bytes:
    """Return the body of a webhook about a session."""
    return json.dumps(
        {
            "id": "evt_1",
            "object": "event",
            "api_version": "2026-01-01",
            "created": int(time.time()),
            "livemode": False,
            "pending_webhooks": 1,
            "request": {"id": None, "idempotency_key": None},
            "type": f"checkout.session.{kind}",
            "data": {"object": {**session, "payment_status": "paid", **changed}},
        }
    ).encode()


def signature(body: bytes, *, secret: str = SECRET, at: int | None = None) -> str:
    """Return the header Stripe-Signature of a body."""
    stamp = int(time.time()) if at is None else at
    digest = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={stamp},v1={digest}"
