"""A connection to one server that several posts share, under the rules of `outbound.guard`.

Each post is checked as if it were alone, and each new connection looks the name up and checks its
addresses and certificate.
"""

import logging
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus

import httpcore

from agents_app.outbound.guard import (
    HTTP_ERRORS,
    Posted,
    Resolve,
    Unreachable,
    posted_in,
    sent_headers,
    url_of,
)
from agents_app.outbound.look_ups import look_up
from agents_app.outbound.pinned import Deadline, PinnedBackend
from agents_app.outbound.rules import Policy, Target, check_addresses, check_url

logger = logging.getLogger(__name__)

IDLE_SECONDS = 4.0
"""A connection that was unused for longer is closed: many servers close theirs after 5 seconds."""
USE_SECONDS = 60.0
"""After this time a new connection is made, which looks the name up again."""
ANSWER_BYTES = 64 * 1024
ANSWER_SECONDS = 1.0
"""A connection is used again only if the rest of an answer has at most this size and time."""


class PersistentConnection:
    """At most one connection, for one post at a time; threads may take turns."""

    def __init__(self, tls: ssl.SSLContext, *, resolve: Resolve = look_up) -> None:
        self._deadline = Deadline(0)
        self._resolve = resolve
        self._target: Target | None = None
        self._opened_at = 0.0
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            max_connections=1,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=PinnedBackend(self._addresses, self._deadline),
        )

    def post(self, url: str, policy: Policy, *, body: bytes, headers: Mapping[str, str]) -> Posted:
        """Post a body as `guard.post` does; raises Unreachable.

        The body of the answer is returned only for an error status, and only if it is complete and
        has at most `policy.max_bytes`.
        If the server has closed the connection since the last post, the body is sent again on a new
        one: it may arrive twice.
        """
        try:
            return self._post(check_url(url, policy), policy, body, headers)
        except Unreachable as error:
            logger.warning("nothing was posted to an address: %s", error.reason)
            raise

    def close(self) -> None:
        """Close the connection; another post opens a new one."""
        self._pool.close()

    def _post(
        self, target: Target, policy: Policy, body: bytes, headers: Mapping[str, str]
    ) -> Posted:
        self._deadline.set(policy.seconds)
        is_old = time.monotonic() - self._opened_at > USE_SECONDS
        if is_old or self._target is None or self._target.place != target.place:
            self.close()
        self._target = target
        lines = sent_headers(target, {k.lower(): v for k, v in headers.items()}, body)
        # The body of a refusal is not decompressed.
        lines = [(n, "identity" if n == "accept-encoding" else v) for n, v in lines]
        was_open = bool(self._pool.connections)
        try:
            try:
                return self._send(target, policy, body, lines)
            except (httpcore.NetworkError, httpcore.RemoteProtocolError):
                if not was_open:
                    raise
            self.close()
            return self._send(target, policy, body, lines)
        except HTTP_ERRORS as error:
            raise Unreachable(f"{target.place}: {type(error).__name__} {error}") from error

    def _send(
        self, target: Target, policy: Policy, body: bytes, headers: Sequence[tuple[str, str]]
    ) -> Posted:
        with self._pool.stream(
            "POST", url_of(target), headers=list(headers), content=body
        ) as response:
            posted = posted_in(response)
            self._deadline.set(min(ANSWER_SECONDS, self._deadline.left()))
            data = bytearray()
            is_whole = False
            with suppress(*HTTP_ERRORS, Unreachable):
                for chunk in response.iter_stream():
                    data += chunk
                    if len(data) > ANSWER_BYTES:
                        break
                else:
                    is_whole = len(data) <= policy.max_bytes
        is_refusal = posted.status >= HTTPStatus.BAD_REQUEST
        return posted._replace(data=bytes(data)) if is_refusal and is_whole else posted

    def _addresses(self) -> Sequence[str]:
        """Look up and check the addresses for a new connection; raises Unreachable."""
        target = self._target
        if target is None:
            raise Unreachable("nothing was to be posted")
        self._opened_at = time.monotonic()
        addresses = self._resolve(target.host, target.port, self._deadline.left())
        return check_addresses(target, addresses)
